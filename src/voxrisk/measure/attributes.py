"""What a voice gives away about a person beside who it is: figures of an attribute.

An attribute is a class (gender, accent, emotion) or a number (age). The same figures say how badly
a secret is kept and how well a use survives. All speakers count the same, however much they said;
intervals resample speakers.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from voxrisk.measure.attribute_draws import areas, correlations, draw_figures
from voxrisk.measure.figures import FIGURES
from voxrisk.measure.intervals import corrected_interval, exact_interval, maximum_interval
from voxrisk.measure.logistic import Floats, Integers
from voxrisk.measure.posteriors import Beliefs, speaker_shares
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.types import Estimate, InputError, Interval


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
    return _class_mean(truth, (truth == decision).astype(np.float64), w)


def area_under_curve(truth: Integers, score: Floats, weights: Floats | None = None) -> float:
    """How often somebody of a class scores higher for it than somebody who is not; ties are half.

    For ``score (n, k)`` the mean over the k classes, each against all others. 1 is perfect order,
    ½ is guessing.

    >>> area_under_curve(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    1.0
    """
    w = (np.ones(truth.size) if weights is None else weights)[None, :]
    return float(areas(truth, score, w)[0])


def expected_bits(b: Beliefs, weights: Floats | None = None) -> float:
    """How many bits the speech tells about the attribute on average, beyond the prior.

    The entropy of the prior less the cross-entropy of the calibrated beliefs: mean of
    log2(posterior / prior) of the true class. At most the entropy of the prior (full disclosure);
    0 where the speech tells nothing. On few speakers it may come out below 0, because the
    calibration was learned on others; it is not hidden here.
    """
    w = speaker_shares(b.speaker) if weights is None else weights
    return float(w @ b.gain / w.sum())


def worst_bits(b: Beliefs) -> float:
    """How many bits the most telling piece of speech gave away: the largest gain of belief.

    The largest log2(posterior / prior) of a true class, beliefs under Laplace's rule; 0 if belief
    in the truth never rose. At most -log2 of the rarest class's prior.
    """
    return max(float(b.gain.max()), 0.0)


def mean_error(value: Floats, guess: Floats, weights: Floats) -> float:
    """How far the guessed number is off, on average, in its own unit."""
    return float(weights @ np.abs(value - guess) / weights.sum())


def correlation(value: Floats, guess: Floats, weights: Floats) -> float:
    """Pearson's correlation of guess and truth: 1 is a perfect line, 0 no relation.

    0 where all guesses are the same: they say nothing.
    """
    return float(correlations(value, guess, weights[None, :])[0])


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
        "uar": _class_mean(b.truth, b.right, base),
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
        drawn = draw_figures(b, who, base, resamples, seed)
        spans = {
            name: _interval(name, raw[name], values, names.size, confidence, b.prior)
            for name, values in drawn.items()
        }
        # Order, bits and worst case say the same about chance, and the order says it best: where
        # beliefs hardly move, the bits are nearly 0 in every draw and their spread is no guide.
        if spans["attribute_auc"].low <= 0.5:
            for name in ("attribute_bits", "attribute_worst"):
                spans[name] = replace(spans[name], low=0.0)
        bits, worst = spans["attribute_bits"], spans["attribute_worst"]
        part = entropy / float(np.log2(classes))
        # Nobody was mistaken: what the exact bound of the errors leaves of the bits.
        if raw["uar"] > 1.0 - 1e-9:
            least = _channel_bits(spans["uar"].low, classes) * part
            spans["attribute_bits"] = replace(bits, low=min(bits.low, max(least, 0.0)))
        # Nothing was decided: as many bits as guesses that are right so often would tell.
        if not b.decided.all():
            most = max(bits.high, _channel_bits(spans["uar"].high, classes) * part)
            spans["attribute_bits"] = replace(bits, high=most)
            spans["attribute_worst"] = replace(worst, high=max(worst.high, most))
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
    np.add.at(table, b.truth, b.named * speaker_shares(b.speaker)[:, None])
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


def _class_mean(truth: Integers, right: Floats, weights: Floats) -> float:
    """Mean over the classes of how often each was right."""
    own = ((weights * (truth == c)) for c in np.unique(truth))
    return float(np.mean([(w * right).sum() / w.sum() for w in own]))


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
