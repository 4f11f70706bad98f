"""Read the results.json of a run."""

import json
from pathlib import Path
from typing import Any

from voxrisk.types import InputError


def read_results(run: Path) -> dict[str, Any]:
    """What ``voxrisk evaluate`` found, from its folder or from the file itself.

    Raises:
        InputError: If there is no results.json, it is not JSON, or it is not of an evaluation.
    """
    path = run / "results.json" if run.is_dir() else run
    if not path.is_file():
        raise InputError(f"{path} is not there; give the folder that 'voxrisk evaluate -o' wrote")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); evaluate again") from error
    if not isinstance(found, dict) or "attackers" not in found:
        raise InputError(
            f"{path} is not of an evaluation; give the folder 'voxrisk evaluate' wrote"
        )
    return found


def read_times(run: Path) -> dict[str, Any]:
    """What ``run.json`` tells beside the results, such as times; empty where there is none."""
    path = (run if run.is_dir() else run.parent) / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
