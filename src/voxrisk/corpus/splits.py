"""Two sides of an evaluation that share nothing they must not share.

Who enrols and who is tried must differ by session where sessions are known: the room and the
microphone of one session would help the attacker, and the figure would measure the room. Every
split is checked before it is returned; a leak is an error, also in splits that come from elsewhere
(:func:`refuse_leak`).
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from voxrisk.corpus.table import Utterance
from voxrisk.types import InputError


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
    unit = _smallest_unit(utterances)
    enroll, trial, left_out = _divide(_speakers(utterances), unit, share, seed)
    if not enroll:
        raise InputError(f"no speaker has two {unit}s, so none can enrol and be tried as well")
    return _checked(Split({"enroll": enroll, "trial": trial}, unit, left_out, seed))


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
    unit = _smallest_unit(utterances)
    people = _speakers(utterances)
    able = [s for s in people if len({_key(row, unit) for row in people[s]}) > 1]
    wanted = len(able) if speakers is None else speakers
    if not 0 < wanted <= len(able):
        raise InputError(
            f"set B cannot have {wanted} speakers: {len(able)} of {len(people)} have two {unit}s"
        )
    chosen = set(np.random.default_rng(seed).permutation(able)[:wanted].tolist())
    b, a, _ = _divide({s: people[s] for s in people if s in chosen}, unit, share, seed)
    a += [row for s, rows in people.items() if s not in chosen for row in rows]
    return _checked(Split({"A": _in_order(a, utterances), "B": b}, unit, {}, seed))


def by_speaker(utterances: Sequence[Utterance], *, share: float = 0.2, seed: int = 0) -> Split:
    """Training and evaluation speech of different speakers.

    ``share`` of the speakers of each gender (at least one where there are two) are for evaluation.
    """
    _validate(share)
    people = _speakers(utterances)
    genders: dict[str | None, list[str]] = {}
    for speaker, rows in people.items():
        genders.setdefault(rows[0].gender, []).append(speaker)
    held: set[str] = set()
    random = np.random.default_rng(seed)
    for gender in sorted(genders, key=str):
        names = genders[gender]
        count = min(len(names) - 1, max(1, round(share * len(names))))
        held.update(random.permutation(names)[:count].tolist())
    if not held:
        raise InputError(f"{len(people)} speakers are too few for training and evaluation")
    sides = {
        "train": [row for row in utterances if row.speaker not in held],
        "evaluation": [row for row in utterances if row.speaker in held],
    }
    return _checked(Split(sides, "speaker", {}, seed))


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
                raise InputError(
                    f"leak: {row.utterance!r} and {other.utterance!r} are on different sides but "
                    f"share their {unit}"
                )


def _validate(share: float) -> None:
    if not 0 < share < 1:
        raise InputError(f"the share is {share}; it must lie between 0 and 1")


def _checked(split: Split) -> Split:
    first, second = split.sides.values()
    refuse_leak(first, second, by=split.by)
    return split


def _speakers(utterances: Iterable[Utterance]) -> dict[str, list[Utterance]]:
    people: dict[str, list[Utterance]] = {}
    for row in utterances:
        people.setdefault(row.speaker, []).append(row)
    return dict(sorted(people.items()))


def _smallest_unit(utterances: Sequence[Utterance]) -> str:
    """What is never cut in two: a session or, where none is known, an utterance."""
    unknown = [row for row in utterances if row.session is None]
    if unknown and len(unknown) < len(utterances):
        raise InputError(
            f"{unknown[0].utterance!r} has no session but others have ({len(unknown)} of "
            f"{len(utterances)} without); give all of them one, or none"
        )
    return "utterance" if unknown else "session"


def _key(row: Utterance, unit: str) -> tuple[str, ...]:
    if unit == "speaker":
        return (row.speaker,)
    known = unit == "session" and row.session is not None
    return (row.speaker, str(row.session)) if known else (row.utterance,)


def _divide(
    people: Mapping[str, list[Utterance]], unit: str, share: float, seed: int
) -> tuple[list[Utterance], list[Utterance], dict[str, str]]:
    _validate(share)
    first: list[Utterance] = []
    second: list[Utterance] = []
    left_out = {}
    for speaker, rows in people.items():
        groups: dict[tuple[str, ...], int] = {}
        for row in rows:
            groups[_key(row, unit)] = groups.get(_key(row, unit), 0) + 1
        if len(groups) < 2:
            left_out[speaker] = f"only one {unit}"
            continue
        # Seeded by the speaker: adding a speaker to the corpus does not move the others.
        random = np.random.default_rng([seed, zlib.crc32(speaker.encode())])
        names = sorted(groups)
        order = [names[i] for i in random.permutation(len(names))]
        taken: set[tuple[str, ...]] = set()
        for name in order[:-1]:
            taken.add(name)
            if sum(groups[n] for n in taken) >= share * len(rows):
                break
        first += [row for row in rows if _key(row, unit) in taken]
        second += [row for row in rows if _key(row, unit) not in taken]
    return first, second, left_out


def _in_order(rows: Iterable[Utterance], utterances: Iterable[Utterance]) -> list[Utterance]:
    chosen = {row.utterance for row in rows}
    return [row for row in utterances if row.utterance in chosen]
