"""Oracle calibration by PAV, log-likelihood ratios, cross-entropy and the cost of scores as LLRs.

Calibration asks what a score is worth as evidence: how much more often same-speaker trials get it
than different-speaker trials. Pool-adjacent-violators (PAV) gives the best monotone answer the data
allow; tied scores are always one group.

References: Brümmer & du Preez, "The PAV algorithm optimizes binary proper scoring rules" (2013);
Brümmer & du Preez, "Application-independent evaluation of speaker detection" (2006).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from voxrisk.measure import _kernels
from voxrisk.measure.curve import Floats, Roc, as_roc, check_scores

LN2 = float(np.log(2.0))


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Scores turned to evidence: a rising step function from score to log-likelihood ratio.

    Attributes:
        start: ``(b,)`` lowest score of each block; the first block reaches down to -inf.
        target: ``(b,)`` target trials in the block.
        nontarget: ``(b,)`` nontarget trials in the block.
        llr: ``(b,)`` natural log-likelihood ratio of the block.
    """

    start: Floats
    target: Floats
    nontarget: Floats
    llr: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        """Log-likelihood ratios of any scores, in the shape they come."""
        block = np.searchsorted(self.start, np.asarray(scores, np.float64), side="right") - 1
        return self.llr[block]


def pav(
    target: ArrayLike | Roc, nontarget: ArrayLike | None = None, *, laplace: bool = False
) -> Calibration:
    """How much evidence each score carries, at best.

    LLR = log(posterior odds) - log(N_target / N_nontarget), posteriors by pool-adjacent-violators.
    Without Laplace's rule pure blocks at the ends get ±inf. With it a dummy target and a dummy
    nontarget stand at either end, and a pure top block of k targets gets
    exp(LLR) = (k + 1)·N_nontarget/N_target. Constant scores carry no evidence: LLR 0 either way.

    Args:
        target: ``(n_target,)`` scores, or a :class:`Roc`.
        nontarget: ``(n_nontarget,)`` scores.
        laplace: Apply Laplace's rule of succession.

    >>> pav([1.0, 2.0], [0.0, 1.0])([0.0, 1.0, 2.0])
    array([-inf,   0.,  inf])
    """
    curve = as_roc(target, nontarget)
    bt, bn, first = _kernels.pav(curve.target, curve.equal, curve.gap)
    llr = _kernels.laplace_llr(bt, bn) if laplace else _kernels.block_llr(bt, bn)
    start = np.where(first < 0, -np.inf, curve.score[np.maximum(first, 0)])
    start[0] = -np.inf
    return Calibration(start, bt, bn, llr)


def cllr(target: ArrayLike, nontarget: ArrayLike) -> float:
    """What it costs, in bits, to take the scores at their word as natural log-likelihood ratios.

    ½·mean log2(1 + e^-s) over targets + ½·mean log2(1 + e^s) over nontargets (Brümmer & du Preez
    2006). 0 is perfect, 1 is what LLR 0 throughout costs, badly calibrated scores have no limit.

    >>> cllr([0.0], [0.0])
    1.0
    """
    parts = check_scores("target", target), check_scores("nontarget", nontarget)
    with ThreadPoolExecutor(2) as pool:
        costs = list(pool.map(_kernels.log_cost, parts, (-1.0, 1.0)))
    return sum(c / p.size for c, p in zip(costs, parts, strict=True)) / (2.0 * LN2)


def min_cllr(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """The cost in bits that is left when the scores are calibrated as well as the data allow.

    Cllr after PAV. Range 0 (separated) to 1 (no information, the chance level).

    >>> min_cllr([1.0, 2.0], [0.0, 0.5]), min_cllr([1.0], [1.0])
    (0.0, 1.0)
    """
    best = pav(target, nontarget)
    return _kernels.block_ece(best.target, best.nontarget, best.llr, 0.0)


def ece_profile(
    target: ArrayLike | Roc, nontarget: ArrayLike | None = None, *, log_odds: ArrayLike
) -> Floats:
    """What the attacker still does not know, in bits, for each belief held beforehand.

    Empirical cross-entropy (Eq. 4 of Nautsch et al. 2020) after PAV, at every prior log-odds
    (natural logarithm). Compare with :func:`zero_evidence`: the gap is what was disclosed.

    >>> float(ece_profile([0.0], [0.0], log_odds=[0.0])[0])
    1.0
    """
    best = pav(target, nontarget)
    odds = np.atleast_1d(np.asarray(log_odds, np.float64))
    profile = [_kernels.block_ece(best.target, best.nontarget, best.llr, x) for x in odds]
    return np.array(profile)


def zero_evidence(log_odds: ArrayLike) -> Floats:
    """The profile of an attacker who learns nothing: the entropy of the prior, in bits.

    >>> float(zero_evidence(0.0)[0])
    1.0
    """
    odds = np.atleast_1d(np.asarray(log_odds, np.float64))
    one = np.ones(1)
    return np.array([_kernels.block_ece(one, one, np.zeros(1), x) for x in odds])
