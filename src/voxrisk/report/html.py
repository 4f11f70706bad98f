"""``report.html``: the results of one evaluation as one page that opens anywhere and loads nothing.

The first screen is the verdict. Every figure is SVG or a table, so nothing needs the script.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from voxrisk.measure import FIGURES
from voxrisk.report import charts, crowd_charts, words
from voxrisk.report.charts import Series
from voxrisk.report.export import crowd_settings, mean_of_sets, text_files
from voxrisk.report.glossary import GLOSSARY, QUESTIONS, TAGS
from voxrisk.report.heatmap import blocks, heatmap
from voxrisk.report.inference import inference_context
from voxrisk.report.page import packed, write_page
from voxrisk.report.pdf import write_pdf
from voxrisk.report.run_figures import legend_series, plane_points, run_figures
from voxrisk.results import AttackResult, Group, Results, UtilityResult
from voxrisk.types import Estimate, InputError

__all__ = ["write_pdf", "write_report"]

MOST_ROWS = 200  # speakers in a table; the rest is in results.json
MOST_POINTED = 300  # speakers in a heat map whose cells can be pointed at
WHOLE = ("verdict", "corpus", "anonymizer", "encoder")  # without these there is no report


class Setting(NamedTuple):
    """The L and N at which the verdict holds for one metric."""

    metric: str
    label: str
    L: int
    N: int


class UtilityRow(NamedTuple):
    """One line of the table of usefulness."""

    name: str
    label: str
    meaning: str
    original: Estimate | None
    anonymized: Estimate | None
    missing: str
    untrusted: str
    basis: str = ""


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """Speakers under one attack, the most exposed first."""

    attack: AttackResult
    name: str

    @property
    def rows(self) -> tuple[object, ...]:
        """Those that are shown."""
        return self.attack.speakers[:MOST_ROWS]

    @property
    def left_out(self) -> int:
        """How many are not."""
        return max(len(self.attack.speakers) - MOST_ROWS, 0)

    def has(self, name: str) -> bool:
        """Whether anybody has this figure."""
        return any(getattr(p, name) is not None for p in self.attack.speakers)


def write_report(
    results: Results, path: Path, *, run: Mapping[str, Mapping[str, float]] | None = None
) -> None:
    """Write the report of one evaluation.

    Args:
        results: What the evaluation found.
        path: The HTML file.
        run: What run.json holds: times, which differ from run to run and are no result.

    Raises:
        InputError: If the results are not of an evaluation, or not complete.
    """
    if results.kind != "evaluate":
        raise InputError(
            f"these are results of 'voxrisk {results.kind}'; a report needs those of "
            "'voxrisk evaluate'"
        )
    if lacking := [part for part in WHOLE if getattr(results, part) is None]:
        raise InputError(
            f"the results are not complete (no {', '.join(lacking)}); run 'voxrisk evaluate' again"
        )
    context = _context(results) | {"anonymizing": _anonymizing(run or {})}
    data = {"similarity": _pointed(results), "files": packed(files_of(results))}
    write_page(path, "report.html.j2", data, context)


def files_of(results: Results) -> dict[str, str]:
    """What the buttons of the page give: its tables, its figures, and what to cite."""
    figures = {f"{name}.svg": figure.svg() for name, figure in run_figures(results).items()}
    return {**text_files(results), **figures}


def _anonymizing(run: Mapping[str, Mapping[str, float]]) -> float | None:
    """Seconds of work on one core for one second of speech, if the anonymizer was run here."""
    times = run.get("anonymizer") or {}
    speech, work = times.get("speech_seconds"), times.get("cpu_seconds")
    return work / speech if speech and work else None


def _context(r: Results) -> dict[str, object]:
    for pair in r.audio:
        for address in (pair.original, pair.anonymized):
            if not address.startswith("data:audio/"):
                raise InputError(
                    f"results.json: audio of {pair.utterance} is not embedded; "
                    "it must be a data:audio/… address, so that the report loads nothing"
                )
    settings = _settings(r)
    entries = legend_series(r)
    profiles = [(e, a.ece) for e, a in zip(entries, r.attacks, strict=True) if a.ece]
    corpus = r.corpus
    return {
        "r": r,
        "serious": [n for n in r.notices if n.severity == "serious"],
        "notes": [n for n in r.notices if n.severity == "note"],
        "steps": [n for n in r.notices if n.severity == "next"],
        "genders": _genders(corpus.genders if corpus else {}),
        "names": {a.name: words.both_names(a) for a in r.attacks},
        "badge": words.badge,
        "step": words.step,
        "questions": QUESTIONS,
        "settings": settings,
        "mean_of_sets": mean_of_sets,
        "criterion_scale": charts.criterion_scale,
        "rows": crowd_charts.curve_rows(r),
        "lengths": sorted({e.length for a in r.attacks for e in a.crowd}),
        "published": _published_chance(r),
        "curve_table": crowd_charts.curve_table,
        "entries": entries,
        "zebra_entries": _zebra_entries(r, entries),
        "ece_chart": charts.ece(profiles, r.zero_evidence) if r.zero_evidence else Markup(""),
        "det_chart": charts.det(r),
        "tags": TAGS,
        "heat": heatmap(r.similarity) if r.similarity else None,
        "blocks": blocks(r.similarity) if r.similarity else [],
        "people": [PeopleTable(a, words.both_names(a)) for a in r.attacks if a.speakers],
        "groups": _groups(r),
        "utility": _utility(r.utility) if r.utility else [],
        "unbelieved": _unbelieved(_utility(r.utility)) if r.utility else [],
        "no_utility": r.utility.missing.get("all") if r.utility else "not asked for",
        "planes": _planes(r, settings),
        "parameters": _parameters(r),
        "glossary": GLOSSARY,
        **inference_context(r.inference),
    }


def _settings(r: Results) -> list[Setting]:
    """The L and N at which the verdict holds, for the table of attackers."""
    return [Setting(metric, words.LABELS[metric], L, N) for metric, L, N in crowd_settings(r)]


def _published_chance(r: Results) -> float | None:
    for a in r.attacks:
        for e in a.crowd:
            if e.name == "singling_out" and e.parameters.get("chance_paper") is not None:
                return float(e.parameters["chance_paper"])
    return None


def _genders(genders: Mapping[str, int]) -> str:
    if not genders or set(genders) == {"unknown"}:
        return ""
    full = {"f": "female", "m": "male", "unknown": "of unknown gender"}
    return ", ".join(f"{n} {full.get(g, g)}" for g, n in genders.items())


def _zebra_entries(r: Results, entries: list[Series]) -> list[Series]:
    found = []
    for entry, attack in zip(entries, r.attacks, strict=True):
        name, figures = entry.name, attack.figures
        if "d_ece" in figures and "log10_l" in figures:
            name += (
                f": {words.estimate(figures['d_ece'])}, {words.estimate(figures['log10_l'])},"
                f" tag {attack.tag}"
            )
        found.append(Series(entry.id, name, entry.colour, entry.mark))
    return found


def _groups(r: Results) -> list[tuple[str, tuple[Group, ...]]]:
    return [(words.both_names(a), a.groups) for a in r.attacks if a.groups]


def _utility(utility: UtilityResult) -> list[UtilityRow]:
    return [
        UtilityRow(
            name,
            words.LABELS[name],
            figure.meaning,
            utility.get(name, "original"),
            utility.get(name, "anonymized"),
            "" if name in utility.figures else utility.missing[name],
            utility.untrusted.get(name, ""),
            _basis(utility.get(name, "anonymized")),
        )
        for name, figure in FIGURES.items()
        if figure.meaning and (name in utility.figures or name in utility.missing)
    ]


def _basis(estimate: Estimate | None) -> str:
    """What a figure of usefulness rests on: so many words of so many utterances, who heard them."""
    if estimate is None or "utterance" not in estimate.n:
        return ""
    units = {"word": "words", "character": "characters"}
    counted = [f"{words.count(estimate.n[u])} {name} of " for u, name in units.items()
               if u in estimate.n]  # fmt: skip
    text = f"{''.join(counted)}{words.count(estimate.n['utterance'])} utterances"
    if left := estimate.n.get("left_out"):
        text += f", {words.count(left)} left out"
    if asr := estimate.parameters.get("asr"):
        codes = str(estimate.parameters.get("language", "")).replace("+", ", ")
        text += f", heard by {asr}" + (f" ({codes})" if codes else "")
    return text


def _unbelieved(rows: list[UtilityRow]) -> list[tuple[str, str]]:
    """Each reason not to believe figures once, with the names of the figures."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.untrusted:
            found.setdefault(row.untrusted, []).append(row.label)
    return [(" and ".join(names), why) for why, names in found.items()]


