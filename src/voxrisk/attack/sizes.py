"""How large an ECAPA-TDNN is; apart from the network itself, so that recipes need no torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EcapaSize:
    """The numbers that differ between ECAPA-TDNNs.

    Attributes:
        channels: Channels of the first four blocks; the aggregation has three times as many.
        attention: Channels of the attention.
        squeeze: Channels of the squeeze-and-excitation.
        embedding: Length of the speaker vector.
    """

    channels: int
    attention: int = 128
    squeeze: int = 128
    embedding: int = 192


# spane: SpeechBrain's standard size (20.8 M parameters); vpc24: VoicePrivacy 2024 (6.2 M);
# small: for a look on a CPU.
SIZES = {
    "spane": EcapaSize(1024),
    "vpc24": EcapaSize(512),
    "small": EcapaSize(128, attention=64, squeeze=64),
}
