"""Calibrated fusion of the scores of several recognisers, and which of them to fuse.

A weighted sum of scores, with weights of a logistic regression that are never negative. Members
join one by one, the one first that lowers the cross-validated loss most, until none lowers it by
:data:`GAIN`. Everything here is numbers of trials; whose trials they are is the caller's affair
(:mod:`voxrisk.attack.suite`: those of training speakers alone).

Two things guard against what few training speakers look like by accident. Trials come in groups,
one for each collection that the training speech was put together from: each counts the same
however large it is, and has an offset of its own, so that a member is asked who speaks and never
from which collection somebody is. And members that join do so as equals: the weights are drawn
towards each other (:data:`EQUAL`), and differ only where the trials say so clearly.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.one_core import lowest

Floats: TypeAlias = NDArray[np.float64]
GAIN = 0.005  # of the loss: a member that gains less is left out
NOTHING = 0.98  # bits of loss from which on a member tells as good as nothing; guessing gives 1
RIDGE = 1e-3  # on the weights, in units of the spread of scores
EQUAL = 0.1  # on their distance from each other


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """Trials that members are compared on: whether each is of one speaker, its fold, its group."""

    target: NDArray[np.bool_]
    fold: NDArray[np.int64]
    group: NDArray[np.int64]

    def some(self, keep: NDArray[np.bool_]) -> "Tried":
        """Some of the trials."""
        return Tried(self.target[keep], self.fold[keep], self.group[keep])

    @property
    def share(self) -> Floats:
        """What each trial counts, sum one: groups the same, and in each targets and nontargets.

        A group that has only one of the two tells nothing and does not count.
        """
        share = np.zeros(self.target.size)
        for number in np.unique(self.group):
            sides = [(self.group == number) & (self.target == kind) for kind in (True, False)]
            if all(side.any() for side in sides):
                for side in sides:
                    share[side] = 1.0 / side.sum()
        whole = share.sum()
        return share / whole if whole > 0 else share


def all_alike(target: NDArray[np.bool_], fold: NDArray[np.int64] | None = None) -> Tried:
    """Trials of one group."""
    nothing = np.zeros(target.size, np.int64)
    return Tried(target, nothing if fold is None else fold, nothing)


def fusion_weights(scores: Floats, tried: Tried, light: NDArray[np.bool_] | None = None) -> Floats:
    """Weights ``(k,)`` of the scores ``(k, n)`` of several members; none is negative, sum one.

    Where no member tells anything, all count the same. ``light (k,)`` marks members that together
    get half of the shares at most, beside others.

    >>> target = np.array([True, True, False, False])
    >>> scores = np.array([[2.0, 1.0, 0.1, 0.0], [0.0, 0.3, 1.0, 1.1]])
    >>> fusion_weights(scores, all_alike(target)).round(1)
    array([1., 0.])
    """
    weight, _ = raw_weights(scores, tried, light)
    whole = weight.sum()
    return weight / whole if whole > 0 else np.full(len(scores), 1.0 / len(scores))


def shares(scores: Floats, weights: Floats) -> Floats:
    """How much each member moves the sum: weights ``(k,)`` times the spread of scores; sum one."""
    moved = weights * scores.std(axis=1)
    whole = moved.sum()
    return moved / whole if whole > 0 else np.full(len(scores), 1.0 / len(scores))


def raw_weights(
    scores: Floats, tried: Tried, light: NDArray[np.bool_] | None
) -> tuple[Floats, dict[int, float]]:
    """Weights on the scores as they are, and the offset of the log-odds of each group."""
    share, offset, spread = _regression(scores, tried)
    weight = share / spread
    if light is None or not light.any() or light.all():
        return weight, offset
    much, rest = float(share[light].sum()), float(share[~light].sum())
    if 0 < rest < much:
        weight = np.where(light, weight * rest / much, weight)
        again, offset, spread = _regression((weight @ scores)[None], tried)
        weight = weight * again[0] / spread[0]
    return weight, offset


def _regression(scores: Floats, tried: Tried) -> tuple[Floats, dict[int, float], Floats]:
    """Weights on the scores divided by their spread, the offset of each group, and the spread."""
    spread = np.maximum(scores.std(axis=1), 1e-12)
    x, k = scores / spread[:, None], len(scores)
    sign, share = np.where(tried.target, 1.0, -1.0), tried.share
    groups = np.unique(tried.group)
    inside = (tried.group == groups[:, None]).astype(np.float64)

    def loss(free: Floats) -> tuple[float, Floats]:
        weight = free[:k]
        apart = weight - weight.mean()
        margin = sign * (weight @ x + free[k:] @ inside)
        slope = -share * sign * np.exp(-np.logaddexp(0.0, margin))
        value = share @ np.logaddexp(0.0, -margin)
        value += RIDGE * weight @ weight + EQUAL * apart @ apart
        pull = 2.0 * RIDGE * weight + 2.0 * EQUAL * apart
        return float(value), np.concatenate([x @ slope + pull, inside @ slope])

    begin = np.concatenate([np.full(k, 1.0 / k), np.zeros(groups.size)])
    bounds = [(0.0, None)] * k + [(None, None)] * groups.size
    free = lowest(loss, begin, bounds=bounds)
    return free[:k], dict(zip(groups.tolist(), free[k:].tolist(), strict=True)), spread


def crossed(
    scores: Floats, tried: Tried, light: NDArray[np.bool_], *, offsets: bool = True
) -> Floats:
    """Fused log-odds ``(n,)``, those of a fold with weights from the other folds.

    Without ``offsets`` the weights sum to one and nothing is added: what an attacker would have who
    does not know from which collection somebody is.
    """
    fused = np.empty(tried.target.size)
    for number in np.unique(tried.fold):
        held = tried.fold == number
        if not offsets:
            fused[held] = (
                fusion_weights(scores[:, ~held], tried.some(~held), light) @ scores[:, held]
            )
            continue
        weight, offset = raw_weights(scores[:, ~held], tried.some(~held), light)
        added = np.array([offset.get(int(group), 0.0) for group in tried.group[held]])
        fused[held] = weight @ scores[:, held] + added
    return fused


def log_loss(fused: Floats, tried: Tried) -> float:
    """Log loss in bits, groups and both kinds of trials counting the same: 1 says nothing."""
    wrong = np.logaddexp(0.0, np.where(tried.target, -fused, fused)) / np.log(2.0)
    return float(tried.share @ wrong)


def forward(scores: Floats, tried: Tried, light: NDArray[np.bool_]) -> list[int]:
    """Members in the order in which they join, while each still lowers the loss.

    The first is one that hears voices, wherever voices tell anything at all.
    """
    no = np.zeros(1, dtype=bool)
    alone = [log_loss(crossed(s[None], tried, no), tried) for s in scores]
    heard = [i for i in range(len(scores)) if not light[i] and alone[i] < NOTHING]
    chosen = [min(heard or range(len(scores)), key=lambda i: alone[i])]
    best = alone[chosen[0]]
    while len(chosen) < len(scores):
        losses = {
            i: log_loss(crossed(scores[[*chosen, i]], tried, light[[*chosen, i]]), tried)
            for i in range(len(scores))
            if i not in chosen
        }
        first = min(losses, key=lambda i: losses[i])
        if losses[first] > (1.0 - GAIN) * best:
            break
        chosen.append(first)
        best = losses[first]
    return chosen
