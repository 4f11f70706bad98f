"""Who listens to which speech, and everything that they listen to."""

from collections.abc import Sequence
from dataclasses import replace

from voxrisk.attack.encoders import encoder_identity
from voxrisk.corpus import Utterance
from voxrisk.journal import hash_of
from voxrisk.knowledge import attacker
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.notices import notice
from voxrisk.pipeline.attacks import plan_attacks
from voxrisk.pipeline.official import side_notices
from voxrisk.pipeline.recogniser import Recogniser
from voxrisk.pipeline.recognisers import train_recogniser
from voxrisk.pipeline.slicing import cuts
from voxrisk.pipeline.slicing.cuts import Pieces
from voxrisk.pipeline.slicing.material import Found, Material
from voxrisk.pipeline.slicing.privacy import Listener, measure_privacy, study_sides
from voxrisk.slicing_results import ANONYMIZED, CLEAR
from voxrisk.types import InputError

# The least informed first; the informed attacker needs training speech.
LISTENERS = {CLEAR: ("original",), ANONYMIZED: ("lazy-informed", "informed")}


def listen(material: Material, found: Found) -> None:
    """Every attacker on whole, shortened and sliced speech of the condition it listens to."""
    speech, stages, chosen = material.speech, material.stages, material.chosen
    if len(speech.people) < 2:
        found.missing["privacy"] = "there is one speaker, and so nobody to be confused with"
        return
    try:
        sides = study_sides(material)
    except InputError as error:  # nobody can be enrolled and tried; the rest of the study can go on
        if chosen.sets:
            raise
        found.missing["privacy"] = str(error)
        return
    found.note(*side_notices(sides, speech.original))
    if len(speech.people) < MIN_SPEAKERS:
        found.note(notice("no_interval", speakers=len(speech.people)))
    for listener in _listeners(material, found):
        for pieces in _tried(material, listener.condition, found):
            row, said = measure_privacy(chosen, listener, pieces, sides, stages)
            found.note(*said)
            if row is not None:
                found.privacy.append(row)


def _listeners(material: Material, found: Found) -> list[Listener]:
    chosen, evaluation, stages = material.chosen, material.evaluation, material.stages
    able = bool(evaluation.train or evaluation.train_anonymized)
    people: Sequence[Utterance] = ()
    if able:
        asked = replace(evaluation, attackers=("lazy-informed", "informed"))
        people = plan_attacks(asked, material.speech, stages).people
    elif chosen.protected:
        more = "--train and --train-anonymized" if chosen.anonymized else "--train"
        found.note(notice("untrained", way_out=f"give {more} to run them"))
    listeners = []
    for condition in material.conditions:
        for name in LISTENERS[condition]:
            knowledge = attacker(name)
            if knowledge.trained and not able:
                continue
            try:
                made = train_recogniser(evaluation, knowledge, people, stages)
            except InputError as error:
                if not knowledge.trained:
                    raise
                found.note(
                    notice("attacker_failed", attacker=name, detail=str(error),
                           why="its training was refused")
                )  # fmt: skip
                continue
            listeners.append(Listener(condition, knowledge, made, _identity(made, name)))
    return listeners


def _identity(recogniser: Recogniser, name: str) -> str:
    """What its vectors depend on: its encoder, and the speech that trained the map behind it."""
    encoder = encoder_identity(recogniser.encoder)
    if recogniser.vectors is None:
        return f"{name} {encoder}"
    trained = recogniser.vectors
    return f"{name} {encoder} {hash_of(trained.utterance.tolist(), trained.vectors.tolist())}"


def _tried(material: Material, condition: str, found: Found) -> list[Pieces]:
    """Whole utterances, utterances cut short to every length, and slices of every length."""
    rows, digest = material.rows(condition)
    tried = [cuts.whole(rows, condition, digest)]
    tried += [p for (kind, _), p in material.sliced.items() if kind == condition]
    for duration in material.chosen.shortened:
        pieces, silent = cuts.shortened(rows, condition, duration, material.stages)
        if silent:
            found.note(notice("slicing_silent", count=silent, seconds=duration, kind=condition))
        if pieces is not None:
            tried.append(pieces)
    return tried
