"""Whisper through faster-whisper (CTranslate2): what a machine hears in samples, as it writes it.

int8, one thread, greedy, no sampling: the same samples always give the same words.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import require

RATE = 16_000
WINDOW = 30.0  # seconds Whisper hears at once


@functools.lru_cache(maxsize=1)
def open_whisper(folder: str | Path) -> Any:
    """The recogniser of a folder, kept for the next utterance."""
    whisper: Any = require("faster_whisper", extra="utility")
    return whisper.WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=1, num_workers=1
    )


def hear(model: Any, samples: NDArray[np.float32], *, language: str = "en") -> str:
    """The words in ``samples (n,)`` at 16 kHz; empty where nothing was understood."""
    seconds = len(samples) / RATE
    segments, _ = model.transcribe(
        samples,
        language=language,
        beam_size=1,
        temperature=0.0,
        condition_on_previous_text=False,
        # Times cost errors; only speech longer than one window needs them to go on where it was.
        without_timestamps=seconds <= WINDOW,
        # On damaged speech Whisper can repeat itself for ever. Nobody says ten tokens in a second.
        max_new_tokens=10 + int(10 * min(seconds, WINDOW)),
    )
    return " ".join(segment.text.strip() for segment in segments).strip()
