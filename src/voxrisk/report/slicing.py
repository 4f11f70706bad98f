"""``report.html`` of a study of slicing: one page that opens anywhere and loads nothing."""

from dataclasses import dataclass
from pathlib import Path

from voxrisk.report import slicing_charts, words
from voxrisk.report.figure import save
from voxrisk.report.page import write_page
from voxrisk.report.slicing_tables import CLASSES, RANKS
from voxrisk.slicing_results import (
    PRIVACY,
    SLICED,
    WHOLE,
    PrivacyRow,
    RestoredRow,
    SlicingResults,
    SuccessorRow,
    UtilityRow,
)


@dataclass(frozen=True, slots=True)
class Length:
    """What one slice length buys, costs, and who undoes it: a card of the page."""

    duration: float
    recommended: bool
    privacy: PrivacyRow | None
    whole: PrivacyRow | None
    cost: UtilityRow | None
    undoer: SuccessorRow | None


def write_pictures(results: SlicingResults, folder: Path) -> list[Path]:
    """Figure 3 as files beside the page."""
    figure = slicing_charts.duration_figure(results)
    return save(figure, folder, "duration") if figure else []


def write_slicing_report(results: SlicingResults, path: Path) -> None:
    """Write the page."""
    write_page(path, "slicing.html.j2", {}, _context(results))


def lengths_of(r: SlicingResults) -> list[Length]:
    """A card for each length, the shortest first."""
    condition = r.conditions[-1] if r.conditions else ""
    costs = {row.duration: row for row in r.costs()}
    return [
        Length(
            d,
            d == r.recommendation.duration,
            r.strongest(condition, SLICED, d),
            r.strongest(condition, WHOLE, None),
            costs.get(d),
            r.undoer(d),
        )
        for d in r.durations
    ]


def _context(r: SlicingResults) -> dict[str, object]:
    plots = {name: slicing_charts.duration_plot(r, name) for name in PRIVACY}
    return {
        "r": r,
        "labels": words.LABELS,
        "privacy_figures": PRIVACY,
        "rank_figures": RANKS,
        "classes": CLASSES,
        "heading": slicing_charts.heading,
        "serious": [n for n in r.notices if n.severity == "serious"],
        "notes": [n for n in r.notices if n.severity != "serious"],
        "lengths": lengths_of(r),
        "plots": [(name, plot.svg()) for name, plot in plots.items() if plot],
        "entries": slicing_charts.legend(r),
        "text_rows": [s for s in r.successors if s.uses == "text" and not s.draws],
        "speech_rows": [s for s in r.successors if s.draws],
        "accuracy_rows": [s for s in r.successors if s.accuracy],
        "trained_rows": [u for u in r.utility if u.recogniser == "trained"],
        "untrusted": list(
            dict.fromkeys(
                str(u.wer.parameters["reason"]) for u in r.utility if "reason" in u.wer.parameters
            )
        ),
        "ready_rows": [u for u in r.utility if u.recogniser == "ready"],
        "restored_names": _names(r.restored),
        "parameters": [
            ("voxrisk", r.voxrisk),
            ("seed", str(r.methods.seed)),
            ("resamples", str(r.methods.resamples)),
            ("cut", "at fixed times" if r.fixed else r.cut),
            *((f"hash of {name} speech", value) for name, value in r.methods.hashes.items()),
            *sorted(r.methods.versions.items()),
        ],
    }


def _names(rows: tuple[RestoredRow, ...]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.figures))
