"""Attackers as data: the names of paper 1 beside those of VoicePrivacy."""

import pytest

from voxrisk.attack.knowledge import ATTACKERS, attacker
from voxrisk.types import InputError


def test_each_attacker_says_what_trains_it_and_what_it_enrols() -> None:
    found = {name: (k.trains_on, k.enrolls, k.trial) for name, k in ATTACKERS.items()}
    assert found == {
        "original": ("original", "original", "original"),
        "ignorant": ("original", "original", "anonymized"),
        "lazy-informed": ("original", "anonymized", "anonymized"),
        "semi-informed": ("similar", "anonymized", "anonymized"),
        "informed": ("anonymized", "anonymized", "anonymized"),
        "informed + adversarial": ("anonymized", "anonymized", "anonymized"),
    }
    assert [k.name for k in ATTACKERS.values() if k.adversarial] == ["informed + adversarial"]
    assert [k.name for k in ATTACKERS.values() if k.trained] == [
        "semi-informed",
        "informed",
        "informed + adversarial",
    ]


def test_voiceprivacy_names_clash_and_stand_beside_ours() -> None:
    """Paper 1, Section 3.2: our informed attacker is VoicePrivacy's semi-informed one."""
    assert attacker("informed").voiceprivacy.startswith("semi-informed")
    assert attacker("semi-informed").voiceprivacy == "no equivalent"
    assert attacker("lazy-informed").pair == "a-a"
    assert attacker("ignorant").pair == "o-a"


def test_an_unknown_attacker_is_refused() -> None:
    with pytest.raises(InputError, match="no attacker 'omniscient'; known are original"):
        attacker("omniscient")
