"""Put shuffled slices together again: a search over the scores of any successor attacker.

The paper on slicing stops at pairs: who finds the next slice rarely, it says, puts utterances
together even more rarely. Here it is tried. Every slice gets one successor and is the successor of
one, which is an assignment problem: the sum of scores is maximised (Jonker and Volgenant's
algorithm, as SciPy has it). Where slices then follow each other in a circle, the weakest link of
the circle is cut, and the loose ends are joined, best score first. For many slices on one table the
links are taken best first from the beginning.

How much the attacker knows is which slices lie on one table: all of them (nothing is known), those
of one speaker (the voice was recognised, or pseudonyms were published), or those of one utterance.
"""

import functools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from voxrisk.attack.successors import LAST, Indices, Scorer, among, asked, blocks

MOST_ASSIGNED = 4000  # slices of one table; beyond it their pairs would fill the memory
SHORTLIST = 64  # successors kept for each slice of a larger table
IMPOSSIBLE = -1e6  # an assignment needs finite scores


def reassemble(scorer: Scorer, n: int, table: Indices | None = None, *, seed: int = 0) -> Indices:
    """What the attacker puts after each slice: ``(n,)``, -1 at the end of each chain.

    Chains join slices of one table only, and no slice stands in two places.

    Args:
        scorer: The attacker; its rows should be comparable, as log likelihood ratios are.
        n: How many slices there are.
        table: ``(n,)`` the table on which each slice lies; None: all on one.
        seed: Of the order in which slices are taken up: where scores tie, the order in which they
            were given must not decide, for it may be the true one.

    >>> scores = np.array([[-9, 2, 0], [0, -9, 1], [0, 0, -9]], np.float32)
    >>> reassemble(lambda block: scores[block], 3)
    array([ 1,  2, -1])
    """
    tables = np.zeros(n, np.int64) if table is None else table
    guess = np.full(n, LAST, np.int64)
    order = np.lexsort((np.random.default_rng(seed).random(n), tables))
    for keep in np.split(order, np.flatnonzero(np.diff(tables[order])) + 1):
        if keep.size > 1:
            found = _one_table(among(scorer, keep, n), keep.size)
            guess[keep] = np.where(found == LAST, LAST, keep[found])
    return guess


def _one_table(scorer: Scorer, n: int) -> Indices:
    if n > MOST_ASSIGNED:
        return _best_first(*_shortlist(scorer, n), np.full(n, LAST, np.int64))
    rows = np.arange(n)
    scores = np.concatenate([asked(scorer, block, n) for block in blocks(rows, n)])
    scores = np.maximum(scores, IMPOSSIBLE).astype(np.float64)
    np.fill_diagonal(scores, 2 * IMPOSSIBLE)
    after = linear_sum_assignment(scores, maximize=True)[1].astype(np.int64)
    guess = _opened(after, scores[rows, after])
    # Only loose ends are joined now; all links of an end to a beginning are on the list.
    first = np.setdiff1d(rows, guess)
    ends = np.flatnonzero(guess == LAST)
    before, behind = (part.ravel() for part in np.meshgrid(ends, first, indexing="ij"))
    return _best_first(before, behind, scores[before, behind], guess)


def _opened(after: Indices, score: NDArray[np.float64]) -> Indices:
    """A permutation as chains: every circle is cut at its weakest link."""
    guess = after.copy()
    seen = np.zeros(after.size, np.bool_)
    for start in range(after.size):
        if seen[start]:
            continue
        circle = [start]
        while (following := int(after[circle[-1]])) != start:
            circle.append(following)
        seen[circle] = True
        guess[circle[int(np.argmin(score[circle]))]] = LAST
    return guess


def _shortlist(scorer: Scorer, n: int) -> tuple[Indices, Indices, NDArray[np.float64]]:
    """The best successors of each slice: links (before, behind) and their scores."""
    before, behind, score = [], [], []
    keep = min(SHORTLIST, n - 1)
    for block in blocks(np.arange(n), n):
        scores = asked(scorer, block, n)
        scores[np.arange(block.size), block] = -np.inf
        best = np.argpartition(-scores, keep - 1, axis=1)[:, :keep]
        before.append(np.repeat(block, keep))
        behind.append(best.ravel())
        score.append(np.take_along_axis(scores, best, axis=1).ravel())
    return np.concatenate(before), np.concatenate(behind), np.concatenate(score).astype(np.float64)


def _best_first(
    before: Indices, behind: Indices, score: NDArray[np.float64], guess: Indices
) -> Indices:
    """Accept links from the best to the worst that join the end of a chain to another's start."""
    guess = guess.copy()
    chain = _chains(guess)
    taken = np.zeros(guess.size, np.bool_)
    taken[guess[guess != LAST]] = True

    def root(i: int) -> int:
        while chain[i] != i:
            chain[i] = chain[chain[i]]
            i = chain[i]
        return i

    order = np.argsort(-score, kind="stable")
    for w, v in zip(before[order].tolist(), behind[order].tolist(), strict=True):
        if guess[w] == LAST and not taken[v] and (one := root(w)) != (other := root(v)):
            guess[w], taken[v], chain[one] = v, True, other
    return guess


def _chains(guess: Indices) -> list[int]:
    """For each slice one of its chain, the same for all of it: a forest for union and find."""
    chain = np.where(guess == LAST, np.arange(guess.size), guess)
    steps = range(int(np.ceil(np.log2(max(guess.size, 2)))))
    return [int(i) for i in functools.reduce(lambda c, _: c[c], steps, chain)]
