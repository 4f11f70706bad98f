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
Codes = NDArray[np.uint32]
Scores = NDArray[np.floating]


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
    for j in range(scores.shape[0]):
        # In the precision of the scores, which is twice as quick; no bound gets nearer by that.
        margin = 1.001 * slack + abs(mine[j]) * 2.0**-23 if slack >= 0 else 0.0
        above = scores.dtype.type(mine[j] + margin)
        below = scores.dtype.type(mine[j] - margin)
        n = 0
        # Count in short stretches; only a stretch with a doubtful score is looked at again.
        for start in range(0, scores.shape[1], 256):
            part = scores[j, start : start + 256]
            certain = 0
            possible = 0
            for i in range(part.size):
                certain += part[i] > above
                possible += part[i] >= below
            if slack < 0:
                n += possible
                continue
            n += certain
            if possible > certain:
                for i in range(part.size):
                    if below <= part[i] <= above:
                        n += inner(enroll[first + start + i], trial[j]) >= mine[j]
        out[j] += n


@compiled
def bucket_table(target: Floats, slack: float, buckets: int) -> tuple[Floats, Floats, Codes]:
    """Cut the range of the target scores into equal buckets and say where a score in each lies.

    A score lies at place 2i in the gap below target i, at 2i + 1 if it equals target i. Returns the
    targets with an infinite one behind them; a ruler, see :func:`fine_ruler`; and for each bucket
    (one more at either end) the place of every score in it; or, if some target is too near to tell,
    ``2 · targets + 1`` and on top of it the first target that may matter.
    """
    margin = max(slack, 0.0)
    width = (target[-1] - target[0] + 2.0 * margin) / (buckets - 2)
    if width < 1e-300:  # all targets are equal: any width will do
        width = 1.0
    low = target[0] - margin - width
    code = np.empty(buckets + 2, dtype=np.uint32)
    start = 0
    end = 0
    for b in range(buckets + 2):
        # A tenth of a bucket on either side makes up for rounding in the index of a score.
        while start < target.size and target[start] + margin < low + (b - 1.1) * width:
            start += 1
        while end < target.size and target[end] - margin <= low + (b + 0.1) * width:
            end += 1
        code[b] = 2 * start if start == end else 2 * target.size + 1 + start
    ruler = np.array([1.0 / width, 1.0 - low / width, 0.0, code.size - 1.0])
    return np.append(target, np.inf), ruler, code


def fine_ruler(ruler: Floats) -> NDArray[np.floating]:
    """The ruler in single precision, which is quicker, where that is fine enough.

    A ruler is scale, shift, lowest and highest bucket: the bucket of a score is ``score · scale +
    shift``. Four roundings may shift it, by less than a tenth of a bucket altogether. A scale that
    single precision does not hold, because scores are tiny or huge, would shift it anywhere.
    """
    scale, shift, _, last = ruler
    farthest = max(abs(shift), abs(last - shift))  # the highest |score · scale| between the ends
    fine = 1e-30 < scale < 1e30 and (3 * farthest + last) * 2.0**-24 < 0.1
    return ruler.astype(np.float32) if fine else ruler


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
    found = code[np.uint32(min(max(x * ruler[0] + ruler[1], ruler[2]), ruler[3]))]
    unclear = np.uint32(2 * target.size - 1)
    if found < unclear:
        return np.uint64(found)
    margin = max(slack, 0.0)
    f = np.uint64(found - unclear)
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
    out: Ints,
) -> None:
    """Count the nontargets of some trials in each gap and at each target score.

    The columns of the scores are enrolled speakers from ``first`` on. ``out (3 · targets + 2,)`` is
    indexed by place; only its first ``2 · targets + 1`` entries mean anything. As :func:`_place`
    for every score, but in four short loops without branches that must be guessed: buckets, counts,
    scores near a target, scores too near. Unsigned numbers, because signed ones are asked whether
    they are negative; a tile of columns at a time, and those too near after all others of it,
    because their vectors are then at hand.
    """
    unclear = np.uint32(2 * target.size - 1)
    margin = max(slack, 0.0)
    scale, shift, lowest, last = ruler[0], ruler[1], ruler[2], ruler[3]
    tile = 512
    room = 4096
    bucket = np.empty(tile, dtype=np.uint32)
    near = np.empty(tile + 1, dtype=np.uint32)
    too_near = np.empty((room + tile + 1, 3), dtype=np.uint32)  # row, column of the tile, target
    for start in range(0, scores.shape[1], tile):
        stop = min(start + tile, scores.shape[1])
        m = np.uint64(0)
        for j in range(scores.shape[0]):
            row = scores[j, start:stop]
            for i in range(row.size):
                bucket[i] = np.int32(min(max(row[i] * scale + shift, lowest), last))
            n = np.uint64(0)
            for i in range(row.size):
                c = code[bucket[i]]
                out[c] += 1
                near[n] = i
                n += np.uint64(c >= unclear)
            for k in range(n):
                i = near[k]
                f = np.uint64(code[bucket[i]] - unclear)
                f += np.uint64(target[f] + margin < row[i])  # nearly always the one target there is
                while target[f] + margin < row[i]:
                    f += np.uint64(1)
                doubtful = row[i] >= target[f] - margin
                out[np.uint64(2) * f] += 1 - doubtful
                too_near[m, 0], too_near[m, 1], too_near[m, 2] = j, i, np.uint32(f)
                m += np.uint64(doubtful)
            if m >= room or j == scores.shape[0] - 1:
                for k in range(m):
                    r, i, f = too_near[k, 0], start + too_near[k, 1], np.uint64(too_near[k, 2])
                    x = scores[r, i]
                    out[_settled(x, f, slack, enroll, first + i, trial, r, target)] += 1
                m = np.uint64(0)
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
        if target.sum() == 0.0 or nontarget.sum() == 0.0:
            continue
        bt, bn, _ = _kernels.pav(target, nontarget[1::2], nontarget[0::2])
        out[r, 0] = _kernels.rocch_eer(bt, bn)
        out[r, 1] = _kernels.expected_disclosure(bt, bn, _kernels.block_llr(bt, bn))
        for s in range(others.size):
            llr = _kernels.laplace_llr(bt, bn * (others[s] * target.sum() / nontarget.sum()))
            out[r, 2 + s] = np.abs(llr).max() / np.log(10.0)
    return out
