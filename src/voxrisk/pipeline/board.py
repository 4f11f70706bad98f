"""A leaderboard: the same evaluation of many anonymizers, from one YAML file.

What all systems share stands at the top, what makes each one under ``systems``::

    original: speech
    train: others
    effort: standard
    systems:
      mcadams: {anonymizer: mcadams}
      knn, far: {anonymizer: knn, select: farthest}
      ours: {anonymized: protected, train_anonymized: others-protected}

Relative paths start from the folder of the file. Every system is a run of its own in the folder of
runs; what is finished is used again, and all share one folder of stages, so that original speech
is listened to once.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import (
    YAML,
    Evaluation,
    choices_of,
    plain_yaml,
    write_yaml,
)
from voxrisk.progress import log
from voxrisk.results import FILE, Results
from voxrisk.types import InputError

SYSTEMS = "systems"
STAGES = "stages"


@dataclass(frozen=True, slots=True)
class Board:
    """Systems by name, in the order of the file, each with its whole evaluation."""

    systems: Mapping[str, Evaluation]


def read_board(path: Path) -> Board:
    """Read a leaderboard.

    Raises:
        InputError: If a key is unknown, a system is missing or cannot be evaluated; with its name.
    """
    plain = plain_yaml(path)
    systems = plain.pop(SYSTEMS, None)
    if not isinstance(systems, dict) or len(systems) < 2:
        raise InputError(
            f"{path}: needs the key {SYSTEMS} with two systems or more, such as "
            "'mcadams: {anonymizer: mcadams}'"
        )
    found: dict[str, Evaluation] = {}
    for name, own in systems.items():
        if not isinstance(own, dict):
            raise InputError(f"{path}: system {name!r} is {own!r}; write {{anonymizer: NAME}}")
        whole: dict[str, Any] = {**plain, **own}
        if "original" not in whole:
            raise InputError(f"{path}: system {name!r} has no original speech")
        try:
            found[str(name)] = choices_of(whole, Evaluation, path)
        except InputError as error:
            raise InputError(f"{error} (system {name!r})") from error
    slugs = [slug(name) for name in found]
    if doubled := next((s for s in slugs if slugs.count(s) > 1), None):
        raise InputError(f"{path}: two systems would share the folder {doubled!r}; rename one")
    return Board({name: _named(one, name) for name, one in found.items()})


def _named(one: Evaluation, name: str) -> Evaluation:
    return one if one.title else replace(one, title=name)


def slug(name: str) -> str:
    """The name of a system as a folder.

    >>> slug("knn, farthest (2)")
    'knn-farthest-2'
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "system"


def run_board(
    board: Board, folder: Path, *, stages: Path | None = None, force: bool = False
) -> Iterator[tuple[str, Results]]:
    """Evaluate every system, or take up what is finished; in the order of the board.

    Args:
        board: The systems.
        folder: Where each system has a folder of its own.
        stages: Where finished stages are kept; by default in ``folder``.
        force: Evaluate again what is finished; stages are still used.
    """
    for name, one in board.systems.items():
        out = folder / slug(name)
        done = None if force else finished(one, out)
        if done is not None:
            log.info("%s: finished before", name)
        else:
            log.info("%s …", name)
            done = evaluate_speech(one, out, stages=stages or folder / STAGES, force=force)
        yield name, done


def finished(one: Evaluation, out: Path) -> Results | None:
    """The results of the same evaluation by this version, if it is finished."""
    record = out / YAML
    if not (record.is_file() and (out / FILE).is_file()):
        return None
    if record.read_text(encoding="utf-8") != write_yaml(one, out):
        return None
    done = Results.read(out)
    return done if done.voxrisk == __version__ else None
