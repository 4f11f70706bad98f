"""Any column of a manifest as an attribute: classes or numbers, and what of it can be used.

An attribute is a fact of a speaker (gender, age, accent) or of an utterance (emotion). Speakers of
whom it is not known take no part. A class that fewer than three speakers have is left out: nothing
can be learned about it from some people and tested on others. A number is also cut into up to four
groups of about as many speakers each, so that it can be told in bits like a class.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from voxrisk.corpus.table import COLUMNS, Utterance
from voxrisk.types import InputError

FEWEST = 3  # speakers of a class: two to learn from while one is tested
MOST_CLASSES = 50
GROUPS = 4  # of a number
FEW_VALUES = 8  # so many different numbers are classes, except for an age
OLDEST = 120  # years
IDENTITY = ("utterance", "path", "speaker", "text", "duration", "start", "end")
UNKNOWN = {"", "-", "?", "n/a", "na", "nan", "none", "null", "unk", "unknown", "not known"}
YEARS = re.compile(r"[+-]?\d+([.,]\d+)?(?=\s*(years?( old)?|yrs?|y|yo)?\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a corpus.

    Attributes:
        name: The column.
        kind: ``"category"`` or ``"number"``.
        per: ``"speaker"`` or ``"utterance"``: what it is a fact of.
        classes: Names of the classes, or of the groups of numbers.
        edges: Where one group of numbers ends and the next begins.
        speakers: How many speakers each class has.
        label: Utterance → class.
        value: Utterance → number.
        unlabelled: Speakers of whom nothing is known.
        rare: Classes left out because fewer than :data:`FEWEST` speakers have them.
        rare_speakers: Speakers who had no other class and are left out with them.
        unread: Speakers whose value is no number while those of most are.
        refused: Why it cannot be assessed; empty if it can.
    """

    name: str
    kind: str = "category"
    per: str = "speaker"
    classes: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    speakers: tuple[int, ...] = ()
    label: Mapping[str, int] = field(default_factory=dict)
    value: Mapping[str, float] = field(default_factory=dict)
    unlabelled: int = 0
    rare: int = 0
    rare_speakers: int = 0
    unread: int = 0
    refused: str = ""


def columns_of(rows: Iterable[Utterance]) -> list[str]:
    """Columns that can be attributes: known of somebody, and not what a row is found by."""
    names = [c for c in COLUMNS if c not in IDENTITY]
    rows = list(rows)
    extra = sorted({key for row in rows for key in row.extra})
    return [name for name in [*names, *extra] if any(known_value(row, name) for row in rows)]


def known_value(row: Utterance, name: str) -> str:
    """What the manifest says, or nothing where it says that it does not know."""
    found = getattr(row, name) if name in COLUMNS else row.extra.get(name)
    text = " ".join(str(found if found is not None else "").split())
    return "" if text.casefold() in UNKNOWN else text


def read_number(text: str) -> float | None:
    """A number, with or without "years" behind it.

    >>> read_number("27"), read_number("27,5 years"), read_number("twenties"), read_number("20-29")
    (27.0, 27.5, None, None)
    """
    found = YEARS.match(text.strip())
    return float(found[0].replace(",", ".")) if found else None


def told_number(name: str, text: str) -> float | None:
    """The number that a column tells; nobody is 1234 years old, so that is no age.

    >>> told_number("age", "31"), told_number("age", "1234"), told_number("height", "1234")
    (31.0, None, 1234.0)
    """
    number = read_number(text)
    possible = name != "age" or (number is not None and 0 < number <= OLDEST)
    return number if possible else None


def read_attribute(rows: Sequence[Utterance], name: str) -> Attribute:
    """The attribute that a column holds.

    Raises:
        InputError: If the column is not there or names what it should be inferred of.
    """
    if name in IDENTITY:
        raise InputError(
            f"{name!r} is no attribute of a person: it is what an utterance is known by; choose "
            f"one of {', '.join(columns_of(rows)) or 'none (the manifest has no other column)'}"
        )
    told = {row.utterance: text for row in rows if (text := known_value(row, name))}
    if name not in COLUMNS and not any(name in row.extra for row in rows):
        raise InputError(
            f"no column {name!r} in the manifest; there is "
            f"{', '.join(columns_of(rows)) or 'none that could be an attribute'}"
        )
    speaker = {row.utterance: row.speaker for row in rows}
    everybody = set(speaker.values())
    unlabelled = len(everybody - {speaker[u] for u in told})
    if not told:
        return Attribute(name, unlabelled=unlabelled, refused="it is not known of anybody")
    numbers = {u: n for u, text in told.items() if (n := told_number(name, text)) is not None}
    many = name == "age" or len(set(numbers.values())) > FEW_VALUES
    if many and 2 * len(numbers) > len(told):
        return _number(name, numbers, told, speaker, unlabelled)
    return _category(name, told, speaker, unlabelled)


