"""The study as one tidy table, with a row for each figure."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from voxrisk.files.atomic import write_text
from voxrisk.pipeline.tables import as_csv
from voxrisk.slicing_results import SlicingResults
from voxrisk.types import Estimate

COLUMNS = ("part", "condition", "train", "attacker", "uses", "cut", "duration", "pool", "figure")


def write_tables(results: SlicingResults, folder: Path) -> None:
    """Write ``slicing.csv``, tidy: what was tried, and one figure, in every row."""
    write_text(folder / "slicing.csv", as_csv(tidy(results)) or ",".join(COLUMNS) + "\n")


def tidy(results: SlicingResults) -> Iterator[dict[str, object]]:
    """Every figure of the study."""
    for p in results.privacy:
        at: dict[str, object] = {"condition": p.condition, "attacker": p.attacker, "cut": p.cut,
              "duration": p.duration}  # fmt: skip
        more: dict[str, object] = {"seconds": p.seconds, "spread": p.spread, "pieces": p.pieces}
        for name, e in p.figures.items():
            yield _row("privacy", name, e, at, more)
    for u in results.utility:
        at = {"condition": u.test, "train": u.train, "attacker": f"{u.recogniser} recogniser",
              "duration": u.duration}  # fmt: skip
        more = {"pieces": "" if u.pieces is None else u.pieces}
        yield _row("utility", "wer", u.wer, at, more)
        for paired in (u.loss, u.mismatch):
            if paired:
                yield _row("utility", paired.name, paired, at, more)
    for s in results.successors:
        at = {"condition": s.condition, "attacker": s.attacker, "uses": s.uses, "cut": s.cut,
              "duration": s.duration, "pool": f"{s.draws} draws" if s.draws else "all"}  # fmt: skip
        more = {"pieces": s.slices}
        for name, e in s.figures.items():
            yield _row("successor", name, e, at, {**more, "spread": s.spread.get(name, "")})
        for name, e in s.accuracy.items():
            yield _row("successor", f"accuracy, {name}", e, at, more)
    for r in results.restored:
        at = {"condition": r.condition, "attacker": r.attacker, "duration": r.duration,
              "pool": r.pool}  # fmt: skip
        for name, e in r.figures.items():
            yield _row("restored", name, e, at, {})


def _row(
    part: str, figure: str, e: Estimate, at: Mapping[str, object], more: Mapping[str, object]
) -> dict[str, object]:
    span = e.interval
    known = {"part": part, **at, "figure": figure}
    return {
        **{name: "" if (v := known.get(name)) is None else v for name in COLUMNS},
        "value": e.value,
        "low": span.low if span else "",
        "high": span.high if span else "",
        "chance": e.chance if e.chance == e.chance else "",
        **{name: more.get(name, "") for name in ("seconds", "spread", "pieces")},
        "speakers": e.n.get("speaker", ""),
        "source": e.source,
    }
