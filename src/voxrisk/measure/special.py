"""The special functions that intervals and ranks need, as exact as SciPy's.

Not SciPy's own, because ``import scipy.special`` loads all of NumPy for the sake of other array
libraries: 0.15 to 0.3 s of every command, more than all its figures take. What is here is checked
against it (``tests/measure/test_special.py``).

References: Abramowitz & Stegun, Handbook of Mathematical Functions, 6.1.40, 6.3.18, 6.4.12
(asymptotic series), 6.1.15, 6.3.5, 6.4.6 (recurrences); DLMF 8.17.22 (the continued fraction).
"""

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_SHIFT = np.arange(10.0)  # from x + 10 on, six terms of a series are exact
_EXACT = 1e-15  # a continued fraction that changes by less is found
_normal = NormalDist()


def normal_cdf(x: float) -> float:
    """Probability that a standard normal number is below x.

    >>> normal_cdf(0.0)
    0.5
    """
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The number below which a standard normal one lies with probability p, 0 < p < 1.

    >>> round(normal_quantile(0.975), 3)
    1.96
    """
    return _normal.inv_cdf(p)


def log_gamma(x: ArrayLike) -> Floats:
    """Logarithm of the gamma function of numbers above 0.

    >>> log_gamma([1.0, 5.0]).round(12).tolist() == [0.0, round(math.log(24), 12)]
    True
    """
    low, z = _far(x)
    series = _series(z, 1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360) * z
    far = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2.0 * math.pi) + series
    return np.asarray(far - np.log(low).sum(axis=-1))


def log_beta(a: ArrayLike, b: ArrayLike) -> Floats:
    """Logarithm of the beta function."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.asarray(log_gamma(a) + log_gamma(b) - log_gamma(a + b))


def digamma(x: ArrayLike) -> Floats:
    """The derivative of :func:`log_gamma`.

    >>> round(float(digamma(1.0)), 6)  # Euler's constant
    -0.577216
    """
    low, z = _far(x)
    series = _series(z, -1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760)
    return np.asarray(np.log(z) - 0.5 / z + series - (1.0 / low).sum(axis=-1))


def trigamma(x: ArrayLike) -> Floats:
    """The derivative of :func:`digamma`.

    >>> round(float(trigamma(1.0)) * 6 / math.pi**2, 12)
    1.0
    """
    low, z = _far(x)
    series = _series(z, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730) / z
    return np.asarray(1.0 / z + 0.5 / z**2 + series + (1.0 / low**2).sum(axis=-1))


def _far(x: ArrayLike) -> tuple[Floats, Floats]:
    """Ten numbers from x on, along a last axis, and x + 10."""
    numbers = np.asarray(x, np.float64)
    return numbers[..., None] + _SHIFT, numbers + float(_SHIFT.size)


def _series(z: Floats, *terms: float) -> Floats:
    """Σ termsᵢ / z^(2i), i from 1."""
    inverse, total = 1.0 / (z * z), np.zeros_like(z)
    for term in reversed(terms):
        total = (total + term) * inverse
    return total


def beta_cdf(a: float, b: float, x: float) -> float:
    """Probability that a number of the beta distribution with shapes a and b is below x.

    >>> round(beta_cdf(2.0, 2.0, 0.5), 12)
    0.5
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # where the fraction is the quicker one of the two
        return 1.0 - beta_cdf(b, a, 1.0 - x)
    log_weight = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_weight) / (a * _beta_fraction(a, b, x))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """1 + d₁/(1 + d₂/(1 + …)), by Lentz's method; about √(a + b) terms."""
    tiny = 1e-300
    found = above = 1.0
    below = 0.0
    m = 0
    while True:
        for part in (
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
            (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)),
        ):
            below = 1.0 / ((1.0 + part * below) or tiny)
            above = (1.0 + part / above) or tiny
            found *= above * below
        m += 1
        if abs(above * below - 1.0) < _EXACT or m > 100_000:
            return found


def beta_quantile(a: float, b: float, p: float) -> float:
    """The number below which the beta distribution has probability p.

    >>> round(beta_quantile(1.0, 29.0, 0.975), 6) == round(1 - 0.025 ** (1 / 29), 6)
    True
    """
    a, b, p = float(a), float(b), float(p)  # NumPy's own kind warns and spreads
    log_norm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def slope(x: float) -> float:
        weight = log_norm + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x)
        return math.exp(min(weight, 700.0))

    return _solved(lambda x: beta_cdf(a, b, x), slope, p, min(a / (a + b), 1.0 - 2.0**-53))


def _solved(
    cdf: Callable[[float], float], slope: Callable[[float], float], p: float, start: float
) -> float:
    """Where a distribution on 0 to 1 reaches p: Newton's steps, halving where they lead astray."""
    low, high, x = 0.0, 1.0, start
    for _ in range(1100):
        over = cdf(x) - p
        if over == 0.0:
            return x
        low, high = (low, x) if over > 0.0 else (x, high)
        steep = slope(x)
        after = x - over / steep if steep > 0.0 else low
        if not low < after < high:
            after = 0.5 * (low + high)
        if abs(after - x) <= 4e-16 * x or after in (low, high):
            return after
        x = after
    return x


@cache
def student_quantile(freedom: float, p: float) -> float:
    """The number below which Student's t with these degrees of freedom lies, ½ < p < 1.

    >>> round(student_quantile(1.0, 0.75), 12)  # Cauchy
    1.0
    """
    # t² / (t² + freedom) is beta-distributed, with shapes ½ and half the degrees of freedom.
    share = beta_quantile(0.5, freedom / 2.0, 2.0 * p - 1.0)
    return math.sqrt(freedom * share / (1.0 - share))
