"""Ranks of the right candidate, against SciPy, and what ties and chance give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from voxrisk import measure
from voxrisk.types import InputError


@given(arrays(np.float64, (5, 9), elements=st.integers(-3, 3).map(float)))
def test_ranks_agree_with_scipy_ties_at_their_mean(scores: np.ndarray) -> None:
    query = np.repeat(np.arange(5), 9)
    right = np.tile(np.arange(9) == 4, 5)
    found = measure.ranks(scores.ravel(), query, right)
    expected = [rankdata(-row)[4] for row in scores]
    assert found.rank.tolist() == expected
    assert found.candidates.tolist() == [9] * 5


def test_an_attacker_who_scores_all_alike_finds_nobody() -> None:
    found = measure.ranks(np.zeros(100), np.repeat(np.arange(10), 10), np.tile(np.eye(10)[0], 10))
    assert measure.precision_at_1(found) == 0.0
    assert measure.precision_at_10_percent(found) == 0.0
    assert measure.mean_normalised_rank(found) == pytest.approx(0.55)
    assert measure.median_normalised_rank(found) == pytest.approx(0.55)


def test_a_perfect_attacker_finds_everybody() -> None:
    right = np.tile(np.arange(20) == 3, 7)
    found = measure.ranks(right.astype(float), np.repeat(np.arange(7), 20), right)
    assert measure.precision_at_1(found) == measure.precision_at_10_percent(found) == 1.0
    assert measure.mean_normalised_rank(found) == pytest.approx(1 / 20)


def test_queries_without_a_right_candidate_are_left_out() -> None:
    found = measure.ranks([1, 2, 3, 4], [0, 0, 5, 5], [True, False, False, False])
    assert found.query.tolist() == [0]


@pytest.mark.parametrize(
    ("score", "query", "right", "message"),
    [
        ([1.0, 2.0], [0, 0], [False, False], "no query has a right candidate"),
        ([1.0, 2.0], [0, 0], [True, True], "query 0 has more than one right candidate"),
        ([1.0, 2.0], [0, 1], [True, False], "query 0 has only one candidate"),
        ([1.0, float("nan")], [0, 0], [True, False], "score 1 is not finite"),
        ([1.0], [0, 0], [True, False], "do not match"),
    ],
)
def test_what_cannot_be_ranked_says_why(
    score: list[float], query: list[int], right: list[bool], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measure.ranks(score, query, right)
