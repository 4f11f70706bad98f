"""The GE2E d-vector of Resemblyzer: an LSTM on 40 mel bands, and the oldest ear of the suite.

Reference: Wan et al., "Generalized end-to-end loss for speaker verification", ICASSP 2018.

Windows of 1.6 s, 0.77 s apart, each give a vector of length one, and so does their mean. The
authors bring quiet speech to −30 dBFS first; they also cut out long silence with a detector of
their own, which is left out here: it needs a package more and changes the vectors little.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxrisk.attack.ecapa_encoder import cpu_threads, pick_device, read_checkpoint
from voxrisk.attack.encoder import check_all, file_identity
from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError

WINDOW, HOP, BANDS = 400, 160, 40
FRAMES, STEP = 160, 77  # of a window, and between two
LEVEL = 10 ** (-30 / 20)  # root mean square


class Ge2eEncoder:
    """See :class:`voxrisk.attack.Encoder`."""

    def __init__(
        self, name: str, path: Path, *, device: str = "auto", threads: int | None = None
    ) -> None:
        state = read_checkpoint(path)
        weights = state.get("model_state", state)
        self.name, self.threads, self.dimension = name, threads, 256
        self.identity = file_identity(path)
        self.device = pick_device(device)
        self.lstm = nn.LSTM(BANDS, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)
        parts = {"lstm": self.lstm, "linear": self.linear}
        try:
            for part, module in parts.items():
                own = {
                    key.removeprefix(f"{part}."): value
                    for key, value in dict(weights).items()
                    if key.startswith(f"{part}.")
                }
                module.load_state_dict(own)
                module.to(self.device).eval()
        except (RuntimeError, AttributeError) as error:
            raise InputError(f"{path}: holds no GE2E encoder of Resemblyzer") from error

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        with cpu_threads(self.threads), torch.inference_mode():
            return np.stack([self._one(wave) for wave in waveforms])

    def _one(self, wave: NDArray[np.float32]) -> NDArray[np.float32]:
        mels = torch.from_numpy(np.stack(windows(wave))).to(self.device)
        _, (hidden, _) = self.lstm(mels)
        parts = nn.functional.normalize(torch.relu(self.linear(hidden[-1])))
        mean = parts.mean(dim=0)
        vector = (mean / mean.norm()).cpu().numpy()
        if not np.isfinite(vector).all():
            raise InputError(f"the encoder {self.name} gives no finite vector")
        return np.asarray(vector, np.float32)


def windows(wave: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Mel power ``(160, 40)`` of each window; the last is padded, or left out if mostly padding."""
    level = float(np.sqrt(np.mean(wave.astype(np.float64) ** 2)))
    loud = wave * np.float32(max(LEVEL / level, 1.0))
    total = len(loud) // HOP + 1
    count = max(1, 1 + int(np.ceil((total - FRAMES) / STEP)))
    if count > 1 and total - (count - 1) * STEP < 0.75 * FRAMES:
        count -= 1
    needed = ((count - 1) * STEP + FRAMES) * HOP
    padded = np.pad(loud, (WINDOW // 2, max(0, needed - len(loud)) + WINDOW))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    mels = (np.abs(np.fft.rfft(frames * taper)) ** 2 @ _filters().T).astype(np.float32)
    return [mels[i * STEP : i * STEP + FRAMES] for i in range(count)]


def _filters() -> NDArray[np.float64]:
    """Slaney's triangles ``(40, 201)`` of unit area, linear below 1 kHz and logarithmic above."""
    low, ratio = 200.0 / 3.0, np.log(6.4) / 27.0
    top = 1000.0 / low + np.log(RATE / 2 / 1000.0) / ratio
    mel = np.linspace(0.0, top, BANDS + 2)
    edge = np.where(mel < 15.0, low * mel, 1000.0 * np.exp(ratio * (mel - 15.0)))
    hertz = np.fft.rfftfreq(WINDOW, 1.0 / RATE)
    rise = (hertz - edge[:-2, None]) / (edge[1:-1] - edge[:-2])[:, None]
    fall = (edge[2:, None] - hertz) / (edge[2:] - edge[1:-1])[:, None]
    area = 2.0 / (edge[2:] - edge[:-2])
    return np.asarray(np.maximum(np.minimum(rise, fall), 0.0) * area[:, None])
