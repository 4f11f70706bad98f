"""Every figure of a score set at once: value, interval, chance and where its definition is from."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure import ranking, zebra
from voxrisk.measure.curve import roc
from voxrisk.measure.figures import FIGURES, Figures, score_intervals
from voxrisk.measure.intervals import corrected_interval
from voxrisk.measure.resampling import bootstrap, speaker_weights
from voxrisk.measure.scored_trials import Trials
from voxrisk.measure.similarity import (
    de_identification,
    distinctiveness_gain,
    resampled_dominance,
    similarity_matrix,
)
from voxrisk.measure.speaker_eer import mean_interval, speaker_eers
from voxrisk.types import Estimate, InputError, Interval

Floats = NDArray[np.float64]
PLAIN_DRAWS = 200  # resamples of a figure without a compiled form


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
    rows = {k: f for k, f in FIGURES.items() if f.kind == "score" and t.size >= f.least}
    with ThreadPoolExecutor(1) as pool:  # beside the sorting, what needs no order
        plain = {k: pool.submit(f.of_scores, t, n) for k, f in rows.items() if f.of_scores}
        curve = roc(t, n)
        found = {k: f.of_curve(curve) for k, f in rows.items() if f.of_curve}
        found |= {k: result.result() for k, result in plain.items()}
    return {k: found[k] for k in rows}


def measure_scores(
    scored: Trials, *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Figures:
    """Every figure of a score set with its interval: what ``voxrisk measure`` prints.

    Ranks are given where each trial segment was scored against its own speaker and others, D_sys
    where there are 20 target trials; what is not given has its reason in ``undefined``. Scores that
    are all equal get no intervals: every draw would give the same figure, which is no certainty.

    Args:
        scored: The trials, see :class:`voxrisk.measure.Trials`.
        resamples: How many times speakers are drawn anew; 0 gives no intervals.
        seed: Seed of the draws.
        confidence: Coverage of the intervals.
    """
    if not isinstance(scored, Trials):
        raise InputError(
            "measure_scores takes voxrisk.Trials(scores, enroll_speaker, trial_speaker), and this "
            f"is a {type(scored).__name__}"
        )
    sizes = scored.sizes
    if scored.score.min() == scored.score.max():
        resamples = 0
    values = score_metrics(scored.target, scored.nontarget)
    ceiling = zebra.worst_case_ceiling(sizes["target"], sizes["nontarget"])
    chance = {name: FIGURES[name].chance for name in values}
    undefined, spans = {}, dict[str, Interval]()
    for name, figure in FIGURES.items():
        if figure.kind == "score" and name not in values:
            undefined[name] = (
                f"{sizes['target']} target trials; {figure.label} needs {figure.least}"
            )
    if resamples:
        weights = speaker_weights(sizes["speaker"], resamples=resamples, seed=seed)
        draws = bootstrap(scored, weights)
        draws |= plain_draws(scored, weights, [name for name in values if name not in draws])
        spans = score_intervals(
            values, draws, speakers=sizes["speaker"], ceiling=ceiling, confidence=confidence
        )
    try:
        each = np.array(list(speaker_eers(scored).values()))
    except InputError as error:
        undefined["speaker_eer"] = str(error)
    else:
        values["speaker_eer"], chance["speaker_eer"] = float(each.mean()), 0.5
        if resamples:
            spans["speaker_eer"] = mean_interval(each, confidence)
    try:
        ranked = ranking.ranks(scored.score, scored.query, scored.is_target)
    except InputError as error:
        undefined |= dict.fromkeys(ranking.RANK_FIGURES, str(error))
    else:
        speaker = _asking(scored, ranked)
        for name, rank in ranking.RANK_FIGURES.items():
            try:
                values[name] = rank.value(ranked)
            except InputError as error:
                undefined[name] = str(error)
                continue
            chance[name] = rank.chance(ranked)
            if resamples:
                spans[name] = rank.interval(ranked, speaker, confidence)
    drawn = {"resamples": resamples, "seed": seed} if resamples else {}
    extra: dict[str, dict[str, Any]] = {"log10_l": {"ceiling": ceiling}}
    return Figures(
        {
            name: Estimate(
                name, values[name], chance[name], sizes, row.source, spans.get(name),
                {**drawn, **extra.get(name, {})},
            )
            for name, row in FIGURES.items()
            if name in values
        },
        undefined,
    )  # fmt: skip


def plain_draws(
    scored: Trials, weights: NDArray[np.int32], names: Sequence[str]
) -> dict[str, Floats]:
    """Resampled figures that have no compiled form: each resample is made and measured in full."""
    if not names:
        return {}
    found: dict[str, list[float]] = {name: [] for name in names}
    for row in weights[:PLAIN_DRAWS].astype(np.int64):
        pair = row[scored.enroll_speaker] * row[scored.trial_speaker]
        count = np.where(scored.is_target, row[scored.enroll_speaker], pair)
        again = np.repeat(scored.score, count)
        same = np.repeat(scored.is_target, count)
        if same.all() or not same.any():
            continue
        for name, value in score_metrics(again[same], again[~same]).items():
            if name in found:
                found[name].append(value)
    return {name: np.array(values) for name, values in found.items()}


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
            name, value, FIGURES[name].chance,
            {**part.sizes, "speaker": len(whole.speakers)}, FIGURES[name].source, span,
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
            f"no protected voice stands out in {100 * lost:.0f}\u00a0% of the resamples "
            f"(D_diag(PP) is 0): G_VD is {value:.1f} dB here and has no lower limit"
        )
    draws = 10.0 * np.log10(ratio[ratio > 0.0])
    return corrected_interval(draws, value, speakers=speakers, confidence=confidence)
