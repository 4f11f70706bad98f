"""Undo an anonymizer whose only secret is a number that can be heard.

A row of :data:`UNDO` is an anonymizer that draws one parameter and can be run backwards with it.
The informed attacker anonymizes training speech, and so knows the parameter of each training
utterance; what was drawn for the speech under attack is guessed (:mod:`voxrisk.attack.guess`).
Speech that was undone is speech again, and every encoder can listen to it.
"""

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk import shards
from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE, write_audio
from voxrisk.corpus.table import file_name
from voxrisk.pipeline.stages import Stages
from voxrisk.protect.mcadams import mcadams
from voxrisk.protect.run import finish

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Undo:
    """How to run an anonymizer backwards: its drawn parameter, and ``back(samples, value)``."""

    parameter: str
    back: Callable[[Samples, float], Samples]


def _mcadams_back(samples: Samples, alpha: float) -> Samples:
    """Pole angles φ^α become φ again."""
    return mcadams(samples, alpha=1.0 / alpha)


UNDO = {"mcadams": Undo("alpha", _mcadams_back)}


def drawn_values(rows: Sequence[Utterance], anonymizer: str | None) -> NDArray[np.float64] | None:
    """The drawn parameter of each utterance of one's own speech; None where nothing can be undone.

    That is: an anonymizer that cannot be run backwards, or one that drew the same for all.
    """
    if anonymizer not in UNDO:
        return None
    name = UNDO[anonymizer].parameter
    found = [json.loads(row.extra.get("parameters") or "{}").get(name) for row in rows]
    if any(value is None for value in found) or len(set(found)) < 2:
        return None
    return np.array(found, dtype=np.float64)


def undo_stage(
    rows: Sequence[Utterance],
    digest: str,
    values: NDArray[np.float64],
    anonymizer: str,
    stages: Stages,
    label: str,
) -> list[Utterance]:
    """The same utterances with the anonymizer run backwards, each with its own value."""
    rounded = [round(float(value), 4) for value in values]

    def make(folder: Path) -> None:
        jobs = list(zip(rows, rounded, strict=True))
        for _ in shards.run(functools.partial(_undone, anonymizer, folder), jobs, label="undo"):
            pass

    inputs = {"corpus": digest, "anonymizer": anonymizer, "values": rounded}
    folder = stages.run("undo", inputs, make, label=label, speech=rows)
    return [replace(row, path=folder / _name(row), heard=None, start=None, end=None)
            for row in rows]  # fmt: skip


def _name(row: Utterance) -> str:
    return file_name(row.utterance, ".flac")


def _undone(anonymizer: str, folder: Path, job: tuple[Utterance, float]) -> None:
    row, value = job
    samples = read_audio(row, rate=RATE)
    back, _ = finish(UNDO[anonymizer].back(samples, value), length=len(samples))
    write_audio(folder / _name(row), back, rate=RATE, sync=False)
