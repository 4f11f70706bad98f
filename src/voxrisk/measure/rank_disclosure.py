"""Similarity rank disclosure: how many bits the rank of the right speaker gives away.

Reference: Bäckström et al., arXiv 2508.05250; on systems of VoicePrivacy 2024: arXiv 2605.07291.

An attacker sorts N candidates by score; k is the rank of the right one. Without information each
rank is as likely as any other. With p(k) the probability of rank k, a rank discloses
``log2(N · p(k))`` bits; on average ``log2 N − H(p)``, in the worst case the largest of them.

With few queries a histogram of ranks discloses bits that are not there, so p is a beta-binomial
distribution, fitted by maximum likelihood to all queries, whatever their number of candidates. Only
shapes that say "the right one stands ahead" are allowed (a ≤ 1 ≤ b): an attacker who is worse than
chance discloses nothing. Bits of independent sources (voice, melody, words) add up.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

Floats: TypeAlias = NDArray[np.float64]
# Logarithms of a and b: a ≤ 1 ≤ b, and no shape so extreme that nothing can be computed.
BOUNDS = ((-7.0, 0.0), (0.0, 7.0))
STEP = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class RankLaw:
    """The law of ranks of some queries.

    Attributes:
        shapes: ``(2,)`` logarithms of a and b; (0, 0) says nothing.
        influence: ``(q, 2)`` how much each query moves the shapes if it counts once more.
    """

    shapes: Floats
    influence: Floats


def rank_probabilities(candidates: int, shapes: Floats) -> Floats:
    """Probability ``(…, N)`` of each rank of N, for log-shapes ``(…, 2)``.

    >>> rank_probabilities(4, np.zeros(2))
    array([0.25, 0.25, 0.25, 0.25])
    """
    k = np.arange(candidates, dtype=np.float64)
    return np.asarray(np.exp(_log_law(k, candidates - 1.0, shapes[..., None, :])))


def _log_law(k: Floats, n: Floats | float, shapes: Floats) -> Floats:
    a, b = np.exp(shapes[..., 0]), np.exp(shapes[..., 1])
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(choose + betaln(k + a, n - k + b) - betaln(a, b))


def fit_rank_law(rank: Floats, candidates: NDArray[np.int64]) -> RankLaw:
    """The law of ranks ``(q,)``, from 1, among so many ``candidates (q,)``.

    A half rank, where candidates tie, counts for both its neighbours.
    """
    k = np.stack([np.floor(rank), np.ceil(rank)]) - 1.0
    n = candidates.astype(np.float64) - 1.0

    def likelihood(shapes: Floats) -> Floats:
        return np.asarray(_log_law(k, n, shapes).mean(axis=0))

    found = minimize(
        lambda shapes: -float(likelihood(shapes).sum()),
        np.array([-0.1, 0.1]),
        bounds=BOUNDS,
        method="L-BFGS-B",
    ).x
    steps = STEP * np.eye(2)
    slope = np.stack([likelihood(found + s) - likelihood(found - s) for s in steps], 1) / (2 * STEP)
    bend = np.array(
        [
            [
                sum(
                    sign * float(likelihood(found + u + sign * v).sum())
                    - sign * float(likelihood(found - u + sign * v).sum())
                    for sign in (1, -1)
                )
                for v in steps
            ]
            for u in steps
        ]
    ) / (4 * STEP**2)
    # A shape at its bound stays there: what would push it over tells nothing.
    free = np.array([low < x < high for x, (low, high) in zip(found, BOUNDS, strict=True)])
    inverse = np.zeros((2, 2))
    if free.any():
        inverse[np.ix_(free, free)] = np.linalg.pinv(-bend[np.ix_(free, free)])
    return RankLaw(found, slope @ inverse)


def disclosed_bits(shapes: Floats, candidates: NDArray[np.int64]) -> Floats:
    """Bits on average and in the worst case ``(…, 2)``, over queries with ``candidates (q,)``.

    Range 0 to log2 N; chance 0 for both.

    >>> disclosed_bits(np.zeros(2), np.array([8, 16]))
    array([0., 0.])
    """
    sizes, count = np.unique(candidates, return_counts=True)
    mean, worst = [], []
    for size in sizes.tolist():
        p = rank_probabilities(size, shapes)
        bits = np.log2(np.maximum(size * p, 1e-300))
        mean.append((p * bits).sum(axis=-1))
        worst.append(bits.max(axis=-1))
    average = np.tensordot(count / count.sum(), np.array(mean), axes=1)
    found = np.stack([average, np.max(worst, axis=0)], axis=-1)
    return np.asarray(np.where(found < 1e-9, 0.0, found))
