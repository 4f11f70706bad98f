"""Pictures of score sets: ECE profiles, DET curves, histograms, similarity matrices, scatter."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from voxrisk.measure import (
    Roc,
    Similarity,
    Trials,
    d_sys,
    ece_profile,
    expected_disclosure,
    local_d_sys,
    rocch_eer,
    tag,
    worst_case_disclosure,
    zero_evidence,
)
from voxrisk.measure.dsys import MIN_TARGETS, bin_edges
from voxrisk.report import charts, style, words
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.figure import EDGE, Entry, Figure, arrange, heading
from voxrisk.report.heatmap import cells, quarters
from voxrisk.report.lettering import text_width
from voxrisk.report.svg import Axis, Plot, label, round_ticks, steps, upright
from voxrisk.results import ErrorCurve, Profile
from voxrisk.types import Estimate

LOG_ODDS = np.linspace(-10.0, 10.0, 201)
_AREA = 0.32  # opacity of histograms
_PRIOR = np.linspace(0.0, 1.0, 201)[1:-1]


def ece_figure(curves: Mapping[str, Roc]) -> Figure:
    """ZEBRA: what the attacker still does not know, against what they believed beforehand."""
    looks = style.looks(curves)
    zero = zero_evidence(LOG_ODDS)
    profiles = {
        name: ece_profile(curve, log_odds=LOG_ODDS).tolist() for name, curve in curves.items()
    }
    odds = LOG_ODDS.tolist()
    left = charts.ece_plot(
        [
            (Series(name, name, *looks[name]), Profile(log_odds=tuple(odds), bits=tuple(bits)))
            for name, bits in profiles.items()
        ],
        Profile(log_odds=tuple(odds), bits=tuple(zero.tolist())),
    )
    if len(curves) == 1:
        ((name, bits),) = profiles.items()
        below, above = (list(zip(odds, y, strict=True)) for y in (bits, zero.tolist()))
        left.band(below, above, looks[name][0], opacity=0.12)
    found = [f"{name}: {_disclosed(curve)}" for name, curve in curves.items()]
    legend = [
        Entry(words="zero evidence: perfect privacy", colour=style.INK, width=1.4,
              dash=charts.CHANCE_DASH),
        *(_entry(text, looks[name]) for name, text in zip(curves, found, strict=True)),
    ]  # fmt: skip
    return arrange(
        "What the attacker still does not know (ECE profiles)",
        "Uncertainty left, in bit, against what the attacker believed before hearing the voice: "
        "the closer to the dashed curve of zero evidence, the less the attacker learns. Expected "
        f"disclosure, worst case and tag of {'; '.join(found)}.",
        [[("by log-odds", left), ("by probability", _ece_by_prior(curves, looks))]],
        legend=legend,
        legend_title="set: expected disclosure D_ECE, worst case log10 l (tag)",
    )


def _disclosed(curve: Roc) -> str:
    worst = worst_case_disclosure(curve)
    return f"{expected_disclosure(curve):.3f} bit, {worst:.2f} ({tag(worst)})"


def _ece_by_prior(curves: Mapping[str, Roc], looks: Mapping[str, tuple[str, str]]) -> Plot:
    prior, odds = _PRIOR.tolist(), np.log(_PRIOR / (1 - _PRIOR))
    across = Axis(0.0, 1.0, [(v, f"{v:g}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)],
                  "belief before hearing the voice, probability π")  # fmt: skip
    up = Axis(0.0, 1.05, across.ticks, "uncertainty left, bit")
    plot = Plot(across, up, "", width=400, height=300, left=48)

    def profile(bits: NDArray[Any]) -> list[tuple[float, float]]:
        return [(0.0, 0.0), *zip(prior, bits.tolist(), strict=True), (1.0, 0.0)]

    plot.line(profile(zero_evidence(odds)), style.INK, width=1.4, dash=charts.CHANCE_DASH)
    for i, (name, curve) in reversed(list(enumerate(curves.items()))):
        points = profile(ece_profile(curve, log_odds=odds))
        colour, shape = looks[name]
        plot.series(name)
        plot.line(points, colour)
        # Marks of different sets stand beside one another, also where their curves are one.
        for x, y in points[20 + 7 * (i % 6) :: 53]:
            tip = f"{name}\nbelieved before: {words.percent(x)}\nuncertainty left: {y:.3f} bit"
            plot.point(x, y, colour, shape, tip, size=3.2, across=x, value=y)
        plot.end()
    return plot


def det_figure(curves: Mapping[str, Roc]) -> Figure:
    """Detection error trade-off on normal-deviate axes, the hull's EER marked."""
    looks = style.looks(curves)
    drawn, legend = [], []
    for name, curve in curves.items():
        alarm, miss = _thinned(curve)
        eer = Estimate("rocch_eer", rocch_eer(curve), 0.5, {}, "")
        rates = ErrorCurve(false_alarm=tuple(alarm.tolist()), miss=tuple(miss.tolist()))
        drawn.append((Series(name, name, *looks[name]), rates, eer))
        legend.append(_entry(f"{name}: EER {words.estimate(eer)}", looks[name]))
    legend.append(Entry(words="chance", colour=style.NONTARGET, width=1.4, dash=charts.CHANCE_DASH))
    return arrange(
        "Errors of the attacker (DET)",
        "Misses against false alarms on normal-deviate axes: the further from the lower left "
        "corner, the better protected. The mark is where both are equal. "
        f"{'; '.join(e.words for e in legend[:-1])}.",
        [[("", charts.det_plot(drawn))]],
        legend=legend,
    )


