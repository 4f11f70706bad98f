"""Duration change: did the speech become longer or shorter?"""

from collections.abc import Sequence

from voxrisk.corpus import Utterance
from voxrisk.corpus.audio import audio_seconds
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import Measured, Pairs

SOURCE = "mean of anonymized / original − 1 over utterances"


def measure_duration(pairs: Pairs) -> Measured:
    """The mean change of duration."""
    changes = duration_changes(pairs.original, pairs.anonymized)
    estimate = ratio_estimate(
        "duration_change",
        changes,
        pairs.speakers,
        chance=0.0,
        source=SOURCE,
        **pairs.draw,
    )
    return {"duration_change": {"anonymized": estimate}}, {"duration_change": changes}


def duration_changes(original: Sequence[Utterance], anonymized: Sequence[Utterance]) -> list[float]:
    """Relative change of each pair: 0.1 is 10 % longer, −0.1 is 10 % shorter."""
    return [
        audio_seconds(after) / audio_seconds(before) - 1.0
        for before, after in zip(original, anonymized, strict=True)
    ]
