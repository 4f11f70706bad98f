"""A ready score matrix, speakers enrolled against trials: ours in one NPZ, or NPY with JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.arrays import array_names, as_text, read_npy
from voxrisk.files.errors import reading
from voxrisk.files.scores import read_score_arrays
from voxrisk.files.text import read_text
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMatrix:
    """Scores of everybody enrolled against every trial.

    Attributes:
        score: ``(n_enroll, n_trial)``.
        enroll: ``(n_enroll,)`` speakers.
        trial: ``(n_trial,)`` speaker of each trial.
    """

    score: NDArray[np.floating[Any]]
    enroll: NDArray[np.str_]
    trial: NDArray[np.str_]


def read_score_matrix(path: Path) -> ScoreMatrix | None:
    """Read NPZ with ``score``, ``enroll`` and ``trial``, or NPY with a JSON file of speakers.

    The second form is that of the package ``voice-anonymization-legal-eval``: ``x.npy`` and
    ``x.npy.json`` with ``enroll_speakers`` and ``test_speakers``. Anything else gives None.
    """
    if path.suffix == ".npz" and path.is_file():
        names = array_names(path)
        if "score" not in names:
            return None
        if missing := [k for k in ("enroll", "trial") if k not in names]:
            raise InputError(
                f"{path}: a score matrix needs the speakers too; no array {', '.join(missing)}"
            )
        rows, columns, score = read_score_arrays(path)
        return _checked(path, score, rows, columns)
    labels = path.with_name(path.name + ".json")
    if path.suffix != ".npy" or not labels.is_file():
        return None
    with reading(labels, "JSON"):
        found = json.loads(read_text(labels))
    sides = [_speakers(labels, found, key) for key in ("enroll_speakers", "test_speakers")]
    return _checked(path, read_npy(path), *sides)


def _speakers(path: Path, found: Any, key: str) -> NDArray[np.str_]:
    listed = found.get(key) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(
        isinstance(name, str | int) and not isinstance(name, bool) and name != "" for name in listed
    ):
        raise InputError(f"{path}: needs enroll_speakers and test_speakers, two lists of speakers")
    return as_text(np.asarray([str(name) for name in listed], str), f"{path} {key}")


def _checked(
    path: Path, score: NDArray[Any], enroll: NDArray[np.str_], trial: NDArray[np.str_]
) -> ScoreMatrix:
    if score.dtype.kind not in "fiu" or score.shape != (enroll.size, trial.size):
        raise InputError(
            f"{path}: score is {score.dtype} of shape {score.shape} beside {enroll.size} enrolled "
            f"speakers and {trial.size} trials; it must be numbers, a row for each enrolled speaker"
        )
    if not np.isfinite(score).all():
        row, column = np.argwhere(~np.isfinite(score))[0]
        raise InputError(
            f"{path}: the score of {enroll[row]} and trial {column} is {score[row, column]}; "
            "score it again"
        )
    return ScoreMatrix(score, enroll, trial)
