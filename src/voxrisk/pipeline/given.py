"""Speech that was anonymized elsewhere: what trains attackers, and what they enrol.

Who has finished folders and no anonymizer to call can still be attacked by an informed attacker.
Nothing of it is taken on trust: it is held against the speech under test, and against its own
originals where there are any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance
from voxrisk.corpus.pairs import check_pairs
from voxrisk.measure.vectors import unit_length
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.speech import Speech, refuse_wrong_pairs, spoken_as, usable_rows
from voxrisk.pipeline.stages import Stages
from voxrisk.results import Control
from voxrisk.types import Embeddings, InputError

TOLD = 0.75  # of utterances of other speakers, whose kind must be told for the control to speak
RIDGE = 1.0  # of the mean variance of a dimension, added to each: few utterances, many dimensions


def training_rows(chosen: Evaluation, stages: Stages) -> list[Utterance]:
    """Whom attackers train on, before any of it is anonymized.

    The originals where there are any (those that also have an anonymized version, where the user
    gives it); else the anonymized speech itself.

    Raises:
        InputError: If the two folders have no id in common.
    """
    given = stages.read(chosen.train_anonymized) if chosen.train_anonymized else []
    if chosen.train is None:
        return given
    rows = stages.read(chosen.train)
    if not given:
        return rows
    ids = {row.utterance for row in given}
    both = [row for row in rows if row.utterance in ids]
    if not both:
        raise InputError(
            f"no utterance id is in both {chosen.train} and {chosen.train_anonymized}; name the "
            "files alike, or leave out --train"
        )
    return rows if chosen.similar else both  # a similar anonymizer has use for all of them


def given_training(
    chosen: Evaluation, people: Sequence[Utterance], stages: Stages
) -> list[Utterance]:
    """The anonymized version of the training speech as the user gives it."""
    if chosen.train is None:
        return list(people)
    assert chosen.train_anonymized is not None
    by_id = {row.utterance: row for row in stages.read(chosen.train_anonymized)}
    rows = [spoken_as(by_id[r.utterance], r) for r in people if r.utterance in by_id]
    hashes = stages.folder / "hashes.json"
    return usable_rows(rows, "anonymized training", stages, hashes, [])[0]


def check_training(
    chosen: Evaluation, people: Sequence[Utterance], speech: Speech, stages: Stages
) -> None:
    """Hold given training speech against the speech under test and its own originals.

    Raises:
        InputError: If a recording of it is under test too, it belongs to other originals, or it
            was not anonymized.
    """
    if chosen.train_anonymized is None:
        return
    where = chosen.train_anonymized
    rows = given_training(chosen, people, stages)
    _, sounds = usable_rows(rows, "anonymized training", stages, stages.folder / "hashes.json", [])
    refuse_copies(where, sounds, speech)
    if chosen.train is not None:
        _refuse_wrong(where, people, rows, chosen.seed)


def refuse_copies(where: Path, sounds: Mapping[str, str], speech: Speech) -> None:
    """Stop where training speech is under test too, original or anonymized, under other names."""
    known = {sound: utterance for utterance, sound in speech.sounds.items()}
    known |= {sound: utterance for utterance, sound in speech.published.items()}
    if copies := [u for u, sound in sounds.items() if sound in known]:
        raise InputError(
            f"{where}: {len(copies)} training recordings are under test too, under other "
            f"names (the first: {copies[0]} is {known[sounds[copies[0]]]}); give speech of other "
            "people"
        )


def _refuse_wrong(
    where: Path, originals: Sequence[Utterance], given: Sequence[Utterance], seed: int
) -> None:
    ids = {row.utterance for row in given}
    pairs = check_pairs([row for row in originals if row.utterance in ids], given, seed=seed)
    if pairs.identical:
        raise InputError(
            f"{where}: {len(pairs.identical)} of {pairs.compared} files hold exactly the sound of "
            "their originals: nothing was anonymized there, and an attacker who has it is not "
            "informed. Give the anonymized speech"
        )
    try:
        refuse_wrong_pairs(pairs)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def with_enrolment(chosen: Evaluation, speech: Speech, stages: Stages) -> Speech:
    """The speech with what the attackers enrol, where it was anonymized with draws of their own.

    Raises:
        InputError: If it belongs to other originals, or was not anonymized.
    """
    if chosen.enroll_anonymized is None:
        return speech
    where = chosen.enroll_anonymized
    by_id = {row.utterance: row for row in stages.read(where)}
    originals = [row for row in speech.original if row.utterance in by_id]
    if not originals:
        raise InputError(f"{where}: no utterance id of it is in the original speech")
    rows = [spoken_as(by_id[row.utterance], row) for row in originals]
    rows, _ = usable_rows(rows, "enrolled", stages, stages.folder / "hashes.json", [])
    _refuse_wrong(where, originals, rows, chosen.seed)
    return replace(speech, enrolled=tuple(rows))


def given_enrolment(chosen: Evaluation, speech: Speech, enroll: Sequence[str]) -> list[Utterance]:
    """The rows of the enrolment that was given, all of them.

    Raises:
        InputError: If an utterance that enrols is not among them.
    """
    by_id = {row.utterance: row for row in speech.enrolled}
    if lacking := [name for name in enroll if name not in by_id]:
        raise InputError(
            f"{chosen.enroll_anonymized}: {len(lacking)} of {len(enroll)} utterances that enrol "
            f"are not in it or cannot be used (the first: {lacking[0]}); anonymize all of them, or "
            "say with --enroll which enrol"
        )
    return [by_id[name] for name in enroll]


def side_of(
    original: NDArray[np.floating], anonymized: NDArray[np.floating], tried: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Where vectors ``tried (n, d)`` lie between original and anonymized speech, ``(n,)``.

    A linear discriminant of the two kinds of the same speech, which differ in nothing but the
    anonymizer: 0 is the middle of original speech, 1 that of anonymized speech; 0.5 everywhere
    where they do not differ.
    """
    o, a, t = (unit_length(v.astype(np.float64)) for v in (original, anonymized, tried))
    within = np.cov(np.concatenate((o - o.mean(axis=0), a - a.mean(axis=0))).T)
    within += RIDGE * np.trace(within) / len(within) * np.eye(len(within))
    shift = a.mean(axis=0) - o.mean(axis=0)
    way = np.linalg.solve(within, shift)
    if (scale := float(shift @ way)) <= 0.0:  # the two kinds are one
        return np.full(len(t), 0.5)
    return np.asarray((t - o.mean(axis=0)) @ way / scale)


