"""ZEBRA: how much evidence the attacker gains on average, and in the worst case.

Reference: Nautsch et al., "The Privacy ZEBRA: Zero Evidence Biometric Recognition Assessment",
Interspeech 2020.
"""

from __future__ import annotations  # help() shows names of types, not a wall of them

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from voxrisk.measure import _kernels
from voxrisk.measure.calibration import LN2, pav
from voxrisk.measure.curve import Roc, roc
from voxrisk.types import InputError

FULL_DISCLOSURE: float = 1.0 / (2.0 * LN2)
TAGS = "0ABCDEF"
_BOUNDARIES = (1.0, 2.0, 4.0, 5.0, 6.0)
_ROUNDING = 1e-12  # logarithms of counts that make exactly 100 may come out a little below 2


def expected_disclosure(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """What an attacker learns from a voice on average, in bits, whatever they believed before.

    D_ECE, Eqs 5 and 6: the area between the zero-evidence profile and the profile of the calibrated
    scores, over all priors π. Range 0 (zero evidence, the chance level) to 1/(2 ln 2) = 0.7213.

    Args:
        target: ``(n_target,)`` scores, or a :class:`Roc`.
        nontarget: ``(n_nontarget,)`` scores.

    >>> expected_disclosure([1.0], [1.0]), round(expected_disclosure([1.0], [0.0]), 4)
    (0.0, 0.7213)
    """
    best = pav(target, nontarget)
    return _kernels.expected_disclosure(best.target, best.nontarget, best.llr)


def worst_case_disclosure(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> float:
    """The strongest evidence the attacker gets about any one trial: log10 of its likelihood ratio.

    log10(l), Eq. 8: the largest |LLR| after calibration with Laplace's rule. 0 is zero evidence
    (the chance level); there is no upper limit, but with few trials it cannot grow far: k separated
    targets give log10((k + 1)·N_nontarget/N_target).

    >>> worst_case_disclosure([1.0], [1.0]), round(worst_case_disclosure([1.0], [0.0] * 50), 9)
    (0.0, 2.0)
    """
    best = pav(target, nontarget, laplace=True)
    return float(np.abs(best.llr).max() / np.log(10.0))


def worst_case_ceiling(n_target: int, n_nontarget: int) -> float:
    """The highest :func:`worst_case_disclosure` that so many trials can show: full separation.

    A worst case near this ceiling says more about the number of trials than about privacy: five
    targets and five nontargets that are told apart without a mistake are category A.

    >>> round(worst_case_ceiling(5, 5), 3), round(worst_case_ceiling(449, 11295), 3)
    (0.778, 4.054)
    """
    if min(n_target, n_nontarget) < 1:
        raise InputError(f"{n_target} target and {n_nontarget} nontarget trials; both are needed")
    ratio = n_nontarget / n_target
    return float(np.log10(max((n_target + 1) * ratio, (n_nontarget + 1) / ratio)))


@dataclass(frozen=True, slots=True)
class Zebra:
    """Expected disclosure in bits, worst case as log10 l, and the category of the worst case."""

    d_ece: float
    log10_l: float
    tag: str


def zebra(target: ArrayLike | Roc, nontarget: ArrayLike | None = None) -> Zebra:
    """What a voice gives away on average and in the worst case, with its tag.

    >>> zebra([1.0] * 9, [0.0] * 9).tag
    'B'
    """
    curve = (
        target if isinstance(target, Roc) else roc(target, [] if nontarget is None else nontarget)
    )
    worst = worst_case_disclosure(curve)
    return Zebra(expected_disclosure(curve), worst, tag(worst))


def tag(log10_l: float) -> str:
    """The category of a worst-case disclosure, as Table 1 of the paper defines it.

    0 at l = 1; A below 10; B below 100; C below 10⁴; D below 10⁵; E below 10⁶; F from there on. A
    boundary value belongs to the higher category, also where rounding has left it 1e-12 short.

    >>> tag(0.0), tag(0.99), tag(1.0), tag(3.98), tag(6.0)
    ('0', 'A', 'B', 'C', 'F')
    """
    if not log10_l >= 0.0:
        raise ValueError(f"log10(l) is {log10_l}; a worst case is 0 or more")
    if log10_l <= _ROUNDING:
        return TAGS[0]
    return TAGS[1 + int(np.searchsorted(_BOUNDARIES, log10_l + _ROUNDING, side="right"))]
