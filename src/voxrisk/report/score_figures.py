"""Pictures of score sets: ECE profiles, DET curves, histograms, similarity matrices, scatter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import (
    Roc,
    Similarity,
    Trials,
    d_sys,
    ece_profile,
    expected_disclosure,
    local_d_sys,
    rocch_eer,
    tag,
    worst_case_disclosure,
    zero_evidence,
)
from voxrisk.measure.d_sys import MIN_TARGETS, bin_edges
from voxrisk.report import style
from voxrisk.types import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_ODDS = np.linspace(-10.0, 10.0, 201)


def ece_figure(curves: Mapping[str, Roc]) -> "Figure":
    """ZEBRA: what the attacker still does not know, against what they believed beforehand."""
    from matplotlib import rc_context

    with rc_context(style.SETTINGS):
        figure = style.new_figure(10.5, 4.4)
        left, right = figure.subplots(1, 2)
        zero = zero_evidence(LOG_ODDS)
        pi = np.linspace(0.0, 1.0, 201)[1:-1]
        pi_odds = np.log(pi / (1 - pi))
        left.plot(LOG_ODDS, zero, color=style.INK, label="zero evidence: perfect privacy")
        right.plot(pi, zero_evidence(pi_odds), color=style.INK)
        for i, (name, curve) in enumerate(curves.items()):
            worst = worst_case_disclosure(curve)
            words = f"{name}: {expected_disclosure(curve):.3f} bit, {worst:.2f} ({tag(worst)})"
            colour = style.colour(i)
            profile = ece_profile(curve, log_odds=LOG_ODDS)
            left.plot(LOG_ODDS, profile, color=colour, label=words)
            right.plot(pi, ece_profile(curve, log_odds=pi_odds), color=colour)
            if len(curves) == 1:
                left.fill_between(LOG_ODDS, profile, zero, color=colour, alpha=0.12, lw=0)
        for axes in (left, right):
            axes.set_ylim(0.0, 1.02)
            axes.set_ylabel("uncertainty left, bit")
        left.set_xlim(-10, 10)
        left.set_xlabel("attacker's prior log-odds for “same speaker”")
        left.set_title("What the attacker still does not know")
        right.set_xlim(0, 1)
        right.set_xlabel("attacker's prior probability π of “same speaker”")
        right.set_title("The same, by probability")
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=1 if len(curves) < 3 else 2,
            title="set: expected disclosure D_ECE, worst case log10 l (tag)",
        )
        return figure


def det_figure(curves: Mapping[str, Roc]) -> "Figure":
    """Detection error trade-off on normal-deviate axes, the hull's EER marked."""
    from matplotlib import rc_context
    from scipy.special import ndtri

    with rc_context(style.SETTINGS):
        figure = style.new_figure(6.2, 6.2)
        axes = figure.subplots()
        ticks = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99])
        low, high = ndtri(0.0005), ndtri(0.995)
        axes.plot([low, high], [low, high], color=style.MUTED, lw=0.8, ls=":")
        axes.plot([low, high], [-low, -high], color=style.INK, lw=1, ls="--", label="chance")
        for i, (name, curve) in enumerate(curves.items()):
            x, y = _thinned(curve)
            axes.plot(
                ndtri(np.clip(x, 1e-6, 1 - 1e-6)),
                ndtri(np.clip(y, 1e-6, 1 - 1e-6)),
                color=style.colour(i),
                label=f"{name}: EER {rocch_eer(curve):.1%}",
            )
            where = ndtri(max(rocch_eer(curve), 0.0005))
            axes.plot(where, where, "o", color=style.colour(i), ms=6, mec="white")
        labels = [f"{100 * t:g}" for t in ticks]
        axes.set_xticks(ndtri(ticks), labels)
        axes.set_yticks(ndtri(ticks), labels)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_aspect("equal")
        axes.set_xlabel("false alarms: strangers taken for the speaker, %")
        axes.set_ylabel("misses: the speaker not recognised, %")
        axes.set_title("Errors of the attacker (DET)")
        axes.legend(loc="upper right")
        return figure


def _thinned(curve: Roc, most: int = 4000) -> tuple[NDArray[Any], NDArray[Any]]:
    """The staircase with at most ``most`` vertices: enough for the eye, small enough for SVG."""
    x, y = curve.false_alarm, curve.miss
    if x.size > most:
        keep = np.unique(np.linspace(0, x.size - 1, most).astype(int))
        x, y = x[keep], y[keep]
    return x, y


