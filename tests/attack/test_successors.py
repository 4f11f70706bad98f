"""Which slice came next: ranks that stream, and attackers weighed against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from voxrisk.attack.fusion import fuse
from voxrisk.attack.successors import (
    Scorer,
    Slices,
    among,
    rank_estimates,
    successor_ranks,
)
from voxrisk.types import InputError


def from_matrix(matrix: np.ndarray) -> Scorer:
    scores = np.array(matrix, np.float32)
    np.fill_diagonal(scores, -np.inf)
    return lambda block: scores[block].copy()


def chains(utterances: int, length: int, seed: int = 0) -> tuple[Slices, np.ndarray]:
    """Slices of utterances by as many speakers, in an order drawn at random."""
    order = np.random.default_rng(seed).permutation(utterances * length)
    source = tuple(f"u{i // length}" for i in order)
    slices = Slices(source, source, tuple(int(i % length) for i in order), ((),) * order.size)
    return slices, slices.successor


@given(
    arrays(np.float64, (7, 7), elements=st.integers(-2, 2).map(float)),
    st.integers(1, 7),
    st.permutations(range(7)),
)
def test_streamed_ranks_are_scipys_whatever_the_block(
    matrix: np.ndarray, block: int, order: list[int]
) -> None:
    successor = np.full(7, -1)
    successor[order[:-1]] = order[1:]
    found = successor_ranks(from_matrix(matrix), successor, block=block)
    for query, rank in zip(found.query, found.rank, strict=True):
        others = np.delete(np.arange(7), query)
        expected = rankdata(-matrix[query, others])[others == successor[query]]
        assert rank == expected[0]
    assert (found.candidates == 6).all()


def test_a_perfect_attacker_is_first_always_and_a_shuffled_truth_is_chance() -> None:
    slices, successor = chains(60, 10)
    matrix = np.zeros((600, 600))
    matrix[np.arange(600), successor] = successor >= 0
    perfect = rank_estimates(successor_ranks(from_matrix(matrix), successor), slices.speaker)
    assert perfect["precision_at_1"].value == 1.0
    assert perfect["mean_rank"].value == pytest.approx(1 / 599)

    rng = np.random.default_rng(1)
    noise = from_matrix(rng.normal(size=(600, 600)))
    chance = rank_estimates(successor_ranks(noise, successor), slices.speaker)
    assert chance["mean_rank"].value == pytest.approx(0.5, abs=0.05)
    span = chance["mean_rank"].interval
    assert span is not None
    assert span.low < 0.5 < span.high
    assert chance["mean_rank"].n == {"slice": 600, "successor": 540, "speaker": 60}


def test_an_attacker_who_says_never_to_the_truth_ranks_it_among_the_last() -> None:
    matrix = np.full((5, 5), -np.inf)
    matrix[0, 2] = 1.0
    found = successor_ranks(from_matrix(matrix), np.array([1, -1, -1, -1, -1]))
    assert found.rank.tolist() == [3.0]  # one is above; three share 2, 3, 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_broken_attack_does_not_look_like_privacy(bad: float) -> None:
    matrix = np.zeros((4, 4))
    matrix[1, 3] = bad
    with pytest.raises(InputError, match=r"slice 3 after slice 1 .* broken"):
        successor_ranks(from_matrix(matrix), np.array([1, 2, 3, -1]))


def test_scores_of_another_size_are_refused() -> None:
    with pytest.raises(InputError, match=r"scores \(3, 2\) for 3 of 4 slices"):
        successor_ranks(lambda b: np.zeros((b.size, 2), np.float32), np.array([1, 2, 3, -1]))


def test_without_successors_there_is_nothing_to_look_for() -> None:
    with pytest.raises(InputError, match="no slice has a successor"):
        successor_ranks(from_matrix(np.zeros((3, 3))), np.full(3, -1))


def test_two_slices_at_one_place_are_refused() -> None:
    with pytest.raises(InputError, match="the same piece"):
        _ = Slices(("a", "a"), ("u", "u"), (0, 0), ((), ())).successor


def test_fewer_slices_on_the_table_are_the_same_scores() -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 6))
    some = among(from_matrix(matrix), np.array([4, 1, 3]), 6)(np.array([2, 0]))
    assert some[0, 0] == np.float32(matrix[3, 4])
    assert some[1, 0] == -np.inf


def weak_attackers(successor: np.ndarray, strength: tuple[float, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    n = successor.size
    found = []
    for one in strength:
        matrix = rng.normal(size=(n, n))
        rows = np.flatnonzero(successor >= 0)
        matrix[rows, successor[rows]] += one
        found.append(matrix)
    return found


def mean_rank(scorer: Scorer, successor: np.ndarray) -> float:
    return float(successor_ranks(scorer, successor).normalised.mean())


def test_two_weak_attackers_are_stronger_together_and_noise_does_no_harm() -> None:
    slices, successor = chains(40, 10)
    one, two, noise = weak_attackers(successor, (1.0, 1.5, 0.0))
    # Units must not matter: the second attacker counts in thousandths, the noise in thousands.
    scorers = [from_matrix(one), from_matrix(two / 1000), from_matrix(noise * 1000)]
    alone = [mean_rank(s, successor) for s in scorers]
    together = mean_rank(fuse(scorers, successor, slices.speaker), successor)
    # The sum of two unit normals shifted by 1 and 1.5, optimally weighted: Φ(-√(1² + 1.5²)/√2).
    assert together == pytest.approx(0.1012, abs=0.02)
    assert together < min(alone) - 0.03


def test_fused_scores_are_likelihood_ratios() -> None:
    """For unit normals shifted by d the log likelihood ratio of a pair is d·x - d²/2."""
    slices, successor = chains(50, 10)
    (matrix,) = weak_attackers(successor, (2.0,))
    fused = fuse([from_matrix(matrix)], successor, slices.speaker)
    rows = np.arange(40)
    found = fused(rows)
    apart = rows[:, None] != np.arange(successor.size)
    slope, bias = np.polyfit(matrix[rows][apart], found[apart].astype(float), 1)
    assert slope == pytest.approx(2.0, rel=0.2)
    assert bias == pytest.approx(-2.0, abs=0.5)
    assert (found[~apart] == -np.inf).all()


def test_a_likely_slice_is_not_taken_for_the_successor_of_everything() -> None:
    """A score that favours some candidates whatever stands before them is put right."""
    slices, successor = chains(40, 10)
    (matrix,) = weak_attackers(successor, (2.0,))
    favoured = np.random.default_rng(5).normal(size=successor.size) * 5
    biased = from_matrix(matrix + favoured)
    fused = fuse([biased], successor, slices.speaker)
    assert mean_rank(fused, successor) < mean_rank(biased, successor) - 0.2


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000))
def test_weights_for_a_speaker_do_not_see_the_truth_about_that_speaker(seed: int) -> None:
    slices, successor = chains(8, 6, seed)
    (matrix,) = weak_attackers(successor, (1.5,))
    mine = np.flatnonzero(np.array(slices.speaker) == "u3")
    told = fuse([from_matrix(matrix)], successor, slices.speaker, folds=8, seed=seed)
    lied = successor.copy()
    asked = mine[successor[mine] >= 0]
    lied[asked] = np.roll(successor[asked], 1)
    found = fuse([from_matrix(matrix)], lied, slices.speaker, folds=8, seed=seed)
    fold = told.fold[mine[0]]
    assert found.weights[fold].tolist() == told.weights[fold].tolist()
    others = np.arange(8) != fold
    assert (found.weights[others] != told.weights[others]).all()


def test_one_speaker_cannot_be_learnt_from_and_attacked() -> None:
    slices, successor = chains(1, 6)
    with pytest.raises(InputError, match="two are needed"):
        fuse([from_matrix(np.zeros((6, 6)))], successor, slices.speaker)
