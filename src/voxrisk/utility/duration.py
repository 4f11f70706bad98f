"""Duration change: did the speech become longer or shorter?"""

from collections.abc import Sequence
from typing import Any

from voxrisk.corpus import Utterance
from voxrisk.types import InputError, require

SOURCE = "mean of |anonymized / original − 1| over utterances"


def seconds(row: Utterance) -> float:
    """How long an utterance lasts, by its audio file and not by what a table says."""
    soundfile: Any = require("soundfile", extra="utility")
    try:
        info = soundfile.info(row.path)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"{row.path}: cannot be read as audio ({error})") from error
    total = info.frames / info.samplerate
    length = float(min(total, row.end or total) - (row.start or 0.0))
    if length <= 0:
        raise InputError(f"{row.path}: utterance {row.utterance} holds no samples")
    return length


def duration_changes(original: Sequence[Utterance], anonymized: Sequence[Utterance]) -> list[float]:
    """Relative change of each pair: 0.1 is 10 % longer, −0.1 is 10 % shorter."""
    return [seconds(b) / seconds(a) - 1.0 for a, b in zip(original, anonymized, strict=True)]
