"""How far the truth may lie from a figure: confidence intervals for a sample of speakers.

Every interval contains its figure, and is wider than its draws alone would make it where speakers
are few (Student's t). How often each one covers the truth is counted by
``experiments/coverage.py``; decision 2 of the documentation has the table.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure.special import (
    beta_quantile,
    normal_cdf,
    normal_quantile,
    student_quantile,
)
from voxrisk.types import InputError, Interval

Floats = NDArray[np.float64]


def percentile_interval(draws: Floats, *, confidence: float = 0.95) -> Interval:
    """The middle ``confidence`` of the resampled figures ``(resamples,)``."""
    _some(draws)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return Interval(float(low), float(high), confidence, "speaker bootstrap, percentile")


def corrected_interval(
    draws: Floats,
    value: float,
    *,
    speakers: int,
    confidence: float = 0.95,
    scale: tuple[float, float] | None = None,
    bias: float = 1.0,
) -> Interval:
    """The value less its bias, give or take Student's t times the spread of the draws.

    Figures that are optimised on the data (PAV, a best threshold) look too good on a sample, and on
    a resample of it once more: the second step tells the size of the first. A figure with a range
    is put on the arcsine scale of it, where the spread hardly depends on the value. The bias is
    that of the median, so that one odd speaker, in some resamples and not in others, moves nothing.

    Args:
        draws: ``(resamples,)`` resampled figures, not all of them the same.
        value: The figure; the interval is stretched to contain it.
        speakers: How many were resampled.
        confidence: Coverage.
        scale: Lowest and highest possible value.
        bias: How many times the bias of the resamples is taken off the value.
    """
    _some(draws)
    low, high = scale or (0.0, 1.0)

    def there(x: ArrayLike) -> Floats:
        share = (np.asarray(x, np.float64) - low) / (high - low)
        return share if scale is None else np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0)))

    def back(y: float) -> float:
        share = y if scale is None else np.sin(np.clip(y, 0.0, np.pi / 2.0)) ** 2
        return float(low + (high - low) * share)

    drawn, centre = there(draws), float(there(value))
    centre -= bias * (float(np.median(drawn)) - centre)
    reach = student(speakers, confidence) * float(drawn.std(ddof=1))
    ends = back(centre - reach), back(centre + reach)
    method = "speaker bootstrap, bias-corrected, Student's t"
    return Interval(min(ends[0], value), max(ends[1], value), confidence, method)


def maximum_interval(
    draws: Floats, value: float, *, speakers: int, ceiling: float, confidence: float = 0.95
) -> Interval:
    """Where a maximum would lie on other sets of as many speakers and trials.

    A maximum grows with the number of trials, so there is no truth behind it that a larger set
    would approach. The percentile interval, and the same moved to the value: resamples repeat
    speakers, which shifts a maximum. Never above the ``ceiling`` that so many trials can show.
    """
    _some(draws)
    tail = normal_cdf(-student(speakers, confidence))
    low, middle, high = np.quantile(draws, [tail, 0.5, 1.0 - tail])
    low, high = min(low, value + low - middle), max(high, value + high - middle)
    return Interval(
        float(min(max(low, 0.0), value)),
        float(max(min(high, ceiling), value)),
        confidence,
        "speaker bootstrap, maximum of as many trials",
    )


def exact_interval(events: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's interval of a rate; for no event, its exact upper bound.

    A rate of 0 among n speakers does not mean that it is 0: the bound is 1 - (α/2)^(1/n).

    >>> exact_interval(0, 29)  # doctest: +ELLIPSIS
    Interval(low=0.0, high=0.119..., confidence=0.95, method='exact, 0 of 29 speakers')
    """
    if not 0 <= events <= n or n < 1:
        raise InputError(f"{events} events among {n} speakers; give 0 to n events of n >= 1")
    low, high = _beta_ends(float(events), float(n), confidence)
    return Interval(low, high, confidence, f"exact, {events} of {n} speakers")


def rate_interval(
    events: ArrayLike,
    trials: ArrayLike,
    *,
    most: float | None = None,
    confidence: float = 0.95,
) -> Interval:
    """The interval of Σ events / Σ trials over speakers, for anything between 0 and 1.

    Korn and Graubard's (1998): Clopper and Pearson's interval for as many independent trials as
    would give the spread that is seen between speakers, no more than there are, lowered by
    Student's t. Where no spread is seen because the rate is 0 or 1, every speaker is one trial.

    Args:
        events: ``(speakers,)`` events, or the sum of shares between 0 and 1.
        trials: ``(speakers,)`` trials of each, or 1 where each speaker is to count the same.
        most: How many trials there are, if it is not the sum of ``trials``.
        confidence: Coverage.

    >>> span = rate_interval([1, 0, 2, 1, 1, 0], [4] * 6)
    >>> round(span.low, 2), round(span.high, 2)
    (0.04, 0.5)
    """
    hits, of = np.asarray(events, np.float64), np.asarray(trials, np.float64)
    n = hits.size
    if n < 2 or not (of > 0.0).all():
        raise InputError(f"a rate over {n} speakers; at least two with a trial each are needed")
    total = float(of.sum())
    rate = float(hits.sum()) / total
    if rate <= 0.0 or rate >= 1.0:
        return exact_interval(round(rate) * n, n, confidence=confidence)
    variance = float(np.square(hits - rate * of).sum()) * n / (n - 1.0) / total**2
    limit = total if most is None else most
    effective = rate * (1.0 - rate) / variance if variance > 0.0 else total
    effective = min(effective, limit)
    quantile = normal_quantile((1.0 + confidence) / 2.0)
    effective *= (quantile / (student(n, confidence) * np.sqrt((n - 1.0) / n))) ** 2
    low, high = _beta_ends(rate * effective, effective, confidence)
    method = f"exact, {effective:.0f} effective trials of {n} speakers"
    return Interval(min(low, rate), max(high, rate), confidence, method)


def toward_chance(
    interval: Interval, value: float, limit: float, *, privacy: str, decided: bool
) -> Interval:
    """Let an interval say the same about chance as that of the EER.

    EER ½, D_ECE 0 and min Cllr 1 are one and the same statement about the scores. Where the EER has
    ``decided`` (its interval ends below ½, with a spread of its own), the private end lies at the
    limit or beyond; otherwise it lies at the limit.

    Args:
        interval: Of the figure, by itself.
        value: The figure.
        limit: What it is when the EER is at the upper end of its interval, at the least disclosure:
            the chance level where that end is ½.
        privacy: ``"higher"`` or ``"lower"``: which end is the private one.
        decided: See above.
    """
    low, high = interval.low, interval.high
    if privacy == "lower":
        low = min(max(low, limit) if decided else limit, value)
    else:
        high = max(min(high, limit) if decided else limit, value)
    return replace(interval, low=low, high=high)


def student(speakers: int, confidence: float) -> float:
    """How many bootstrap standard deviations to go: Student's t, for the bootstrap's divisor n."""
    n = float(speakers)
    return math.sqrt(n / (n - 1.0)) * student_quantile(n - 1.0, (1.0 + confidence) / 2.0)


def _beta_ends(events: float, n: float, confidence: float) -> tuple[float, float]:
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if events <= 0.0 else beta_quantile(events, n - events + 1.0, tail)
    high = 1.0 if events >= n else beta_quantile(events + 1.0, n - events, 1.0 - tail)
    return low, high


def _some(draws: Floats) -> None:
    if draws.size < 2 or not np.isfinite(draws).all():
        raise InputError(
            f"an interval needs at least two finite resamples and got {draws.size}; resample more, "
            "or add speakers that have trials of both kinds"
        )
