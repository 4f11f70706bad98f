"""Singling Out: can an attacker point at exactly one person in a crowd?

The attacker knows one voice (the predicate) and a threshold. Whoever scores above it in a set of N
people is pointed at; if that is exactly one person, whoever it is, that person is isolated.

Reference: Vauquier et al., "Legally validated evaluation framework for voice anonymization",
Interspeech 2025, Eqs 1 and 2 and Section 3.4; after Cohen & Nissim, "Towards formalizing the GDPR's
notion of singling out", PNAS 2020.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _isolation
from voxrisk.measure._streams import numbered_streams
from voxrisk.measure.conversations import Conversations, Floats, Ints
from voxrisk.measure.scorers import (
    Pairs,
    Scorer,
    Scores,
    Spread,
    cosine,
    here,
    n_threads,
    pairs,
    run,
    sealed,
)
from voxrisk.types import InputError

PAPER_CHANCE = math.exp(-1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Isolation:
    """Who was isolated, in every draw, fold and population size.

    Attributes:
        sizes: ``(s,)`` population sizes N.
        who: ``(predicates, draws, folds, s)`` index of the isolated speaker, -1 where it is nobody.
        own: ``(predicates,)`` index of the speaker whose voice the predicate is.
        chance: ``(s,)`` what an attacker who learns nothing gets.
    """

    sizes: Ints
    who: NDArray[np.int32]
    own: Ints
    chance: Floats

    @property
    def rate(self) -> Floats:
        """``(predicates, s)`` how often each predicate isolates somebody."""
        return np.asarray((self.who >= 0).mean(axis=(1, 2)))

    @property
    def own_rate(self) -> Floats:
        """``(predicates, s)`` how often the isolated person is the one whose voice was known."""
        return np.asarray((self.who == self.own[:, None, None, None]).mean(axis=(1, 2)))

    def times_isolated(self, n_speakers: int) -> Ints:
        """``(s, n_speakers)`` how often each test speaker was the one isolated."""
        out = np.zeros((self.sizes.size, n_speakers), dtype=np.int64)
        for s in range(self.sizes.size):
            who = self.who[..., s]
            out[s] = np.bincount(who[who >= 0], minlength=n_speakers)
        return out


def isolation_chance(rank: int, n_calibration: int, n: int) -> float:
    """How often scores without any information isolate somebody: the figure to compare with.

    Of N test scores and ``n_calibration`` calibration scores in random order, exactly one test
    score lies above the point halfway between calibration scores number ``rank`` and ``rank + 1``,
    a score between the two being above with probability one half. For N speakers with M = ``rank``
    calibration conversations each this tends to about (M / (M + 1))^(M + 1), 0.35 for M = 9; the
    paper's figure, exp(-1) = 0.368, belongs to a threshold that is known exactly.

    >>> round(isolation_chance(9, 9 * 22024, 22024), 4), round(isolation_chance(1, 20, 20), 4)
    (0.3497, 0.2869)
    """

    def ways(a: int, b: int) -> float:
        return math.lgamma(a + 1) - math.lgamma(b + 1) - math.lgamma(a - b + 1)

    def probability(above: int, between: int) -> float:
        """So many tests above calibration score ``rank`` and between it and the next."""
        rest = n_calibration + n - above - between - rank - 1
        orders = ways(above + rank - 1, above) + ways(rest, n - above - between)
        return math.exp(orders - ways(n_calibration + n, n))

    # Beyond 60 tests in one gap nothing is left to add.
    return sum(
        0.5**g * (probability(1, g) + g * probability(0, g)) for g in range(min(n - 1, 60) + 1)
    )


def singling_out(
    predicates: Floats,
    own: Ints,
    tested: Conversations,
    sizes: Sequence[int],
    *,
    folds: int = 10,
    draws: int = 5,
    seed: int = 0,
    scorer: Scorer = cosine,
    threads: int | None = None,
    spread: Spread = here,
) -> Isolation:
    """Try to isolate somebody with each predicate, for every population size at once.

    Fold k tests conversation k of each speaker (modulo their number K) and calibrates on the other
    K - 1. The threshold is halfway between the M-th and (M + 1)-th highest calibration score, where
    M = K - 1 of the predicate's own speaker. Somebody is isolated if exactly one of the N test
    scores is above it (Eqs 1 and 2). Range 0 to 1, higher is riskier; chance by
    :func:`isolation_chance`. Equal scores throughout isolate nobody.

    The N speakers of a draw are the predicate's own and random others; a smaller population is a
    part of the larger one, so curves over N are smooth. Exact for the draws made; the same seed
    gives the same result for any number of threads.

    Args:
        predicates: ``(p, d)`` enrolment vectors of length one.
        own: ``(p,)`` the speaker of each, as an index into ``tested.speaker``.
        tested: At least two conversations for each speaker.
        sizes: Population sizes N, each at least 2.
        folds: How often the conversations change roles.
        draws: Random populations for each predicate.
        seed: Of the draws.
        scorer: How two voices are compared, see :mod:`voxrisk.measure.scorers`.
        threads: Default: all processors.
        spread: Who does the predicates, e.g. the workers of a cluster.
    """
    wanted = np.unique(np.asarray(sizes, dtype=np.int64))
    count = tested.count
    if wanted[0] < 2 or wanted[-1] > count.size:
        raise InputError(
            f"Singling Out for N = {wanted[0] if wanted[0] < 2 else wanted[-1]}: N goes from 2 to "
            f"the {count.size} speakers that have enough utterances"
        )
    if count.min() < 2:
        raise InputError(
            f"speaker {tested.speaker[count.argmin()]} has one conversation; one to calibrate and "
            "one to test are needed"
        )
    rank = count[own] - 1
    streams = numbered_streams(seed, 0x51, len(predicates) * draws).reshape(-1, draws)
    everyone = pairs(predicates, tested.vectors, enroll_rows=True, scorer=scorer)
    search = _Search(everyone, tested.first, own, wanted, rank, streams, folds, threads)
    who = np.concatenate(spread(search, len(predicates), label="single out"))
    return Isolation(wanted, who, own, _chance(wanted, rank, float((count - 1).mean())))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """All that is needed to look for somebody with some of the predicates."""

    pairs: Pairs
    first: Ints
    own: Ints
    sizes: Ints
    rank: Ints
    streams: NDArray[np.uint64]
    folds: int
    threads: int | None

    def __call__(self, rows: slice, threads: int | None) -> NDArray[np.int32]:
        """Who is isolated, ``(part, draws, folds, s)``."""
        everyone, first, sizes = self.pairs.sealed(), sealed(self.first), sealed(self.sizes)
        own, streams, shape = (
            self.own,
            sealed(self.streams),
            (self.streams.shape[1], self.folds, self.sizes.size),
        )
        who = np.empty((rows.stop - rows.start, *shape), dtype=np.int32)

        def work(scores: Scores, start: int, part: slice) -> None:
            vectors = everyone.rows(slice(start, None))
            for i in range(part.start, part.stop):
                p = start + i
                _isolation.isolate(
                    scores[i], everyone.slack, vectors[i % len(vectors)], everyone.right,
                    first, own[p], sizes, streams[p], self.folds,
                    2 * int(self.rank[p]) + 6, who[p - rows.start],
                )  # fmt: skip

        workers = n_threads(threads or self.threads)
        with ThreadPoolExecutor(workers) as pool:
            for block, scores in everyone.blocks(megabytes=64, within=rows):
                run(pool, partial(work, scores, block.start), len(scores), 4 * workers)
        return who


def _chance(sizes: Ints, rank: Ints, calibration: float) -> Floats:
    """Mean chance level of the predicates; speakers calibrate so many times on average."""
    ranks, times = np.unique(rank, return_counts=True)
    table = [
        [isolation_chance(int(r), max(round(calibration * n), int(r) + 1), int(n)) for r in ranks]
        for n in sizes
    ]
    return np.asarray(np.asarray(table) @ times / times.sum())
