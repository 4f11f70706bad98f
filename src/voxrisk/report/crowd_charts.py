"""Curves of the risk in a crowd: against the number of people, a panel for each metric and L."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from voxrisk.report import style, words
from voxrisk.report.charts import CHANCE_DASH, Series, series_of
from voxrisk.report.svg import Axis, Plot, Points, percent_axis
from voxrisk.results import Results
from voxrisk.types import Estimate

UNDER_DASH = "5 2.5"
CROWD_ROWS = (
    ("singling_out", "Singling Out", "A known voice points at exactly one of N people."),
    ("linkability", "Linkability", "A recording is matched to its own speaker among N."),
    ("rocch_eer", "1 − EER", "The question “same speaker or not?” is answered rightly."),
)


class CurveRow(NamedTuple):
    """One metric of the crowd: a panel for each L."""

    metric: str
    title: str
    meaning: str
    panels: list[tuple[int, Markup]]


def curve_rows(results: Results) -> list[CurveRow]:
    """Rows of metrics, columns of L: every curve of every attacker; empty if none was measured."""
    entries = [e for a in results.attacks for e in a.crowd]
    lengths = sorted({e.length for e in entries})
    sizes = [e.size for e in entries if e.name in {m for m, _, _ in CROWD_ROWS}]
    rows = []
    for metric, title, meaning in CROWD_ROWS:
        if any(e.name == metric for e in entries):
            panels = [
                (length, _panel(results, metric, title, length, sizes_axis(sizes)))
                for length in lengths
            ]
            rows.append(CurveRow(metric, title, meaning, panels))
    return rows


def curve_table(results: Results, metric: str) -> list[tuple[str, Estimate]]:
    """The numbers of one row of curves, each with its attacker's names."""
    return [(words.both_names(a), e) for a in results.attacks for e in a.crowd if e.name == metric]


def sizes_axis(sizes: Sequence[int]) -> Axis:
    """An axis of numbers of people, logarithmic, with few round ticks."""
    low, high = min(sizes), max(sizes)
    every = [m * 10**k for k in range(7) for m in (1, 2, 5)]
    shown = [n for n in every if low <= n <= high]
    if len(shown) > 6:
        shown = [n for n in shown if str(n)[0] == "1"]
    if len(shown) < 2:
        shown = sorted({low, high})
    elif high / shown[-1] > (high / low) ** 0.15:  # the crowd of the verdict, if there is room
        shown.append(high)
    stretch = 1.12 if high > low else 2.0
    ticks = [(float(n), f"{n:,}") for n in shown]
    return Axis(low / stretch, high * stretch, ticks, "people to choose from, N", "log")


def _panel(results: Results, metric: str, title: str, length: int, axis: Axis) -> Markup:
    curves = [
        (series_of(attack, i), attack.curve(metric, length))
        for i, attack in enumerate(results.attacks)
    ]
    said = (
        f"{title} against the number of people N, L = {length}. "
        "The numbers are in the table below the figure."
    )
    return crowd_plot(curves, metric, axis, said).svg()


def crowd_panels(
    shown: Sequence[tuple[str, str, str]],
    lengths: Sequence[int],
    axis: Axis,
    curves: Callable[[str, int], Sequence[tuple[Series, Sequence[Estimate]]]],
    under: Callable[[str, int], Sequence[tuple[Points, str]]] = lambda metric, length: (),
) -> list[list[tuple[str, Plot]]]:
    """The panels of a figure that stands alone: rows are metrics, columns lengths.

    Args:
        shown: Rows of ``CROWD_ROWS``.
        lengths: Each L.
        axis: Of the number of people.
        curves: By metric and L.
        under: Thin curves below them.
    """
    rows: list[list[tuple[str, Plot]]] = []
    for metric, title, _ in shown:
        across = axis if metric == shown[-1][0] else replace(axis, title="")
        row = []
        for length in lengths:
            spoken = "one utterance" if length == 1 else f"{length} utterances"
            head = f"{spoken} of each voice, L = {length}" if not rows else ""
            drawn = crowd_plot(
                curves(metric, length), metric, across, f"{title}, L = {length}",
                under=under(metric, length),
            )  # fmt: skip
            row.append((head, drawn))
        rows.append(row)
    return rows


