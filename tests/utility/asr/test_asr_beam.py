"""The search for words: equal to trying all texts, and led by the language model."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.language import START
from voxrisk.utility.asr.beam import BLANK, Search, best_text

ALPHABET = ("", " ", "a", "b")
WIDE = {"beam": 10**6, "floor": -math.inf}


class Toy:
    """A language model of three words in which what came before matters."""

    identity = "toy"
    words = {"a": 0.5, "b": 0.2, "ab": 0.2}  # noqa: RUF012

    def unigrams(self) -> dict[str, float]:
        return {word: math.log(p) for word, p in self.words.items()}

    def log_prob(self, word: str, context: Sequence[str]) -> float:
        before = context[-1] if context else START
        return math.log(self.words.get(word, 0.01) * (0.3 if before == word else 1.0))


def spelt(path: Sequence[int]) -> str:
    """CTC's rule: what repeats is one character, and blanks are nothing."""
    kept = [c for c, _ in itertools.groupby(path) if c != BLANK]
    return "".join(ALPHABET[c] for c in kept)


def merit(text: str, search: Search) -> float:
    """Language model and bonus of a text, written another way than the search does it."""
    words = text.split()
    total = 0.0
    for i, word in enumerate(words):
        context = ([START, *words[:i]])[-2:]
        log_prob = Toy().log_prob(word, context)
        if word not in Toy.words:  # one of 2 letters at each place
            log_prob += len(word) * math.log(1 / 2)
        total += search.weight * log_prob + search.bonus
    return total


def all_texts(log_probs: np.ndarray) -> dict[str, float]:
    """P of every text: the sum over every path that spells it."""
    found: dict[str, float] = {}
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        p = math.exp(sum(float(log_probs[t, c]) for t, c in enumerate(path)))
        found[spelt(path)] = found.get(spelt(path), 0.0) + p
    return found


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans())
def test_with_a_wide_beam_it_is_the_best_of_all_texts(seed: int, length: int, led: bool) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 2, (length, len(ALPHABET)))
    log_probs = (logits - np.log(np.exp(logits).sum(1, keepdims=True))).astype(np.float32)
    search = Search(weight=0.7, bonus=0.4, **WIDE)
    found = best_text(log_probs, ALPHABET, model=Toy() if led else None, search=search)
    worth = {
        text: math.log(p) + (merit(text, search) if led else 0.0)
        for text, p in all_texts(log_probs).items()
    }
    best = max(worth.values())
    # Texts that differ in spaces at their ends are written alike.
    same = [value for text, value in worth.items() if text.strip() == found]
    assert max(same) == pytest.approx(best, abs=1e-5)


def test_the_language_model_decides_where_the_sound_does_not() -> None:
    """Two spellings equally likely by sound: the known word wins."""
    probs = np.full((3, 4), 1e-4)
    probs[0, 2], probs[1, BLANK] = 1.0, 1.0
    probs[2, 3] = probs[2, 2] = 0.5
    log_probs = np.log(probs).astype(np.float32)
    assert best_text(log_probs, ALPHABET, model=Toy(), search=Search(weight=1.0)) == "ab"


def test_a_bonus_for_words_makes_more_of_them() -> None:
    probs = np.full((3, 4), 1e-3)
    probs[0, 2] = probs[2, 3] = 1.0
    probs[1, BLANK], probs[1, 1] = 0.6, 0.4
    log_probs = np.log(probs).astype(np.float32)
    few = best_text(log_probs, ALPHABET, model=Toy(), search=Search(bonus=-3.0))
    many = best_text(log_probs, ALPHABET, model=Toy(), search=Search(bonus=3.0))
    assert (few, many) == ("ab", "a b")


def test_an_unknown_word_pays_for_its_letters() -> None:
    """Else one word that nobody knows would be cheaper than several that everybody does."""
    probs = np.full((5, 4), 1e-4)
    probs[0, 2] = probs[1, 3] = probs[3, 2] = probs[4, 3] = 1.0
    probs[2, BLANK] = probs[2, 1] = 0.5
    search = Search(weight=1.0, bonus=-0.5)
    assert best_text(np.log(probs).astype(np.float32), ALPHABET, model=Toy(), search=search) == (
        "ab ab"
    )


def test_a_narrow_beam_still_reads_what_is_plain() -> None:
    letters = [2, 2, 0, 3, 1, 1, 2, 0, 2]
    log_probs = np.log(np.eye(4)[letters] * 0.97 + 0.01).astype(np.float32)
    assert best_text(log_probs, ALPHABET, search=Search(beam=2)) == "ab aa"


def test_frames_in_which_nothing_is_likely_end_nothing() -> None:
    log_probs = np.full((4, 4), -50.0, np.float32)
    assert best_text(log_probs, ALPHABET) in {"", "a", "b"}


def test_no_frames_no_words() -> None:
    assert best_text(np.zeros((0, 4), np.float32), ALPHABET, model=Toy()) == ""
