"""Cut utterances into short slices at word boundaries, or at fixed times.

Pure functions of word times; nothing here touches audio or files. Reference: Maouche et al.,
"Enhancing Speech Privacy with Slicing", Interspeech 2022, Algorithm 1. It walks the words and
closes a slice at the start of the next word as soon as it lasts δ. The next slice begins at the
*end* of the last word, so the silence between two words belongs to both slices. A last piece
shorter than δ is dropped, and its words with it.

Real alignments are not always what the algorithm assumes. A cut between two words needs to know
where the first ends and the second starts, and nobody speaking across it. So where a word has no
times, or two words overlap, no cut is made: the slice goes on to the next place that is sure. With
complete times and no overlap this is Algorithm 1 as printed.

Slices that share a pause can be put in order by comparing samples. :func:`set_apart` takes the same
slices and leaves out what two of them share, and a little more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from voxrisk.types import InputError

# Times come in steps of a millisecond or more; this only takes up the rounding of float sums.
ROUNDING = 1e-6
MARGIN = 0.02  # seconds of a pause that stay beside a word, where slices are set apart
GAP = 0.02  # seconds at least between two slices that are set apart, in no slice


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word; ``start`` and ``end`` in seconds are None where no aligner found it."""

    text: str
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """A piece of an utterance and the words said in it.

    Attributes:
        start: Seconds from the beginning of the utterance.
        end: Seconds; the slice holds ``signal[start:end]``.
        words: What is said in it, in order.
        first: Place of the first of these words in the utterance, from 0.
    """

    start: float
    end: float
    words: tuple[str, ...]
    first: int


def slice_words(words: Sequence[Word], *, signal: float, duration: float) -> list[Slice]:
    """Algorithm 1 of the slicing paper: cut between words as soon as a slice lasts δ.

    Args:
        words: The utterance's words in order.
        signal: How long the utterance lasts, in seconds.
        duration: The target (minimum) duration δ of a slice.

    Returns:
        Slices in order. Words after the last slice are dropped; an utterance without words, or
        shorter than δ, gives none.

    >>> words = [Word("good", 0.2, 0.5), Word("old", 0.6, 0.9), Word("time", 1.1, 1.5)]
    >>> [(s.start, s.end, s.words) for s in slice_words(words, signal=1.7, duration=0.8)]
    [(0.0, 1.1, ('good', 'old')), (0.9, 1.7, ('time',))]
    """
    validate(words, signal=signal, duration=duration)
    cuts = _cuts(words)
    slices = []
    begin, first = 0.0, 0
    for k in range(len(words)):
        last = k + 1 == len(words)
        if not last and cuts[k] is None:
            continue
        ends, next_start = (signal, signal) if last else cuts[k]  # type: ignore[misc]
        if next_start - begin >= duration - ROUNDING:
            spoken = tuple(word.text for word in words[first : k + 1])
            slices.append(Slice(begin, next_start, spoken, first))
            begin, first = ends, k + 1
    return slices


def slice_fixed(words: Sequence[Word], *, signal: float, duration: float) -> list[Slice]:
    """Cut every ``duration`` seconds, wherever a word may be; a shorter rest is dropped.

    A slice claims only the words that lie in it whole; a word that a cut goes through, and a word
    without times, is claimed by none.

    >>> words = [Word("good", 0.2, 0.5), Word("old", 0.6, 0.9), Word("time", 1.1, 1.5)]
    >>> [(s.start, s.end, s.words) for s in slice_fixed(words, signal=1.7, duration=0.8)]
    [(0.0, 0.8, ('good',)), (0.8, 1.6, ('time',))]
    """
    validate(words, signal=signal, duration=duration)
    slices = []
    for n in range(math.floor((signal + ROUNDING) / duration)):
        start, end = n * duration, min((n + 1) * duration, signal)
        inside = [
            i
            for i, word in enumerate(words)
            if word.start is not None
            and word.end is not None
            and start - ROUNDING <= word.start
            and word.end <= end + ROUNDING
        ]
        first = inside[0] if inside else 0
        slices.append(Slice(start, end, tuple(words[i].text for i in inside), first))
    return slices


def set_apart(slices: Sequence[Slice], words: Sequence[Word]) -> list[Slice]:
    """The same slices without anything that two of them share, or that stands out at an edge.

    A slice keeps at most 20 ms of the pause at either end, also at the ends of the utterance, and
    at least 20 ms around each cut are in no slice: where words follow one another without a pause,
    or a cut goes through a word, 10 ms of sound on either side are lost. So slices may be a little
    shorter than δ. One of less than twice 20 ms stays out.

    >>> words = [Word("good", 0.2, 0.5), Word("old", 0.6, 0.9), Word("time", 1.1, 1.5)]
    >>> cut = slice_words(words, signal=1.7, duration=0.8)
    >>> [(round(s.start, 3), round(s.end, 3)) for s in set_apart(cut, words)]
    [(0.18, 0.92), (1.08, 1.52)]
    """
    apart = []
    for k, piece in enumerate(slices):
        # What two neighbours share reaches from the start of the second to the end of the first.
        before = slices[k - 1].end if k else piece.start
        after = slices[k + 1].start if k + 1 < len(slices) else piece.end
        start = (piece.start + before + GAP) / 2
        end = (after + piece.end - GAP) / 2
        spoken = words[piece.first : piece.first + len(piece.words)]
        if spoken and spoken[0].start is not None:
            start = max(start, spoken[0].start - MARGIN)
        if spoken and spoken[-1].end is not None:
            end = min(end, spoken[-1].end + MARGIN)
        if end - start >= 2 * MARGIN:
            apart.append(replace(piece, start=start, end=end))
    return apart


def validate(words: Sequence[Word], *, signal: float, duration: float) -> None:
    """Refuse times that cannot be: not finite, negative, backwards, or past the signal."""
    if not (math.isfinite(duration) and duration > 0):
        raise InputError(f"the slice duration is {duration} s; it must be more than 0")
    if not (math.isfinite(signal) and signal >= 0):
        raise InputError(f"the utterance lasts {signal} s")
    for place, word in enumerate(words):
        where = f"word {place} ({word.text!r})"
        if (word.start is None) != (word.end is None):
            raise InputError(f"{where} has only one of start and end")
        if word.start is None or word.end is None:
            continue
        if not (math.isfinite(word.start) and math.isfinite(word.end) and word.start >= 0):
            raise InputError(f"{where} lies at {word.start}–{word.end} s")
        if word.end < word.start:
            raise InputError(f"{where} ends at {word.end} s before it starts at {word.start} s")
        if word.end > signal + ROUNDING:
            raise InputError(f"{where} ends at {word.end} s, the signal at {signal} s")


def _cuts(words: Sequence[Word]) -> list[tuple[float, float] | None]:
    """After each word: (its end, start of the next), or None where no cut is safe."""
    # A word that reaches over its neighbours forbids every cut it spans, whatever the order.
    latest_end = [0.0] * len(words)
    for k, word in enumerate(words):
        latest_end[k] = max(latest_end[k - 1] if k else 0.0, word.end or 0.0)
    earliest_start = math.inf
    cuts: list[tuple[float, float] | None] = [None] * len(words)
    for k in range(len(words) - 2, -1, -1):
        word, after = words[k], words[k + 1]
        if after.start is not None:
            earliest_start = min(earliest_start, after.start)
        if word.end is None or after.start is None:
            continue
        if latest_end[k] <= earliest_start + ROUNDING:
            cuts[k] = latest_end[k], max(earliest_start, latest_end[k])
    return cuts
