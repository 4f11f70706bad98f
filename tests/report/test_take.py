"""Tables and figures to take along: buttons of the page, and the same files beside it."""

import csv
import io
import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report_browser import chromium, opened
from report_sample import sample
from voxrisk.cli import app
from voxrisk.report import png
from voxrisk.report.html import files_of, write_report
from voxrisk.report.pdf import find_browser
from voxrisk.report.run_figures import run_figures, write_figures
from voxrisk.results import Results, UtilityResult
from voxrisk.types import InputError

FIGURES = ("crowd", "zebra", "det", "similarity", "usefulness")


@pytest.fixture(scope="module")
def results() -> Results:
    return sample()


@pytest.fixture(scope="module")
def path(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("take") / "report.html"
    write_report(results, file)
    return file


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def test_every_button_gives_the_file_that_stands_beside_the_page(browser, path, results):
    """The texts byte for byte; a PNG of the size of its figure."""
    files = files_of(results)
    figures = run_figures(results)
    with opened(browser, path) as seen:
        boxes = seen.page.locator(".take")
        assert boxes.count() >= 9
        given = {}
        for box in boxes.all():
            assert box.is_visible()
            for button in box.locator("button").all():
                with seen.page.expect_download() as taken:
                    button.click()
                name = taken.value.suggested_filename
                given[name] = Path(taken.value.path()).read_bytes()
        assert seen.said == []
        assert seen.left == []
    texts = {name: data.decode() for name, data in given.items() if not name.endswith(".png")}
    assert texts == {name: files[name] for name in texts}
    # What the page has a place for can be taken from it, and nothing is packed in vain.
    assert set(texts) == set(files)
    for name in FIGURES:
        wide, high = struct.unpack(">II", given[f"{name}.png"][16:24])
        figure = figures[name]
        assert (wide, high) == (round(2.5 * round(figure.width)), round(2.5 * round(figure.height)))


def test_a_png_of_the_page_is_not_empty(browser, path, tmp_path):
    with opened(browser, path) as seen:
        with seen.page.expect_download() as taken:
            seen.page.get_by_role("button", name="PNG of crowd").click()
        taken.value.save_as(tmp_path / "crowd.png")
        inks = seen.page.evaluate(
            """async bytes => {
            const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
            const c = new OffscreenCanvas(image.width, image.height), g = c.getContext('2d');
            g.drawImage(image, 0, 0);
            const seen = new Set(), d = g.getImageData(0, 0, image.width, image.height).data;
            for (let i = 0; i < d.length; i += 4)
                seen.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]);
            return [...seen];
        }""",
            list((tmp_path / "crowd.png").read_bytes()),
        )
    assert len(inks) > 50
    assert 0xD55E00 in inks  # the colour of the informed attacker


def test_without_a_script_there_are_no_buttons(browser, path):
    with opened(browser, path, script=False) as seen:
        assert not any(box.is_visible() for box in seen.page.locator(".take").all())


@pytest.mark.parametrize("width", [390, 1280])
def test_buttons_fit_the_screen_and_have_names(browser, path, width):
    with opened(browser, path, width=width) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        names = [b.get_attribute("aria-label") for b in seen.page.locator(".take button").all()]
        assert len(names) == len(set(names)) >= 20


def test_figures_stand_alone_and_say_what_they_show(results, tmp_path):
    write_figures(results, tmp_path, ["svg"])
    assert {p.stem for p in tmp_path.iterdir()} == set(FIGURES)
    for file in tmp_path.iterdir():
        tree = ElementTree.parse(file)
        space = {"s": "http://www.w3.org/2000/svg"}
        assert tree.find("s:title", space).text
        assert len(tree.find("s:desc", space).text) > 40
        assert not re.search(r'(?:href|src)="(?!data:)', file.read_text())
    drawn = (tmp_path / "crowd.svg").read_text()
    values = {float(v) for v in re.findall(r'data-value="([\d.e-]+)"', drawn)}
    assert {e.value for a in results.attacks for e in a.crowd
            if e.name in ("singling_out", "linkability", "rocch_eer")} <= values  # fmt: skip


def test_both_planes_of_usefulness_can_be_taken(results):
    """The page showed Linkability against word errors, and no file had it."""
    svg = run_figures(results)["usefulness"].svg()
    for axis in ("Equal error rate", "Linkability", "Word error rate"):
        assert axis in svg


def test_the_table_of_the_crowd_holds_every_point_of_the_curves(results):
    rows = list(csv.DictReader(io.StringIO(files_of(results)["crowd.csv"])))
    expected = {
        (a.name, e.length, e.size, e.value, e.chance)
        for a in results.attacks for e in a.crowd
        if e.name in ("singling_out", "linkability", "rocch_eer")
    }  # fmt: skip
    found = {
        (r["Attacker"], int(r["L"]), int(r["N"]), float(r["Value"]), float(r["Guessing"]))
        for r in rows
    }
    assert found == expected


def test_speakers_come_with_the_number_of_trials_and_all_of_them(results):
    """Not the first eleven."""
    rows = list(csv.DictReader(io.StringIO(files_of(results)["speakers.csv"])))
    assert len(rows) == sum(len(a.speakers) for a in results.attacks)
    assert {int(r["Recordings tried"]) for r in rows} == {
        p.trials for a in results.attacks for p in a.speakers
    }


def test_what_was_not_measured_has_no_file(results):
    bare = replace(
        results, similarity=None, utility=UtilityResult(missing={"all": "no"}), inference=None,
        attacks=tuple(replace(a, crowd=(), groups=(), speakers=()) for a in results.attacks),
    )  # fmt: skip
    names = {name.partition(".")[0] for name in files_of(bare)}
    assert names == {"attackers", "zebra", "det", "references"}


def test_report_writes_every_format(results, tmp_path):
    results.write(tmp_path)
    call = CliRunner().invoke

    def said(*more: str) -> str:
        told = call(app, ["report", str(tmp_path), *more])
        return str(told.exception) if told.exception else told.output

    said("--format", "svg")
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {f"{n}.svg" for n in FIGURES}
    assert "add --force" in said("--format", "svg")
    said("--format", "csv", "--format", "svg", "-o", str(tmp_path / "both"))
    assert {"crowd.csv", "crowd.svg"} <= {p.name for p in (tmp_path / "both").iterdir()}
    assert not (tmp_path / "report.html").exists()
    assert "known are html, pdf" in said("--format", "docx")


@pytest.mark.skipif(bool(png.obstacle()), reason=str(png.obstacle()))
def test_png_alone_leaves_no_svg_and_an_obstacle_is_said(results, tmp_path, monkeypatch):
    made = write_figures(results, tmp_path, ["png"])
    assert {p.suffix for p in tmp_path.iterdir()} == {".png"}
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in made)
    monkeypatch.setattr(png, "obstacle", lambda: "no PNG pictures: no font")
    with pytest.raises(InputError, match="no font"):
        write_figures(results, tmp_path, ["png"])


@pytest.mark.skipif(find_browser() is None, reason="Chromium is missing")
def test_a_pdf_alone_leaves_no_page_behind(results, tmp_path):
    results.write(tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--format", "pdf"])
    assert done.exception is None
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert not (tmp_path / "report.html").exists()
