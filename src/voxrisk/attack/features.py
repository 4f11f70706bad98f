"""Log-mel filter banks in plain torch, equal to those that SpeechBrain's ECAPA was trained on.

25 ms Hamming windows every 10 ms, centred and padded with zeros; 80 triangular filters from 0 to
8 kHz; decibels, at most 80 dB below the loudest value of the utterance; the mean over time removed.
"""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from voxrisk.corpus.audio import RATE

WINDOW = 400
HOP = 160
MELS = 80
TOP_DB = 80.0
FLOOR = 1e-10


def frame_count(samples: Any) -> Any:
    """Frames of an utterance of ``samples`` samples; works for an int and for a tensor of them.

    >>> frame_count(48_000)
    301
    """
    return samples // HOP + 1


def filter_banks(waves: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Turn waveforms ``(n, samples)`` at 16 kHz into features ``(n, 80, frames)``.

    Args:
        waves: Waveforms, padded with zeros at their end.
        lengths: Samples ``(n,)`` of each waveform, or None when nothing is padded. Frames beyond
            the end of an utterance come out as 0, and its own frames do not depend on the padding.
    """
    window, filters = _constants(waves.device)
    spectrum = torch.stft(
        waves.float(),
        WINDOW,
        HOP,
        WINDOW,
        window,
        center=True,
        pad_mode="constant",
        return_complex=True,
    )
    power = torch.view_as_real(spectrum).square().sum(-1)
    decibel = 10.0 * torch.log10((filters @ power).clamp(min=FLOOR))
    decibel = torch.maximum(decibel, decibel.amax(dim=(1, 2), keepdim=True) - TOP_DB)
    if lengths is None:
        return decibel - decibel.mean(dim=2, keepdim=True)
    frames = frame_count(lengths)
    mask = frame_mask(frames, decibel.shape[2])
    mean = (decibel * mask).sum(dim=2, keepdim=True) / frames[:, None, None]
    centred: Tensor = (decibel - mean) * mask
    return centred


def frame_mask(frames: Tensor, total: int) -> Tensor:
    """True ``(n, 1, total)`` where a frame belongs to the utterance, False where it is padding."""
    return (torch.arange(total, device=frames.device) < frames[:, None])[:, None, :]


@lru_cache(maxsize=8)
def _constants(device: torch.device) -> tuple[Tensor, Tensor]:
    # Built in float32 on the CPU, as SpeechBrain does: the official weights saw these roundings.
    points = _hertz(torch.linspace(_mel(0.0), _mel(RATE / 2), MELS + 2))
    centre, width = points[1:-1, None], (points[1:] - points[:-1])[:-1, None]
    slope = (torch.linspace(0, RATE / 2, WINDOW // 2 + 1) - centre) / width
    filters = torch.minimum(slope + 1.0, 1.0 - slope).clamp(min=0.0)
    return torch.hamming_window(WINDOW).to(device), filters.to(device)


def _mel(hertz: float) -> float:
    return float(2595.0 * torch.log10(torch.tensor(1.0 + hertz / 700.0, dtype=torch.float64)))


def _hertz(mel: Tensor) -> Tensor:
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
