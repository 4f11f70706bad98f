"""A leaderboard from one YAML file: what is finished is not done again."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from report_sample import sample
from voxrisk.cli import app
from voxrisk.pipeline import board as module
from voxrisk.pipeline.board import finished, read_board, run_board, slug
from voxrisk.pipeline.evaluation import YAML, Evaluation, write_yaml
from voxrisk.types import InputError

TEXT = """
original: speech
effort: quick
systems:
  bent: {anonymizer: mcadams}
  bent twice: {anonymizer: mcadams, options: {alpha: 0.6}, seed: 3}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "board.yaml").write_text(TEXT, encoding="utf-8")
    (tmp_path / "speech").mkdir()
    return tmp_path / "board.yaml"


def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Evaluation, Path, Path | None]]:
    """Stand in for the hours of an evaluation; what it was asked for."""
    asked = []

    def stand_in(chosen: Evaluation, out: Path, *, stages: Path | None, force: bool):
        asked.append((chosen, out, stages))
        results = sample(title=chosen.title or "", strength=0.4 + len(asked), seed=len(asked))
        out.mkdir(parents=True, exist_ok=True)
        results.write(out)
        (out / YAML).write_text(write_yaml(chosen, out), encoding="utf-8")
        return results

    monkeypatch.setattr(module, "evaluate_speech", stand_in)
    return asked


def test_every_system_has_what_all_share_and_its_own(path: Path) -> None:
    board = read_board(path)
    assert list(board.systems) == ["bent", "bent twice"]
    first, second = board.systems.values()
    assert first.original == second.original == path.parent / "speech"
    assert (first.effort, second.effort) == ("quick", "quick")
    assert second.options == {"alpha": 0.6}
    assert (first.seed, second.seed) == (0, 3)
    assert second.title == "bent twice"


def test_what_is_finished_is_used_again_and_stages_are_shared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = evaluated(monkeypatch)
    folder = path.parent / "runs"
    first = dict(run_board(read_board(path), folder))
    assert [out.name for _, out, _ in asked] == ["bent", "bent-twice"]
    assert {stages for *_, stages in asked} == {folder / "stages"}
    again = dict(run_board(read_board(path), folder))
    assert len(asked) == 2
    assert again == first
    path.write_text(TEXT.replace("0.6", "0.7"), encoding="utf-8")
    list(run_board(read_board(path), folder))
    assert [out.name for _, out, _ in asked] == ["bent", "bent-twice", "bent-twice"]


def test_results_of_another_version_are_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(monkeypatch)
    board, folder = read_board(path), path.parent / "runs"
    list(run_board(board, folder))
    one = board.systems["bent"]
    assert finished(one, folder / "bent") is not None
    monkeypatch.setattr(module, "__version__", "99")
    assert finished(one, folder / "bent") is None


def test_one_command_gives_the_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = evaluated(monkeypatch)
    page = path.parent / "board.html"
    for _ in range(2):
        told = CliRunner().invoke(app, ["compare", str(path), "-o", str(page), "--force"])
        assert told.exit_code == 0, told.output
    assert len(asked) == 2
    assert (path.parent / "board" / "bent-twice" / "results.json").is_file()
    assert 'id="board-table"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("original: speech\n", "needs the key systems"),
        (TEXT.replace("  bent: {anonymizer: mcadams}\n", ""), "two systems or more"),
        (TEXT.replace("{anonymizer: mcadams}", "mcadams"), "system 'bent' is 'mcadams'"),
        (TEXT.replace("seed: 3", "sede: 3"), r"unknown keys sede.*\(system 'bent twice'\)"),
        (TEXT.replace("original: speech", "seed: 1"), "system 'bent' has no original speech"),
        (TEXT.replace("bent twice:", "bent!:"), "two systems would share the folder 'bent'"),
        (TEXT.replace("{anonymizer: mcadams}", "{}"), r"give either.*\(system 'bent'\)"),
    ],
)
def test_a_board_that_cannot_be_run_says_why(path: Path, text: str, said: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_board(path)


def test_a_name_is_never_a_path() -> None:
    assert slug("../../etc") == "etc"
    assert slug("…") == "system"
