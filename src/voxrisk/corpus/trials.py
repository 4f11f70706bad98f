"""Trial lists: which enrolment is compared with which utterance, and who is the same speaker.

Two small tables. ``enroll.csv`` says which utterances make an enrolment (``enroll,utterance``, one
line for each utterance); ``trials.csv`` says what is compared (``enroll,trial,label``, where the
label is ``target`` or ``nontarget``), which :func:`voxrisk.files.scores.read_trials` reads.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.files.tables import read_rows, write_table
from voxrisk.types import InputError

# Kaldi's order, which counts where there is no header; and the names elsewhere.
ENROLMENT = {
    "utterance": ("utts", "utt", "enroll_utt"),
    "enroll": ("model", "enrol", "enroll_id", "speaker", "spk"),
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


def write_enrolments(path: Path | str, enroll: Iterable[Utterance]) -> None:
    """Write ``enroll,utterance``; an enrolment is a speaker."""
    write_table(path, ("enroll", "utterance"), ((row.speaker, row.utterance) for row in enroll))


def read_enrolments(path: Path | str) -> Mapping[str, list[str]]:
    """Enrolment → its utterances.

    Reads ``enroll,utterance`` with one line for each utterance, a table whose ``utts`` column holds
    several divided by blanks (``model,utts``), and Kaldi's ``utt2spk`` (``utterance speaker``).

    Raises:
        InputError: If a line is malformed, a cell is empty, or an utterance stands twice in one
            enrolment; the message names file and line.
    """
    path = Path(path)
    enrolments: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for line, (utterances, enroll) in read_rows(path, ENROLMENT):
        where = f"{path} line {line}"
        if not enroll or not utterances:
            raise InputError(f"{where}: enroll or utterance is empty")
        for utterance in utterances.split():
            if (enroll, utterance) in seen:
                raise InputError(f"{where}: {utterance!r} is already in enrolment {enroll!r}")
            seen.add((enroll, utterance))
            enrolments.setdefault(enroll, []).append(utterance)
    return enrolments
