"""``report.html``: the results of one evaluation as one page that opens anywhere and loads nothing.

The first screen is the verdict. Every figure is SVG or a table, so nothing needs the script.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from voxrisk.report import charts, words
from voxrisk.report.glossary import GLOSSARY, MEANINGS, QUESTIONS, TAGS
from voxrisk.report.heatmap import blocks, heatmap
from voxrisk.report.page import check_schema, lacking, write_page
from voxrisk.report.pdf import write_pdf
from voxrisk.types import InputError

__all__ = ["write_pdf", "write_report"]

Results = Mapping[str, Any]
MOST_ROWS = 200  # speakers in a table; the rest is in results.json
MOST_POINTED = 300  # speakers in a heat map whose cells can be pointed at


def write_report(results: Results, path: Path, *, run: Mapping[str, Any] | None = None) -> None:
    """Write the report of one evaluation.

    Args:
        results: What results.json holds, schema 1.
        path: The HTML file.
        run: What run.json holds: times, which differ from run to run and are no result.

    Raises:
        InputError: If the results are of another schema or not complete.
    """
    check_schema(results)
    try:
        context = _context(results) | {"anonymizing": _anonymizing(run or {})}
    except KeyError as error:
        raise lacking(error) from error
    write_page(path, "report.html.j2", {"similarity": _pointed(results)}, context)


def _anonymizing(run: Mapping[str, Any]) -> float | None:
    """Seconds of work on one core for one second of speech, if the anonymizer was run here."""
    times = run.get("anonymizer") or {}
    speech, work = times.get("speech_seconds"), times.get("cpu_seconds")
    return work / speech if speech and work else None


def _context(r: Results) -> dict[str, Any]:
    for pair in r.get("audio") or ():
        for side in ("original", "anonymized"):
            if not str(pair[side]).startswith("data:audio/"):
                raise InputError(
                    f"results.json: audio of {pair['utterance']} is not embedded; "
                    "it must be a data:audio/… address, so that the report loads nothing"
                )
    settings = _settings(r)
    entries = legend_entries(r)
    similarity = r["similarity"]
    return {
        "r": r,
        "serious": [w for w in r["warnings"] if w["severity"] == "serious"],
        "notes": [w for w in r["warnings"] if w["severity"] != "serious"],
        "genders": _genders(r["corpus"]["genders"]),
        "names": {a["name"]: words.both_names(a) for a in r["attackers"]},
        "levels": words.LEVELS,
        "questions": QUESTIONS,
        "settings": settings,
        "at": at,
        "criterion_scale": charts.criterion_scale,
        "rows": charts.curve_rows(r),
        "lengths": sorted({e["L"] for a in r["attackers"] for e in a["population"]}),
        "published": _published_chance(r),
        "curve_table": charts.curve_table,
        "entries": entries,
        "zebra_entries": _zebra_entries(r, entries),
        "ece_chart": charts.ece(
            [(e["id"], e["name"], a["ece"], e["colour"], e["mark"])
             for e, a in zip(entries, r["attackers"], strict=True)],
            r["zero_evidence"],
        ),
        "det_chart": charts.det(r),
        "tags": TAGS,
        "heat": heatmap(similarity) if similarity else None,
        "blocks": blocks(similarity) if similarity else [],
        "people": _people(r),
        "groups": _groups(r),
        "utility": _utility(r["utility"]),
        "no_utility": (r["utility"].get("missing") or {}).get("all"),
        "say_synthetic": r["corpus"]["synthetic"]
        and not any("synthetic" in w["text"] for w in r["warnings"]),
        "planes": _planes(r, settings, entries),
        "parameters": _parameters(r),
        "glossary": GLOSSARY,
    }  # fmt: skip


def legend_entries(r: Results) -> list[dict[str, Any]]:
    """Name, colour and mark of each attacker, in the order of the results."""
    found = []
    for i, attacker in enumerate(r["attackers"]):
        colour, mark = words.look(attacker["name"], i)
        name = words.both_names(attacker)
        found.append({"id": attacker["name"], "name": name, "colour": colour, "mark": mark})
    return found


def at(attacker: Mapping[str, Any], metric: str, length: int, size: int) -> dict[str, Any] | None:
    """A point of a population curve in the form of an estimate, or None."""
    for e in attacker["population"]:
        if (e["metric"], e["L"], e["N"]) == (metric, length, size):
            known = e["low"] is not None and e["high"] is not None
            span = {"low": e["low"], "high": e["high"]} if known else None
            return {
                "name": metric, "value": e["value"], "chance": e["chance"], "interval": span,
            }  # fmt: skip
    return None


def _settings(r: Results) -> list[dict[str, Any]]:
    """The L and N at which the verdict holds, for the table of attackers."""
    found = []
    for c in r["verdict"]["criteria"]:
        metric = c["criterion"].replace(" ", "_")
        if c["assessed"] and metric in ("singling_out", "linkability"):
            found.append(
                {"metric": metric, "label": words.LABELS[metric], "L": c["L"], "N": c["N"]}
            )
    return found


def _published_chance(r: Results) -> float | None:
    for a in r["attackers"]:
        for e in a["population"]:
            if e["metric"] == "singling_out" and e.get("chance_published") is not None:
                return float(e["chance_published"])
    return None


def _genders(genders: Mapping[str, int] | None) -> str:
    if not genders or set(genders) == {"unknown"}:
        return ""
    full = {"f": "female", "m": "male", "unknown": "of unknown gender"}
    return ", ".join(f"{n} {full.get(g, g)}" for g, n in genders.items())


def _zebra_entries(r: Results, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for entry, attacker in zip(entries, r["attackers"], strict=True):
        figures, name = attacker["figures"], entry["name"]
        if "d_ece" in figures and "log10_l" in figures:
            name += (
                f": {words.estimate(figures['d_ece'])}, {words.estimate(figures['log10_l'])},"
                f" tag {attacker['zebra_tag']}"
            )
        found.append({**entry, "name": name})
    return found


def _people(r: Results) -> list[dict[str, Any]]:
    return [
        {
            "attacker": a["name"],
            "name": words.both_names(a),
            "rows": a["speakers"][:MOST_ROWS],
            "left_out": max(len(a["speakers"]) - MOST_ROWS, 0),
            "singling_out": any(s.get("singling_out") is not None for s in a["speakers"]),
            "similarity": any(s.get("similarity") is not None for s in a["speakers"]),
        }
        for a in r["attackers"]
        if a["speakers"]
    ]


def _groups(r: Results) -> list[dict[str, Any]]:
    return [
        {
            **g,
            "attacker": words.both_names(a),
            "eer": g["figures"].get("rocch_eer"),
            "d_ece": g["figures"].get("d_ece"),
        }
        for a in r["attackers"]
        for g in a["groups"]
    ]


def _utility(utility: Mapping[str, Any]) -> list[dict[str, Any]]:
    reasons = utility.get("missing") or {}
    found = []
    for name, meaning in MEANINGS.items():
        entry = utility.get(name) or {}
        if entry or name in reasons:
            found.append(
                {
                    "name": name,
                    "label": words.LABELS[name],
                    "meaning": meaning,
                    "original": entry.get("original"),
                    "anonymized": entry.get("anonymized"),
                    "missing": None if entry else reasons[name],
                }
            )
    return found


def _planes(
    r: Results, settings: list[dict[str, Any]], entries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    wer = r["utility"].get("wer")
    if not wer:
        return []
    pairs = list(zip(entries, r["attackers"], strict=True))

    def points(figure: Any) -> list[dict[str, Any]]:
        return [
            {**e, "x": wer["original" if a["reference"] else "anonymized"], "y": y}
            for e, a in pairs
            if (y := figure(a)) is not None
        ]

    found = []
    by_eer = points(lambda a: a["figures"].get("rocch_eer"))
    if by_eer:
        chart = charts.plane(by_eer, "wer", "rocch_eer", better="up")
        caption = "Equal error rate of each attacker against the word error rate."
        found.append(
            {
                "chart": chart,
                "caption": f"{caption} Best is high (private) and left (understandable).",
            }
        )
    for s in settings:
        if s["metric"] == "linkability":
            linked = points(lambda a, s=s: at(a, "linkability", s["L"], s["N"]))
            caption = f"Linkability (L = {s['L']}, N = {s['N']:,}) against the word error rate."
            found.append(
                {
                    "chart": charts.plane(linked, "wer", "linkability", better="down"),
                    "caption": f"{caption} Best is low (private) and left (understandable).",
                }
            )
    return found


def _parameters(r: Results) -> list[tuple[str, str]]:
    m = r["methods"]
    rows = [
        ("voxrisk", r["voxrisk"]),
        ("effort", m["effort"]),
        ("seed", m["seed"]),
        ("confidence", m["confidence"]),
        ("resamples", m["resamples"]),
        ("L", ", ".join(map(str, m["L"]))),
        ("N", ", ".join(map(str, m["N"]))),
        ("corpus", r["corpus"]["name"]),
        ("sessions known", "yes" if r["corpus"]["sessions_known"] else "no"),
        *((f"anonymizer: {k}", v) for k, v in (r["anonymizer"].get("parameters") or {}).items()),
        ("speaker recogniser, SHA-256", r["encoder"]["sha256"]),
        *((f"{name}, SHA-256", value) for name, value in m["hashes"].items()),
        *((f"version of {name}", value) for name, value in m["versions"].items()),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def _pointed(r: Results) -> dict[str, Any] | None:
    """The numbers behind the heat map, short enough to be embedded."""
    s = r["similarity"]
    if not s or len(s["speakers"]) > MOST_POINTED:
        return None
    rounded = {k: [[round(v, 4) for v in row] for row in s[k]] for k in ("oo", "op", "pp")}
    return {"speakers": s["speakers"], **rounded}