def _thinned(curve: Roc, most: int = 4000) -> tuple[NDArray[Any], NDArray[Any]]:
    """The staircase with at most ``most`` vertices: enough for the eye, small enough for SVG."""
    x, y = curve.false_alarm, curve.miss
    if x.size > most:
        keep = np.unique(np.linspace(0, x.size - 1, most).astype(int))
        x, y = x[keep], y[keep]
    return x, y


def histogram_figure(sets: Mapping[str, Trials]) -> Figure:
    """Score densities of both classes with the local D(s), one panel a set."""
    panels, found = [], []
    for name, scored in sets.items():
        if scored.target.size < MIN_TARGETS:
            found.append(f"{name}: too few target trials for D_sys")
        else:
            found.append(f"{name}: D_sys {d_sys(scored.target, scored.nontarget):.3f}")
        panels.append((found[-1], scores_plot(scored.target, scored.nontarget)))
    columns = min(len(panels), 2)  # more would be too small to read on a printed page
    return arrange(
        "How the scores of same and different speakers lie, and what each score gives away",
        "Histograms of the scores of the same speaker and of different speakers, and over them the "
        "local D(s): 0 where a score says nothing, 1 where it settles the question. "
        f"Its mean over same-speaker scores is D_sys. {'; '.join(found)}.",
        [panels[i : i + columns] for i in range(0, len(panels), columns)],
        legend=scores_legend(),
    )


