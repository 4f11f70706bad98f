"""The figures of the report, from results to SVG. Each shows exactly what the results say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from voxrisk.report import style, words
from voxrisk.report.svg import Axis, Plot, percent_axis, picture, round_ticks
from voxrisk.results import AttackResult, Criterion, ErrorCurve, Profile, Results
from voxrisk.types import Estimate

CHANCE_DASH = "2 2.5"


@dataclass(frozen=True, slots=True)
class Series:
    """How a system or an attacker is drawn, everywhere the same."""

    id: str
    name: str
    colour: str
    mark: str


class PlanePoint(NamedTuple):
    """Two figures of one series."""

    series: Series
    x: Estimate
    y: Estimate


def criterion_scale(criterion: Criterion) -> Markup:
    """0 to 100 %: what the attacker gets, how sure that is, guessing, and speech as it was."""
    value, original = criterion.value, criterion.original
    assert value is not None

    def x(rate: float) -> float:
        return 22 + 316 * min(max(rate, 0.0), 1.0)

    parts = [Markup('<rect x="22" y="18" width="316" height="12" rx="2" fill="#e8ecf0"/>')]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            Markup(
                '<path class="axis" d="M{0:.1f} 33v4"/>'
                '<text class="tick" x="{0:.1f}" y="50" text-anchor="middle">{1:g} %</text>'
            ).format(x(tick), 100 * tick)
        )
    said = f"Scale from 0 to 100 percent. Found: {words.estimate(value)}"
    if value.interval:
        low, high = x(value.interval.low), x(value.interval.high)
        parts.append(
            Markup('<rect x="{:.1f}" y="18" width="{:.1f}" height="12" class="span"/>').format(
                low, max(high - low, 1.5)
            )
        )
        said += f", interval {words.interval(value)}"
    parts.append(Markup('<path d="M{:.1f} 10V36" class="guess"/>').format(x(value.chance)))
    said += f"; by guessing: {words.percent(value.chance)}"
    if original:
        parts.append(
            Markup('<path d="M{0:.1f} 15l9 9l-9 9l-9 -9z" class="before"/>').format(
                x(original.value)
            )
        )
        said += f"; speech as it was: {words.estimate(original)}"
    parts.append(
        Markup('<circle cx="{:.1f}" cy="24" r="7.5" class="found"/>').format(x(value.value))
    )
    return picture(360, 54, f"{said}.", parts, css="scale")


def series_of(attack: AttackResult, index: int) -> Series:
    """How an attack is drawn, and its names."""
    return Series(attack.name, words.both_names(attack), *words.look(attack, index))


def ece(curves: Sequence[tuple[Series, Profile]], zero: Profile) -> Markup:
    """ECE profiles under the profile of zero evidence."""
    return ece_plot(curves, zero).svg()


def ece_plot(curves: Sequence[tuple[Series, Profile]], zero: Profile) -> Plot:
    """The same, to be put into a figure."""
    ticks = [(float(v), str(v).replace("-", "−")) for v in (-10, -5, 0, 5, 10)]
    axis = Axis(-10.0, 10.0, ticks, "belief before hearing the voice, log-odds of “same speaker”")
    up = Axis(0.0, 1.05, [(v, f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1)], "uncertainty left, bit")
    plot = Plot(axis, up, "Empirical cross-entropy profiles: the closer to the upper dashed curve, "
                "the less the attacker learns. The figures are in the table of attackers.",
                width=400, height=300, left=48)  # fmt: skip
    plot.line(_pairs(zero), style.INK, width=1.4, dash=CHANCE_DASH)
    for series, profile in reversed(curves):
        name, colour, shape = series.name, series.colour, series.mark
        plot.series(series.id)
        points = _pairs(profile)
        plot.line(points, colour)
        for k, (x, y) in enumerate(points[:: max(len(points) // 40, 1)]):
            tip = f"{name}\nbelieved before: {words.prior_odds(x)}\nuncertainty left: {y:.3f} bit"
            plot.point(x, y, colour, shape, tip, size=3.2 if k % 8 == 4 else 0, across=x, value=y)
        plot.end()
    return plot


def _pairs(profile: Profile) -> list[tuple[float, float]]:
    return list(zip(profile.log_odds, profile.bits, strict=True))


def det(results: Results) -> Markup:
    """Detection error trade-off on normal-deviate axes, the EER marked."""
    return det_plot(
        [
            (series_of(a, i), a.det, a.figures.get("rocch_eer"))
            for i, a in enumerate(results.attacks)
            if a.det
        ]
    ).svg()


def det_plot(curves: Sequence[tuple[Series, ErrorCurve, Estimate | None]]) -> Plot:
    """The same, to be put into a figure."""
    ticks = [(t, f"{100 * t:g} %") for t in (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95)]
    axis = Axis(0.0005, 0.98, ticks, "strangers taken for the speaker (false alarms)", "probit")
    up = Axis(0.0005, 0.98, ticks, "speaker not recognised (misses)", "probit")
    said = (
        "Errors of each attacker, misses against false alarms: the further from the lower left "
        "corner, the better protected."
    )
    plot = Plot(axis, up, said, width=400, height=380, left=54)
    steps = [k / 50 for k in range(1, 50)]
    plot.line([(p, 1 - p) for p in (0.02, *steps)], style.NONTARGET, width=1.4, dash=CHANCE_DASH)
    for series, rates, eer in reversed(curves):
        name, colour, shape = series.name, series.colour, series.mark
        curve = list(zip(rates.false_alarm, rates.miss, strict=True))
        inside = [p for p in curve if min(p) >= axis.low and max(p) <= axis.high]
        curve = inside if len(inside) > 1 else curve
        plot.series(series.id)
        plot.line(curve, colour)
        for a, b in curve[:: max(len(curve) // 24, 1)]:
            tip = f"{name}\nfalse alarms {words.percent(a)}, misses {words.percent(b)}"
            plot.point(a, b, colour, shape, tip, size=0, across=a, value=b)
        if eer:
            tip = f"{name}\nEER {words.estimate(eer)}\ninterval {words.interval(eer)}"
            at = min(max(eer.value, 0.0005), 0.98)
            plot.point(at, at, colour, shape, tip, size=4.5, eer=eer.value)
        plot.end()
    return plot


def plane(
    points: Sequence[PlanePoint],
    x_name: str,
    y_name: str,
    *,
    front: Sequence[int] = (),
    better: str = "",
) -> Markup:
    """Two figures against each other: see :func:`plane_plot`."""
    return plane_plot(points, x_name, y_name, front=front, better=better).svg()


def plane_plot(
    points: Sequence[PlanePoint],
    x_name: str,
    y_name: str,
    *,
    front: Sequence[int] = (),
    better: str = "",
) -> Plot:
    """Two figures against each other, with both intervals.

    ``front`` are the indices of points that no other one beats in both, to be joined by a line;
    ``better`` is ``"up"`` or ``"down"`` where the left and that direction are the good ones.
    """
    x_axis = _span_axis(x_name, [p.x for p in points])
    y_axis = _span_axis(y_name, [p.y for p in points])
    label = f"{y_axis.title} against {x_axis.title}: " + "; ".join(
        f"{p.series.name} {words.estimate(p.x)} and {words.estimate(p.y)}" for p in points
    )
    plot = Plot(x_axis, y_axis, label, width=400, height=290, left=54, top=20)
    if front:
        steps = sorted((points[i] for i in front), key=lambda p: p.x.value)
        plot.line([(p.x.value, p.y.value) for p in steps], style.MUTED, width=1.4, dash="5 3")
    if better:
        place = (x_axis.low, y_axis.high) if better == "up" else (x_axis.low, y_axis.low)
        plot.text(*place, "↖ better" if better == "up" else "↙ better", dx=6,
                  dy=12 if better == "up" else -7, css="tick")  # fmt: skip
    for p in points:
        plot.series(p.series.id)
        x, y, colour = p.x.value, p.y.value, p.series.colour
        tip = p.series.name
        for name, e in ((x_name, p.x), (y_name, p.y)):
            tip += f"\n{words.LABELS[name]} {words.estimate(e)}, interval {words.interval(e)}"
        if span := p.x.interval:
            plot.whisker((span.low, y), (span.high, y), colour)
        if span := p.y.interval:
            plot.whisker((x, span.low), (x, span.high), colour)
        plot.point(x, y, colour, p.series.mark, tip, size=5, across=x, value=y)
        plot.end()
    return plot


def _span_axis(name: str, figures: Sequence[Estimate]) -> Axis:
    """An axis that holds every value and interval; rates always start at 0."""
    ends = [e.value for e in figures]
    ends += [end for e in figures if e.interval for end in (e.interval.low, e.interval.high)]
    title = words.LABELS[name]
    if words.UNITS.get(name) == "rate":
        high = max(*ends, 0.05)
        least = {"rocch_eer": 0.55, "deid": 1.04}.get(name, 0.0)
        # A word error rate may be above 100 %, and is drawn where it is.
        wide = 1.1 * high if high > 1.0 else min(1.0, 1.1 * high)
        high = least if high < least else wide
        return percent_axis(title, low=min(0.0, *ends), high=high)
    low, high = min(*ends, 0.0), max(*ends, 0.0)
    pad = 0.08 * (high - low) or 1.0
    low, high = low - pad, high + pad
    ticks = [(t, f"{t:g}".replace("-", "−")) for t in round_ticks(low, high)]
    return Axis(low, high, ticks, title + (", dB" if words.UNITS.get(name) == "dB" else ""))
