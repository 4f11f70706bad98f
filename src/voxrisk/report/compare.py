"""``compare.html``: several anonymizers side by side, on the same attackers and the same crowd.

What is not alike is not compared: only attackers that every run has, at an L and N that every run
has; and speakers are paired only where the runs start from the same original speech. Every figure
stands with the attacker it belongs to.
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from voxrisk.report import charts, style, words
from voxrisk.report.board import leaderboard
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.inference import USES, compared_attributes, not_compared
from voxrisk.report.page import write_page
from voxrisk.report.systems import (
    CROWD,
    Difference,
    Settings,
    System,
    common_attackers,
    common_setting,
    in_every_run,
    original_speech,
    original_systems,
    paired_differences,
    ranking_place,
    run_failed,
    system_of,
)
from voxrisk.results import Results
from voxrisk.types import InputError

_MARKS = ("square", "triangle", "diamond", "circle", "down", "cross")


def write_compare(
    runs: Sequence[Results], path: Path, *, names: Sequence[str] | None = None
) -> None:
    """Write the comparison of several evaluations.

    Args:
        runs: The results of each.
        path: The HTML file.
        names: What to call the systems; by default their anonymizers.

    Raises:
        InputError: If there are fewer than two runs, or no attacker is common to all of them.
    """
    if len(runs) < 2:
        raise InputError(f"there is {len(runs)} run; a comparison needs at least two")
    for run in runs:
        if run.kind != "evaluate":
            raise InputError(
                f"these are results of 'voxrisk {run.kind}'; a comparison needs those of "
                "'voxrisk evaluate'"
            )
    context = _context(runs, list(names) if names else system_names(runs))
    write_page(path, "compare.html.j2", {}, context)


def system_names(runs: Sequence[Results]) -> list[str]:
    """The anonymizers' names if they differ, else the titles, else with a number."""
    for found in ([r.anonymizer.name if r.anonymizer else "" for r in runs],
                  [r.title for r in runs]):  # fmt: skip
        if len(set(found)) == len(found) and all(found):
            return found
    return [f"{name} ({i})" for i, name in enumerate(found, start=1)]


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of points (cost, gain) that no other point beats in both.

    >>> pareto_front([(0.1, 0.2), (0.2, 0.4), (0.3, 0.3)])
    [0, 1]
    """
    return [
        i
        for i, (x, y) in enumerate(points)
        if not any(a <= x and b >= y and (a, b) != (x, y) for a, b in points)
    ]


def _context(runs: Sequence[Results], names: list[str]) -> dict[str, object]:
    shared = common_attackers(runs)
    settings: Settings = {metric: common_setting(runs, shared, metric) for metric in CROWD}
    systems = []
    for i, (name, run) in enumerate(zip(names, runs, strict=True)):
        series = Series(f"{i} {name}", name, style.colour(i), _MARKS[i % len(_MARKS)])
        mine = [a for a in run.attacks if a.name in shared and a.ranked]
        systems.append(system_of(series, run, mine, settings, "anonymized"))
    known = {a.name: a for run in reversed(runs) for a in run.attacks}
    ranked = sorted(systems, key=ranking_place)
    sound = [s for s in ranked if not s.failed]
    differences = paired_differences(ranked, settings["linkability"])
    references = original_systems(runs, names, settings)
    everywhere = in_every_run(runs, shared)
    return {
        "lead": _lead(ranked, references, settings["linkability"], differences),
        "systems": ranked,
        "board": leaderboard(runs, names),
        "drawn": sound,
        "references": references,
        "attackers": [words.both_names(known[name]) for name in everywhere],
        "stood_for": [words.both_names(known[name]) for name in shared if name not in everywhere],
        "settings": settings,
        "warnings": _warnings(runs, names, shared),
        "confidence": runs[0].methods.confidence,
        "differences": differences,
        "zebra": _zebra(runs[0], sound, references),
        "scatter": _scatter(sound),
        "plane": _plane(sound),
        "columns": compared_attributes([s.run for s in ranked]),
        "uses": USES,
        "not_compared": not_compared([s.run for s in ranked]),
    }


def _warnings(runs: Sequence[Results], names: Sequence[str], shared: Sequence[str]) -> list[str]:
    found = []
    for what, key in (
        ("original speech", original_speech),
        ("speaker recogniser", lambda r: str(r.encoder)),
        ("effort", lambda r: r.methods.effort),
        ("enrolment and trials", lambda r: (r.methods.enrolment, dict(r.methods.trials))),
        ("version of voxrisk", lambda r: r.voxrisk),
    ):
        if any(key(r) != key(runs[0]) for r in runs[1:]):
            found.append(
                f"The runs do not share the {what}: a difference may come from that and not from "
                "the anonymizers."
            )
    for name, run in zip(names, runs, strict=True):
        unsound_test = any(c.passed is False and not c.attacker for c in run.controls)
        if run.verdict and (unsound_test or run_failed(run)):
            found.append(f"{name}: {run.verdict.headline}")
        unsound = [a.name for a in run.attacks if not a.ranked]
        if unsound:
            found.append(
                f"{name}: the {' and '.join(unsound)} attacker failed its control and is not "
                "counted here."
            )
        alone = [
            a.name for a in run.attacks if not a.reference and a.ranked and a.name not in shared
        ]
        if alone:
            found.append(
                f"{name} was also attacked by: {', '.join(alone)}. Not every run has these "
                "attackers, so they are left out here; they may be the strongest."
            )
    if any(r.corpus and r.corpus.synthetic for r in runs):
        found.append(
            "Voices are synthetic: the figures do not say how well real people are protected."
        )
    return found


def _lead(
    ranked: Sequence[System],
    references: Sequence[System],
    setting: tuple[int, int] | None,
    differences: Sequence[Difference],
) -> str:
    """What can be said about the first in the ranking, and at what price."""
    best = ranked[0]
    if best.failed:
        return "The test of every system here failed: none is shown to protect anybody."
    linked = best.cells.get("linkability")
    if not setting or linked is None:
        return ""
    beaten = [
        d.second
        for d in differences
        if d.first == best.name and d.paired and d.p < 0.05 and d.paired.difference.value < 0
    ]
    first = f"Best protected: {best.name}."
    if len({original_speech(system.run) for system in ranked}) > 1:
        first = (
            "These systems were tried on different speech, so which of them protects best is not "
            f"shown. First in the table: {best.name}."
        )
    said = (
        f"{first} The right one of {setting[1]:,} people is found in "
        f"{words.estimate(linked.value)} of the tries (by guessing: "
        f"{words.percent(linked.value.chance)}). "
    )
    if beaten:
        said += f"That is shown to be less than with {', '.join(beaten)}."
    else:
        said += "That is not shown to be less than with any other system."
    return f"{said} {_price(ranked, references)}"


def _price(ranked: Sequence[System], references: Sequence[System]) -> str:
    """What the best protection costs in words, and who costs least."""
    best = ranked[0]
    if best.wer is None:
        return "At what price is not known: its word error rate was not measured."
    own = [r for r in references if original_speech(r.run) == original_speech(best.run)]
    before = own[0].wer if own else None
    said = f"The price: {words.estimate(best.wer)} of the words are recognised wrongly"
    said += f", {words.estimate(before)} in the original speech." if before else "."
    heard = [s for s in ranked if s.wer is not None and not s.failed]
    cheapest = min(heard, key=lambda s: s.wer.value if s.wer else 0.0)
    if cheapest is not best and cheapest.wer and cheapest.wer.value < best.wer.value:
        linked = cheapest.value("linkability")
        said += f" {cheapest.name} keeps most words ({words.estimate(cheapest.wer)} wrong)"
        said += f", and people are found in {words.estimate(linked)}." if linked else "."
    return said


def _zebra(run: Results, ranked: Sequence[System], references: Sequence[System]) -> Markup:
    curves = [(s.series, s.profile) for s in (*ranked, *references) if s.profile]
    return charts.ece(curves, run.zero_evidence) if run.zero_evidence else Markup("")


def _scatter(ranked: Sequence[System]) -> Markup | None:
    points = [PlanePoint(s.series, s.deid, s.g_vd) for s in ranked if s.deid and s.g_vd]
    return charts.plane(points, "deid", "g_vd") if points else None


def _plane(ranked: Sequence[System]) -> Markup | None:
    points = [
        PlanePoint(s.series, s.wer, eer) for s in ranked if s.wer and (eer := s.value("rocch_eer"))
    ]
    if not points:
        return None
    front = pareto_front([(p.x.value, p.y.value) for p in points])
    return charts.plane(points, "wer", "rocch_eer", front=front, better="up")