def _planes(r: Results, settings: list[Setting]) -> list[tuple[Markup, str]]:
    """Charts of privacy against usefulness, each with its caption."""
    if r.utility is None or "wer" in r.utility.untrusted:
        return []
    found = []
    if by_eer := plane_points(r, lambda a: a.figures.get("rocch_eer")):
        found.append(
            (
                charts.plane(by_eer, "wer", "rocch_eer", better="up"),
                "Equal error rate of each attacker against the word error rate. Best is high "
                "(private) and left (understandable).",
            )
        )
    for s in settings:
        if s.metric == "linkability" and (
            linked := plane_points(r, lambda a, s=s: a.at("linkability", s.L, s.N))  # type: ignore[misc]
        ):
            found.append(
                (
                    charts.plane(linked, "wer", "linkability", better="down"),
                    f"Linkability (L = {s.L}, N = {s.N:,}) against the word error rate. Best is "
                    "low (private) and left (understandable).",
                )
            )
    return found


def _parameters(r: Results) -> list[tuple[str, str]]:
    m = r.methods
    rows = [
        ("voxrisk", r.voxrisk),
        ("effort", m.effort),
        ("seed", m.seed),
        ("confidence", m.confidence),
        ("resamples", m.resamples),
        ("L", ", ".join(map(str, m.lengths))),
        ("N", ", ".join(map(str, m.sizes))),
        ("corpus", r.corpus.name if r.corpus else ""),
        ("sessions known", "yes" if r.corpus and r.corpus.sessions_known else "no"),
        *(
            (f"anonymizer: {k}", v)
            for k, v in (r.anonymizer.parameters if r.anonymizer else {}).items()
        ),
        ("speaker recogniser, SHA-256", r.encoder.sha256 if r.encoder else ""),
        *((f"{name}, SHA-256", value) for name, value in m.hashes.items()),
        *((f"version of {name}", value) for name, value in m.versions.items()),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def _pointed(r: Results) -> dict[str, object] | None:
    """The numbers behind the heat map, short enough to be embedded."""
    s = r.similarity
    if s is None or len(s.speakers) > MOST_POINTED:
        return None
    tables = {
        key: [[round(v, 4) for v in row] for row in rows]
        for key, rows in (("oo", s.oo), ("op", s.op), ("pp", s.pp))
    }
    return {"speakers": list(s.speakers), **tables}
