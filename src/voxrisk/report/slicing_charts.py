"""Figure 3 of the slicing paper: how well speakers are recognised against how long pieces last."""

from collections.abc import Sequence
from itertools import groupby

from voxrisk.report import style, words
from voxrisk.report.charts import CHANCE_DASH
from voxrisk.report.figure import Entry, Figure, arrange
from voxrisk.report.svg import Axis, Plot, percent_axis
from voxrisk.slicing_results import PRIVACY, SHORTENED, SLICED, WHOLE, PrivacyRow, SlicingResults

SECONDS = (0.5, 1, 2, 3, 5, 10, 20, 30)
TOPS = {"d_sys": 1.0, "linkability": 1.0, "rocch_eer": 0.5, "d_ece": 0.72}
BETTER = {"higher": "higher protects", "lower": "lower protects"}


def who(row: PrivacyRow) -> str:
    """An attacker and what it listens to."""
    return f"{row.condition} speech, {row.attacker}"


def duration_plot(results: SlicingResults, name: str, *, width: float = 420.0) -> Plot | None:
    """One figure against the mean length of what was tried; None where nobody has the figure."""
    rows = [row for row in results.privacy if name in row.figures]
    if not rows:
        return None
    plot = Plot(
        _seconds_axis(rows),
        _value_axis(name),
        f"{words.LABELS[name]} against the length of speech. The numbers are in the table.",
        width=width,
        height=250.0,
    )
    chance = rows[0].figures[name].chance
    plot.line([(plot.x.low, chance), (plot.x.high, chance)], style.NONTARGET, width=1.4,
              dash=CHANCE_DASH)  # fmt: skip
    for said, own in groupby(rows, key=who):
        _attacker(plot, name, said, list(own))
    return plot


def _attacker(plot: Plot, name: str, said: str, rows: Sequence[PrivacyRow]) -> None:
    """A curve for shortened utterances, bars for slices and for whole utterances."""
    plot.series(said)
    curve = sorted((r for r in rows if r.cut == SHORTENED), key=lambda r: r.seconds)
    spans = [(r.seconds, i.low, i.high) for r in curve if (i := r.figures[name].interval)]
    colour, shape = rows[0].colour or style.INK, rows[0].mark or "circle"
    if len(spans) > 1:
        plot.band([(x, low) for x, low, _ in spans], [(x, high) for x, _, high in spans], colour)
    plot.line([(r.seconds, r.figures[name].value) for r in curve], colour)
    for row in rows:
        e = row.figures[name]
        tip = f"{said}\n{_what(row)}: {words.estimate(e)}, interval {words.interval(e)}"
        if row.cut != SHORTENED:
            ends = [max(row.seconds + way * row.spread, plot.x.low) for way in (-1.0, 1.0)]
            plot.line([(x, e.value) for x in ends], colour, width=3.4 if row.cut == SLICED else 2.2,
                      dash="" if row.cut == SLICED else "7 3")  # fmt: skip
            if e.interval:
                plot.whisker((row.seconds, e.interval.low), (row.seconds, e.interval.high), colour)
        plot.point(row.seconds, e.value, colour, shape, tip,
                   size=0 if row.cut == SHORTENED and len(curve) > 12 else 2.6,
                   metric=name, cut=row.cut, duration=row.duration, value=e.value)  # fmt: skip
    plot.end()


def _what(row: PrivacyRow) -> str:
    lasting = f"{row.seconds:.1f} ± {row.spread:.1f} s"
    if row.cut == WHOLE:
        return f"whole utterances, {lasting}"
    if row.cut == SLICED:
        return f"slices of {row.duration:g} s and more, {lasting}"
    return f"shortened to {row.duration:g} s, {lasting}"


def _seconds_axis(rows: Sequence[PrivacyRow]) -> Axis:
    low = min(row.seconds for row in rows) / 1.25
    high = max(row.seconds + (row.spread if row.cut != SHORTENED else 0.0) for row in rows) * 1.1
    ticks = [(float(s), f"{s:g}") for s in SECONDS if low <= s <= high]
    return Axis(low, max(high, 1.3 * low), ticks, "seconds of speech", "log")


def _value_axis(name: str) -> Axis:
    if words.UNITS[name] == "rate":
        return percent_axis("", high=TOPS[name])
    ticks = [(t, f"{t:g}") for t in ((0.0, 0.25, 0.5, 0.75, 1.0) if TOPS[name] == 1.0
             else (0.0, 0.2, 0.4, 0.6))]  # fmt: skip
    return Axis(0.0, TOPS[name], ticks)


def legend(results: SlicingResults) -> list[Entry]:
    """The attackers, and what curves and bars are."""
    looks = {who(row): (row.colour or style.INK, row.mark or "circle") for row in results.privacy}
    entries = [Entry(words=name, colour=c, shape=m) for name, (c, m) in looks.items()]
    return [
        *entries,
        Entry(words="curve: utterances shortened to a fixed time", colour=style.MUTED),
        Entry(words="bar: slices, mean ± standard deviation of their length", colour=style.MUTED,
              width=3.4),
        Entry(words="dashed bar: whole utterances", colour=style.MUTED, width=2.2, dash="7 3"),
        Entry(words="guessing: the voice tells nothing", colour=style.NONTARGET, width=1.4,
              dash=CHANCE_DASH),
    ]  # fmt: skip


def duration_figure(results: SlicingResults) -> Figure | None:
    """All figures of privacy against duration in one picture."""
    plots = []
    for name in PRIVACY:
        if plot := duration_plot(results, name):
            plots.append((heading(name), plot))
    if not plots:
        return None
    said = "Recognition of speakers against the length of speech, for clear and anonymized speech."
    return arrange(
        "The longer the speech, the better its speaker is recognised",
        said,
        [plots[i : i + 2] for i in range(0, len(plots), 2)],
        legend=legend(results),
    )


def heading(name: str) -> str:
    """Name of a figure and which way protects."""
    from voxrisk.measure import FIGURES

    return f"{words.LABELS[name]} ({BETTER[FIGURES[name].privacy]})"
