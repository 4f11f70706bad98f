"""``compare.html``: several anonymizers side by side, on the same attackers and the same crowd.

What is not alike is not compared: only attackers that every run has, at an L and N that every run
has; and speakers are paired only where the runs start from the same original speech.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from voxrisk.measure.paired import holm, paired_difference
from voxrisk.report import charts, style, words
from voxrisk.report.html import at
from voxrisk.report.page import check_schema, lacking, write_page
from voxrisk.types import InputError

Results = Mapping[str, Any]
_MARKS = ("square", "triangle", "diamond", "circle", "down", "cross")
_BEST: dict[str, Callable[..., Any]] = {"rocch_eer": min, "d_ece": max, "log10_l": max}


_ADVERSARIAL = "informed + adversarial"


def write_compare(
    runs: Sequence[Results], path: Path, *, names: Sequence[str] | None = None
) -> None:
    """Write the comparison of several evaluations.

    Args:
        runs: What the results.json of each run holds, schema 1.
        path: The HTML file.
        names: What to call the systems; by default their anonymizers.

    Raises:
        InputError: If there are fewer than two runs, or no attacker is common to all of them.
    """
    if len(runs) < 2:
        raise InputError(f"there is {len(runs)} run; a comparison needs at least two")
    for run in runs:
        check_schema(run)
    try:
        context = _context(runs, list(names) if names else system_names(runs))
    except KeyError as error:
        raise lacking(error) from error
    write_page(path, "compare.html.j2", {}, context)


def system_names(runs: Sequence[Results]) -> list[str]:
    """The anonymizers' names if they differ, else the titles, else with a number."""
    for found in (
        [str(r["anonymizer"]["name"]) for r in runs],
        [str(r["title"]) for r in runs],
    ):
        if len(set(found)) == len(found):
            return found
    return [f"{name} ({i})" for i, name in enumerate(found, start=1)]


def common_attackers(runs: Sequence[Results]) -> list[str]:
    """Attackers on anonymized speech that every run has, in the order of the runs.

    An anonymizer without target voices has no target to unlearn: there the informed attacker stands
    for the adversarial one too, which is then not left out of the other runs.
    """
    have = [{a["name"] for a in r["attackers"] if not a["reference"]} for r in runs]
    shared = set.intersection(*have)
    if any(_ADVERSARIAL in names for names in have) and all(
        _ADVERSARIAL in names or ("informed" in names and not r["anonymizer"]["target_selection"])
        for names, r in zip(have, runs, strict=True)
    ):
        shared.add(_ADVERSARIAL)
    if not shared:
        lists = "; ".join(", ".join(sorted(h)) or "none" for h in have)
        raise InputError(
            f"the runs have no attacker in common ({lists}); evaluate them with the same attackers"
        )
    every = dict.fromkeys(a["name"] for r in runs for a in r["attackers"])
    return [name for name in every if name in shared]


