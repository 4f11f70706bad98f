"""Who enrols with what, and what is tried: one list of trials for all attackers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.corpus.splits import by_session
from voxrisk.corpus.trials import Trial, make_trials
from voxrisk.files.atomic import write_text
from voxrisk.files.tables import write_table
from voxrisk.measure import Trials
from voxrisk.types import Embeddings


@dataclass(frozen=True, slots=True)
class Sides:
    """Utterance ids of both sides, and every comparison between them.

    Attributes:
        enroll: Utterances that enrol.
        trial: Utterances that are tried.
        by: What the sides never share, ``"session"`` or ``"utterance"``.
        left_out: Speaker → why nothing of this speaker is on either side.
        same_gender: Whether only speakers of one gender are compared.
        rows: Utterances by id.
        listed: The trials.
    """

    enroll: tuple[str, ...]
    trial: tuple[str, ...]
    by: str
    left_out: Mapping[str, str]
    same_gender: bool
    rows: Mapping[str, Utterance]
    listed: tuple[Trial, ...]

    def scored(
        self, score: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]
    ) -> Trials:
        """The trials with a score for each."""
        return Trials(
            score,
            [t.enroll for t in self.listed],
            [self.rows[t.trial].speaker for t in self.listed],
            segment=[t.trial for t in self.listed],
        )


def make_sides(rows: Sequence[Utterance], *, seed: int) -> Sides:
    """Split enrolment and trial, by session where sessions are known."""
    split = by_session(rows, seed=seed)
    known = all(row.gender for row in rows)
    people = {row.speaker: row.gender for row in rows}
    each = [sum(g == gender for g in people.values()) for gender in set(people.values())]
    same_gender = known and min(each) > 1
    enroll, trial = split.sides["enroll"], split.sides["trial"]
    return Sides(
        tuple(row.utterance for row in enroll),
        tuple(row.utterance for row in trial),
        split.by,
        dict(split.left_out),
        same_gender,
        {row.utterance: row for row in rows},
        tuple(make_trials(enroll, trial, same_gender=same_gender)),
    )


def score_sides(sides: Sides, enroll: Embeddings, trial: Embeddings) -> Trials:
    """Every trial by cosine; an enrolment is the mean of a speaker's enrolled vectors."""
    from voxrisk.attack.scoring import score_trials

    models = {
        speaker: enroll.utterance[enroll.speaker == speaker].tolist()
        for speaker in np.unique(enroll.speaker).tolist()
    }
    scored = score_trials(trial, sides.listed, models, enroll_embeddings=enroll)
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
    plain = {"enroll": sides.enroll, "trial": sides.trial, "by": sides.by}
    write_text(folder / "sides.json", json.dumps(plain, indent=1) + "\n")
    write_table(
        folder / "trials.csv",
        ("enroll", "trial", "label", "enroll_speaker", "trial_speaker"),
        (
            (
                t.enroll,
                t.trial,
                "target" if t.target else "nontarget",
                t.enroll,
                sides.rows[t.trial].speaker,
            )
            for t in sides.listed
        ),
    )
