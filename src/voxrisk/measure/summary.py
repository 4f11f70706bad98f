"""Every figure of a score set at once: value, interval, chance and where its definition is from."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure import eer, ranking, zebra
from voxrisk.measure.calibration import cllr, min_cllr
from voxrisk.measure.d_sys import MIN_TARGETS, d_sys
from voxrisk.measure.figures import DEFINITIONS, Figures, score_intervals
from voxrisk.measure.intervals import corrected_interval
from voxrisk.measure.resampling import bootstrap, speaker_weights
from voxrisk.measure.roc import roc
from voxrisk.measure.similarity import (
    de_identification,
    distinctiveness_gain,
    resampled_dominance,
    similarity_matrix,
)
from voxrisk.measure.trials import Trials
from voxrisk.types import Estimate, InputError, Interval

Floats = NDArray[np.float64]


def score_metrics(target: ArrayLike, nontarget: ArrayLike) -> dict[str, float]:
    """All score metrics of two arrays of scores, in one pass over them.

    ``d_sys`` is missing for fewer than 20 targets, for which it is undefined.

    Args:
        target: ``(n_target,)`` scores of same-speaker trials.
        nontarget: ``(n_nontarget,)`` scores of different-speaker trials.

    >>> figures = score_metrics([1.0] * 20, [1.0] * 30)
    >>> figures["rocch_eer"], figures["d_ece"], figures["min_cllr"], figures["d_sys"]
    (0.5, 0.0, 1.0, 0.0)
    """
    t, n = np.asarray(target, np.float64), np.asarray(nontarget, np.float64)
    with ThreadPoolExecutor(1) as pool:
        curve = roc(t, n)
        raw = pool.submit(cllr, t, n)
        figures = {
            "rocch_eer": eer.rocch_eer(curve),
            "interpolated_eer": eer.interpolated_eer(curve),
            "kaldi_eer": eer.kaldi_eer(curve),
            "vertex_eer": eer.vertex_eer(curve),
            "min_dcf_01": eer.min_dcf(curve, p_target=0.01),
            "min_dcf_001": eer.min_dcf(curve, p_target=0.001),
            "min_cllr": min_cllr(curve),
            "d_ece": zebra.expected_disclosure(curve),
            "log10_l": zebra.worst_case_disclosure(curve),
        }
        if t.size >= MIN_TARGETS:
            figures["d_sys"] = d_sys(t, n)
        return {**figures, "cllr": raw.result()}


def evaluate(
    scored: Trials, *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Figures:
    """Every figure of a score set with its interval: what ``voxrisk measure`` prints.

    Ranks are given where each trial segment was scored against its own speaker and others, D_sys
    where there are 20 target trials; what is not given has its reason in ``undefined``.

    Args:
        scored: The trials, see :func:`voxrisk.measure.trials`.
        resamples: How many times speakers are drawn anew; 0 gives no intervals.
        seed: Seed of the draws.
        confidence: Coverage of the intervals.
    """
    sizes = scored.sizes
    values = score_metrics(scored.target, scored.nontarget)
    ceiling = zebra.worst_case_ceiling(sizes["target"], sizes["nontarget"])
    chance = {name: DEFINITIONS[name].chance for name in values}
    undefined, spans = {}, dict[str, Interval]()
    if "d_sys" not in values:
        undefined["d_sys"] = f"{sizes['target']} target trials; D_sys needs {MIN_TARGETS}"
    if resamples:
        weights = speaker_weights(sizes["speaker"], resamples=resamples, seed=seed)
        spans = score_intervals(
            values, bootstrap(scored, weights),
            speakers=sizes["speaker"], ceiling=ceiling, confidence=confidence,
        )  # fmt: skip
    try:
        ranked = ranking.ranks(scored.score, scored.query, scored.is_target)
    except InputError as error:
        undefined |= dict.fromkeys(ranking.FIGURES, str(error))
    else:
        speaker = _asking(scored, ranked)
        for name, figure in ranking.FIGURES.items():
            try:
                values[name] = figure.value(ranked)
            except InputError as error:
                undefined[name] = str(error)
                continue
            chance[name] = figure.chance(ranked)
            if resamples:
                spans[name] = figure.interval(ranked, speaker, confidence)
    drawn = {"resamples": resamples, "seed": seed} if resamples else {}
    extra: dict[str, dict[str, Any]] = {"log10_l": {"ceiling": ceiling}}
    return Figures(
        {
            name: Estimate(
                name, values[name], chance[name], sizes, definition.source, spans.get(name),
                {**drawn, **extra.get(name, {})},
            )
            for name, definition in DEFINITIONS.items()
            if name in values
        },
        undefined,
    )  # fmt: skip


def _asking(scored: Trials, ranked: ranking.Ranks) -> NDArray[np.int64]:
    """``(q,)`` who speaks in each ranked query."""
    speaker = np.empty(int(scored.query.max()) + 1, np.int64)
    speaker[scored.query] = scored.trial_speaker
    return speaker[ranked.query]


def evaluate_similarity(
    original: Trials,
    *,
    crossed: Trials | None = None,
    protected: Trials | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    compat: str | None = None,
) -> Figures:
    """DeID (needs ``crossed``, OP) and G_VD (needs ``protected``, PP) against ``original``, OO.

    Each stands alone: where one of them cannot be given, the other is, and ``undefined`` has the
    reason. Pairs of single segments come from :func:`voxrisk.measure.segment_trials`; any other
    trials are taken as they are.

    Raises:
        InputError: If intervals are asked for and there are fewer than 5 speakers.
    """
    parts: list[tuple[str, Trials | None, Callable[..., float]]] = [
        ("deid", crossed, de_identification),
        ("g_vd", protected, distinctiveness_gain),
    ]
    found: dict[str, Estimate] = {}
    undefined: dict[str, str] = {}
    try:
        whole = similarity_matrix(original)
    except InputError as error:
        return Figures({}, {name: str(error) for name, part, _ in parts if part is not None})
    weights = None
    if resamples:
        weights = speaker_weights(len(whole.speakers), resamples=resamples, seed=seed)
    for name, part, metric in parts:
        if part is None:
            continue
        try:
            value = metric(whole, similarity_matrix(part), compat=compat)
            span = None
            if weights is not None:
                # The same speakers are drawn in both sets, so that the ratio is that of one group.
                with np.errstate(divide="ignore", invalid="ignore"):  # dropped below
                    ratio = resampled_dominance(part, weights) / resampled_dominance(
                        original, weights
                    )
                span = _interval_of_ratio(name, value, ratio, len(whole.speakers), confidence)
        except InputError as error:
            undefined[name] = str(error)
            continue
        found[name] = Estimate(
            name, value, DEFINITIONS[name].chance,
            {**part.sizes, "speaker": len(whole.speakers)}, DEFINITIONS[name].source, span,
            {"compat": compat, **({"resamples": resamples, "seed": seed} if resamples else {})},
        )  # fmt: skip
    return Figures(found, undefined)


def _interval_of_ratio(
    name: str, value: float, ratio: Floats, speakers: int, confidence: float
) -> Interval:
    """DeID by the square root of the ratio of dominances, G_VD by its logarithm."""
    ratio = ratio[np.isfinite(ratio)]
    if name == "deid":
        root = corrected_interval(
            np.sqrt(ratio), float(np.sqrt(max(1.0 - value, 0.0))),
            speakers=speakers, confidence=confidence,
        )  # fmt: skip
        low, high = 1.0 - root.high**2, 1.0 - max(root.low, 0.0) ** 2
        return replace(root, low=min(low, value), high=max(high, value))
    if (lost := float((ratio == 0.0).mean())) > (1.0 - confidence) / 2.0:
        raise InputError(
            f"no protected voice stands out in {lost:.0%} of the resamples (D_diag(PP) is 0): G_VD "
            f"is {value:.1f} dB here and has no lower limit"
        )
    draws = 10.0 * np.log10(ratio[ratio > 0.0])
    return corrected_interval(draws, value, speakers=speakers, confidence=confidence)
