"""Systems side by side: what runs have in common, and each by its strongest common attacker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from voxrisk.measure.paired import Paired, holm, paired_difference
from voxrisk.report import style
from voxrisk.report.charts import Series
from voxrisk.results import AttackResult, Profile, Results
from voxrisk.types import Estimate, InputError

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
        return run_failed(self.run)

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


def in_every_run(runs: Sequence[Results], names: Sequence[str]) -> list[str]:
    """Those of the attackers that every run has and can trust."""
    have = [{a.name for a in r.attacks if not a.reference and a.ranked} for r in runs]
    return [name for name in names if all(name in own for own in have)]


def common_attackers(runs: Sequence[Results]) -> list[str]:
    """Attackers that are compared: those that every run has and can trust, and their like.

    An anonymizer without target voices has no target to unlearn: there the informed attacker stands
    for those who unlearn targets, which are then not left out of the other runs. They are not in
    every run (:func:`in_every_run`), and nobody may say so.
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


def system_of(
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


def run_failed(run: Results) -> bool:
    """Whether a control voids what the run says."""
    return run.verdict is not None and any(c.level == "test failed" for c in run.verdict.criteria)


def ranking_place(system: System) -> tuple[bool, float, float]:
    """By linkability, then by expected disclosure, the lowest first; runs that failed last."""
    linked, learned = system.value("linkability"), system.value("d_ece")
    unknown = float("inf")
    return (
        system.failed,
        linked.value if linked else unknown,
        learned.value if learned else unknown,
    )


def original_systems(
    runs: Sequence[Results], names: Sequence[str], settings: Settings
) -> list[System]:
    """Speech as it was, once for each corpus."""
    found: dict[str, System] = {}
    for name, run in zip(names, runs, strict=True):
        original = [a for a in run.attacks if a.reference]
        if original and original_speech(run) not in found:
            series = Series("original", f"original speech of {name}", style.INK, "circle")
            found[original_speech(run)] = system_of(series, run, original, settings, "original")
    if len(found) == 1:
        (only,) = found.values()
        series = Series("original", "original speech", style.INK, "circle")
        return [System(series, only.run, only.cells, only.profile, None, None, only.wer)]
    return list(found.values())


def original_speech(run: Results) -> str:
    """What the original speech is known by: two runs with the same have the same speakers."""
    return run.methods.hashes.get("original") or str(run.corpus)


def paired_differences(
    ranked: Sequence[System], setting: tuple[int, int] | None
) -> list[Difference]:
    """Linkability of the same speakers under each pair of systems, strongest attacker each."""
    found = []
    for first, second in combinations(ranked, 2):
        a, b = _by_speaker(first), _by_speaker(second)
        both = sorted(a.keys() & b.keys())
        if failed := [s.name for s in (first, second) if s.failed]:
            why = f"the test of {' and of '.join(failed)} failed"
            found.append(Difference(first.name, second.name, why=why))
            continue
        if original_speech(first.run) != original_speech(second.run):
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
