"""How far a run is, what is left of it, and what a dry run says beforehand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.pipeline import course
from voxrisk.pipeline.course import COSTS, Cost, Course, Step
from voxrisk.pipeline.dry_run import Outlook
from voxrisk.pipeline.stages import VERSIONS
from voxrisk.store import Took


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "cores", lambda: 1)
    monkeypatch.setattr(course, "COSTS", {("a", ""): Cost(0.0, 1.0), ("b", ""): Cost(0.0, 2.0)})


STEPS = (Step("a", "", 100.0), Step("b", "", 150.0))  # 100 s and 300 s


def test_share_and_rest_follow_the_pace_of_the_run() -> None:
    """The first quarter took twice as long as expected, and so will the rest, nearly."""
    run = Course(STEPS)
    said = run.passed(Took("a", "", seconds=200.0, speech_seconds=100.0))
    assert said == "done in 3 min; 25 % of the run, about 8 min left"
    assert 300.0 < run.left < 600.0


def test_what_was_finished_before_is_not_part_of_the_run() -> None:
    run = Course(STEPS)
    assert run.passed(Took("a", "", speech_seconds=100.0, reused=True)) == "finished before"
    assert run.beforehand == 300.0
    assert run.passed(Took("b", "", seconds=300.0, speech_seconds=75.0)).startswith(
        "done in 5 min; 50 %"
    )


def test_a_run_without_expectations_tells_its_time_alone() -> None:
    """Else it would be told as nearly done, whatever is left."""
    assert Course().passed(Took("a", "", seconds=3.0, speech_seconds=99.0)) == "done in 3 s"


@given(st.lists(st.tuples(st.sampled_from("abz"), st.floats(0, 1e4), st.booleans()), max_size=8))
def test_no_run_is_ever_more_than_done(rows: list[tuple[str, float, bool]]) -> None:
    run = Course(STEPS)
    for stage, seconds, reused in rows:
        said = run.passed(Took(stage, "", seconds, speech_seconds=seconds, reused=reused))
        assert "100 %" not in said
        assert run.left >= 0.0


def test_every_stage_has_a_cost() -> None:
    """A stage without one would be told as nothing, and what is left as less than it is."""
    assert set(VERSIONS) <= {stage for stage, _ in COSTS}


def test_an_outlook_lists_what_is_finished_and_what_is_left() -> None:
    said = Outlook((Took("check", "original speech", reused=True),), (Step("b", "", 60.0, "x"),))
    lines = said.text().splitlines()
    assert lines[0].split() == ["finished", "check", "original", "speech"]
    assert lines[1].split() == ["2", "min", "b", "x"]
    assert lines[2].startswith("About 2 min on ")
