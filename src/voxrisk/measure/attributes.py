"""What a voice gives away about a person beside who it is: figures of an attribute.

An attribute is a class (gender, accent, emotion) or a number (age). The same figures say how badly
a secret is kept and how well a use survives. All speakers count the same, however much they said;
intervals resample speakers.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure.figures import FIGURES
from voxrisk.measure.intervals import corrected_interval, exact_interval, maximum_interval
from voxrisk.measure.logistic import Floats, Integers
from voxrisk.measure.posteriors import Beliefs, speaker_shares
from voxrisk.measure.resampling import MIN_SPEAKERS, speaker_weights
from voxrisk.types import Estimate, InputError, Interval

BLOCK = 2_000_000  # weights held at once


def prior_entropy(prior: ArrayLike) -> float:
    """What there is to learn about an attribute, in bits.

    >>> prior_entropy([0.5, 0.5])
    1.0
    """
    p = np.asarray(prior, np.float64)
    return float(-(p[p > 0] * np.log2(p[p > 0])).sum())


def balanced_accuracy(truth: Integers, decision: Integers, weights: Floats | None = None) -> float:
    """How often the attacker names the right class, every class counting the same (UAR).

    The mean over classes of the share that is recognised. 1 is certainty, 1/k is guessing among k
    classes, whatever their shares.

    >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.5
    """
    w = np.ones(truth.size) if weights is None else weights
    right = w * (truth == decision)
    return float(np.mean([right[truth == c].sum() / w[truth == c].sum() for c in np.unique(truth)]))


def area_under_curve(truth: Integers, score: Floats, weights: Floats | None = None) -> float:
    """How often somebody of a class scores higher for it than somebody who is not; ties are half.

    For ``score (n, k)`` the mean over the k classes, each against all others. 1 is perfect order,
    ½ is guessing.

    >>> area_under_curve(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    1.0
    """
    w = (np.ones(truth.size) if weights is None else weights)[None, :]
    return float(_areas(truth, score, w)[0])


def expected_bits(b: Beliefs, weights: Floats | None = None) -> float:
    """How many bits the speech tells about the attribute on average, beyond the prior.

    The entropy of the prior less the cross-entropy of the calibrated beliefs: mean of
    log2(posterior / prior) of the true class. At most the entropy of the prior (full disclosure);
    0 where the speech tells nothing. On few speakers it may come out below 0, because the
    calibration was learned on others; it is not hidden here.
    """
    w = speaker_shares(b.speaker) if weights is None else weights
    return float(w @ _gain(b) / w.sum())


def worst_bits(b: Beliefs) -> float:
    """How many bits the most telling piece of speech gave away: the largest gain of belief.

    The largest log2(posterior / prior) of a true class, beliefs under Laplace's rule; 0 if belief
    in the truth never rose. At most -log2 of the rarest class's prior.
    """
    return max(float(_gain(b).max()), 0.0)


def mean_error(value: Floats, guess: Floats, weights: Floats) -> float:
    """How far the guessed number is off, on average, in its own unit."""
    return float(weights @ np.abs(value - guess) / weights.sum())


def correlation(value: Floats, guess: Floats, weights: Floats) -> float:
    """Pearson's correlation of guess and truth: 1 is a perfect line, 0 no relation.

    0 where all guesses are the same: they say nothing.
    """
    return float(_correlations(value, guess, weights[None, :])[0])


def measure_attribute(
    b: Beliefs,
    *,
    length: int = 1,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    top: float | None = None,
) -> tuple[Estimate, ...]:
    """Every figure of one attribute under one attacker, with intervals that resample speakers.

    Args:
        b: Calibrated beliefs.
        length: Utterances behind each belief, L.
        resamples: Draws of speakers; 0 for no intervals, and none with too few speakers.
        seed: Of the draws.
        confidence: Of the intervals.
        top: Calibration cannot name more bits than this; the entropy of the prior by default.

    Raises:
        InputError: If there is only one class: there is nothing to infer.
    """
    classes = b.prior.size
    if np.unique(b.truth).size < 2:
        raise InputError("everybody has the same value: there is nothing to infer")
    names, who = np.unique(b.speaker, return_inverse=True)
    base = speaker_shares(b.speaker)
    n = {"speaker": names.size, "row": b.truth.size, "class": classes}
    entropy = prior_entropy(b.prior)
    raw = {
        "uar": balanced_accuracy(b.truth, b.decision, base),
        "attribute_auc": area_under_curve(b.truth, b.likelihood, base),
        "attribute_bits": expected_bits(b, base),
        "attribute_worst": worst_bits(b),
    }
    chance = {"uar": 1.0 / classes, "attribute_auc": 0.5, "attribute_bits": 0.0,
              "attribute_worst": 0.0}  # fmt: skip
    if b.value is not None and b.guess is not None:
        raw["mean_error"] = mean_error(b.value, b.guess, base)
        raw["correlation"] = correlation(b.value, b.guess, base)
        blind = np.full(b.value.size, _middle(b.value, base))
        chance |= {"mean_error": mean_error(b.value, blind, base), "correlation": 0.0}
    spans: dict[str, Interval] = {}
    if resamples and names.size >= MIN_SPEAKERS:
        drawn = _draws(b, who, base, resamples, seed)
        spans = {
            name: _interval(name, raw[name], values, names.size, confidence, b.prior)
            for name, values in drawn.items()
        }
        # Order, bits and worst case say the same about chance, and the order says it best: where
        # beliefs hardly move, the bits are nearly 0 in every draw and their spread is no guide.
        if spans["attribute_auc"].low <= 0.5:
            for name in ("attribute_bits", "attribute_worst"):
                spans[name] = replace(spans[name], low=0.0)
        # Nobody was mistaken: what the exact bound of the errors leaves of the bits.
        if raw["uar"] > 1.0 - 1e-9:
            bits = spans["attribute_bits"]
            least = _channel_bits(spans["uar"].low, classes) * entropy / np.log2(classes)
            spans["attribute_bits"] = replace(bits, low=min(bits.low, max(float(least), 0.0)))
    found = []
    for name, value in raw.items():
        span = spans.get(name)
        parameters: dict[str, float] = {
            "L": length,
            "seed": seed,
            "resamples": resamples if span else 0,
        }
        if name == "attribute_bits":
            parameters |= {"entropy": top or entropy, "uncut": value}
            value = max(value, 0.0)
        if span is not None:
            span = replace(span, low=min(span.low, value), high=max(span.high, value))
        source = FIGURES[name].source
        found.append(Estimate(name, value, chance[name], n, source, span, parameters))
    return tuple(found)


def confusion(b: Beliefs) -> Floats:
    """``(k, k)`` share of each true class (row) that is taken for each class (column)."""
    classes = b.prior.size
    table = np.zeros((classes, classes))
    np.add.at(table, (b.truth, b.decision), speaker_shares(b.speaker))
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12))


def reliability(b: Beliefs, *, bins: int = 10) -> list[tuple[float, float, int]]:
    """Whether beliefs are to be believed: (mean belief, share that was right, how many), by bin.

    Of the class believed in most. Where both numbers are alike, the beliefs are calibrated.
    """
    best = b.posterior.argmax(axis=1)
    sure = b.posterior.max(axis=1)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return [
        (
            float(sure[place == i].mean()),
            float((best == b.truth)[place == i].mean()),
            int((place == i).sum()),
        )
        for i in range(bins)
        if (place == i).any()
    ]


def _channel_bits(right: float, classes: int) -> float:
    """Bits about one of so many equal classes if it is named rightly so often, errors spread."""
    wrong = 1.0 - right
    share = np.array([right, *[wrong / (classes - 1)] * (classes - 1)])
    return float(np.log2(classes)) - prior_entropy(share)


def _gain(b: Beliefs) -> Floats:
    rows = np.arange(b.truth.size)
    return np.asarray(np.log2(b.posterior[rows, b.truth] / b.prior[b.truth]))


def _middle(value: Floats, weights: Floats) -> float:
    """The weighted median: the blind guess with the least mean error."""
    order = np.argsort(value)
    place = int(np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum()))
    return float(value[order][min(place, value.size - 1)])


def _interval(
    name: str, value: float, draws: Floats, speakers: int, confidence: float, prior: Floats
) -> Interval:
    figure = FIGURES[name]
    draws = draws[np.isfinite(draws)]
    if name == "attribute_worst":
        ceiling = float(-np.log2(prior[prior > 0].min()))
        return maximum_interval(
            draws, value, speakers=speakers, ceiling=ceiling, confidence=confidence
        )
    if figure.rate and abs(value - round(value)) < 1e-9:
        span = exact_interval(round(value) * speakers, speakers, confidence=confidence)
        return replace(span, low=min(span.low, value), high=max(span.high, value))
    span = corrected_interval(
        draws, value, speakers=speakers, confidence=confidence, scale=figure.scale, bias=0.0
    )
    if name == "attribute_bits":  # nothing is disclosed below nothing, nor more than there is
        top = prior_entropy(prior)
        return replace(span, low=max(span.low, 0.0), high=max(min(span.high, top), 0.0))
    return replace(span, low=max(span.low, 0.0)) if name == "mean_error" else span


def _draws(
    b: Beliefs, who: NDArray[np.intp], base: Floats, resamples: int, seed: int
) -> dict[str, Floats]:
    """Each figure on speakers drawn anew ``(resamples,)``; NaN where a class was not drawn."""
    classes, people = b.prior.size, int(who.max()) + 1
    count = speaker_weights(people, resamples=resamples, seed=seed).astype(np.float64)
    right = np.zeros((people, classes))
    there = np.zeros((people, classes))
    np.add.at(right, (who, b.truth), base * (b.decision == b.truth))
    np.add.at(there, (who, b.truth), base)
    have = count @ there
    present = np.where(have > 0.0, have, np.nan)
    gain = _gain(b)
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
    found["attribute_auc"] = np.concatenate([_areas(b.truth, b.likelihood, w) for w in weighted])
    if b.value is not None and b.guess is not None:
        off = np.abs(b.value - b.guess)
        found["mean_error"] = count @ by_speaker(weights=base * off) / (count @ by_speaker(base))
        found["correlation"] = np.concatenate(
            [_correlations(b.value, b.guess, w) for w in weighted]
        )
    return found


def _areas(truth: Integers, score: Floats, weights: Floats) -> Floats:
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


def _correlations(value: Floats, guess: Floats, weights: Floats) -> Floats:
    w = weights / weights.sum(axis=1, keepdims=True)
    x = value - (w @ value)[:, None]
    y = guess - (w @ guess)[:, None]
    both = np.sqrt((w * x * x).sum(axis=1) * (w * y * y).sum(axis=1))
    return np.asarray(
        np.where(both > 1e-12, (w * x * y).sum(axis=1) / np.maximum(both, 1e-12), 0.0)
    )
