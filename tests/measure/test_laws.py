"""The laws every score metric obeys, on random scores with many ties."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_curve

from voxrisk import measure
from voxrisk.measure import _kernels
from voxrisk.types import InputError

few_values = st.integers(-4, 4).map(float)
any_values = st.floats(-30, 30, allow_subnormal=False, width=32)
values = st.one_of(st.just(few_values), st.just(any_values))


@st.composite
def score_sets(draw: st.DrawFn, most: int = 60) -> tuple[np.ndarray, np.ndarray]:
    element = draw(values)
    sizes = st.integers(1, most)
    return tuple(draw(arrays(np.float64, draw(sizes), elements=element)) for _ in range(2))


ORDER_METRICS: list[Callable[..., float]] = [
    measure.rocch_eer,
    measure.interpolated_eer,
    measure.kaldi_eer,
    measure.vertex_eer,
    measure.min_dcf,
    measure.min_cllr,
    measure.expected_disclosure,
    measure.worst_case_disclosure,
]
ALL_METRICS = [*ORDER_METRICS, measure.cllr, measure.d_sys]


@pytest.mark.parametrize("n_target", [1, 7, 400])
@pytest.mark.parametrize("n_nontarget", [1, 7, 400])
def test_constant_scores_are_zero_evidence(n_target: int, n_nontarget: int) -> None:
    t, n = np.full(n_target, 2.5), np.full(n_nontarget, 2.5)
    assert measure.rocch_eer(t, n) == 0.5
    assert measure.interpolated_eer(t, n) == 0.5
    assert measure.expected_disclosure(t, n) == 0.0
    assert measure.tag(measure.worst_case_disclosure(t, n)) == "0"
    assert measure.min_cllr(t, n) == pytest.approx(1.0, abs=1e-12)
    if n_target >= 20:
        assert measure.d_sys(t, n) == 0.0
    assert measure.min_dcf(t, n) == pytest.approx(1.0)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (5, 1000), (300, 20)])
def test_separated_scores_are_full_disclosure(k: int, m: int) -> None:
    """EER 0, D_ECE 1/(2 ln 2), min Cllr 0, D_sys 1; l = (k + 1)·m/k or (m + 1)·k/m."""
    t, n = np.linspace(10, 11, k), np.linspace(-1, 0, m)
    for eer in (measure.rocch_eer, measure.interpolated_eer, measure.kaldi_eer, measure.vertex_eer):
        assert eer(t, n) == 0.0
    assert measure.expected_disclosure(t, n) == pytest.approx(0.7213475204444817, abs=1e-12)
    assert measure.min_cllr(t, n) == 0.0
    if k >= 20:
        assert measure.d_sys(t, n) == pytest.approx(1.0, abs=1e-9)
    l = max((k + 1) * m / k, (m + 1) * k / m)  # noqa: E741
    assert measure.worst_case_disclosure(t, n) == pytest.approx(np.log10(l), abs=1e-12)


def test_vpc_d_sys_loses_both_end_bins() -> None:
    """Perfect separation of two uniform heaps: 1 by the sum over bins, less by the trapezoid."""
    t, n = np.linspace(1, 2, 1000), np.linspace(-1, 0, 1000)
    assert measure.d_sys(t, n) == pytest.approx(1.0)
    assert measure.d_sys(t, n, compat="vpc") < 0.99


@given(score_sets(), st.randoms(use_true_random=False))
def test_order_of_trials_is_irrelevant(
    scores: tuple[np.ndarray, np.ndarray], random: "st.randoms"
) -> None:
    shuffled = [np.array(random.sample(list(part), len(part))) for part in scores]
    for metric in [*ORDER_METRICS, measure.cllr]:
        assert metric(*shuffled) == pytest.approx(metric(*scores), abs=1e-12), metric.__name__
    many = [np.tile(part, 20) for part in (scores[0], shuffled[0])]
    assert measure.d_sys(many[0], scores[1]) == measure.d_sys(many[1], shuffled[1])


@given(score_sets())
def test_a_rising_map_of_the_scores_changes_nothing(scores: tuple[np.ndarray, np.ndarray]) -> None:
    # Doubling and cubing small whole numbers keeps every order and tie exactly.
    t, n = (np.round(part) for part in scores)
    for metric in ORDER_METRICS:
        assert metric(8 * t**3 + 2 * t, 8 * n**3 + 2 * n) == metric(t, n), metric.__name__


@given(score_sets())
def test_copying_every_trial_changes_nothing(scores: tuple[np.ndarray, np.ndarray]) -> None:
    t, n = scores
    for metric in (measure.rocch_eer, measure.interpolated_eer, measure.min_cllr, measure.min_dcf,
                   measure.expected_disclosure, measure.cllr):  # fmt: skip
        expected = metric(t, n)
        assert metric(np.repeat(t, 3), np.repeat(n, 3)) == pytest.approx(expected, abs=1e-9)


@given(score_sets())
def test_swapping_the_classes_and_the_sign_mirrors_the_curve(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    """Same-speaker evidence becomes different-speaker evidence of the same size."""
    t, n = scores
    for metric in (measure.rocch_eer, measure.interpolated_eer, measure.min_cllr, measure.cllr,
                   measure.expected_disclosure, measure.worst_case_disclosure):  # fmt: skip
        assert metric(-n, -t) == pytest.approx(metric(t, n), abs=1e-9), metric.__name__


@given(score_sets())
def test_ranges(scores: tuple[np.ndarray, np.ndarray]) -> None:
    assert 0.0 <= measure.rocch_eer(*scores) <= 0.5
    assert measure.rocch_eer(*scores) <= measure.interpolated_eer(*scores) + 1e-12
    assert 0.0 <= measure.kaldi_eer(*scores) < 1.0
    assert 0.0 <= measure.min_cllr(*scores) <= 1.0 + 1e-12
    assert measure.min_cllr(*scores) <= measure.cllr(*scores) + 1e-12
    assert 0.0 <= measure.expected_disclosure(*scores) <= 0.7213475204444818
    assert 0.0 <= measure.d_sys(np.tile(scores[0], 20), scores[1]) <= 1.0
    assert 0.0 <= measure.min_dcf(*scores) <= 1.0 + 1e-12


@given(score_sets())
@settings(max_examples=25)
def test_closed_form_of_expected_disclosure_is_the_integral(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    """D_ECE by Eq. 6 equals the integral of Eq. 5, to 1e-9."""
    curve = measure.roc(*scores)

    def gap(pi: float) -> float:
        odds = np.log(pi) - np.log1p(-pi)
        ece = measure.ece_profile(curve, log_odds=odds)
        return float(measure.zero_evidence(odds)[0] - ece[0])

    area, _ = quad(gap, 0.0, 1.0, epsabs=1e-11, epsrel=1e-11, limit=400)
    assert measure.expected_disclosure(curve) == pytest.approx(area, abs=1e-9)


@given(st.floats(-700, 700))
def test_z_has_the_sign_of_the_evidence(a: float) -> None:
    """Z rises through 0: evidence for the truth is never counted as negative, however small."""
    z = _kernels.zebra_z(a)
    assert z >= 0.0 if a >= 0 else z <= 0.0
    assert z <= 0.25


def test_z_is_smooth_where_the_series_takes_over() -> None:
    x = np.concatenate([np.linspace(-0.031, 0.031, 2001), [1e-6, 1e-9, 1e-16]])
    z = np.array([_kernels.zebra_z(a) for a in np.sort(x)])
    assert (np.diff(z) > 0).all()
    assert _kernels.zebra_z(1e-6) == pytest.approx(1e-6 / 6, rel=1e-5)


@given(score_sets())
def test_pav_agrees_with_scikit_learn(scores: tuple[np.ndarray, np.ndarray]) -> None:
    t, n = scores
    x, y = np.concatenate(scores), np.concatenate([np.ones(t.size), np.zeros(n.size)])
    posterior = IsotonicRegression().fit(x, y).predict(x)
    with np.errstate(divide="ignore"):
        expected = np.log(posterior) - np.log1p(-posterior) - np.log(t.size / n.size)
    np.testing.assert_allclose(measure.pav(t, n)(x), expected, atol=1e-9)


@given(score_sets())
def test_laplace_is_pav_with_a_dummy_pair_at_either_end(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    t, n = scores
    plain = measure.pav(t, n)
    if plain.llr.size == 1:
        assert (measure.pav(t, n, laplace=True).llr == 0.0).all()
        return
    ends = [-1e6, 1e6]
    dummy = measure.pav(np.append(t, ends), np.append(n, ends))
    x = np.concatenate(scores)
    shift = np.log((t.size + 2) / (n.size + 2)) - np.log(t.size / n.size)
    np.testing.assert_allclose(measure.pav(t, n, laplace=True)(x), dummy(x) + shift, atol=1e-9)


@given(score_sets())
def test_interpolated_and_vertex_eer_agree_with_the_curve_of_scikit_learn(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    t, n = scores
    y = np.concatenate([np.ones(t.size), np.zeros(n.size)])
    fpr, tpr, _ = roc_curve(y, np.concatenate(scores), drop_intermediate=False)
    fnr = 1 - tpr
    i = int(np.argmax(fpr >= fnr))
    a, b = fnr[i - 1] - fpr[i - 1], fnr[i] - fpr[i]
    expected = fpr[i - 1] + (fpr[i] - fpr[i - 1]) * a / (a - b)
    assert measure.interpolated_eer(t, n) == pytest.approx(expected, abs=1e-9)


@given(score_sets())
def test_vertex_eer_is_the_nearest_corner_of_the_curve_of_scikit_learn(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    t, n = scores
    y = np.concatenate([np.ones(t.size), np.zeros(n.size)])
    fpr, tpr, _ = roc_curve(y, np.concatenate(scores), drop_intermediate=False)
    turn = np.abs(np.diff(fpr)[:-1] * np.diff(tpr)[1:] - np.diff(fpr)[1:] * np.diff(tpr)[:-1])
    corner = np.concatenate([[True], turn > 1e-12, [True]])
    distance = np.abs(1 - tpr - fpr)[corner]
    near = fpr[corner][distance < distance.min() + 1e-12]
    assert np.abs(near - measure.vertex_eer(t, n)).min() < 1e-12


@given(score_sets())
def test_kaldi_eer_agrees_with_its_definition(scores: tuple[np.ndarray, np.ndarray]) -> None:
    """Walk the sorted targets one by one, as the definition says."""
    t, n = np.sort(scores[0]), np.sort(scores[1])
    position = 0
    while position + 1 < t.size:
        rank = n.size - 1 - n.size * position // t.size
        if n[max(rank, 0)] < t[position]:
            break
        position += 1
    assert measure.kaldi_eer(*scores) == position / t.size


@given(score_sets(), st.floats(0.001, 0.9))
def test_min_dcf_is_the_least_cost_over_all_thresholds(
    scores: tuple[np.ndarray, np.ndarray], p: float
) -> None:
    t, n = scores
    costs = [
        p * (t < x).mean() + (1 - p) * (n >= x).mean() for x in [*np.concatenate(scores), np.inf]
    ]
    expected = min(costs) / min(p, 1 - p)
    assert measure.min_dcf(t, n, p_target=p) == pytest.approx(expected, abs=1e-9)


@given(score_sets())
def test_d_sys_agrees_with_its_definition_bin_by_bin(
    scores: tuple[np.ndarray, np.ndarray],
) -> None:
    t, n = np.repeat(scores[0], 25), scores[1]
    if np.ptp(np.concatenate([t, n])) == 0:
        return
    edges = np.linspace(min(t.min(), n.min()), max(t.max(), n.max()), min(t.size // 10, 100) + 1)
    y1, _ = np.histogram(t, edges, density=True)
    y2, _ = np.histogram(n, edges, density=True)
    total = 0.0
    for a, b, width in zip(y1, y2, np.diff(edges), strict=True):
        ratio = 1.0 if a == b == 0 else np.inf if b == 0 else a / b
        local = 1.0 if np.isinf(ratio) else max(2 * ratio / (1 + ratio) - 1, 0.0)
        total += local * a * width
    assert measure.d_sys(t, n) == pytest.approx(total, abs=1e-9)


def test_an_independent_library_finds_the_same_llrs_and_costs() -> None:
    """``lir`` (Netherlands Forensic Institute): Cllr, min Cllr and PAV LLRs, scores with ties."""
    from lir.algorithms.isotonic_regression import IsotonicCalibrator
    from lir.data.models import LLRData
    from lir.metrics import cllr as lir_cllr
    from lir.metrics import cllr_min as lir_min

    rng = np.random.default_rng(3)
    t, n = np.round(rng.normal(1.5, 1, 300), 1), np.round(rng.normal(size=900), 1)
    x, y = np.concatenate([t, n]), np.concatenate([np.ones(t.size, int), np.zeros(n.size, int)])
    decimal = LLRData(features=x.reshape(-1, 1) / np.log(10), labels=y)
    assert measure.cllr(t, n) == pytest.approx(lir_cllr(decimal), abs=1e-9)
    assert measure.min_cllr(t, n) == pytest.approx(lir_min(decimal), abs=1e-9)
    with np.errstate(divide="ignore"):
        llr = np.ravel(IsotonicCalibrator().fit(x, y).transform(x)) * np.log(10)
    np.testing.assert_allclose(measure.pav(t, n)(x), llr, atol=1e-9)


@pytest.mark.parametrize(
    ("target", "nontarget", "message"),
    [
        ([], [1.0], "no target trials"),
        ([1.0], [], "no nontarget trials"),
        ([1.0, float("nan")], [0.0], "1 of 2 target scores are not finite, the first at index 1"),
        ([1.0], [0.0, float("inf"), 2.0], "1 of 3 nontarget scores are not finite"),
        ([[1.0]], [0.0], r"flat array, not of shape \(1, 1\)"),
    ],
)
@pytest.mark.parametrize("metric", ALL_METRICS)
def test_what_cannot_be_computed_says_why(
    metric: Callable[..., float], target: list[float], nontarget: list[float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        metric(target, nontarget)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="p_target is 0"):
        measure.min_dcf([1.0], [0.0], p_target=0.0)
    with pytest.raises(InputError, match="costs must be positive"):
        measure.min_dcf([1.0], [0.0], cost_miss=-1.0)
    with pytest.raises(InputError, match="knows only 'vpc'"):
        measure.d_sys([1.0], [0.0], compat="vpc2022")
    with pytest.raises(InputError, match="omega is 0"):
        measure.d_sys([1.0] * 20, [0.0], omega=0.0)
    with pytest.raises(ValueError, match="a worst case is 0 or more"):
        measure.tag(-0.1)
    with pytest.raises(TypeError, match="not both"):
        measure.rocch_eer(measure.roc([1.0], [0.0]), [1.0])
    with pytest.raises(TypeError, match="target and the nontarget"):
        measure.rocch_eer([1.0])


def test_tag_boundaries_belong_to_the_higher_category() -> None:
    """Table 1 of the paper: 10^1 is B, 10^2 is C, 10^4 is D, 10^5 is E, 10^6 is F."""
    found = [measure.tag(x) for x in (0, 1e-9, 0.999, 1, 1.999, 2, 3.999, 4, 5, 6, 9)]
    assert "".join(found) == "0AABBCCDEFF"


@pytest.mark.parametrize(
    ("k", "n_target", "n_nontarget", "category"),
    [
        (1, 2, 10, "B"),
        (4, 5, 10, "B"),
        (9, 10, 10, "B"),
        (1, 1, 50, "C"),
        (4, 7, 140, "C"),
        (3, 6, 150, "C"),
        (9, 13, 130, "C"),
        (1, 2, 10_000, "D"),
        (7, 9, 11_250, "D"),
        (4, 4, 80_000, "E"),
        (24, 30, 120_000, "E"),
        (19, 25, 1_250_000, "F"),
    ],
)
def test_counts_that_make_a_power_of_ten_are_at_the_border(
    k: int, n_target: int, n_nontarget: int, category: str
) -> None:
    """K targets above everything else give l = (k + 1)·N_nontarget/N_target, a power of ten here.

    The other targets lie among the nontargets, so that no other block says more.
    """
    l = (k + 1) * n_nontarget / n_target  # noqa: E741
    assert l in (1e1, 1e2, 1e4, 1e5, 1e6)
    rest = np.zeros(n_target - k)
    scores = np.concatenate((rest, np.ones(k))), np.zeros(n_nontarget)
    found = measure.worst_case_disclosure(*scores)
    assert found == pytest.approx(np.log10(l), abs=1e-12)
    assert measure.tag(found) == category


def test_rounding_does_not_lift_what_is_below_a_border() -> None:
    assert measure.tag(2.0 - 1e-9) == "B"
    assert measure.tag(1e-9) == "A"


@given(st.integers(1, 19), st.integers(1, 40), st.booleans())
def test_d_sys_of_few_targets_is_undefined_and_never_a_number(
    n_target: int, n_nontarget: int, apart: bool
) -> None:
    """One bin would say 0, unlinkable, of perfectly separated scores."""
    t, n = np.full(n_target, 9.0 * apart), np.zeros(n_nontarget)
    with pytest.raises(InputError, match=f"D_sys needs at least 20 .* there are {n_target}; add"):
        measure.d_sys(t, n)
    assert "d_sys" not in measure.score_metrics(t, n)
    names = [str(i) for i in range(n_target + n_nontarget)]
    scored = measure.Trials([*t, *n], names, [*names[:n_target], *["x"] * n_nontarget])
    found = measure.measure_scores(scored, resamples=0)
    assert "D_sys needs 20" in found.undefined["d_sys"]
    with pytest.raises(KeyError, match="d_sys is undefined"):
        found["d_sys"]


@given(st.integers(2, 30), st.integers(1, 5))
def test_the_best_tenth_of_fewer_than_ten_is_undefined(candidates: int, queries: int) -> None:
    """The right candidate always wins: found or undefined, but never outside the best tenth."""
    score = np.tile(np.arange(candidates, 0, -1.0), queries)
    query = np.repeat(np.arange(queries), candidates)
    right = np.tile(np.arange(candidates) == 0, queries)
    placed = measure.ranks(score, query, right)
    if candidates < 10:
        with pytest.raises(InputError, match=f"has {candidates} candidates; the best tenth needs"):
            measure.precision_at_10_percent(placed)
    else:
        assert measure.precision_at_10_percent(placed) == 1.0


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 99))
def test_no_worst_case_is_above_the_ceiling_of_so_many_trials(
    n_target: int, n_nontarget: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ceiling = measure.worst_case_ceiling(n_target, n_nontarget)
    t, n = rng.normal(1, 1, n_target), rng.normal(size=n_nontarget)
    assert measure.worst_case_disclosure(t, n) <= ceiling + 1e-9
    apart = measure.worst_case_disclosure(t + 99, n)
    assert apart == pytest.approx(ceiling, abs=1e-9)


def test_cllr_of_tiny_and_huge_costs() -> None:
    """No cost is lost beside a 1, none overflows: compare with a sum in extended precision."""
    rng = np.random.default_rng(5)
    for scale in (1e-3, 1.0, 30.0, 700.0, 1e5):
        t, n = rng.normal(scale, scale, 500), rng.normal(-scale, scale, 500)
        exact = [np.logaddexp(0, x.astype(np.longdouble)).mean() for x in (-t, n)]
        assert measure.cllr(t, n) == pytest.approx(float(sum(exact) / 2 / np.log(2)), rel=1e-12)
    assert measure.cllr([40.0], [-40.0]) == pytest.approx(np.exp(-40.0) / np.log(2), rel=1e-9)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_evidence_that_is_not_a_number_never_reads_as_none(at: int) -> None:
    """As NumPy's maximum does; a sum does so anyway."""
    llr = np.array([0.5, -2.0, 1.0])
    assert _kernels.strongest(llr) == 2.0
    llr[at] = np.nan
    assert np.isnan(_kernels.strongest(llr))
    assert np.isnan(_kernels.sum_of(llr))
