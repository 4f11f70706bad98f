"""Every figure of a score set at once: value, interval, chance and where its definition is from."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure import eer, ranking, zebra
from voxrisk.measure.calibration import cllr, min_cllr
from voxrisk.measure.d_sys import d_sys
from voxrisk.measure.resampling import (
    basic_interval,
    bootstrap,
    exact_interval,
    percentile_interval,
    speaker_weights,
)
from voxrisk.measure.roc import roc
from voxrisk.measure.similarity import (
    both_sides,
    de_identification,
    distinctiveness_gain,
    resampled_dominance,
    similarity_matrix,
)
from voxrisk.measure.trials import Trials
from voxrisk.types import Estimate, InputError, Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a figure is called and how to read it.

    Attributes:
        label: Name for people.
        chance: What an attacker who learns nothing gets (NaN: depends on the number of candidates).
        unit: ``"rate"`` (printed as percent), ``"bit"``, ``"dB"``, ``"log10"`` or ``""``.
        privacy: ``"higher"`` or ``"lower"``: which direction protects.
        source: Paper and equation.
        rate: Whether the value is a share of events, so that 0 or 1 asks for an exact bound.
        bounds: Range of a figure that is optimised on the data; its interval is the basic one.
    """

    label: str
    chance: float
    unit: str
    privacy: str
    source: str
    rate: bool = False
    bounds: tuple[float, float] | None = None


_BOSARIS = "Brümmer & de Villiers, BOSARIS 2011"
_ZEBRA = "Nautsch et al., Interspeech 2020"
_NOE = "Noé et al., Interspeech 2020"
_SLICES = "Maouche et al., Interspeech 2022, Section 5.1"
DEFINITIONS = {
    "rocch_eer": Definition("EER, convex hull", 0.5, "rate", "higher", _BOSARIS, True),
    "interpolated_eer": Definition(
        "EER, interpolated", 0.5, "rate", "higher", "ROC joined by straight lines", True
    ),
    "kaldi_eer": Definition("EER, Kaldi", 0.5, "rate", "higher", "Kaldi compute-eer", True),
    "vertex_eer": Definition("EER, nearest vertex", 0.5, "rate", "higher", "SpAnE", True),
    "min_dcf_01": Definition(
        "min DCF, p = 0.01", 1.0, "", "higher", "NIST SRE; Kaldi", bounds=(0.0, 1.0)
    ),
    "min_dcf_001": Definition(
        "min DCF, p = 0.001", 1.0, "", "higher", "NIST SRE; Kaldi", bounds=(0.0, 1.0)
    ),
    "cllr": Definition("Cllr of raw scores", 1.0, "bit", "higher", "Brümmer & du Preez 2006"),
    "min_cllr": Definition(
        "min Cllr", 1.0, "bit", "higher", "Brümmer & du Preez 2006", bounds=(0.0, 1.0)
    ),
    "d_ece": Definition(
        "ZEBRA expected, D_ECE",
        0.0,
        "bit",
        "lower",
        f"{_ZEBRA}, Eq. 6",
        bounds=(0.0, zebra.FULL_DISCLOSURE),
    ),
    "log10_l": Definition("ZEBRA worst case, log10 l", 0.0, "log10", "lower", f"{_ZEBRA}, Eq. 8"),
    "d_sys": Definition("D_sys", 0.0, "", "lower", "Gomez-Barrero et al. 2018", bounds=(0.0, 1.0)),
    "mean_rank": Definition("Mean normalised rank", float("nan"), "rate", "higher", _SLICES),
    "median_rank": Definition("Median normalised rank", float("nan"), "rate", "higher", _SLICES),
    "precision_at_1": Definition(
        "Found at rank 1", float("nan"), "rate", "lower", _SLICES, rate=True
    ),
    "precision_at_10": Definition(
        "Found in the best 10 %", float("nan"), "rate", "lower", _SLICES, rate=True
    ),
    "deid": Definition("De-identification DeID", 1.0, "rate", "higher", f"{_NOE}, Eq. 4"),
    "g_vd": Definition("Voice distinctiveness G_VD", 0.0, "dB", "", f"{_NOE}, Eq. 5"),
}


