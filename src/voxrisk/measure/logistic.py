"""Multinomial logistic regression and ridge regression, small and weighted, on NumPy and SciPy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.one_core import lowest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ITERATIONS = 80
PRECISION = 1e-5  # of the cost, relative: guesses hardly change beyond it
LIMITS = {"maxiter": ITERATIONS, "ftol": PRECISION, "gtol": 1e-4}
NEVER = -30.0  # logit of a class that nothing was learned about


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear map behind a standardisation: ``((x - mean) / scale) @ weights + bias``.

    Attributes:
        mean: ``(d,)``.
        scale: ``(d,)``.
        weights: ``(d, k)``.
        bias: ``(k,)``.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    bias: Floats

    def __call__(self, vectors: NDArray[np.floating]) -> Floats:
        """Values ``(n, k)`` of vectors ``(n, d)``."""
        return ((vectors - self.mean) / self.scale) @ self.weights + self.bias


def log_softmax(logits: Floats) -> Floats:
    """Logarithms of shares ``(n, k)`` that add up to one in each row.

    >>> np.exp(log_softmax(np.array([[0.0, 0.0]]))).tolist()
    [[0.5, 0.5]]
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def fit_logistic(
    vectors: NDArray[np.floating],
    labels: Integers,
    *,
    classes: int,
    weights: Floats | None = None,
    penalty: float = 1e-2,
) -> Linear:
    """Weights that make the labels most likely: logits ``(n, classes)``, trained by L-BFGS.

    Minimises the weighted mean of -log p(label) + penalty/2·|W|² on standardised vectors; the bias
    is free. Rows with larger weights count for more. A class without a row is never believed in.

    Args:
        vectors: ``(n, d)``.
        labels: ``(n,)`` 0 to ``classes - 1``.
        classes: How many there are; two at least.
        weights: ``(n,)``, or all alike.
        penalty: Larger is more cautious.
    """
    share, mean, scale = _standard(vectors, weights)
    # Single precision halves the time, and the standardised vectors need no more.
    x = np.asarray((vectors - mean) / scale, dtype=np.float32)
    n, d = x.shape
    truth = np.zeros((n, classes))
    truth[np.arange(n), labels] = 1.0

    def cost(flat: Floats) -> tuple[float, Floats]:
        w, b = flat[: d * classes].reshape(d, classes), flat[d * classes :]
        log_p = log_softmax((x @ w.astype(np.float32)).astype(np.float64) + b)
        gap = (np.exp(log_p) - truth) * share[:, None]
        pull = (x.T @ gap.astype(np.float32)).astype(np.float64)
        slope = np.concatenate([(pull + penalty * w).ravel(), gap.sum(axis=0)])
        loss = -float((share * log_p[np.arange(n), labels]).sum())
        return loss + 0.5 * penalty * float(np.square(w).sum()), slope

    start = np.zeros((d + 1) * classes)
    found = lowest(cost, start, options=LIMITS)
    bias = np.where(truth.any(axis=0), found[d * classes :], NEVER)
    return Linear(mean, scale, found[: d * classes].reshape(d, classes), bias)


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """Several opinions on the classes of a row as one: a weight for each, a shift for each class.

    Attributes:
        level: ``(m, k)`` mean of each opinion.
        spread: ``(m,)`` its deviation.
        weights: ``(m,)`` 0 or more.
        bias: ``(k,)``.
    """

    level: Floats
    spread: Floats
    weights: Floats
    bias: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Log-likelihoods of the classes ``(n, k)`` from scores ``(m, n, k)``."""
        x = (scores - self.level[:, None]) / self.spread[:, None, None]
        return log_softmax(np.tensordot(self.weights, x, axes=1) + self.bias)


def fit_weighing(scores: Floats, labels: Integers, *, share: Floats, caution: float) -> Weighing:
    """How much each of m opinions counts, so that the labels become most likely.

    Minimises the weighted mean of -log p(label) + caution/2·(|weights|² + |bias|²). No weight is
    negative: an opinion that is wrong more often than right is ignored, not believed backwards.

    Args:
        scores: ``(m, n, k)`` log-scores of the classes, by each opinion.
        labels: ``(n,)`` 0 to ``k - 1``.
        share: ``(n,)`` how much each row counts; they add up to one.
        caution: Larger trusts all opinions less.
    """
    m, n, k = scores.shape
    # Brought to one scale first, so that the penalty means the same for every classifier.
    level = scores.mean(axis=1)
    spread = np.maximum((scores - level[:, None]).std(axis=(1, 2)), 1e-12)
    x, rows = (scores - level[:, None]) / spread[:, None, None], np.arange(n)
    target = np.zeros((n, k))
    target[rows, labels] = 1.0

    def cost(flat: Floats) -> tuple[float, Floats]:
        log_p = log_softmax(np.tensordot(flat[:m], x, axes=1) + flat[m:])
        gap = (np.exp(log_p) - target) * share[:, None]
        loss = -float(share @ log_p[rows, labels]) + 0.5 * caution * float(flat @ flat)
        slope = np.concatenate([np.tensordot(x, gap, axes=2), gap.sum(axis=0)])
        return loss, slope + caution * flat

    bounds = [*[(0.0, None)] * m, *[(None, None)] * k]
    found = lowest(cost, np.zeros(m + k), bounds=bounds)
    return Weighing(level, spread, found[:m], found[m:])


def fit_ridge(
    vectors: NDArray[np.floating],
    values: Floats,
    *,
    weights: Floats | None = None,
    penalty: float = 1e-1,
) -> Linear:
    """The linear map ``(n, 1)`` nearest to the values, by weighted least squares with a penalty.

    Minimises the weighted mean of (value - prediction)² + penalty·|w|², in units of the values'
    spread, on standardised vectors.
    """
    share, mean, scale = _standard(vectors, weights)
    x = (vectors - mean) / scale
    centre = float(share @ values)
    spread = max(float(np.sqrt(share @ np.square(values - centre))), 1e-12)
    y = (values - centre) / spread
    gram = (x * share[:, None]).T @ x
    w = np.linalg.solve(gram + penalty * np.eye(x.shape[1]), x.T @ (share * y))
    return Linear(mean, scale, np.asarray(spread * w[:, None], np.float64), np.array([centre]))


def _standard(
    vectors: NDArray[np.floating], weights: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Weights that add up to one, and weighted mean and deviation of each dimension."""
    share = np.ones(len(vectors)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    mean = share @ vectors
    scale = np.sqrt(share @ np.square(vectors - mean))
    return share, mean, np.where(scale > 1e-9, scale, 1.0)
