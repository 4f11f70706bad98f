"""Read what a run tells beside its results."""

import json
from collections.abc import Mapping
from pathlib import Path


def read_times(run: Path) -> Mapping[str, Mapping[str, float]]:
    """What ``run.json`` tells about time; empty where there is none."""
    path = (run if run.is_dir() else run.parent) / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, dict)}
