"""``voxrisk train``: train an attacker."""

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxrisk.cli.engine import Engine
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.attack.epochs import Epoch
    from voxrisk.attack.recipes import AdapterRecipe, Recipe


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
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
    zero_epochs: Annotated[int | None, typer.Option(min=0, help="E: epochs with w_T = 0.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
    max_rate: Annotated[float | None, typer.Option(help="Instead of the recipe's.")] = None,
    keep_statistics: Annotated[
        bool | None,
        typer.Option(
            "--keep-statistics/--learn-statistics",
            help="Batch normalisation stays as it was, or follows the training speech; "
            "default: kept with --start.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings, in folders seed-N.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda …")] = "auto",
    cache: Annotated[Path | None, typer.Option(help="Folder for decoded speech.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes for decoding.")] = None,
    ranks: Annotated[
        int, typer.Option(min=1, help="Processes that train together, with --engine ray.")
    ] = 1,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Begin anew where one lies.")] = False,
) -> None:
    """Train a recogniser on a corpus, labelled with its speakers.

    The same command after a kill goes on where it stopped. On several GPUs:
    `torchrun --nproc-per-node 4 -m voxrisk train …`, or --engine ray,gpu=1 --ranks 4

    \b
    Example:
      voxrisk train anonymized/train -o attacker --recipe spane --adversarial
      voxrisk train anonymized/train -o attacker --recipe adapter --unlearn reverse
    """
    from voxrisk.attack.starts import start_checkpoint
    from voxrisk.corpus import read_corpus
    from voxrisk.report.training_figure import draw_training
    from voxrisk.shards import together
    from voxrisk.types import require

    require("torch", extra="attack")
    from voxrisk.attack.parallel import leave_world
    from voxrisk.attack.train import forget_training, train_attacker

    if seeds < 1:
        raise InputError(f"--seeds is {seeds}; at least one training is needed")
    _refuse_misplaced(recipe, start, unlearn, adversarial, keep_statistics)
    given = {"epochs": epochs, "zero_epochs": zero_epochs, "batch": batch, "max_rate": max_rate}
    changes = {key: value for key, value in given.items() if value is not None}
    folders = {
        number: output if seeds == 1 else output / f"seed-{number}"
        for number in range(seed, seed + seeds)
    }
    if recipe == RecipeName.adapter:
        if ranks > 1:
            raise InputError("--ranks is for whole encoders; an adapter is trained in seconds")
        if force:
            (output / "training.npz").unlink(missing_ok=True)
        method = UnlearnName.reverse if adversarial else unlearn
        adapter = _adapter_recipe(changes, method)
        shared = {"target_column": target_column, "device": device, "workers": workers,
                  "vectors": output / "training.npz"}  # fmt: skip
        _train_adapters(corpus, folders, adapter, start, method, shared, as_json=as_json)
        return
    keep = start is not None and keep_statistics is not False
    whole = _encoder_recipe(recipe, changes, keep_statistics=keep)
    rows = read_corpus(corpus)
    checkpoint = start_checkpoint(start) if start else None
    for number, folder in folders.items():
        if force:
            forget_training(folder)
        work = functools.partial(
            train_attacker,
            rows,
            folder,
            whole,
            seed=number,
            adversarial=adversarial,
            target_column=target_column,
            start=checkpoint,
            device=device,
            cache=cache or output / "speech",
            workers=workers,
        )
        done = together(work, ranks, device=device, shared=output, label="train")
        if os.environ.get("RANK", "0") != "0":  # several processes: the first one speaks
            continue
        draw_training(folder)
        _tell(folder, number, done.epochs[-1], as_json=as_json)
    leave_world()


def _train_adapters(
    corpus: Path,
    folders: Mapping[int, Path],
    recipe: "AdapterRecipe",
    start: str | None,
    unlearn: UnlearnName | None,
    shared: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Train a map behind a ready encoder for each seed, on vectors that all of them share."""
    from voxrisk.attack.adapter import train_adapter
    from voxrisk.corpus import read_corpus
    from voxrisk.report.training_figure import draw_training

    rows = read_corpus(corpus)
    for seed, folder in folders.items():
        adapted = train_adapter(
            rows,
            folder,
            recipe,
            encoder=start or "ecapa-voxceleb",
            seed=seed,
            unlearn=unlearn.value if unlearn else None,
            **shared,
        )
        draw_training(folder)
        _tell(folder, seed, adapted.epochs[-1], as_json=as_json)


def _refuse_misplaced(
    recipe: RecipeName,
    start: str | None,
    unlearn: UnlearnName | None,
    adversarial: bool,
    keep_statistics: bool | None,
) -> None:
    """Stop at options that the chosen recipe has no use for."""
    if unlearn and recipe != RecipeName.adapter:
        raise InputError(
            "--unlearn is for --recipe adapter; a whole encoder unlearns targets by --adversarial"
        )
    if adversarial and unlearn == UnlearnName.erase:
        raise InputError("--adversarial is the reversed gradient: leave it out to erase")
    if keep_statistics is not None and (start is None or recipe == RecipeName.adapter):
        raise InputError(
            "--keep-statistics and --learn-statistics are for fine-tuning a whole encoder: "
            "give --start, and a recipe other than adapter"
        )


def _adapter_recipe(
    given: Mapping[str, int | float], method: UnlearnName | None
) -> "AdapterRecipe":
    """The adapter's constants with those of the command line, which go by the encoder's names."""
    from voxrisk.attack.recipes import ADAPTED

    changes = dict(given)
    if "zero_epochs" in changes and method != UnlearnName.reverse:
        raise InputError("--zero-epochs is for --unlearn reverse: there is nothing to delay")
    if method == UnlearnName.reverse and "epochs" in changes:
        changes["reverse_epochs"] = changes.pop("epochs")
        changes.setdefault("zero_epochs", changes["reverse_epochs"] // 4)
    if "max_rate" in changes:
        changes["rate"] = changes.pop("max_rate")
    return replace(ADAPTED, **changes)  # type: ignore[arg-type]


def _encoder_recipe(
    name: RecipeName, given: Mapping[str, int | float], *, keep_statistics: bool
) -> "Recipe":
    """A named recipe with the constants of the command line; E shrinks with the epochs."""
    from voxrisk.attack.recipes import RECIPES

    named, changes = RECIPES[name], dict(given)
    if "epochs" in changes and "zero_epochs" not in changes:
        changes["zero_epochs"] = round(named.zero_epochs * changes["epochs"] / named.epochs)
    return replace(named, keep_statistics=keep_statistics, **changes)  # type: ignore[arg-type]


def _tell(folder: Path, seed: int, last: "Epoch", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"attacker": str(folder), "seed": seed, **asdict(last)}))
        return
    target = "" if last.ver_target is None else f", VER_T {100 * last.ver_target:.1f} %"
    print(f"{folder}: VER_S {100 * last.ver_source:.1f} %{target}")
