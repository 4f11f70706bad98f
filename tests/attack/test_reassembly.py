"""Slices put together again: the search, and what is counted as restored."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from voxrisk.attack import reassembly
from voxrisk.attack.reassembly import reassemble
from voxrisk.measure.restoring import random_order, restored, restored_estimates
from voxrisk.types import InputError


def truth(lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Successors of utterances of so many slices, and the utterance of each slice."""
    n = sum(lengths)
    successor = np.arange(1, n + 1)
    successor[np.cumsum(lengths) - 1] = -1
    return successor, np.repeat(np.arange(len(lengths)), lengths)


def length_of_chains(guess: np.ndarray) -> list[int]:
    starts = np.setdiff1d(np.arange(guess.size), guess)
    found = []
    for start in starts:
        length, at = 1, start
        while (at := guess[at]) != -1:
            length += 1
        found.append(length)
    return found


SCORES = arrays(np.float32, (6, 6), elements=st.integers(-9, 9).map(float))


@settings(deadline=None)
@given(SCORES, st.booleans(), st.lists(st.integers(0, 1), min_size=6, max_size=6))
def test_every_slice_of_a_table_stands_in_one_chain_once(
    scores: np.ndarray, large: bool, table: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reassembly, "MOST_ASSIGNED", 1 if large else 100)
        guess = reassemble(lambda block: scores[block], 6, np.array(table))
    used = guess[guess != -1]
    assert np.unique(used).size == used.size
    assert sum(length_of_chains(guess)) == 6  # no slice is lost in a circle
    assert len(length_of_chains(guess)) == len(set(table))
    linked = np.flatnonzero(guess != -1)
    assert (np.array(table)[linked] == np.array(table)[guess[linked]]).all()


@pytest.mark.parametrize("large", [False, True])
def test_a_perfect_attacker_restores_everything(
    large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassembly, "MOST_ASSIGNED", 1 if large else 100)
    successor, speaker = truth([5, 1, 7, 3, 2])
    n = successor.size
    scores = np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)
    rows = np.flatnonzero(successor >= 0)
    scores[rows, successor[rows]] += 50
    guess = reassemble(lambda block: scores[block], n)
    assert [e.value for e in restored_estimates(guess, successor, speaker).values()] == [1.0] * 3


@settings(deadline=None, max_examples=40)
@given(arrays(np.float32, (5, 5), elements=st.floats(-5, 5, width=16)))
def test_a_chain_is_never_better_than_the_best_order_nor_much_worse(scores: np.ndarray) -> None:
    """All 120 orders of five slices are tried: the search must come near the best of them."""

    def total(order: tuple[int, ...]) -> float:
        return float(sum(scores[a, b] for a, b in itertools.pairwise(order)))

    best = max(map(total, itertools.permutations(range(5))))
    guess = reassemble(lambda block: scores[block], 5)
    found = float(sum(scores[i, j] for i, j in enumerate(guess) if j != -1))
    mean = float(np.mean([total(o) for o in itertools.permutations(range(5))]))
    assert found <= best + 1e-4
    assert found >= mean - 1e-4


@pytest.mark.parametrize("large", [False, True])
def test_who_scores_all_alike_restores_nothing_though_slices_are_given_in_order(
    large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassembly, "MOST_ASSIGNED", 1 if large else 1000)
    successor, source = truth([4] * 50)
    alike = reassemble(lambda block: np.zeros((block.size, 200), np.float32), 200)
    found = restored_estimates(alike, successor, source)["pairs_restored"]
    assert found.value < 0.05
    alone = [
        reassemble(lambda b: np.zeros((b.size, 200), np.float32), 200, source, seed=k)
        for k in range(5)
    ]
    shares = [restored_estimates(g, successor, source, source)["pairs_restored"] for g in alone]
    assert np.mean([e.value for e in shares]) == pytest.approx(shares[0].chance, abs=0.05)


def test_what_is_restored_is_counted_by_hand() -> None:
    successor, speaker = truth([4, 3, 1])
    # 0→1→2 right, 3→4 is no pair of one utterance, 5→6 right, 4→7 wrong.
    guess = np.array([1, 2, 5, 4, 7, 6, -1, -1])
    found = restored(guess, successor, speaker)
    assert found.pairs.tolist() == [3, 2]
    assert found.right.tolist() == [2, 1]
    assert found.run.tolist() == [2, 1]
    figures = restored_estimates(guess, successor, speaker)
    assert figures["pairs_restored"].value == pytest.approx(3 / 5)
    assert figures["longest_run"].value == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert figures["utterances_whole"].value == 0.0
    assert figures["pairs_restored"].n == {
        "slice": 8, "successor": 5, "utterance": 2, "speaker": 2,
    }  # fmt: skip


def test_chance_is_what_a_random_order_gives() -> None:
    """In a random order of n slices a given pair is successive with probability 1/n."""
    successor, speaker = truth([2] * 10)
    nothing = np.full(20, -1)
    figures = restored_estimates(nothing, successor, speaker)
    assert figures["pairs_restored"].value == 0.0
    assert figures["pairs_restored"].chance == pytest.approx(1 / 20, abs=0.02)
    # Where the two slices of an utterance lie on a table of their own, every second order is right.
    alone = restored_estimates(nothing, successor, speaker, speaker)
    assert alone["utterances_whole"].chance == pytest.approx(1 / 2, abs=0.05)


def test_a_random_order_is_one_chain_for_each_table() -> None:
    table = np.array([3, 1, 3, 1, 1, 2])
    guess = random_order(table, np.random.default_rng(0))
    assert sorted(length_of_chains(guess)) == [1, 2, 3]


def test_utterances_of_one_slice_cannot_be_put_together() -> None:
    with pytest.raises(InputError, match="no utterance has two slices"):
        restored(np.full(3, -1), np.full(3, -1), np.arange(3))
