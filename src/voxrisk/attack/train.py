"""Train an attacker: a recogniser of source speakers, with or without the adversarial target head.

Every epoch ends with a checkpoint, and every random choice of an epoch comes from the seed and its
number alone. So a training that was killed goes on to the same result as one that was not. Started
by ``torchrun``, several processes share each batch.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from voxrisk.attack.crops import (
    decode_corpus,
)
from voxrisk.attack.ecapa_encoder import (
    pick_device,
)
from voxrisk.attack.encoder import CENTRE, CHECKPOINT
from voxrisk.attack.epochs import Epoch, write_curves
from voxrisk.attack.parallel import join_world
from voxrisk.attack.recipes import Recipe
from voxrisk.attack.training_run import FACTS, TrainingRun
from voxrisk.corpus import Utterance
from voxrisk.files.atomic import atomic, write_text
from voxrisk.types import InputError

STATE = "checkpoint.pt"


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training: its folder, and the curve of every epoch."""

    folder: Path
    epochs: tuple[Epoch, ...]


def train_attacker(
    rows: Sequence[Utterance],
    folder: Path | str,
    recipe: Recipe,
    *,
    seed: int = 0,
    adversarial: bool = False,
    target_column: str = "target",
    start: Path | None = None,
    device: str = "auto",
    cache: Path | None = None,
    workers: int | None = None,
) -> Trained:
    """Train on ``rows`` and write the attacker into ``folder``, or go on with what is there.

    Where every row has a target, a target head is trained too and its error is measured; with
    ``adversarial``, its reversed gradient also reaches the recogniser from epoch E + 1 on.

    Args:
        rows: Training set; the label is the (source) speaker.
        folder: Gets ``embedding_model.ckpt``, ``attacker.json`` and ``curves.csv``, and with
            ``recipe.centre`` the mean training vector in ``centre.npy``, which
            :func:`voxrisk.attack.load_encoder` subtracts.
        recipe: See :mod:`voxrisk.attack.recipes`.
        seed: Of the weights, the split, the crops and their order.
        adversarial: Whether the recogniser unlearns the targets.
        target_column: Column with the target speaker of each utterance.
        start: A checkpoint to begin with (fine-tuning); its size replaces the recipe's.
        device: ``"cpu"``, ``"cuda"`` …; half precision is used on a GPU.
        cache: Folder for the decoded speech, by default inside ``folder``.
        workers: Processes for decoding.

    Raises:
        InputError: If the data cannot train, or the folder holds another training.
    """
    folder = Path(folder)
    known = any(row.extra.get(target_column) for row in rows)
    if adversarial and not known:
        raise InputError(
            f"the adversarial head needs a column {target_column!r} with the target speaker of "
            "each utterance; anonymize with voxrisk, or train without --adversarial"
        )
    world = join_world(pick_device(device))
    if not world.first:
        world.wait()  # the first process decodes, the others find it done
    speech = decode_corpus(
        rows,
        cache or folder / "speech",
        speeds=recipe.speeds,
        target_column=target_column if known else None,
        workers=workers,
    )
    if world.first:
        world.wait()
    zero = recipe.zero_epochs if adversarial else recipe.epochs
    facts = {
        "recipe": asdict(recipe),
        "seed": seed,
        "adversarial": adversarial,
        "zero_epochs": zero,
        "start": str(start) if start else None,
        "utterances": len(rows),
        "sources": len(speech.sources),
        "targets": len(speech.targets) if speech.targets else None,
    }
    run = TrainingRun(speech, recipe, seed, zero, start, world)
    done = run.resume(folder / STATE, facts)
    run.progress.done = len(done) * run.per_epoch
    with run.progress:
        for epoch in range(len(done) + 1, recipe.epochs + 1):
            done.append(run.epoch(epoch))
            if world.first:
                run.save(folder / STATE, facts, done)
                write_curves(folder, done)
    centre = run.mean_vector() if recipe.centre else None
    if world.first:
        if centre is not None:
            with atomic(folder / CENTRE) as part, part.open("wb") as stream:
                np.save(stream, centre)
        # To a stream: given a path, torch writes the (random) name of the part into the file.
        with atomic(folder / CHECKPOINT) as part, part.open("wb") as stream:
            torch.save(run.model.encoder.state_dict(), stream)
        write_text(folder / FACTS, json.dumps(facts, indent=2) + "\n")
    world.wait()
    return Trained(folder, tuple(done))


def forget_training(folder: Path) -> None:
    """Remove what a training left in ``folder``, and nothing else."""
    made = (STATE, CHECKPOINT, CENTRE, FACTS, "curves.csv", "curves.svg", "curves.png")
    for name in made:
        (folder / name).unlink(missing_ok=True)