def common_setting(
    runs: Sequence[Results], attackers: Sequence[str], metric: str
) -> tuple[int, int] | None:
    """The longest L, and for it the largest N, at which every run has this figure."""
    have = [
        {(e["L"], e["N"]) for e in a["population"] if e["metric"] == metric}
        for r in runs
        for a in r["attackers"]
        if a["name"] in attackers
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


def _context(runs: Sequence[Results], names: list[str]) -> dict[str, Any]:
    shared = common_attackers(runs)
    systems = []
    settings = {
        metric: common_setting(runs, shared, metric) for metric in ("linkability", "singling_out")
    }
    for i, (name, run) in enumerate(zip(names, runs, strict=True)):
        look = {"colour": style.colour(i), "mark": _MARKS[i % len(_MARKS)]}
        mine = [a for a in run["attackers"] if a["name"] in shared]
        systems.append({"id": f"{i} {name}", "name": name, **look, **_figures(run, mine, settings)})
    known = {a["name"]: a for run in reversed(runs) for a in run["attackers"]}
    ranked = sorted(systems, key=_place)
    differences = _differences(ranked, shared)
    return {
        "lead": _lead(ranked, settings["linkability"], differences),
        "systems": ranked,
        "reference": _reference(runs[0], settings),
        "attackers": [words.both_names(known[name]) for name in shared],
        "settings": settings,
        "warnings": _warnings(runs, names, shared),
        "confidence": runs[0]["methods"]["confidence"],
        "differences": differences,
        "zebra": _zebra(runs[0], ranked),
        "scatter": _scatter(ranked),
        "plane": _plane(ranked),
    }  # fmt: skip


def _figures(
    run: Results, attackers: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The strongest common attacker's figure, metric by metric, with the attacker's name."""
    found: dict[str, Any] = {"run": run, "who": {}}
    for metric, setting in settings.items():
        points = [(a, at(a, metric, *setting)) for a in attackers] if setting else []
        who, found[metric] = max(
            ((a, p) for a, p in points if p),
            key=lambda item: item[1]["value"],
            default=(None, None),
        )
        found["who"][metric] = words.both_names(who) if who else ""
    for metric, worst in _BEST.items():
        having = [a for a in attackers if metric in a["figures"]]
        who = worst(having, key=lambda a: a["figures"][metric]["value"]) if having else None
        found[metric] = who["figures"][metric] if who else None
        found["who"][metric] = words.both_names(who) if who else ""
        if metric == "d_ece" and who:
            found["profile"] = who
        if metric == "log10_l" and who:
            found["tag"] = who["zebra_tag"]
    similarity = run["similarity"] or {}
    found["deid"], found["g_vd"] = similarity.get("deid"), similarity.get("g_vd")
    found["wer"] = (run["utility"].get("wer") or {}).get("anonymized")
    return found


def _place(system: Mapping[str, Any]) -> tuple[float, float]:
    """Ranked by linkability, then by expected disclosure: the lower, the better protected."""
    return tuple(
        system[m]["value"] if system[m] else float("inf") for m in ("linkability", "d_ece")
    )  # type: ignore[return-value]


def _reference(run: Results, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the first run gives for speech as it was."""
    original = [a for a in run["attackers"] if a["reference"]]
    if not original:
        return None
    wer = (run["utility"].get("wer") or {}).get("original")
    return _figures(run, original, settings) | {"wer": wer, "deid": None, "g_vd": None}


def _warnings(runs: Sequence[Results], names: Sequence[str], shared: Sequence[str]) -> list[str]:
    found = []
    for what, key in (
        ("original speech", _speech),
        ("speaker recogniser", lambda r: (r["encoder"]["name"], r["encoder"]["sha256"])),
        ("effort", lambda r: r["methods"]["effort"]),
        ("version of voxrisk", lambda r: r["voxrisk"]),
    ):
        if len({key(r) for r in runs}) > 1:
            found.append(
                f"The runs do not share the {what}: a difference may come from that and not from "
                "the anonymizers."
            )
    for name, run in zip(names, runs, strict=True):
        alone = [
            a["name"] for a in run["attackers"] if not a["reference"] and a["name"] not in shared
        ]
        if alone:
            found.append(
                f"{name} was also attacked by: {', '.join(alone)}. Not every run has these "
                "attackers, so they are left out here; they may be the strongest."
            )
    if any(r["corpus"]["synthetic"] for r in runs):
        found.append(
            "Voices are synthetic: the figures do not say how well real people are protected."
        )
    return found


def _speech(run: Results) -> str:
    """What the original speech is known by: two runs with the same have the same speakers."""
    hashes = run["methods"]["hashes"]
    known = hashes.get("original") or hashes.get("original manifest")
    return str(known or (run["corpus"]["name"], run["corpus"]["speakers"]))


def _lead(
    ranked: Sequence[Mapping[str, Any]],
    setting: tuple[int, int] | None,
    differences: Sequence[Mapping[str, Any]],
) -> str:
    """What can be said about the first in the ranking, and no more."""
    best = ranked[0]
    if not setting or not best["linkability"]:
        return ""
    beaten = [
        d["second"]
        for d in differences
        if d["first"] == best["name"] and d["paired"] and d["p"] < 0.05
        and d["paired"].difference.value < 0
    ]  # fmt: skip
    said = (
        f"Lowest linkability: {best['name']}, {words.estimate(best['linkability'])} among "
        f"{setting[1]:,} people. "
    )
    if not beaten:
        return said + "It is not shown to be lower than that of any other system."
    return said + f"It is shown to be lower than that of {', '.join(beaten)}."


def _differences(
    ranked: Sequence[Mapping[str, Any]], shared: Sequence[str]
) -> list[dict[str, Any]]:
    """Linkability of the same speakers under each pair of systems, strongest attacker each."""
    found = []
    for first, second in combinations(ranked, 2):
        pair = {"first": first["name"], "second": second["name"], "why": "", "paired": None}
        if _speech(first["run"]) != _speech(second["run"]):
            pair["why"] = "not the same original speech, so speakers cannot be paired"
        else:
            a, b = (_by_speaker(s["run"], shared) for s in (first, second))
            both = sorted(a.keys() & b.keys())
            try:
                pair["paired"] = paired_difference([a[s] for s in both], [b[s] for s in both])
            except InputError as error:
                pair["why"] = str(error)
        found.append(pair)
    tested = [p for p in found if p["paired"]]
    for pair, p in zip(tested, holm([p["paired"].p_value for p in tested]), strict=True):
        pair["p"] = float(p)
    return found


def _by_speaker(run: Results, shared: Sequence[str]) -> dict[str, float]:
    """Linkability by speaker under the attacker who links most."""

    def mean(attacker: Mapping[str, Any]) -> float:
        values = [s["linkability"] for s in attacker["speakers"]]
        return sum(values) / len(values) if values else -1.0

    strongest = max((a for a in run["attackers"] if a["name"] in shared), key=mean)
    return {s["speaker"]: s["linkability"] for s in strongest["speakers"]}


def _zebra(run: Results, ranked: Sequence[Mapping[str, Any]]) -> Any:
    curves = [
        (s["id"], s["name"], s["profile"]["ece"], s["colour"], s["mark"])
        for s in ranked
        if "profile" in s
    ]
    for a in run["attackers"]:
        if a["reference"]:
            curves.append(("original", "original speech", a["ece"], style.INK, "circle"))
    return charts.ece(curves, run["zero_evidence"])


def _scatter(ranked: Sequence[Mapping[str, Any]]) -> Any:
    points = [{**s, "x": s["deid"], "y": s["g_vd"]} for s in ranked if s["deid"] and s["g_vd"]]
    return charts.plane(points, "deid", "g_vd") if points else None


def _plane(ranked: Sequence[Mapping[str, Any]]) -> Any:
    points = [
        {**s, "x": s["wer"], "y": s["rocch_eer"]} for s in ranked if s["wer"] and s["rocch_eer"]
    ]
    if not points:
        return None
    front = pareto_front([(p["x"]["value"], p["y"]["value"]) for p in points])
    return charts.plane(points, "wer", "rocch_eer", front=front, better="up")