def told_apart(original: Embeddings, anonymized: Embeddings) -> float:
    """How often the kind of an utterance is told by a discriminant of other speakers; chance 0.5.

    Without it nothing can be said about the kind of any third speech.
    """
    people = np.unique(original.speaker)
    right = []
    for first in (0, 1):
        fitted = np.isin(original.speaker, people[first::2])
        o, a = original.vectors, anonymized.vectors
        for kind, sign in ((o, -1.0), (a, 1.0)):
            places = side_of(o[fitted], a[fitted], kind[~fitted])
            right.append(float((sign * (places - 0.5) > 0).mean()))
    return float(np.mean(right))


def kind_control(
    name: str, original: Embeddings, anonymized: Embeddings, training: Embeddings
) -> Control:
    """Whether given training speech sounds like the published speech, and not like original.

    ``original`` and ``anonymized`` are of the same utterances in the same order. Measured with the
    ready encoder on other speakers and corpora: 94 to 100 % of what the same anonymizer made lie on
    its side, 0 to 5 % of original speech, 5 to 20 % of what another anonymizer made.
    """
    question = f"Was the speech that trains the {name} attacker anonymized as the published one?"
    expected = "most of it lies nearer to the anonymized than to the original speech"
    same = np.array_equal(original.utterance, anonymized.utterance)
    apart = told_apart(original, anonymized) if same else 0.5
    if apart < TOLD:
        share = f"{100 * apart:.0f}\u00a0%"
        found = f"not known: original and anonymized speech sound too alike ({share} told)"
        passed = None
    else:
        places = side_of(original.vectors, anonymized.vectors, training.vectors)
        near = float((places > 0.5).mean())
        found = (
            f"{100 * near:.1f}\u00a0% lie nearer to the anonymized speech (middle at "
            f"{float(np.median(places)):.2f}; 0: original, 1: anonymized)"
        )
        passed = near > 0.5
    return Control(
        code="kind",
        attacker=name,
        question=question,
        expected=expected,
        found=found,
        passed=passed,
    )
