"""Learning curves: what each epoch of a training gave, as a table and as a picture."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from voxrisk.files.atomic import atomic, write_text


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


def draw_curves(path: Path, epochs: Sequence[Epoch]) -> None:
    """Draw the losses, and the errors of both heads as in Figure 3 of paper 3."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    number = [e.epoch for e in epochs]
    left.plot(number, [e.loss_source for e in epochs], "C0o-", label="source head")
    right.plot(number, [100 * e.ver_source for e in epochs], "C0o-", label="VER$_S$ (source)")
    targets = [e for e in epochs if e.loss_target is not None and e.ver_target is not None]
    if targets:
        number = [e.epoch for e in targets]
        left.plot(number, [e.loss_target for e in targets], "C1s-", label="target head")
        error = [100 * (e.ver_target or 0.0) for e in targets]
        right.plot(number, error, "C1s-", label="VER$_T$ (target)")
        weight = [100 * e.w_target for e in targets]
        right.plot(number, weight, "k:", label="w$_T$ × 100")
    left.set(xlabel="epoch", ylabel="training loss")
    right.set(xlabel="epoch", ylabel="validation error (%)", ylim=(-2, 102))
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    with atomic(path) as part:
        figure.savefig(part, dpi=130)