def scores_plot(target: Any, nontarget: Any, *, bars: int | None = None) -> Plot:
    """Histograms of both classes with D(s) over them, or in so many ``bars`` without it.

    D(s) is left out, too, where there are fewer target trials than it needs.
    """
    if bars is None:
        borders = bin_edges(target, nontarget)
    else:
        borders = np.histogram_bin_edges(np.concatenate((target, nontarget)), bars)
    heights = [np.histogram(s, borders, density=True)[0] for s in (nontarget, target)]
    enough = bars is None and target.size >= MIN_TARGETS
    local = local_d_sys(target, nontarget) if enough else None
    edges = borders.tolist()
    highest = 1.06 * float(max(h.max() for h in heights))
    across = Axis(edges[0], edges[-1], _ticks(edges[0], edges[-1]), "score")
    up = Axis(0.0, highest, _ticks(0.0, highest), "density")
    rates = [(v, f"{v:g}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)]
    second = Axis(0.0, 1.06, rates, "local D(s)") if local else None
    plot = Plot(across, up, "", width=380, height=270, second=second)
    for values, colour in zip(heights, (style.NONTARGET, style.TARGET), strict=True):
        outline = steps(edges, values.tolist())
        plot.band([(edges[0], 0.0), (edges[-1], 0.0)], outline, colour, opacity=_AREA)
        plot.line([(edges[0], 0.0), *outline, (edges[-1], 0.0)], colour, width=1.1)
    if local:
        plot.line(steps(edges, local.local.tolist()), style.INK, width=1.6, second=True)
    return plot


def scores_legend(*, local: bool = True) -> list[Entry]:
    """What the parts of :func:`scores_plot` mean."""
    shown = [
        Entry(words="different speakers", colour=style.NONTARGET, area=_AREA),
        Entry(words="same speaker", colour=style.TARGET, area=_AREA),
    ]
    return [*shown, Entry(words="D(s)", colour=style.INK, width=1.6)] if local else shown


def similarity_figure(
    name: str, similarities: Sequence[Similarity], figures: Mapping[str, Estimate]
) -> Figure:
    """Heat map of voice similarity: OO, OP and PP as one 2N × 2N square, or one matrix alone.

    ``similarities`` is (one matrix,), or (OO, OP, PP).
    """
    speakers = similarities[0].speakers
    matrix = similarities[0].matrix
    four = len(similarities) == 3
    if four:
        oo, op, pp = (s.matrix for s in similarities)
        matrix = np.block([[oo, op], [op.T, pp]])
    names = (speakers * 2 if four else speakers) if len(matrix) <= 60 else ()
    side = max(400.0, 10.0 * len(names))
    longest = max((text_width(n, 8.0) for n in names), default=0.0) + 6
    left = EDGE + longest + (14 if four else 0)
    found = [f"DeID {words.percent(figures['deid'].value)}"] if "deid" in figures else []
    found += [f"G_VD {words.figure('g_vd', figures['g_vd'].value)}"] if "g_vd" in figures else []
    title = f"Voice similarity, {name}" + (f": {', '.join(found)}" if found else "")
    width = left + side + 112 + EDGE
    parts, top = heading(title, width)
    top += 16 if four else 0
    parts += cells(matrix, left, top, side)
    if four:
        parts += [_moved(part, longest) for part in quarters(left, top, side)]
    for i, speaker in enumerate(names):
        middle = side * (i + 0.5) / len(names) + 2.8
        parts.append(label(left - 4, top + middle, speaker, "small", "end"))
        parts.append(upright(left + middle, top + side + 4, speaker, "small", "end"))
    said = (
        f"Heat map of how alike the voices of {len(speakers)} speakers are: 1 the same voice, 0.5 "
        "undecided, 0 different. "
    )
    if four:
        said += (
            "Blocks: original with original, original with anonymized, anonymized with anonymized. "
            "A bright diagonal in the upper right block means that voices give their owners away. "
        )
    return Figure(title, f"{said}{', '.join(found)}", width, top + side + longest + EDGE,
                  Markup("").join(parts))  # fmt: skip


def _moved(part: Markup, names: float) -> Markup:
    """Words at the left go further out, to leave room for the speakers' names."""
    return Markup('<g transform="translate({:.1f} 0)">{}</g>').format(
        2 - names if "rotate" in part else 0.0, part
    )


def scatter_figure(points: Mapping[str, tuple[Estimate, Estimate]]) -> Figure:
    """DeID against G_VD for several systems, with their intervals; ideal is the upper right."""
    looks = style.looks(points)
    placed = [
        PlanePoint(Series(name, name, *looks[name]), deid, gain)
        for name, (deid, gain) in points.items()
    ]
    plot = charts.plane_plot(placed, "deid", "g_vd")
    marks, plot.parts = plot.parts, []
    for ends in (((plot.x.low, 0.0), (plot.x.high, 0.0)), ((1.0, plot.y.low), (1.0, plot.y.high))):
        plot.line(ends, style.MUTED, width=1.0, dash=charts.CHANCE_DASH)
    plot.parts += marks
    return arrange(
        "Hidden from the original, still distinct",
        f"{plot.label}. With their intervals; ideal is the upper right.",
        [[("", plot)]],
        legend=[_entry(name, looks[name], width=0.0) for name in points],
        legend_title="DeID 100 %: no voice is linked to its original. G_VD 0 dB: voices are as "
        "distinct as before. Lines: intervals.",
    )


def _entry(text: str, look: tuple[str, str], *, width: float = 1.8) -> Entry:
    return Entry(words=text, colour=look[0], shape=look[1], width=width)


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    return [(t, f"{t:g}".replace("-", "−")) for t in round_ticks(low, high)]
