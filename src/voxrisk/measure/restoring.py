"""How much of cut utterances an attacker has put together again.

The attacker says for each slice which one follows it. Right is what was successive in an utterance.
All figures are shares between 0 (nothing restored) and 1; chance is what putting the slices of each
table in a random order gives, on average over seeded draws.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.intervals import rate_interval
from voxrisk.types import Estimate, InputError, Interval

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
NONE = -1
DRAWS = 200  # random orders that chance is the mean of
SOURCE = "voxrisk; the slicing paper (Maouche et al., Interspeech 2022) stops at pairs"


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """For each utterance of two slices or more, what was restored of it.

    Attributes:
        pairs: ``(u,)`` successive pairs it has.
        right: ``(u,)`` how many of them the attacker put together.
        run: ``(u,)`` how many of them stand in its longest restored run.
        speaker: ``(u,)`` who said it, by number.
    """

    pairs: Indices
    right: Indices
    run: Indices
    speaker: Indices


def restored(guess: Indices, successor: Indices, speaker: Indices) -> Restored:
    """Count what is right, utterance by utterance.

    Args:
        guess: ``(n,)`` the slice that the attacker puts after each one, -1 for none.
        successor: ``(n,)`` the slice that came after it, -1 for the last of an utterance.
        speaker: ``(n,)`` who said each slice, by number.

    Raises:
        InputError: If no utterance has two slices.

    >>> restored(np.array([1, 2, 0, -1]), np.array([1, 2, 3, -1]), np.zeros(4, int)).run
    array([2])
    """
    follows = np.zeros(successor.size, np.bool_)
    follows[successor[successor != NONE]] = True
    heads = np.flatnonzero(~follows & (successor != NONE))
    if not heads.size:
        raise InputError("no utterance has two slices, so there is nothing to put together")
    pairs, right, run = (np.zeros(heads.size, np.int64) for _ in range(3))
    streak = np.zeros(heads.size, np.int64)
    at = heads.copy()
    alive = np.arange(heads.size)
    # All utterances are walked at once, one slice at a time.
    while alive.size:
        after = successor[at[alive]]
        hit = guess[at[alive]] == after
        pairs[alive] += 1
        right[alive] += hit
        streak[alive] = np.where(hit, streak[alive] + 1, 0)
        run[alive] = np.maximum(run[alive], streak[alive])
        at[alive] = after
        alive = alive[successor[after] != NONE]
    return Restored(pairs, right, run, speaker[heads])


@dataclass(frozen=True, slots=True)
class RestoredFigure:
    """One figure: what counts, out of what, for each utterance."""

    label: str
    events: Callable[[Restored], Floats]
    trials: Callable[[Restored], Floats]


def _every(result: Restored) -> Floats:
    return np.ones(result.pairs.size)


RESTORED_FIGURES: Mapping[str, RestoredFigure] = {
    "pairs_restored": RestoredFigure(
        "Successive pairs put together",
        lambda r: r.right.astype(np.float64),
        lambda r: r.pairs.astype(np.float64),
    ),
    "longest_run": RestoredFigure(
        "Longest restored run, share of the utterance",
        lambda r: np.asarray(r.run / r.pairs, np.float64),
        _every,
    ),
    "utterances_whole": RestoredFigure(
        "Utterances restored whole",
        lambda r: (r.right == r.pairs).astype(np.float64),
        _every,
    ),
}


def restored_estimates(
    guess: Indices,
    successor: Indices,
    speaker: Indices,
    table: Indices | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> Mapping[str, Estimate]:
    """The figures of :data:`RESTORED_FIGURES`, each with its interval over speakers and its chance.

    Args:
        guess: ``(n,)`` the slice that the attacker puts after each one, -1 for none.
        successor: ``(n,)`` the slice that came after it, -1 for none.
        speaker: ``(n,)`` who said each slice, by number.
        table: ``(n,)`` the table on which each slice lay, where the attacker could tell some
            apart; None: all on one.
        confidence: Coverage of the intervals.
        seed: Of the random orders that chance is the mean of.
    """
    found = restored(guess, successor, speaker)
    tables = np.zeros(guess.size, np.int64) if table is None else table
    chance = _chance(successor, speaker, tables, seed)
    n = {
        "slice": int(guess.size),
        "successor": int(found.pairs.sum()),
        "utterance": int(found.pairs.size),
        "speaker": int(np.unique(found.speaker).size),
    }
    return {
        name: Estimate(
            name, _share(figure, found), chance[name], n, SOURCE,
            _interval(figure, found, confidence), {"chance_draws": DRAWS, "seed": seed},
        )
        for name, figure in RESTORED_FIGURES.items()
    }  # fmt: skip


def _share(figure: RestoredFigure, found: Restored) -> float:
    return float(figure.events(found).sum() / figure.trials(found).sum())


def _interval(figure: RestoredFigure, found: Restored, confidence: float) -> Interval | None:
    """None for one speaker alone."""
    people = np.unique(found.speaker, return_inverse=True)[1]
    if not people.max():
        return None
    events, trials = (np.bincount(people, f(found)) for f in (figure.events, figure.trials))
    return rate_interval(events, trials, confidence=confidence)


def _chance(successor: Indices, speaker: Indices, table: Indices, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    total = dict.fromkeys(RESTORED_FIGURES, 0.0)
    for _ in range(DRAWS):
        drawn = random_order(table, rng)
        found = restored(drawn, successor, speaker)
        for name, figure in RESTORED_FIGURES.items():
            total[name] += _share(figure, found) / DRAWS
    return total


def random_order(table: Indices, rng: np.random.Generator) -> Indices:
    """The slices of each table in one row, in an order drawn at random: ``(n,)`` what follows."""
    order = np.lexsort((rng.random(table.size), table))
    guess = np.full(table.size, NONE, np.int64)
    same = table[order[:-1]] == table[order[1:]]
    guess[order[:-1][same]] = order[1:][same]
    return guess
