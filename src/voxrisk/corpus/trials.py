"""Trial lists: which enrolment is compared with which utterance, and who is the same speaker.

Two small tables. ``enroll.csv`` says which utterances make an enrolment (``enroll,utterance``, one
line for each utterance); ``trials.csv`` says what is compared (``enroll,trial,label``, where the
label is ``target`` or ``nontarget``), which :func:`voxrisk.files.scores.read_trials` reads. Both
together are a *set*; a corpus may come with several (:class:`Lists`).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.files.scores import read_speakers
from voxrisk.files.tables import read_rows, write_table
from voxrisk.types import InputError

# Kaldi's order, which counts where there is no header; and the names elsewhere.
ENROLMENT = {
    "utterance": ("utts", "utt", "enroll_utt"),
    "enroll": ("model", "enrol", "enroll_id", "speaker", "spk"),
}
IN_FOLDER = ("enrolls", "enroll.csv", "utt2spk")


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison: an enrolment, an utterance, and whether both are the same speaker."""

    enroll: str
    trial: str
    target: bool


@dataclass(frozen=True, slots=True)
class Lists:
    """The two lists of one set of trials, as files or as VoicePrivacy's directories.

    Attributes:
        trials: What is compared.
        enroll: Which utterances make an enrolment; None: an enrolment is an utterance of that id,
            or all of a speaker that the list does not try.
        name: Of the set, as tables print it; empty: its number.
    """

    trials: Path
    enroll: Path | None = None
    name: str = ""


def pair_lists(enroll: Sequence[str | Path], trials: Sequence[str | Path]) -> tuple[Lists, ...]:
    """The sets of an evaluation from lists as a user names them, ``[NAME=]LIST``.

    One enrolment list serves all trial lists, or there is one for each.

    >>> [(s.name, str(s.enroll)) for s in pair_lists(["enrolls"], ["f=trials_f", "m=trials_m"])]
    [('f', 'enrolls'), ('m', 'enrolls')]
    """
    if enroll and not trials:
        raise InputError("an enrolment list needs its trial list: add --trials LIST")
    if len(enroll) not in (0, 1, len(trials)):
        raise InputError(
            f"{len(enroll)} enrolment lists for {len(trials)} trial lists: give one for all, or "
            "one for each"
        )
    named = [_named(text) for text in trials]
    owned = [_named(text) for text in enroll]
    sets = []
    for i, (name, path) in enumerate(named):
        label, own = owned[min(i, len(owned) - 1)] if owned else ("", None)
        if name and label and name != label and len(owned) > 1:
            raise InputError(
                f"set {i + 1} is called {label!r} by its enrolment list and {name!r} by its trial "
                "list; name both alike, or only one of them"
            )
        sets.append(Lists(path, own, name or (label if len(owned) > 1 else "")))
    return tuple(sets)


def _named(text: str | Path) -> tuple[str, Path]:
    name, sign, path = str(text).partition("=")
    return (name, Path(path)) if sign and not Path(text).exists() else ("", Path(text))


def make_trials(
    enroll: Sequence[Utterance],
    trial: Sequence[Utterance],
    *,
    same_gender: bool = False,
    nontargets: int | None = None,
    seed: int = 0,
) -> Iterator[Trial]:
    """Compare every trial utterance with every enrolled speaker; an enrolment is a speaker.

    Args:
        enroll: Enrolment utterances.
        trial: Trial utterances.
        same_gender: Leave out pairs of different gender, as the VoicePrivacy challenges do; every
            speaker's gender must be known then.
        nontargets: At most so many other speakers for each trial utterance, drawn with ``seed``.
        seed: Of that draw.
    """
    genders = {row.speaker: row.gender for row in enroll}
    if same_gender:
        unknown = [r.utterance for r in (*enroll, *trial) if r.gender is None]
        if unknown:
            raise InputError(f"same-gender trials need the gender of {unknown[0]!r}")
    random = np.random.default_rng(seed)
    for row in trial:
        others = [
            s
            for s, gender in genders.items()
            if s != row.speaker and (not same_gender or gender == row.gender)
        ]
        if nontargets is not None and nontargets < len(others):
            kept = np.sort(random.choice(len(others), nontargets, replace=False))
            others = [others[i] for i in kept]
        if row.speaker in genders:
            yield Trial(row.speaker, row.utterance, True)
        for other in others:
            yield Trial(other, row.utterance, False)


def write_trials(path: Path | str, trials: Iterable[Trial]) -> int:
    """Write ``enroll,trial,label`` line by line; returns how many."""
    count = 0
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["enroll", "trial", "label"])
        for row in trials:
            writer.writerow([row.enroll, row.trial, "target" if row.target else "nontarget"])
            count += 1
    return count


def write_enrolments(path: Path | str, enroll: Iterable[Utterance]) -> None:
    """Write ``enroll,utterance``; an enrolment is a speaker."""
    write_table(path, ("enroll", "utterance"), ((row.speaker, row.utterance) for row in enroll))


def read_enrolments(
    path: Path | str, *, speakers: Mapping[str, str] | None = None
) -> Mapping[str, list[str]]:
    """Enrolment → its utterances.

    Reads ``enroll,utterance`` with one line for each utterance, a table whose ``utts`` column holds
    several divided by blanks (``model,utts``), Kaldi's ``utt2spk`` (``utterance speaker``), and
    VoicePrivacy's ``enrolls``: one id a line, an enrolment is a speaker. A folder stands for the
    list in it.

    Args:
        path: The list, or the folder of it.
        speakers: Utterance → speaker, for a list of ids without ``utt2spk`` beside it.

    Raises:
        InputError: If a line is malformed, a cell is empty, or an utterance stands twice in one
            enrolment; the message names file and line.
    """
    path = Path(path)
    if path.is_dir():
        inside = [path / name for name in IN_FOLDER if (path / name).is_file()]
        if not inside:
            raise InputError(f"{path}: no {' or '.join(IN_FOLDER)} in this folder")
        path = inside[0]
    enrolments: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for where, utterances, enroll in _enrolment_rows(path, speakers):
        if not enroll or not utterances:
            raise InputError(f"{where}: enroll or utterance is empty")
        for utterance in utterances.split():
            if (enroll, utterance) in seen:
                raise InputError(f"{where}: {utterance!r} is already in enrolment {enroll!r}")
            seen.add((enroll, utterance))
            enrolments.setdefault(enroll, []).append(utterance)
    return enrolments


def _enrolment_rows(
    path: Path, speakers: Mapping[str, str] | None
) -> Iterator[tuple[str, str, str]]:
    """Where, utterances, enrolment."""
    if not _one_column(path):
        for line, (utterances, enroll) in read_rows(path, ENROLMENT):
            yield f"{path} line {line}", utterances, enroll
        return
    beside = path.with_name("utt2spk")
    known = read_speakers(beside) if beside.is_file() else speakers or {}
    for line, (utterance,) in read_rows(path, {"utterance": ("utt",)}):
        if utterance not in known:
            raise InputError(
                f"{path} line {line}: who speaks in {utterance!r}? There is no speaker of it in "
                f"{beside}; put one there, or write enroll,utterance"
            )
        yield f"{path} line {line}", utterance, known[utterance]


def _one_column(path: Path) -> bool:
    if not path.is_file() or path.suffix == ".parquet":
        return False
    with path.open("rb") as stream:
        if stream.read(2) == b"\x1f\x8b":
            return False
    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        first = next((line for line in stream if line.strip()), "")
    return bool(first) and "," not in first and len(first.split()) == 1
