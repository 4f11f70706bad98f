"""Over all attackers, person by person: it is enough to be found by one."""

import pytest

from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.exposure import exposure, renamed
from voxrisk.results import AttackResult, Person
from voxrisk.types import InputError


def attack(name: str, linked: dict[str, float], **more: bool) -> AttackResult:
    people = tuple(Person(speaker=s, linkability=value) for s, value in linked.items())
    return AttackResult(name=name, speakers=people, **more)


ATTACKS = [
    attack("one", {"ann": 0.9, "bob": 0.1, "cy": 0.2}),
    attack("other", {"ann": 0.2, "bob": 0.6, "cy": 0.1}),
    attack("original", {"ann": 1.0, "bob": 1.0, "cy": 1.0}, reference=True),
    attack("broken", {"cy": 1.0}, ranked=False),
]


def test_each_person_counts_by_the_attacker_who_finds_them_best() -> None:
    found = exposure(ATTACKS, risk=0.5)
    assert found is not None
    assert [(p.speaker, p.linkability, p.attacker) for p in found.people] == [
        ("ann", 0.9, "one"), ("bob", 0.6, "other"), ("cy", 0.2, "one"),
    ]  # fmt: skip
    assert found.share.value == pytest.approx(2 / 3)
    assert found.share.interval.high > 2 / 3


def test_the_count_falls_with_the_risk_that_is_asked_about() -> None:
    counts = [exposure(ATTACKS, risk=risk).share.n["above"] for risk in (0.1, 0.5, 0.7, 1.0)]
    assert counts == [3, 2, 1, 0]


def test_names_are_hidden_and_the_order_tells_nothing_of_them() -> None:
    alias = {"ann": "S03", "bob": "S01", "cy": "S02"}
    tied = [attack("one", {"ann": 0.5, "bob": 0.5, "cy": 0.5})]
    found = renamed(exposure(tied, risk=0.5), alias)
    assert [p.speaker for p in found.people] == ["S01", "S02", "S03"]
    assert renamed(None, alias) is None


def test_without_figures_by_person_there_is_nothing_to_say(tmp_path) -> None:
    assert exposure([attack("one", {})], risk=0.5) is None
    with pytest.raises(InputError, match="risk is 0"):
        Evaluation(tmp_path, anonymizer="mcadams", risk=0.0)
