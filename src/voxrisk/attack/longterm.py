"""Where it was recorded: the long-term spectrum and the noise floor of an utterance.

Microphone, room and codec colour all recordings of a session alike. What an attacker finds by them
is a leak of the *recording*: it links utterances that were recorded alike, and would not find the
same person elsewhere. So it is an attacker of its own, told apart from those who listen to voices.

40 mel bands, in decibels: their mean over speech frames, their lowest tenth (the floor), and the
deviation over speech frames; 120 values, each kind less its own mean over the bands. Beside them
the level of speech, its distance from the floor, and the silence before and after it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_all
from voxrisk.attack.prosody import HOP, WINDOW, levels, speech_frames
from voxrisk.corpus.audio import RATE

BANDS = 40
VERSION = 2  # raised when the numbers change
SPREAD = 6.0  # decibels: brings the values to about ±1


class LongtermEncoder:
    """See :class:`voxrisk.attack.Encoder`."""

    def __init__(self, name: str = "longterm") -> None:
        self.name = name
        self.identity = f"{name} {VERSION}"
        self.dimension = 3 * BANDS + 5

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        return np.stack([longterm(wave) for wave in waveforms]).astype(np.float32)


def longterm(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Spectrum of speech, floor and their movement of ``samples (n,)`` at 16 kHz, ``(125,)``.

    The last value is always 1: beside it the direction of the vector keeps its length.
    """
    padded = np.pad(samples.astype(np.float64), (WINDOW // 2, WINDOW))
    start = np.arange(0, len(samples), HOP)
    frames = padded[start[:, None] + np.arange(WINDOW)] * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(frames, 512)) ** 2 @ _filters().T
    decibel = 10.0 * np.log10(power + 1e-7)
    level = levels(samples)
    spoken = speech_frames(level)
    kinds = [
        decibel[spoken].mean(axis=0),
        np.quantile(decibel, 0.1, axis=0),
        2.0 * decibel[spoken].std(axis=0),
    ]
    depth = kinds[0].mean() - kinds[1].mean()
    flat = np.concatenate([kind - kind.mean() for kind in kinds])
    first, last = np.flatnonzero(spoken)[[0, -1]]
    silence = np.log(np.array([first, level.size - 1 - last]) * HOP / RATE + 0.02) + 1.0
    facts = [(level[spoken].mean() + 27.0) / SPREAD, (depth - 25.0) / SPREAD, *silence, 1.0]
    return np.concatenate([flat / SPREAD, facts])


def _filters() -> NDArray[np.float64]:
    """Triangles ``(40, 257)`` of like width in mel from 60 Hz to 7.8 kHz."""
    low, high = (2595.0 * float(np.log10(1.0 + hertz / 700.0)) for hertz in (60.0, 7800.0))
    mel = np.linspace(low, high, BANDS + 2)
    edge = 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    hertz = np.fft.rfftfreq(512, 1.0 / RATE)
    rise = (hertz - edge[:-2, None]) / (edge[1:-1] - edge[:-2])[:, None]
    fall = (edge[2:, None] - hertz) / (edge[2:] - edge[1:-1])[:, None]
    return np.asarray(np.maximum(np.minimum(rise, fall), 0.0))
