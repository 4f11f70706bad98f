"""The picture of a training: the losses, and the errors of both heads as in Figure 3 of paper 3."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from voxrisk.report import style, words
from voxrisk.report.figure import Entry, Figure, arrange, save
from voxrisk.report.svg import Axis, Plot, percent_axis, round_ticks
from voxrisk.types import InputError

SOURCE = ("source head", style.COLOURS[0], "circle")
TARGET = ("target head", style.COLOURS[1], "square")
_DASH = "2 2.5"


def draw_training(folder: Path) -> list[Path]:
    """Draw the ``curves.csv`` of a training as ``curves.svg``, and ``curves.png`` where it can be.

    Raises:
        InputError: If there is no such file, or it has no epoch or a column too few.
    """
    path = folder / "curves.csv"
    if not path.is_file():
        raise InputError(f"{path} is not there; train first")
    with path.open(encoding="utf-8", newline="") as stream:
        epochs = list(csv.DictReader(stream))
    try:
        return save(training_figure(epochs), folder, "curves")
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} is no table of a training ({error}); train again") from error


def training_figure(epochs: Sequence[Mapping[str, str]]) -> Figure:
    """Rows of curves.csv: loss and validation error by epoch.

    The target head is drawn where there is one: near 0, the recogniser knows the targets; the
    dotted line is the weight w_T of its reversed gradient, from 0 to 1.
    """
    if not epochs:
        raise ValueError("no epoch")
    last = int(epochs[-1]["epoch"])
    ticks = [(t, f"{t:g}") for t in round_ticks(1, max(last, 2)) if t == int(t) and t >= 1]
    if ticks[0][0] != 1:
        ticks.insert(0, (1.0, "1"))
    across = Axis(1 - 0.02 * last, max(last, 2) + 0.02 * last, ticks, "epoch")
    losses = [float(e[k]) for e in epochs for k in ("loss_source", "loss_target") if e[k]]
    highest = 1.06 * max(*losses, 1e-6)
    loss = Plot(
        across,
        Axis(0.0, highest, [(t, f"{t:g}") for t in round_ticks(0.0, highest)], "training loss"),
        "", width=400, height=270,
    )  # fmt: skip
    error = Plot(across, percent_axis("validation error", high=1.02), "", width=400, height=270)
    legend: list[Entry] = []
    for (name, colour, shape), key in ((TARGET, "target"), (SOURCE, "source")):
        known = [e for e in epochs if e[f"loss_{key}"] and e[f"ver_{key}"]]
        if not known:
            continue
        for plot, column in ((loss, f"loss_{key}"), (error, f"ver_{key}")):
            points = [(float(e["epoch"]), float(e[column])) for e in known]
            plot.series(name)
            plot.line(points, colour)
            for i, (x, y) in enumerate(points):
                shown = f"{words.percent(y)}" if plot is error else f"{y:.3g}"
                plot.point(x, y, colour, shape, f"{name}, epoch {x:g}: {shown}",
                           size=3.2 * _marked(i, len(points)), across=x, value=y)  # fmt: skip
            plot.end()
        error_now = f"{name}: validation error {words.percent(float(known[-1][f'ver_{key}']))}"
        legend.insert(0, Entry(words=error_now, colour=colour, shape=shape))
        if key == "target":
            weights = [(float(e["epoch"]), float(e["w_target"])) for e in known]
            error.line(weights, style.INK, width=1.4, dash=_DASH)
            legend.append(
                Entry(words="w_T, weight of the reversed gradient (100 % = 1)", colour=style.INK,
                      width=1.4, dash=_DASH)
            )  # fmt: skip
    said = "; ".join(e.words for e in legend if e.shape)
    return arrange(
        "How the recogniser learned",
        f"Training loss and validation error after each of {last} epochs. {said}.",
        [[("What it is trained on", loss), ("What it gets wrong on held-out speech", error)]],
        legend=legend,
    )


def _marked(index: int, count: int) -> bool:
    """At most about a dozen marks on a curve, the last one always."""
    return (count - 1 - index) % max(1, round(count / 12)) == 0
