"""What each figure is called, how to read it, and how its interval is found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels, zebra
from voxrisk.measure.intervals import (
    corrected_interval,
    exact_interval,
    maximum_interval,
    toward_chance,
)
from voxrisk.types import Estimate, Interval

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
        rate: Whether 0 or 1 is a share of speakers, none or all, and asks for an exact bound.
        scale: Its range, where the interval is found on the arcsine scale of it.
        bias: How many times the bias of the resamples is taken off. Two for what rests on PAV, by
            simulation (decision 2).
    """

    label: str
    chance: float
    unit: str
    privacy: str
    source: str
    rate: bool = False
    scale: tuple[float, float] | None = None
    bias: float = 1.0


_UNIT = (0.0, 1.0)
_BOSARIS = "Brümmer & de Villiers, BOSARIS 2011"
_ZEBRA = "Nautsch et al., Interspeech 2020"
_NOE = "Noé et al., Interspeech 2020"
_SLICES = "Maouche et al., Interspeech 2022, Section 5.1"
_NAN = float("nan")
DEFINITIONS = {
    "rocch_eer": Definition(
        "EER, convex hull", 0.5, "rate", "higher", _BOSARIS, rate=True, scale=_UNIT, bias=2.0
    ),
    "interpolated_eer": Definition(
        "EER, interpolated", 0.5, "rate", "higher", "ROC joined by straight lines",
        rate=True, scale=_UNIT,
    ),
    "kaldi_eer": Definition(
        "EER, Kaldi", 0.5, "rate", "higher", "Kaldi compute-eer", rate=True, scale=_UNIT
    ),
    "vertex_eer": Definition(
        "EER, nearest vertex", 0.5, "rate", "higher", "SpAnE", rate=True, scale=_UNIT
    ),
    "min_dcf_01": Definition(
        "min DCF, p = 0.01", 1.0, "", "higher", "NIST SRE; Kaldi", rate=True, scale=_UNIT
    ),
    "min_dcf_001": Definition(
        "min DCF, p = 0.001", 1.0, "", "higher", "NIST SRE; Kaldi", rate=True
    ),
    "cllr": Definition("Cllr of raw scores", 1.0, "bit", "higher", "Brümmer & du Preez 2006"),
    "min_cllr": Definition(
        "min Cllr", 1.0, "bit", "higher", "Brümmer & du Preez 2006", scale=_UNIT, bias=2.0
    ),
    "d_ece": Definition(
        "ZEBRA expected, D_ECE", 0.0, "bit", "lower", f"{_ZEBRA}, Eq. 6",
        scale=(0.0, zebra.FULL_DISCLOSURE), bias=2.0,
    ),
    "log10_l": Definition("ZEBRA worst case, log10 l", 0.0, "log10", "lower", f"{_ZEBRA}, Eq. 8"),
    "d_sys": Definition("D_sys", 0.0, "", "lower", "Gomez-Barrero et al. 2018", scale=_UNIT),
    "mean_rank": Definition("Mean normalised rank", _NAN, "rate", "higher", _SLICES),
    "median_rank": Definition("Median normalised rank", _NAN, "rate", "higher", _SLICES),
    "precision_at_1": Definition("Found at rank 1", _NAN, "rate", "lower", _SLICES, rate=True),
    "precision_at_10": Definition(
        "Found in the best 10 %", _NAN, "rate", "lower", _SLICES, rate=True
    ),
    "deid": Definition("De-identification DeID", 1.0, "rate", "higher", f"{_NOE}, Eq. 4"),
    "g_vd": Definition("Voice distinctiveness G_VD", 0.0, "dB", "", f"{_NOE}, Eq. 5"),
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
        definition, value = DEFINITIONS[name], values[name]
        if definition.rate and abs(value - round(value)) < 1e-9:
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
                scale=definition.scale, bias=definition.bias,
            )  # fmt: skip
    eer = found["rocch_eer"]
    found["rocch_eer"] = replace(eer, high=min(eer.high, 0.5))
    decided = eer.high < 0.5 and values["rocch_eer"] > 0.0
    for name, limit in weakest(min(eer.high, 0.5)).items():
        if name in found:
            found[name] = toward_chance(
                found[name], values[name], limit,
                privacy=DEFINITIONS[name].privacy, decided=decided,
            )  # fmt: skip
    return found


def weakest(eer: float) -> dict[str, float]:
    """What an attacker with this ROCCH-EER learns at least, in other figures.

    Of all curves through miss = false alarm = EER, the one with a single corner there discloses
    least, by every figure that is convex in the evidence. At ½ these are the chance levels.

    >>> {name: round(value, 3) for name, value in weakest(0.5).items()}  # doctest: +ELLIPSIS
    {'min_dcf_01': 1.0, 'min_dcf_001': 1.0, 'min_cllr': 1.0, 'd_ece': 0.0, 'log10_l': 0.0, ...}
    """
    target, nontarget = np.array([eer, 1.0 - eer]), np.array([1.0 - eer, eer])
    llr = _kernels.block_llr(target, nontarget)
    return {
        "min_dcf_01": min(_kernels.min_dcf(target, nontarget, 0.01, 1.0, 1.0), 1.0),
        "min_dcf_001": min(_kernels.min_dcf(target, nontarget, 0.001, 1.0, 1.0), 1.0),
        "min_cllr": min(_kernels.block_ece(target, nontarget, llr, 0.0), 1.0),
        "d_ece": _kernels.expected_disclosure(target, nontarget, llr),
        "log10_l": float(abs(llr[1])) / float(np.log(10.0)),
        "d_sys": (1.0 - eer) * (1.0 - 2.0 * eer),
    }
