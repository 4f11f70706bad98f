"""How sure a figure is: confidence intervals by resampling speakers, never trials.

Trials of one speaker are not independent, so a resample draws as many speakers as there are, with
replacement. A speaker drawn w times counts w times: a target trial of speaker i gets weight w_i, a
nontarget trial of speakers i and j gets w_i·w_j. The scores are sorted once; a resample only weighs
the counts of :class:`~voxrisk.measure.roc.Roc` anew, exactly as if the trials had been copied.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels
from voxrisk.measure._compiled import compiled
from voxrisk.measure.calibration import LN2
from voxrisk.measure.linkability import local_linkability
from voxrisk.measure.trials import Trials
from voxrisk.types import InputError, Interval

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


def speaker_weights(n_speakers: int, *, resamples: int, seed: int) -> NDArray[np.int32]:
    """How often each speaker is drawn: ``(resamples, n_speakers)``, rows sum to ``n_speakers``.

    >>> speaker_weights(5, resamples=2, seed=0).sum(axis=1)
    array([5, 5])
    """
    if n_speakers < MIN_SPEAKERS:
        raise InputError(
            f"a confidence interval needs at least {MIN_SPEAKERS} speakers to resample, and there "
            f"are {n_speakers}; add speakers, or ask for no interval (resamples=0)"
        )
    draw = np.random.default_rng(seed).multinomial
    chances = np.full(n_speakers, 1.0 / n_speakers)
    return draw(n_speakers, chances, size=resamples).astype(np.int32)


def percentile_interval(draws: Floats, *, confidence: float = 0.95) -> Interval:
    """The middle ``confidence`` of the resampled figures ``(resamples,)``."""
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return Interval(float(low), float(high), confidence, "speaker bootstrap, percentile")


def basic_interval(
    draws: Floats,
    value: float,
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The percentile interval mirrored at the ``value`` it was drawn around, within ``bounds``.

    Figures that are optimised on the data (PAV, a best threshold) look too good on a sample, and on
    a resample of it once more. Mirroring takes the second step back for the first.
    """
    plain = percentile_interval(draws, confidence=confidence)
    low, high = np.clip([2.0 * value - plain.high, 2.0 * value - plain.low], *bounds)
    return Interval(float(low), float(high), confidence, "speaker bootstrap, basic")


def exact_interval(events: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's interval of a rate; for no event, its exact upper bound.

    A rate of 0 among n speakers does not mean that it is 0: the bound is 1 - (α/2)^(1/n).

    >>> exact_interval(0, 29)  # doctest: +ELLIPSIS
    Interval(low=0.0, high=0.119..., confidence=0.95, method='exact, 0 of 29 speakers')
    """
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    low = 0.0 if events == 0 else float(betaincinv(events, n - events + 1, tail))
    high = 1.0 if events == n else float(betaincinv(events + 1, n - events, 1.0 - tail))
    return Interval(low, high, confidence, f"exact, {events} of {n} speakers")


class SortedTrials(NamedTuple):
    """Trials in the order of their scores, and the places where sums of their weights are read."""

    speaker: Array  # (n_target,) speaker of each target trial, by ascending score
    run_cuts: Array  # (k + 1,) where each run of targets begins
    target_bins: Array  # (bins + 1,) where each bin of the linkability histogram begins
    pair: Array  # (n_nontarget,) pair of speakers of each nontarget trial, by ascending score
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
    edges = local_linkability(target, nontarget).edges
    t_order, n_order = np.argsort(target), np.argsort(nontarget)
    target, nontarget = target[t_order], nontarget[n_order]
    _, count, equal, gap = _kernels.interleave(target, nontarget)
    gap_cuts = np.cumsum(gap) + np.concatenate(([0.0], np.cumsum(equal)))
    return SortedTrials(
        speaker[t_order],
        _places(np.concatenate(([0.0], np.cumsum(count)))),
        _bin_cuts(target, edges),
        pair[n_order],
        _places(gap_cuts),
        _places(gap_cuts[:-1] + equal),
        _bin_cuts(nontarget, edges),
        pairs,
        speaker_cost,
        pair_cost,
    )


def _places(counts: Floats) -> Array:
    return counts.astype(np.int64)


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
def running_sum(weight: Array, member: Array, out: Array) -> float:
    """``out[i]``: weight of the first i trials. Any stretch of trials is then one subtraction."""
    total = np.int64(0)
    out[0] = 0.0
    for i in range(member.size):
        total += weight[member[i]]
        out[i + 1] = total
    return float(total)


@compiled
def _resample(weights: Array, order: SortedTrials) -> Array:
    """All of METRICS, in their order, for each row of ``weights``; NaN where a class is empty."""
    pairs, pair_cost, speaker_cost = order.pairs, order.pair_cost, order.speaker_cost
    t_sum = np.empty(order.speaker.size + 1)
    n_sum = np.empty(order.pair.size + 1)
    pair_weight = np.empty(pairs.shape[0], np.int32)
    out = np.full((weights.shape[0], 11), np.nan)
    for row in range(weights.shape[0]):
        w = weights[row]
        t_cost = n_cost = 0.0
        for s in range(w.size):
            t_cost += w[s] * speaker_cost[s]
        for p in range(pair_weight.size):
            pair_weight[p] = w[pairs[p, 0]] * w[pairs[p, 1]]
            n_cost += pair_weight[p] * pair_cost[p]
        n_target = running_sum(w, order.speaker, t_sum)
        n_nontarget = running_sum(pair_weight, order.pair, n_sum)
        if n_target == 0.0 or n_nontarget == 0.0:
            continue
        target = np.diff(t_sum[order.run_cuts])
        upto = n_sum[order.gap_cuts]
        after = n_sum[order.equal_cuts]
        gap = upto.copy()
        gap[1:] -= after
        _curve_metrics(target, after - upto[:-1], gap, out[row])
        y1 = np.diff(t_sum[order.target_bins]) / n_target
        y2 = np.diff(n_sum[order.nontarget_bins]) / n_nontarget
        out[row, 9] = _d_sys(y1, y2)
        out[row, 10] = (t_cost / n_target + n_cost / n_nontarget) / (2.0 * LN2)
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
    out[8] = np.abs(_kernels.laplace_llr(bt, bn)).max() / np.log(10.0)


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
    The bins of ``d_sys`` are those of the whole set.
    """
    order = sort_trials(scored)
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(_resample, np.array_split(weights, 16), [order] * 16)
        table = np.concatenate(list(parts))
    table = table[~np.isnan(table[:, 0])]
    return dict(zip(METRICS, table.T, strict=True))
