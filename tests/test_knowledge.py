"""Attackers as data: the names of paper 1 beside those of VoicePrivacy."""

from dataclasses import fields

import pytest

from voxrisk.knowledge import ATTACKERS, NOWHERE, attacker
from voxrisk.report.svg import key
from voxrisk.results import AttackResult
from voxrisk.types import InputError


def test_each_attacker_says_what_trains_it_and_what_it_enrols() -> None:
    found = {name: (k.trains_on, k.enrols, k.tests) for name, k in ATTACKERS.items()}
    assert found == {
        "original": ("original", "original", "original"),
        "ignorant": ("original", "original", "anonymized"),
        "lazy-informed": ("original", "anonymized", "anonymized"),
        "semi-informed": ("similar", "anonymized", "anonymized"),
        "informed": ("anonymized", "anonymized", "anonymized"),
        "informed + erasing": ("anonymized", "anonymized", "anonymized"),
        "informed + adversarial": ("anonymized", "anonymized", "anonymized"),
        "informed + suite": ("anonymized", "anonymized", "anonymized"),
    }
    assert {k.name: k.unlearns for k in ATTACKERS.values() if k.unlearns} == {
        "informed + erasing": "erase",
        "informed + adversarial": "reverse",
    }
    assert [k.name for k in ATTACKERS.values() if k.reference] == ["original"]
    assert [k.name for k in ATTACKERS.values() if k.trained] == [
        "semi-informed",
        "informed",
        "informed + erasing",
        "informed + adversarial",
        "informed + suite",
    ]
    assert [k.name for k in ATTACKERS.values() if k.chooses] == ["informed + suite"]


def test_each_attacker_needs_what_it_trains_on_and_unlearns() -> None:
    for k in ATTACKERS.values():
        expected = {
            "train": k.trained,
            "anonymizer": k.trains_on == "anonymized",
            "similar": k.trains_on == "similar",
            "targets": k.unlearns is not None,
        }
        assert set(k.needs) == {need for need, wanted in expected.items() if wanted}, k.name


def test_names_clash_and_stand_beside_ours() -> None:
    """Paper 1, Section 3.2: our informed attacker is VoicePrivacy's semi-informed one.

    Paper 1 anonymizes all speech, so its ignorant attacker is VoicePrivacy's lazy-informed one,
    and VoicePrivacy's ignorant attacker, who enrols original speech, is not in it.
    """
    assert attacker("informed").voiceprivacy.startswith("semi-informed")
    assert attacker("informed").paper1 == "informed"
    assert attacker("semi-informed").voiceprivacy == NOWHERE
    assert attacker("semi-informed").paper1 == "semi-informed"
    assert attacker("lazy-informed").pair == "a-a"
    assert attacker("lazy-informed").paper1 == "ignorant"
    assert attacker("ignorant").pair == "o-a"
    assert attacker("ignorant").paper1 == NOWHERE
    for k in ATTACKERS.values():
        if "(" in k.voiceprivacy:
            assert f"({k.pair})" in k.voiceprivacy


def test_attackers_can_be_told_apart_in_every_figure() -> None:
    for look in ("colour", "mark", "slug", "knows"):
        assert len({getattr(k, look) for k in ATTACKERS.values()}) == len(ATTACKERS), look
    assert len({key("#000000", k.mark) for k in ATTACKERS.values()}) == len(ATTACKERS)


def test_results_can_hold_all_that_a_report_says_of_an_attacker() -> None:
    shown = {"name", "voiceprivacy", "paper1", "knows", "enrols", "tests", "colour", "mark"}
    assert shown <= {f.name for f in fields(AttackResult)}


def test_an_unknown_attacker_is_refused() -> None:
    with pytest.raises(InputError, match="no attacker 'omniscient'; known are original"):
        attacker("omniscient")
