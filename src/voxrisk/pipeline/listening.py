"""Pairs of recordings to listen to, inside the report."""

import base64
import io
from typing import Any

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.pipeline.speech import Speech
from voxrisk.results import AudioPair
from voxrisk.types import require

PAIRS_OF_AUDIO = 6


def audio_pairs(speech: Speech) -> list[AudioPair]:
    """A few pairs to listen to: one utterance each of speakers across the corpus."""
    people: dict[str, int] = {}
    for i, row in enumerate(speech.original):
        people.setdefault(row.speaker, i)
    step = max(len(people) // PAIRS_OF_AUDIO, 1)
    return [
        AudioPair(
            speaker=speech.original[i].speaker,
            utterance=f"U{i:04d}",
            text=speech.original[i].text or "",
            original=_data(speech.original[i]),
            anonymized=_data(speech.anonymized[i]),
        )
        for i in list(people.values())[::step][:PAIRS_OF_AUDIO]
    ]


def _data(row: Utterance) -> str:
    soundfile: Any = require("soundfile", extra="audio")
    packed = io.BytesIO()
    soundfile.write(packed, read_audio(row)[: RATE * 10], RATE, format="FLAC")
    return "data:audio/flac;base64," + base64.b64encode(packed.getvalue()).decode()
