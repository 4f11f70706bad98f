"""The loops behind Linkability, Singling Out and the ROC of a whole population.

Scores are found twice. A single-precision matrix product gives all of them, each within ``slack``
of the truth; where that decides nothing (another score lies within ``slack``) the pair is
multiplied again in double precision, always in the same order. So what is compared is the
double-precision score: equal embeddings give equal scores, and the answer does not depend on the
BLAS library, the block size or the number of threads. Scores that come ready-made are taken as they
are (``slack`` below zero).
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels
from voxrisk.measure._compiled import compiled, compiled_in_any_order

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger]
Scores = NDArray[np.floating]
Coarse = NDArray[np.float32]


@compiled
def inner(x: Floats, y: Floats) -> float:
    """Inner product in one fixed order: four running sums, so that it is quick."""
    a = b = c = d = 0.0
    n = x.size - x.size % 4
    for i in range(0, n, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(n, x.size):
        a += x[i] * y[i]
    return (a + b) + (c + d)


@compiled_in_any_order
def quick(enroll: Floats, i: int, trial: Floats, j: int) -> float:
    """As :func:`inner` of row i and row j, in whatever order is quickest on this machine."""
    total = 0.0
    for k in range(enroll.shape[1]):
        total += enroll[i, k] * trial[j, k]
    return total


@compiled_in_any_order
def coarse(enroll: Coarse, i: int, trial: Coarse, j: int) -> float:
    """As :func:`quick`, of vectors in single precision, and in that."""
    total = np.float32(0.0)
    for k in range(enroll.shape[1]):
        total += enroll[i, k] * trial[j, k]
    return float(total)


@compiled
def coarse_scores(enroll: Coarse, trial: Coarse, column: Ints) -> Floats:
    """:func:`coarse` of each trial with one enrolled speaker."""
    out = np.empty(column.size)
    for j in range(column.size):
        out[j] = coarse(enroll, column[j], trial, j)
    return out


@compiled
def own_scores(enroll: Floats, trial: Floats, own: Ints) -> Floats:
    """Score of each trial against its own speaker."""
    out = np.empty(own.size)
    for j in range(own.size):
        out[j] = inner(enroll[own[j]], trial[j])
    return out


@compiled
def count_at_least(
    scores: Scores,
    first: int,
    slack: float,
    enroll: Floats,
    trial: Floats,
    mine: Floats,
    out: Ints,
) -> None:
    """Add to ``out``, for each trial (row of scores), how many score at least as high as ``mine``.

    The columns are enrolled speakers from ``first`` on. The own speaker is as high as itself.
    """
    stretch = 256
    doubtful = np.empty(stretch + 1, dtype=np.uint32)
    for j in range(scores.shape[0]):
        # In the precision of the scores, which is twice as quick; no bound gets nearer by that.
        margin = 1.001 * slack + abs(mine[j]) * 2.0**-23 if slack >= 0 else 0.0
        above = scores.dtype.type(mine[j] + margin)
        below = scores.dtype.type(mine[j] - margin)
        n = np.int64(0)
        # Count in short stretches; only a stretch with a doubtful score is looked at again.
        for start in range(0, scores.shape[1], stretch):
            part = scores[j, start : start + stretch]
            certain = np.uint32(0)  # half as wide, so that twice as many are added at once
            possible = np.uint32(0)
            for i in range(part.size):
                certain = np.uint32(certain + np.uint32(part[i] > above))
                possible = np.uint32(possible + np.uint32(part[i] >= below))
            if slack < 0:
                n += possible
                continue
            n += certain
            if possible == certain:
                continue
            d = np.uint64(0)
            for i in range(part.size):  # no branch that must be guessed
                doubtful[d] = i
                d += np.uint64((part[i] >= below) & (part[i] <= above))
            for k in range(d):
                n += inner(enroll[first + start + doubtful[k]], trial[j]) >= mine[j]
        out[j] += n


def bucket_table(target: Floats, slack: float) -> tuple[Floats, NDArray[np.floating], Codes]:
    """Cut the range of the target scores into equal buckets and say where a score in each lies.

    A score lies at place 2i in the gap below target i, at 2i + 1 if it equals target i. Returns the
    targets with an infinite one behind them; a ruler; and for each bucket the target above every
    score in it, or, if some target is too near to tell, ``targets + 1`` and on top of it the first
    target that may matter. Small numbers where they do, so that the table stays in the cache.

    A ruler is where the first bucket begins, buckets for each unit of score, lowest and highest
    bucket: the bucket of a score is ``(score - begin) · scale``. It is in single precision where
    scores are. Three roundings then shift the bucket of a score, each by at most 2⁻²⁴ of their
    number: with 2¹⁹ of them by less than a tenth of a bucket altogether.
    """
    # Few scores are too near to a target with 26 buckets for each of them; more buckets would fall
    # out of the cache.
    buckets = 1 << min(max((26 * target.size - 1).bit_length(), 17), 19)
    margin = max(slack, 0.0)
    kind = np.float32 if slack >= 0 else np.float64
    low, high = target[0] - margin, target[-1] + margin
    # Where scores are tiny or huge, single precision does not hold what is needed.
    if not 1e-30 < max(abs(low), abs(high)) < 1e30 or high - low < 1e-30:
        kind = np.float64
    begin = np.nextafter(kind(low), kind(-np.inf))
    width = (high - float(begin)) / (buckets - 3)
    if width < 1e-300:  # all targets are equal: any width will do
        width = 1.0
    begin = kind(float(begin) - width)
    small = 2 * target.size < np.iinfo(np.uint16).max
    code: Codes = np.empty(buckets, np.uint16 if small else np.uint32)
    _write_codes(target, margin, float(begin), width, code)
    ruler: NDArray[np.floating] = np.array([begin, 1.0 / width, 0.0, buckets - 1.0], kind)
    return np.append(target, np.inf), ruler, code


@compiled
def _write_codes(target: Floats, margin: float, begin: float, width: float, code: Codes) -> None:
    start = 0
    end = 0
    for b in range(code.size):
        # A tenth of a bucket on either side makes up for rounding in the index of a score. The
        # first and the last bucket also have all that lies beyond them.
        if b > 0:
            while start < target.size and target[start] + margin < begin + (b - 0.1) * width:
                start += 1
        while end < target.size and target[end] - margin <= begin + (b + 1.1) * width:
            end += 1
        code[b] = start if start == end else target.size + 1 + start


@compiled
def _settled(
    x: float,
    first: np.uint64,
    slack: float,
    enroll: Floats,
    i: int,
    trial: Floats,
    j: int,
    target: Floats,
) -> np.uint64:
    """The place of a score whose exact value may be that of target ``first`` or of a later one."""
    f = first
    if slack >= 0:
        x = quick(enroll, i, trial, j)
        # Sums in any order differ by less than this; only nearer to a target the order matters.
        tiny = slack * enroll.shape[1] * 2.0**-28
        while target[f] + tiny < x:
            f += np.uint64(1)
        if x < target[f] - tiny:
            return np.uint64(2) * f
        x = inner(enroll[i], trial[j])
    while target[f] < x:
        f += np.uint64(1)
    return np.uint64(2) * f + np.uint64(target[f] == x)


@compiled
def _place(
    x: float,
    slack: float,
    enroll: Floats,
    i: int,
    trial: Floats,
    j: int,
    target: Floats,
    ruler: NDArray[np.floating],
    code: Codes,
) -> np.uint64:
    """Where one score lies that is known within ``slack``."""
    f = np.uint64(code[np.uint32(min(max((x - ruler[0]) * ruler[1], ruler[2]), ruler[3]))])
    unclear = np.uint64(target.size)
    if f < unclear:
        return np.uint64(2) * f
    margin = max(slack, 0.0)
    f -= unclear
    while target[f] + margin < x:
        f += np.uint64(1)
    if x < target[f] - margin:
        return np.uint64(2) * f
    return _settled(x, f, slack, enroll, i, trial, j, target)


@compiled
def count_between(
    scores: Scores,
    first: int,
    slack: float,
    enroll: Floats,
    trial: Floats,
    own: Ints,
    target: Floats,
    ruler: NDArray[np.floating],
    code: Codes,
    finer: float,
    enroll32: Coarse,
    trial32: Coarse,
    out: Ints,
) -> None:
    """Count the nontargets of some trials in each gap and at each target score.

    The columns of the scores are enrolled speakers from ``first`` on. ``out (2 · targets + 1,)`` is
    indexed by place. As :func:`_place` for every score, but in four short loops without branches
    that must be guessed: buckets, one more below their target, scores near a target, scores too
    near. What is near is counted by its code, too, where nobody looks. A tile of columns at a time,
    and scores too near after all others of it, because their vectors are then at hand. Most of
    those are settled by their inner product in single precision, which is within ``finer``: a
    matrix product errs more, because it adds one number after the other. Unsigned numbers, because
    signed ones are asked whether they are negative.
    """
    unclear = np.uint32(target.size)
    margin = max(slack, 0.0)
    begin, scale, lowest, last = ruler[0], ruler[1], ruler[2], ruler[3]
    tile = 512
    room = 4096
    below = np.zeros(2 * target.size, dtype=np.uint32)  # scores in the gap below each target
    bucket = np.empty(tile, dtype=np.uint32)
    near = np.empty(tile + 1, dtype=np.uint32)
    too_near = np.empty((room + tile + 1, 3), dtype=np.uint32)  # row, column of the tile, target
    for start in range(0, scores.shape[1], tile):
        stop = min(start + tile, scores.shape[1])
        m = np.uint64(0)
        for j in range(scores.shape[0]):
            row = scores[j, start:stop]
            for i in range(row.size):
                bucket[i] = np.int32(min(max((row[i] - begin) * scale, lowest), last))
            n = np.uint64(0)
            for i in range(row.size):
                c = code[bucket[i]]
                below[c] += np.uint32(1)
                near[n] = i
                n += np.uint64(c >= unclear)
            for k in range(n):
                i = near[k]
                f = np.uint64(code[bucket[i]] - unclear)
                f += np.uint64(target[f] + margin < row[i])  # nearly always the one target there is
                while target[f] + margin < row[i]:
                    f += np.uint64(1)
                doubtful = row[i] >= target[f] - margin
                below[f] += np.uint32(1 - doubtful)
                too_near[m, 0], too_near[m, 1], too_near[m, 2] = j, i, np.uint32(f)
                m += np.uint64(doubtful)
            if m >= room or j == scores.shape[0] - 1:
                for k in range(m):
                    r, i, f = too_near[k, 0], start + too_near[k, 1], np.uint64(too_near[k, 2])
                    if slack >= 0:
                        x = coarse(enroll32, first + i, trial32, r)
                        while target[f] + finer < x:
                            f += np.uint64(1)
                        if x < target[f] - finer:
                            below[f] += np.uint32(1)
                            continue
                    x = float(scores[r, i])
                    out[_settled(x, f, slack, enroll, first + i, trial, r, target)] += 1
                m = np.uint64(0)
    for gap in range(target.size):
        out[2 * gap] += below[gap]
    # The own speakers went through with the others: they are taken out again.
    for j in range(scores.shape[0]):
        i = own[j] - first
        if 0 <= i < scores.shape[1]:
            x = scores[j, i]
            out[_place(x, slack, enroll, own[j], trial, j, target, ruler, code)] -= 1


@compiled
def places_of(
    scores: Scores,
    first: int,
    slack: float,
    enroll: Floats,
    trial: Floats,
    target: Floats,
    ruler: NDArray[np.floating],
    code: Codes,
    columns: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Where the scores of some chosen pairs lie; the pairs are those of the bootstrap.

    The columns of the scores are enrolled speakers from ``first`` on; ``columns`` rise in each row.
    """
    stop = first + scores.shape[1]
    for j in range(scores.shape[0]):
        for c in range(np.searchsorted(columns[j], first), columns.shape[1]):
            i = columns[j, c]
            if i >= stop:
                break
            x = scores[j, i - first]
            out[j, c] = _place(x, slack, enroll, i, trial, j, target, ruler, code)


