"""A ready score matrix, speakers enrolled against trials: ours in one NPZ, or NPY with JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        with np.load(path, allow_pickle=False) as archive:
            if "score" not in archive.files:
                return None
            if missing := [k for k in ("enroll", "trial") if k not in archive.files]:
                raise InputError(
                    f"{path}: a score matrix needs the speakers too; no array {', '.join(missing)}"
                )
            parts = [archive[k] for k in ("score", "enroll", "trial")]
        return ScoreMatrix(parts[0], parts[1].astype(str), parts[2].astype(str))
    labels = path.with_name(path.name + ".json")
    if path.suffix != ".npy" or not labels.is_file():
        return None
    try:
        found = json.loads(labels.read_text(encoding="utf-8-sig"))
        enroll, trial = found["enroll_speakers"], found["test_speakers"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise InputError(f"{labels}: needs enroll_speakers and test_speakers") from None
    return ScoreMatrix(
        np.load(path, allow_pickle=False), np.asarray(enroll, str), np.asarray(trial, str)
    )
