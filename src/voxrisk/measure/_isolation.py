"""The loop behind Singling Out: every fold and every population size from one short list.

For one predicate and one random order of the speakers, each population size is a prefix of that
order. As the prefix grows, only the highest scores are kept. The threshold of every fold lies among
them, and whoever is above it too, so the list answers all folds of all sizes exactly. Where it
should not (hundreds of equal scores at its lower end), the whole prefix is looked at.
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure._compiled import compiled
from voxrisk.measure._pairs import Floats, Ints, Scores, inner
from voxrisk.measure._streams import next_bits

NOBODY = -1
_UNDECIDED = -2


@compiled
def draw_order(n: int, own: int, size: int, stream: np.uint64) -> NDArray[np.int32]:
    """The own speaker first, then others in random order, ``size`` in all."""
    order = np.empty(n, dtype=np.int32)
    for i in range(n):
        order[i] = i
    order[0], order[own] = own, 0
    state = stream
    for i in range(1, size):
        state, bits = next_bits(state)
        # 32 random bits times the number of choices, divided by 2^32.
        j = i + np.int64(((bits >> np.uint64(32)) * np.uint64(n - i)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]
    return order[:size]


@compiled
def threshold_between(upper: float, lower: float) -> float:
    """Halfway, but never at the upper score itself, to which rounding may bring it."""
    middle = 0.5 * upper + 0.5 * lower
    return lower if middle >= upper else middle


@compiled
def from_list(
    score: Floats,
    test_fold: Ints,
    count: Ints,
    who: Ints,
    n: int,
    whole: bool,
    rank: int,
    fold: int,
) -> int:
    """Who is isolated in one fold, from the ``n`` highest scores in falling order.

    ``whole`` says that there are no other scores. Gives the speaker, NOBODY or _UNDECIDED.
    """
    seen = 0
    upper = 0.0
    threshold = 0.0
    decided = False
    for e in range(n):
        if test_fold[e] == fold % count[e]:
            continue
        seen += 1
        if seen == rank:
            upper = score[e]
        elif seen == rank + 1:
            threshold = threshold_between(upper, score[e])
            decided = True
            break
    if not decided:
        # The threshold is not above the lowest score kept, if the rank-th is not in the list, and
        # not above the point halfway to it otherwise: two tests above are two above in any case.
        if whole:
            return NOBODY
        threshold = score[n - 1] if seen < rank else threshold_between(upper, score[n - 1])
    above = 0
    found = NOBODY
    for e in range(n):
        if score[e] <= threshold:
            break
        if test_fold[e] == fold % count[e]:
            above += 1
            found = who[e]
    if above > 1:
        return NOBODY
    if not decided:
        return _UNDECIDED
    return found if above == 1 else NOBODY


@compiled
def from_all(
    scores: Scores,
    slack: float,
    predicate: Floats,
    vectors: Floats,
    first: Ints,
    order: NDArray[np.int32],
    rank: int,
    fold: int,
) -> int:
    """Who is isolated in one fold, from every score of the speakers in ``order``."""
    calibration = np.empty(first[-1])
    seen = 0
    test = np.empty(order.size)
    for position in range(order.size):
        speaker = order[position]
        count = first[speaker + 1] - first[speaker]
        for k in range(count):
            c = first[speaker] + k
            x = inner(predicate, vectors[c]) if slack >= 0 else float(scores[c])
            if k == fold % count:
                test[position] = x
            else:
                calibration[seen] = x
                seen += 1
    if seen <= rank:
        return NOBODY
    falling = -np.sort(-calibration[:seen])
    threshold = threshold_between(falling[rank - 1], falling[rank])
    found = NOBODY
    for position in range(order.size):
        if test[position] > threshold:
            if found != NOBODY:
                return NOBODY
            found = order[position]
    return found


@compiled
def isolate(
    scores: Scores,
    slack: float,
    predicate: Floats,
    vectors: Floats,
    first: Ints,
    own: int,
    sizes: Ints,
    streams: NDArray[np.uint64],
    folds: int,
    keep: int,
    out: NDArray[np.int32],
) -> None:
    """All draws, folds and sizes of one predicate; ``out (draws, folds, sizes)`` gets who it is.

    Args:
        scores: ``(n_conversations,)`` of this predicate, within ``slack``.
        slack: How far they may be off; below zero they are taken as they are.
        predicate: ``(d,)`` enrolment vector.
        vectors: ``(n_conversations, d)`` conversations, speaker by speaker.
        first: ``(n_speakers + 1,)`` where each speaker begins.
        own: The predicate's own speaker.
        sizes: Rising population sizes.
        streams: ``(draws,)`` one random stream for each.
        folds: Number of folds.
        keep: Length of the short list, more than the rank of the threshold.
        out: Result.
    """
    n = first.size - 1
    margin = max(slack, 0.0)
    rank = first[own + 1] - first[own] - 1
    peak = np.empty(n, dtype=scores.dtype)
    for speaker in range(n):
        best = scores[first[speaker]]
        for c in range(first[speaker] + 1, first[speaker + 1]):
            best = max(best, scores[c])
        peak[speaker] = best
    score = np.empty(keep)
    test_fold = np.empty(keep, dtype=np.int64)
    count = np.empty(keep, dtype=np.int64)
    who = np.empty(keep, dtype=np.int64)
    for draw in range(streams.size):
        order = draw_order(n, own, sizes[-1], streams[draw])
        held = 0
        total = 0
        step = 0
        for position in range(order.size):
            speaker = order[position]
            here = first[speaker + 1] - first[speaker]
            total += here
            if held < keep or peak[speaker] + margin > score[keep - 1]:
                for k in range(here):
                    c = first[speaker] + k
                    if held == keep and scores[c] + margin <= score[keep - 1]:
                        continue
                    x = inner(predicate, vectors[c]) if slack >= 0 else float(scores[c])
                    if held == keep:
                        if x <= score[keep - 1]:
                            continue
                    else:
                        held += 1
                    e = held - 1
                    while e > 0 and score[e - 1] < x:
                        score[e] = score[e - 1]
                        test_fold[e] = test_fold[e - 1]
                        count[e] = count[e - 1]
                        who[e] = who[e - 1]
                        e -= 1
                    score[e] = x
                    test_fold[e] = k
                    count[e] = here
                    who[e] = speaker
            while step < sizes.size and position + 1 == sizes[step]:
                for fold in range(folds):
                    answer = from_list(
                        score, test_fold, count, who, held, held == total, rank, fold
                    )
                    if answer == _UNDECIDED:
                        answer = from_all(
                            scores, slack, predicate, vectors, first, order[: position + 1],
                            rank, fold,
                        )  # fmt: skip
                    out[draw, fold, step] = answer
                step += 1