@compiled
def resample_curve(
    weights: NDArray[np.int32],
    own: Ints,
    run: Ints,
    columns: NDArray[np.int32],
    places: NDArray[np.int32],
    n_targets: int,
    others: Ints,
) -> Floats:
    """EER, D_ECE and log10 l of the weighted trials, for each row of ``weights (r, enrolled)``.

    A target trial has the weight of its speaker, a nontarget trial the product of the weights of
    the enrolled and the tested. ``run`` says which target score each trial has; ``others`` how many
    nontargets there are for each target, in each population size. Returns ``(r, 2 + sizes)``; NaN
    where a class has no weight.
    """
    out = np.full((weights.shape[0], 2 + others.size), np.nan)
    target = np.empty(n_targets)
    nontarget = np.empty(2 * n_targets + 1)
    for r in range(weights.shape[0]):
        target[:] = 0.0
        nontarget[:] = 0.0
        for j in range(own.size):
            w = float(weights[r, own[j]])
            if w == 0.0:
                continue
            target[run[j]] += w
            for c in range(columns.shape[1]):
                nontarget[places[j, c]] += w * weights[r, columns[j, c]]
        n_target, n_nontarget = _kernels.sum_of(target), _kernels.sum_of(nontarget)
        if n_target == 0.0 or n_nontarget == 0.0:
            continue
        bt, bn, _ = _kernels.pav(target, nontarget[1::2], nontarget[0::2])
        out[r, 0] = _kernels.rocch_eer(bt, bn)
        out[r, 1] = _kernels.expected_disclosure(bt, bn, _kernels.block_llr(bt, bn))
        for s in range(others.size):
            llr = _kernels.laplace_llr(bt, bn * (others[s] * n_target / n_nontarget))
            out[r, 2 + s] = _kernels.strongest(llr) / np.log(10.0)
    return out
