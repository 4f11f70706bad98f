"""Pitch correlation: does the melody of the speech survive?

ρ^F0 of the VoicePrivacy 2022 Challenge: the Pearson correlation of the pitch of an utterance before
and after anonymization, averaged over utterances.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk import vocoder
from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.journal import hash_of, resumable
from voxrisk.types import InputError
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import Measured, MissingFigureError, Pairs
from voxrisk.vocoder import HIGHEST, LOWEST, pyworld

Floats = NDArray[np.float64]

LARGEST_LAG = 10  # frames
MIN_VOICED = 20  # frames
SOURCE = "VoicePrivacy 2022 evaluation plan, ρ^F0, on frames voiced in both"
COMPAT_SOURCE = "VoicePrivacy 2022, ρ^F0 as its published code computes it (unvoiced frames are 0)"
COMPAT = "voiceprivacy2022"


def track_pitch(samples: NDArray[np.float32]) -> Floats:
    """F0 in hertz at each 10 ms ``(t,)``, see :func:`voxrisk.vocoder.track_pitch`."""
    return vocoder.track_pitch(samples, extra="utility")


def pitch_correlation(original: Floats, anonymized: Floats, *, compat: str | None = None) -> float:
    """How alike two melodies are: 1 the same up to height and range, 0 unrelated.

    Pearson correlation over the frames that are voiced in both. The shorter track is stretched
    linearly to the longer one (a stretched frame is voiced if both its neighbours are). A constant
    delay of up to 100 ms is taken out: the lag at which the tracks multiply to the largest sum,
    which mostly says where voiced speech begins and ends. A melody that the anonymizer made
    exactly flat gives 0.

    ``compat="voiceprivacy2022"`` repeats the challenge's published code instead: unvoiced frames
    count as 0 Hz, so that agreement in voicing alone gives a high figure, and the lag may be
    anything and wraps around.

    Args:
        original: ``(t,)`` hertz, 0 where unvoiced.
        anonymized: ``(u,)`` hertz, 0 where unvoiced.
        compat: None, or ``"voiceprivacy2022"``.

    Raises:
        InputError: If fewer than 20 frames (0.2 s) are voiced in both, or the original is flat.

    >>> melody = 120 + 20 * np.sin(np.arange(100) / 9)
    >>> round(pitch_correlation(melody, 1.5 * melody + 10), 6)
    1.0
    """
    if compat not in (None, COMPAT):
        raise InputError(f"pitch correlation knows compat={COMPAT!r}, not {compat!r}")
    length = max(len(original), len(anonymized))
    if compat:
        return _published(_stretch(original, length), _stretch(anonymized, length))
    a, b = _stretch_voiced(original, length), _stretch_voiced(anonymized, length)
    a, b = _shifted(a, b, _lag(a, b))
    both = (a > 0) & (b > 0)
    if both.sum() < MIN_VOICED:
        raise InputError(f"{both.sum()} frames are voiced in both, {MIN_VOICED} are needed")
    if np.ptp(a[both]) == 0:
        raise InputError("the pitch of the original does not move")
    return 0.0 if np.ptp(b[both]) == 0 else float(np.corrcoef(a[both], b[both])[0, 1])


def pitch_correlations(
    original: Sequence[Utterance],
    anonymized: Sequence[Utterance],
    *,
    compat: str | None = None,
    journal: Path | str | None = None,
    workers: int | None = None,
) -> list[float | str]:
    """The correlation of each pair of utterances, or the reason why it has none."""
    _world()
    settings = {"what": "pitch correlation 1", "compat": compat}
    return resumable(
        functools.partial(_correlate, compat),
        list(zip(original, anonymized, strict=True)),
        key=functools.partial(hash_of, settings),
        journal=journal,
        workers=workers,
        label="correlating pitch",
    )


def measure_pitch(pairs: Pairs) -> Measured:
    """The mean correlation of the melody before and after."""
    compat = pairs.compat if pairs.compat == COMPAT else None
    found = pitch_correlations(pairs.original, pairs.anonymized, compat=compat, **pairs.work)
    kept = [i for i, value in enumerate(found) if not isinstance(value, str)]
    if not kept:
        raise MissingFigureError(f"no utterance has a pitch to compare ({found[0]})")
    estimate = ratio_estimate(
        "pitch_correlation",
        [found[i] for i in kept],
        [pairs.speakers[i] for i in kept],
        chance=0.0,
        source=COMPAT_SOURCE if compat else SOURCE,
        n={"left_out": len(found) - len(kept)},
        parameters={"compat": compat},
        **pairs.draw,
    )
    numbers = [None if isinstance(value, str) else value for value in found]
    return {"pitch_correlation": {"anonymized": estimate}}, {"pitch_correlation": numbers}


def _world() -> Any:
    return pyworld("utility")


def _correlate(compat: str | None, pair: tuple[Utterance, Utterance]) -> float | str:
    tracks = [track_pitch(read_audio(row, rate=RATE)) for row in pair]
    try:
        return pitch_correlation(*tracks, compat=compat)
    except InputError as error:
        return str(error)


def _stretch(track: Floats, length: int) -> Floats:
    if len(track) == length:
        return track
    return np.interp(np.linspace(0, len(track) - 1, length), np.arange(len(track)), track)


def _stretch_voiced(track: Floats, length: int) -> Floats:
    return np.where(
        _stretch((track > 0).astype(np.float64), length) == 1, _stretch(track, length), 0
    )


def _lag(a: Floats, b: Floats) -> int:
    """By how many frames ``b`` comes after ``a``; of equally good lags the smallest."""
    lags = sorted(range(-LARGEST_LAG, LARGEST_LAG + 1), key=abs)
    return max(lags, key=lambda lag: float(np.dot(*_shifted(a, b, lag))))


def _shifted(a: Floats, b: Floats, lag: int) -> tuple[Floats, Floats]:
    size = len(a) - abs(lag)
    if size <= 0:
        return a[:0], b[:0]
    return (a[:size], b[lag:]) if lag >= 0 else (a[-lag:], b[:size])


def _published(a: Floats, b: Floats) -> float:
    a, b = (np.where((f >= LOWEST) & (f <= HIGHEST), f, 0.0) for f in (a, b))
    lag = int(np.argmax(np.correlate(a, b, "full"))) - (len(a) - 1)
    b = np.roll(b, lag)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
