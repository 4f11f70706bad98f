"""Original and anonymized utterances side by side: what every figure of usefulness is given."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from voxrisk.corpus import Utterance
from voxrisk.types import Estimate, InputError

SHOWN = 10

BySide = dict[str, Estimate]  # "original", "anonymized"
Cells = dict[str, list[Any]]  # column of utterances.csv → a cell for each utterance
Measured = tuple[dict[str, BySide], Cells]
Mark = TypeVar("Mark")


class MissingFigureError(Exception):
    """The input does not hold what this figure needs; the others are measured all the same."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Both versions of every utterance, and how to estimate and to work.

    Attributes:
        original: Utterances before anonymization.
        anonymized: The same after it, in the same order.
        texts: What was said in each, where known.
        asr: Recogniser, or None for that of the language.
        language: Language tag, or None for that of the table.
        compat: Whose way of computing a figure is repeated, or None.
        draw: ``resamples``, ``seed`` and ``confidence`` of the intervals.
        work: ``journal`` and ``workers``.
        marked: Utterances that networks mark, which is slow; None: all.
        memo: What one figure has found and another needs.
    """

    original: Sequence[Utterance]
    anonymized: Sequence[Utterance]
    texts: Sequence[str | None]
    asr: str | None
    language: str | None
    compat: str | None
    draw: Mapping[str, Any]
    work: Mapping[str, Any]
    marked: frozenset[str] | None = None
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def speakers(self) -> list[str]:
        """Who speaks in each."""
        return [row.speaker for row in self.original]

    @property
    def places(self) -> list[int]:
        """Which utterances networks mark."""
        rows = enumerate(self.original)
        return [i for i, row in rows if self.marked is None or row.utterance in self.marked]

    def marks(self, rate: Callable[..., Sequence[Mark]]) -> dict[str, Sequence[Mark]]:
        """What ``rate`` says of each marked utterance, by side."""
        both = [side[i] for side in (self.original, self.anonymized) for i in self.places]
        return by_side(rate(both, **self.work))

    def column(self, marks: Sequence[Any]) -> list[Any]:
        """Marks of the marked utterances as a column for all: nothing beside the others."""
        cells: list[Any] = [None] * len(self.original)
        for i, mark in zip(self.places, marks, strict=True):
            cells[i] = mark
        return cells


def by_side(values: Sequence[Mark]) -> dict[str, Sequence[Mark]]:
    """Values of original utterances, then of as many anonymized ones, by side.

    >>> by_side([1, 2, 3, 4])
    {'original': [1, 2], 'anonymized': [3, 4]}
    """
    half = len(values) // 2
    return {"original": values[:half], "anonymized": values[half:]}


def pair(original: Sequence[Utterance], anonymized: Sequence[Utterance]) -> list[Utterance]:
    """The anonymized version of each original utterance, by id.

    Raises:
        InputError: If there are none, an id stands twice, or an id is on one side only.
    """
    if not original:
        raise InputError("no original utterances to measure utility on")
    sides = []
    for side, rows in (("original", original), ("anonymized", anonymized)):
        by_id = {row.utterance: row for row in rows}
        counts = Counter(row.utterance for row in rows)
        if doubled := [name for name, count in counts.items() if count > 1]:
            raise InputError(f"{side} speech: utterance ids that stand twice: {_named(doubled)}")
        sides.append(by_id)
    left, right = sides
    problems = []
    if absent := [name for name in left if name not in right]:
        problems.append(f"original utterances without an anonymized version: {_named(absent)}")
    if absent := [name for name in right if name not in left]:
        problems.append(f"anonymized utterances without an original: {_named(absent)}")
    if problems:
        raise InputError("; ".join(problems) + ". Both sides need the same utterance ids")
    return [right[name] for name in left]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} ({', '.join(names[:SHOWN])}{more})"
