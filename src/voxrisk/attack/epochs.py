"""Learning curves: what each epoch of a training gave, as a table."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from voxrisk.files.atomic import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch.

    Attributes:
        epoch: Number, from 1.
        rate: Learning rate at its end.
        w_target: Weight w_T of the reversed gradient.
        loss_source: Mean training loss of the source head.
        loss_target: The same of the target head, where there is one.
        ver_source: Validation error of the source head (VER_S), a fraction.
        ver_target: The same of the target head (VER_T): near 0, the recogniser knows the targets.
        seconds: How long the epoch took.
    """

    epoch: int
    rate: float
    w_target: float
    loss_source: float
    loss_target: float | None
    ver_source: float
    ver_target: float | None
    seconds: float


def write_curves(folder: Path, epochs: Sequence[Epoch]) -> None:
    """Write ``curves.csv``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Epoch)])
    for epoch in epochs:
        writer.writerow(["" if cell is None else cell for cell in asdict(epoch).values()])
    write_text(folder / "curves.csv", text.getvalue())
