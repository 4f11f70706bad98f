"""The attackers, as the literature orders them by what they know."""

import pytest

from voxrisk.attack.knowledge import ATTACKERS, Selection, Speech, attacker
from voxrisk.types import InputError


def test_pairs_of_voiceprivacy():
    """VoicePrivacy 2020 evaluation plan: o-o unprotected, o-a ignorant, a-a informed."""
    pairs = {name: a.pair for name, a in ATTACKERS.items()}
    assert list(pairs.values()) == ["o-o", "o-a", "a-a", "a-a", "a-a", "a-a"]


def test_only_who_has_anonymized_speech_has_targets():
    for a in ATTACKERS.values():
        assert (a.training_targets is Selection.none) == (a.trains_on is Speech.original)
        assert (a.enroll_targets is Selection.none) == (a.enrolls is Speech.original)
        assert not a.adversarial or a.training_targets is Selection.utterance


def test_unknown_attackers_are_refused():
    with pytest.raises(InputError, match="no attacker 'clever'; known are original"):
        attacker("clever")
