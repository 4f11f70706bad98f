"""D_sys, how well scores link two recordings, and its local form D(s).

References: Gomez-Barrero et al., "General framework to evaluate unlinkability in biometric template
protection systems", IEEE TIFS 2018; used by VoicePrivacy 2020 and 2022, under the name linkability.
Linkability by population size is another figure, see :mod:`voxrisk.measure.linking`.
"""

from __future__ import annotations  # help() shows names of types, not a wall of them

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from voxrisk.measure import _kernels
from voxrisk.measure.curve import Floats, check_scores
from voxrisk.types import InputError

MIN_TARGETS = 20  # two bins of ten targets; one bin would give 0 for any scores


@dataclass(frozen=True, slots=True, eq=False)
class LocalDSys:
    """How telling each stretch of scores is.

    Attributes:
        edges: ``(bins + 1,)`` bin borders over the joint range of the scores.
        target: ``(bins,)`` density of target scores.
        nontarget: ``(bins,)`` density of nontarget scores.
        local: ``(bins,)`` D(s): 0 where a score says nothing or speaks against a link, 1 where only
            targets score.
    """

    edges: Floats
    target: Floats
    nontarget: Floats
    local: Floats


def bin_edges(target: Floats, nontarget: Floats) -> Floats:
    """Borders of min(⌊n_target/10⌋, 100) equal bins, at least one, over the joint range."""
    bins = max(min(target.size // 10, 100), 1)
    low, high = min(target.min(), nontarget.min()), max(target.max(), nontarget.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def local_d_sys(target: ArrayLike, nontarget: ArrayLike, *, omega: float = 1.0) -> LocalDSys:
    """How sure a score in each bin makes an attacker that two recordings share a speaker.

    D(s) = 2·ω·LR/(1 + ω·LR) - 1, not below 0, from histograms of min(⌊n_target/10⌋, 100) equal bins
    over the joint range; LR = 1 where neither class scores.

    Raises:
        InputError: If there are fewer than 20 targets: a single bin says 0 of any scores, even of
            perfectly separated ones.
    """
    t, n = check_scores("target", target), check_scores("nontarget", nontarget)
    if not omega > 0.0:
        raise InputError(f"omega is {omega}; the prior ratio must be positive")
    if t.size < MIN_TARGETS:
        raise InputError(
            f"D_sys needs at least {MIN_TARGETS} target trials for two bins, and there are "
            f"{t.size}; add trials, or read D_ECE, which needs no bins"
        )
    edges = bin_edges(t, n)
    width = edges[1] - edges[0]
    y1 = _kernels.histogram(t, edges) / (t.size * width)
    y2 = _kernels.histogram(n, edges) / (n.size * width)
    # 2·ω·LR/(1 + ω·LR) - 1 with LR = y1/y2, written so that neither 0/0 nor x/0 arises.
    local = np.zeros_like(y1)
    some = (y1 > 0) | (y2 > 0)
    local[some] = (omega * y1[some] - y2[some]) / (omega * y1[some] + y2[some])
    return LocalDSys(edges, y1, y2, np.maximum(local, 0.0))


def d_sys(
    target: ArrayLike, nontarget: ArrayLike, *, omega: float = 1.0, compat: str | None = None
) -> float:
    """How well scores link recordings of one speaker, over the whole score distribution.

    D_sys = ∫ D(s)·p(s | same speaker) ds (see :func:`local_d_sys`). Range 0 (unlinkable, the
    chance level, up to the noise of small samples) to 1. Undefined for fewer than 20 targets.

    Args:
        target: ``(n_target,)`` scores, at least 20.
        nontarget: ``(n_nontarget,)`` scores.
        omega: Prior ratio P(same)/P(different).
        compat: ``"vpc"`` integrates by trapezoid over bin centres as the VoicePrivacy scripts do.
            That loses half of both end bins: full separation can give 0.835 instead of 1.

    >>> d_sys([2.0] * 20, [0.0] * 20), d_sys([1.0] * 20, [1.0] * 30)
    (1.0, 0.0)
    """
    if compat not in (None, "vpc"):
        raise InputError(f"compat is {compat!r}; D_sys knows only 'vpc'")
    curve = local_d_sys(target, nontarget, omega=omega)
    product = curve.local * curve.target
    width = float(curve.edges[1] - curve.edges[0])
    lost = 0.5 * (product[0] + product[-1]) if compat == "vpc" else 0.0
    return float(min((product.sum() - lost) * width, 1.0))
