"""Whisper through faster-whisper (CTranslate2, int8): words, and when they are said."""

import functools
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.hearing.recognisers import Hear
from voxrisk.types import require

WINDOW = 30.0  # seconds Whisper hears at once


@functools.lru_cache(maxsize=1)
def _model(folder: Path) -> Any:
    whisper: Any = require("faster_whisper", extra="utility")
    return whisper.WhisperModel(
        str(folder), device="cpu", compute_type="int8", cpu_threads=1, num_workers=1
    )


def open_whisper(folder: Path) -> Hear:
    """See :data:`voxrisk.hearing.recognisers.Hear`."""
    return functools.partial(_hear, _model(folder))


def most_tokens(seconds: float) -> int:
    """On damaged speech Whisper can repeat itself for ever. Nobody says ten tokens in a second."""
    return 10 + int(10 * min(seconds, WINDOW))


def _hear(model: Any, speech: Sequence[NDArray[np.float32]], language: str) -> list[str]:
    return [_hear_one(model, samples, language) for samples in speech]


def _hear_one(model: Any, samples: NDArray[np.float32], language: str) -> str:
    seconds = len(samples) / RATE
    segments, _ = model.transcribe(
        samples,
        language=language,
        beam_size=1,
        temperature=0.0,
        condition_on_previous_text=False,
        # Times cost errors; only speech longer than one window needs them to go on where it was.
        without_timestamps=seconds <= WINDOW,
        max_new_tokens=most_tokens(seconds),
    )
    return " ".join(segment.text.strip() for segment in segments).strip()


def word_times(
    folder: Path, samples: NDArray[np.float32], words: Sequence[str], language: str
) -> list[tuple[float, float] | None]:
    """When each of some known words is said, by the attention of Whisper's decoder.

    The decoder is made to say the words, and dynamic time warping of its attention to the sound
    (Whisper's own way to word times) gives the frames. No words are guessed: a text that does not
    fit in one window of 30 s, or that the alignment gives no span, has no times.
    """
    from faster_whisper.audio import pad_or_trim
    from faster_whisper.tokenizer import Tokenizer

    nothing: list[tuple[float, float] | None] = [None] * len(words)
    model = _model(folder)
    seconds = len(samples) / RATE
    if not words or seconds > WINDOW:
        return nothing
    tokenizer = Tokenizer(model.hf_tokenizer, True, task="transcribe", language=language)
    pieces = [tokenizer.encode(f" {word}") for word in words]
    tokens = [token for piece in pieces for token in piece]
    if len(tokens) > model.max_length // 2:
        return nothing
    features = model.feature_extractor(samples)
    frames = features.shape[-1] - 1
    encoded = model.encode(pad_or_trim(features))
    (found,) = model.model.align(encoded, tokenizer.sot_sequence, [tokens], frames)
    pairs = np.asarray(found.alignments)
    first = np.pad(np.diff(pairs[:, 0]), (1, 0), constant_values=1).astype(bool)
    jumps = pairs[first, 1] / model.tokens_per_second
    edges = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    times = [(float(jumps[a]), float(jumps[b])) for a, b in pairwise(edges)]
    last = len(samples) / RATE
    return [
        (min(start, last), min(end, last)) if min(end, last) > min(start, last) else None
        for start, end in times
    ]
