"""What each figure is called, how to read it, and how its interval is found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels, eer, zebra
from voxrisk.measure.calibration import cllr, min_cllr
from voxrisk.measure.curve import Roc
from voxrisk.measure.dsys import MIN_TARGETS, d_sys
from voxrisk.measure.intervals import (
    corrected_interval,
    exact_interval,
    maximum_interval,
    toward_chance,
)
from voxrisk.types import Estimate, Interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: what it is called, how to read it, how it is computed, how its interval is found.

    Attributes:
        label: Name for people.
        plain: Name on the pages of the report, where it is another.
        kind: ``"score"``, ``"speaker"``, ``"rank"``, ``"reassembly"``, ``"similarity"``,
            ``"crowd"``, ``"attribute"`` or ``"utility"``.
        chance: What an attacker who learns nothing gets (NaN: depends on the number of candidates).
        unit: ``"rate"`` (printed as percent), ``"signed rate"``, ``"bit"``, ``"dB"``, ``"log10"``,
            ``"of 5"`` or ``""``.
        privacy: ``"higher"`` or ``"lower"``: which direction protects.
        source: Paper and equation.
        meaning: In a few words, for a table.
        of_curve: The function, of a :class:`Roc`; or
        of_scores: of target and nontarget scores; or
        of_speech: ``"module:function"`` inside voxrisk, of original and anonymized utterances; by
            name, because this package knows nothing of audio. Other kinds are computed together.
        least: Target trials without which it is undefined.
        rate: Whether 0 or 1 is a share of speakers, none or all, and asks for an exact bound.
        scale: Its range, where the interval is found on the arcsine scale of it.
        bias: How many times the bias of the resamples is taken off. What rests on PAV needs two:
            resamples repeat trials, and PAV gains less from repeated trials than from new ones.
    """

    label: str
    plain: str = ""
    kind: str = "score"
    chance: float = float("nan")
    unit: str = ""
    privacy: str = ""
    source: str = ""
    meaning: str = ""
    of_curve: Callable[[Roc], float] | None = None
    of_scores: Callable[[Floats, Floats], float] | None = None
    of_speech: str = ""
    least: int = 1
    rate: bool = False
    scale: tuple[float, float] | None = None
    bias: float = 1.0


