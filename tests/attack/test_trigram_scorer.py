"""Which slice came next, by its words: against brute force, and by the rules for short slices."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxrisk.attack.successors import successor_ranks
from voxrisk.attack.trigram_scorer import TrigramScorer, unknown_share
from voxrisk.language.kneser_ney import estimate
from voxrisk.language.ngram import NGram

WORDS = ("the", "a", "cat", "dog", "sat", "ran", "on", "under", "old", "red", "mat", "it", "saw")


def babble(sentences: int, seed: int = 0, words: int = 12) -> list[list[str]]:
    """Sentences of a language in which every word has a few that like to follow it."""
    likes = {w: np.random.default_rng(k).choice(WORDS, 3) for k, w in enumerate(WORDS)}
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(sentences):
        sentence = [str(rng.choice(WORDS))]
        while len(sentence) < words:
            near = rng.random() < 0.8
            sentence.append(str(rng.choice(likes[sentence[-1]] if near else WORDS)))
        found.append(sentence)
    return found


MODEL = NGram(estimate(babble(200)))


@functools.cache
def probability(word: str, context: tuple[str, ...]) -> float:
    return MODEL.log_prob(word, context)


def brute_force(texts: list[list[str]], *, lift: bool) -> np.ndarray:
    """SF(w, v) pair by pair, one probability at a time, as the paper and the page define it."""

    def factors(w: list[str], v: list[str]) -> list[float]:
        found = []
        for k, word in enumerate(v[:2]):
            p = probability(word, (*w[-2:], *v[:k])[-2:])
            found.append(p - (probability(word, tuple(v[:k])) if lift else 0.0))
        return found

    scores = np.zeros((len(texts), len(texts)))
    for i, w in enumerate(texts):
        if not w:
            continue
        each = [factors(w, v) for v in texts]
        seconds = [f[1] for f in each if len(f) == 2]
        missing = float(np.mean(seconds)) if seconds else 0.0
        known = [sum(f) + (missing if len(f) == 1 else 0.0) for f in each if f]
        full = iter(known)
        scores[i] = [next(full) if f else np.mean(known) for f in each]
    return scores


@pytest.mark.parametrize("lift", [False, True])
def test_scores_equal_brute_force_on_300_slices(lift: bool) -> None:
    rng = np.random.default_rng(1)
    stream = list(itertools.chain.from_iterable(babble(120, seed=1)))
    cuts = np.cumsum(rng.integers(0, 6, size=301))
    texts = [stream[i:j] for i, j in itertools.pairwise(cuts)]
    assert {len(t) for t in texts} == set(range(6))  # slices without words and of one among them
    texts[7] = ["unheard", "of", "words"]
    found = TrigramScorer(texts, MODEL, lift=lift)(np.arange(300))
    apart = ~np.eye(300, dtype=bool)
    assert found[apart] == pytest.approx(brute_force(texts, lift=lift)[apart], abs=2e-4)
    assert (found[~apart] == -np.inf).all()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=3), min_size=3, max_size=8),
    st.booleans(),
)
def test_scores_equal_brute_force_whatever_the_words(texts: list[list[str]], lift: bool) -> None:
    found = TrigramScorer(texts, MODEL, lift=lift)(np.arange(len(texts)))
    apart = ~np.eye(len(texts), dtype=bool)
    assert found[apart] == pytest.approx(brute_force(texts, lift=lift)[apart], abs=2e-4)


def cut(sentences: list[list[str]], length: int = 3) -> tuple[list[list[str]], np.ndarray]:
    texts, successor = [], []
    for sentence in sentences:
        parts = [sentence[i : i + length] for i in range(0, len(sentence), length)]
        texts += parts
        first = len(successor)
        successor += [*range(first + 1, first + len(parts)), -1]
    return texts, np.array(successor)


def test_text_finds_successors_and_a_shuffled_truth_is_chance() -> None:
    texts, successor = cut(babble(150, seed=2))
    scorer = TrigramScorer(texts, MODEL)
    assert successor_ranks(scorer, successor).normalised.mean() < 0.3
    rng = np.random.default_rng(0)
    wrong = np.where(successor >= 0, rng.permutation(successor.size), -1)
    wrong[wrong == np.arange(wrong.size)] = -1
    assert successor_ranks(scorer, wrong).normalised.mean() == pytest.approx(0.5, abs=0.03)


def test_lift_does_not_favour_slices_that_are_likely_anywhere() -> None:
    """Candidates that everything leads to are the same for every row: lift takes that out."""
    texts, _ = cut(babble(150, seed=2))
    rows = np.arange(0, 600, 7)

    def share_of_columns(lift: bool) -> float:
        scores = TrigramScorer(texts, MODEL, lift=lift)(rows).astype(np.float64)
        scores[np.isneginf(scores)] = np.nan
        return float(np.nanvar(np.nanmean(scores, axis=0)) / np.nanvar(scores))

    assert share_of_columns(lift=True) < 0.5 * share_of_columns(lift=False)


def test_spelling_and_punctuation_do_not_matter() -> None:
    plain = TrigramScorer([["the", "cat"], ["sat", "on"], ["it", "ran"]], MODEL)(np.arange(3))
    spelt = TrigramScorer([["The", "CAT,"], ["«Sat", "on!"], ["it", "ran"]], MODEL)(np.arange(3))
    assert plain.tolist() == spelt.tolist()


def test_another_language_is_noticed_by_its_unknown_words() -> None:
    assert unknown_share([["the", "cat"], ["the", "Katze"]], MODEL) == 0.25
    assert unknown_share([[]], MODEL) == 0.0
