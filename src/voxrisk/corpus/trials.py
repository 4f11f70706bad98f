"""Trial lists: which enrolment is compared with which utterance, and who is the same speaker.

Two small tables. ``enroll.csv`` says which utterances make an enrolment (``enroll,utterance``, one
line for each utterance); ``trials.csv`` says what is compared (``enroll,trial,label``, where the
label is ``target`` or ``nontarget``).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.types import InputError

LABELS = {"target": True, "nontarget": False, "1": True, "0": False}
COLUMNS = {
    "enroll": ("enroll", "model", "enrol", "enroll_utt"),
    "trial": ("trial", "test_utt", "test", "trial_utt"),
    "label": ("label", "target"),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison: an enrolment, an utterance, and whether both are the same speaker."""

    enroll: str
    trial: str
    target: bool


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


def read_trials(path: Path | str) -> Iterator[Trial]:
    """Read a trial list: our CSV, or the plain lines of Kaldi and VoicePrivacy (``a b target``)."""
    path = Path(path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        plain = "," not in stream.readline()
        stream.seek(0)
        rows = (line.split() for line in stream) if plain else csv.reader(stream)
        places = [0, 1, 2] if plain else _places(next(iter(rows), []), path)
        for line, cells in enumerate(rows, start=1 if plain else 2):
            if not cells:
                continue
            where = f"{path} line {line}"
            if len(cells) <= max(places):
                raise InputError(f"{where}: expected an enrolment, a trial and a label")
            enroll, trial, label = (cells[i] for i in places)
            if label not in LABELS:
                raise InputError(f"{where}: label is {label!r}; it must be target or nontarget")
            yield Trial(enroll, trial, LABELS[label])


def _places(header: Sequence[str], path: Path) -> list[int]:
    places = []
    for column, names in COLUMNS.items():
        found = [header.index(name) for name in names if name in header]
        if not found:
            raise InputError(f"{path} line 1: no column {column} (there is {', '.join(header)})")
        places.append(found[0])
    return places


def write_enrolments(path: Path | str, enroll: Iterable[Utterance]) -> None:
    """Write ``enroll,utterance``; an enrolment is a speaker."""
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["enroll", "utterance"])
        writer.writerows([row.speaker, row.utterance] for row in enroll)


def read_enrolments(path: Path | str) -> Mapping[str, list[str]]:
    """Enrolment → its utterances.

    Reads ``enroll,utterance`` with one line for each utterance, a table whose ``utts`` column holds
    several divided by blanks (``model,utts``), and Kaldi's ``utt2spk`` (``utterance speaker``).
    """
    path = Path(path)
    enrolments: dict[str, list[str]] = {}
    with path.open(encoding="utf-8-sig", newline="") as stream:
        plain = "," not in stream.readline()
        stream.seek(0)
        rows = (line.split() for line in stream) if plain else csv.reader(stream)
        place, content = (1, 0) if plain else _enrolment_places(next(iter(rows), []), path)
        for line, cells in enumerate(rows, start=1 if plain else 2):
            if not cells:
                continue
            enroll, utterances = ([*cells, "", ""][i].strip() for i in (place, content))
            if not enroll or not utterances:
                raise InputError(f"{path} line {line}: enroll or utterance is empty")
            enrolments.setdefault(enroll, []).extend(utterances.split())
    return enrolments


def _enrolment_places(header: Sequence[str], path: Path) -> tuple[int, int]:
    for enroll, utterances in (("enroll", "utterance"), ("model", "utts")):
        if enroll in header and utterances in header:
            return header.index(enroll), header.index(utterances)
    raise InputError(f"{path} line 1: the columns must be enroll,utterance (or model,utts)")
