"""When is each word of a known English text said? Forced alignment with an embedded model.

pocketsphinx ships its acoustic model and dictionary, so nothing is downloaded. The text becomes a
chain of words, with optional silence between them, and Viterbi finds the times. A word that is not
in the dictionary gets no times: they are not guessed. In its place the chain allows any phones, so
that its neighbours still fall where they belong; they are a little less sure than the rest
(docs/slicing.md has the figures). A wrong transcript is not noticed: a forced aligner aligns it.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE, read_audio
from voxrisk.corpus.table import Utterance
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError, require

FRAME_SECONDS = 0.01
PHONES = re.findall(
    r"\w+",
    "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW "
    "V W Y Z ZH",
)
# How much a free phone costs against a word of the text. Chosen on LibriSpeech with known words
# declared unknown: between 1 and 1e-5 it hardly matters, at 1 the loop swallows more neighbours.
FREE_PHONE = 1e-3
# A pause between two words is as likely as none. pocketsphinx's own 0.005 hides pauses in the words
# beside them: on LibriSpeech it misses 28 of 364 long ones, this value 6 (docs/slicing.md).
PAUSE = 0.5
BEAMS = ((), (("beam", 1e-120), ("pbeam", 1e-120), ("wbeam", 1e-100)))


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
    words = [token for token in text.split() if _spelling(token)]
    if not words:
        return []
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    parts = [_parts(word) for word in words]
    for beams in BEAMS:
        found = _search(pcm, parts, beams)
        if found:
            last = len(samples) / RATE
            return [
                Word(word, min(time[0], last), min(time[1], last)) if time else Word(word)
                for word, time in zip(words, found, strict=True)
            ]
    return [Word(word) for word in words]


def align_utterance(row: Utterance) -> list[Word]:
    """Times of each word of an utterance's text; no words where it has no text."""
    if not row.text:
        return []
    return align(read_audio(row, rate=RATE), row.text, language=row.language)


def _spelling(token: str) -> str:
    """A word as the dictionary spells it: small letters, no punctuation around it.

    >>> _spelling("“Don’t!”"), _spelling("—")
    ("don't", '')
    """
    plain = token.replace("’", "'").lower()
    return re.sub(r"^[^\w']+|[^\w']+$", "", plain).strip("_") if re.search(r"\w", plain) else ""


def _parts(token: str) -> tuple[str, ...]:
    """The dictionary words a token consists of; none if the dictionary does not know it."""
    decoder = _decoder(())
    word = _spelling(token)
    for spelling in (word, word.strip("'")):
        if decoder.lookup_word(spelling) is not None:
            return (spelling,)
    pieces = tuple(piece for piece in re.split(r"[-–—/]", word) if piece)
    if len(pieces) > 1 and all(decoder.lookup_word(piece) is not None for piece in pieces):
        return pieces
    return ()


@functools.cache
def _decoder(beams: tuple[tuple[str, float], ...]) -> Any:
    """One decoder for each process; loading the model takes a third of a second."""
    pocketsphinx: Any = require("pocketsphinx", extra="align")
    decoder = pocketsphinx.Decoder(
        loglevel="FATAL", lm=None, bestpath=False, cmn="batch", silprob=PAUSE, **dict(beams)
    )
    for phone in PHONES:
        decoder.add_word(f"_{phone}_", phone, phone == PHONES[-1])
    return decoder


def _search(
    pcm: bytes, parts: Sequence[tuple[str, ...]], beams: tuple[tuple[str, float], ...]
) -> list[tuple[float, float] | None] | None:
    """Times of each word, None for unknown ones; None if the chain does not fit the sound."""
    decoder = _decoder(beams)
    # Else it would remember a little of what it heard before, and words would move by 10 ms.
    decoder.reinit_feat()
    state, arcs = 0, []
    for pieces in parts:
        for piece in pieces:
            arcs.append((state, state + 1, 1.0, piece))
            state += 1
        if not pieces:
            chance = FREE_PHONE / len(PHONES)
            free = [f"_{phone}_" for phone in PHONES]
            arcs += [(state, state + 1, chance, phone) for phone in free]
            state += 1
            arcs += [(state, state, chance, phone) for phone in free]
    decoder.add_fsg("words", decoder.create_fsg("words", 0, state, arcs))
    decoder.activate_search("words")
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
    if decoder.hyp() is None:
        return None
    return _times(parts, _spoken(decoder))


def _spoken(decoder: Any) -> Iterator[tuple[str, float, float]]:
    """What the search found, without silences: dictionary word, start, end."""
    for segment in decoder.seg():
        if segment.word[0] not in "<[+":
            start = segment.start_frame * FRAME_SECONDS
            end = (segment.end_frame + 1) * FRAME_SECONDS
            yield re.sub(r"\(\d+\)$", "", segment.word), round(start, 4), round(end, 4)


def _times(
    parts: Sequence[tuple[str, ...]], spoken: Iterator[tuple[str, float, float]]
) -> list[tuple[float, float] | None] | None:
    """Give the found segments to the words of the text, which they must spell exactly."""
    # Free phones belong to unknown words: they only separate the known ones.
    known = [found for found in spoken if not re.fullmatch(r"_[A-Z]+_", found[0])]
    if [word for word, _, _ in known] != [piece for pieces in parts for piece in pieces]:
        return None
    times: list[tuple[float, float] | None] = []
    place = 0
    for pieces in parts:
        if pieces:
            times.append((known[place][1], known[place + len(pieces) - 1][2]))
            place += len(pieces)
        else:
            times.append(None)
    return times
