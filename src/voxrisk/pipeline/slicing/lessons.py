"""What attackers learn from: slices of other people's speech, clear or anonymized."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from voxrisk.corpus import Utterance, read_audio
from voxrisk.journal import hash_of
from voxrisk.pipeline.given import given_training
from voxrisk.pipeline.recognisers import EACH, training_people
from voxrisk.pipeline.slicing import cuts
from voxrisk.pipeline.slicing.choices import DURATIONS
from voxrisk.pipeline.slicing.cuts import Pieces, Words
from voxrisk.pipeline.slicing.material import Material, slices_of
from voxrisk.pipeline.speech import anonymize_stage, limited, usable_rows
from voxrisk.pipeline.stages import digest_corpus
from voxrisk.slicing_results import ANONYMIZED, CLEAR
from voxrisk.types import InputError, MissingExtraError, require


def training_speech(material: Material) -> dict[str, list[Utterance]]:
    """Condition → other people's speech of that kind; without training speech none."""
    chosen, evaluation, stages = material.chosen, material.evaluation, material.stages
    hashes = stages.folder / "hashes.json"
    if evaluation.train or evaluation.train_anonymized:
        people = training_people(evaluation, material.speech, stages)
    elif chosen.train is not None:
        people = _others(chosen.train, material)
    else:
        return {}
    found = {CLEAR: people} if chosen.train else {}
    if evaluation.train_anonymized:
        found[ANONYMIZED] = list(given_training(evaluation, people, stages))
    elif evaluation.anonymizer:
        made = anonymize_stage(
            evaluation, people, digest_corpus(people, hashes), stages, hashes, purpose="training"
        )
        found[ANONYMIZED] = made[0]
    return found


def _others(source: Path, material: Material) -> list[Utterance]:
    """Clear training speech, where nothing is anonymized and ``evaluate`` would not ask for it."""
    stages = material.stages
    rows = stages.read(source)
    if shared := sorted({row.speaker for row in rows} & set(material.speech.people)):
        raise InputError(
            f"{source}: {len(shared)} training speakers are under test too (the first: "
            f"{shared[0]}); give speech of other people"
        )
    kept = limited(rows, material.chosen.limits.train_minutes, each=EACH)
    return usable_rows(kept, "training", stages, stages.folder / "hashes.json", [])[0]


def training_slices(
    material: Material,
    condition: str,
    speech: Mapping[str, Sequence[Utterance]],
    durations: Sequence[float],
) -> list[Pieces]:
    """Slices of the training speech at some lengths, cut as the published ones."""
    stages, chosen = material.stages, material.chosen
    rows = speech[condition]
    digest = digest_corpus(rows, stages.folder / "hashes.json")
    words = _words(material, condition, speech) if material.words[condition] is not None else None
    found = []
    for duration in durations:
        pieces, _ = cuts.sliced(
            rows, digest, f"{condition} training", duration,
            words=words, cut=chosen.cut, stages=stages,
        )  # fmt: skip
        if pieces is not None:
            found.append(pieces)
    return found


def _words(
    material: Material, condition: str, speech: Mapping[str, Sequence[Utterance]]
) -> Words | None:
    """When the words of the training speech are said; None, where they cannot be aligned."""
    stages = material.stages
    known = speech.get(CLEAR, speech[condition])
    if not any(row.text for row in known):
        return None
    digest = digest_corpus(known, stages.folder / "hashes.json")
    try:
        words = cuts.align_stage(known, digest, stages, "training speech")
        return cuts.kept_times(words, known, speech[condition], stages)[0]
    except (InputError, MissingExtraError):
        return None  # cut at fixed times, as speech without words is


def successor_net(
    material: Material, condition: str, speech: Mapping[str, Sequence[Utterance]]
) -> Path:
    """The folder of a network that learned from these people what follows what.

    It learns from slices of the usual lengths, whatever lengths are asked about: one network
    serves all.
    """
    require("torch", extra="attack")
    from voxrisk.attack.successor_net import mel_frames
    from voxrisk.attack.successor_training import EPOCHS, Lessons, train_successor

    pieces = training_slices(material, condition, speech, DURATIONS)
    inputs = {
        "slices": [p.digest for p in pieces],
        "orders": hash_of([slices_of(p).place for p in pieces]),
        "seed": material.chosen.seed,
        "epochs": EPOCHS,
    }

    def make(folder: Path) -> None:

        frames, successor, start = [], [], 0
        for part in pieces:
            after = slices_of(part).successor
            successor.append(np.where(after < 0, after, after + start))
            start += after.size
            frames += [mel_frames(read_audio(row)) for row in part.rows]
        lessons = Lessons(
            frames,
            np.array([row.speaker for part in pieces for row in part.rows]),
            np.array([part.duration for part in pieces for _ in part.rows], np.float64),
            np.concatenate(successor) if successor else np.empty(0, np.int64),
        )
        train_successor(lessons, folder, seed=material.chosen.seed)

    return material.stages.run(
        "learn",
        inputs,
        make,
        label=f"what follows what, {condition} speech",
        speech=[row for part in pieces for row in part.rows],
    )
