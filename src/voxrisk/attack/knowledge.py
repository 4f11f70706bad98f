"""What an attacker knows, as data: which speech trains the encoder and which speech is enrolled.

The names follow paper 1 (Vauquier et al. 2025). VoicePrivacy uses some of the same words for other
things: what it calls semi-informed has the very anonymizer and is *informed* here. So both names
always stand side by side.
"""

from dataclasses import dataclass

from voxrisk.types import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """One attacker.

    Attributes:
        name: Ours.
        voiceprivacy: The name in the VoicePrivacy challenges.
        trains_on: Speech that trains the encoder: ``"original"``, ``"similar"`` (another anonymizer
            of the same kind) or ``"anonymized"`` (the very anonymizer).
        enrolls: Speech that is enrolled, ``"original"`` or ``"anonymized"``.
        trial: Speech that is attacked; ``"original"`` for the reference only.
        adversarial: Whether the encoder unlearns the targets of its training speech (paper 3).
        knows: In one sentence.
    """

    name: str
    voiceprivacy: str
    trains_on: str
    enrolls: str
    trial: str = "anonymized"
    adversarial: bool = False
    knows: str

    @property
    def pair(self) -> str:
        """VoicePrivacy's two letters: enrolment and trial, original or anonymized."""
        return f"{self.enrolls[0]}-{self.trial[0]}"

    @property
    def trained(self) -> bool:
        """Whether an encoder must be trained for this attacker."""
        return self.trains_on != "original"


ATTACKERS = {
    attacker.name: attacker
    for attacker in (
        Knowledge(
            name="original",
            voiceprivacy="unprotected (o-o)",
            trains_on="original",
            enrolls="original",
            trial="original",
            knows="Has the speech as it was before protection: the reference.",
        ),
        Knowledge(
            name="ignorant",
            voiceprivacy="ignorant (o-a)",
            trains_on="original",
            enrolls="original",
            knows="Does not know that the speech was anonymized.",
        ),
        Knowledge(
            name="lazy-informed",
            voiceprivacy="lazy-informed (a-a)",
            trains_on="original",
            enrolls="anonymized",
            knows="Anonymizes the enrolled speech too, but keeps a model of original speech.",
        ),
        Knowledge(
            name="semi-informed",
            voiceprivacy="no equivalent",
            trains_on="similar",
            enrolls="anonymized",
            knows="Knows that speech was anonymized and trains on a similar anonymizer's output.",
        ),
        Knowledge(
            name="informed",
            voiceprivacy="semi-informed (a-a)",
            trains_on="anonymized",
            enrolls="anonymized",
            knows="Has the very anonymizer and trains a recogniser on its output.",
        ),
        Knowledge(
            name="informed + adversarial",
            voiceprivacy="semi-informed (a-a), targets unlearned",
            trains_on="anonymized",
            enrolls="anonymized",
            adversarial=True,
            knows="Is informed, and makes its recogniser blind to the target voices.",
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