_UNIT = (0.0, 1.0)
_BOSARIS = "Brümmer & de Villiers, BOSARIS 2011"
_ZEBRA = "Nautsch et al., Interspeech 2020"
_NOE = "Noé et al., Interspeech 2020"
_SLICES = "Maouche et al., Interspeech 2022, Section 5.1"
_LEGAL = "Vauquier et al., Interspeech 2025"
# Every figure of voxrisk. The command line, the report, the tables and the docs read it; a new
# figure of scores is one row, and its function where it belongs.
FIGURES: dict[str, Figure] = {
    "rocch_eer": Figure(
        label="EER, convex hull", plain="Equal error rate (EER)", chance=0.5, unit="rate",
        privacy="higher", source=_BOSARIS, of_curve=eer.rocch_eer, rate=True, scale=_UNIT, bias=2.0,
    ),
    "interpolated_eer": Figure(
        label="EER, interpolated", chance=0.5, unit="rate", privacy="higher",
        source="ROC joined by straight lines", of_curve=eer.interpolated_eer, rate=True,
        scale=_UNIT,
    ),
    "kaldi_eer": Figure(
        label="EER, Kaldi", chance=0.5, unit="rate", privacy="higher", source="Kaldi compute-eer",
        of_curve=eer.kaldi_eer, rate=True, scale=_UNIT,
    ),
    "vertex_eer": Figure(
        label="EER, nearest vertex", chance=0.5, unit="rate", privacy="higher", source="SpAnE",
        of_curve=eer.vertex_eer, rate=True, scale=_UNIT,
    ),
    "min_dcf_01": Figure(
        label="min DCF, p = 0.01", chance=1.0, privacy="higher", source="NIST SRE; Kaldi",
        of_curve=partial(eer.min_dcf, p_target=0.01), rate=True, scale=_UNIT,
    ),
    "min_dcf_001": Figure(
        label="min DCF, p = 0.001", chance=1.0, privacy="higher", source="NIST SRE; Kaldi",
        of_curve=partial(eer.min_dcf, p_target=0.001), rate=True,
    ),
    "cllr": Figure(
        label="Cllr of raw scores", chance=1.0, unit="bit", privacy="higher",
        source="Brümmer & du Preez 2006", of_scores=cllr,
    ),
    "min_cllr": Figure(
        label="min Cllr", chance=1.0, unit="bit", privacy="higher",
        source="Brümmer & du Preez 2006", of_curve=min_cllr, scale=_UNIT, bias=2.0,
    ),
    "d_ece": Figure(
        label="ZEBRA expected, D_ECE", chance=0.0, unit="bit", privacy="lower",
        source=f"{_ZEBRA}, Eq. 6", of_curve=zebra.expected_disclosure,
        scale=(0.0, zebra.FULL_DISCLOSURE), bias=2.0,
    ),
    "log10_l": Figure(
        label="ZEBRA worst case, log10 l", chance=0.0, unit="log10", privacy="lower",
        source=f"{_ZEBRA}, Eq. 8", of_curve=zebra.worst_case_disclosure,
    ),
    "d_sys": Figure(
        label="D_sys", chance=0.0, privacy="lower", source="Gomez-Barrero et al. 2018",
        of_scores=d_sys, least=MIN_TARGETS, scale=_UNIT,
    ),
    "speaker_eer": Figure(
        label="EER, mean over speakers", kind="speaker", chance=0.5, unit="rate", privacy="higher",
        source="each speaker's own EER, clipped at 50 %",
    ),
    "mean_rank": Figure(
        label="Mean normalised rank", kind="rank", unit="rate", privacy="higher", source=_SLICES
    ),
    "median_rank": Figure(
        label="Median normalised rank", kind="rank", unit="rate", privacy="higher", source=_SLICES
    ),
    "precision_at_1": Figure(
        label="Found at rank 1", kind="rank", unit="rate", privacy="lower", source=_SLICES,
        rate=True,
    ),
    "precision_at_10": Figure(
        label="Found in the best 10 %", kind="rank", unit="rate", privacy="lower", source=_SLICES,
        rate=True,
    ),
    "found_in_5": Figure(
        label="Found in the best 5", kind="rank", unit="rate", privacy="lower",
        source="cumulative match characteristic, rank 5", rate=True,
    ),
    "rank_bits": Figure(
        label="Similarity rank disclosure, mean", kind="rank", chance=0.0, unit="bit",
        privacy="lower", source="Bäckström et al., arXiv 2508.05250",
    ),
    "worst_rank_bits": Figure(
        label="Similarity rank disclosure, worst case", kind="rank", chance=0.0, unit="bit",
        privacy="lower", source="Bäckström et al., arXiv 2508.05250",
    ),
    "pair_accuracy": Figure(
        label="Pairs judged rightly", kind="reassembly", chance=0.5, unit="rate", privacy="lower",
        source=_SLICES.replace("5.1", "5.2"), rate=True,
    ),
    "deid": Figure(
        label="De-identification DeID", kind="similarity", chance=1.0, unit="rate",
        privacy="higher", source=f"{_NOE}, Eq. 4",
    ),
    "g_vd": Figure(
        label="Voice distinctiveness G_VD", kind="similarity", chance=0.0, unit="dB",
        source=f"{_NOE}, Eq. 5",
    ),
    "singling_out": Figure(
        label="Singling Out", kind="crowd", unit="rate", privacy="lower",
        source=f"{_LEGAL}, Eqs 1 and 2",
    ),
    "linkability": Figure(
        label="Linkability", kind="crowd", unit="rate", privacy="lower",
        source=f"{_LEGAL}, Eqs 3 and 4",
    ),
    "recordings_linked": Figure(
        label="recordings linked across sessions", kind="crowd", unit="rate", privacy="lower",
        source="voxrisk; the open question of Noé et al., Interspeech 2020", rate=True,
        meaning="of 100 recordings, how many are put together with another one of the same person",
    ),
    "people_linked": Figure(
        label="people linked across all sessions", kind="crowd", unit="rate", privacy="lower",
        source="voxrisk; the open question of Noé et al., Interspeech 2020", rate=True,
        meaning="of 100 people, how many have all their recordings put together",
    ),
    "uar": Figure(
        label="Balanced accuracy, UAR", plain="Balanced accuracy (UAR)", kind="attribute",
        unit="rate", privacy="lower", source="mean over classes of the share recognised", rate=True,
        scale=_UNIT,
    ),
    "attribute_auc": Figure(
        label="Area under the ROC curve", plain="Area under the curve (AUC)", kind="attribute",
        chance=0.5, unit="rate", privacy="lower", source="mean over classes, each against all "
        "others", rate=True, scale=_UNIT,
    ),
    "attribute_bits": Figure(
        label="Expected disclosure of an attribute", plain="Expected disclosure", kind="attribute",
        chance=0.0, unit="bit", privacy="lower",
        source="entropy of the prior less cross-entropy of calibrated beliefs",
    ),
    "attribute_worst": Figure(
        label="Worst-case disclosure of an attribute", plain="Worst case", kind="attribute",
        chance=0.0, unit="bit", privacy="lower",
        source="largest log2 of calibrated belief over prior, Laplace's rule",
    ),
    "mean_error": Figure(
        label="Mean error of the guessed number", plain="Mean error", kind="attribute",
        privacy="higher", source="mean absolute error",
    ),
    "correlation": Figure(
        label="Correlation of guess and truth", plain="Correlation", kind="attribute", chance=0.0,
        privacy="lower", source="Pearson", scale=(-1.0, 1.0),
    ),
    "people_left": Figure(
        label="People left to choose from", kind="attribute", privacy="higher",
        source="2 to the cross-entropy of belief in the right person",
    ),
    "found_by_attributes": Figure(
        label="Found by attributes alone", kind="attribute", unit="rate", privacy="lower",
        source="after arXiv 2603.20301",
    ),
    "wer": Figure(
        label="Word error rate", plain="Word error rate (WER)", kind="utility", chance=1.0,
        unit="rate", of_speech="utility.wer:measure_wer",
        meaning="share of words a speech recogniser gets wrong; lower is better",
    ),
    "cer": Figure(
        label="Character error rate", plain="Character error rate (CER)", kind="utility",
        chance=1.0, unit="rate", of_speech="utility.wer:measure_cer",
        meaning="the same of letters and signs, without spaces; lower is better",
    ),
    "pitch_correlation": Figure(
        label="Pitch correlation", kind="utility", chance=0.0,
        of_speech="utility.pitch:measure_pitch",
        meaning="1: the melody of speech is kept; 0: it is lost",
    ),
    "distillmos": Figure(
        label="DistillMOS, 1 to 5", plain="Naturalness (DistillMOS)", kind="utility", chance=1.0,
        unit="of 5", of_speech="utility.naturalness:measure_naturalness",
        meaning="predicted opinion of listeners on how natural it sounds, 1 (bad) to 5 (excellent)",
    ),
    "dnsmos": Figure(
        label="DNSMOS overall, 1 to 5", plain="Sound quality (DNSMOS)", kind="utility", chance=1.0,
        unit="of 5", of_speech="utility.quality:measure_quality",
        meaning="predicted opinion of listeners, 1 (bad) to 5 (excellent); made for noise",
    ),
    "dnsmos_signal": Figure(
        label="DNSMOS speech", kind="utility", chance=1.0, unit="of 5"
    ),
    "dnsmos_background": Figure(
        label="DNSMOS background", kind="utility", chance=1.0, unit="of 5"
    ),
    "duration_change": Figure(
        label="Change of duration", kind="utility", chance=0.0, unit="signed rate",
        of_speech="utility.duration:measure_duration",
        meaning="how much longer or shorter the speech has become",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures(Mapping[str, Estimate]):
    """The figures of a score set by name, and why some of them cannot be given.

    A figure is either here or in ``undefined``, never in both: what cannot be computed must not
    look like a number.

    Attributes:
        estimates: Figure by name.
        undefined: Name and reason of the others.
    """

    estimates: Mapping[str, Estimate]
    undefined: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Estimate:
        if name in self.undefined:
            raise KeyError(f"{name} is undefined: {self.undefined[name]}")
        return self.estimates[name]

    @property
    def eer(self) -> Estimate:
        """The equal error rate (convex hull)."""
        return self["rocch_eer"]

    def __getattr__(self, name: str) -> Estimate:
        """Each figure is an attribute too: ``figures.d_ece``."""
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)


def score_intervals(
    values: Mapping[str, float],
    draws: Mapping[str, Floats],
    *,
    speakers: int,
    ceiling: float,
    confidence: float,
) -> dict[str, Interval]:
    """The interval of each score figure that has draws, all of one mind about chance.

    Args:
        values: The figures; ``rocch_eer`` among them.
        draws: ``(resamples,)`` of each.
        speakers: How many were resampled.
        ceiling: The highest log10 l that so many trials can show.
        confidence: Coverage.
    """
    found = {}
    for name, drawn in draws.items():
        figure, value = FIGURES[name], values[name]
        if figure.rate and abs(value - round(value)) < 1e-9:
            events = round(value) * speakers
            span = exact_interval(events, speakers, confidence=confidence)
            found[name] = replace(span, low=min(span.low, value), high=max(span.high, value))
        elif name == "log10_l":
            found[name] = maximum_interval(
                drawn, value, speakers=speakers, ceiling=ceiling, confidence=confidence
            )
        else:
            found[name] = corrected_interval(
                drawn, value, speakers=speakers, confidence=confidence,
                scale=figure.scale, bias=figure.bias,
            )  # fmt: skip
            # No error, cost or disclosure is below nothing.
            least = min(0.0, value)
            found[name] = replace(found[name], low=max(found[name].low, least))
    whole = found["rocch_eer"]
    found["rocch_eer"] = replace(whole, high=min(whole.high, 0.5))
    decided = whole.high < 0.5 and values["rocch_eer"] > 0.0
    for name, limit in weakest(min(whole.high, 0.5)).items():
        if name in found:
            found[name] = toward_chance(
                found[name], values[name], limit,
                privacy=FIGURES[name].privacy, decided=decided,
            )  # fmt: skip
    return found


def weakest(error: float) -> dict[str, float]:
    """What an attacker with this ROCCH-EER learns at least, in other figures.

    Of all curves through miss = false alarm = EER, the one with a single corner there discloses
    least, by every figure that is convex in the evidence. At ½ these are the chance levels.

    >>> {name: round(value, 3) for name, value in weakest(0.5).items()}  # doctest: +ELLIPSIS
    {'min_dcf_01': 1.0, 'min_dcf_001': 1.0, 'min_cllr': 1.0, 'd_ece': 0.0, 'log10_l': 0.0, ...}
    """
    target, nontarget = np.array([error, 1.0 - error]), np.array([1.0 - error, error])
    llr = _kernels.block_llr(target, nontarget)
    return {
        "min_dcf_01": min(_kernels.min_dcf(target, nontarget, 0.01, 1.0, 1.0), 1.0),
        "min_dcf_001": min(_kernels.min_dcf(target, nontarget, 0.001, 1.0, 1.0), 1.0),
        "min_cllr": min(_kernels.block_ece(target, nontarget, llr, 0.0), 1.0),
        "d_ece": _kernels.expected_disclosure(target, nontarget, llr),
        "log10_l": float(abs(llr[1])) / float(np.log(10.0)),
        "d_sys": (1.0 - error) * (1.0 - 2.0 * error),
    }
