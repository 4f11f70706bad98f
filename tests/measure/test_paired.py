"""Laws of paired differences: symmetric, seeded, honest about chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from voxrisk.measure.paired import EXACT_UP_TO, holm, paired_difference
from voxrisk.types import InputError

rates = st.floats(0.0, 1.0, width=32).map(float)
pairs = st.integers(5, 24).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=rates), arrays(np.float64, n, elements=rates)
    )
)


@given(pairs)
def test_swapping_the_systems_turns_the_sign_and_keeps_the_p_value(pair):
    a, b = pair
    one, other = (paired_difference(x, y, resamples=200) for x, y in ((a, b), (b, a)))
    assert one.difference.value == -other.difference.value
    assert one.p_value == other.p_value
    assert one.difference.interval.low == pytest.approx(-other.difference.interval.high, abs=1e-12)


@given(pairs, st.randoms(use_true_random=False))
def test_order_of_speakers_is_irrelevant_to_the_difference_and_the_exact_test(pair, random):
    a, b = pair
    order = list(range(len(a)))
    random.shuffle(order)
    one = paired_difference(a, b, resamples=100)
    other = paired_difference(a[order], b[order], resamples=100)
    assert one.difference.value == pytest.approx(other.difference.value, abs=1e-12)
    if len(a) <= EXACT_UP_TO:
        assert one.p_value == other.p_value


@given(arrays(np.float64, 12, elements=rates))
def test_a_system_does_not_differ_from_itself(values):
    same = paired_difference(values, values, resamples=100)
    assert (same.difference.value, same.p_value) == (0.0, 1.0)
    assert (same.difference.interval.low, same.difference.interval.high) == (0.0, 0.0)


@given(pairs)
def test_p_value_is_a_probability_and_never_zero(pair):
    assert 0.0 < paired_difference(*pair, resamples=100).p_value <= 1.0


def test_exact_p_value_equals_scipys_permutation_test():
    rng = np.random.default_rng(3)
    for n in (5, 9, 12):
        a, b = rng.random(n), rng.random(n) * 0.8
        theirs = stats.permutation_test(
            (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=np.inf,
        )  # fmt: skip
        assert paired_difference(a, b).p_value == pytest.approx(theirs.pvalue, abs=1e-12)


def test_sampled_p_value_comes_near_the_t_test_for_many_speakers():
    rng = np.random.default_rng(0)
    a = rng.normal(0.05, 0.2, 100)
    found = paired_difference(a, np.zeros(100), resamples=20_000)
    assert found.p_value == pytest.approx(stats.ttest_1samp(a, 0.0).pvalue, abs=0.01)


def test_sampled_p_value_counts_the_pattern_in_hand_so_it_is_never_zero():
    assert paired_difference(np.ones(30), np.zeros(30), resamples=99).p_value == 0.01


def test_same_seed_same_result_and_another_seed_another_interval():
    rng = np.random.default_rng(1)
    a, b = rng.random(20), rng.random(20)
    assert paired_difference(a, b, seed=4) == paired_difference(a, b, seed=4)
    assert paired_difference(a, b, seed=4) != paired_difference(a, b, seed=5)


def test_interval_covers_the_true_difference_of_twenty_speakers_as_often_as_it_says():
    """95 % intervals of 20 speakers who are linked or not: within 3 standard errors of 95 %."""
    rng = np.random.default_rng(11)
    hits = 0
    for seed in range(400):
        a, b = rng.binomial(10, 0.6, 20) / 10, rng.binomial(10, 0.45, 20) / 10
        span = paired_difference(a, b, resamples=600, seed=seed).difference.interval
        hits += span.low <= 0.15 <= span.high
    assert hits / 400 == pytest.approx(0.95, abs=0.033)


def test_test_rejects_alike_systems_no_more_often_than_five_percent():
    rng = np.random.default_rng(5)
    p = [
        paired_difference(*rng.binomial(5, 0.5, (2, 10)) / 5, resamples=10).p_value
        for _ in range(400)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= 1.0).all()
    assert adjusted.min() == min(1.0, len(p) * min(p))
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0.1] * 4, [0.2] * 4, "at least 5 speakers in common; there are 4"),
        ([0.1] * 5, [0.2] * 6, "do not match"),
        ([0.1] * 4 + [float("nan")], [0.2] * 5, "speaker 4 is not finite"),
    ],
)
def test_bad_input_is_named(first, second, message):
    with pytest.raises(InputError, match=message):
        paired_difference(first, second)
