"""What an attacker recognises with: an encoder, ready or trained, and the vectors it gives."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from voxrisk.corpus import Utterance
from voxrisk.knowledge import Knowledge
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.given import check_training, given_training, refuse_copies, training_rows
from voxrisk.pipeline.recogniser import Recogniser, embed_stage
from voxrisk.pipeline.speech import Speech, anonymize_stage, limited, pool_of_training, usable_rows
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.suite import train_suite
from voxrisk.report.training_figure import draw_training
from voxrisk.results import Training
from voxrisk.types import InputError

EACH = 4  # utterances of a training speaker, where the training speech is cut short
FEWEST_SPEAKERS = 5  # that train an attacker: fewer cannot be cut into two halves for its control


def training_people(chosen: Evaluation, speech: Speech, stages: Stages) -> list[Utterance]:
    """The original training speech: other people than those evaluated, none of them a target.

    Raises:
        InputError: If a training speaker or recording is one of the evaluation's (the attacker
            would know the people under test), or there are too few people or utterances to train.
    """
    source = chosen.train or chosen.train_anonymized
    assert source is not None
    rows = training_rows(chosen, stages)
    if shared := sorted({row.speaker for row in rows} & set(speech.people)):
        raise InputError(
            f"{source}: {len(shared)} training speakers are under test too (the first: "
            f"{shared[0]}); an attacker who trains on the people under test overstates the risk. "
            "Give speech of other people, or rename speakers who only share an id"
        )
    hashes = stages.folder / "hashes.json"
    pool = pool_of_training(chosen, stages)
    people = [row for row in rows if row.speaker not in pool]
    kept = limited(people, chosen.limits.train_minutes, each=EACH)
    kept, sounds = usable_rows(kept, "training", stages, hashes, [])
    refuse_copies(source, sounds, speech)
    speakers = {row.speaker for row in kept}
    if len(speakers) < FEWEST_SPEAKERS or len(kept) < 2 * len(speakers):
        raise InputError(
            f"{source}: {len(kept)} utterances of {len(speakers)} speakers (beside the "
            f"{len(pool)} whose voices are targets) cannot train an attacker; it needs "
            f"{FEWEST_SPEAKERS} speakers or more with at least two utterances each"
        )
    check_training(chosen, kept, speech, stages)
    return kept


def train_recogniser(
    chosen: Evaluation, knowledge: Knowledge, people: Sequence[Utterance], stages: Stages
) -> Recogniser:
    """Train what this attacker recognises with, or take the ready encoder."""
    if not knowledge.trained:
        return Recogniser(chosen.encoder)
    hashes = stages.folder / "hashes.json"
    name = chosen.similar if knowledge.trains_on == "similar" else chosen.anonymizer
    digest = digest_corpus(people, hashes)
    if knowledge.trains_on == "anonymized" and chosen.train_anonymized:
        rows = given_training(chosen, people, stages)
    else:
        made = anonymize_stage(
            chosen, people, digest, stages, hashes, name=name, purpose="training"
        )
        rows = made[0]
    if knowledge.chooses:
        before = people if chosen.train else None  # else it is the anonymized speech itself
        return train_suite(chosen, knowledge, rows, stages, before=before)
    if chosen.limits.adapter or knowledge.unlearns == "erase":
        return _train_adapter(chosen, knowledge, rows, stages)
    return _train_whole(chosen, knowledge, rows, stages)


def _train_adapter(
    chosen: Evaluation, knowledge: Knowledge, rows: Sequence[Utterance], stages: Stages
) -> Recogniser:
    """A map behind the ready encoder, trained on vectors that all attackers share."""
    from voxrisk.attack.adapted import Adapter, read_adapter
    from voxrisk.attack.adapter import (
        fit_adapter,
        target_names,
        training_facts,
        write_adapter,
    )
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.recipes import ADAPTED

    digest = digest_corpus(rows, stages.folder / "hashes.json")
    label = f"training speech of the {knowledge.name} attacker"
    vectors = embed_stage(rows, digest, chosen.encoder, stages, label)
    unlearn = knowledge.unlearns
    targets = target_names(rows, "target", needed=unlearn is not None)
    fresh: list[Adapter] = []

    def make(folder: Path) -> None:
        found = fit_adapter(
            vectors,
            ADAPTED,
            targets=targets,
            unlearn=unlearn,
            seed=chosen.seed,
            encoder=chosen.encoder,
        )
        facts = training_facts(rows, ADAPTED, targets, unlearn, chosen.seed, chosen.encoder)
        write_adapter(folder, found, facts)
        draw_training(folder)
        fresh.append(found.adapter)

    inputs = {
        "corpus": digest,
        "recipe": ADAPTED,
        "unlearn": unlearn,
        "encoder": encoder_identity(chosen.encoder),
        "seed": chosen.seed,
    }
    label = f"{knowledge.name} attacker"
    folder = stages.run("train", inputs, make, label=label, speech=rows)
    adapter = fresh[0] if fresh else read_adapter(folder)
    return Recogniser(
        chosen.encoder,
        adapter.apply,
        training_record(folder),
        vectors,
        tuple(targets) if targets else None,
    )


def _train_whole(
    chosen: Evaluation, knowledge: Knowledge, rows: Sequence[Utterance], stages: Stages
) -> Recogniser:
    """A recogniser trained from nothing on anonymized speech, as paper 3 does."""
    from voxrisk.attack.recipes import RECIPES
    from voxrisk.attack.train import train_attacker

    recipe = RECIPES[chosen.limits.recipe]
    adversarial = knowledge.unlearns == "reverse"
    kept = held_out_speakers(rows)
    learned = [row for row in rows if row.speaker not in kept]

    def make(folder: Path) -> None:
        train_attacker(
            learned,
            folder / "attacker",
            recipe,
            seed=chosen.seed,
            adversarial=adversarial,
            cache=folder / "speech",
        )
        draw_training(folder / "attacker")

    hashes = stages.folder / "hashes.json"
    inputs = {
        "corpus": digest_corpus(learned, hashes),
        "recipe": recipe,
        "adversarial": adversarial,
        "start": None,
        "seed": chosen.seed,
    }
    kept_in = stages.run("train", inputs, make, label=f"{knowledge.name} attacker", speech=learned)
    folder = kept_in / "attacker"
    held = [row for row in rows if row.speaker in kept]
    vectors = None
    if held:
        digest, label = digest_corpus(held, hashes), "held-out training speech"
        vectors = (
            embed_stage(held, digest, str(folder), stages, f"{label}, {knowledge.name}"),
            embed_stage(held, digest, chosen.encoder, stages, label),
        )
    return Recogniser(str(folder), None, training_record(folder), held_out=vectors)


def held_out_speakers(rows: Sequence[Utterance]) -> set[str]:
    """Every tenth training speaker, five at least: they judge a training they took no part in.

    None where fewer than twice as many would be left to train on.
    """
    count: dict[str, int] = {}
    for row in rows:
        count[row.speaker] = count.get(row.speaker, 0) + 1
    able = sorted(speaker for speaker, n in count.items() if n > 1)
    wanted = max(len(able) // 10, FEWEST_SPEAKERS)
    if len(count) < 3 * wanted:
        return set()
    return {able[i * len(able) // wanted] for i in range(wanted)}


def training_record(folder: Path) -> Training:
    """How a trained attacker was trained, from the files of its training."""
    facts = json.loads((folder / "attacker.json").read_text(encoding="utf-8"))
    with (folder / "curves.csv").open(encoding="utf-8", newline="") as stream:
        last = list(csv.DictReader(stream))[-1]
    return Training(
        speakers=facts["sources"],
        utterances=facts["utterances"],
        targets=facts["targets"],
        ver_source=float(last["ver_source"]),
        ver_target=float(last["ver_target"]) if last["ver_target"] else None,
    )
