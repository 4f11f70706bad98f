"""A ready recogniser on slices: who is drawn, what is counted, what is compared."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance
from voxrisk.types import InputError
from voxrisk.utility.asr import ready
from voxrisk.utility.asr.ready import in_turn, ready_utility


def pieces(count: int, text: str = "one two three four") -> list[Utterance]:
    return [Utterance(f"p{i}", Path("x"), f"s{i % 6}", text=text) for i in range(count)]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 3))
def test_speakers_take_turns(owners: list[int], most: int, seed: int) -> None:
    """Nobody has two pieces more than another who has some left; nothing is drawn twice."""
    rows = [Utterance(f"p{i}", Path("x"), f"s{k}", text="a") for i, k in enumerate(owners)]
    kept = in_turn(rows, most, seed=seed)
    assert len(kept) == min(most, len(rows))
    assert len({row.utterance for row in kept}) == len(kept)
    have, all_of = (Counter(row.speaker for row in part) for part in (kept, rows))
    for a in all_of:
        for b in all_of:
            assert have[a] <= have[b] + 1 or have[b] == all_of[b]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=60),
    st.integers(1, 200),
)
def test_pieces_are_drawn_until_they_hold_the_words(
    owners: list[tuple[int, int]], words: int
) -> None:
    """Enough words where there are enough, no piece more than it takes, and one of each speaker."""
    rows = [
        Utterance(f"p{i}", Path("x"), f"s{k}", text=" ".join("a" * n))
        for i, (k, n) in enumerate(owners)
    ]
    kept = in_turn(rows, None, words=words)
    held = [len(str(row.text).split()) for row in kept]
    people = {row.speaker for row in rows}
    assert {row.speaker for row in kept} == people
    assert sum(held) >= min(words, sum(n for _, n in owners))
    assert len(kept) == len(people) or sum(held) - max(held) < words


def test_who_speaks_most_is_not_heard_most() -> None:
    rows = [Utterance(f"p{i}", Path("x"), f"s{max(0, i - 19) % 3}", text="a") for i in range(24)]
    kept = in_turn(rows, 5)
    assert Counter(row.speaker for row in kept) == {"s0": 2, "s1": 2, "s2": 1}


def test_rates_and_losses_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recogniser that misses the first word of slices: a quarter wrong, and all of it loss."""

    def hear(rows: list[Utterance], **_: Any) -> list[str]:
        return [
            str(r.text) if len(str(r.text).split()) > 4 else str(r.text).partition(" ")[2]
            for r in rows
        ]

    monkeypatch.setattr(ready, "transcribe", hear)
    whole, cut = pieces(12, "one two three four five six"), pieces(30)
    found = ready_utility({("clear", None): whole, ("clear", 1.0): cut}, most=24, resamples=200)
    assert [(c.duration, c.pieces, c.wer.value) for c in found] == [
        (None, 12, 0.0),
        (1.0, 24, 0.25),
    ]
    assert found[0].loss is None
    assert found[1].loss is not None
    assert found[1].loss.value == pytest.approx(0.25)
    assert found[1].wer.parameters["trusted"] is True


def test_a_recogniser_that_knows_nothing_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "transcribe", lambda rows, **_: ["noise"] * len(rows))
    (found,) = ready_utility({("clear", 0.5): pieces(12)}, resamples=100)
    assert (found.wer.value, found.loss) == (1.0, None)
    assert found.wer.parameters["trusted"] is False


def test_no_transcripts_and_another_language() -> None:
    mute = [Utterance("p", Path("x"), "s")]
    with pytest.raises(InputError, match=r"clear speech, 0\.5 s: none of 1 pieces"):
        ready_utility({("clear", 0.5): mute})
    with pytest.raises(
        InputError, match=r"the speech is German, .* whisper-tiny\.en knows English only"
    ):
        ready_utility({("clear", 0.5): pieces(6)}, language="de")
