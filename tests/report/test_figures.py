"""The figures that are written as files: what they show, and that they can be read anywhere."""

import base64
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from report_browser import chromium, opened
from simulated_voices import voices
from voxrisk import measure
from voxrisk.attack.epochs import Epoch, write_curves
from voxrisk.files.published import PublishedCurve
from voxrisk.measure.population import Protocol
from voxrisk.report import charts, png, style
from voxrisk.report import score_figures as drawing
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.figure import Entry, Figure, arrange, render, save
from voxrisk.report.heatmap import colours
from voxrisk.report.lettering import TICK, text_width
from voxrisk.report.population_figure import population_figure
from voxrisk.report.svg import Plot, percent_axis
from voxrisk.report.training_figure import draw_training
from voxrisk.types import Estimate, InputError, Interval

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert(1)</script> & a name that is longer than any column of figures can hold"
SETS = {"original": 2.5, "B1": 1.0, EVIL: 0.2}


def scored(shift: float, *, speakers: int = 60) -> measure.Trials:
    rng = np.random.default_rng(round(10 * shift))
    names = np.array([f"s{i:02d}" for i in range(speakers)])
    enroll, trial = np.repeat(names, speakers), np.tile(names, speakers)
    return measure.Trials(rng.normal(size=enroll.size) + shift * (enroll == trial), enroll, trial)


def estimate(name: str, value: float, *, width: float = 0.1) -> Estimate:
    interval = Interval(value - width, value + width, 0.95, "speaker bootstrap")
    return Estimate(name, value, 0.0, {"speaker": 12}, "here", interval)


POINTS = {
    "strong": (estimate("deid", 0.97, width=0.03), estimate("g_vd", -6.0)),
    "weak": (estimate("deid", 0.2), estimate("g_vd", 0.4)),
}
FIGURES = {"deid": estimate("deid", 0.4), "g_vd": estimate("g_vd", -1.5)}
EPOCHS = [
    Epoch(epoch=k, rate=0.1, w_target=(k - 1) / 4, loss_source=5.0 / k, loss_target=1.0 + k,
          ver_source=1.0 / k, ver_target=k / 10, seconds=1.0)
    for k in range(1, 6)
]  # fmt: skip


def similarity() -> list[measure.Similarity]:
    return [measure.similarity_matrix(scored(s, speakers=12)) for s in (2.5, 1.0, 1.5)]


@pytest.fixture(scope="module")
def crowds() -> list[measure.Population]:
    protocol = Protocol(lengths=(1, 3), sizes=(5, 20), resamples=50, draws=2)
    return [
        measure.crowd_of_sets(voices(), attacker=name, protocol=protocol)
        for name in ("informed", "x")
    ]


