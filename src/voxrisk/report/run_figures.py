"""The figures of a run as files that stand alone: what the page draws, each with its legend."""

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from voxrisk.files.atomic import write_text
from voxrisk.report import charts, crowd_charts, png, style, words
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.export import crowd_settings
from voxrisk.report.figure import EDGE, Entry, Figure, arrange, heading, save
from voxrisk.report.heatmap import cells, quarters, whole
from voxrisk.results import AttackResult, Results
from voxrisk.types import Estimate, InputError

FOLDER = "figures"
ENDINGS = {"svg": ".svg", "png": ".png"}
GUESSING = Entry(
    words="guessing: the voice tells nothing", colour=style.NONTARGET, width=1.4,
    dash=charts.CHANCE_DASH,
)  # fmt: skip


def run_figures(r: Results) -> dict[str, Figure]:
    """Name → figure, of what was measured."""
    makers: dict[str, Callable[[Results], Figure | None]] = {
        "crowd": _crowd, "zebra": _zebra, "det": _det, "similarity": _similarity,
        "usefulness": _usefulness,
    }  # fmt: skip
    return {name: figure for name, make in makers.items() if (figure := make(r)) is not None}


def write_figures(
    r: Results, folder: Path, formats: Sequence[str] = ("svg", "png"), *, force: bool = True
) -> list[Path]:
    """Write the figures of a run; returns the files. PNG where it can be made.

    Raises:
        InputError: If only PNG is asked for and cannot be made, or a file is there and ``force`` is
            false.
    """
    if list(formats) == ["png"] and (why := png.obstacle()):
        raise InputError(why)
    figures = run_figures(r)
    there = [folder / f"{n}{ENDINGS[f]}" for n in figures for f in formats]
    if not force and (taken := next((path for path in there if path.exists()), None)):
        raise InputError(f"{taken} is already there; choose another folder or add --force")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, figure in figures.items():
        if "png" in formats:
            made = save(figure, folder, name)
            if "svg" not in formats:
                made[0].unlink()
            written += [path for path in made if path.suffix[1:] in formats]
        else:
            write_text(folder / f"{name}.svg", figure.svg())
            written.append(folder / f"{name}.svg")
    return written


def legend_series(r: Results) -> list[Series]:
    """Name, colour and mark of each attacker, in the order of the results."""
    return [charts.series_of(a, i) for i, a in enumerate(r.attacks)]


def _entries(r: Results, said: Callable[[AttackResult], str] = lambda a: "") -> list[Entry]:
    return [
        Entry(words=f"{s.name}{said(a)}", colour=s.colour, shape=s.mark)
        for s, a in zip(legend_series(r), r.attacks, strict=True)
    ]


def _crowd(r: Results) -> Figure | None:
    estimates = [e for a in r.attacks for e in a.crowd]
    shown = [row for row in crowd_charts.CROWD_ROWS if row[0] in {e.name for e in estimates}]
    if not shown:
        return None
    sizes = [e.size for e in estimates if e.name in {metric for metric, _, _ in shown}]
    series = legend_series(r)
    rows = crowd_charts.crowd_panels(
        shown,
        sorted({e.length for e in estimates}),
        crowd_charts.sizes_axis(sizes),
        lambda metric, length: [
            (s, a.curve(metric, length)) for s, a in zip(series, r.attacks, strict=True)
        ],
    )
    span = Entry(words=f"{100 * r.methods.confidence:g} % interval, speakers resampled",
                 colour=style.MUTED, area=0.25)  # fmt: skip
    return arrange(
        "Risk of being recognised: the higher the curve, the greater the risk",
        "Share of successes against the number of people N, for each attacker and conversation "
        "length L.",
        rows,
        names=[(title, meaning) for _, title, meaning in shown],
        legend=[*_entries(r), span, GUESSING],
    )


