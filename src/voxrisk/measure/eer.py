"""Error rates of a speaker verification attack: four published EERs, each under its own name.

The equal error rate is where the attacker's misses and false alarms balance: 0 means that every
speaker is told apart, 0.5 that the attacker might as well toss a coin. On one and the same score
file the definitions below can differ by a percentage point or more, so the name says which one
it is. The default everywhere is the convex hull.
"""

from __future__ import annotations  # help() shows names of types, not a wall of them

from numpy.typing import ArrayLike

from voxrisk.measure import _kernels
from voxrisk.measure.calibration import pav
from voxrisk.measure.curve import Roc, as_roc
from voxrisk.types import InputError


def rocch_eer(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """Share of wrong decisions of the best attacker who errs equally in both directions.

    Where the convex hull of the ROC meets miss = false alarm (Brümmer & de Villiers, BOSARIS 2011).
    Range 0 to 0.5, chance 0.5; constant or reversed scores give 0.5.

    Args:
        target: ``(n_target,)`` scores, or a :class:`Roc`.
        nontarget: ``(n_nontarget,)`` scores.

    >>> rocch_eer([2.0, 3.0], [0.0, 1.0]), rocch_eer([1.0], [1.0, 1.0])
    (0.0, 0.5)
    """
    best = pav(target, nontarget)
    return _kernels.rocch_eer(best.target, best.nontarget)


def interpolated_eer(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """As :func:`rocch_eer`, on the ROC as it is, its vertices joined by straight lines.

    Range 0 to 1 (above 0.5 the scores point the wrong way), chance 0.5.

    >>> interpolated_eer([0.0, 2.0], [1.0, 1.0])
    0.5
    """
    curve = as_roc(target, nontarget)
    return _kernels.interpolated_eer(curve.target, curve.equal, curve.gap)


def kaldi_eer(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """The EER that Kaldi's ``compute-eer`` and so the VoicePrivacy Challenge print.

    Rank of the first target score (from below) that exceeds the nontarget of the same relative rank
    from above. A multiple of 1/n_target; up to one target trial away from the interpolated EER.
    Range 0 to 1, chance 0.5.

    >>> kaldi_eer([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 2.5, 0.1])
    0.25
    """
    curve = as_roc(target, nontarget)
    return _kernels.kaldi_eer(curve.target, curve.equal, curve.gap)


def vertex_eer(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """The EER that SpAnE prints: the false-alarm rate at the nearest corner of the ROC.

    The corner where miss and false alarm differ least; the two may still be far apart when there
    are few targets (1.7 % where the full curve says 2.5 %). Range 0 to 1, chance 0.5.

    >>> vertex_eer([1.0, 2.0], [0.0, 0.5])
    0.0
    """
    curve = as_roc(target, nontarget)
    return _kernels.vertex_eer(curve.target, curve.equal, curve.gap)


def min_dcf(
    target: ArrayLike | Roc,
    nontarget: ArrayLike | None = None,
    *,
    p_target: float = 0.01,
    cost_miss: float = 1.0,
    cost_false_alarm: float = 1.0,
) -> float:
    """Least detection cost over all thresholds, as a share of the best decision without scores.

    min over thresholds of (cost_miss·p·miss + cost_fa·(1-p)·false alarm) divided by
    min(cost_miss·p, cost_fa·(1-p)), as in NIST SRE and Kaldi. Range 0 to 1, chance 1.

    >>> min_dcf([1.0], [0.0]), min_dcf([1.0], [1.0])
    (0.0, 1.0)
    """
    if not 0.0 < p_target < 1.0:
        raise InputError(f"p_target is {p_target}; a prior lies between 0 and 1")
    if min(cost_miss, cost_false_alarm) <= 0.0:
        raise InputError(f"costs must be positive, not {cost_miss} and {cost_false_alarm}")
    best = pav(target, nontarget)
    return _kernels.min_dcf(best.target, best.nontarget, p_target, cost_miss, cost_false_alarm)
