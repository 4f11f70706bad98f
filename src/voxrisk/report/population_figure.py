"""The picture of a population study: rows are metrics, columns conversation lengths.

Every panel reads the same way: the higher the curve, the greater the risk. Each attacker has a
colour; the band is the confidence interval; grey is what an attacker gets who learns nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from voxrisk.files.published import PublishedCurve
from voxrisk.measure.curves import Population
from voxrisk.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The names of the paper clash with those of the VoicePrivacy Challenge: print both.
ATTACKERS = {
    "original": "original speech, not protected",
    "informed": "informed (VoicePrivacy: semi-informed)",
    "semi-informed": "semi-informed (VoicePrivacy: no equivalent)",
    "ignorant": "ignorant (VoicePrivacy: ignorant)",
}
_USUAL = {
    "original": style.INK,
    "informed": style.COLOURS[1],
    "semi-informed": style.COLOURS[0],
    "ignorant": style.COLOURS[2],
}


class Row(NamedTuple):
    """One metric: what it is called and what it means to somebody who has never seen it."""

    metric: str
    title: str
    meaning: str


ROWS = (
    Row("singling_out", "Singling Out", "A known voice points at\nexactly one of N people"),
    Row("linkability", "Linkability", "A voice is matched to its\nown speaker among N"),
    Row("rocch_eer", "1 − EER", "“Same speaker or not?”\nis answered rightly"),
)


def population_figure(
    populations: Sequence[Population], *, under: Sequence[PublishedCurve] = ()
) -> "Figure":
    """Draw all attackers together; ``under`` is laid below as thin dashed lines.

    Metrics that were not measured (a ready score matrix has no Singling Out) are left out.
    """
    from matplotlib import rc_context

    names = {e.name for p in populations for e in p.estimates}
    rows = [row for row in ROWS if row.metric in names]
    lengths = sorted({int(e.parameters["L"]) for p in populations for e in p.estimates})
    with rc_context({**style.SETTINGS, "axes.titlelocation": "center"}):
        figure = style.new_figure(2.0 + 3.3 * len(lengths), 1.9 + 2.4 * len(rows))
        ratios = {"width_ratios": [0.55] + [1.0] * len(lengths)}
        grid = figure.subplots(len(rows), 1 + len(lengths), squeeze=False, gridspec_kw=ratios)
        figure.set_layout_engine("constrained", wspace=0.02, hspace=0.05, h_pad=0.08)
        names_of, axes = grid[:, 0], grid[:, 1:]
        reach = _reach(populations, under, lengths)
        for i, row in enumerate(rows):
            for j, length in enumerate(lengths):
                _panel(axes[i, j], row.metric, length, populations, under)
                _quiet(axes[i, j], reach, left=j == 0, bottom=i == len(rows) - 1)
            _name_row(names_of[i], row)
        for j, length in enumerate(lengths):
            words = "one utterance" if length == 1 else f"{length} utterances"
            axes[0, j].set_title(f"{words} of each voice, L = {length}", fontsize=10, pad=8)
            axes[-1, j].set_xlabel("people to choose from, N", fontsize=9)
        figure.suptitle(
            "Risk of being recognised: the higher the curve, the greater the risk",
            x=0.004, ha="left", fontsize=14, weight="bold",
        )  # fmt: skip
        _legend(figure, axes, populations, under, rows)
    return figure


def _panel(
    axes: Any,
    metric: str,
    length: int,
    populations: Sequence[Population],
    under: Sequence[PublishedCurve],
) -> None:
    for k, p in enumerate(populations):
        colour = _colour(p.attacker, k)
        for curve in under:
            if (curve.metric, curve.length) == (metric, length) and curve.attacker == p.attacker:
                axes.plot(
                    curve.size, _risk(metric, np.asarray(curve.value)),
                    color=colour, lw=1.1, ls=(0, (4, 2)), alpha=0.55, zorder=2,
                )  # fmt: skip
    drawn = {p.attacker for p in populations}
    for curve in under:
        if (curve.metric, curve.length) == (metric, length) and curve.attacker not in drawn:
            axes.plot(
                curve.size, _risk(metric, np.asarray(curve.value)),
                color=_USUAL.get(curve.attacker, style.MUTED), lw=1.1, ls=(0, (4, 2)), alpha=0.45,
                zorder=2,
            )  # fmt: skip
    chance = None
    for k, p in enumerate(populations):
        points = p.curve(metric, length)
        if not points:
            continue
        size = np.array([e.parameters["N"] for e in points])
        value = _risk(metric, np.array([e.value for e in points]))
        colour = _colour(p.attacker, k)
        spans = [e.interval for e in points]
        if all(spans):
            low = _risk(metric, np.array([s.low for s in spans if s]))
            high = _risk(metric, np.array([s.high for s in spans if s]))
            axes.fill_between(size, low, high, color=colour, alpha=0.16, lw=0, zorder=3)
        mark = {"marker": "o", "ms": 3.2} if size.size < 15 else {}
        axes.plot(size, value, color=colour, zorder=4, **mark)
        if chance is None or size[-1] > chance[0][-1]:
            chance = (
                size,
                np.array([e.chance for e in points]),
                points[0].parameters["chance_paper"],
            )
    if chance is not None:
        _draw_chance(axes, metric, *chance)


def _draw_chance(axes: Any, metric: str, size: Any, exact: Any, paper: float) -> None:
    if metric == "linkability":  # it is 1/N, so draw it smoothly
        size = np.geomspace(size[0], size[-1], 50)
        exact = 1.0 / size
    axes.fill_between(size, 0.0, exact, color=style.NONTARGET, alpha=0.09, lw=0, zorder=1)
    axes.plot(size, exact, color=style.NONTARGET, lw=1.2, ls=(0, (1, 1.2)), zorder=2.5)
    if metric == "singling_out":
        axes.plot(size[[0, -1]], [paper] * 2, color=style.NONTARGET, lw=0.9, alpha=0.6, zorder=2.4)


def _quiet(axes: Any, reach: tuple[float, float], *, left: bool, bottom: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(reach[0] / 1.12, reach[1] * 1.12)
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.set_major_locator(_ticks(*reach))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{int(n):,}"))
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    style.percent_axis(axes.yaxis)
    axes.tick_params(labelsize=8.5, length=0, labelleft=left, labelbottom=bottom)


def _ticks(low: float, high: float) -> Any:
    """Round numbers, few enough to be read."""
    from matplotlib.ticker import FixedLocator

    every = [m * 10**k for k in range(7) for m in (1, 2, 5)]
    shown = [n for n in every if low <= n <= high]
    if len(shown) > 6:
        shown = [n for n in shown if str(n)[0] == "1"]
    return FixedLocator(shown or [low, high])


def _name_row(axes: Any, row: Row) -> None:
    axes.set_axis_off()
    axes.text(0.0, 0.62, row.title, fontsize=13, weight="bold", va="center")
    axes.text(0.0, 0.55, row.meaning, fontsize=8.5, color=style.MUTED, va="top", linespacing=1.5)


def _legend(
    figure: "Figure",
    axes: Any,
    populations: Sequence[Population],
    under: Sequence[PublishedCurve],
    rows: Sequence[Row],
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Any] = [
        Line2D([], [], color=_colour(p.attacker, k), marker="o", ms=3.2,
               label=ATTACKERS.get(p.attacker, p.attacker))
        for k, p in enumerate(populations)
    ]  # fmt: skip
    spans = [e.interval for p in populations for e in p.estimates if e.interval]
    if spans:
        words = f"{spans[0].confidence:.0%} interval, speakers resampled"
        entries.append(Patch(color=style.MUTED, alpha=0.25, lw=0, label=words))
    if under:
        entries.append(Line2D([], [], color=style.MUTED, lw=1.1, ls=(0, (4, 2)),
                              label="published curve, same colour"))  # fmt: skip
    entries.append(Line2D([], [], color=style.NONTARGET, lw=1.2, ls=(0, (1, 1.2)),
                          label="chance: the voice tells nothing"))  # fmt: skip
    if any(row.metric == "singling_out" for row in rows):
        entries.append(Line2D([], [], color=style.NONTARGET, lw=0.9, alpha=0.6,
                              label="chance as the paper gives it, 37 %"))  # fmt: skip
    columns = min(len(entries), axes.shape[1])
    figure.legend(handles=entries, loc="outside lower center", ncols=columns, columnspacing=2.4)


def _reach(
    populations: Sequence[Population], under: Sequence[PublishedCurve], lengths: Sequence[int]
) -> tuple[float, float]:
    sizes = [int(e.parameters["N"]) for p in populations for e in p.estimates]
    sizes += [n for curve in under if curve.length in lengths for n in curve.size]
    return float(min(sizes)), float(max(max(sizes), min(sizes) + 1))


def _risk(metric: str, value: Any) -> Any:
    return 1.0 - value if metric == "rocch_eer" else value


def _colour(attacker: str, index: int) -> str:
    return _USUAL.get(attacker) or style.colour(index)
