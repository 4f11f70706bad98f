"""When is each word, and each phone of it, of a known English text said? The search behind it.

pocketsphinx ships its acoustic model and dictionary, so nothing is downloaded. The text becomes a
chain of words, with optional silence between them, and Viterbi finds the times. In the place of a
word that is not in the dictionary the chain allows any phones, so that its neighbours still fall
where they belong.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import require

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


@dataclass(frozen=True, slots=True)
class Timed:
    """A stretch of an aligned utterance, in frames of 10 ms: a word with its phones, or a silence.

    ``phones`` are names with their lengths; a silence has none.
    """

    word: str
    frames: int
    phones: tuple[tuple[str, int], ...]


def find_words(
    samples: NDArray[np.float32], words: Sequence[str]
) -> list[tuple[float, float] | None] | None:
    """Start and end in seconds of each of ``words`` in ``samples (n,)`` at 16 kHz.

    None stands for a word that the dictionary does not know, and for all of them if they cannot be
    found in the sound. Each word must have a :func:`spelling`.
    """
    found = _found(samples, words)
    return found[0] if found else None


def find_phones(samples: NDArray[np.float32], text: str) -> list[Timed] | None:
    """The words and silences of ``text`` in ``samples (n,)`` at 16 kHz, with the phones of words.

    None if the text has no word, or cannot be found in the sound. Words that the dictionary does
    not know stand there as the phones that fit, each a word called ``_PHONE_``.
    """
    words = [token for token in text.split() if spelling(token)]
    found = _found(samples, words) if words else None
    if found is None:
        return None
    decoder = found[1]
    decoder.set_alignment()
    decoder.start_utt()
    decoder.process_raw(_pcm(samples), full_utt=True)
    decoder.end_utt()
    timed = []
    for word in decoder.get_alignment():
        phones = [(phone.name, phone.duration) for phone in word]
        silent = word.name[0] in "<[+"
        timed.append(Timed(word.name, word.duration, () if silent else tuple(phones)))
    return timed


def _found(
    samples: NDArray[np.float32], words: Sequence[str]
) -> tuple[list[tuple[float, float] | None], Any] | None:
    """Times of words, and the decoder that found them."""
    parts = [_parts(word) for word in words]
    for beams in BEAMS:
        if found := _search(_pcm(samples), parts, beams):
            return found, _decoder(beams)
    return None


def _pcm(samples: NDArray[np.float32]) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


def spelling(token: str) -> str:
    """A word as the dictionary spells it: small letters, no punctuation around it.

    >>> spelling("“Don’t!”"), spelling("—")
    ("don't", '')
    """
    plain = token.replace("’", "'").lower()
    return re.sub(r"^[^\w']+|[^\w']+$", "", plain).strip("_") if re.search(r"\w", plain) else ""


def _parts(token: str) -> tuple[str, ...]:
    """The dictionary words a token consists of; none if the dictionary does not know it."""
    decoder = _decoder(())
    word = spelling(token)
    for spelled in (word, word.strip("'")):
        if decoder.lookup_word(spelled) is not None:
            return (spelled,)
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
