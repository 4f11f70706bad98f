"""From values of utterances to one figure with an interval: a ratio of sums, speakers resampled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure import (
    corrected_interval,
    exact_interval,
    percentile_interval,
    speaker_weights,
)
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.types import Estimate, InputError, Interval


def ratio_estimate(
    name: str,
    numerator: ArrayLike,
    speakers: Sequence[str],
    *,
    denominator: ArrayLike | None = None,
    chance: float,
    source: str,
    n: Mapping[str, int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    rate: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Σ numerator / Σ denominator over utterances; without a denominator, the mean.

    The interval draws speakers with replacement. The draws depend on the seed and on the speakers
    alone, so figures of the same utterances are drawn alike. Fewer than 5 speakers give no
    interval, and ``parameters`` says so.

    Args:
        name: Name of the figure.
        numerator: ``(n,)`` one value for each utterance, e.g. word errors.
        speakers: ``(n,)`` who speaks.
        denominator: ``(n,)`` e.g. words.
        chance: What speech that has lost everything gives.
        source: Where the definition comes from.
        n: Sizes to report beside those of utterances and speakers.
        parameters: What was chosen.
        rate: The figure is a rate of errors: its interval is found on the logarithmic scale, and
            none seen in n speakers gives an exact upper bound.
        resamples: Draws; 0 gives no interval.
        seed: Seed of the draws.
        confidence: Coverage of the interval.

    Raises:
        InputError: If there is nothing to divide by.
    """
    top = np.asarray(numerator, np.float64)
    below = np.ones_like(top) if denominator is None else np.asarray(denominator, np.float64)
    if not below.sum() > 0:
        raise InputError(f"{name}: no utterance to measure it on")
    names, index = np.unique(np.asarray(speakers), return_inverse=True)
    value = float(top.sum() / below.sum())
    notes: dict[str, Any] = dict(parameters or {})
    interval = None
    if resamples and len(names) < MIN_SPEAKERS:
        notes["no_interval"] = f"{len(names)} speakers, an interval needs {MIN_SPEAKERS}"
    elif resamples:
        notes |= {"resamples": resamples, "seed": seed}
        draws = speaker_weights(len(names), resamples=resamples, seed=seed)
        weights = draws.astype(np.float64)
        sums = [np.bincount(index, values, len(names)) for values in (top, below)]
        interval = (
            exact_interval(0, len(names), confidence=confidence)
            if rate and value == 0.0
            else _rate_interval(weights @ sums[0], weights @ sums[1], value, confidence, len(names))
            if rate
            else _interval(weights @ sums[0], weights @ sums[1], confidence)
        )
    sizes = {"utterance": int(top.size), "speaker": len(names), **(n or {})}
    return Estimate(name, value, chance, sizes, source, interval, notes)


def _interval(top: NDArray[np.float64], below: NDArray[np.float64], confidence: float) -> Interval:
    kept = below > 0  # speakers without a word, drawn alone, give no figure
    return percentile_interval(top[kept] / below[kept], confidence=confidence)


def _rate_interval(
    top: NDArray[np.float64],
    below: NDArray[np.float64],
    value: float,
    confidence: float,
    speakers: int,
) -> Interval:
    """A rate of errors spreads in proportion to its size, so take its logarithm.

    Speakers drawn without any error count half of one: a logarithm needs something.
    """
    kept = below > 0
    draws = np.log(np.maximum(top[kept], 0.5) / below[kept])
    span = corrected_interval(draws, float(np.log(value)), speakers=speakers, confidence=confidence)
    low, high = np.exp([span.low, span.high])
    return replace(span, low=min(float(low), value), high=max(float(high), value))
