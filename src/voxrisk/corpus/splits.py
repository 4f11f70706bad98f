"""Two sides of an evaluation that share nothing they must not share.

Who enrols and who is tried must differ by session where sessions are known: the room and the
microphone of one session would help the attacker, and the figure would measure the room. Every
split is checked before it is returned; a leak is an error, also in splits that come from elsewhere
(:func:`refuse_leak`). Corpora are looked at by column (:mod:`voxrisk.corpus.columns`), so a million
rows take seconds.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.columns import codes, labels, numbers, take
from voxrisk.corpus.table import Utterance
from voxrisk.types import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Two sides.

    Attributes:
        sides: Name → utterances, e.g. ``{"enroll": [...], "trial": [...]}``.
        by: What is never on both sides: ``"session"``, ``"utterance"`` or ``"speaker"``.
        left_out: Speaker → why nothing of this speaker is on either side.
        seed: Of the random choice.
    """

    sides: Mapping[str, Sequence[Utterance]]
    by: str
    left_out: Mapping[str, str]
    seed: int


def by_session(utterances: Sequence[Utterance], *, share: float = 0.5, seed: int = 0) -> Split:
    """Enrolment and trial speech of the same speakers.

    Of each speaker, sessions are drawn for enrolment until they hold ``share`` of the utterances or
    more; at least one session stays for the trials. Where the corpus knows no sessions, single
    utterances are drawn instead and ``by`` says so. A speaker with one session only is left out.
    """
    facts = _facts(utterances)
    first = _divide(facts, share, seed)
    few = facts.groups < 2
    if few.all():
        raise InputError(
            f"no speaker has two {facts.unit}s, so none can enrol and be tried as well"
        )
    left_out = {facts.people[s]: f"only one {facts.unit}" for s in np.flatnonzero(few).tolist()}
    order = facts.by_speaker
    order = order[~few[facts.speaker[order]]]
    sides = {"enroll": order[first[order]], "trial": order[~first[order]]}
    return _checked(utterances, facts, sides, facts.unit, left_out, seed)


def a_and_b(
    utterances: Sequence[Utterance],
    *,
    speakers: int | None = None,
    share: float = 0.5,
    seed: int = 0,
) -> Split:
    """Sets A and B of the singling-out and linkability attacks.

    All speakers are in A; ``speakers`` of them (None: all that can) are in B too, with other
    sessions (or utterances, where sessions are not known): ``share`` of theirs.
    """
    facts = _facts(utterances)
    able = np.flatnonzero(facts.groups > 1)
    wanted = able.size if speakers is None else speakers
    if not 0 < wanted <= able.size:
        raise InputError(
            f"set B cannot have {wanted} speakers: {able.size} of {len(facts.people)} have two "
            f"{facts.unit}s"
        )
    chosen = np.zeros(len(facts.people), dtype=bool)
    chosen[np.random.default_rng(seed).permutation(able)[:wanted]] = True
    in_b = _divide(facts, share, seed) & chosen[facts.speaker]
    sides = {"A": np.flatnonzero(~in_b), "B": facts.by_speaker[in_b[facts.by_speaker]]}
    return _checked(utterances, facts, sides, facts.unit, {}, seed)


def by_speaker(utterances: Sequence[Utterance], *, share: float = 0.2, seed: int = 0) -> Split:
    """Training and evaluation speech of different speakers.

    ``share`` of the speakers of each gender (at least one where there are two) are for evaluation.
    """
    _validate(share)
    facts = _facts(utterances, by="speaker")
    code, values = codes(utterances, "gender")
    of_person = code[np.unique(facts.speaker, return_index=True)[1]]
    held = np.zeros(len(facts.people), dtype=bool)
    random = np.random.default_rng(seed)
    for gender in (-1, *range(len(values))):  # unknown first, then f and m
        names = np.flatnonzero(of_person == gender)
        if names.size:
            count = min(names.size - 1, max(1, round(share * names.size)))
            held[random.permutation(names)[:count]] = True
    if not held.any():
        raise InputError(f"{len(facts.people)} speakers are too few for training and evaluation")
    there = held[facts.speaker]
    sides = {"train": np.flatnonzero(~there), "evaluation": np.flatnonzero(there)}
    return _checked(utterances, facts, sides, "speaker", {}, seed)


def refuse_leak(first: Iterable[Utterance], second: Iterable[Utterance], *, by: str) -> None:
    """Raise if an utterance, a session or a speaker (``by``) is on both sides.

    The same stretch of the same audio file under two ids counts as the same utterance.
    """
    if by not in ("utterance", "session", "speaker"):
        raise ValueError(f"by is {by!r}; it must be utterance, session or speaker")
    first, second = list(first), list(second)
    for unit in ("utterance", by):
        known = {_key(row, unit): row for row in first}
        sounds = {(row.path, row.start, row.end): row for row in first}
        for row in second:
            other = known.get(_key(row, unit)) or sounds.get((row.path, row.start, row.end))
            if other is not None:
                raise _leak(row, other, unit)


