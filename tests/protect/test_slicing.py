"""Algorithm 1 of paper 4 and its laws, on random alignments good and bad."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.protect.slicing import GAP, MARGIN, Slice, Word, set_apart, slice_fixed, slice_words
from voxrisk.types import InputError

MS = 1e-3


@st.composite
def alignments(draw: st.DrawFn) -> tuple[list[Word], float]:
    """Words in order without overlap, with pauses, and the duration of the signal."""
    time, words = 0.0, []
    for k in range(draw(st.integers(0, 12))):
        start = time + draw(st.integers(0, 600)) * MS
        time = start + draw(st.integers(1, 2500)) * MS
        words.append(Word(f"w{k}", start, time))
    return words, time + draw(st.integers(0, 800)) * MS


@st.composite
def broken(draw: st.DrawFn) -> tuple[list[Word], float]:
    """As above, but words may overlap, come out of order or have no times."""
    words, signal = draw(alignments())
    for k, word in enumerate(words):
        kind = draw(st.sampled_from(["good", "good", "missing", "long", "early"]))
        assert word.start is not None
        assert word.end is not None
        if kind == "missing":
            words[k] = Word(word.text)
        elif kind == "long":
            words[k] = Word(word.text, word.start, min(signal, word.end + 1.0))
        elif kind == "early":
            words[k] = Word(word.text, max(0.0, word.start - 1.0), word.end)
    return words, signal


durations = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 4.0])


def printed_algorithm(words: list[Word], signal: float, delta: float) -> list[Slice]:
    """Algorithm 1 line by line, with the words of a slice k_prev … k inclusive."""
    slices, t_previous, k_previous = [], 0.0, 0
    for k, word in enumerate(words):
        next_start = words[k + 1].start if k + 1 < len(words) else signal
        assert next_start is not None
        if next_start - t_previous >= delta - 1e-6:
            said = tuple(w.text for w in words[k_previous : k + 1])
            slices.append(Slice(t_previous, next_start, said, k_previous))
            assert word.end is not None
            t_previous, k_previous = word.end, k + 1
    return slices


@given(alignments(), durations)
def test_it_is_the_printed_algorithm(case: tuple[list[Word], float], delta: float) -> None:
    words, signal = case
    assert slice_words(words, signal=signal, duration=delta) == printed_algorithm(
        words, signal, delta
    )


@given(st.one_of(alignments(), broken()), durations)
def test_laws_of_slices(case: tuple[list[Word], float], delta: float) -> None:
    """What holds for every alignment, however bad."""
    words, signal = case
    slices = slice_words(words, signal=signal, duration=delta)
    said = [text for piece in slices for text in piece.words]
    assert said == [word.text for word in words[: len(said)]], "each word once, in order"
    for piece in slices:
        assert piece.words
        assert piece.end - piece.start >= delta - 1e-6
        assert 0 <= piece.start < piece.end <= signal
        inside = words[piece.first : piece.first + len(piece.words)]
        assert tuple(word.text for word in inside) == piece.words
        for word in inside:
            if word.start is not None and word.end is not None:
                assert piece.start - 1e-6 <= word.start
                assert word.end <= piece.end + 1e-6, "no word is cut"
    for one, two in pairwise(slices):
        assert two.start <= one.end, "nothing between two slices is lost"
        for word in words:
            if word.start is not None and word.end is not None:
                shared = min(one.end, word.end) - max(two.start, word.start)
                assert shared <= 1e-6, "what two slices share is silence"


@given(st.one_of(alignments(), broken()), durations)
def test_laws_of_slices_set_apart(case: tuple[list[Word], float], delta: float) -> None:
    """Nothing is in two slices, 20 ms lie between them, and no edge has a long pause to tell."""
    words, signal = case
    for cut, known in ((slice_words, words), (slice_fixed, [])):
        slices = cut(words, signal=signal, duration=delta)
        apart = set_apart(slices, known)
        assert len(apart) <= len(slices)
        before = {(piece.first, piece.words): piece for piece in slices}
        for one, two in pairwise(apart):
            assert two.start - one.end >= GAP - 1e-9
        for piece in apart:
            if cut is slice_words:
                whole = before[piece.first, piece.words]
                assert whole.start < piece.start < piece.end < whole.end
                inside = words[piece.first : piece.first + len(piece.words)]
                if inside[0].start is not None:
                    assert piece.start >= inside[0].start - MARGIN - 1e-9
                    assert piece.start <= inside[0].start + GAP / 2 + 1e-9
                if inside[-1].end is not None:
                    assert piece.end <= inside[-1].end + MARGIN + 1e-9


@given(alignments(), durations)
def test_durations_add_up(case: tuple[list[Word], float], delta: float) -> None:
    """Slices last as long as the signal, plus the shared silences, minus the dropped tail."""
    words, signal = case
    slices = slice_words(words, signal=signal, duration=delta)
    kept = sum(len(piece.words) for piece in slices)
    silence = 0.0
    for piece in slices[:-1]:
        last = piece.first + len(piece.words) - 1
        silence += (words[last + 1].start or 0.0) - (words[last].end or 0.0)
    covered = slices[-1].end if slices else 0.0
    total = sum(piece.end - piece.start for piece in slices)
    assert math.isclose(total, covered + silence, abs_tol=1e-6)
    tail_begins = (words[kept - 1].end or 0.0) if kept else 0.0
    if kept < len(words):
        assert signal - tail_begins < delta, "only a rest shorter than δ is dropped"
    elif slices:
        assert covered == signal


@given(broken(), durations)
def test_no_cut_beside_a_word_without_times(case: tuple[list[Word], float], delta: float) -> None:
    words, signal = case
    for piece in slice_words(words, signal=signal, duration=delta):
        first, last = piece.first, piece.first + len(piece.words) - 1
        if first > 0:
            assert words[first].start is not None
            assert words[first - 1].end is not None
        if last + 1 < len(words):
            assert words[last].end is not None
            assert words[last + 1].start is not None


def test_one_word_empty_text_and_long_words() -> None:
    one = [Word("hello", 0.3, 0.9)]
    assert slice_words(one, signal=1.2, duration=1.0) == [Slice(0.0, 1.2, ("hello",), 0)]
    assert slice_words(one, signal=0.95, duration=1.0) == []
    assert slice_words([], signal=3.0, duration=1.0) == []
    long = [Word("a", 0.0, 2.5), Word("b", 2.5, 5.0)]
    assert [s.words for s in slice_words(long, signal=5.0, duration=1.0)] == [("a",), ("b",)]
    lost = [Word("hello")]
    assert slice_words(lost, signal=1.2, duration=1.0) == [Slice(0.0, 1.2, ("hello",), 0)]


def test_the_silence_between_two_words_belongs_to_both_slices() -> None:
    words = [Word("a", 0.1, 0.9), Word("b", 1.4, 2.4)]
    one, two = slice_words(words, signal=2.5, duration=1.0)
    assert (one.start, one.end) == (0.0, 1.4)
    assert (two.start, two.end) == (0.9, 2.5)


@given(st.one_of(alignments(), broken()), durations)
def test_fixed_cuts(case: tuple[list[Word], float], delta: float) -> None:
    words, signal = case
    slices = slice_fixed(words, signal=signal, duration=delta)
    assert len(slices) == math.floor((signal + 1e-6) / delta)
    for n, piece in enumerate(slices):
        assert math.isclose(piece.start, n * delta)
        assert math.isclose(piece.end - piece.start, delta, abs_tol=1e-5)
    timed = sum(word.start is not None for word in words)
    assert sum(len(piece.words) for piece in slices) <= timed


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (Word("x", 1.0, 0.5), "ends at 0.5 s before it starts"),
        (Word("x", -0.1, 0.5), "lies at -0.1"),
        (Word("x", 0.1, math.nan), "lies at 0.1–nan"),
        (Word("x", 0.1, 9.0), "the signal at 2.0 s"),
        (Word("x", 0.1, None), "only one of start and end"),
    ],
)
def test_impossible_times_are_refused(word: Word, message: str) -> None:
    for cut in (slice_words, slice_fixed):
        with pytest.raises(InputError, match=message):
            cut([word], signal=2.0, duration=1.0)


def test_impossible_durations_are_refused() -> None:
    for duration in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="slice duration"):
            slice_words([], signal=1.0, duration=duration)
