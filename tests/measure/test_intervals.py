"""Laws of the intervals: they hold their figure, agree about chance and are never too sure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxrisk import measure
from voxrisk.measure import Trials
from voxrisk.measure.figures import FIGURES, weakest
from voxrisk.types import InputError


@st.composite
def score_sets(draw: st.DrawFn) -> Trials:
    """Random and extreme sets: few speakers, ties, no information, full separation, reversed."""
    speakers, each = draw(st.integers(5, 14)), draw(st.integers(1, 6))
    pull = draw(st.sampled_from([-3.0, 0.0, 0.5, 2.0, 4.0, 99.0]))
    spread = draw(st.sampled_from([0.0, 0.5, 3.0]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    enroll, segment = np.divmod(np.arange(speakers * speakers * each), speakers * each)
    trial = segment // each
    skill = pull + spread * rng.normal(size=speakers)
    score = rng.normal(size=enroll.size) + np.where(enroll == trial, skill[enroll], 0.0)
    digits = draw(st.sampled_from([0, 2, 9]))
    return measure.Trials(np.round(score, digits), enroll, trial, segment=segment)


@settings(max_examples=120)
@given(score_sets())
def test_every_interval_holds_its_figure(scored: Trials) -> None:
    found = measure.measure_scores(scored, resamples=40)
    assert set(found) | set(found.undefined) == {
        name for name, figure in FIGURES.items() if figure.kind in ("score", "rank", "speaker")
    }
    assert not set(found) & set(found.undefined)
    for name, e in found.items():
        assert e.interval is not None, name
        assert e.interval.low <= e.value <= e.interval.high, (name, e)
        assert np.isfinite([e.interval.low, e.interval.high]).all(), (name, e)


@settings(max_examples=120)
@given(score_sets())
def test_the_intervals_of_one_attack_agree_about_chance(scored: Trials) -> None:
    """EER ½, D_ECE 0 and min Cllr 1 are one statement: all hold it, or none does."""
    found = measure.measure_scores(scored, resamples=40)
    at_chance = found["rocch_eer"].interval.high == 0.5
    assert (found["d_ece"].interval.low == 0.0) == at_chance
    assert (found["min_cllr"].interval.high >= 1.0 - 1e-12) == at_chance
    assert (found["log10_l"].interval.low == 0.0) == at_chance
    if at_chance and "d_sys" in found:
        assert found["d_sys"].interval.low == 0.0


@settings(max_examples=60)
@given(score_sets())
def test_no_mistake_among_few_speakers_is_not_certainty(scored: Trials) -> None:
    """Full separation: every figure leaves room for what as few speakers could not show."""
    apart = Trials.coded(
        np.round(scored.score, 1) + 99.0 * scored.is_target, scored.is_target,
        scored.enroll_speaker, scored.trial_speaker, scored.query, scored.speakers,
    )  # fmt: skip
    found = measure.measure_scores(apart, resamples=40)
    n = len(scored.speakers)
    high = min(1.0 - 0.025 ** (1 / n), 0.5)
    assert found["rocch_eer"].interval.high == pytest.approx(high)
    limit = weakest(high)
    for name in ("d_ece", "min_cllr", "min_dcf_01", "min_dcf_001"):
        span = found[name].interval
        assert span.high - span.low > 0.02, name
        assert limit[name] == pytest.approx(span.low if name == "d_ece" else span.high), name
    assert found["log10_l"].value == pytest.approx(found["log10_l"].parameters["ceiling"])
    assert found["log10_l"].interval.low < found["log10_l"].value


@given(st.floats(0.0, 0.5), st.integers(0, 10_000))
def test_the_weakest_curve_of_an_eer_discloses_least(share: float, seed: int) -> None:
    """No set of scores with an EER of at most e says less than the single corner at e."""
    rng = np.random.default_rng(seed)
    t, n = rng.normal(4 * share, 1, 60), rng.normal(size=80)
    limit = weakest(measure.rocch_eer(t, n))
    assert measure.expected_disclosure(t, n) >= limit["d_ece"] - 1e-9
    assert measure.min_cllr(t, n) <= limit["min_cllr"] + 1e-9
    assert measure.min_dcf(t, n) <= limit["min_dcf_01"] + 1e-9
    largest = np.abs(measure.pav(t, n).llr).max() / np.log(10)
    assert largest >= limit["log10_l"] - 1e-9


def test_a_rate_without_spread_has_the_exact_interval() -> None:
    assert measure.rate_interval([0.0] * 30, [10] * 30) == measure.exact_interval(0, 30)
    assert measure.rate_interval([10.0] * 30, [10] * 30) == measure.exact_interval(30, 30)


def test_a_rate_of_independent_trials_is_clopper_and_pearson_but_for_students_t() -> None:
    """Speakers that differ as independent trials do: the effective trials are about all of them."""
    rng = np.random.default_rng(0)
    hits = rng.binomial(10, 0.3, 4000)
    span = measure.rate_interval(hits, np.full(4000, 10))
    plain = measure.exact_interval(int(hits.sum()), 40_000)
    assert (span.low, span.high) == pytest.approx((plain.low, plain.high), abs=2e-4)


def test_speakers_who_differ_widen_the_interval_of_a_rate() -> None:
    """All or nothing by speaker: ten trials each are worth one."""
    hits = np.repeat([0, 10], 20)
    span = measure.rate_interval(hits, np.full(40, 10))
    once = measure.exact_interval(20, 40)
    assert span.high - span.low == pytest.approx(once.high - once.low, rel=0.1)


def test_a_corrected_interval_takes_the_bias_off_and_widens_for_few_speakers() -> None:
    draws = np.linspace(0.3, 0.5, 1001)  # mean 0.4, a bias of 0.1
    plain, twice = (
        measure.corrected_interval(draws, 0.3, speakers=1000, bias=b) for b in (1.0, 2.0)
    )
    middle = 0.5 * (plain.low + plain.high)
    assert middle == pytest.approx(0.2)
    assert twice.high == 0.3  # stretched: the value itself is never outside
    few = measure.corrected_interval(draws, 0.3, speakers=6)
    assert few.high - few.low > 1.3 * (plain.high - plain.low)


def test_a_maximum_is_held_even_where_no_resample_reaches_it() -> None:
    """log10 l of original speech: 3.06, and resamples between 3.02 and 3.05."""
    draws = np.linspace(3.02, 3.05, 200)
    span = measure.maximum_interval(draws, 3.06, speakers=15, ceiling=4.0)
    assert 3.02 <= span.low < 3.03
    assert 3.06 < span.high < 3.1
    assert measure.maximum_interval(draws, 3.06, speakers=15, ceiling=3.06).high == 3.06


def test_no_interval_from_nothing() -> None:
    for interval in (
        lambda d: measure.percentile_interval(d),
        lambda d: measure.corrected_interval(d, 0.1, speakers=9),
        lambda d: measure.maximum_interval(d, 0.1, speakers=9, ceiling=1.0),
    ):
        with pytest.raises(InputError, match="at least two finite resamples"):
            interval(np.array([]))
        with pytest.raises(InputError, match="at least two finite resamples"):
            interval(np.array([0.1, np.nan]))
    with pytest.raises(InputError, match="0 to n events"):
        measure.exact_interval(3, 2)
    with pytest.raises(InputError, match="at least two with a trial each"):
        measure.rate_interval([1.0], [1.0])
