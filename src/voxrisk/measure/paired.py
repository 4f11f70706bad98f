"""Is one system really better than another? Differences paired by speaker.

Two systems tried on the same people differ less by accident than two groups of people do, so each
speaker is compared with him- or herself. Speakers are what is resampled, never trials.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure.intervals import percentile_interval, student
from voxrisk.measure.resampling import MIN_SPEAKERS, Floats, speaker_weights
from voxrisk.measure.special import normal_cdf
from voxrisk.types import Estimate, InputError, Interval

EXACT_UP_TO = 14  # speakers; 2^14 sign patterns are all tried


@dataclass(frozen=True, slots=True)
class Paired:
    """A difference between two systems on the same speakers.

    Attributes:
        difference: Mean over speakers of first minus second, with its interval; chance is 0.
        p_value: Probability of a difference at least so large if the two systems were alike.
    """

    difference: Estimate
    p_value: float


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Paired:
    """How much two systems differ on the same speakers, and whether that could be an accident.

    The interval draws speakers with replacement; its tails are widened to those of Student's t,
    because the plain percentile interval is too narrow for few speakers (Hesterberg, The American
    Statistician 2015). The p-value flips the sign of each speaker's difference at random (exactly,
    with all patterns, up to 14 speakers): if the systems are alike, either sign is as likely.

    Args:
        first: ``(n,)`` a figure of each speaker under the first system.
        second: ``(n,)`` the same of the same speakers, in the same order, under the second.
        resamples: Draws of the interval and of the test.
        seed: Of both.
        confidence: Coverage of the interval.

    Returns:
        The difference, positive where ``first`` is larger. Equal systems give 0 and p = 1.

    Raises:
        InputError: If the arrays do not match, hold something not finite, or have under 5 speakers.

    >>> result = paired_difference([0.9, 0.8, 0.7, 0.9, 0.8], [0.5, 0.4, 0.3, 0.5, 0.4])
    >>> round(result.difference.value, 9), result.p_value
    (0.4, 0.0625)
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(
            f"the speakers of the two systems do not match: {a.shape} and {b.shape} values"
        )
    for values in (a, b):
        if not np.isfinite(values).all():
            raise InputError(
                f"the value of speaker {int(np.argmin(np.isfinite(values)))} is not finite"
            )
    delta = a - b
    n = delta.size
    if n < MIN_SPEAKERS:
        raise InputError(
            f"a paired comparison needs at least {MIN_SPEAKERS} speakers in common; there are {n}"
        )
    draws = speaker_weights(n, resamples=resamples, seed=seed) @ delta / n
    tail = normal_cdf(-student(n, confidence))
    wide = percentile_interval(draws, confidence=1.0 - 2.0 * tail)
    span = Interval(wide.low, wide.high, confidence, "paired speaker bootstrap, widened percentile")
    estimate = Estimate(
        "paired_difference", float(delta.mean()), 0.0, {"speaker": n},
        "Hesterberg, The American Statistician 2015; sign-flip permutation test", span,
        {"resamples": resamples, "seed": seed},
    )  # fmt: skip
    return Paired(estimate, _sign_flip(delta, resamples, seed))


def _sign_flip(delta: Floats, resamples: int, seed: int) -> float:
    """Two-sided p-value of the mean under random signs."""
    n = delta.size
    signs: NDArray[np.floating]
    if n <= EXACT_UP_TO:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        signs, counted = 1.0 - 2.0 * patterns, 0
    else:
        rng = np.random.default_rng([seed, 0x51])
        signs, counted = 1.0 - 2.0 * rng.integers(0, 2, size=(resamples, n)), 1
    # The pattern in hand is one of all; sums that differ only by rounding are equal.
    hits = np.abs(signs @ delta) >= abs(delta.sum()) * (1.0 - 1e-12) - 1e-15
    return float((hits.sum() + counted) / (len(signs) + counted))


def holm(p_values: ArrayLike) -> Floats:
    """Adjust p-values for having looked at several differences (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted
