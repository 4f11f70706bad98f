"""When is each word of a known English text said? Forced alignment with an embedded model.

pocketsphinx ships its acoustic model and dictionary, so nothing is downloaded. The text becomes a
chain of words, with optional silence between them, and Viterbi finds the times. A word that is not
in the dictionary gets no times: they are not guessed. In its place the chain allows any phones, so
that its neighbours still fall where they belong; they are a little less sure than the rest
(docs/slicing.md has the figures). A wrong transcript is not noticed: a forced aligner aligns it.
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE, read_audio
from voxrisk.corpus.table import Utterance
from voxrisk.hearing.forced import find_words, spelling
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError


def align(samples: NDArray[np.float32], text: str, *, language: str | None = None) -> list[Word]:
    """Times of each word of ``text`` in ``samples`` ``(n,)`` at 16 kHz.

    Words of the text are what stands between spaces; punctuation around a word does not matter.

    Returns:
        One :class:`Word` for each, in order; without times where the word is not in the
        dictionary, and for all of them if the text cannot be found in the sound at all.

    Raises:
        InputError: If the language is not English.
    """
    if language and not language.lower().startswith("en"):
        raise InputError(
            f"the embedded aligner knows English only, not {language!r}; align with another tool "
            "(e.g. MFA) and give its files with --alignment"
        )
    words = [token for token in text.split() if spelling(token)]
    found = find_words(samples, words) if words else None
    if found is None:
        return [Word(word) for word in words]
    last = len(samples) / RATE
    return [
        Word(word, min(time[0], last), min(time[1], last)) if time else Word(word)
        for word, time in zip(words, found, strict=True)
    ]


def align_utterance(row: Utterance) -> list[Word]:
    """Times of each word of an utterance's text; no words where it has no text."""
    if not row.text:
        return []
    return align(read_audio(row, rate=RATE), row.text, language=row.language)
