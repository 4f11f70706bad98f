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

from voxrisk.measure.special import digamma, log_beta, log_gamma, trigamma

Floats: TypeAlias = NDArray[np.float64]
# Logarithms of a and b: a ≤ 1 ≤ b, and no shape so extreme that nothing can be computed.
BOUNDS = ((-7.0, 0.0), (0.0, 7.0))
FLAT = 1e-9  # of the slope for each query: the top is found
MOST = 100  # steps to the top; five are common


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
    choose = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
    return np.asarray(choose + log_beta(k + a, n - k + b) - log_beta(a, b))


def fit_rank_law(rank: Floats, candidates: NDArray[np.int64]) -> RankLaw:
    """The law of ranks ``(q,)``, from 1, among so many ``candidates (q,)``.

    A half rank, where candidates tie, counts for both its neighbours.
    """
    k = np.stack([np.floor(rank), np.ceil(rank)]) - 1.0
    n = candidates.astype(np.float64) - 1.0
    low, high = np.array(BOUNDS).T

    def height(shapes: Floats) -> float:
        return float(_log_law(k, n, shapes).mean(axis=0).sum())

    found = np.array([-0.1, 0.1])
    reached = height(found)
    for _ in range(MOST):
        slope, bend = _slopes(k, n, found)
        pull = slope.sum(axis=0)
        # A shape at its bound stays there if it is pushed over it.
        free = ((found > low) | (pull > 0)) & ((found < high) | (pull < 0))
        if not free.any() or np.abs(pull[free]).max() <= FLAT * len(slope):
            break
        # Newton's step, uphill even where the likelihood is not concave.
        values, axes = np.linalg.eigh(bend[np.ix_(free, free)])
        step = np.zeros(2)
        step[free] = axes @ (axes.T @ pull[free] / np.maximum(np.abs(values), 1e-12))
        while (risen := height(np.clip(found + step, low, high))) <= reached:
            step /= 2.0
            if np.abs(step).max() < 1e-12:
                break
        if risen <= reached:
            break
        found, reached = np.clip(found + step, low, high), risen
    slope, bend = _slopes(k, n, found)
    inside = (found > low) & (found < high)
    inverse = np.zeros((2, 2))
    if inside.any():
        inverse[np.ix_(inside, inside)] = np.linalg.pinv(-bend[np.ix_(inside, inside)])
    return RankLaw(found, slope @ inverse)


def _slopes(k: Floats, n: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """First derivatives ``(q, 2)`` of each query by the log-shapes, second ``(2, 2)`` of all."""
    a, b = np.exp(shapes)
    both = digamma(a + b) - digamma(n + a + b)
    by_a = digamma(k + a).mean(axis=0) - digamma(a) + both
    by_b = digamma(n - k + b).mean(axis=0) - digamma(b) + both
    mixed = float((trigamma(a + b) - trigamma(n + a + b)).sum())
    a_a = float((trigamma(k + a).mean(axis=0) - trigamma(a)).sum()) + mixed
    b_b = float((trigamma(n - k + b).mean(axis=0) - trigamma(b)).sum()) + mixed
    bend = np.array(
        [
            [a * float(by_a.sum()) + a * a * a_a, a * b * mixed],
            [a * b * mixed, b * float(by_b.sum()) + b * b * b_b],
        ]
    )
    return np.stack([a * by_a, b * by_b], axis=1), bend


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
