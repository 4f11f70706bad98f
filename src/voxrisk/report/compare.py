"""``compare.html``: several anonymizers side by side, on the same attackers and the same crowd.

What is not alike is not compared: only attackers that every run has, at an L and N that every run
has; and speakers are paired only where the runs start from the same original speech. Every figure
stands with the attacker it belongs to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from voxrisk.measure.paired import Paired, holm, paired_difference
from voxrisk.report import charts, style, words
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.page import write_page
from voxrisk.results import AttackResult, Profile, Results
from voxrisk.types import Estimate, InputError

_MARKS = ("square", "triangle", "diamond", "circle", "down", "cross")
CROWD = ("linkability", "singling_out")
# Which attacker is the strongest by a score figure: the one with the lowest or the highest.
STRONGEST: dict[str, Callable[..., AttackResult]] = {
    "rocch_eer": min,
    "d_ece": max,
    "log10_l": max,
}
Settings = dict[str, tuple[int, int] | None]


class Cell(NamedTuple):
    """A figure and the attacker who reached it."""

    value: Estimate
    attack: AttackResult


@dataclass(frozen=True, slots=True)
class System:
    """One anonymizer in the comparison: its strongest common attacker, figure by figure."""

    series: Series
    run: Results
    cells: dict[str, Cell]
    profile: Profile | None
    deid: Estimate | None
    g_vd: Estimate | None
    wer: Estimate | None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.series.name

    @property
    def failed(self) -> bool:
        """Whether a control voids the run: nothing in it may look like privacy."""
        return _failed(self.run)

    def value(self, metric: str) -> Estimate | None:
        """A figure of the strongest attacker."""
        return self.cells[metric].value if metric in self.cells else None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two systems on the same speakers; ``paired`` is None where ``why`` says so."""

    first: str
    second: str
    paired: Paired | None = None
    p: float = 1.0
    why: str = ""


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


def common_attackers(runs: Sequence[Results]) -> list[str]:
    """Attackers on anonymized speech that every run has and can trust, in the order of the runs.

    An anonymizer without target voices has no target to unlearn: there the informed attacker stands
    for those who unlearn targets, which are then not left out of the other runs.
    """
    have = [{a.name for a in r.attacks if not a.reference and a.ranked} for r in runs]
    every = dict.fromkeys(a.name for r in runs for a in r.attacks if not a.reference)
    shared = [
        name
        for name in every
        if all(name in names or _stands_for(name, r, names)
               for names, r in zip(have, runs, strict=True))
    ]  # fmt: skip
    if not shared:
        lists = "; ".join(", ".join(sorted(h)) or "none" for h in have)
        raise InputError(
            f"the runs have no attacker in common ({lists}); evaluate them with the same attackers"
        )
    return shared


def _stands_for(name: str, run: Results, names: set[str]) -> bool:
    targets = run.anonymizer.target_selection if run.anonymizer else None
    return name.startswith("informed + ") and "informed" in names and targets is None


def common_setting(
    runs: Sequence[Results], attackers: Sequence[str], metric: str
) -> tuple[int, int] | None:
    """The longest L, and for it the largest N, at which every run has this figure."""
    have = [
        {(e.length, e.size) for e in a.crowd if e.name == metric}
        for r in runs
        for a in r.attacks
        if a.name in attackers
    ]
    return max(set.intersection(*have), default=None)


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
        systems.append(_system(series, run, mine, settings, "anonymized"))
    known = {a.name: a for run in reversed(runs) for a in run.attacks}
    ranked = sorted(systems, key=_place)
    sound = [s for s in ranked if not s.failed]
    differences = _differences(ranked, settings["linkability"])
    return {
        "lead": _lead(ranked, settings["linkability"], differences),
        "systems": ranked,
        "drawn": sound,
        "references": _references(runs, names, settings),
        "attackers": [words.both_names(known[name]) for name in shared],
        "settings": settings,
        "warnings": _warnings(runs, names, shared),
        "confidence": runs[0].methods.confidence,
        "differences": differences,
        "zebra": _zebra(runs[0], sound),
        "scatter": _scatter(sound),
        "plane": _plane(sound),
    }


def _system(
    series: Series,
    run: Results,
    attacks: Sequence[AttackResult],
    settings: Settings,
    side: str,
) -> System:
    """The strongest attacker's figure, metric by metric, with the attacker's name."""
    cells: dict[str, Cell] = {}
    profile = None
    for metric, setting in settings.items():
        points = [(a, e) for a in attacks if setting and (e := a.at(metric, *setting))]
        if points:
            who, value = max(points, key=lambda item: item[1].value)
            cells[metric] = Cell(value, who)
    for metric, strongest in STRONGEST.items():
        having = [a for a in attacks if metric in a.figures]
        if not having:
            continue
        who = strongest(having, key=lambda a, m=metric: a.figures[m].value)
        cells[metric] = Cell(who.figures[metric], who)
        if metric == "d_ece":
            profile = who.ece
    alike = run.similarity.figures if run.similarity and side == "anonymized" else {}
    heard = run.utility
    believed = heard is not None and "wer" not in heard.untrusted
    return System(
        series,
        run,
        cells,
        profile,
        alike.get("deid"),
        alike.get("g_vd"),
        heard.get("wer", side) if heard is not None and believed else None,
    )


