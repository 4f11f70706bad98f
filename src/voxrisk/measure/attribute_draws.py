"""Figures of an attribute on speakers drawn anew, for their intervals.

Where the speech speaks for all classes alike, one is drawn among equals. The figure is what such
draws give on average; an attacker who always gives the same answer would otherwise seem to be at
chance to the last digit, because drawing other speakers moves nothing.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.logistic import Floats, Integers
from voxrisk.measure.posteriors import Beliefs
from voxrisk.measure.resampling import speaker_weights

BLOCK = 2_000_000  # weights held at once
GUESSES = 100  # orders drawn among equals


def draw_figures(
    b: Beliefs, who: NDArray[np.intp], base: Floats, resamples: int, seed: int
) -> dict[str, Floats]:
    """Each figure on speakers drawn anew ``(resamples,)``; NaN where a class was not drawn."""
    classes, people = b.prior.size, int(who.max()) + 1
    count = speaker_weights(people, resamples=resamples, seed=seed).astype(np.float64)
    right = np.zeros((people, classes))
    there = np.zeros((people, classes))
    np.add.at(right, (who, b.truth), base * b.right)
    np.add.at(there, (who, b.truth), base)
    have = count @ there
    present = np.where(have > 0.0, have, np.nan)
    gain = b.gain
    most = np.full(people, -np.inf)
    np.maximum.at(most, who, gain)
    by_speaker = partial(np.bincount, who, minlength=people)
    found = {
        "uar": np.mean((count @ right) / present, axis=1),
        "attribute_bits": count @ by_speaker(weights=base * gain) / (count @ by_speaker(base)),
        "attribute_worst": np.maximum(np.where(count > 0, most, -np.inf).max(axis=1), 0.0),
    }
    weighted = [
        part[:, who] * base for part in np.array_split(count, max(resamples * who.size // BLOCK, 1))
    ]
    found["attribute_auc"] = np.concatenate([areas(b.truth, b.likelihood, w) for w in weighted])
    if b.value is not None and b.guess is not None:
        off = np.abs(b.value - b.guess)
        found["mean_error"] = count @ by_speaker(weights=base * off) / (count @ by_speaker(base))
        found["correlation"] = np.concatenate([correlations(b.value, b.guess, w) for w in weighted])
    if not b.decided.all():
        rng = np.random.default_rng([seed, people])
        found["uar"] += _guessed_classes(b, who, base / there.sum(axis=0)[b.truth], resamples, rng)
        found["attribute_auc"] += rng.choice(_guessed_orders(b, who, base, rng), resamples)
    return found


def _guessed_classes(
    b: Beliefs,
    who: NDArray[np.intp],
    share: Floats,
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """By how much guesses among equals move the UAR ``(resamples,)``.

    One guess for each speaker and class: utterances of a speaker are not as many separate guesses.
    """
    classes = b.prior.size
    off = np.zeros(resamples)
    guessed = ~b.decided
    _, cell = np.unique(who[guessed] * classes + b.truth[guessed], return_inverse=True)
    mass = np.bincount(cell, share[guessed])
    hit = np.bincount(cell, (share * b.right)[guessed]) / mass
    for m, q in zip(mass, hit, strict=True):
        off += m * ((rng.random(resamples) < q) - q)
    return off / classes


def _guessed_orders(
    b: Beliefs, who: NDArray[np.intp], base: Floats, rng: np.random.Generator
) -> Floats:
    """By how much the area moves when equals are put in some order ``(GUESSES,)``."""
    classes, people = b.prior.size, int(who.max()) + 1
    score, weights = b.likelihood, base[None, :]
    plain = areas(b.truth, score, weights)[0]
    guessed = (~b.decided)[:, None]
    found = []
    for _ in range(GUESSES):
        order = rng.standard_normal((people, classes, classes))[who, b.truth]
        found.append(areas(b.truth, score + np.where(guessed, 1e-9 * order, 0.0), weights)[0])
    return np.asarray(np.array(found) - plain)


def areas(truth: Integers, score: Floats, weights: Floats) -> Floats:
    """Mean area over the classes, for each row of weights ``(r, n)``; NaN where a class is gone."""
    classes = range(score.shape[1]) if score.shape[1] > 2 else (1,)
    total = np.zeros(len(weights))
    for c in classes:
        values, level = np.unique(score[:, c], return_inverse=True)
        order = np.argsort(level, kind="stable")
        start = np.searchsorted(level[order], np.arange(values.size))
        mine = np.add.reduceat(np.where(truth == c, weights, 0.0)[:, order], start, axis=1)
        other = np.add.reduceat(np.where(truth == c, 0.0, weights)[:, order], start, axis=1)
        below = np.cumsum(other, axis=1) - 0.5 * other
        pairs = mine.sum(axis=1) * other.sum(axis=1)
        total += (mine * below).sum(axis=1) / np.where(pairs > 0.0, pairs, np.nan)
    return np.minimum(total / len(classes), 1.0)  # sums of weights may round beyond it


def correlations(value: Floats, guess: Floats, weights: Floats) -> Floats:
    """Pearson's correlation for each row of weights ``(r, n)``; 0 where all guesses agree."""
    w = weights / weights.sum(axis=1, keepdims=True)
    x = value - (w @ value)[:, None]
    y = guess - (w @ guess)[:, None]
    both = np.sqrt((w * x * x).sum(axis=1) * (w * y * y).sum(axis=1))
    return np.asarray(
        np.where(both > 1e-12, (w * x * y).sum(axis=1) / np.maximum(both, 1e-12), 0.0)
    )
