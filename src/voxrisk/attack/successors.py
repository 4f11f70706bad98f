"""Which slice came next? What every attacker on shuffled slices has in common.

A scorer is a function of a block of slices. It gives one row for each of them and one column for
every slice there is: the higher, the likelier that the slice of the column came right after that of
the row. Rows are asked for in blocks, so no matrix of all pairs is ever held: 15,000 slices have
225 million pairs. Attackers on text, voice and cut are all such functions, and so is their fusion
(:mod:`voxrisk.attack.fusion`).

Reference: Maouche et al., "Enhancing Speech Privacy with Slicing", Interspeech 2022, Section 5.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.figures import FIGURES
from voxrisk.measure.ranking import RANK_FIGURES, Ranks, ranks_in_rows
from voxrisk.types import Estimate, InputError

Indices = NDArray[np.int64]
Scores = NDArray[np.float32]
# ``scorer(block (b,)) -> (b, n)``, fresh at every call. A slice never follows itself: -inf.
Scorer = Callable[[Indices], Scores]

LAST = -1  # the successor of a slice that has none
BLOCK_BYTES = 1 << 25  # of one block of scores
# The similarity rank disclosure asks about speakers; the paper on slices has the first four.
FIGURES_OF_RANKS = ("mean_rank", "median_rank", "precision_at_1", "precision_at_10", "found_in_5")


@dataclass(frozen=True, slots=True)
class Slices:
    """What is known of n slices, in any order: to the attacker the words, to us the rest.

    Attributes:
        speaker: Who said each slice; figures are given with intervals over these.
        source: The utterance that each slice was cut from.
        place: Its place there, from 0.
        words: What is said in it; empty where it is not known.
    """

    speaker: tuple[str, ...]
    source: tuple[str, ...]
    place: tuple[int, ...]
    words: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        sizes = {len(self.speaker), len(self.source), len(self.place), len(self.words)}
        if len(sizes) > 1:
            raise InputError(
                f"{len(self.speaker)} speakers, {len(self.source)} sources, {len(self.place)} "
                f"places and {len(self.words)} texts do not describe the same slices"
            )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def successor(self) -> Indices:
        """``(n,)`` which slice comes right after each one, -1 for the last of an utterance.

        >>> Slices(("a",) * 3, ("u", "u", "v"), (1, 0, 0), ((),) * 3).successor.tolist()
        [-1, 0, -1]
        """
        found = {key: i for i, key in enumerate(zip(self.source, self.place, strict=True))}
        if len(found) < len(self):
            raise InputError("two slices say that they are the same piece of the same utterance")
        after = [(s, p + 1) for s, p in zip(self.source, self.place, strict=True)]
        return np.array([found.get(key, LAST) for key in after], np.int64)


def blocks(rows: Indices, n: int, size: int | None = None) -> Iterator[Indices]:
    """The rows in blocks whose scores ``(b, n)`` take 32 MB at most."""
    size = size or max(1, BLOCK_BYTES // (4 * max(n, 1)))
    for start in range(0, rows.size, size):
        yield rows[start : start + size]


def asked(scorer: Scorer, block: Indices, n: int) -> Scores:
    """The scores of a block, refused unless they are a row of n numbers for each slice.

    -inf says "never"; NaN and +inf say that the attack is broken, which must not look like privacy.
    """
    scores = scorer(block)
    if scores.shape != (block.size, n):
        raise InputError(
            f"a scorer gave scores {scores.shape} for {block.size} of {n} slices; "
            f"it must give {(block.size, n)}"
        )
    bad = ~(scores < np.inf)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"slice {column} after slice {block[row]} got the score {scores[row, column]}; "
            "the attack is broken, and no figure can be made of it"
        )
    return scores


def successor_ranks(
    scorer: Scorer,
    successor: Indices,
    *,
    block: int | None = None,
    tell: Callable[[int], None] | None = None,
) -> Ranks:
    """Where the true successor stands among all other slices, for every slice that has one.

    Args:
        scorer: The attacker.
        successor: ``(n,)`` which slice comes right after each one, -1 for none.
        block: Slices asked for at a time; None: as many as 32 MB of scores hold.
        tell: Called with the number of slices done after each block.

    Returns:
        Ranks among the n - 1 other slices; slices with the same score share the mean of their
        ranks, so that an attacker who scores all alike gets the middle.

    Raises:
        InputError: If no slice has a successor, or a score is NaN or +inf.

    >>> ahead = lambda rows: -np.abs(rows[:, None] + 1 - np.arange(4)).astype(np.float32)
    >>> successor_ranks(ahead, np.array([1, 2, 3, -1])).rank
    array([1., 1., 1.])
    """
    n = successor.size
    rows = np.flatnonzero(successor != LAST)
    if not rows.size:
        raise InputError("no slice has a successor, so there is nothing to look for")
    if n < 3:
        raise InputError(f"{n} slices: the right successor has nothing to be confused with")
    found = []
    for part in blocks(rows, n, block):
        found.append(ranks_in_rows(asked(scorer, part, n), successor[part], part))
        if tell is not None:
            tell(part.size)
    return Ranks(rows, np.concatenate(found), np.full(rows.size, n - 1, np.int64))


def rank_estimates(
    result: Ranks, speaker: Sequence[str] | NDArray[np.str_], *, confidence: float = 0.95
) -> Mapping[str, Estimate]:
    """The paper's four figures of ranks, and how often one of the first five is right.

    A figure for which there are too few slices is left out; one speaker alone gives no interval.

    Args:
        result: From :func:`successor_ranks`.
        speaker: ``(n,)`` who said each slice; intervals resample them.
        confidence: Coverage of the intervals.
    """
    people = np.unique(np.asarray(speaker), return_inverse=True)[1][result.query].astype(np.int64)
    several = np.unique(people).size > 1
    n = {
        "slice": int(result.candidates[0]) + 1,
        "successor": int(result.query.size),
        "speaker": int(np.unique(people).size),
    }
    found = {}
    for name in FIGURES_OF_RANKS:
        figure = RANK_FIGURES[name]
        try:
            value = figure.value(result)
        except InputError:  # fewer than ten candidates have no best tenth
            continue
        span = figure.interval(result, people, confidence) if several else None
        found[name] = Estimate(name, value, figure.chance(result), n, FIGURES[name].source, span)
    return found


def among(scorer: Scorer, keep: Indices, n: int) -> Scorer:
    """The same attacker when only the slices ``keep (k,)`` of the n are on the table."""
    return lambda block: np.ascontiguousarray(asked(scorer, keep[block], n)[:, keep])
