"""Bits of ranks, the cumulative match and the EER of each person: laws they must follow."""

import numpy as np
import pytest

from voxrisk.measure import Trials, measure_scores
from voxrisk.measure.rank_disclosure import (
    BOUNDS,
    disclosed_bits,
    fit_rank_law,
    rank_probabilities,
)
from voxrisk.measure.ranking import Ranks, cumulative_match, found_in_5, rank_bits, worst_rank_bits
from voxrisk.measure.speaker_eer import speaker_eers
from voxrisk.types import InputError


def drawn(a: float, b: float, *, queries: int = 600, seed: int = 0) -> Ranks:
    random = np.random.default_rng(seed)
    candidates = random.choice([20, 30], queries)
    rank = random.binomial(candidates - 1, random.beta(a, b, queries)) + 1.0
    return Ranks(np.arange(queries), rank, candidates)


def test_the_law_is_a_probability_and_bits_follow_their_definition() -> None:
    """Mean: log2 N − H(p); worst case: the largest log2(N p(k)) (arXiv 2508.05250)."""
    shapes = np.log([0.4, 2.5])
    p = rank_probabilities(32, shapes)
    assert p.sum() == pytest.approx(1.0)
    mean, worst = disclosed_bits(shapes, np.array([32]))
    assert mean == pytest.approx(5.0 + float(p @ np.log2(p)))
    assert worst == pytest.approx(float(np.log2(32 * p.max())))


@pytest.mark.parametrize(("a", "b"), [(0.5, 3.0), (0.1, 5.0)])
def test_the_fit_finds_the_law_that_drew_the_ranks(a: float, b: float) -> None:
    result = drawn(a, b)
    expected = disclosed_bits(np.log([a, b]), result.candidates)
    assert (rank_bits(result), worst_rank_bits(result)) == pytest.approx(expected, rel=0.08)


def test_ranks_without_information_disclose_nothing() -> None:
    random = np.random.default_rng(1)
    rank = random.integers(1, 41, 2000).astype(float)
    result = Ranks(np.arange(2000), rank, np.full(2000, 40))
    assert rank_bits(result) < 0.01
    assert worst_rank_bits(result) < 0.25


def test_to_be_found_never_is_not_less_than_nothing() -> None:
    """Always last is a confused attacker, not privacy below zero."""
    result = Ranks(np.arange(50), np.full(50, 20.0), np.full(50, 20))
    assert rank_bits(result) == pytest.approx(0.0, abs=1e-6)


def test_always_first_discloses_all_bits() -> None:
    result = Ranks(np.arange(50), np.ones(50), np.full(50, 32))
    assert rank_bits(result) == pytest.approx(5.0, abs=0.05)
    assert worst_rank_bits(result) <= 5.0 + 1e-9


def test_a_tie_counts_for_both_neighbours() -> None:
    candidates = np.full(40, 10)
    tied = fit_rank_law(np.full(40, 2.5), candidates).shapes
    split = fit_rank_law(np.array([2.0, 3.0] * 20), candidates).shapes
    assert tied == pytest.approx(split, abs=1e-3)


def test_cumulative_match_rises_to_one_and_holds_rank_five() -> None:
    result = drawn(0.5, 3.0)
    curve = cumulative_match(result)
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == 1.0
    assert curve[4] == found_in_5(result)
    with pytest.raises(InputError, match="from 6 on"):
        found_in_5(Ranks(np.arange(2), np.ones(2), np.full(2, 5)))


def scored(strength: float) -> Trials:
    """12 speakers with 5 recordings each, everybody against everybody; the first always found."""
    random = np.random.default_rng(0)
    names = [f"s{i:02d}" for i in range(12)]
    rows = [(e, t, f"{t}-{k}") for e in names for t in names for k in range(5)]
    score = [
        (9.0 if e == names[0] else strength) * (e == t) + random.standard_normal()
        for e, t, _ in rows
    ]
    enroll, trial, segment = zip(*rows, strict=True)
    return Trials(score, enroll, trial, segment=segment)


def test_the_person_who_is_always_found_is_not_hidden_by_the_mean() -> None:
    each = speaker_eers(scored(0.0))
    assert each["s00"] == 0.0
    assert max(each.values()) <= 0.5
    assert np.median(list(each.values())) > 0.3


def test_every_figure_has_its_interval_and_its_chance() -> None:
    found = measure_scores(scored(1.5), resamples=200)
    for name, chance in (("rank_bits", 0.0), ("worst_rank_bits", 0.0), ("speaker_eer", 0.5)):
        figure = found[name]
        assert figure.chance == chance
        assert figure.interval is not None
        assert figure.interval.low <= figure.value <= figure.interval.high
    assert found["rank_bits"].interval.low > 0.1
    assert found["found_in_5"].chance == pytest.approx(5 / 12)
    weaker = measure_scores(scored(0.5), resamples=0)
    assert weaker["rank_bits"].value < found["rank_bits"].value
    assert weaker["speaker_eer"].value > found["speaker_eer"].value


@pytest.mark.parametrize("seed", range(5))
def test_no_general_minimiser_finds_a_likelier_law(seed: int) -> None:
    """Newton's steps against L-BFGS-B of SciPy, for laws inside and at their bounds."""
    from scipy.optimize import minimize

    random = np.random.default_rng(seed)
    a, b = np.exp(random.uniform(-3.0, 1.0)), np.exp(random.uniform(-1.0, 3.0))
    candidates = random.choice([5, 20, 300], 50)
    rank = random.binomial(candidates - 1, random.beta(a, b, 50)) + 1.0
    rank = np.minimum(rank + 0.5 * random.integers(0, 2, 50), candidates)

    def unlikely(shapes: np.ndarray) -> float:
        total = 0.0
        for r, n in zip(rank, candidates.tolist(), strict=True):
            law = rank_probabilities(n, shapes)
            total -= np.log(law[[int(np.floor(r)) - 1, int(np.ceil(r)) - 1]]).mean()
        return float(total)

    law = fit_rank_law(rank, candidates)
    oracle = minimize(unlikely, np.array([-0.1, 0.1]), bounds=BOUNDS, method="L-BFGS-B")
    assert unlikely(law.shapes) <= oracle.fun + 1e-7
    # A query that counts a little more moves the law as its influence says.
    more = fit_rank_law(
        np.append(np.tile(rank, 400), rank[0]), np.append(np.tile(candidates, 400), candidates[0])
    )
    inside = np.abs(law.shapes) > 1e-6
    assert (more.shapes - law.shapes)[inside] * 400 == pytest.approx(
        law.influence[0][inside], rel=0.1, abs=2e-3
    )