def _zebra(r: Results) -> Figure | None:
    if r.zero_evidence is None:
        return None
    curves = [
        (s, a.ece) for s, a in zip(legend_series(r), r.attacks, strict=True) if a.ece is not None
    ]
    zero = Entry(words="zero evidence: the voice tells nothing", colour=style.INK, width=1.4,
                 dash=charts.CHANCE_DASH)  # fmt: skip
    return arrange(
        "What the attacker still does not know (ZEBRA)",
        "Uncertainty left, in bit, against what the attacker believed before hearing the voice: "
        "the closer to the dashed curve of zero evidence, the less the attacker learns.",
        [[("", charts.ece_plot(curves, r.zero_evidence))]],
        legend=[*_entries(r, _disclosed), zero],
        legend_title="attacker: expected disclosure, worst case and its tag",
    )


def _disclosed(a: AttackResult) -> str:
    learned, worst = a.figures.get("d_ece"), a.figures.get("log10_l")
    if learned is None or worst is None:
        return ""
    return f": {words.estimate(learned)}, {words.estimate(worst)}, tag {a.tag}"


def _det(r: Results) -> Figure | None:
    curves = [
        (s, a.det, a.figures.get("rocch_eer"))
        for s, a in zip(legend_series(r), r.attacks, strict=True)
        if a.det is not None
    ]
    if not curves:
        return None
    return arrange(
        "Errors of each attacker (DET)",
        "Misses against false alarms on normal-deviate axes: the further from the lower left "
        "corner, the better protected. The mark is the equal error rate.",
        [[("", charts.det_plot(curves))]],
        legend=[*_entries(r, lambda a: f": EER {words.estimate(a.figures.get('rocch_eer'))}"),
                GUESSING],
    )  # fmt: skip


def _similarity(r: Results) -> Figure | None:
    if r.similarity is None:
        return None
    side, left = 420.0, EDGE + 26.0
    width = left + side + 124.0
    title = "How alike the voices are, before and after"
    parts, top = heading(title, width)
    top += 22
    parts += [*cells(whole(r.similarity), left, top, side), *quarters(left, top, side)]
    return Figure(
        title,
        f"Similarity of every pair of {len(r.similarity.speakers)} voices, original and "
        "anonymized. A bright diagonal in the upper right block gives the owners away.",
        width,
        top + side + EDGE,
        Markup("").join(parts),
    )


def _usefulness(r: Results) -> Figure | None:
    if r.utility is None or "wer" in r.utility.untrusted:
        return None
    points = plane_points(r, lambda a: a.figures.get("rocch_eer"))
    if not points:
        return None
    panels = [("All thresholds", charts.plane_plot(points, "wer", "rocch_eer", better="up"))]
    said = (
        "Equal error rate of each attacker against the word error rate: best is high (private) and "
        "left (understandable)."
    )
    for length, size in [(L, N) for metric, L, N in crowd_settings(r) if metric == "linkability"]:
        linked = plane_points(r, lambda a, at=(length, size): a.at("linkability", *at))  # type: ignore[misc]
        if linked:
            where = f"Among {size:,} people, L = {length}"
            panels.append((where, charts.plane_plot(linked, "wer", "linkability", better="down")))
            said += f" Beside it Linkability: {where}; best is low and left."
    return arrange(
        "Privacy against usefulness",
        said,
        [panels],
        legend=[Entry(words=e.words, colour=e.colour, shape=e.shape, width=0)
                for e in _entries(r)],
    )  # fmt: skip


def plane_points(r: Results, figure: Callable[[AttackResult], Estimate | None]) -> list[PlanePoint]:
    """A figure of each attacker against the word error rate of the speech it attacks."""
    if r.utility is None:
        return []
    found = []
    for series, attack in zip(legend_series(r), r.attacks, strict=True):
        x = r.utility.get("wer", "original" if attack.reference else "anonymized")
        y = figure(attack)
        if x is not None and y is not None:
            found.append(PlanePoint(series, x, y))
    return found
