"""Intervals: a weighted resample is a copied resample; the same seed gives the same figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from voxrisk import measure
from voxrisk.measure import Trials
from voxrisk.types import InputError


def simulated(seed: int, speakers: int = 8, utterances: int = 4, ties: bool = False) -> Trials:
    """Every speaker's utterances against every enrolled speaker."""
    rng = np.random.default_rng(seed)
    enroll, trial = np.divmod(np.arange(speakers * speakers * utterances), speakers * utterances)
    segment, trial = trial, trial // utterances
    score = rng.normal(size=enroll.size) + 1.5 * (enroll == trial)
    return measure.Trials(np.round(score) if ties else score, enroll, trial, segment=segment)


@given(st.integers(0, 1000), st.booleans())
def test_weights_are_copies(seed: int, ties: bool) -> None:
    """Every metric under weights equals the metric of trials copied that many times."""
    scored = simulated(seed, ties=ties)
    weights = measure.speaker_weights(8, resamples=1, seed=seed)
    w = weights[0]
    copies = np.where(
        scored.is_target,
        w[scored.enroll_speaker],
        w[scored.enroll_speaker] * w[scored.trial_speaker],
    )
    t = np.repeat(scored.score, copies * scored.is_target)
    n = np.repeat(scored.score, copies * ~scored.is_target)
    drawn = measure.bootstrap(scored, weights)
    expected = measure.score_metrics(t, n)
    for name in set(drawn) - {"d_sys"}:
        assert drawn[name][0] == pytest.approx(expected[name], abs=1e-9), name


def test_the_whole_set_is_the_resample_with_weight_one() -> None:
    scored = simulated(1, speakers=12, utterances=9)
    drawn = measure.bootstrap(scored, np.ones((1, 12), np.int32))
    expected = measure.score_metrics(scored.target, scored.nontarget)
    assert set(drawn) == set(expected)
    for name, value in expected.items():
        assert drawn[name][0] == pytest.approx(value, abs=1e-12), name


def test_the_same_seed_gives_the_same_figures_and_another_seed_does_not() -> None:
    scored = simulated(2)
    a, b, c = (measure.measure_scores(scored, resamples=50, seed=s) for s in (7, 7, 8))
    assert {k: v.to_json() for k, v in a.items()} == {k: v.to_json() for k, v in b.items()}
    assert a["rocch_eer"].interval != c["rocch_eer"].interval
    assert a["rocch_eer"].parameters == {"resamples": 50, "seed": 7}


def test_intervals_narrow_with_more_speakers() -> None:
    few, many = (
        measure.measure_scores(simulated(3, speakers=s), resamples=300)["interpolated_eer"].interval
        for s in (8, 60)
    )
    assert few is not None
    assert many is not None
    assert many.high - many.low < 0.6 * (few.high - few.low)


def test_intervals_cover_the_truth() -> None:
    """Speakers drawn from a known population: 95 % intervals cover its EER in most of 60 draws."""
    rng = np.random.default_rng(11)
    size, covered = 15, 0
    enroll, trial = np.divmod(np.arange(size * size * 5), size * 5)
    segment, trial = trial, trial // 5
    for _ in range(60):
        skill = rng.normal(2.0, 0.7, size)
        score = rng.normal(size=enroll.size) + np.where(enroll == trial, skill[enroll], 0.0)
        scored = measure.Trials(score, enroll, trial, segment=segment)
        drawn = measure.bootstrap(scored, measure.speaker_weights(size, resamples=200, seed=1))
        span = measure.percentile_interval(drawn["interpolated_eer"])
        covered += span.low <= 0.18385 <= span.high  # Φ(-2/(1 + √1.49)): the scores are normal
    assert 50 <= covered <= 60


@pytest.mark.parametrize(("events", "n"), [(0, 29), (3, 40), (40, 40)])
def test_exact_interval_is_clopper_and_pearson(events: int, n: int) -> None:
    expected = binomtest(events, n).proportion_ci(0.95, method="exact")
    found = measure.exact_interval(events, n)
    assert found.low == pytest.approx(expected.low)
    assert found.high == pytest.approx(expected.high)


def test_no_error_in_few_speakers_is_not_error_free() -> None:
    """EER 0 among 10 speakers gets an exact upper bound: 1 - 0.025^(1/10)."""
    scored = simulated(4, speakers=10)
    apart = Trials.coded(
        scored.score + 100.0 * scored.is_target,
        scored.is_target,
        scored.enroll_speaker,
        scored.trial_speaker,
        scored.query,
        scored.speakers,
    )
    estimate = measure.measure_scores(apart, resamples=20)["rocch_eer"]
    assert estimate.value == 0.0
    assert estimate.interval is not None
    assert estimate.interval.high == pytest.approx(1 - 0.025 ** (1 / 10))
    found = measure.measure_scores(apart, resamples=20)["precision_at_1"]
    assert found.value == 1.0
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.025 ** (1 / 10))


def test_too_few_speakers_have_no_interval() -> None:
    with pytest.raises(InputError, match="at least 5 speakers to resample, and there are 1"):
        measure.speaker_weights(1, resamples=10, seed=0)


def test_trials_need_one_speaker_for_each_score() -> None:
    with pytest.raises(InputError, match=r"trial_speaker has shape \(1,\) beside \(2,\) scores"):
        measure.Trials([0.1, 0.2], ["a", "b"], ["a"])
