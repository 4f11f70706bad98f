"""Speakers by what a column says of them: kinds or bands of numbers, none too small to tell.

Figures of a handful of people say nothing about a group, and to leave them out in silence says
less: kinds of fewer than five speakers are put together, and so are people of whom nothing is
known.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voxrisk.corpus.attributes import (
    FEW_VALUES,
    band_edges,
    band_of,
    known_value,
    span_of,
    told_number,
)
from voxrisk.corpus.table import Utterance

SMALLEST = 5  # speakers of a group
BANDS = 4  # of a number
UNKNOWN = "not known"
SEVERAL = "several values"


@dataclass(frozen=True, slots=True)
class Groups:
    """The speakers of a corpus by one column.

    Attributes:
        column: Its name.
        member: Speaker → kind, band, or how small ones are called together.
        order: The groups as they are listed: kinds or bands in order, then what is left.
        made: Those of them that are named here and not by the table.
    """

    column: str
    member: Mapping[str, str]
    order: tuple[str, ...]
    made: frozenset[str] = frozenset()

    def is_made(self, kind: str) -> bool:
        """Whether a group has its name from here: a band, or what was put together."""
        return kind in self.made


def group_speakers(rows: Sequence[Utterance], column: str, *, smallest: int = SMALLEST) -> Groups:
    """Everybody in one group: by value, or for numbers in up to four bands of as many speakers.

    A column of utterances (a speaker with two values) is read by speaker too: whoever has several
    values is in a group of that name.

    >>> from pathlib import Path
    >>> rows = [Utterance(str(i), Path("x"), str(i), age=str(20 + i)) for i in range(12)]
    >>> group_speakers(rows, "age").order
    ('20 to 25', '26 to 31')
    """
    told: dict[str, set[str]] = {}
    for row in rows:
        told.setdefault(row.speaker, set()).update({known_value(row, column)} - {""})
    value = {
        speaker: next(iter(said)) if len(said) == 1 else SEVERAL if said else UNKNOWN
        for speaker, said in told.items()
    }
    known = {s: text for s, text in value.items() if text not in (SEVERAL, UNKNOWN)}
    numbers = {s: n for s, text in known.items() if (n := told_number(column, text)) is not None}
    many = column == "age" or len(set(numbers.values())) > FEW_VALUES
    if many and 2 * len(numbers) > len(known):
        return _bands(column, value, numbers, smallest)
    return _kinds(column, value, smallest)


def _kinds(column: str, value: Mapping[str, str], smallest: int) -> Groups:
    """Kinds are the same whatever the case of their letters; the commonest spelling names them."""
    spelled: dict[str, Counter[str]] = {}
    for text in value.values():
        spelled.setdefault(text.casefold(), Counter())[text] += 1
    name = {folded: found.most_common(1)[0][0] for folded, found in spelled.items()}
    kinds = {s: name[text.casefold()] for s, text in value.items()}
    size = Counter(kinds.values())
    rest = {UNKNOWN, SEVERAL}
    small = sorted(kind for kind, n in size.items() if n < smallest and kind not in rest)
    if len(small) > 1:
        together = f"{len(small)} smaller groups together"
        kinds = {s: together if kind in small else kind for s, kind in kinds.items()}
        rest.add(together)
    names = set(kinds.values())
    order = (*sorted(names - rest, key=str.casefold), *sorted(names & rest))
    return Groups(column, kinds, order, frozenset(rest))


def _bands(
    column: str, value: Mapping[str, str], numbers: Mapping[str, float], smallest: int
) -> Groups:
    for bands in range(BANDS, 0, -1):
        edges = band_edges(sorted(numbers.values()), bands) if bands > 1 else ()
        size = Counter(band_of(n, edges) for n in numbers.values())
        if min(size.values()) >= smallest or bands == 1:
            break
    spans = {
        band: span_of(min(own), max(own))
        for band in size
        if (own := [n for n in numbers.values() if band_of(n, edges) == band])
    }
    member = {
        s: spans[band_of(numbers[s], edges)]
        if s in numbers
        else (text if text in (UNKNOWN, SEVERAL) else UNKNOWN)
        for s, text in value.items()
    }
    order = [spans[band] for band in sorted(spans)]
    rest = sorted(set(member.values()) - set(order))
    return Groups(column, member, (*order, *rest), frozenset((*order, *rest)))
