"""Draw the pictures of the metric pages with voxrisk's own functions: ``python docs/pictures.py``.

``python docs/pictures.py RUN/report.html`` takes the picture of a report instead (needs Chromium).

The voices are simulated, with fixed seeds: a picture explains a figure, it is no result. The same
versions of the libraries give the same bytes.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from voxrisk import measure
from voxrisk.measure import Protocol
from voxrisk.report import style
from voxrisk.types import Embeddings

HERE = Path(__file__).parent / "pictures"
CLEAR, WEAK, NONE = 3.0, 1.0, 0.0  # how far apart target and nontarget scores lie, in deviations


def scores(shift: float, *, targets: int = 600, nontargets: int = 6000, seed: int = 1) -> Any:
    """Target and nontarget scores of a recogniser, both normal."""
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1.0, targets), rng.normal(0.0, 1.0, nontargets)


def voices(speakers: int, utterances: int, noise: float, *, seed: int) -> Embeddings:
    """A crowd: each utterance is its speaker's vector and noise."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(speakers), utterances)
    vectors = rng.normal(size=(speakers, 32))[who] + noise * rng.normal(size=(who.size, 32))
    names = np.array([f"{s:04d}-{i:06d}" for i, s in enumerate(who)])
    return Embeddings(names, np.array([f"{s:04d}" for s in who]), vectors)


def histogram(axes: Any, target: Any, nontarget: Any, *, bars: int = 44) -> None:
    """Both classes of scores on one axis."""
    low, high = min(target.min(), nontarget.min()), max(target.max(), nontarget.max())
    bins = np.linspace(low, high, bars + 1)
    axes.hist(nontarget, bins, density=True, color=style.NONTARGET, alpha=0.55,
              label="different speakers")  # fmt: skip
    axes.hist(target, bins, density=True, color=style.TARGET, alpha=0.55, label="same speaker")
    axes.set_xlabel("score")
    axes.set_yticks([])
    axes.legend(loc="upper left")


def eer() -> Figure:
    """Scores, a threshold, and the two kinds of error at every threshold."""
    target, nontarget = scores(1.6, targets=40, nontargets=400, seed=4)
    figure = style.new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    histogram(left, target, nontarget, bars=18)
    left.set_title("What the attacker sees")
    steps = np.unique(np.concatenate((target, nontarget)))
    miss = np.array([(target < x).mean() for x in steps])
    alarm = np.array([(nontarget >= x).mean() for x in steps])
    balance = steps[np.argmin(np.abs(miss - alarm))]
    left.axvline(balance, color=style.INK, ls="--", lw=1.2)
    right.step(alarm, miss, where="post", color=style.COLOURS[0], lw=1.3, label="every threshold")
    best = measure.pav(target, nontarget)
    hull_miss = np.concatenate(([0.0], np.cumsum(best.target))) / target.size
    hull_alarm = 1.0 - np.concatenate(([0.0], np.cumsum(best.nontarget))) / nontarget.size
    right.plot(hull_alarm, hull_miss, color=style.COLOURS[1], label="convex hull")
    right.plot([0, 1], [0, 1], color=style.MUTED, lw=0.9, ls=":")
    for function, mark in ((measure.rocch_eer, "o"), (measure.kaldi_eer, "s")):
        rate = function(target, nontarget)
        name = function.__name__
        right.plot(rate, rate, mark, color=style.INK, ms=5, label=f"{name} {rate:.1%}")
    right.set_xlim(0, 0.6)
    right.set_ylim(0, 0.6)
    right.set_aspect("equal")
    right.set_xlabel("false alarms")
    right.set_ylabel("misses")
    right.set_title("Where both errors are equal")
    right.legend(loc="upper right")
    style.percent_axis(right.xaxis)
    style.percent_axis(right.yaxis)
    return figure


def zebra() -> Figure:
    """Three attackers from much to no evidence, against zero evidence."""
    figure = style.new_figure(7.4, 4.0)
    axes = figure.subplots()
    odds = np.linspace(-10.0, 10.0, 201)
    zero = measure.zero_evidence(odds)
    axes.plot(odds, zero, color=style.INK, ls="--", zorder=5, label="zero evidence")
    for i, (name, shift) in enumerate((("original", CLEAR), ("protected", WEAK), ("lost", NONE))):
        curve = measure.roc(*scores(shift))
        worst = measure.worst_case_disclosure(curve)
        profile = measure.ece_profile(curve, log_odds=odds)
        bits = measure.expected_disclosure(curve)
        words = f"{name}: {bits:.3f} bit, log10 l {worst:.2f}, tag {measure.tag(worst)}"
        axes.plot(odds, profile, color=style.colour(i), label=words)
        if name == "protected":
            axes.fill_between(odds, profile, zero, color=style.colour(i), alpha=0.13, lw=0)
    axes.set_xlim(-10, 10)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("what the attacker believed before: log-odds of “same speaker”")
    axes.set_ylabel("uncertainty left, bit")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def d_sys() -> Figure:
    """Local D(s) over the scores."""
    target, nontarget = scores(1.6)
    figure = style.new_figure(7.4, 3.6)
    axes = figure.subplots()
    histogram(axes, target, nontarget)
    local = measure.local_d_sys(target, nontarget)
    other = axes.twinx()
    other.step(local.edges[:-1], local.local, where="post", color=style.COLOURS[0], label="D(s)")
    other.set_ylim(0, 1.05)
    other.set_ylabel("D(s)", color=style.COLOURS[0])
    other.grid(visible=False)
    value = measure.d_sys(target, nontarget)
    axes.set_title(f"D(s) at each score; its mean over same-speaker scores is D_sys = {value:.2f}")
    return figure


