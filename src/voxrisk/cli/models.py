"""``voxrisk models``: list the trained models and fetch them into the cache."""

import json
from typing import Annotated

import typer

models_app = typer.Typer(help="List and fetch the trained models that voxrisk can use.")


@models_app.callback(invoke_without_command=True)
def list_models(
    context: typer.Context,
    as_json: bool = typer.Option(False, "--json", help="Print JSON to stdout."),
) -> None:
    """List the trained models: size, licence, whether it is in the cache, what it is for.

    \b
    Example:
      voxrisk models
      voxrisk models fetch ecapa-voxceleb
    """
    if context.invoked_subcommand:
        return
    from voxrisk.models import MODELS, cache_folder, is_cached

    rows = [
        {
            "name": model.name,
            "size": model.size,
            "licence": model.licence,
            "cached": is_cached(model.name),
            "purpose": model.purpose,
            "sha256": {file.name: file.sha256 for file in model.files},
        }
        for model in MODELS.values()
    ]
    if as_json:
        print(json.dumps({"cache": str(cache_folder()), "models": rows}, indent=2))
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        mark = "cached" if row["cached"] else "-"
        size = f"{float(str(row['size'])) / 1e6:4.0f} MB"
        print(f"{row['name']:{width}}  {size}  {row['licence']:10}  {mark:6}  {row['purpose']}")
    print(f"\ncache: {cache_folder()}")


@models_app.command("fetch")
def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Names from `voxrisk models`.")] = None,
    everything: bool = typer.Option(False, "--all", help="Fetch every model."),
) -> None:
    """Fetch models into the cache; each file is accepted only with the right SHA-256.

    \b
    Example:
      voxrisk models fetch whisper-tiny.en hifigan-universal
    """
    from voxrisk.models import MODELS, model_path
    from voxrisk.types import InputError

    wanted = list(MODELS) if everything else names or []
    if not wanted:
        raise InputError("name at least one model, or give --all; `voxrisk models` lists them")
    for name in wanted:
        print(f"{name}\t{model_path(name)}")
