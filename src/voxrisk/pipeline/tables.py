"""Results as tables: one row for each figure, whatever command found it."""

import csv
import io
from collections.abc import Iterable, Mapping

from voxrisk.measure import FIGURES
from voxrisk.results import Results
from voxrisk.types import Estimate


def figure_rows(results: Results) -> list[dict[str, object]]:
    """Every figure of every attack: value, interval, chance, sizes, and where it is defined."""
    rows = [(a.name, e) for a in results.attacks for e in (*a.figures.values(), *a.crowd)]
    sizes = list(dict.fromkeys(key for _, e in rows for key in e.n))
    crowd = any("L" in e.parameters for _, e in rows)
    return [_row(name, e, sizes, crowd=crowd) for name, e in rows]


def _row(name: str, e: Estimate, sizes: list[str], *, crowd: bool) -> dict[str, object]:
    span = e.interval
    at = {key: e.parameters.get(key, "") for key in ("L", "N", "chance_paper")} if crowd else {}
    definition = FIGURES.get(e.name)
    return {
        "attack": name,
        "figure": e.name,
        **at,
        "value": e.value,
        "low": span.low if span else "",
        "high": span.high if span else "",
        "confidence": span.confidence if span else "",
        "method": span.method if span else "",
        "chance": e.chance,
        "unit": definition.unit if definition else "rate",
        **{f"n_{key}": e.n.get(key, "") for key in sizes},
        "source": e.source,
    }


def people_rows(results: Results) -> list[dict[str, object]]:
    """Every person of every attack, the most exposed first."""
    return [
        {
            "attack": a.name,
            "speaker": p.speaker,
            "similarity_to_self": p.similarity,
            "nearest_other": p.nearest_other,
            "similarity_to_nearest": p.similarity_to_nearest,
        }
        for a in results.attacks
        for p in a.speakers
    ]


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """A table as CSV text; the first row names the columns."""
    text = io.StringIO()
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()