@pytest.fixture(scope="module")
def figures(
    crowds: list[measure.Population], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    trials = {name: scored(shift) for name, shift in SETS.items()}
    curves = {name: t.roc for name, t in trials.items()}
    published = [PublishedCurve("linkability", "informed", 3, (5, 30), (0.9, 0.5))]
    drawn = {
        "ece": drawing.ece_figure(curves),
        "ece of one": drawing.ece_figure({"B1": curves["B1"]}),
        "det": drawing.det_figure(curves),
        "scores": drawing.histogram_figure(trials),
        "similarity": drawing.similarity_figure(EVIL, similarity(), FIGURES),
        "one matrix": drawing.similarity_figure("original", similarity()[:1], {}),
        "scatter": drawing.scatter_figure(POINTS),
        "population": population_figure(crowds, under=published),
    }
    folder = tmp_path_factory.mktemp("training")
    write_curves(folder, EPOCHS)
    trained = draw_training(folder)[0].read_text(encoding="utf-8")
    return {name: figure.svg() for name, figure in drawn.items()} | {"training": trained}


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(element: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in element.iter(f"{SVG}text")]


def points(element: ElementTree.Element, series: str) -> list[dict[str, str]]:
    """The ``data-`` attributes of the readable points of one series."""
    return [
        {key.removeprefix("data-"): value for key, value in g.attrib.items()}
        for group in element.iter(f"{SVG}g")
        if group.get("data-series") == series
        for g in group.iter(f"{SVG}g")
        if g.get("class") == "pt"
    ]


def test_a_figure_is_xml_that_says_what_it_shows_and_names_no_other_place(figures) -> None:
    for name, figure in figures.items():
        found = parsed(figure)
        assert found.get("role") == "img"
        assert len(found.findtext(f"{SVG}title", "")) > 10, name
        assert len(found.findtext(f"{SVG}desc", "")) > 40, name
        tags = {element.tag.removeprefix(SVG) for element in found.iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text", "circle",
                        "image"}, name  # fmt: skip
        for element in found.iter():
            assert element.get("href", "data:").startswith("data:")
        assert "url(" not in figure
        assert "@import" not in figure


def test_ece_profiles_are_those_of_the_metric(figures) -> None:
    found = parsed(figures["ece"])
    curve = scored(SETS["B1"]).roc
    drawn = points(found, "B1")
    assert len(drawn) > 40
    left = [p for p in drawn if abs(float(p["across"])) > 1 or p["across"] == "0.0"]
    odds = np.array([float(p["across"]) for p in left])
    assert [float(p["value"]) for p in left] == pytest.approx(
        measure.ece_profile(curve, log_odds=odds)
    )
    said = " ".join(texts(found))
    assert f"B1: {measure.expected_disclosure(curve):.3f} bit" in said
    assert "uncertainty left, bit" in said
    assert "zero evidence: perfect privacy" in said


def test_det_marks_the_eer_of_every_set(figures) -> None:
    found = parsed(figures["det"])
    for name, shift in SETS.items():
        eer = measure.rocch_eer(scored(shift).roc)
        marks = [p for p in points(found, name) if "eer" in p]
        assert [float(p["eer"]) for p in marks] == [eer]
    assert "speaker not recognised (misses)" in texts(found)
    # Names are text, whatever they hold.
    assert "<script>alert(1)</script>" in " ".join(texts(found))


def test_histograms_hold_all_scores_and_the_local_linkability(figures) -> None:
    found = parsed(figures["scores"])
    panels = [g for g in found.iter(f"{SVG}g") if g.get("class") == "panel"]
    assert len(panels) == len(SETS)
    trials = scored(SETS["B1"])
    local = measure.local_d_sys(trials.target, trials.nontarget)
    assert f"B1: D_sys {measure.d_sys(trials.target, trials.nontarget):.3f}" in texts(found)
    line = next(p for p in panels[1].iter(f"{SVG}path") if p.get("stroke") == style.INK)
    heights = [float(y) for y in re.findall(r" (\S+?)(?:L|$)", line.get("d", ""))]
    # The right axis tells where D(s) = 0 and 1 lie.
    ticks = {t.text: float(t.get("y", "")) - 3.5 for t in panels[1].iter(f"{SVG}text")
             if t.get("text-anchor") == "start"}  # fmt: skip
    shown = [(ticks["0"] - h) / (ticks["0"] - ticks["1"]) for h in heights]
    levels = [level for level, _ in groupby(round(x, 2) for x in shown)]
    assert levels == pytest.approx([v for v, _ in groupby(local.local.tolist())], abs=0.01)
    assert len(levels) > 2


def test_heat_map_shows_the_values_and_the_names(figures) -> None:
    oo, op, pp = (s.matrix for s in similarity())
    found = parsed(figures["similarity"])
    pixels = png_pixels(next(found.iter(f"{SVG}image")).get("href", ""))
    step = len(pixels) // 24
    middle = pixels[step // 2 :: step, step // 2 :: step]
    assert (middle == colours(np.block([[oo, op], [op.T, pp]]))).all()
    assert texts(found).count("s07") == 4
    assert texts(found).count("anonymized voices") == 2
    assert "DeID 40.0\u00a0%, G_VD −1.5\u00a0dB" in " ".join(texts(found))
    assert texts(parsed(figures["one matrix"])).count("s07") == 2
    many = measure.Similarity(tuple(f"s{i}" for i in range(61)), np.eye(61))
    assert "s7" not in texts(parsed(drawing.similarity_figure("many", [many], {}).svg()))


def png_pixels(uri: str) -> np.ndarray:
    raw = base64.b64decode(uri.partition(",")[2])
    width, height = struct.unpack(">II", raw[16:24])
    rows = zlib.decompress(raw[raw.index(b"IDAT") + 4 : raw.index(b"IEND") - 8])
    return (
        np.frombuffer(rows, np.uint8)
        .reshape(height, 1 + 3 * width)[:, 1:]
        .reshape(height, width, 3)
    )


def test_scatter_has_a_point_two_intervals_and_a_mark_for_each_system(figures) -> None:
    found = parsed(figures["scatter"])
    for name, (deid, gain) in POINTS.items():
        (point,) = points(found, name)
        assert (float(point["across"]), float(point["value"])) == (deid.value, gain.value)
    groups = [g for g in found.iter(f"{SVG}g") if g.get("class") == "series"]
    assert [len([p for p in g if p.get("class") == "line"]) for g in groups] == [2, 2]
    assert {"strong", "weak", "100 %", "Voice distinctiveness G_VD, dB"} <= set(texts(found))


def test_population_figure_shows_every_attacker_chance_and_published_curve(crowds, figures):
    found = parsed(figures["population"])
    panels = [g for g in found.iter(f"{SVG}g") if g.get("class") == "panel"]
    assert len(panels) == 6
    legend = " ".join(texts(found))
    assert "informed (VoicePrivacy: semi-informed, a-a)" in legend
    assert "chance as the paper gives it, 37 %" in legend
    assert "published curve, same colour" in legend
    # Singling Out: two chance lines; Linkability, L = 3: one, and the published curve.
    alone = [len([p for p in panel if p.get("class") == "line"]) for panel in panels]
    assert alone == [2, 2, 1, 2, 1, 1]
    for metric in ("singling_out", "linkability", "rocch_eer"):
        for crowd in crowds:
            shown = [p for p in points(found, crowd.attacker) if p["metric"] == metric]
            expected = [e for length in (1, 3) for e in crowd.curve(metric, length)]
            assert [float(p["value"]) for p in shown] == [e.value for e in expected]
            assert [int(p["n"]) for p in shown] == [5, 20, 30] * 2
    # The higher, the greater the risk: an EER of 0 would stand at the top.
    eer = next(p for p in points(found, "x") if p["metric"] == "rocch_eer" and p["l"] == "1")
    grid = [float(re.split("[MH ]", p.get("d", ""))[2]) for p in panels[4].iter(f"{SVG}path")
            if p.get("class") == "grid"]  # fmt: skip
    share = (max(grid) - float(eer["py"])) / (max(grid) - min(grid))
    assert share == pytest.approx(1.0 - float(eer["value"]), abs=0.002)


def test_training_figure_shows_both_heads_and_the_weight(figures, tmp_path: Path) -> None:
    found = parsed(figures["training"])
    for name, key in (("source head", "source"), ("target head", "target")):
        values = [float(p["value"]) for p in points(found, name)]
        wanted = [[getattr(e, f"{what}_{key}") for e in EPOCHS] for what in ("loss", "ver")]
        assert values == wanted[0] + wanted[1]
    assert any("w_T" in text for text in texts(found))
    alone = [Epoch(epoch=1, rate=0.1, w_target=0.0, loss_source=2.0, loss_target=None,
                   ver_source=0.5, ver_target=None, seconds=1.0)]  # fmt: skip
    write_curves(tmp_path, alone)
    plain = parsed(draw_training(tmp_path)[0].read_text())
    assert len(points(plain, "source head")) == 2
    assert not any("target" in text or "w_T" in text for text in texts(plain))


def test_a_table_that_is_no_training_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"curves\.csv is not there; train first"):
        draw_training(tmp_path)
    for text in ("epoch,rate\n", "epoch,rate\n1,0.1\n", "a\n1\n"):
        (tmp_path / "curves.csv").write_text(text)
        with pytest.raises(InputError, match=r"curves\.csv is no table of a training"):
            draw_training(tmp_path)


@pytest.mark.parametrize("high", [1.0, 1.04, 0.31])
def test_the_last_tick_of_an_axis_is_not_cut_off(high: float) -> None:
    plot = Plot(percent_axis("x", high=high), percent_axis("y", high=high), "said")
    value, words = plot.x.ticks[-1]
    at, _ = plot.at(value, 0.0)
    assert at + text_width(words, TICK) / 2 <= plot.width
    assert plot.left - 5 - max(text_width(t, TICK) for _, t in plot.y.ticks) >= 11  # beside "y"


def test_a_word_error_rate_above_100_percent_is_drawn_where_it_is() -> None:
    systems = [
        PlanePoint(
            Series(name, name, "#000", "circle"), estimate("wer", wer), estimate("rocch_eer", 0.3)
        )
        for name, wer in (("half", 0.5), ("all", 1.0), ("more", 1.5))
    ]
    found = ElementTree.fromstring(str(charts.plane(systems, "wer", "rocch_eer")))
    px = [float(g.get("data-px", "")) for g in found.iter("g") if g.get("class") == "pt"]
    assert px[2] - px[1] == pytest.approx(px[1] - px[0], abs=0.2)
    assert "150 %" in [t.text for t in found.iter("text")]


def test_each_attacker_has_a_colour_and_a_mark_of_its_own() -> None:
    found = style.looks(["informed", "a", "original", "b", "c"])
    assert found["informed"] == style.USUAL["informed"]
    assert len(set(found.values())) == len({look[0] for look in found.values()}) == 5
    assert len({look[1] for look in found.values()}) == 5
    assert len(style.looks(str(i) for i in range(40))) == 40


@pytest.fixture
def no_memory() -> Iterator[None]:
    """Whether PNG can be made is asked anew before and after."""
    png.obstacle.cache_clear()
    yield
    png.obstacle.cache_clear()


def small() -> Figure:
    plot = Plot(percent_axis("x"), percent_axis("y"), "said")
    return arrange("A title", "Words.", [[("", plot)]], legend=[Entry(words="w", colour="#000")])


def test_png_is_the_same_picture_in_print_size(no_memory, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py is missing: pip install 'voxrisk[png]'")
    assert png.obstacle() is None
    figure = small()
    vector, pixels = save(figure, tmp_path, "name")
    assert vector.read_text(encoding="utf-8") == figure.svg()
    width, height = struct.unpack(">II", pixels.read_bytes()[16:24])
    assert width == round(figure.width) * png.ZOOM
    assert height == pytest.approx(figure.height * png.ZOOM, abs=png.ZOOM)
    assert pixels.read_bytes() == png.render(figure.svg())


@pytest.mark.parametrize("python", [sys.executable, "/nowhere/python", "/bin/false"])
def test_a_process_of_its_own_draws_the_same_and_is_not_needed(
    no_memory, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py is missing: pip install 'voxrisk[png]'")
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(png, "cores", lambda: 2)
    here = render(small())
    with png.Painter() as painter:
        assert [render(small(), draw=painter) for _ in range(3)] == [here] * 3
        assert len(painter._children) == (0 if python == "/nowhere/python" else 2)
    assert all(child.returncode is not None for child in painter._children)


def test_without_the_extra_there_is_svg_and_the_way_to_png(
    no_memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    (tmp_path / "name.png").write_bytes(b"of an older figure")
    assert save(small(), tmp_path, "name") == [tmp_path / "name.svg"]
    assert png.obstacle() == "PNG pictures need one more package: pip install 'voxrisk[png]'"
    assert not (tmp_path / "name.png").exists()


def test_without_a_font_no_png_without_words_is_made(
    no_memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(png, "render", lambda svg: b"no words")
    assert save(small(), tmp_path, "name") == [tmp_path / "name.svg"]
    assert "no sans-serif font is installed" in str(png.obstacle())


# Every text: whether it lies inside the picture, and which other text it covers.
_TEXTS = """() => {
  const box = document.documentElement.getBoundingClientRect();
  const all = [...document.querySelectorAll('text')].map(t => [t.textContent,
    t.getBoundingClientRect()]);
  const out = all.filter(([, r]) => r.left < box.left - .5 || r.right > box.right + .5 ||
    r.top < box.top - .5 || r.bottom > box.bottom + .5).map(([t]) => t);
  const over = [];
  all.forEach(([a, r], i) => all.slice(i + 1).forEach(([b, s]) => {
    const w = Math.min(r.right, s.right) - Math.max(r.left, s.left);
    const h = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
    if (w > 1 && h > 3) over.push(a + ' | ' + b);
  }));
  return [all.length, out, over];
}"""


@pytest.mark.parametrize("font", ["Liberation Sans", "DejaVu Sans"])  # narrow and wide
def test_in_a_browser_no_word_is_cut_off_or_covered_and_nothing_is_asked_for(
    figures, font: str, tmp_path: Path
) -> None:
    with chromium() as browser:
        for name, figure in figures.items():
            path = tmp_path / f"{name}.svg"
            path.write_text(re.sub("font-family: ", f'font-family: "{font}", ', figure))
            with opened(browser, path) as seen:
                count, outside, covered = seen.page.evaluate(_TEXTS)
                assert count > 8, name
                assert outside == [], name
                assert covered == [], name
                assert seen.said == [], name
                assert {u for u in seen.requests if not u.startswith("data:")} == {path.as_uri()}
