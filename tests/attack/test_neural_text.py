"""Neural attackers on text: against one pair at a time, on a tiny model."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "language"))
from test_neural import tiny

from voxrisk.attack.neural_text import Information, NextPiece, ShortListed, by_likeness
from voxrisk.language.llama import BEGIN, Llama, Pieces

MODEL, PIECES = Llama(tiny(), threads=1), Pieces(tiny())
TEXTS = [["the", "cat"], ["a", "dog"], [], ["b"], ["the", "end", "of"], ["cat"]]


def log_prob(before: list[int], after: list[int]) -> float:
    """One text, read whole."""
    import torch

    hidden, _ = MODEL(torch.tensor([[BEGIN, *before, *after]]))
    odds = MODEL.log_probs(hidden[0])
    return sum(float(odds[len(before) + k, piece]) for k, piece in enumerate(after))


def test_one_reading_of_each_slice_gives_the_lift_of_every_first_piece() -> None:
    found = NextPiece(TEXTS, MODEL, PIECES)(np.arange(6))
    spelt = [PIECES(words) for words in TEXTS]
    for i, w in enumerate(spelt):
        known = [log_prob(w, v[:1]) - log_prob([], v[:1]) if w else 0.0 for v in spelt if v]
        full = iter(known)
        expected = np.array([next(full) if v else np.mean(known) for v in spelt])
        apart = np.arange(6) != i
        assert found[i][apart] == pytest.approx(expected[apart], abs=1e-4)
    assert (np.diagonal(found) == -np.inf).all()


def test_information_is_that_of_whole_texts() -> None:
    judge = Information(TEXTS, MODEL, PIECES)
    spelt = [PIECES(words) for words in TEXTS]
    found = judge(0, np.arange(1, 6))
    expected = [log_prob(spelt[0], v) - log_prob([], v) for v in spelt[1:]]
    assert found == pytest.approx(expected, abs=1e-4)
    assert judge(0, np.arange(1, 6)) == pytest.approx(found)  # what was kept is what was found


def test_a_short_list_changes_the_order_of_its_own_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    base, dear = rng.normal(size=(9, 9)).astype(np.float32), rng.normal(size=(9, 9)) * 50
    listed = ShortListed(lambda b: base[b].copy(), lambda w, c: dear[w, c], 9, keep=3)
    found = listed(np.arange(9))
    for i in range(9):
        others = np.delete(np.arange(9), i)
        by_base = others[np.argsort(-base[i, others])]
        best = by_base[:3][np.argsort(-dear[i, by_base[:3]])]
        by_found = others[np.argsort(-found[i, others])]
        assert by_found.tolist() == [*best, *by_base[3:]]
        assert found[i, best] == pytest.approx(dear[i, best], rel=1e-5)


def test_likeness_is_the_cosine() -> None:
    vectors = np.eye(3, dtype=np.float32)
    found = by_likeness(vectors)(np.array([1]))
    assert found.tolist() == [[0.0, -np.inf, 0.0]]
