"""What to do next follows from the figures: change the figures, and the steps change."""

from dataclasses import replace

import pytest

from report_sample import sample
from voxrisk.pipeline.advice import MOST, next_steps
from voxrisk.report import words
from voxrisk.results import Control, Criterion, Results, Training, Verdict
from voxrisk.types import Estimate, Interval


@pytest.fixture(scope="module")
def results() -> Results:
    return sample()


LEARNED = Training(speakers=40, utterances=400, targets=None, ver_source=0.2, ver_target=None)


def codes(results: Results) -> list[str]:
    return [step.code for step in next_steps(results)]


def levels(results: Results, level: str) -> Results:
    assert results.verdict is not None
    told = tuple(replace(c, level=level) if c.assessed else c for c in results.verdict.criteria)
    return replace(results, verdict=Verdict(headline="", criteria=told))


def test_three_steps_at_most_and_none_twice(results: Results) -> None:
    found = codes(results)
    assert 0 < len(found) <= MOST
    assert len(set(found)) == len(found)


def test_a_failed_control_comes_first(results: Results) -> None:
    failed = Control(
        code="positive", question="Does it work?", expected="yes", found="it does not", passed=False
    )
    steps = next_steps(replace(results, controls=(failed, *results.controls)))
    assert steps[0].code == "next_mend"
    assert "Does it work? This test gave: it does not" in steps[0].text


def test_a_recogniser_that_does_not_know_the_speech_asks_for_its_language(results: Results) -> None:
    """It voids what is said of words; that the whole test must be mended would be false."""
    failed = Control(code="transcripts", question="?", expected="", found="131 %", passed=False)
    steps = codes(replace(results, controls=(failed,)))
    assert steps[0] == "next_language"
    assert "next_mend" not in steps


def test_without_a_trained_attacker_one_is_asked_for(results: Results) -> None:
    trained = tuple(replace(a, training=LEARNED) for a in results.attacks)
    assert "next_train" in codes(results)
    assert "next_train" not in codes(replace(results, attacks=trained))


def test_no_protection_and_no_success_call_for_different_steps(results: Results) -> None:
    sound = replace(results, controls=())
    assert "next_replace" in codes(levels(sound, "as original"))
    quiet = replace(
        levels(sound, "at chance"),
        attacks=tuple(replace(a, training=LEARNED) for a in sound.attacks),
        corpus=replace(sound.corpus, speakers=200) if sound.corpus else None,
        utility=None,
    )
    assert codes(quiet) == ["next_stronger"]


def linked(results: Results, one: float, many: float) -> Results:
    """The strongest attacker links so well from one utterance and from many."""
    assert results.verdict is not None
    c = results.verdict["linkability"]
    worst = results.attackers[c.attacker or ""]
    crowd = []
    for e in worst.crowd:
        if e.name == "linkability":
            value = one if e.length == 1 else many
            e = replace(e, value=value, interval=Interval(value - 0.02, value + 0.02, 0.95, "test"))
        crowd.append(e)
    attacks = tuple(
        replace(a, crowd=tuple(crowd)) if a.name == worst.name else a for a in results.attacks
    )
    return levels(replace(results, attacks=attacks, controls=()), "above chance")


def test_less_speech_is_advised_only_where_it_helps(results: Results) -> None:
    assert "next_shorten" in codes(linked(results, 0.2, 0.9))
    assert "next_shorten" not in codes(linked(results, 0.9, 0.9))
    step = next(s for s in next_steps(linked(results, 0.2, 0.9)) if s.code == "next_shorten")
    assert "20\u00a0%" in step.text
    assert "90\u00a0%" in step.text


def criterion(value: float) -> Criterion:
    def estimate(x: float) -> Estimate:
        return Estimate("linkability", x, 0.1, {}, "a test", Interval(x, x, 0.95, "test"), {})

    return Criterion(
        name="linkability", level="above chance", sentence="", attacker="informed",
        value=estimate(value), original=estimate(0.9),
    )  # fmt: skip


def test_degrees_tell_22_from_88_percent() -> None:
    assert words.badge(criterion(0.22)) == (1, "A little better than guessing")
    assert words.badge(criterion(0.5)) == (2, "Clearly better than guessing")
    assert words.badge(criterion(0.88)) == (3, "Close to no protection")
    assert words.badge(replace(criterion(0.5), original=None)) == (0, "Better than guessing")
