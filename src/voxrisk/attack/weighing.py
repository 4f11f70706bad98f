"""Calibrated fusion of the scores of several recognisers, and which of them to fuse.

A weighted sum of scores, with weights of a logistic regression that are never negative. Members
join one by one, the one first that lowers the cross-validated loss most, until none lowers it by
:data:`GAIN`. Everything here is numbers of trials; whose trials they are is the caller's affair
(:mod:`voxrisk.attack.suite`: those of training speakers alone).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
GAIN = 0.005  # of the loss: a member that gains less is left out
NOTHING = 0.98  # bits of loss from which on a member tells as good as nothing; guessing gives 1
RIDGE = 1e-3  # on the weights, in units of the spread of scores


def fusion_weights(
    scores: Floats, target: NDArray[np.bool_], light: NDArray[np.bool_] | None = None
) -> Floats:
    """Weights ``(k,)`` of the scores ``(k, n)`` of several members; none is negative, sum one.

    Logistic regression in which target and nontarget trials count the same in total. Where no
    member tells anything, all count the same. ``light (k,)`` marks members that together get half
    of the shares at most, beside others.

    >>> fusion_weights(np.array([[2.0, 1.0, 0.1, 0.0], [0.1, 0.0, 0.1, 0.0]]),
    ...                np.array([True, True, False, False])).round(1)
    array([1., 0.])
    """
    weight, _ = raw_weights(scores, target, light)
    whole = weight.sum()
    return weight / whole if whole > 0 else np.full(len(scores), 1.0 / len(scores))


def shares(scores: Floats, weights: Floats) -> Floats:
    """How much each member moves the sum: weights ``(k,)`` times the spread of scores; sum one."""
    moved = weights * scores.std(axis=1)
    whole = moved.sum()
    return moved / whole if whole > 0 else np.full(len(scores), 1.0 / len(scores))


def raw_weights(
    scores: Floats, target: NDArray[np.bool_], light: NDArray[np.bool_] | None
) -> tuple[Floats, float]:
    """Weights on the scores as they are, and the offset of the log-odds."""
    share, offset, spread = _regression(scores, target)
    weight = share / spread
    if light is None or not light.any() or light.all():
        return weight, offset
    much, rest = float(share[light].sum()), float(share[~light].sum())
    if 0 < rest < much:
        weight = np.where(light, weight * rest / much, weight)
        again, offset, spread = _regression((weight @ scores)[None], target)
        weight = weight * again[0] / spread[0]
    return weight, offset


def _regression(scores: Floats, target: NDArray[np.bool_]) -> tuple[Floats, float, Floats]:
    """Weights on the scores divided by their spread, the offset, and the spread."""
    from scipy.optimize import minimize

    spread = np.maximum(scores.std(axis=1), 1e-12)
    x = scores / spread[:, None]
    sign = np.where(target, 1.0, -1.0)
    share = np.where(target, 0.5 / target.sum(), 0.5 / (~target).sum())

    def loss(free: Floats) -> tuple[float, Floats]:
        margin = sign * (free[:-1] @ x + free[-1])
        slope = -share * sign * np.exp(-np.logaddexp(0.0, margin))
        value = share @ np.logaddexp(0.0, -margin) + RIDGE * free[:-1] @ free[:-1]
        gradient = np.append(x @ slope + 2 * RIDGE * free[:-1], slope.sum())
        return float(value), gradient

    begin = np.append(np.full(len(x), 1.0 / len(x)), 0.0)
    bounds = [(0.0, None)] * len(x) + [(None, None)]
    free = minimize(loss, begin, jac=True, bounds=bounds, method="L-BFGS-B").x
    return free[:-1], float(free[-1]), spread


def crossed(
    scores: Floats,
    target: NDArray[np.bool_],
    fold: NDArray[np.int64],
    light: NDArray[np.bool_],
) -> Floats:
    """Fused log-odds ``(n,)``, those of a fold with weights from the other folds."""
    fused = np.empty(target.size)
    for number in np.unique(fold):
        held = fold == number
        weight, offset = raw_weights(scores[:, ~held], target[~held], light)
        fused[held] = weight @ scores[:, held] + offset
    return fused


def log_loss(fused: Floats, target: NDArray[np.bool_]) -> float:
    """Log loss in bits, both kinds of trials counting the same: 1 says nothing."""
    wrong = np.logaddexp(0.0, np.where(target, -fused, fused)) / np.log(2.0)
    return float(0.5 * wrong[target].mean() + 0.5 * wrong[~target].mean())


def forward(
    scores: Floats,
    target: NDArray[np.bool_],
    fold: NDArray[np.int64],
    light: NDArray[np.bool_],
) -> list[int]:
    """Members in the order in which they join, while each still lowers the loss.

    The first is one that hears voices, wherever voices tell anything at all.
    """
    alone = [log_loss(crossed(s[None], target, fold, light[:1] & False), target) for s in scores]
    heard = [i for i in range(len(scores)) if not light[i] and alone[i] < NOTHING]
    chosen = [min(heard or range(len(scores)), key=lambda i: alone[i])]
    best = alone[chosen[0]]
    while len(chosen) < len(scores):
        losses = {
            i: log_loss(crossed(scores[[*chosen, i]], target, fold, light[[*chosen, i]]), target)
            for i in range(len(scores))
            if i not in chosen
        }
        first = min(losses, key=lambda i: losses[i])
        if losses[first] > (1.0 - GAIN) * best:
            break
        chosen.append(first)
        best = losses[first]
    return chosen