def labels_like(
    rows: Sequence[Utterance], like: Attribute
) -> tuple[dict[str, int], dict[str, float]]:
    """Class and number of the utterances of another corpus, by the classes of ``like``."""
    classes = {name: i for i, name in enumerate(like.classes)}
    label, value = {}, {}
    for row in rows:
        text = known_value(row, like.name)
        if like.kind == "category":
            if text.casefold() in classes:
                label[row.utterance] = classes[text.casefold()]
        elif (number := told_number(like.name, text)) is not None:
            value[row.utterance] = number
            label[row.utterance] = band_of(number, like.edges)
    return label, value


def _category(
    name: str, told: Mapping[str, str], speaker: Mapping[str, str], unlabelled: int
) -> Attribute:
    folded = {u: text.casefold() for u, text in told.items()}
    people: dict[str, set[str]] = {}
    for u, text in folded.items():
        people.setdefault(text, set()).add(speaker[u])
    if len(people) == 1:
        return Attribute(
            name, unlabelled=unlabelled, refused="everybody has the same value: there is nothing "
            "to infer",
        )  # fmt: skip
    kept = sorted(text for text, who in people.items() if len(who) >= FEWEST)
    rare = len(people) - len(kept)
    if len(kept) < 2:
        return Attribute(
            name, unlabelled=unlabelled, rare=rare,
            refused=f"of {len(people)} classes only {len(kept)} "
            f"{'has' if len(kept) == 1 else 'have'} at least {FEWEST} speakers; some must be "
            "learned from and others tested",
        )  # fmt: skip
    if len(kept) > MOST_CLASSES:
        return Attribute(
            name, unlabelled=unlabelled,
            refused=f"{len(kept)} classes are more than {MOST_CLASSES}: join them to fewer",
        )  # fmt: skip
    place = {text: i for i, text in enumerate(kept)}
    label = {u: place[text] for u, text in folded.items() if text in place}
    lost = {speaker[u] for u in folded} - {speaker[u] for u in label}
    return Attribute(
        name,
        per=_per(folded, speaker),
        classes=tuple(kept),
        speakers=tuple(len(people[text]) for text in kept),
        label=label,
        unlabelled=unlabelled,
        rare=rare,
        rare_speakers=len(lost),
    )


def _number(
    name: str,
    numbers: Mapping[str, float],
    told: Mapping[str, str],
    speaker: Mapping[str, str],
    unlabelled: int,
) -> Attribute:
    unread = len({speaker[u] for u in told} - {speaker[u] for u in numbers})
    own: dict[str, list[float]] = {}
    for u, number in numbers.items():
        own.setdefault(speaker[u], []).append(number)
    middle = sorted(sum(v) / len(v) for v in own.values())
    if middle[0] == middle[-1] and len(set(numbers.values())) == 1:
        why = "everybody has the same value: there is nothing to infer"
        return Attribute(name, "number", unlabelled=unlabelled, unread=unread, refused=why)
    for groups in range(GROUPS, 1, -1):
        edges = band_edges(middle, groups)
        label = {u: band_of(number, edges) for u, number in numbers.items()}
        people: list[set[str]] = [set() for _ in range(len(edges) + 1)]
        for u, group in label.items():
            people[group].add(speaker[u])
        if edges and min(map(len, people)) >= FEWEST:
            spans = [
                sorted(n for u, n in numbers.items() if label[u] == g) for g in range(len(people))
            ]
            return Attribute(
                name,
                "number",
                per=_per({u: str(n) for u, n in numbers.items()}, speaker),
                classes=tuple(span_of(s[0], s[-1]) for s in spans),
                edges=edges,
                speakers=tuple(map(len, people)),
                label=label,
                value=dict(numbers),
                unlabelled=unlabelled,
                unread=unread,
            )
    why = f"{len(middle)} speakers with a number cannot be cut into two groups of {FEWEST}"
    return Attribute(name, "number", unlabelled=unlabelled, unread=unread, refused=why)


def band_edges(middle: Sequence[float], groups: int) -> tuple[float, ...]:
    """Cuts halfway between neighbours that differ, near the quantiles."""
    gaps = [i for i, (a, b) in enumerate(pairwise(middle), start=1) if b > a]
    found = set()
    for g in range(1, groups):
        if gaps:
            at = min(gaps, key=lambda i, g=g: abs(i - g * len(middle) / groups))  # type: ignore[misc]
            found.add(0.5 * (middle[at - 1] + middle[at]))
    return tuple(sorted(found))


def band_of(number: float, edges: Sequence[float]) -> int:
    """In which of the groups between the cuts a number lies."""
    return sum(number > edge for edge in edges)


def span_of(low: float, high: float) -> str:
    """A group of numbers for people.

    >>> span_of(20.0, 29.0), span_of(7.5, 7.5)
    ('20 to 29', '7.5')
    """
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _per(told: Mapping[str, str], speaker: Mapping[str, str]) -> str:
    """A fact of the speaker, unless somebody has two values."""
    own: dict[str, str] = {}
    return (
        "speaker"
        if all(own.setdefault(speaker[u], text) == text for u, text in told.items())
        else "utterance"
    )
