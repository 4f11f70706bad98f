"""Linkability in a population: is a voice most like its own speaker's, among N enrolled people?

One pass over all pairs of voices counts everything: how many others are at least as similar as the
right speaker (Linkability), and how the scores of different speakers lie between those of the same
speaker (the ROC, and with it EER, D_ECE and log10 l). Not to be confused with D_sys, which is in
:mod:`voxrisk.measure.d_sys`.

Reference: Vauquier et al., "Legally validated evaluation framework for voice anonymization",
Interspeech 2025, Eqs 3 and 4.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _pairs
from voxrisk.measure._streams import draw_again, numbered_streams
from voxrisk.measure.conversations import Floats, Ints
from voxrisk.measure.curve import Roc
from voxrisk.measure.one_core import one_blas_thread
from voxrisk.measure.scorers import (
    ROWS,
    Pairs,
    Products,
    Spread,
    here,
    n_threads,
    run,
    sealed,
    share,
)
from voxrisk.types import InputError

# Nontargets that the bootstrap weighs again and again. The target trials are hundreds of times
# fewer, so the noise of this sample is far below the width of any interval.
_RESAMPLED = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """How trials compare with everybody enrolled.

    Attributes:
        n_enrolled: Number of enrolled speakers, n.
        own: ``(trials,)`` index of the right speaker of each trial.
        score: ``(trials,)`` score against the right speaker.
        higher: ``(trials,)`` number of others that score at least as high.
        roc: How all trials interleave.
        columns: ``(trials, r)`` enrolled speakers whose nontarget trials stand for all in the
            bootstrap: all others if there are few.
        places: ``(trials, r)`` where these lie: 2i below target score i, 2i + 1 at it.
    """

    n_enrolled: int
    own: Ints
    score: Floats
    higher: Ints
    roc: Roc
    columns: NDArray[np.int32]
    places: NDArray[np.int32]

    def roc_among(self, size: int) -> Roc:
        """The ROC to be expected when each trial meets ``size - 1`` of the others.

        Only the number of nontargets changes, not how they lie: EER and D_ECE are the same for
        every population size; log10 l, which allows for few trials, changes a little.
        """
        share = (size - 1) / (self.n_enrolled - 1)
        return replace(self.roc, equal=self.roc.equal * share, gap=self.roc.gap * share)

    def resample(
        self,
        redrawn: "Redrawn",
        sizes: Ints,
        *,
        threads: int | None = None,
        spread: Spread = here,
    ) -> dict[str, Floats]:
        """EER ``(r,)``, D_ECE ``(r,)`` and log10 l ``(r, sizes)`` of r resamples."""
        work = partial(_resample_rows, self, redrawn, sizes, threads)
        table = np.concatenate(spread(work, len(redrawn.weights), label="intervals"))
        table = table[~np.isnan(table[:, 0])]
        return {"rocch_eer": table[:, 0], "d_ece": table[:, 1], "log10_l": table[:, 2:]}


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """How often each enrolled speaker counts in each resample.

    Those who are tested and those who are not are drawn apart, as many as there are of each. The
    second are many where the crowd is large, so that each row is drawn where it is needed.

    Attributes:
        weights: ``(r, t)`` how often each tested speaker is drawn.
        tested: ``(t,)`` who they are.
        n_enrolled: Number of enrolled speakers.
        others: Further speakers to be drawn. Whoever is in neither list counts once.
        seed: Of these.
    """

    weights: NDArray[np.int32]
    tested: Ints
    n_enrolled: int
    others: Ints
    seed: int = 0

    def rows(self, part: slice) -> NDArray[np.int32]:
        """``(part, n_enrolled)`` weights of some resamples."""
        out = np.ones((part.stop - part.start, self.n_enrolled), dtype=np.int32)
        out[:, self.tested] = self.weights[part]
        if self.others.size:
            streams = numbered_streams(self.seed, 0x6F, len(self.weights))[part]
            draw_again(sealed(streams), sealed(self.others), out)
        return out


def _resample_rows(
    ranking: Ranking,
    redrawn: Redrawn,
    sizes: Ints,
    most: int | None,
    part: slice,
    threads: int | None,
) -> Floats:
    """The figures ``(part, 2 + sizes)`` of some rows of the weights."""
    r, workers = ranking, n_threads(threads or most)
    run_of = np.searchsorted(r.roc.score, r.score)
    own, columns, places = sealed(r.own), sealed(r.columns), sealed(r.places)

    def work(some: slice) -> Floats:
        rows = redrawn.rows(slice(part.start + some.start, part.start + some.stop))
        return _pairs.resample_curve(
            sealed(rows), own, run_of, columns, places, r.roc.score.size, sizes - 1
        )

    count = part.stop - part.start
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(work, share(count, max(4 * workers, count // 16)))))


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """All that is needed to place some trials among everybody enrolled."""

    pairs: Pairs
    own: Ints
    mine: Floats
    near: float
    finer: float
    table: tuple[Floats, NDArray[np.floating], _pairs.Codes]
    columns: NDArray[np.int32]
    threads: int | None

    def __call__(self, rows: slice, threads: int | None) -> tuple[Ints, NDArray[np.int32], Ints]:
        """Of some trials: others at least as high, places of the chosen ones, counts of all."""
        pairs, own, start = self.pairs.sealed(), sealed(self.own), rows.start
        mine, columns = sealed(self.mine), sealed(self.columns)
        target, ruler, code = self.table
        near, table = self.near, (sealed(target), sealed(ruler), sealed(code))
        left32, right32 = (sealed(side) for side in pairs.coarse)
        higher = np.full(rows.stop - start, -1, dtype=np.int64)  # the own speaker counts as well
        places = np.empty((higher.size, columns.shape[1]), dtype=np.int32)
        counts = np.zeros(2 * target.size, dtype=np.int64)
        lock = Lock()
        # Each thread multiplies for itself; a scorer of the user's, which may use all cores, is
        # asked by one at a time.
        own_product = pairs.slack >= 0
        asking = nullcontext() if own_product else Lock()

        def count(part: slice) -> None:
            found = np.zeros_like(counts)
            tiles = pairs.tiles(slice(start + part.start, start + part.stop))
            while True:
                with asking:
                    tile = next(tiles, None)
                if tile is None:
                    break
                at, first, scores = tile
                out = slice(at.start - start, at.stop - start)
                trial, right = pairs.rows(at), pairs.right
                _pairs.count_at_least(
                    scores, first, pairs.slack, right, trial, mine[at], higher[out]
                )
                _pairs.count_between(
                    scores, first, near, right, trial, own[at],
                    *table, self.finer, right32, left32[at], found,
                )  # fmt: skip
                _pairs.places_of(
                    scores, first, near, right, trial, *table, columns[at], places[out]
                )
            with lock:
                np.add(counts, found, out=counts)

        workers = n_threads(threads or self.threads)
        alone = one_blas_thread() if own_product else nullcontext()
        with alone, ThreadPoolExecutor(workers) as pool:
            each = -(-higher.size // (workers * ROWS))  # as many for every thread
            run(pool, count, higher.size, workers * each)
        return higher, places, counts


def rank_trials(
    pairs: Pairs,
    own: Ints,
    *,
    seed: int = 0,
    threads: int | None = None,
    spread: Spread = here,
) -> Ranking:
    """Compare every trial with every enrolled speaker, block by block.

    Args:
        pairs: Rows are trials, columns are enrolled speakers, one column for each.
        own: ``(trials,)`` the right column of each trial.
        seed: Of the choice of pairs for the bootstrap.
        threads: Default: all processors.
        spread: Who does the blocks, e.g. the workers of a cluster.
    """
    mine = pairs.at(own)
    target, times = np.unique(mine, return_counts=True)
    near, finer = _typical_slack(pairs, own)
    table = _pairs.bucket_table(target, near)
    columns = _other_columns(own, pairs.shape[1], seed)
    compare = _Comparison(pairs, own, mine, near, finer, table, columns, threads)
    found = spread(compare, own.size, label="link")
    higher = np.concatenate([part[0] for part in found])
    places = np.concatenate([part[1] for part in found])
    counts = np.sum([part[2] for part in found], axis=0)[: 2 * target.size + 1]
    equal, gap = counts[1::2].astype(float), counts[0::2].astype(float)
    roc = Roc(target, times.astype(float), equal, gap)
    return Ranking(pairs.shape[1], own, mine, higher, roc, columns, places)


def _typical_slack(pairs: Pairs, own: Ints) -> tuple[float, float]:
    """How close a score may come to a target score before it is computed again for the ROC.

    First a score of the matrix product, then the inner product in single precision, which errs a
    quarter as much. The bound that holds for every conceivable vector is some fifty times the error
    that occurs, and weak attacks have scores everywhere, so nearly all would be computed again.
    Errors are sums of many roundings: one of seven times their root mean square, as it is found on
    a sample, is to be expected once in 4·10¹¹ scores, and it would matter for one score in a
    hundred: it would shift one nontarget by less than a millionth of a score unit.
    """
    if not isinstance(pairs.scores, Products):
        return pairs.slack, pairs.slack
    rows = slice(0, min(64, own.size))
    at = np.arange(rows.stop)
    left32, right32 = (sealed(side) for side in pairs.coarse)
    typical = fine = 0.0
    for shift in range(9):  # the own speaker first, then others far apart
        column = (own[rows] + shift * (pairs.shape[1] // 9)) % pairs.shape[1]
        exact = _pairs.own_scores(pairs.right, pairs.left[rows], column)
        with one_blas_thread():  # a second one would go on waiting for work, and hold up a core
            error = pairs.scores(rows, None, column)[at, at] - exact
        typical = max(typical, float(np.sqrt(np.mean(error**2))))
        error = _pairs.coarse_scores(right32, left32[rows], column) - exact
        fine = max(fine, float(np.sqrt(np.mean(error**2))))
    slack = min(max(7.0 * typical, 2.0 * pairs.slack / pairs.right.shape[1]), pairs.slack)
    return slack, min(max(7.0 * fine, slack / 16.0), slack)


def _other_columns(own: Ints, n: int, seed: int) -> NDArray[np.int32]:
    """For each trial, enrolled speakers other than its own: all, or a random few of many."""
    each = min(n - 1, -(-_RESAMPLED // own.size))
    if each == n - 1:
        others = np.broadcast_to(np.arange(n - 1), (own.size, n - 1))
    else:
        # Steps of one width from a random start: all different, and cheap.
        start = np.random.default_rng([seed, 0x6C]).random(own.size)
        others = ((np.arange(each) + start[:, None]) * ((n - 1) / each)).astype(np.int64)
    return (others + (others >= own[:, None])).astype(np.int32)


def linkability(higher: Ints, n_enrolled: int, sizes: Sequence[int]) -> Floats:
    """Chance that each trial is linked to its speaker among N' enrolled people (Eqs 3 and 4).

    The N' - 1 others are a random part of the n - 1 enrolled. If m of these score at least as high
    as the right speaker, the part avoids all m with probability
    C(n-1-m, N'-1) / C(n-1, N'-1) = Π (n - N' - i) / (n - 1 - i) over i < m. No sampling is needed.
    Range 0 to 1, higher is riskier; chance 1/N'. A tie is not a link: Eq. 3 is strict.

    Args:
        higher: ``(trials,)`` m of each trial.
        n_enrolled: n.
        sizes: Values of N'.

    Returns:
        ``(trials, sizes)`` probabilities; their mean is the Linkability.

    >>> linkability(np.array([0, 1, 3]), 4, [1, 2, 4]).round(3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.667, 0.0], [1.0, 0.0, 0.0]]
    """
    m = np.arange(n_enrolled - 1.0)
    out = np.empty((higher.size, len(sizes)))
    for s, size in enumerate(sizes):
        if not 1 <= size <= n_enrolled:
            raise InputError(
                f"Linkability for N = {size}: N goes from 1 to the {n_enrolled} enrolled speakers"
            )
        factors = np.maximum(n_enrolled - size - m, 0.0) / (n_enrolled - 1 - m)
        out[:, s] = np.concatenate(([1.0], np.cumprod(factors)))[higher]
    return out


def linkability_by_draws(
    higher: Ints, n_enrolled: int, sizes: Sequence[int], *, draws: int = 5, seed: int = 0
) -> Floats:
    """The paper's estimate of :func:`linkability`: ``draws`` random sets of N' - 1 others.

    Returns:
        ``(trials, sizes)`` share of the draws in which the trial is linked.
    """
    out = np.empty((higher.size, len(sizes)))
    for s, size in enumerate(sizes):
        rng = np.random.default_rng([seed, 0x4C, size])
        met = rng.hypergeometric(
            higher, n_enrolled - 1 - higher, size - 1, size=(draws, higher.size)
        )
        out[:, s] = (met == 0).mean(axis=0)
    return out