def histogram_figure(sets: Mapping[str, Trials]) -> "Figure":
    """Score densities of both classes with the local D(s), one panel a set."""
    from matplotlib import rc_context

    with rc_context(style.SETTINGS):
        columns = min(len(sets), 3)
        rows = -(-len(sets) // columns)
        figure = style.new_figure(5.6 * columns, 3.8 * rows)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.ravel()[len(sets) :]:
            axes.set_visible(False)
        handles: dict[str, Any] = {}
        for axes, (name, scored) in zip(grid.ravel(), sets.items(), strict=False):
            edges = bin_edges(scored.target, scored.nontarget)
            for scores, colour, words in (
                (scored.nontarget, style.NONTARGET, "different speakers"),
                (scored.target, style.TARGET, "same speaker"),
            ):
                values, _ = np.histogram(scores, edges, density=True)
                axes.stairs(values, edges, color=colour, fill=True, alpha=0.35, label=words)
                axes.stairs(values, edges, color=colour, lw=1.2)
            axes.set_xlabel("score")
            axes.set_ylabel("density")
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
            if scored.target.size < MIN_TARGETS:
                axes.set_title(f"{name}: too few target trials for D_sys")
                continue
            local = local_d_sys(scored.target, scored.nontarget)
            axes.set_title(f"{name}: D_sys {d_sys(scored.target, scored.nontarget):.3f}")
            other = axes.twinx()
            other.stairs(local.local, local.edges, color=style.INK, lw=1.3, label="D(s)")
            other.set_ylim(0, 1.05)
            other.set_ylabel("local D(s)")
            other.grid(False)
            handles |= dict(zip(*reversed(other.get_legend_handles_labels()), strict=True))
        figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=3)
        return figure


def similarity_figure(
    name: str, similarities: Sequence[Similarity], figures: Mapping[str, Estimate]
) -> "Figure":
    """Heat map of voice similarity: OO, OP and PP as one 2N × 2N square, or one matrix alone.

    ``similarities`` is (one matrix,), or (OO, OP, PP).
    """
    from matplotlib import rc_context

    with rc_context(style.SETTINGS | {"axes.grid": False}):
        speakers = similarities[0].speakers
        n = len(speakers)
        if len(similarities) == 3:
            oo, op, pp = (s.matrix for s in similarities)
            matrix = np.block([[oo, op], [op.T, pp]])
        else:
            matrix = similarities[0].matrix
        size = 4.6 + min(len(matrix) * 0.09, 5.0)
        figure = style.new_figure(size + 1.0, size)
        axes = figure.subplots()
        image = axes.imshow(matrix, vmin=0.0, vmax=1.0, cmap="viridis", interpolation="nearest")
        for spine in axes.spines.values():
            spine.set_visible(False)
        if len(similarities) == 3:
            axes.axhline(n - 0.5, color="white", lw=2)
            axes.axvline(n - 0.5, color="white", lw=2)
            axes.set_xlabel("original voices  |  protected voices")
            axes.set_ylabel("protected voices  |  original voices")
        names = [*speakers, *speakers] if len(similarities) == 3 else speakers
        if len(names) <= 60:
            axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
            axes.set_yticks(range(len(names)), names, fontsize=7)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
        axes.tick_params(length=0)
        words = [f"DeID {figures['deid'].value:.1%}"] if "deid" in figures else []
        words += [f"G_VD {figures['g_vd'].value:+.2f} dB"] if "g_vd" in figures else []
        axes.set_title(f"Voice similarity, {name}" + (f": {', '.join(words)}" if words else ""))
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        bar.set_label("similarity S(i, j): 1 the same voice, 0.5 undecided")
        bar.outline.set_visible(False)
        return figure


def scatter_figure(points: Mapping[str, tuple[Estimate, Estimate]]) -> "Figure":
    """DeID against G_VD for several systems, with their intervals; ideal is the upper right."""
    from matplotlib import rc_context

    with rc_context(style.SETTINGS):
        figure = style.new_figure(6.6, 4.8)
        axes = figure.subplots()
        for i, (name, (deid, gain)) in enumerate(points.items()):
            errors = [
                [[e.value - e.interval.low], [e.interval.high - e.value]] if e.interval else None
                for e in (deid, gain)
            ]
            axes.errorbar(
                deid.value,
                gain.value,
                xerr=errors[0],
                yerr=errors[1],
                fmt="o",
                ms=8,
                color=style.colour(i),
                mec="white",
                elinewidth=1.2,
                label=name,
            )
        axes.axhline(0, color=style.MUTED, lw=0.8, ls=":")
        axes.axvline(1, color=style.MUTED, lw=0.8, ls=":")
        style.percent_axis(axes.xaxis)
        axes.set_xlabel("de-identification DeID: 100 % hides who it was")
        axes.set_ylabel("voice distinctiveness G_VD, dB")
        axes.set_title("Hidden from the original, distinct from each other")
        axes.legend(loc="best")
        return figure