def similarity() -> Figure:
    """The matrix of 2N voices, one of them badly protected."""
    rng = np.random.default_rng(3)
    n, each, dimensions = 12, 8, 24
    original = rng.normal(size=(n, dimensions))
    keep = np.full((n, 1), 0.12)
    keep[4] = 0.9  # one protected voice still sounds like its owner
    protected = keep * original + (1.0 - keep) * rng.normal(size=(n, dimensions))
    who = np.repeat(np.arange(n), each)

    def spoken(voice: Any) -> Any:
        return voice[who] + 0.9 * rng.normal(size=(who.size, dimensions))

    sides = {"O": spoken(original), "P": spoken(protected)}
    other = {"O": spoken(original), "P": spoken(protected)}

    def matrix(a: str, b: str) -> Any:
        x = sides[a] / np.linalg.norm(sides[a], axis=1, keepdims=True)
        y = other[b] / np.linalg.norm(other[b], axis=1, keepdims=True)
        names = np.array([f"{i:02d}" for i in who])
        scored = measure.trials(
            (x @ y.T).ravel(), np.repeat(names, who.size), np.tile(names, who.size)
        )
        return measure.similarity_matrix(scored)

    oo, op, pp = matrix("O", "O"), matrix("O", "P"), matrix("P", "P")
    whole = np.block([[oo.matrix, op.matrix], [op.matrix.T, pp.matrix]])
    figure = style.new_figure(5.6, 4.8)
    axes = figure.subplots()
    shown = axes.imshow(whole, vmin=0, vmax=1, cmap="viridis")
    axes.axhline(n - 0.5, color="white", lw=1.5)
    axes.axvline(n - 0.5, color="white", lw=1.5)
    axes.grid(visible=False)
    axes.set_xticks([n / 2 - 0.5, 1.5 * n - 0.5], ["original", "protected"])
    axes.set_yticks(
        [n / 2 - 0.5, 1.5 * n - 0.5], ["original", "protected"], rotation=90, va="center"
    )
    axes.annotate("gives its\nowner away", (n + 4, 4), (n + 6.5, 1.3), color="white", fontsize=9,
                  ha="center", arrowprops={"arrowstyle": "->", "color": "white"})  # fmt: skip
    hidden = measure.de_identification(oo, op)
    gain = measure.distinctiveness_gain(oo, pp)
    axes.set_title(f"DeID {hidden:.0%}, G_VD {gain:+.1f} dB".replace("-", "−"))
    figure.colorbar(shown, ax=axes, label="0 different … 1 the same")
    return figure


def crowd(metric: str, title: str) -> Figure:
    """A figure against the number of people, for two attackers and two lengths."""
    figure = style.new_figure(7.4, 3.7)
    axes = figure.subplots()
    chosen = Protocol(lengths=(1, 3), sizes=(20, 50, 100, 200, 400), resamples=0, trials=3,
                      predicates=200)  # fmt: skip
    names = {"strong attacker": 1.6, "weak attacker": 3.6}
    for i, (name, noise) in enumerate(names.items()):
        found = measure.population_of_sets(
            voices(400, 60, noise, seed=5), attacker=name, protocol=chosen
        )
        for length, line in ((1, "-"), (3, "--")):
            points = found.curve(metric, length)
            sizes = [p.parameters["N"] for p in points]
            words = f"{name}, L = {length}"
            axes.plot(sizes, [p.value for p in points], line, marker="o", ms=3.5,
                      color=style.colour(i), label=words)  # fmt: skip
    axes.plot(sizes, [p.chance for p in points], color=style.MUTED, ls=":", label="guessing")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(s) for s in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("number of people N")
    axes.set_title(title)
    style.percent_axis(axes.yaxis)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")
    return figure


def ranks() -> Figure:
    """Where the right candidate of 100 stands, for an attacker and for guessing."""
    figure = style.new_figure(7.4, 3.2)
    axes = figure.subplots()
    rng = np.random.default_rng(2)
    queries, candidates = 1000, 100
    query = np.repeat(np.arange(queries), candidates)
    right = np.tile(np.arange(candidates) == 0, queries)
    bins = np.linspace(0, 1, 21)
    for i, (name, shift) in enumerate((("attacker", 1.6), ("guessing", 0.0))):
        found = measure.ranks(rng.normal(size=query.size) + shift * right, query, right)
        first, tenth = measure.precision_at_1(found), measure.precision_at_10_percent(found)
        words = f"{name}: first {first:.0%}, best tenth {tenth:.0%}"
        axes.hist(found.normalised, bins, weights=np.full(queries, 1 / queries), alpha=0.6,
                  color=style.colour(i), label=words)  # fmt: skip
    axes.set_xlabel("normalised rank of the right candidate")
    axes.set_title("Share of 1,000 searches among 100 candidates")
    axes.legend()
    style.percent_axis(axes.yaxis)
    return figure


PICTURES = {
    "eer": eer,
    "zebra": zebra,
    "d-sys": d_sys,
    "similarity": similarity,
    "singling-out": lambda: crowd("singling_out", "Exactly one person is isolated"),
    "linkability": lambda: crowd("linkability", "The right person is found"),
    "ranks": ranks,
}


def report(page: Path) -> None:
    """The first screen of a report."""
    from playwright.sync_api import sync_playwright

    from voxrisk.report.pdf import find_browser

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1080, "height": 1000})
        opened.goto(page.resolve().as_uri())
        opened.screenshot(path=HERE / "report.png")
        browser.close()


def main() -> None:
    """Draw them all."""
    HERE.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        with rc_context({**style.SETTINGS, "svg.fonttype": "path"}):
            draw().savefig(HERE / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    report(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
