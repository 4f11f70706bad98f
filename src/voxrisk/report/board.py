"""The leaderboard of a comparison: every attacker of every run, the worst case, and usefulness."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from voxrisk.knowledge import ATTACKERS
from voxrisk.report.systems import run_failed
from voxrisk.results import AttackResult, Results
from voxrisk.types import Estimate

FIGURE = "rocch_eer"


@dataclass(frozen=True, slots=True)
class BoardCell:
    """The EER of one attacker; ``counts`` is False where a control of its own failed."""

    value: Estimate
    counts: bool
    worst: bool


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One system.

    Attributes:
        name: What it is called.
        cells: One for each column of the board; None where the attacker did not run.
        worst: The lowest EER of the attackers that count, and who reached it.
        wer: Word error rate, where it can be believed.
        quality: Sound quality (DNSMOS).
        front: Whether no other system is at least as good in both worst case and word error rate.
        failed: Whether a control voids the run.
        fewer: Attackers of other runs that this one does not have: its worst case may be milder.
    """

    name: str
    cells: tuple[BoardCell | None, ...]
    worst: tuple[Estimate, str] | None
    wer: Estimate | None
    quality: Estimate | None
    front: bool
    failed: bool
    fewer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Attackers as columns, systems as rows, the best protected first."""

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]


def leaderboard(runs: Sequence[Results], names: Sequence[str]) -> Leaderboard:
    """Every attacker that any run has, by the order of what attackers know."""
    there = {a.name for run in runs for a in run.attacks if not a.reference}
    columns = [name for name in ATTACKERS if name in there]
    columns += sorted(there - set(columns))
    rows = [_row(name, run, columns) for name, run in zip(names, runs, strict=True)]
    rows = [_on_front(row, rows) for row in rows]
    return Leaderboard(tuple(columns), tuple(sorted(rows, key=_place)))


def _row(name: str, run: Results, columns: Sequence[str]) -> BoardRow:
    attacks = {a.name: a for a in run.attacks if not a.reference and FIGURE in a.figures}
    sound = [a for a in attacks.values() if a.ranked]
    worst = min(sound, key=lambda a: a.eer.value, default=None)
    heard = run.utility
    believed = heard is not None and "wer" not in heard.untrusted
    return BoardRow(
        name,
        tuple(_cell(attacks.get(column), worst) for column in columns),
        (worst.eer, worst.name) if worst else None,
        heard.get("wer") if heard is not None and believed else None,
        heard.get("dnsmos") if heard is not None else None,
        front=False,
        failed=run_failed(run),
        fewer=tuple(column for column in columns if column not in attacks),
    )


def _cell(attack: AttackResult | None, worst: AttackResult | None) -> BoardCell | None:
    if attack is None:
        return None
    return BoardCell(attack.eer, attack.ranked, attack is worst)


def _on_front(row: BoardRow, rows: Sequence[BoardRow]) -> BoardRow:
    mine = _both(row)
    others = [both for other in rows if other is not row and (both := _both(other))]
    beaten = mine is None or any(
        eer >= mine[0] and wer <= mine[1] and (eer, wer) != mine for eer, wer in others
    )
    return replace(row, front=not beaten)


def _both(row: BoardRow) -> tuple[float, float] | None:
    """Worst-case EER and word error rate of a run that can be believed."""
    if row.failed or row.worst is None or row.wer is None:
        return None
    return row.worst[0].value, row.wer.value


def _place(row: BoardRow) -> tuple[bool, float]:
    return row.failed or row.worst is None, -(row.worst[0].value if row.worst else 0.0)
