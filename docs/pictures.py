"""Draw the pictures of the metric pages with voxrisk's own functions: ``python docs/pictures.py``.

``python docs/pictures.py RUN/report.html`` takes the picture of a report instead (needs Chromium).

The voices are simulated, with fixed seeds: a picture explains a figure, it is no result. The same
versions of the libraries give the same bytes.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk import measure
from voxrisk.files.atomic import write_text
from voxrisk.measure import Protocol
from voxrisk.report import style
from voxrisk.report.charts import CHANCE_DASH, ece_plot, sizes_axis
from voxrisk.report.figure import Entry, Figure, arrange
from voxrisk.report.score_figures import scores_legend, scores_plot, similarity_figure
from voxrisk.report.svg import Axis, Plot, percent_axis, steps
from voxrisk.types import Embeddings, Estimate

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


def eer() -> Figure:
    """Scores, a threshold, and the two kinds of error at every threshold."""
    target, nontarget = scores(1.6, targets=40, nontargets=400, seed=4)
    left = scores_plot(target, nontarget, bars=18)
    thresholds = np.unique(np.concatenate((target, nontarget)))
    miss = np.array([(target < x).mean() for x in thresholds])
    alarm = np.array([(nontarget >= x).mean() for x in thresholds])
    balance = float(thresholds[np.argmin(np.abs(miss - alarm))])
    left.line([(balance, 0.0), (balance, left.y.high)], style.INK, width=1.2, dash="5 3")
    right = Plot(percent_axis("false alarms", high=0.6), percent_axis("misses", high=0.6), "",
                 width=330, height=270)  # fmt: skip
    right.line([(0.0, 0.0), (0.6, 0.6)], style.MUTED, width=0.9, dash=CHANCE_DASH)
    stairs = [(x, y) for x, y in _stairs(alarm, miss) if max(x, y) <= 0.6]
    right.line(stairs, style.COLOURS[0], width=1.3)
    best = measure.pav(target, nontarget)
    hull_miss = np.concatenate(([0.0], np.cumsum(best.target))) / target.size
    hull_alarm = 1.0 - np.concatenate(([0.0], np.cumsum(best.nontarget))) / nontarget.size
    grid = np.linspace(0.0, 0.6, 121)
    hull = np.interp(grid, hull_alarm[::-1], hull_miss[::-1])
    right.line([(x, y) for x, y in zip(grid, hull, strict=True) if y <= 0.6], style.COLOURS[1])
    legend = [
        *scores_legend(local=False),
        Entry(words="threshold where both errors are equal", colour=style.INK, width=1.2,
              dash="5 3"),
        Entry(words="every threshold", colour=style.COLOURS[0], width=1.3),
        Entry(words="convex hull", colour=style.COLOURS[1]),
    ]  # fmt: skip
    for function, shape in ((measure.rocch_eer, "circle"), (measure.kaldi_eer, "square")):
        rate = function(target, nontarget)
        words = f"{function.__name__} {100 * rate:.1f} %"
        right.point(rate, rate, style.INK, shape, words, size=4.0, value=rate)
        legend.append(Entry(words=words, colour=style.INK, shape=shape, width=0.0))
    return arrange(
        "The equal error rate",
        "Left: histograms of scores of the same and of different speakers with a threshold. Right: "
        "misses against false alarms with the convex hull and the points where both are equal.",
        [[("What the attacker sees", left), ("Where both errors are equal", right)]],
        legend=legend,
    )


def _stairs(alarm: Any, miss: Any) -> list[tuple[float, float]]:
    """Corners between the points of a curve of falling false alarms."""
    corners = [(float(alarm[0]), float(miss[0]))]
    for x, y in zip(alarm[1:], miss[1:], strict=True):
        corners += [(corners[-1][0], float(y)), (float(x), float(y))]
    return corners


def zebra() -> Figure:
    """Three attackers from much to no evidence, against zero evidence."""
    odds = np.linspace(-10.0, 10.0, 201)
    zero = measure.zero_evidence(odds)
    curves, legend = [], []
    for i, (name, shift) in enumerate((("original", CLEAR), ("protected", WEAK), ("lost", NONE))):
        curve = measure.roc(*scores(shift))
        worst = measure.worst_case_disclosure(curve)
        profile = measure.ece_profile(curve, log_odds=odds)
        bits = measure.expected_disclosure(curve)
        words = f"{name}: {bits:.3f} bit, log10 l {worst:.2f}, tag {measure.tag(worst)}"
        look = (style.colour(i), style.MARKS[i])
        curves.append((name, name, {"log_odds": odds.tolist(), "bits": profile.tolist()}, *look))
        legend.append(Entry(words=words, colour=look[0], shape=look[1]))
        if name == "protected":
            shaded = profile
    plot = ece_plot(curves, {"log_odds": odds.tolist(), "bits": zero.tolist()})
    below, above = (list(zip(odds.tolist(), y.tolist(), strict=True)) for y in (shaded, zero))
    plot.band(below, above, style.colour(1), opacity=0.13)
    legend.append(Entry(words="zero evidence", colour=style.INK, width=1.4, dash=CHANCE_DASH))
    return arrange(
        "What the attacker still does not know",
        "Uncertainty left against the attacker's prior belief, for three attackers and for zero "
        "evidence.",
        [[("", plot)]],
        legend=legend,
    )


def d_sys() -> Figure:
    """Local D(s) over the scores."""
    target, nontarget = scores(1.6)
    value = measure.d_sys(target, nontarget)
    return arrange(
        f"The mean of D(s) over same-speaker scores is D_sys = {value:.2f}",
        "Histograms of scores with the local D(s) rising over them.",
        [[("", scores_plot(target, nontarget))]],
        legend=scores_legend(),
    )


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
        scored = measure.Trials(
            (x @ y.T).ravel(), np.repeat(names, who.size), np.tile(names, who.size)
        )
        return measure.similarity_matrix(scored)

    parts = [matrix("O", "O"), matrix("O", "P"), matrix("P", "P")]
    found = {
        "deid": measure.de_identification(parts[0], parts[1]),
        "g_vd": measure.distinctiveness_gain(parts[0], parts[2]),
    }
    figures = {name: Estimate(name, value, 0.0, {}, "") for name, value in found.items()}
    return similarity_figure("one voice gives its owner away", parts, figures)


def crowd(metric: str, title: str) -> Figure:
    """A figure against the number of people, for two attackers and two lengths."""
    chosen = Protocol(lengths=(1, 3), sizes=(20, 50, 100, 200, 400), resamples=0, trials=3,
                      predicates=200)  # fmt: skip
    names = {"strong attacker": 1.6, "weak attacker": 3.6}
    plot = Plot(sizes_axis(chosen.sizes or ()), percent_axis(""), title, width=560, height=270)
    legend: list[Entry] = []
    for i, (name, noise) in enumerate(names.items()):
        found = measure.crowd_of_sets(
            voices(400, 60, noise, seed=5), attacker=name, protocol=chosen
        )
        for length, dash in ((1, ""), (3, "6 3")):
            points = [(p.parameters["N"], p.value) for p in found.curve(metric, length)]
            plot.line(points, style.colour(i), dash=dash)
            words = f"{name}, L = {length}"
            for n, value in points:
                tip = f"{words}, N = {n}: {value:.0%}"
                plot.point(n, value, style.colour(i), style.MARKS[i], tip, n=n, value=value)
            legend.append(
                Entry(words=words, colour=style.colour(i), shape=style.MARKS[i], dash=dash)
            )
    chance = [(p.parameters["N"], p.chance) for p in found.curve(metric, 3)]
    plot.line(chance, style.MUTED, width=1.4, dash=CHANCE_DASH)
    legend.append(Entry(words="guessing", colour=style.MUTED, width=1.4, dash=CHANCE_DASH))
    said = f"{title}: share against the number of people N, two attackers, L = 1 and 3, guessing."
    return arrange(title, said, [[("", plot)]], legend=legend)


def ranks() -> Figure:
    """Where the right candidate of 100 stands, for an attacker and for guessing."""
    rng = np.random.default_rng(2)
    queries, candidates = 1000, 100
    query = np.repeat(np.arange(queries), candidates)
    right = np.tile(np.arange(candidates) == 0, queries)
    bins = np.linspace(0, 1, 21)
    shares, legend = [], []
    for i, (name, shift) in enumerate((("attacker", 1.6), ("guessing", 0.0))):
        found = measure.ranks(rng.normal(size=query.size) + shift * right, query, right)
        first, tenth = measure.precision_at_1(found), measure.precision_at_10_percent(found)
        words = f"{name}: first {100 * first:.0f} %, best tenth {100 * tenth:.0f} %"
        shares.append(np.histogram(found.normalised, bins)[0] / queries)
        legend.append(Entry(words=words, colour=style.colour(i), area=0.5))
    ticks = [(v, f"{v:g}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)]
    plot = Plot(
        Axis(0.0, 1.0, ticks, "normalised rank of the right candidate"),
        percent_axis("share of searches", high=1.06 * float(max(s.max() for s in shares))),
        "", width=560, height=240,
    )  # fmt: skip
    for i, share in enumerate(shares):
        outline = steps(bins.tolist(), share.tolist())
        plot.band([(0.0, 0.0), (1.0, 0.0)], outline, style.colour(i), opacity=0.5)
        plot.line([(0.0, 0.0), *outline, (1.0, 0.0)], style.colour(i), width=1.1)
    return arrange(
        "1,000 searches among 100 candidates",
        "Histogram of the rank of the right candidate for an attacker and for guessing.",
        [[("", plot)]],
        legend=legend,
    )


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
        write_text(HERE / f"{name}.svg", draw().svg())


if __name__ == "__main__":
    report(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
