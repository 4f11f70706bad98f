"""The paper's own tables from a study of slicing, and those of the attackers it did not try."""

from collections.abc import Callable, Sequence
from pathlib import Path

from voxrisk.report import words
from voxrisk.report.export import Table, table_files, write_files
from voxrisk.slicing_results import PRIVACY, SlicingResults, SuccessorRow
from voxrisk.types import Estimate

RANKS = ("mean_rank", "median_rank", "precision_at_1", "precision_at_10")
CLASSES = {
    "successive": "successive",
    "same_speaker": "same speaker, not successive",
    "other_speaker": "different speakers",
    "balanced": "balanced (½, ¼, ¼)",
    "against_same_speaker": "successive against the same speaker",
    "against_other_speaker": "successive against different speakers",
}


def slicing_tables(results: SlicingResults) -> list[Table]:
    """Every table that has rows: Figure 3 as a table, Tables 1 to 3, and what the paper lacks."""
    return [table for make in TABLES if (table := make(results)).rows]


def write_slicing_tables(
    results: SlicingResults, folder: Path, formats: Sequence[str], *, force: bool = True
) -> list[Path]:
    """Write them in some of the forms of :data:`voxrisk.report.export.WRITERS`."""
    tables = slicing_tables(results)
    files = {name: text for f in formats for name, text in table_files(tables, f).items()}
    return write_files(files, folder, force=force)


def privacy_table(results: SlicingResults) -> Table:
    """Figure 3: recognition of speakers against the length of speech."""
    return Table(
        "figure3",
        f"Recognition of speakers against the length of speech: {results.title}",
        ("Speech", "Attacker", "Tried", "Slices", "Seconds", "Pieces",
         *(words.LABELS[name] for name in PRIVACY)),
        tuple(
            (p.condition, p.attacker, p.cut, length(p.duration),
             f"{p.seconds:.1f} ± {p.spread:.1f}", f"{p.pieces:,}",
             *(p.figures.get(name) for name in PRIVACY))
            for p in results.privacy
        ),
    )  # fmt: skip


def trained_table(results: SlicingResults) -> Table:
    """Table 1: recognisers that learned from slices hear whole utterances."""
    rows = [u for u in results.utility if u.recogniser == "trained"]
    return Table(
        "table1",
        "Word errors on whole utterances after training on slices, differences in percentage "
        f"points, speakers paired: {results.title}",
        ("Trained on", "Slices", "Tested on", words.LABELS["wer"], "Against no slicing",
         "Against training on what is tested", "Pieces", "Hours", "Steps"),
        tuple(
            (u.train, length(u.duration), u.test, u.wer, u.loss, u.mismatch, str(u.pieces or ""),
             "" if u.hours is None else f"{u.hours:.2f}", str(u.steps or ""))
            for u in rows
        ),
    )  # fmt: skip


def ready_table(results: SlicingResults) -> Table:
    """What a ready recogniser hears in slices."""
    rows = [u for u in results.utility if u.recogniser == "ready"]
    return Table(
        "ready",
        "Word errors of a ready recogniser on slices, differences in percentage points, speakers "
        f"paired: {results.title}",
        ("Speech", "Slices", words.LABELS["wer"], "Against no slicing", "Pieces", "Words"),
        tuple(
            (u.test, length(u.duration), u.wer, u.loss, str(u.pieces or ""),
             str(u.wer.n.get("word", "")))
            for u in rows
        ),
    )  # fmt: skip


def text_table(results: SlicingResults) -> Table:
    """Table 2: the next slice by its words."""
    rows = [s for s in results.successors if s.uses == "text" and not s.draws]
    return Table(
        "table2",
        f"Rank of the right next slice by its words, all slices on one table: {results.title}",
        ("Slices", "Number", "Attacker", *(words.LABELS[name] for name in RANKS)),
        tuple((length(s.duration), f"{s.slices:,.0f}", s.attacker, *_ranks(s)) for s in rows),
    )


def network_table(results: SlicingResults) -> Table:
    """Table 3: the next slice by the paper's network, and its answers for each class of pair."""
    rows = [s for s in results.successors if s.accuracy]
    return Table(
        "table3",
        "Rank of the right next slice by the network on joined slices, and how often its answer is "
        f"right for each class of pair: {results.title}",
        ("Speech", "Slices", "Number", "Draws", *(words.LABELS[name] for name in RANKS),
         "Spread of the mean rank over draws", *CLASSES.values()),
        tuple(
            (s.condition, length(s.duration), f"{s.slices:,.0f}", str(s.draws), *_ranks(s),
             words.percent(s.spread["mean_rank"]) if "mean_rank" in s.spread else "",
             *(s.accuracy.get(name) for name in CLASSES))
            for s in rows
        ),
    )  # fmt: skip


def attackers_table(results: SlicingResults) -> Table:
    """Every attacker on the sound of slices."""
    rows = [s for s in results.successors if s.draws]
    return Table(
        "successors",
        f"Rank of the right next slice, every attacker: {results.title}",
        ("Speech", "Slices", "Attacker", "Number", *(words.LABELS[name] for name in RANKS)),
        tuple(
            (s.condition, length(s.duration), s.attacker, f"{s.slices:,.0f}", *_ranks(s))
            for s in rows
        ),
    )


def restored_table(results: SlicingResults) -> Table:
    """Whole utterances put together again, beside a random order."""
    names = list(dict.fromkeys(name for row in results.restored for name in row.figures))
    return Table(
        "restored",
        f"What a search over all scores puts together again: {results.title}",
        ("Speech", "Slices", "Attacker", "On the table",
         *(part for name in names for part in (words.LABELS.get(name, name), "Guessing"))),
        tuple(
            (r.condition or "words", length(r.duration), r.attacker, r.pool,
             *(part for name in names for part in (
                 r.figures.get(name),
                 words.figure(name, r.figures[name].chance) if name in r.figures else "",
             )))
            for r in results.restored
        ),
    )  # fmt: skip


def length(duration: float | None) -> str:
    """A slice length, for people."""
    return "none" if duration is None else f"{duration:g} s"


def _ranks(row: SuccessorRow) -> list[Estimate | None]:
    return [row.figures.get(name) for name in RANKS]


TABLES: tuple[Callable[[SlicingResults], Table], ...] = (
    privacy_table,
    trained_table,
    ready_table,
    text_table,
    network_table,
    attackers_table,
    restored_table,
)
