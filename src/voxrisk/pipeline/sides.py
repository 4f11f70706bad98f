"""Who enrols with what, and what is tried: one list of trials for all attackers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance
from voxrisk.corpus.splits import by_session
from voxrisk.corpus.trials import Trial, make_trials
from voxrisk.files.atomic import write_text
from voxrisk.files.tables import write_table
from voxrisk.measure import Trials
from voxrisk.notices import Notice
from voxrisk.types import Embeddings


@dataclass(frozen=True, slots=True)
class Sides:
    """Utterance ids of both sides, and every comparison between them.

    Attributes:
        enroll: Utterances that enrol, each once.
        trial: Utterances that are tried, each once.
        by: What the sides never share, ``"session"`` or ``"utterance"``.
        left_out: Speaker → why nothing of this speaker is on either side.
        same_gender: Whether only speakers of one gender are compared.
        rows: Utterances by id.
        listed: The trials.
        models: Enrolment → its utterances. An enrolment has the name of its speaker, unless a list
            has several of one speaker.
        sets: Name → places in ``listed``, where the trials are several sets; a trial may be in
            more than one.
        source: Who made the trials: ``"own"`` (drawn here), ``"roles"`` (all pairs of what the
            table calls enrolment and trial), ``"lists"``, or ``"files"`` (all pairs of two files).
        notices: What a reader must know about them.
    """

    enroll: tuple[str, ...]
    trial: tuple[str, ...]
    by: str
    left_out: Mapping[str, str]
    same_gender: bool
    rows: Mapping[str, Utterance]
    listed: tuple[Trial, ...]
    models: Mapping[str, tuple[str, ...]]
    sets: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    source: str = "own"
    notices: tuple[Notice, ...] = ()

    @property
    def owners(self) -> dict[str, str]:
        """Enrolment → its speaker."""
        return {name: self.rows[own[0]].speaker for name, own in self.models.items()}

    def scored(
        self,
        score: Sequence[float] | NDArray[np.float64],
        *,
        only: NDArray[np.int64] | None = None,
    ) -> Trials:
        """The trials with a score for each; ``only`` those at some places of the list."""
        owners = self.owners
        listed, values = self.listed, np.asarray(score, np.float64)
        if only is not None:
            listed, values = tuple(listed[i] for i in only.tolist()), values[only]
        return Trials(
            values,
            [owners[t.enroll] for t in listed],
            [self.rows[t.trial].speaker for t in listed],
            segment=[t.trial for t in listed],
        )


def make_sides(rows: Sequence[Utterance], *, seed: int) -> Sides:
    """Split enrolment and trial, by session where sessions are known."""
    split = by_session(rows, seed=seed)
    return paired_sides(
        rows,
        split.sides["enroll"],
        split.sides["trial"],
        by=split.by,
        left_out=split.left_out,
    )


def paired_sides(
    rows: Sequence[Utterance],
    enroll: Sequence[Utterance],
    trial: Sequence[Utterance],
    *,
    by: str,
    left_out: Mapping[str, str],
    source: str = "own",
    notices: Sequence[Notice] = (),
) -> Sides:
    """Every trial utterance against every enrolled speaker (of its gender, where all are known)."""
    known = all(row.gender for row in rows)
    people = {row.speaker: row.gender for row in rows}
    each = [sum(g == gender for g in people.values()) for gender in set(people.values())]
    same_gender = known and min(each) > 1
    models: dict[str, list[str]] = {}
    for row in enroll:
        models.setdefault(row.speaker, []).append(row.utterance)
    return Sides(
        tuple(row.utterance for row in enroll),
        tuple(row.utterance for row in trial),
        by,
        dict(left_out),
        same_gender,
        {row.utterance: row for row in rows},
        tuple(make_trials(enroll, trial, same_gender=same_gender)),
        {name: tuple(own) for name, own in models.items()},
        source=source,
        notices=tuple(notices),
    )


def score_sides(sides: Sides, enroll: Embeddings, trial: Embeddings) -> Trials:
    """Every trial by cosine; an enrolment is the mean of its utterances' vectors."""
    from voxrisk.attack.scoring import score_trials

    scored = score_trials(trial, sides.listed, sides.models, enroll_embeddings=enroll)
    return sides.scored(scored.score)


def chosen_rows(embeddings: Embeddings, ids: Sequence[str]) -> Embeddings:
    """The vectors of some utterances, in that order."""
    place = {name: i for i, name in enumerate(embeddings.utterance.tolist())}
    order = np.array([place[name] for name in ids])
    return Embeddings(
        embeddings.utterance[order],
        embeddings.speaker[order],
        embeddings.vectors[order],
        embeddings.source,
    )


def write_sides(folder: Path, sides: Sides) -> None:
    """Write which utterances enrolled and were tried, and the trials in our plain form."""
    plain = {
        "enroll": sides.enroll,
        "trial": sides.trial,
        "by": sides.by,
        "source": sides.source,
        "enrolments": sides.models,
    }
    owners = sides.owners
    write_text(folder / "sides.json", json.dumps(plain, indent=1) + "\n")
    write_table(
        folder / "trials.csv",
        ("enroll", "trial", "label", "enroll_speaker", "trial_speaker"),
        (
            (
                t.enroll,
                t.trial,
                "target" if t.target else "nontarget",
                owners[t.enroll],
                sides.rows[t.trial].speaker,
            )
            for t in sides.listed
        ),
    )
    write_table(
        folder / "enroll.csv",
        ("enroll", "utterance"),
        ((name, own) for name, utterances in sides.models.items() for own in utterances),
    )
