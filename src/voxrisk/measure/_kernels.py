"""Compiled loops under the score metrics. Counts are float64, so that weights fit the same code.

The curve of a score set is four arrays, ascending by score (see :class:`~voxrisk.measure.Roc`):
``target`` trials in each run of targets, nontarget trials ``equal`` to it, and the ``gap`` of
nontargets between neighbours. A *block* is a stretch of scores that PAV gives one posterior:
``bt`` targets and ``bn`` nontargets.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure._compiled import compiled

Array = NDArray[Any]


@compiled
def sum_of(counts: Array) -> float:
    """Their sum. ``counts.sum()`` is the same, but needs more of numba: a tenth of a second."""
    found = 0.0
    for i in range(counts.size):
        found += counts[i]
    return found


@compiled
def strongest(llr: Array) -> float:
    """The largest magnitude; NaN if there is one, which must not pass for no evidence."""
    found = 0.0
    for i in range(llr.size):
        if np.isnan(llr[i]):
            return np.nan
        found = max(found, abs(llr[i]))
    return found


@compiled
def interleave(target: Array, nontarget: Array) -> tuple[Array, Array, Array, Array]:
    """Count how two sorted arrays interleave: runs of targets, ties, gaps of nontargets."""
    n, m = target.size, nontarget.size
    room = min(n, 2 * m + 1)  # a nontarget parts two runs, or is a run of ties between them
    score = np.empty(room)
    count = np.empty(room)
    equal = np.empty(room)
    gap = np.empty(room + 1)
    i = j = g = 0
    while i < n:
        value, first = target[i], j
        while j < m and nontarget[j] < value:
            j += 1
        gap[g] = j - first
        score[g] = value
        first = i
        if j < m and nontarget[j] == value:
            while i < n and target[i] == value:
                i += 1
            count[g] = i - first
            first = j
            while j < m and nontarget[j] == value:
                j += 1
            equal[g] = j - first
        else:
            bound = nontarget[j] if j < m else np.inf
            while i < n and target[i] < bound:
                i += 1
            count[g] = i - first
            equal[g] = 0.0
        g += 1
    gap[g] = m - j
    return score[:g], count[:g], equal[:g], gap[: g + 1]


@compiled
def pav(target: Array, equal: Array, gap: Array) -> tuple[Array, Array, Array]:
    """Pool adjacent violators: blocks ``(bt, bn, first)`` of strictly rising posterior.

    Nontargets in a gap always join the targets below them (a posterior of 0 after one above 0
    is a violation), so run g stands for the scores in [score[g], score[g + 1]); ``first`` is the
    lowest run of a block and -1 for the nontargets below every target.
    """
    room = 1024
    bt = np.empty(room)
    bn = np.empty(room)
    first = np.empty(room, np.int64)
    top = 0
    # The highest block stays in registers; the ones below it wait on the stack.
    t0, n0, f0 = 0.0, gap[0], np.int64(-1)
    for g in range(target.size):
        t, n = target[g], equal[g] + gap[g + 1]
        if t0 * n >= t * n0:
            if t0 + n0 == 0.0:
                f0 = np.int64(g)
            t0 += t
            n0 += n
            while top > 0 and bt[top - 1] * n0 >= t0 * bn[top - 1]:
                top -= 1
                t0 += bt[top]
                n0 += bn[top]
                f0 = first[top]
            continue
        if top + 1 == room:
            bt = np.concatenate((bt, np.empty(room)))
            bn = np.concatenate((bn, np.empty(room)))
            first = np.concatenate((first, np.empty(room, np.int64)))
            room *= 2
        bt[top], bn[top], first[top] = t0, n0, f0
        top += 1
        t0, n0, f0 = t, n, np.int64(g)
    bt[top], bn[top], first[top] = t0, n0, f0
    top += 1
    return bt[:top].copy(), bn[:top].copy(), first[:top].copy()


@compiled
def block_llr(bt: Array, bn: Array) -> Array:
    """Log-likelihood ratio of each block: log posterior odds less log prior odds."""
    prior = np.log(sum_of(bt)) - np.log(sum_of(bn))
    llr = np.empty(bt.size)
    for b in range(bt.size):
        if bt[b] == 0.0:
            llr[b] = -np.inf
        elif bn[b] == 0.0:
            llr[b] = np.inf
        else:
            llr[b] = np.log(bt[b]) - np.log(bn[b]) - prior
    return llr if bt.size > 1 else np.zeros(bt.size)


@compiled
def laplace_llr(bt: Array, bn: Array) -> Array:
    """As :func:`block_llr`, with Laplace's dummy target and nontarget at either end.

    PAV of already pooled blocks is PAV of the trials. One block means that the scores order
    nothing: zero evidence, to which the dummies must not lend their own.
    """
    b = bt.size
    llr = np.zeros(b)
    if b == 1:
        return llr
    prior = np.log(sum_of(bt)) - np.log(sum_of(bn))
    t = np.ones(b + 2)
    n = np.ones(b + 2)
    t[1:-1] = bt
    n[1:-1] = bn
    pt = np.empty(b + 2)
    pn = np.empty(b + 2)
    size = np.empty(b + 2, np.int64)
    top = 0
    for i in range(b + 2):
        pt[top], pn[top], size[top] = t[i], n[i], 1
        while top > 0 and pt[top - 1] * pn[top] >= pt[top] * pn[top - 1]:
            pt[top - 1] += pt[top]
            pn[top - 1] += pn[top]
            size[top - 1] += size[top]
            top -= 1
        top += 1
    i = 0
    for j in range(top):
        value = np.log(pt[j]) - np.log(pn[j]) - prior
        for _ in range(size[j]):
            if 1 <= i <= b:
                llr[i - 1] = value
            i += 1
    return llr


@compiled
def rocch_eer(bt: Array, bn: Array) -> float:
    """Where the hull, from (false alarm 1, miss 0) to (0, 1), meets the diagonal."""
    n_target, n_nontarget = sum_of(bt), sum_of(bn)
    miss, alarm = 0.0, 1.0
    for b in range(bt.size):
        up, down = bt[b] / n_target, bn[b] / n_nontarget
        if miss + up >= alarm - down:
            part = (alarm - miss) / (up + down)
            return min(max(miss + part * up, 0.0), 0.5)
        miss += up
        alarm -= down
    return 0.0


@compiled
def softplus_bits(x: float) -> float:
    """log2(1 + e^x) without overflow."""
    return (max(x, 0.0) + np.log1p(np.exp(-abs(x)))) / np.log(2.0)


@compiled
def block_ece(bt: Array, bn: Array, llr: Array, log_odds: float) -> float:
    """Empirical cross-entropy (Eq. 4 of ZEBRA) in bits at one prior log-odds; inf where it must."""
    n_target, n_nontarget = sum_of(bt), sum_of(bn)
    for_target = for_nontarget = 0.0
    for b in range(bt.size):
        if bt[b] > 0.0:
            for_target += bt[b] * softplus_bits(-llr[b] - log_odds)
        if bn[b] > 0.0:
            for_nontarget += bn[b] * softplus_bits(llr[b] + log_odds)
    pi = 1.0 / (1.0 + np.exp(-log_odds))
    rest = 1.0 / (1.0 + np.exp(log_odds))
    return pi * for_target / n_target + rest * for_nontarget / n_nontarget


@compiled
def zebra_z(a: float) -> float:
    """Z of ZEBRA's Eq. 6 at a log-likelihood ratio ``a``; rises from -inf through 0 to 1/4."""
    if abs(a) < 0.03:
        b = np.expm1(a)
        term, total = b, 0.0
        for m in range(1, 12):
            total += term / (2.0 * (m + 2))
            term *= -b
        return total
    if a == np.inf:
        return 0.25
    if a > 0.0:
        inverse = np.exp(-a) / -np.expm1(-a)
        return 0.25 - 0.5 * inverse + 0.5 * a * inverse * inverse
    b = np.expm1(a)
    return 0.25 + (a - b) / (2.0 * b * b)