def _validate(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"the share is {share}; it must lie between 0 and 1")


def _key(row: Utterance, unit: str) -> tuple[str, ...]:
    if unit == "speaker":
        return (row.speaker,)
    known = unit == "session" and row.session is not None
    return (row.speaker, str(row.session)) if known else (row.utterance,)


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """What a split looks at.

    Attributes:
        people: The speakers, sorted.
        speaker: ``(n,)`` whose each row is.
        unit: What is never cut in two: ``"session"``, ``"utterance"`` or ``"speaker"``.
        group: ``(n,)`` which of these each row belongs to; they rise with their names.
        groups: ``(people,)`` how many each speaker has.
        by_speaker: ``(n,)`` the rows, speaker by speaker, otherwise in their order.
    """

    people: list[str]
    speaker: Ints
    unit: str
    group: Ints
    groups: Ints
    by_speaker: Ints


def _facts(rows: Sequence[Utterance], by: str | None = None) -> _Facts:
    speaker, people = codes(rows, "speaker")
    unit, group = (by, speaker) if by else _smallest_unit(rows, speaker)
    own = speaker[np.unique(group, return_index=True)[1]]
    groups = np.bincount(own, minlength=len(people))
    return _Facts(people, speaker, unit, group, groups, np.argsort(speaker, kind="stable"))


def _smallest_unit(rows: Sequence[Utterance], speaker: Ints) -> tuple[str, Ints]:
    """What is never cut in two: a session or, where none is known, an utterance."""
    session, names = codes(rows, "session")
    unknown = np.flatnonzero(session < 0)
    if 0 < unknown.size < session.size:
        raise InputError(
            f"{rows[int(unknown[0])].utterance!r} has no session but others have ({unknown.size} "
            f"of {session.size} without); give all of them one, or none"
        )
    if unknown.size:
        return "utterance", codes(rows, "utterance")[0]
    return "session", np.unique(speaker * len(names) + session, return_inverse=True)[1]


def _divide(facts: _Facts, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows ``(n,)`` are on the first side: ``share`` of each speaker, in whole units."""
    _validate(share)
    order = np.lexsort((facts.group, facts.speaker))
    speaker, group = facts.speaker[order], facts.group[order]
    begins = np.ones(order.size, dtype=bool)
    begins[1:] = (speaker[1:] != speaker[:-1]) | (group[1:] != group[:-1])
    unit = np.cumsum(begins) - 1  # of each row, numbered through
    sizes = np.bincount(unit)
    taken = np.zeros(sizes.size, dtype=bool)
    ends = np.cumsum(facts.groups)
    for who, (start, end) in enumerate(zip(ends - facts.groups, ends, strict=True)):
        if end - start < 2:
            continue
        # Seeded by the speaker: adding a speaker to the corpus does not move the others.
        random = np.random.default_rng([seed, zlib.crc32(facts.people[who].encode())])
        drawn = random.permutation(end - start) + start
        reached = np.cumsum(sizes[drawn])
        count = int(np.searchsorted(reached, share * reached[-1])) + 1
        taken[drawn[: min(count, drawn.size - 1)]] = True
    first = np.empty(order.size, dtype=bool)
    first[order] = taken[unit]
    return first


def _checked(
    rows: Sequence[Utterance],
    facts: _Facts,
    sides: Mapping[str, Ints],
    by: str,
    left_out: Mapping[str, str],
    seed: int,
) -> Split:
    """The split, if nothing that must not be is on both sides."""
    first, second = sides.values()
    keys = {"utterance": labels(rows, "utterance"), "sound": _sounds(rows), by: facts.group}
    for unit, key in keys.items():
        there = np.zeros(int(key.max()) + 1, dtype=bool)
        there[key[first]] = True
        if (both := second[there[key[second]]]).size:
            other = first[key[first] == key[both[0]]][0]
            raise _leak(rows[int(both[0])], rows[int(other)], unit)
    chosen = {name: take(rows, places) for name, places in sides.items()}
    return Split(chosen, by, left_out, seed)


def _sounds(rows: Sequence[Utterance]) -> Ints:
    """The same number for the same stretch of the same file."""
    path = labels(rows, "path")
    edges = np.stack([numbers(rows, "start"), numbers(rows, "end")])
    if np.isnan(edges).all():
        return path
    key = np.vstack([path, np.nan_to_num(edges, nan=-1.0)])
    return np.unique(key, axis=1, return_inverse=True)[1].astype(np.int64)


def _leak(row: Utterance, other: Utterance, unit: str) -> InputError:
    return InputError(
        f"leak: {row.utterance!r} and {other.utterance!r} are on different sides but share their "
        f"{unit}"
    )
