"""Singling out and linkability: which crowd of a run is told."""

from dataclasses import replace

import pytest

from report_sample import sample
from voxrisk.pipeline.criteria.crowd import singling_out
from voxrisk.pipeline.verdict import _headline
from voxrisk.results import AttackResult, Criterion
from voxrisk.types import Estimate, Interval


def at(size: int, value: float, low: float, length: int = 1) -> Estimate:
    span = Interval(low, 2 * value - low, 0.95, "speaker bootstrap")
    told = {"L": length, "N": size}
    return Estimate("singling_out", value, 0.33, {"speaker": 200}, "", span, told)


@pytest.fixture(scope="module")
def attack() -> AttackResult:
    return sample().attacks[0]


def found(attack: AttackResult, *crowd: Estimate) -> Criterion:
    return singling_out([replace(attack, crowd=crowd)])


def test_the_largest_crowd_is_told_where_guessing_is_beaten_in_it(attack: AttackResult) -> None:
    said = found(attack, at(5, 0.6, 0.5), at(20, 0.5, 0.45), at(200, 0.4, 0.36))
    assert said.value is not None
    assert (said.value.size, said.level) == (200, "above chance")
    assert "not shown to beat guessing" not in said.sentence


def test_a_crowd_that_is_too_large_to_show_anything_does_not_hide_a_smaller_one(
    attack: AttackResult,
) -> None:
    """200 simulated people: 54.7 % of 5 and 44 % of 20 were isolated, and the badge was green."""
    crowd = at(5, 0.55, 0.5), at(20, 0.44, 0.41), at(100, 0.37, 0.32), at(200, 0.35, 0.31)
    said = found(attack, *crowd)
    assert said.value is not None
    assert (said.value.size, said.level) == (20, "above chance")
    assert "one of 20 people in 44.0" in said.sentence
    assert "Among 200 people it is not shown to beat guessing (35.0" in said.sentence


def test_one_crowd_of_several_is_luck_and_so_are_two_of_different_lengths(
    attack: AttackResult,
) -> None:
    one = at(5, 0.55, 0.5), at(20, 0.35, 0.3), at(200, 0.35, 0.31)
    other = at(5, 0.35, 0.3, 3), at(20, 0.44, 0.41, 3), at(200, 0.34, 0.3, 3)
    said = found(attack, *one, *other)
    assert said.value is not None
    assert (said.value.size, said.level) == (200, "at chance")


def test_headlines_are_plain() -> None:
    """The strongest attacker "does measurably no worse": that was a riddle."""

    def level(name: str, said: str) -> Criterion:
        value = at(20, 0.5, 0.4) if said != "not assessed" else None
        return Criterion(name=name, level=said, sentence="", value=value)

    both = "singling out", "linkability"
    said = {
        "as original": "No protection was shown: ",
        "above chance": "People can still be recognised better than by guessing.",
        "at chance": "None of the attackers tried recognised people",
        "not assessed": "Whether people can be recognised could not be measured",
    }
    for what, words in said.items():
        assert _headline([level(name, what) for name in both]).startswith(words)
    mixed = _headline([level(both[0], "as original"), level(both[1], "at chance")])
    assert mixed.startswith("People can still be recognised: in singling out, the strongest")
