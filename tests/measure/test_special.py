"""The special functions are SciPy's, and nothing that is measured has to load SciPy's."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special as scipys

from voxrisk.measure import special

shapes = st.floats(-3.0, 9.0).map(lambda power: float(np.exp(power)))
shares = st.floats(0.0002, 0.9998)


@given(st.lists(st.floats(-7.0, 16.0), min_size=1, max_size=20))
def test_gamma_and_its_derivatives(powers: list[float]) -> None:
    x = np.exp(powers)
    assert special.log_gamma(x) == pytest.approx(scipys.gammaln(x), rel=1e-13, abs=1e-13)
    assert special.digamma(x) == pytest.approx(scipys.digamma(x), rel=1e-13, abs=1e-13)
    assert special.trigamma(x) == pytest.approx(scipys.zeta(2, x), rel=1e-13)
    assert special.log_beta(x, 2.5) == pytest.approx(scipys.betaln(x, 2.5), rel=1e-9, abs=1e-7)


@given(shapes, shapes, shares)
def test_beta(a: float, b: float, p: float) -> None:
    x = special.beta_quantile(np.float64(a), np.float64(b), np.float64(p))
    assert type(x) is float  # NumPy's cannot be written as JSON
    assert x == pytest.approx(scipys.betaincinv(a, b, p), rel=1e-9, abs=1e-14)
    assert special.beta_cdf(a, b, 0.3) == pytest.approx(scipys.betainc(a, b, 0.3), abs=1e-11)


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (1e-9, 50.0), (50.0, 1e-9), (3e6, 4e6)])
@pytest.mark.parametrize("p", [0.0005, 0.025, 0.5, 0.975, 0.9995])
def test_beta_of_extreme_shapes(a: float, b: float, p: float) -> None:
    found = special.beta_quantile(a, b, p)
    assert found == pytest.approx(scipys.betaincinv(a, b, p), rel=1e-8, abs=1e-14)


@given(st.integers(1, 100_000), st.floats(0.75, 0.9998))
def test_students_t(freedom: int, p: float) -> None:
    found = special.student_quantile(float(freedom), p)
    assert found == pytest.approx(scipys.stdtrit(freedom, p), rel=1e-9)


@given(st.floats(-12.0, 12.0))
def test_the_normal_distribution(x: float) -> None:
    p = special.normal_cdf(x)
    assert p == pytest.approx(scipys.ndtr(x), rel=1e-13)
    if 0.0 < p < 1.0:
        assert special.normal_quantile(p) == pytest.approx(scipys.ndtri(p), abs=1e-13)


def test_figures_and_their_intervals_load_no_special_functions_of_scipy() -> None:
    code = (
        "import sys, numpy as np\n"
        "from voxrisk import measure\n"
        "rng = np.random.default_rng(0)\n"
        "enroll, segment = np.divmod(np.arange(400), 20)\n"
        "same = enroll == segment\n"
        "trials = measure.Trials(rng.normal(size=400) + same, enroll, segment, segment=segment)\n"
        "found = measure.measure_scores(trials, resamples=50)\n"
        "assert found.rocch_eer.interval and found.rank_bits.interval\n"
        "measure.rate_interval([1, 0, 2, 1, 1, 0], [4] * 6)\n"
        "sys.exit(2 * ('scipy.special' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