@compiled
def expected_disclosure(bt: Array, bn: Array, llr: Array) -> float:
    """D_ECE (Eq. 6) in bits."""
    n_target, n_nontarget = sum_of(bt), sum_of(bn)
    total = 0.0
    for b in range(bt.size):
        if bt[b] > 0.0:
            total += bt[b] / n_target * zebra_z(llr[b])
        if bn[b] > 0.0:
            total += bn[b] / n_nontarget * zebra_z(-llr[b])
    return max(total, 0.0) / np.log(2.0)


@compiled
def min_dcf(bt: Array, bn: Array, p_target: float, cost_miss: float, cost_alarm: float) -> float:
    """Least detection cost over the hull, as a share of the best blind decision's cost."""
    n_target, n_nontarget = sum_of(bt), sum_of(bn)
    miss, alarm = 0.0, 1.0
    a, b = cost_miss * p_target, cost_alarm * (1.0 - p_target)
    least = min(a, b)
    best = b
    for i in range(bt.size):
        miss += bt[i] / n_target
        alarm -= bn[i] / n_nontarget
        best = min(best, a * miss + b * alarm)
    return max(best, 0.0) / least


@compiled
def interpolated_eer(target: Array, equal: Array, gap: Array) -> float:
    """Where the ROC staircase, joined by straight lines, meets the diagonal."""
    n_target, n_nontarget = sum_of(target), sum_of(equal) + sum_of(gap)
    miss, alarm = 0.0, 1.0
    for g in range(2 * target.size + 1):
        if g % 2 == 0:
            up, down = 0.0, gap[g // 2] / n_nontarget
        else:
            up, down = target[g // 2] / n_target, equal[g // 2] / n_nontarget
        if up + down > 0.0 and miss + up >= alarm - down:
            return miss + (alarm - miss) / (up + down) * up
        miss += up
        alarm -= down
    return miss


@compiled
def kaldi_eer(target: Array, equal: Array, gap: Array) -> float:
    """The first target, from below, whose rank from below equals the nontargets' from above."""
    n_target = np.int64(sum_of(target) + 0.5)
    n_nontarget = np.int64(sum_of(equal) + sum_of(gap) + 0.5)
    before = below = np.int64(0)
    for g in range(target.size):
        below += np.int64(gap[g])
        count = np.int64(target[g])
        # Within the run, the first position p with p / n_target >= share of nontargets not below.
        above = (n_nontarget - below) * n_target
        if count > 0 and above <= (before + count - 1) * n_nontarget:
            position = max(before, (above + n_nontarget - 1) // n_nontarget)
            return min(position, n_target - 1) / n_target
        before += count
        below += np.int64(equal[g])
    return (n_target - 1) / n_target


@compiled
def vertex_eer(target: Array, equal: Array, gap: Array) -> float:
    """False-alarm rate at the corner of the ROC where miss and false alarm differ least."""
    n_target, n_nontarget = sum_of(target), sum_of(equal) + sum_of(gap)
    miss, alarm = 0.0, n_nontarget
    best, at = 1.0, 1.0
    last_up, last_down = -1.0, -1.0
    for g in range(2 * target.size + 1):
        if g % 2 == 0:
            up, down = 0.0, gap[g // 2]
        else:
            up, down = target[g // 2], equal[g // 2]
        if up + down == 0.0:
            continue
        corner = up * last_down != down * last_up
        distance = abs(miss / n_target - alarm / n_nontarget)
        if corner and distance <= best:
            best, at = distance, alarm / n_nontarget
        elif corner and distance > best and miss * n_nontarget > alarm * n_target:
            return at  # past the diagonal it only grows
        miss += up
        alarm -= down
        last_up, last_down = up, down
    return at if best < 1.0 else 0.0


@compiled
def log_cost(scores: Array, sign: float) -> float:
    """Sum of ln(1 + e^(sign·score)): one exponential for each score, one logarithm for many.

    Factors 1 + e^-|x| are multiplied (each is at most 2, so 500 of them stay finite) before the
    logarithm is taken; tiny ones go to a series, so that nothing is lost beside the 1.
    """
    total, product = 0.0, 1.0
    small = 0.0
    for i in range(scores.size):
        x = sign * scores[i]
        e = np.exp(-abs(x))
        total += max(x, 0.0)
        if e < 1e-5:
            small += e - 0.5 * e * e + e * e * e / 3.0
        else:
            product *= 1.0 + e
            if product > 1e150:
                small += np.log(product)
                product = 1.0
    return total + small + np.log(product)


@compiled
def histogram(values: Array, edges: Array) -> Array:
    """Counts in equal bins, as ``numpy.histogram`` counts: the last bin is closed."""
    bins = edges.size - 1
    low, width = edges[0], edges[-1] - edges[0]
    counts = np.zeros(bins)
    for i in range(values.size):
        b = min(int((values[i] - low) / width * bins), bins - 1)
        if values[i] < edges[b]:
            b -= 1
        elif b < bins - 1 and values[i] >= edges[b + 1]:
            b += 1
        counts[b] += 1.0
    return counts
