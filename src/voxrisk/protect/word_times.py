"""Which aligner tells when words are said: the embedded one for English, a recogniser for the rest.

The embedded aligner has an English dictionary. Of another language it finds the few words that look
English, and cuts at these say nothing. So speech that is declared to be another language is
refused, and an utterance of which hardly any word was found is not passed off as aligned.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE, read_audio
from voxrisk.corpus.table import Utterance
from voxrisk.hearing import UNSPACED, check_language, language_code, language_name, recogniser_paths
from voxrisk.hearing.faster import word_times
from voxrisk.protect.aligner import align
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError, require

LEAST = 0.5  # share of the words of an utterance that must have times
TIMED = ("whisper-tiny.en", "whisper-base")  # recognisers that tell times


def check_aligner(rows: Sequence[Utterance], asr: str | None, language: str | None) -> None:
    """Refuse, before anything is done, speech that the aligner does not know.

    Raises:
        InputError: If it does not, or the recogniser gives no times.
        MissingExtraError: If the embedded aligner is needed and not installed.
    """
    spoken = {language_code(language or row.language or "en") for row in rows if row.text}
    if asr is None:
        if foreign := sorted(spoken - {"en"}):
            raise InputError(
                f"the embedded aligner knows English only, not {language_name(foreign[0])}; take "
                "the times from a recogniser (--asr whisper-base), or align with another tool "
                "(e.g. MFA) and give its files with --alignment, or cut at fixed times (--fixed)"
            )
        if spoken:
            require("pocketsphinx", extra="align")
        return
    for code in sorted(spoken):
        check_language(asr, code)
    if asr not in TIMED and not Path(asr).is_dir():
        raise InputError(f"the recogniser {asr} tells no times of words; take {' or '.join(TIMED)}")
    recogniser_paths(asr)  # fetched here, not by every worker


def align_row(
    row: Utterance,
    samples: NDArray[np.float32],
    *,
    asr: str | None = None,
    language: str | None = None,
) -> list[Word]:
    """Times of each word of an utterance's text in ``samples`` at 16 kHz; no words without a text.

    A language that is written without spaces has a time for each character.
    """
    if not row.text:
        return []
    code = language_code(language or row.language or "en")
    if asr is None:
        return align(samples, row.text, language=code)
    tokens = list("".join(row.text.split())) if code in UNSPACED else row.text.split()
    words = [token for token in tokens if any(c.isalnum() for c in token)]
    found = word_times(Path(recogniser_paths(asr)[0]), samples, words, code)
    return [Word(word, *(time or (None, None))) for word, time in zip(words, found, strict=True)]


def align_with(asr: str | None, language: str | None, row: Utterance) -> list[Word]:
    """The same of the utterance's own audio."""
    return align_row(row, read_audio(row, rate=RATE), asr=asr, language=language)


def hardly_aligned(words: Sequence[Word]) -> bool:
    """Whether so few words have times that cuts between them would say nothing.

    >>> hardly_aligned([Word("selamat"), Word("malam"), Word("kami", 0.1, 0.4)])
    True
    """
    return sum(word.start is not None for word in words) < LEAST * len(words)
