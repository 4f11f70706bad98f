"""Moonshine's speech encoder as a feature extractor: how something is said, more than by whom.

The encoder of the speech recogniser Moonshine (base, English) reads the raw waveform and gives a
frame of 416 values about every 24 ms. Mean and standard deviation of the frames tell emotions apart
far better than speaker vectors do, which are trained to ignore them. It is not meant to recognise
speakers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_all, file_identity
from voxrisk.attack.onnx import open_session
from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError

PIECE = 20.0  # seconds heard at once: the cost of attention grows with the square
SHORTEST = 0.2  # seconds: less gives hardly a frame
POOLING = "mean+sd"


class MoonshineEncoder:
    """See :class:`voxrisk.attack.Encoder`."""

    def __init__(
        self, name: str, path: Path, *, device: str = "auto", threads: int | None = None
    ) -> None:
        self.session = open_session(path, device=device, threads=threads)
        (given,) = self.session.get_inputs()
        self.name = name
        self.input = given.name
        self.identity = f"{file_identity(path)} {POOLING}"
        self.dimension = 2 * int(self.session.get_outputs()[0].shape[-1])

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        vectors = np.empty((len(waveforms), self.dimension), dtype=np.float32)
        for i, wave in enumerate(waveforms):
            frames = np.concatenate([self._frames(piece) for piece in _pieces(wave)])
            vectors[i] = np.concatenate([frames.mean(axis=0), frames.std(axis=0)])
            if not np.isfinite(vectors[i]).all():
                raise InputError(f"waveform {i}: the encoder {self.name} gives no finite vector")
        return vectors

    def _frames(self, wave: NDArray[np.float32]) -> NDArray[np.float32]:
        least = round(SHORTEST * RATE)
        padded = np.pad(wave, (0, max(least - len(wave), 0)))
        (frames,) = self.session.run(None, {self.input: padded[None].astype(np.float32)})
        return np.asarray(frames[0], dtype=np.float32)


def _pieces(wave: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Pieces of about the same length, none above :data:`PIECE`."""
    count = max(int(np.ceil(len(wave) / (PIECE * RATE))), 1)
    return list(np.array_split(wave, count))
