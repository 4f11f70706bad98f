"""Metrics: plain functions on arrays, with NumPy, SciPy and numba and nothing of files or audio.

A higher score always means "more likely the same speaker". Rates are fractions. Score metrics take
``target`` and ``nontarget`` scores, or the :class:`Roc` made from them once.
"""

from voxrisk.measure.all_figures import evaluate_similarity, measure_scores, score_metrics
from voxrisk.measure.calibration import (
    Calibration,
    cllr,
    ece_profile,
    min_cllr,
    pav,
    zero_evidence,
)
from voxrisk.measure.crowd import crowd_of_scores, crowd_of_sets, measure_crowd
from voxrisk.measure.curve import Roc, roc
from voxrisk.measure.dsys import LocalDSys, d_sys, local_d_sys
from voxrisk.measure.eer import interpolated_eer, kaldi_eer, min_dcf, rocch_eer, vertex_eer
from voxrisk.measure.figures import FIGURES, Figures
from voxrisk.measure.intervals import (
    corrected_interval,
    exact_interval,
    maximum_interval,
    percentile_interval,
    rate_interval,
)
from voxrisk.measure.plda import Plda, train_plda
from voxrisk.measure.population import Population, Protocol
from voxrisk.measure.ranking import (
    Ranks,
    cumulative_match,
    found_in_5,
    mean_normalised_rank,
    median_normalised_rank,
    precision_at_1,
    precision_at_10_percent,
    rank_bits,
    ranks,
    worst_rank_bits,
)
from voxrisk.measure.resampling import bootstrap, speaker_weights
from voxrisk.measure.scored_trials import Trials
from voxrisk.measure.sessions import session_linkage
from voxrisk.measure.similarity import (
    Similarity,
    de_identification,
    diagonal_dominance,
    distinctiveness_gain,
    segment_trials,
    similarity_matrix,
)
from voxrisk.measure.speaker_eer import speaker_eers
from voxrisk.measure.zebra import (
    expected_disclosure,
    tag,
    worst_case_ceiling,
    worst_case_disclosure,
)

__all__ = [
    "FIGURES",
    "Calibration",
    "Figures",
    "LocalDSys",
    "Plda",
    "Population",
    "Protocol",
    "Ranks",
    "Roc",
    "Similarity",
    "Trials",
    "bootstrap",
    "cllr",
    "corrected_interval",
    "crowd_of_scores",
    "crowd_of_sets",
    "cumulative_match",
    "d_sys",
    "de_identification",
    "diagonal_dominance",
    "distinctiveness_gain",
    "ece_profile",
    "evaluate_similarity",
    "exact_interval",
    "expected_disclosure",
    "found_in_5",
    "interpolated_eer",
    "kaldi_eer",
    "local_d_sys",
    "maximum_interval",
    "mean_normalised_rank",
    "measure_crowd",
    "measure_scores",
    "median_normalised_rank",
    "min_cllr",
    "min_dcf",
    "pav",
    "percentile_interval",
    "precision_at_1",
    "precision_at_10_percent",
    "rank_bits",
    "ranks",
    "rate_interval",
    "roc",
    "rocch_eer",
    "score_metrics",
    "segment_trials",
    "session_linkage",
    "similarity_matrix",
    "speaker_eers",
    "speaker_weights",
    "tag",
    "train_plda",
    "vertex_eer",
    "worst_case_ceiling",
    "worst_case_disclosure",
    "worst_rank_bits",
    "zero_evidence",
]
