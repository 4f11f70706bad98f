"""How sure a figure is: resample speakers, never trials.

Trials of one speaker are not independent, so a resample draws as many speakers as there are, with
replacement. A speaker drawn w times counts w times: a target trial of speaker i gets weight w_i, a
nontarget trial of speakers i and j gets w_i·w_j. The scores are sorted once; a resample only weighs
the counts of :class:`~voxrisk.measure.curve.Roc` anew, exactly as if the trials had been copied.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels
from voxrisk.measure._compiled import compiled
from voxrisk.measure.calibration import LN2
from voxrisk.measure.dsys import MIN_TARGETS, bin_edges
from voxrisk.measure.scored_trials import Trials
from voxrisk.types import InputError

Floats = NDArray[np.float64]
Array = NDArray[Any]

MIN_SPEAKERS = 5
METRICS = (
    "rocch_eer",
    "interpolated_eer",
    "kaldi_eer",
    "vertex_eer",
    "min_dcf_01",
    "min_dcf_001",
    "min_cllr",
    "d_ece",
    "log10_l",
    "d_sys",
    "cllr",
)


def few_speakers(n: int) -> InputError:
    """What to say where there are too few speakers for an interval."""
    return InputError(
        f"a confidence interval needs at least {MIN_SPEAKERS} speakers to resample, and there are "
        f"{n}; add speakers, or ask for no interval (resamples=0)"
    )


def speaker_weights(n_speakers: int, *, resamples: int, seed: int) -> NDArray[np.int32]:
    """How often each speaker is drawn: ``(resamples, n_speakers)``, rows sum to ``n_speakers``.

    >>> speaker_weights(5, resamples=2, seed=0).sum(axis=1)
    array([5, 5])
    """
    if n_speakers < MIN_SPEAKERS:
        raise few_speakers(n_speakers)
    draw = np.random.default_rng(seed).multinomial
    chances = np.full(n_speakers, 1.0 / n_speakers)
    return draw(n_speakers, chances, size=resamples).astype(np.int32)


LANES = 8  # resamples that are weighed in one pass over the trials


class SortedTrials(NamedTuple):
    """Trials in the order of their scores, and the places where sums of their weights are read.

    ``places`` say how many trials lie below a cut; the other cuts are indices into ``places``.
    """

    speaker: Array  # (n_target,) speaker of each target trial, by ascending score
    target_places: Array
    run_cuts: Array  # (k + 1,) where each run of targets begins
    target_bins: Array  # (bins + 1,) where each bin of the histogram of D_sys begins
    pair: Array  # (n_nontarget,) pair of speakers of each nontarget trial, by ascending score
    nontarget_places: Array
    gap_cuts: Array  # (k + 1,) where the nontargets equal to each run begin; the last: the end
    equal_cuts: Array  # (k,) where they end
    nontarget_bins: Array  # (bins + 1,)
    pairs: Array  # (n_pairs, 2) the two speakers of each pair
    speaker_cost: Array  # (n_speakers,) sum of Cllr's cost over the target trials of a speaker
    pair_cost: Array  # (n_pairs,) the same over the nontarget trials of a pair


def sort_trials(scored: Trials) -> SortedTrials:
    """Sort once; every resample then only weighs."""
    target, nontarget = scored.target, scored.nontarget
    pair, pairs = _pairs(scored)
    speaker = scored.enroll_speaker[scored.is_target]
    speaker_cost = np.bincount(speaker, np.logaddexp(0.0, -target), len(scored.speakers))
    pair_cost = np.bincount(pair, np.logaddexp(0.0, nontarget), len(pairs))
    edges = bin_edges(target, nontarget)
    t_order, n_order = np.argsort(target), np.argsort(nontarget)
    target, nontarget = target[t_order], nontarget[n_order]
    _, count, equal, gap = _kernels.interleave(target, nontarget)
    runs = np.concatenate(([0.0], np.cumsum(count)))
    gaps = np.cumsum(gap) + np.concatenate(([0.0], np.cumsum(equal)))
    t_places, (run_cuts, t_bins) = _places(runs, _bin_cuts(target, edges))
    cuts = (gaps, gaps[:-1] + equal, _bin_cuts(nontarget, edges))
    n_places, (gap_cuts, equal_cuts, n_bins) = _places(*cuts)
    return SortedTrials(
        speaker[t_order],
        t_places,
        run_cuts,
        t_bins,
        pair[n_order],
        n_places,
        gap_cuts,
        equal_cuts,
        n_bins,
        pairs,
        speaker_cost,
        pair_cost,
    )


def _places(*cuts: NDArray[Any]) -> tuple[Array, list[Array]]:
    """All cuts in one ascending line without repeats, and each cut as an index into it."""
    places = np.unique(np.concatenate(cuts).astype(np.int64))
    return places, [np.searchsorted(places, c) for c in cuts]


def _bin_cuts(ordered: Floats, edges: Floats) -> Array:
    inner = np.searchsorted(ordered, edges[1:-1])
    return np.concatenate(([0], inner, [ordered.size]))


def _pairs(scored: Trials) -> tuple[Array, Array]:
    """Number the pairs of speakers that nontarget trials compare."""
    n, rest = len(scored.speakers), ~scored.is_target
    code = scored.enroll_speaker[rest].astype(np.int64) * n + scored.trial_speaker[rest]
    if n * n <= 4 * code.size:  # a table of all pairs is cheaper than sorting the trials
        number = np.zeros(n * n, np.int32)
        number[code] = 1
        codes = np.flatnonzero(number)
        number[codes] = np.arange(codes.size)
        pair = number[code]
    else:
        codes, pair = np.unique(code, return_inverse=True)
    return pair.astype(np.int32), np.stack(np.divmod(codes, n), axis=1)


@compiled
def running_sums(weight: Array, member: Array, places: Array) -> Array:
    """``(places, LANES)``: weight of the trials below each place, in LANES resamples at once."""
    out = np.empty((places.size, LANES))
    total = np.zeros(LANES, np.int64)
    i = 0
    for p in range(places.size):
        while i < places[p]:
            m = member[i]
            for lane in range(LANES):
                total[lane] += weight[m, lane]
            i += 1
        for lane in range(LANES):
            out[p, lane] = total[lane]
    return out


@compiled
def lanes(weights: Array, start: int, pairs: Array) -> tuple[Array, Array]:
    """Weights of speakers and of pairs in LANES resamples; lanes past the last row are empty."""
    speaker = np.zeros((weights.shape[1], LANES), np.int64)
    for lane in range(min(LANES, weights.shape[0] - start)):
        speaker[:, lane] = weights[start + lane]
    pair = np.empty((pairs.shape[0], LANES), np.int64)
    for p in range(pairs.shape[0]):
        for lane in range(LANES):
            pair[p, lane] = speaker[pairs[p, 0], lane] * speaker[pairs[p, 1], lane]
    return speaker, pair


@compiled
def curve_counts(
    t_sums: Array, n_sums: Array, order: SortedTrials
) -> tuple[Array, Array, Array, Array]:
    """``target, equal, gap`` of one resample from its running sums, and which run each one was.

    A run that nobody of this resample is in dissolves into the gap around it.
    """
    run_cuts, gap_cuts, equal_cuts = order.run_cuts, order.gap_cuts, order.equal_cuts
    k = equal_cuts.size
    target, equal, gap = np.empty(k), np.empty(k), np.empty(k + 1)
    which = np.empty(k, np.int64)
    g, gap[0] = 0, n_sums[gap_cuts[0]]
    for r in range(k):
        count = t_sums[run_cuts[r + 1]] - t_sums[run_cuts[r]]
        if count == 0.0:
            gap[g] += n_sums[gap_cuts[r + 1]] - n_sums[gap_cuts[r]]
            continue
        target[g], which[g] = count, r
        equal[g] = n_sums[equal_cuts[r]] - n_sums[gap_cuts[r]]
        g += 1
        gap[g] = n_sums[gap_cuts[r + 1]] - n_sums[equal_cuts[r]]
    return target[:g], equal[:g], gap[: g + 1], which[:g]


@compiled
def _resample(weights: Array, order: SortedTrials) -> Array:
    """All of METRICS, in their order, for each row of ``weights``; NaN where a class is empty."""
    out = np.full((weights.shape[0], 11), np.nan)
    for start in range(0, weights.shape[0], LANES):
        speaker_weight, pair_weight = lanes(weights, start, order.pairs)
        t_lanes = running_sums(speaker_weight, order.speaker, order.target_places)
        n_lanes = running_sums(pair_weight, order.pair, order.nontarget_places)
        for lane in range(min(LANES, weights.shape[0] - start)):
            t_sums, n_sums = t_lanes[:, lane].copy(), n_lanes[:, lane].copy()
            n_target, n_nontarget = t_sums[-1], n_sums[-1]
            if n_target == 0.0 or n_nontarget == 0.0:
                continue
            row = out[start + lane]
            target, equal, gap, _ = curve_counts(t_sums, n_sums, order)
            _curve_metrics(target, equal, gap, row)
            t_bins, n_bins = t_sums[order.target_bins], n_sums[order.nontarget_bins]
            y1 = (t_bins[1:] - t_bins[:-1]) / n_target
            y2 = (n_bins[1:] - n_bins[:-1]) / n_nontarget
            row[9] = _d_sys(y1, y2)
            cost = _kernels.sum_of(speaker_weight[:, lane] * order.speaker_cost) / n_target
            cost += _kernels.sum_of(pair_weight[:, lane] * order.pair_cost) / n_nontarget
            row[10] = cost / (2.0 * LN2)
    return out


@compiled
def _curve_metrics(target: Array, equal: Array, gap: Array, out: Array) -> None:
    bt, bn, _ = _kernels.pav(target, equal, gap)
    llr = _kernels.block_llr(bt, bn)
    out[0] = _kernels.rocch_eer(bt, bn)
    out[1] = _kernels.interpolated_eer(target, equal, gap)
    out[2] = _kernels.kaldi_eer(target, equal, gap)
    out[3] = _kernels.vertex_eer(target, equal, gap)
    out[4] = _kernels.min_dcf(bt, bn, 0.01, 1.0, 1.0)
    out[5] = _kernels.min_dcf(bt, bn, 0.001, 1.0, 1.0)
    out[6] = _kernels.block_ece(bt, bn, llr, 0.0)
    out[7] = _kernels.expected_disclosure(bt, bn, llr)
    out[8] = _kernels.strongest(_kernels.laplace_llr(bt, bn)) / np.log(10.0)


@compiled
def _d_sys(y1: Array, y2: Array) -> float:
    total = 0.0
    for b in range(y1.size):
        if y1[b] > y2[b]:
            total += y1[b] * (y1[b] - y2[b]) / (y1[b] + y2[b])
    return total


def bootstrap(scored: Trials, weights: NDArray[np.int32]) -> dict[str, Floats]:
    """Every score metric under every row of ``weights`` ``(resamples, n_speakers)``.

    Resamples in which one class has no trial (possible with very few speakers) are left out.
    The bins of ``d_sys`` are those of the whole set; it is missing where there are too few targets.
    """
    order = sort_trials(scored)
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(_resample, np.array_split(weights, 16), [order] * 16)
        table = np.concatenate(list(parts))
    table = table[~np.isnan(table[:, 0])]
    draws = dict(zip(METRICS, table.T, strict=True))
    if order.speaker.size < MIN_TARGETS:
        del draws["d_sys"]
    return draws
