"""From lists and embeddings to scores: the enrolments, the trials, and a score for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.backends import (
    COHORT,
    Backend,
    Floats,
    cosine,
    enrolment_vectors,
    rows_of,
    score_pairs,
    utterances_of,
)
from voxrisk.corpus.table import Utterance
from voxrisk.corpus.trials import Trial, make_trials
from voxrisk.types import Embeddings, InputError


@dataclass(frozen=True)
class Scored:
    """A score for each trial, in the order of the list."""

    enroll: tuple[str, ...]
    trial: tuple[str, ...]
    label: NDArray[np.bool_]
    score: Floats

    @property
    def target(self) -> Floats:
        """Scores where enrolment and trial are the same speaker."""
        return self.score[self.label]

    @property
    def nontarget(self) -> Floats:
        """Scores where they are not."""
        return self.score[~self.label]


def speaker_enrolments(
    embeddings: Embeddings, trials: Sequence[Trial], *, apart: bool
) -> dict[str, list[str]]:
    """Take a trial list's enrolments for speakers, or utterances, of ``embeddings``.

    Args:
        embeddings: Where enrolment vectors come from.
        trials: The list whose enrolments are looked up.
        apart: Whether the trial vectors come from another file. If not, utterances that occur as
            trials are left out of a speaker's enrolment, for no utterance may meet itself.
    """
    tried = set() if apart else {trial.trial for trial in trials}
    speakers = utterances_of(embeddings)
    rows = rows_of(embeddings)
    enrolments: dict[str, list[str]] = {}
    for name in dict.fromkeys(trial.enroll for trial in trials):
        own = [u for u in speakers.get(name, []) if u not in tried]
        if not own and name in rows:
            own = [name]
        if not own:
            raise InputError(
                f"enrolment {name}: neither a speaker with utterances beside the trials nor an "
                "utterance of the embeddings; say with --enroll which utterances make it"
            )
        enrolments[name] = own
    return enrolments


def made_trials(
    embeddings: Embeddings,
    enrolments: Mapping[str, Sequence[str]],
    *,
    genders: Mapping[str, str | None] | None = None,
) -> list[Trial]:
    """Compare every utterance that is not enrolled with every enrolment; an enrolment is a speaker.

    Args:
        embeddings: Vectors of the trial utterances, with their speakers.
        enrolments: Speaker → enrolment utterances.
        genders: Speaker → gender; with it, only speakers of the same gender are compared.
    """
    enrolled = {u for utterances in enrolments.values() for u in utterances}
    rows = [
        Utterance(name, Path(), speaker, gender=(genders or {}).get(speaker))
        for name, speaker in zip(
            embeddings.utterance.tolist(), embeddings.speaker.tolist(), strict=True
        )
        if name not in enrolled
    ]
    models = [
        Utterance(name, Path(), name, gender=(genders or {}).get(name)) for name in enrolments
    ]
    return list(make_trials(models, rows, same_gender=genders is not None))


def score_trials(
    trial_embeddings: Embeddings,
    trials: Sequence[Trial],
    enrolments: Mapping[str, Sequence[str]],
    *,
    enroll_embeddings: Embeddings | None = None,
    centre: Floats | None = None,
    backend: Backend = cosine,
    cohort: Floats | None = None,
    nearest: int = COHORT,
) -> Scored:
    """Score every trial.

    Args:
        trial_embeddings: Vectors of the trial utterances.
        trials: What is compared.
        enrolments: Enrolment → utterances.
        enroll_embeddings: Vectors of the enrolment utterances, where they are other speech (the
            ignorant attacker enrols original speech); else those of the trials.
        centre: Mean training vector ``(d,)``, subtracted from every vector first.
        backend: Cosine, or PLDA.
        cohort: Vectors for AS-norm, see :func:`voxrisk.attack.backends.score_pairs`.
        nearest: Of the cohort.
    """
    if not trials:
        raise InputError("the trial list is empty: there is nothing to score")
    used = dict.fromkeys(trial.enroll for trial in trials)
    unknown = [name for name in used if name not in enrolments]
    if unknown:
        raise InputError(f"enrolment {unknown[0]} of the trial list is not among the enrolments")
    source = enroll_embeddings or trial_embeddings
    enroll = enrolment_vectors(source, {name: enrolments[name] for name in used})
    row = rows_of(trial_embeddings)
    missing = [trial.trial for trial in trials if trial.trial not in row]
    if missing:
        raise InputError(
            f"trial utterance {missing[0]} has no vector ({len(set(missing))} such); "
            "embed the corpus the trial list was made for"
        )
    place = {name: i for i, name in enumerate(used)}
    left = np.array([place[trial.enroll] for trial in trials])
    right = np.array([row[trial.trial] for trial in trials])
    vectors = trial_embeddings.vectors.astype(np.float64)
    if enroll.shape[1] != vectors.shape[1]:
        raise InputError(
            f"enrolment vectors have {enroll.shape[1]} values, trial vectors {vectors.shape[1]}: "
            "embed both with the same encoder"
        )
    if centre is not None:
        enroll, vectors = enroll - centre, vectors - centre
        cohort = None if cohort is None else cohort - centre
    scores = score_pairs(
        enroll, vectors, (left, right), backend=backend, cohort=cohort, nearest=nearest
    )
    return Scored(
        tuple(trial.enroll for trial in trials),
        tuple(trial.trial for trial in trials),
        np.array([trial.target for trial in trials]),
        scores,
    )