def score_metrics(target: ArrayLike, nontarget: ArrayLike) -> dict[str, float]:
    """All score metrics of two arrays of scores, in one pass over them.

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
        return {**figures, "cllr": raw.result(), "d_sys": d_sys(t, n)}


def evaluate(
    scored: Trials, *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> dict[str, Estimate]:
    """Every figure of a score set with its interval: what ``voxrisk measure`` prints.

    Ranks are given where each trial segment was scored against its own speaker and others.

    Args:
        scored: The trials, see :func:`voxrisk.measure.trials`.
        resamples: How many times speakers are drawn anew; 0 gives no intervals.
        seed: Seed of the draws.
        confidence: Coverage of the intervals.
    """
    values = score_metrics(scored.target, scored.nontarget)
    weights = _weights(scored, resamples, seed)
    draws = bootstrap(scored, weights) if weights is not None else {}
    ranked = _ranks(scored)
    if ranked is not None:
        values |= {name: metric(ranked) for name, metric in _RANKS.items()}
        if weights is not None:
            draws |= _rank_draws(scored, ranked, weights)
    chance = {name: DEFINITIONS[name].chance for name in values} | _rank_chance(ranked)
    parameters = {"resamples": resamples, "seed": seed} if resamples else {}
    return {
        name: Estimate(
            name,
            values[name],
            chance[name],
            scored.sizes,
            definition.source,
            _interval(definition, values[name], draws.get(name), scored.sizes, confidence),
            parameters,
        )
        for name, definition in DEFINITIONS.items()
        if name in values
    }


def evaluate_similarity(
    original: Trials,
    *,
    crossed: Trials | None = None,
    protected: Trials | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    compat: str | None = None,
) -> dict[str, Estimate]:
    """DeID (needs ``crossed``, OP) and G_VD (needs ``protected``, PP) against ``original``, OO."""
    found: dict[str, Estimate] = {}
    whole = similarity_matrix(original)
    parts: list[tuple[str, Trials | None, Callable[..., float]]] = [
        ("deid", crossed, de_identification),
        ("g_vd", protected, distinctiveness_gain),
    ]
    kept = both_sides(original)
    weights = _weights(kept, resamples, seed)
    base = None if weights is None else resampled_dominance(kept, weights)
    for name, part, metric in parts:
        if part is None:
            continue
        value = metric(whole, similarity_matrix(part), compat=compat)
        draws = None
        if weights is not None and base is not None:
            ratio = resampled_dominance(part, weights) / base
            ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
            draws = 1.0 - ratio if name == "deid" else 10.0 * np.log10(ratio)
        definition = DEFINITIONS[name]
        found[name] = Estimate(
            name,
            value,
            definition.chance,
            {**part.sizes, "speaker": len(whole.speakers)},
            definition.source,
            _interval(definition, value, draws, kept.sizes, confidence),
            {"compat": compat, **({"resamples": resamples, "seed": seed} if resamples else {})},
        )
    return found


_RANKS: dict[str, Callable[[ranking.Ranks], float]] = {
    "mean_rank": ranking.mean_normalised_rank,
    "median_rank": ranking.median_normalised_rank,
    "precision_at_1": ranking.precision_at_1,
    "precision_at_10": ranking.precision_at_10_percent,
}


def _weights(scored: Trials, resamples: int, seed: int) -> NDArray[np.int32] | None:
    if not resamples:
        return None
    return speaker_weights(len(scored.speakers), resamples=resamples, seed=seed)


def _ranks(scored: Trials) -> ranking.Ranks | None:
    """Ranks of the own speaker for each trial segment, if the trial list allows them."""
    try:
        return ranking.ranks(scored.score, scored.query, scored.is_target)
    except InputError:
        return None


def _rank_chance(ranked: ranking.Ranks | None) -> dict[str, float]:
    if ranked is None:
        return {}
    c = ranked.candidates
    middle = float(((c + 1) / (2 * c)).mean())
    return {
        "mean_rank": middle,
        "median_rank": middle,
        "precision_at_1": float((1 / c).mean()),
        "precision_at_10": float((np.floor(0.1 * c) / c).mean()),
    }


def _rank_draws(
    scored: Trials, ranked: ranking.Ranks, weights: NDArray[np.int32]
) -> dict[str, Floats]:
    """Resample the speakers who ask; the candidates stay as they are."""
    speaker = np.empty(int(scored.query.max()) + 1, np.int64)
    speaker[scored.query] = scored.trial_speaker
    w = weights[:, speaker[ranked.query]].astype(np.float64)
    w = w[w.sum(axis=1) > 0]
    total = w.sum(axis=1)
    order = np.argsort(ranked.normalised)
    cumulated = np.cumsum(w[:, order], axis=1)
    middle = (cumulated < total[:, None] / 2).sum(axis=1)
    return {
        "mean_rank": w @ ranked.normalised / total,
        "median_rank": ranked.normalised[order][middle],
        "precision_at_1": w @ (ranked.rank == 1.0) / total,
        "precision_at_10": w @ (ranked.normalised <= 0.1) / total,
    }


def _interval(
    definition: Definition,
    value: float,
    draws: Floats | None,
    sizes: dict[str, Any],
    confidence: float,
) -> Interval | None:
    if draws is None:
        return None
    if definition.rate and value in (0.0, 1.0):
        n = int(sizes["speaker"])
        return exact_interval(round(value * n), n, confidence=confidence)
    if definition.bounds:
        return basic_interval(draws, value, confidence=confidence, bounds=definition.bounds)
    return percentile_interval(draws, confidence=confidence)
