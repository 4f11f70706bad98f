"""The leaderboard: the strongest attacker decides, and nobody wins by being attacked less."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_sample import sample
from voxrisk.report.board import BoardRow, leaderboard
from voxrisk.report.board import _on_front as on_front
from voxrisk.report.compare import write_compare
from voxrisk.results import Results
from voxrisk.types import Estimate


@pytest.fixture(scope="module")
def runs() -> list[Results]:
    return [sample(strength=1.2, title="weak"), sample(seed=1, strength=0.35, title="strong")]


def test_the_worst_case_is_the_lowest_error_of_an_attacker_that_counts(runs) -> None:
    board = leaderboard(runs, ["weak", "strong"])
    assert [row.name for row in board.rows] == ["strong", "weak"]
    assert board.columns == ("ignorant", "lazy-informed", "semi-informed", "informed")
    for row, run in zip(board.rows, reversed(runs), strict=True):
        lowest = min(a.eer.value for a in run.attacks if not a.reference)
        assert row.worst[0].value == lowest
        assert [c.value.value for c in row.cells if c.worst] == [lowest]


def test_an_attacker_that_failed_its_control_is_shown_and_decides_nothing(runs) -> None:
    weak = runs[0]
    strongest = min((a for a in weak.attacks if not a.reference), key=lambda a: a.eer.value)
    doubted = replace(
        weak, attacks=tuple(replace(a, ranked=a is not strongest) for a in weak.attacks)
    )
    (row,) = [r for r in leaderboard([doubted, runs[1]], ["weak", "b"]).rows if r.name == "weak"]
    assert row.worst[1] != strongest.name
    shown = {c.value.value: c.counts for c in row.cells}
    assert shown[strongest.eer.value] is False


def test_a_system_that_was_attacked_less_is_said_to_be(runs) -> None:
    spared = replace(runs[0], attacks=tuple(a for a in runs[0].attacks if a.name != "informed"))
    board = leaderboard([spared, runs[1]], ["spared", "strong"])
    (row,) = [r for r in board.rows if r.name == "spared"]
    assert row.fewer == ("informed",)
    assert row.cells[board.columns.index("informed")] is None


def test_a_run_whose_test_failed_is_last_and_not_on_the_front(runs) -> None:
    verdict = runs[1].verdict
    assert verdict is not None
    criteria = tuple(replace(c, level="test failed") for c in verdict.criteria)
    void = replace(runs[1], verdict=replace(verdict, criteria=criteria))
    board = leaderboard([void, runs[0]], ["void", "weak"])
    assert [row.name for row in board.rows] == ["weak", "void"]
    assert [row.failed for row in board.rows] == [False, True]
    assert [row.front for row in board.rows] == [True, False]


def row(eer: float, wer: float) -> BoardRow:
    def estimate(name: str, value: float) -> Estimate:
        return Estimate(name, value, 0.5, {}, "")

    worst = estimate("rocch_eer", eer), "informed"
    return BoardRow("x", (), worst, estimate("wer", wer), None, False, False, ())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    """Oracle: a point is on the front if no other is as good in both and better in one."""
    rows = [row(eer / 10, wer / 10) for eer, wer in points]
    for (eer, wer), one in zip(points, rows, strict=True):
        dominated = any(e >= eer and w <= wer and (e, w) != (eer, wer) for e, w in points)
        assert on_front(one, rows).front is not dominated


def test_the_page_holds_the_board(runs, tmp_path: Path) -> None:
    write_compare(runs, tmp_path / "page.html", names=["weak <i>", "strong"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('id="board-table"') == 1
    assert "weak &lt;i&gt;" in page
    assert "◆" in page