def _failed(run: Results) -> bool:
    return run.verdict is not None and any(c.level == "test failed" for c in run.verdict.criteria)


def _place(system: System) -> tuple[bool, float, float]:
    """By linkability, then by expected disclosure, the lowest first; runs that failed last."""
    linked, learned = system.value("linkability"), system.value("d_ece")
    unknown = float("inf")
    return (
        system.failed,
        linked.value if linked else unknown,
        learned.value if learned else unknown,
    )


def _references(runs: Sequence[Results], names: Sequence[str], settings: Settings) -> list[System]:
    """Speech as it was, once for each corpus."""
    found: dict[str, System] = {}
    for name, run in zip(names, runs, strict=True):
        original = [a for a in run.attacks if a.reference]
        if original and _speech(run) not in found:
            series = Series("original", f"original speech of {name}", style.INK, "circle")
            found[_speech(run)] = _system(series, run, original, settings, "original")
    if len(found) == 1:
        (only,) = found.values()
        series = Series("original", "original speech", style.INK, "circle")
        return [System(series, only.run, only.cells, only.profile, None, None, only.wer)]
    return list(found.values())


def _warnings(runs: Sequence[Results], names: Sequence[str], shared: Sequence[str]) -> list[str]:
    found = []
    for what, key in (
        ("original speech", _speech),
        ("speaker recogniser", lambda r: str(r.encoder)),
        ("effort", lambda r: r.methods.effort),
        ("version of voxrisk", lambda r: r.voxrisk),
    ):
        if len({key(r) for r in runs}) > 1:
            found.append(
                f"The runs do not share the {what}: a difference may come from that and not from "
                "the anonymizers."
            )
    for name, run in zip(names, runs, strict=True):
        unsound_test = any(c.passed is False and not c.attacker for c in run.controls)
        if run.verdict and (unsound_test or _failed(run)):
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


def _speech(run: Results) -> str:
    """What the original speech is known by: two runs with the same have the same speakers."""
    return run.methods.hashes.get("original") or str(run.corpus)


def _lead(
    ranked: Sequence[System],
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
    said = (
        f"Lowest linkability: {best.name}, {words.estimate(linked.value)} among "
        f"{setting[1]:,} people. "
    )
    if beaten:
        said += f"It is shown to be lower than that of {', '.join(beaten)}."
    else:
        said += "It is not shown to be lower than that of any other system."
    if best.wer:
        said += f" The price: {words.estimate(best.wer)} of the words are recognised wrongly."
    return said


def _differences(ranked: Sequence[System], setting: tuple[int, int] | None) -> list[Difference]:
    """Linkability of the same speakers under each pair of systems, strongest attacker each."""
    found = []
    for first, second in combinations(ranked, 2):
        a, b = _by_speaker(first), _by_speaker(second)
        both = sorted(a.keys() & b.keys())
        if failed := [s.name for s in (first, second) if s.failed]:
            why = f"the test of {' and of '.join(failed)} failed"
            found.append(Difference(first.name, second.name, why=why))
            continue
        if _speech(first.run) != _speech(second.run):
            why = "not the same original speech, so speakers cannot be paired"
            found.append(Difference(first.name, second.name, why=why))
            continue
        if any(_own_setting(s) != setting for s in (first, second)):
            why = "the figures of single speakers are of crowds of different size"
            found.append(Difference(first.name, second.name, why=why))
            continue
        try:
            paired = paired_difference([a[s] for s in both], [b[s] for s in both])
            found.append(Difference(first.name, second.name, paired, paired.p_value))
        except InputError as error:
            found.append(Difference(first.name, second.name, why=str(error)))
    tested = [i for i, d in enumerate(found) if d.paired]
    for i, p in zip(tested, holm([found[i].p for i in tested]), strict=True):
        d = found[i]
        found[i] = Difference(d.first, d.second, d.paired, float(p))
    return found


def _by_speaker(system: System) -> dict[str, float]:
    """Linkability by speaker under the attacker of the ranking."""
    cell = system.cells.get("linkability")
    people = cell.attack.speakers if cell else ()
    return {p.speaker: p.linkability for p in people if p.linkability is not None}


def _own_setting(system: System) -> tuple[int, int] | None:
    """The L and N behind the figures of single speakers: the largest of the run."""
    cell = system.cells.get("linkability")
    crowd = cell.attack.crowd if cell else ()
    return max(((e.length, e.size) for e in crowd if e.name == "linkability"), default=None)


def _zebra(run: Results, ranked: Sequence[System]) -> Markup:
    curves = [(s.series, s.profile) for s in ranked if s.profile]
    reference = run.reference
    if reference is not None and reference.ece:
        series = Series("original", "original speech", style.INK, "circle")
        curves.append((series, reference.ece))
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
