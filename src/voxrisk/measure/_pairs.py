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
from voxrisk.measure._compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
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


@compiled
def own_scores(enroll: Floats, trial: Floats, own: Ints) -> Floats:
    """Score of each trial against its own speaker."""
    out = np.empty(own.size)
    for j in range(own.size):
        out[j] = inner(enroll[own[j]], trial[j])
    return out


@compiled
def count_at_least(
    scores: Scores, slack: float, enroll: Floats, trial: Floats, own: Ints, mine: Floats, out: Ints
) -> None:
    """For each trial (row of scores): how many others score at least as high as its own speaker."""
    margin = max(slack, 0.0)
    for j in range(scores.shape[0]):
        row = scores[j]
        above = mine[j] + margin
        below = mine[j] - margin
        n = 0
        # Count in short stretches; only a stretch with a doubtful score is looked at again.
        for start in range(0, row.size, 256):
            stop = min(start + 256, row.size)
            certain = 0
            possible = 0
            for i in range(start, stop):
                certain += row[i] > above
                possible += row[i] >= below
            if slack < 0:
                n += possible
                continue
            n += certain
            if possible > certain:
                for i in range(start, stop):
                    if below <= row[i] <= above:
                        n += inner(enroll[i], trial[j]) >= mine[j]
        out[j] = n - 1  # the own speaker is as high as itself


@compiled
def bucket_table(target: Floats, slack: float, buckets: int) -> tuple[float, float, Codes, Codes]:
    """Cut the range of the target scores into equal buckets and say where a score in each lies.

    Returns the lower end, buckets for each unit of score, and two tables with one more bucket at
    either end. The first gives the place (see :func:`place`) of every score in the bucket, or
    ``2 · targets + 1`` if some target is too near; the second the first target that may matter.
    """
    margin = max(slack, 0.0)
    width = (target[-1] - target[0] + 2.0 * margin) / (buckets - 2)
    if width < 1e-300:  # all targets are equal: any width will do
        width = 1.0
    low = target[0] - margin - width
    code = np.empty(buckets + 2, dtype=np.int32)
    first = np.empty(buckets + 2, dtype=np.int32)
    start = 0
    end = 0
    for b in range(buckets + 2):
        # A tenth of a bucket on either side makes up for rounding in the index of a score.
        while start < target.size and target[start] + margin < low + (b - 1.1) * width:
            start += 1
        while end < target.size and target[end] - margin <= low + (b + 0.1) * width:
            end += 1
        first[b] = start
        code[b] = 2 * start if start == end else 2 * target.size + 1
    return low, 1.0 / width, code, first


@compiled
def place(x: float, target: Floats) -> int:
    """Where a score lies: 2i in the gap below target i, 2i + 1 at target i exactly."""
    low = 0
    high = target.size
    while low < high:
        middle = (low + high) // 2
        if target[middle] < x:
            low = middle + 1
        else:
            high = middle
    return 2 * low + (low < target.size and target[low] == x)


@compiled
def _bucket(x: float, low: float, scale: float, code: Codes) -> int:
    return int(min(max((x - low) * scale + 1.0, 0.0), code.size - 1.0))


@compiled
def _place_near(
    x: float, slack: float, target: Floats, start: int, enroll: Floats, trial: Floats
) -> int:
    """As :func:`place` for a score known within ``slack``, above all targets before ``start``."""
    margin = max(slack, 0.0)
    for i in range(start, target.size):
        if x < target[i] - margin:
            return 2 * i
        if x <= target[i] + margin:
            return place(inner(enroll, trial) if slack >= 0 else x, target)
    return 2 * target.size


@compiled
def count_between(
    scores: Scores,
    slack: float,
    enroll: Floats,
    trial: Floats,
    own: Ints,
    target: Floats,
    low: float,
    scale: float,
    code: Codes,
    first: Codes,
    out: Ints,
) -> None:
    """Count the nontargets of some trials in each gap and at each target score.

    ``out (2 · targets + 2,)`` is indexed by place; its last entry is of no meaning.
    """
    unclear = 2 * target.size + 1
    exact = slack >= 0
    near = np.empty(scores.shape[1] + 1, dtype=np.int32)
    for j in range(scores.shape[0]):
        row = scores[j]
        vector = trial[j if exact else 0]
        # The own speaker goes through with the others, and once more to be taken out again.
        n = 0
        for i in range(row.size):
            c = code[_bucket(row[i], low, scale, code)]
            out[c] += 1
            near[n] = i
            n += c == unclear
        for k in range(n):
            i = near[k]
            start = first[_bucket(row[i], low, scale, code)]
            out[_place_near(row[i], slack, target, start, enroll[i if exact else 0], vector)] += 1
        i = own[j]
        start = first[_bucket(row[i], low, scale, code)]
        out[_place_near(row[i], slack, target, start, enroll[i if exact else 0], vector)] -= 1


@compiled
def places_of(
    scores: Scores,
    slack: float,
    enroll: Floats,
    trial: Floats,
    target: Floats,
    low: float,
    scale: float,
    code: Codes,
    first: Codes,
    columns: Codes,
    out: Codes,
) -> None:
    """Where the scores of some chosen pairs lie; the pairs are those of the bootstrap."""
    exact = slack >= 0
    for j in range(scores.shape[0]):
        for c in range(columns.shape[1]):
            i = columns[j, c]
            x = scores[j, i]
            start = first[_bucket(x, low, scale, code)]
            out[j, c] = _place_near(
                x, slack, target, start, enroll[i if exact else 0], trial[j if exact else 0]
            )


@compiled
def resample_curve(
    weights: NDArray[np.int32],
    own: Ints,
    run: Ints,
    columns: Codes,
    places: Codes,
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
