"""The curve under every score metric: how target and nontarget scores interleave.

Nearly every figure of this field depends on the order of the scores alone: on how many nontargets
lie between neighbouring target scores, and how many equal one. :class:`Roc` holds these counts.
It is made once; each metric takes it, or the two arrays of scores it was made from.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure import _kernels
from voxrisk.types import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Order of a set of scores. Counts are float64: whole numbers, or weights.

    Attributes:
        score: ``(k,)`` lowest score of each run of targets, ascending. A run is one distinct target
            score, or several with no nontarget among them: no metric can tell the difference.
        target: ``(k,)`` target trials in the run.
        equal: ``(k,)`` nontarget trials at exactly that score (then the run is that one score).
        gap: ``(k + 1,)`` nontarget trials strictly between neighbouring runs; the first lie below
            every target, the last above.
    """

    score: Floats
    target: Floats
    equal: Floats
    gap: Floats

    @property
    def n_target(self) -> int:
        """Number of target trials."""
        return round(float(self.target.sum()))

    @property
    def n_nontarget(self) -> int:
        """Number of nontarget trials."""
        return round(float(self.equal.sum() + self.gap.sum()))

    @property
    def miss(self) -> Floats:
        """``(2k + 2,)`` miss rate at each vertex of the staircase, accept-all to reject-all."""
        up = np.zeros(2 * self.target.size + 1)
        up[1::2] = self.target
        return _cumulated(up)

    @property
    def false_alarm(self) -> Floats:
        """``(2k + 2,)`` false-alarm rate at each vertex, beside :attr:`miss`."""
        down = np.empty(2 * self.target.size + 1)
        down[0::2] = self.gap
        down[1::2] = self.equal
        return 1.0 - _cumulated(down)


def _cumulated(steps: Floats) -> Floats:
    total: Floats = np.concatenate(([0.0], np.cumsum(steps)))
    share: Floats = total / total[-1]
    return share


def roc(target: ArrayLike, nontarget: ArrayLike) -> Roc:
    """Sort the scores and count how they interleave; everything else follows from the counts.

    Args:
        target: ``(n_target,)`` scores of same-speaker trials.
        nontarget: ``(n_nontarget,)`` scores of different-speaker trials.

    Raises:
        InputError: If a class is empty or a score is NaN or infinite.

    >>> curve = roc([1.0, 3.0, 3.0], [0.0, 2.0, 3.0, 9.0])
    >>> curve.score, curve.target, curve.equal, curve.gap
    (array([1., 3.]), array([1., 2.]), array([0., 1.]), array([1., 1., 1.]))
    """
    with ThreadPoolExecutor(2) as pool:
        ordered = pool.map(_ordered, ("target", "nontarget"), (target, nontarget))
        return Roc(*_kernels.interleave(*ordered))


def _ordered(name: str, scores: ArrayLike) -> Floats:
    """Sorted copy of one class; NaN and infinity sort to the ends, so checking them is free."""
    values = _numbers(name, scores)
    check_shape(name, values)
    values = np.sort(values)
    if not (np.isfinite(values[0]) and np.isfinite(values[-1])):
        raise _not_finite(name, np.asarray(scores))
    return values


def _numbers(name: str, scores: ArrayLike) -> Floats:
    try:
        return np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} scores must be numbers ({error})") from error


def check_shape(name: str, scores: NDArray[Any]) -> None:
    """Refuse an empty class or an array that is not flat."""
    if scores.ndim != 1:
        raise InputError(f"{name} scores must be a flat array, not of shape {scores.shape}")
    if not scores.size:
        raise InputError(
            f"there are no {name} trials; every metric needs same-speaker and different-speaker "
            "trials, so check the labels of the trial list"
        )


def check_scores(name: str, scores: ArrayLike) -> Floats:
    """One class as float64, in its own order; refuse what no metric can be computed from."""
    values = _numbers(name, scores)
    check_shape(name, values)
    if not np.isfinite(values).all():
        raise _not_finite(name, values)
    return values


def _not_finite(name: str, scores: NDArray[Any]) -> InputError:
    bad = np.flatnonzero(~np.isfinite(scores))
    return InputError(
        f"{bad.size} of {scores.size} {name} scores are not finite, the first at index {bad[0]} "
        f"({scores[bad[0]]}); a failed comparison is not privacy: score these trials again"
    )


def as_roc(target: ArrayLike | Roc, nontarget: ArrayLike | None) -> Roc:
    """Let every metric take either the two score arrays or the curve made from them."""
    if isinstance(target, Roc):
        if nontarget is not None:
            raise TypeError("give either a Roc or the two arrays of scores, not both")
        return target
    if nontarget is None:
        raise TypeError("give the target and the nontarget scores, or a Roc made from them")
    return roc(target, nontarget)