def crowd_plot(
    curves: Sequence[tuple[Series, Sequence[Estimate]]],
    metric: str,
    axis: Axis,
    said: str,
    *,
    under: Sequence[tuple[Points, str]] = (),
) -> Plot:
    """Risk against the number of people; ``under`` are thin curves (points, colour) below."""
    plot = Plot(axis, percent_axis(""), said)
    curves = [curve for curve in curves if curve[1]]
    if not curves:
        middle = math.sqrt(axis.low * axis.high)
        plot.text(middle, 0.5, "not measured", anchor="middle", css="tick")
        return plot
    _chance(plot, metric, max((points for _, points in curves), key=len))
    for below, colour in under:
        plot.line(below, colour, width=1.1, dash=UNDER_DASH)
    for series, points in reversed(curves):
        _curve(plot, metric, series, points)
    return plot


def _chance(plot: Plot, metric: str, points: Sequence[Estimate]) -> None:
    known = [(float(e.size), risk(metric, e.chance)) for e in points]
    if metric == "linkability" and len(known) > 1:  # it is 1/N, so draw it smoothly
        first, last = known[0][0], known[-1][0]
        steps = [first * (last / first) ** (k / 30) for k in range(31)]
        known = [(n, 1.0 / n) for n in steps]
    if len(known) == 1:
        known = [(plot.x.low, known[0][1]), (plot.x.high, known[0][1])]
    plot.band([(n, 0.0) for n, _ in known], known, style.NONTARGET, opacity=0.1)
    plot.line(known, style.NONTARGET, width=1.4, dash=CHANCE_DASH)
    published = points[0].parameters.get("chance_paper")
    if metric == "singling_out" and published is not None:
        level = [(known[0][0], published), (known[-1][0], published)]
        plot.line(level, style.NONTARGET, width=0.8)


def _curve(plot: Plot, metric: str, series: Series, points: Sequence[Estimate]) -> None:
    colour, shape = series.colour, series.mark
    plot.series(series.id)
    spans = [
        (float(e.size), *sorted((risk(metric, e.interval.low), risk(metric, e.interval.high))))
        for e in points
        if e.interval
    ]
    if len(spans) > 1:
        plot.band([(n, low) for n, low, _ in spans], [(n, high) for n, _, high in spans], colour)
    for n, low, high in spans if len(spans) == 1 else ():
        plot.whisker((n, low), (n, high), colour)
    plot.line([(e.size, risk(metric, e.value)) for e in points], colour)
    marked = _spread([plot.x.share(e.size) for e in points])
    for k, e in enumerate(points):
        value = risk(metric, e.value)
        tip = f"{series.name}\nL = {e.length}, N = {e.size:,}: {words.percent(value)}"
        if metric == "rocch_eer":
            tip += f" (EER {words.percent(e.value)})"
        span = e.interval
        if span:
            ends = sorted((risk(metric, span.low), risk(metric, span.high)))
            tip += f"\ninterval {words.bounds(metric, *ends)}"
        tip += f"\nguessing {words.percent(risk(metric, e.chance))}"
        plot.point(
            e.size, value, colour, shape, tip, size=3.0 if k in marked else 0,
            metric=metric, l=e.length, n=e.size, value=e.value,
            low=span and span.low, high=span and span.high,
        )  # fmt: skip
    plot.end()


def _spread(places: Sequence[float], *, most: int = 12) -> set[int]:
    """Which points of a curve to mark, so that marks never hide the line.

    >>> _spread([0.0, 0.5, 1.0]), len(_spread([k / 500 for k in range(501)]))
    ({0, 1, 2}, 12)
    """
    if len(places) <= most:
        return set(range(len(places)))
    wanted = [places[0] + (places[-1] - places[0]) * k / (most - 1) for k in range(most)]
    return {min(range(len(places)), key=lambda i: abs(places[i] - w)) for w in wanted}


def risk(metric: str, value: float) -> float:
    """A figure of the crowd as a risk: the higher, the worse."""
    return 1.0 - value if metric == "rocch_eer" else value
