"""``voxrisk train``: train an attacker."""

import json
import os
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.attack.epochs import Epoch


class RecipeName(StrEnum):
    """The recipes that have a name."""

    paper = "paper"
    spane = "spane"
    vpc24 = "vpc24"
    small = "small"
    adapter = "adapter"


class UnlearnName(StrEnum):
    """How the adapter forgets the targets."""

    erase = "erase"
    reverse = "reverse"


def train(
    corpus: Annotated[Path, typer.Argument(help="Training corpus: original or anonymized speech.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the attacker.")],
    recipe: Annotated[
        RecipeName,
        typer.Option(help="Named constants; adapter: a map behind a ready encoder, in a minute."),
    ] = RecipeName.small,
    adversarial: Annotated[
        bool,
        typer.Option(
            "--adversarial", help="Unlearn the targets by the reversed gradient (paper 3)."
        ),
    ] = False,
    unlearn: Annotated[
        UnlearnName | None,
        typer.Option(
            help="adapter: erase what tells the targets apart in closed form, or reverse the "
            "gradient of a target head."
        ),
    ] = None,
    target_column: Annotated[str, typer.Option(help="Column with the target speaker.")] = "target",
    start: Annotated[
        str | None,
        typer.Option(
            help="Fine-tune this ECAPA: ecapa-voxceleb or a folder; adapter: any encoder."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    zero_epochs: Annotated[int | None, typer.Option(help="E: epochs with w_T = 0.")] = None,
    batch: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    max_rate: Annotated[float | None, typer.Option(help="Instead of the recipe's.")] = None,
    keep_statistics: Annotated[
        bool | None,
        typer.Option(
            "--keep-statistics/--learn-statistics",
            help="Batch normalisation stays as it was, or follows the training speech; "
            "default: kept with --start.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many trainings, in folders seed-N.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda …")] = "auto",
    cache: Annotated[Path | None, typer.Option(help="Folder for decoded speech.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes for decoding.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Begin anew where one lies.")] = False,
) -> None:
    """Train a recogniser on a corpus, labelled with its speakers.

    The same command after a kill goes on where it stopped. On several GPUs:
    `torchrun --nproc-per-node 4 -m voxrisk train …`

    \b
    Example:
      voxrisk train anonymized/train -o attacker --recipe spane --adversarial
      voxrisk train anonymized/train -o attacker --recipe adapter --unlearn reverse
    """
    from voxrisk.attack.recipes import ADAPTED, RECIPES
    from voxrisk.attack.starts import start_checkpoint
    from voxrisk.corpus import read_corpus
    from voxrisk.report.training_figure import draw_training
    from voxrisk.types import require

    require("torch", extra="attack")
    from voxrisk.attack.parallel import leave_world
    from voxrisk.attack.train import forget_training, train_attacker

    given = {"epochs": epochs, "zero_epochs": zero_epochs, "batch": batch, "max_rate": max_rate}
    changes = {key: value for key, value in given.items() if value is not None}
    if unlearn and recipe != RecipeName.adapter:
        raise InputError(
            "--unlearn is for --recipe adapter; a whole encoder unlearns targets by --adversarial"
        )
    if adversarial and unlearn == UnlearnName.erase:
        raise InputError("--adversarial is the reversed gradient: leave it out to erase")
    if seeds < 1:
        raise InputError(f"--seeds is {seeds}; at least one training is needed")
    if keep_statistics is not None and (start is None or recipe == RecipeName.adapter):
        raise InputError(
            "--keep-statistics and --learn-statistics are for fine-tuning a whole encoder: "
            "give --start, and a recipe other than adapter"
        )
    rows = read_corpus(corpus)
    if recipe == RecipeName.adapter:
        from voxrisk.attack.adapter import train_adapter

        method = UnlearnName.reverse if adversarial else unlearn
        if "zero_epochs" in changes and method != UnlearnName.reverse:
            raise InputError("--zero-epochs is for --unlearn reverse: there is nothing to delay")
        if method == UnlearnName.reverse and "epochs" in changes:
            changes["reverse_epochs"] = changes.pop("epochs")
            changes.setdefault("zero_epochs", changes["reverse_epochs"] // 4)
        if "max_rate" in changes:
            changes["rate"] = changes.pop("max_rate")
        for number in range(seed, seed + seeds):
            folder = output if seeds == 1 else output / f"seed-{number}"
            if force:
                (output / "training.npz").unlink(missing_ok=True)
            adapted = train_adapter(
                rows,
                folder,
                replace(ADAPTED, **changes),  # type: ignore[arg-type]
                encoder=start or "ecapa-voxceleb",
                seed=number,
                unlearn=method.value if method else None,
                target_column=target_column,
                device=device,
                vectors=output / "training.npz",
                workers=workers,
            )
            draw_training(folder)
            _tell(folder, number, adapted.epochs[-1], as_json=as_json)
        return
    if epochs is not None and zero_epochs is None:
        changes["zero_epochs"] = round(
            RECIPES[recipe].zero_epochs * epochs / RECIPES[recipe].epochs
        )
    keep = start is not None and keep_statistics is not False
    chosen = replace(RECIPES[recipe], keep_statistics=keep, **changes)  # type: ignore[arg-type]
    checkpoint = start_checkpoint(start) if start else None
    for number in range(seed, seed + seeds):
        folder = output if seeds == 1 else output / f"seed-{number}"
        if force:
            forget_training(folder)
        done = train_attacker(
            rows,
            folder,
            chosen,
            seed=number,
            adversarial=adversarial,
            target_column=target_column,
            start=checkpoint,
            device=device,
            cache=cache or output / "speech",
            workers=workers,
        )
        if os.environ.get("RANK", "0") != "0":  # several processes: the first one speaks
            continue
        draw_training(folder)
        _tell(folder, number, done.epochs[-1], as_json=as_json)
    leave_world()


def _tell(folder: Path, seed: int, last: "Epoch", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"attacker": str(folder), "seed": seed, **asdict(last)}))
        return
    target = "" if last.ver_target is None else f", VER_T {100 * last.ver_target:.1f} %"
    print(f"{folder}: VER_S {100 * last.ver_source:.1f} %{target}")
