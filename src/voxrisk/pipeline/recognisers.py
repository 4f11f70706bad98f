"""What an attacker recognises with: an encoder, ready or trained, and the vectors it gives."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from voxrisk.attack.adapter import Adapter, Unlearn
from voxrisk.attack.knowledge import Knowledge
from voxrisk.corpus import Utterance
from voxrisk.files.embeddings import read_embeddings
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.speech import anonymize_stage, limited, pool_of_training
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.types import Embeddings

FINE_TUNING_RATE = 1e-4


def embed_stage(
    rows: Sequence[Utterance], digest: str, encoder: str, stages: Stages, label: str
) -> Embeddings:
    """Embeddings of a corpus, made once for each encoder."""
    from voxrisk.attack.embed import embed_corpus
    from voxrisk.attack.encoders import encoder_identity

    def make(folder: Path) -> None:
        embed_corpus(rows, encoder, folder / "embeddings.npz")

    inputs = {"corpus": digest, "encoder": encoder_identity(encoder)}
    return read_embeddings(stages.run("embed", inputs, make, label=label) / "embeddings.npz")


def training_speech(
    chosen: Evaluation, knowledge: Knowledge, stages: Stages, memory: Path
) -> list[Utterance]:
    """The training speech as this attacker has it: anonymized with the same or a similar tool."""
    assert chosen.train is not None
    pool = pool_of_training(chosen, stages)
    people = [row for row in stages.read(chosen.train) if row.speaker not in pool]
    rows = limited(people, chosen.limits.train_minutes, _seconds)
    name = chosen.similar if knowledge.trains_on == "similar" else chosen.anonymizer
    digest = digest_corpus(rows, memory)
    return anonymize_stage(chosen, rows, digest, stages, memory, name=name, purpose="training")[0]


def train_adapter_stage(
    chosen: Evaluation, knowledge: Knowledge, stages: Stages, memory: Path
) -> tuple[Adapter, Path]:
    """Train a map behind the ready encoder; the map, and the folder it lies in."""
    from voxrisk.attack.adapter import (
        fit_adapter,
        read_adapter,
        target_names,
        training_facts,
        write_adapter,
    )
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.recipes import ADAPTED

    rows = training_speech(chosen, knowledge, stages, memory)
    digest = digest_corpus(rows, memory)
    name = chosen.encoder
    label = f"training speech of the {knowledge.name} attacker"
    vectors = embed_stage(rows, digest, name, stages, label)
    targets = target_names(rows, "target", needed=knowledge.adversarial)
    unlearn: Unlearn | None = "erase" if knowledge.adversarial else None

    def make(folder: Path) -> None:
        facts = training_facts(rows, ADAPTED, targets, unlearn, chosen.seed, name)
        found = fit_adapter(
            vectors,
            ADAPTED,
            targets=targets,
            unlearn=unlearn,
            seed=chosen.seed,
            encoder=name,
        )
        write_adapter(folder, found, facts)

    inputs = {
        "corpus": digest,
        "recipe": ADAPTED,
        "unlearn": unlearn,
        "encoder": encoder_identity(name),
        "seed": chosen.seed,
    }
    folder = stages.run("train", inputs, make, label=f"{knowledge.name} attacker")
    return read_adapter(folder), folder


def train_stage(chosen: Evaluation, knowledge: Knowledge, stages: Stages, memory: Path) -> Path:
    """Train the whole encoder of an informed attacker; the folder it lies in."""
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.recipes import RECIPES
    from voxrisk.attack.starts import start_checkpoint
    from voxrisk.attack.train import train_attacker

    protected = training_speech(chosen, knowledge, stages, memory)
    recipe = replace(RECIPES["spane"], max_rate=FINE_TUNING_RATE)

    def make(folder: Path) -> None:
        train_attacker(
            protected,
            folder / "attacker",
            recipe,
            seed=chosen.seed,
            adversarial=knowledge.adversarial,
            start=start_checkpoint(chosen.encoder),
            cache=folder / "speech",
        )

    inputs = {
        "corpus": digest_corpus(protected, memory),
        "recipe": recipe,
        "adversarial": knowledge.adversarial,
        "start": encoder_identity(chosen.encoder),
        "seed": chosen.seed,
    }
    folder = stages.run("train", inputs, make, label=f"{knowledge.name} attacker")
    return folder / "attacker"


def _seconds(row: Utterance) -> float:
    return row.duration or 5.0


def training_words(folder: Path) -> dict[str, Any]:
    """How a trained attacker was trained, from the files of its training."""
    facts = json.loads((folder / "attacker.json").read_text(encoding="utf-8"))
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as stream:
        last = list(csv.DictReader(stream))[-1]
    return {
        "speakers": facts["sources"],
        "utterances": facts["utterances"],
        "targets": facts["targets"],
        "ver_source": float(last["ver_source"]),
        "ver_target": float(last["ver_target"]) if last["ver_target"] else None,
    }
