"""What an attacker knows, as data: which speech trains, enrols and is tried, and what it needs.

Three traditions use the same words for different attackers, so every row says what the attacker is
called elsewhere:

* paper 1 (Vauquier et al. 2025, the legal framework) anonymizes all speech, enrolled and tried; its
  attackers differ in what trained the extractor. Its *ignorant* attacker is *lazy-informed* here.
* VoicePrivacy: its *ignorant* attacker enrols original speech (o-a) and is not in paper 1; its
  *semi-informed* one has the very anonymizer and is *informed* here and in paper 1.
* paper 3 (Franzreb et al. 2025) makes the informed attacker blind to target voices by a reversed
  gradient.

What is tried is always the published speech; only the reference tries original speech.
"""

from dataclasses import dataclass
from typing import Literal

from voxrisk.types import InputError

NOWHERE = "no equivalent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """One attacker.

    Attributes:
        name: Ours.
        voiceprivacy: The name in the VoicePrivacy challenges.
        paper1: The name in the legal framework.
        trains_on: Speech that trains the recogniser: ``"original"`` (as it comes), ``"similar"``
            (another anonymizer of the same kind) or ``"anonymized"`` (the very anonymizer).
        enrols: Speech that is enrolled, ``"original"`` or ``"anonymized"``.
        tests: Speech that is attacked; ``"original"`` for the reference only.
        unlearns: How the recogniser unlearns target voices: ``"erase"`` (linear erasure),
            ``"reverse"`` (against a head that tells them, after paper 3) or None.
        chooses: Whether it tries many recognisers and chooses on its training speakers.
        needs: Inputs without which it cannot run, of ``"train"``, ``"anonymizer"``, ``"similar"``
            and ``"targets"``.
        knows: In one sentence.
        colour: In every figure.
        mark: In every figure.
    """

    name: str
    voiceprivacy: str
    paper1: str
    trains_on: str
    enrols: str
    tests: str = "anonymized"
    unlearns: Literal["erase", "reverse"] | None = None
    chooses: bool = False
    needs: tuple[str, ...] = ()
    knows: str
    colour: str
    mark: str

    @property
    def pair(self) -> str:
        """VoicePrivacy's two letters: enrolment and trial, original or anonymized."""
        return f"{self.enrols[0]}-{self.tests[0]}"

    @property
    def trained(self) -> bool:
        """Whether a recogniser must be trained for this attacker."""
        return self.trains_on != "original"

    @property
    def reference(self) -> bool:
        """Whether it attacks speech as it was."""
        return self.tests == "original"

    @property
    def slug(self) -> str:
        """The name as it stands in file names."""
        return self.name.replace(" + ", "-").replace(" ", "-")


ATTACKERS = {
    attacker.name: attacker
    for attacker in (
        Knowledge(
            name="original",
            voiceprivacy="unprotected, o-o",
            paper1="original",
            trains_on="original",
            enrols="original",
            tests="original",
            knows="Has the speech as it was before protection: the reference.",
            colour="#1b1f24",
            mark="circle",
        ),
        Knowledge(
            name="ignorant",
            voiceprivacy="ignorant, o-a",
            paper1=NOWHERE,
            trains_on="original",
            enrols="original",
            knows="Does not know that the speech was anonymized, and enrols original speech.",
            colour="#009e73",
            mark="diamond",
        ),
        Knowledge(
            name="lazy-informed",
            voiceprivacy="lazy-informed, a-a",
            paper1="ignorant",
            trains_on="original",
            enrols="anonymized",
            knows="Anonymizes the enrolled speech too, but keeps a model of original speech.",
            colour="#cc79a7",
            mark="cross",
        ),
        Knowledge(
            name="semi-informed",
            voiceprivacy=NOWHERE,
            paper1="semi-informed",
            trains_on="similar",
            enrols="anonymized",
            needs=("train", "similar"),
            knows="Knows that speech was anonymized and trains on a similar anonymizer's output.",
            colour="#0072b2",
            mark="triangle",
        ),
        Knowledge(
            name="informed",
            voiceprivacy="semi-informed, a-a",
            paper1="informed",
            trains_on="anonymized",
            enrols="anonymized",
            needs=("train", "anonymizer"),
            knows="Has the very anonymizer and trains a recogniser on its output.",
            colour="#d55e00",
            mark="square",
        ),
        Knowledge(
            name="informed + erasing",
            voiceprivacy="semi-informed, a-a, targets erased",
            paper1="informed, targets erased",
            trains_on="anonymized",
            enrols="anonymized",
            unlearns="erase",
            needs=("train", "anonymizer", "targets"),
            knows="Is informed, and first removes from the vectors all that a linear classifier "
            "can tell about the target voices.",
            colour="#8b5e00",
            mark="down",
        ),
        Knowledge(
            name="informed + adversarial",
            voiceprivacy="semi-informed, a-a, targets unlearned",
            paper1="informed, targets unlearned",
            trains_on="anonymized",
            enrols="anonymized",
            unlearns="reverse",
            needs=("train", "anonymizer", "targets"),
            knows="Is informed, and unlearns the target voices against a head that tells them "
            "(after paper 3).",
            colour="#5b21b6",
            mark="star",
        ),
        Knowledge(
            name="informed + suite",
            voiceprivacy="semi-informed, a-a, strongest of a suite",
            paper1="informed, strongest of a suite",
            trains_on="anonymized",
            enrols="anonymized",
            chooses=True,
            needs=("train", "anonymizer"),
            knows="Is informed, and tries every encoder and back end of the suite; which to trust, "
            "and how much, it decides on its training speakers alone.",
            colour="#b30059",
            mark="pentagon",
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
