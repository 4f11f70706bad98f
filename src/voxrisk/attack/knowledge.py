"""What an attacker knows, as data: which speech trains the encoder and which speech is enrolled.

The trial is always speech as published: anonymized, except for the first row, the baseline without
any protection. VoicePrivacy names an evaluation by two letters, enrolment and trial, each ``o``
(original) or ``a`` (anonymized); its 2024 challenge calls its only attacker semi-informed although
it knows the anonymizer completely, which is why our names and theirs stand side by side.
"""

from dataclasses import dataclass
from enum import StrEnum

from voxrisk.types import InputError


class Speech(StrEnum):
    """Which speech."""

    original = "original"
    anonymized = "anonymized"


class Selection(StrEnum):
    """How the anonymizer chose targets for the attacker's own speech."""

    none = "none"
    own = "another seed, per speaker"
    utterance = "another seed, a new target for each utterance"
    same = "the very targets of the defender"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """One attacker.

    Attributes:
        name: Ours.
        voiceprivacy: The name in the VoicePrivacy challenges.
        trains_on: Speech that trains the encoder.
        enrolls: Speech that is enrolled.
        trial: Speech that is attacked.
        training_targets: Target selection in the training speech.
        enroll_targets: Target selection in the enrolment speech.
        adversarial: Whether the encoder unlearns the targets (paper 3).
        meaning: In one sentence.
    """

    name: str
    voiceprivacy: str
    trains_on: Speech
    enrolls: Speech
    trial: Speech = Speech.anonymized
    training_targets: Selection = Selection.none
    enroll_targets: Selection = Selection.none
    adversarial: bool = False
    meaning: str

    @property
    def pair(self) -> str:
        """VoicePrivacy's two letters: enrolment, trial."""
        return f"{self.enrolls[0]}-{self.trial[0]}"


ATTACKERS = {
    attacker.name: attacker
    for attacker in (
        Knowledge(
            name="original",
            voiceprivacy="unprotected (o-o)",
            trains_on=Speech.original,
            enrolls=Speech.original,
            trial=Speech.original,
            meaning="Nothing is anonymized: how well speakers are recognised without protection.",
        ),
        Knowledge(
            name="ignorant",
            voiceprivacy="ignorant (o-a, VPC 2020 and 2022)",
            trains_on=Speech.original,
            enrolls=Speech.original,
            meaning="Does not know that the speech was anonymized.",
        ),
        Knowledge(
            name="lazy-informed",
            voiceprivacy="lazy-informed (a-a, encoder of original speech, VPC 2020 and 2022)",
            trains_on=Speech.original,
            enrolls=Speech.anonymized,
            enroll_targets=Selection.own,
            meaning="Anonymizes the enrolment too, but keeps an encoder of original speech.",
        ),
        Knowledge(
            name="semi-informed",
            voiceprivacy="semi-informed (a-a, retrained encoder, VPC 2020 to 2024)",
            trains_on=Speech.anonymized,
            enrolls=Speech.anonymized,
            training_targets=Selection.utterance,
            enroll_targets=Selection.utterance,
            meaning="Has the anonymizer and trains on its output; does not know the targets.",
        ),
        Knowledge(
            name="informed",
            voiceprivacy="informed (a-a with known targets; not part of the challenges)",
            trains_on=Speech.anonymized,
            enrolls=Speech.anonymized,
            training_targets=Selection.utterance,
            enroll_targets=Selection.same,
            meaning="Also knows which target each speaker got, and enrols with the same targets.",
        ),
        Knowledge(
            name="informed + adversarial",
            voiceprivacy="semi-informed with an adversarial target classifier (paper 3)",
            trains_on=Speech.anonymized,
            enrolls=Speech.anonymized,
            training_targets=Selection.utterance,
            enroll_targets=Selection.utterance,
            adversarial=True,
            meaning="Knows the targets of its training speech and unlearns them.",
        ),
    )
}


def attacker(name: str) -> Knowledge:
    """An attacker by name.

    >>> attacker("lazy-informed").pair
    'a-a'
    """
    if name not in ATTACKERS:
        raise InputError(f"no attacker {name!r}; known are {', '.join(ATTACKERS)}")
    return ATTACKERS[name]
