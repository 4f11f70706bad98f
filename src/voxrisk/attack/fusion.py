"""Several attackers on shuffled slices in one score: text, voice and cut together.

What the scores of an attacker are worth is learnt, not assumed. Each attacker gives two features of
a pair (w, v): how far v stands above the other candidates after w, in standard deviations of the
row; and how far w stands above the other slices before v, from a sample of rows. The second takes
out the slices that everything seems to lead to (likely words, loud slices). Logistic regression
learns the weights from pairs that are successive and pairs that are not, drawn evenly, so the score
is the logarithm of a likelihood ratio (natural logarithm): 0 says nothing.

An attacker has no truth about the slices under attack. So the weights used for the slices of a
speaker are learnt from other speakers, as they could be from any other corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.successors import LAST, Indices, Scorer, Scores, asked, blocks
from voxrisk.measure.logistic import fit_logistic
from voxrisk.types import InputError

FOLDS = 5
NEGATIVES = 64  # pairs that are not successive for each that is
SAMPLED_ROWS = 512  # for the mean and the deviation of each column
PENALTY = 1e-3
FEATURES = 2  # of each attacker


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What an attacker gives each slice as a candidate, whatever stands before it: ``(n,)``."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """A scorer made of several.

    Attributes:
        scorers: The attackers.
        columns: For each of them, what it gives each candidate.
        fold: ``(n,)`` which row of the weights is used for a slice.
        weights: ``(folds, features)``, two features for each attacker.
        bias: ``(folds,)``.
    """

    scorers: tuple[Scorer, ...]
    columns: tuple[Columns, ...]
    fold: Indices
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def __call__(self, block: Indices) -> Scores:
        """Log likelihood ratios ``(b, n)`` of "came next" against "did not"."""
        n = self.fold.size
        total = np.repeat(self.bias[self.fold[block]][:, None].astype(np.float32), n, axis=1)
        for k, (scorer, column) in enumerate(zip(self.scorers, self.columns, strict=True)):
            weight = self.weights[self.fold[block], FEATURES * k : FEATURES * (k + 1)]
            for j, feature in enumerate(_features(asked(scorer, block, n), block, column)):
                total += weight[:, j, None].astype(np.float32) * feature
        total[np.arange(block.size), block] = -np.inf
        return total


def fuse(
    scorers: Sequence[Scorer],
    successor: Indices,
    speaker: Sequence[str] | NDArray[np.str_],
    *,
    folds: int = FOLDS,
    seed: int = 0,
) -> Fused:
    """One scorer from several, its weights learnt on other speakers than those it is used for.

    Args:
        scorers: The attackers.
        successor: ``(n,)`` which slice comes right after each one, -1 for none.
        speaker: ``(n,)`` who said each slice (or another group whose slices stay together).
        folds: Parts into which speakers are divided; as many as speakers where those are fewer.
        seed: Of the division and of the pairs drawn.

    Raises:
        InputError: If fewer than two speakers have slices in a row.
    """
    n = successor.size
    rng = np.random.default_rng(seed)
    person = np.unique(np.asarray(speaker), return_inverse=True)[1]
    rows = np.flatnonzero(successor != LAST)
    learnt_from = np.unique(person[rows])
    if learnt_from.size < 2:
        raise InputError(
            f"{learnt_from.size} speakers have slices in a row; to weigh attackers against each "
            "other two are needed, one to learn from and one to attack"
        )
    folds = min(folds, learnt_from.size)
    # Only people with slices in a row are dealt out evenly; no fold may be left without a pair.
    dealt = np.zeros(int(person.max()) + 1, np.int64)
    dealt[learnt_from] = rng.permutation(learnt_from.size) % folds
    fold = dealt[person]
    columns = tuple(_columns(scorer, n, rng) for scorer in scorers)
    pairs = _draw(rows, successor, rng)
    features = np.concatenate(
        [_pair_features(s, rows, pairs, c) for s, c in zip(scorers, columns, strict=True)], axis=2
    )
    weights, bias = [], []
    for held in range(folds):
        learn = fold[rows] != held
        w, b = _fit(features[learn])
        weights.append(w)
        bias.append(b)
    return Fused(tuple(scorers), columns, fold, np.array(weights), np.array(bias))


def _columns(scorer: Scorer, n: int, rng: np.random.Generator) -> Columns:
    """Mean and deviation of what each candidate gets after slices drawn at random."""
    rows = np.sort(rng.choice(n, size=min(n, SAMPLED_ROWS), replace=False))
    total, square, count = np.zeros(n), np.zeros(n), np.zeros(n)
    for block in blocks(rows, n):
        above = _standing(asked(scorer, block, n), block).astype(np.float64)
        there = np.arange(n)[None] != block[:, None]
        total += np.where(there, above, 0.0).sum(axis=0)
        square += np.where(there, above**2, 0.0).sum(axis=0)
        count += there.sum(axis=0)
    mean = total / np.maximum(count, 1)
    scale = np.sqrt(np.maximum(square / np.maximum(count, 1) - mean**2, 0.0))
    floor = max(1e-3, 0.1 * float(np.median(scale)))
    return Columns(mean.astype(np.float32), np.maximum(scale, floor).astype(np.float32))


def _standing(scores: Scores, block: Indices) -> Scores:
    """How far each candidate stands above the others of its row, in deviations of the row."""
    rest = np.array(scores, np.float32)
    rest[np.arange(block.size), block] = np.nan
    # "Never" counts as the least that is possible after this slice.
    never = np.isneginf(rest)
    if never.any():
        least = np.min(np.where(never | np.isnan(rest), np.inf, rest), axis=1)
        rest = np.where(never, np.where(np.isfinite(least), least, 0.0)[:, None], rest)
    rest -= np.nanmean(rest, axis=1, keepdims=True)
    spread = np.nanstd(rest, axis=1, keepdims=True)
    standing = rest / np.where(spread > 1e-9, spread, 1.0)
    return np.asarray(np.nan_to_num(standing, nan=0.0), np.float32)


def _features(scores: Scores, block: Indices, columns: Columns) -> tuple[Scores, Scores]:
    standing = _standing(scores, block)
    return standing, (standing - columns.mean) / columns.scale


def _draw(rows: Indices, successor: Indices, rng: np.random.Generator) -> Indices:
    """``(q, 1 + negatives)`` candidates of each row: the right one, then others at random."""
    n = successor.size
    others = rng.integers(0, n - 2, size=(rows.size, NEGATIVES))
    # Skip over the slice itself and the right one, so that every other is drawn alike.
    low = np.minimum(rows, successor[rows])[:, None]
    high = np.maximum(rows, successor[rows])[:, None]
    others += others >= low
    others += others >= high
    return np.concatenate([successor[rows][:, None], others], axis=1)


def _pair_features(
    scorer: Scorer, rows: Indices, pairs: Indices, columns: Columns
) -> NDArray[np.float64]:
    """``(q, 1 + negatives, 2)``."""
    n = columns.mean.size
    found = []
    at = 0
    for block in blocks(rows, n):
        both = _features(asked(scorer, block, n), block, columns)
        chosen = pairs[at : at + block.size]
        found.append(np.stack([np.take_along_axis(f, chosen, axis=1) for f in both], axis=2))
        at += block.size
    return np.concatenate(found).astype(np.float64)


def _fit(features: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Weights and bias of the likelihood ratio; both kinds of pairs count for one half."""
    q, k, d = features.shape
    labels = np.zeros((q, k), np.int64)
    labels[:, 0] = 1
    share = np.where(labels == 1, 0.5 / q, 0.5 / (q * (k - 1)))
    line = fit_logistic(
        features.reshape(-1, d), labels.ravel(), classes=2, weights=share.ravel(), penalty=PENALTY
    )
    weight = (line.weights[:, 1] - line.weights[:, 0]) / line.scale
    bias = line.bias[1] - line.bias[0] - float(weight @ line.mean)
    return weight, float(bias)
