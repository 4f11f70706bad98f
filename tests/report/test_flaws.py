"""Flaws that people saw on the pages, each held by a test."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from report_browser import chromium, opened
from report_sample import sample, with_attack
from voxrisk.corpus import Utterance
from voxrisk.notices import notice
from voxrisk.pipeline.exposure import exposure
from voxrisk.pipeline.speech import described
from voxrisk.report import charts, words
from voxrisk.report.charts import PlanePoint, Series
from voxrisk.report.compare import write_compare
from voxrisk.report.html import write_report
from voxrisk.report.systems import common_attackers, in_every_run
from voxrisk.results import Results
from voxrisk.types import Estimate, Interval

SERIES = Series("a", "a", "#000000", "circle")
SOURCE = Path(__file__).parents[2] / "src" / "voxrisk"


@pytest.fixture(scope="module")
def results() -> Results:
    return sample()


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def only(results: Results, length: int) -> Results:
    """The same run with one L."""
    attacks = tuple(
        replace(a, crowd=tuple(e for e in a.crowd if e.length == length)) for a in results.attacks
    )
    return replace(results, attacks=attacks)


def test_with_one_length_the_curves_stand_side_by_side(browser, results, tmp_path):
    """Half the page was empty."""
    write_report(only(results, 1), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        boxes = [p.bounding_box() for p in seen.page.locator(".panel").all()]
        assert len(boxes) == 3
        assert len({round(b["y"]) for b in boxes}) == 1
        whole = seen.page.locator(".page").bounding_box()
        assert boxes[-1]["x"] + boxes[-1]["width"] > whole["x"] + 0.9 * whole["width"]
        names = [n.bounding_box()["x"] for n in seen.page.locator(".named").all()]
        assert names == sorted(names)
    with opened(browser, tmp_path / "r.html", width=390) as seen:
        boxes = [p.bounding_box() for p in seen.page.locator(".panel").all()]
        assert len({round(b["x"]) for b in boxes}) == 1
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    with opened(browser, tmp_path / "r.html", width=700) as seen:
        seen.page.emulate_media(media="print")  # three huge panels filled two sheets
        boxes = [p.bounding_box() for p in seen.page.locator(".panel").all()]
        assert len({round(b["y"]) for b in boxes}) == 1


def test_an_option_is_not_broken_at_the_end_of_a_line(browser, results, tmp_path):
    """A warning said "add --", and "train" on the next line."""
    warned = replace(
        results, notices=(*results.notices, notice("untrained", way_out="add --train"))
    )
    write_report(warned, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        codes = seen.page.locator(".warning code")
        assert "--train" in codes.all_text_contents()
        assert seen.page.evaluate(
            "[...document.querySelectorAll('.warning code')]"
            ".every(c => getComputedStyle(c).whiteSpace == 'nowrap')"
        )


def test_choosing_one_length_gives_the_same_arrangement(browser, results, tmp_path):
    write_report(results, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        seen.page.locator("select[name=length]").select_option("3")
        shown = [p.bounding_box() for p in seen.page.locator(".panel").all() if p.is_visible()]
        assert len({round(b["y"]) for b in shown}) == 1
        seen.page.locator("select[name=length]").select_option("")
        shown = [p.bounding_box() for p in seen.page.locator(".panel").all() if p.is_visible()]
        assert len({round(b["y"]) for b in shown}) == 3


def people(results: Results, count: int) -> Results:
    """The same run with so many speakers in its tables."""
    first = results.attacks[0]
    rows = tuple(replace(first.speakers[k % 20], speaker=f"S{k:03}") for k in range(count))
    return with_attack(results, first.name, speakers=rows)


def test_every_exposed_speaker_can_be_seen_with_the_number_of_tries(browser, results, tmp_path):
    """They were cut after eleven rows, and nobody knew how many tries a share stood on."""
    write_report(people(results, 60), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        table = seen.page.locator("table[data-speakers-of=informed]")
        rows = table.locator("tbody tr")
        assert sum(r.is_visible() for r in rows.all()) == 20
        more = seen.page.get_by_role("button", name="Show all 60 rows")
        more.click()
        assert all(r.is_visible() for r in rows.all())
        assert rows.count() == 60
        box = table.bounding_box()
        assert seen.page.evaluate(
            "t => t.parentNode.clientHeight >= t.offsetHeight - 2", table.element_handle()
        ), "no box of its own to scroll in"
        assert box["height"] > 60 * 20
        assert "Recordings tried" in table.locator("thead").text_content()
        assert (
            "Recordings tried” is the number of tries"
            in seen.page.locator("#speakers").text_content()
        )
        seen.page.get_by_role("button", name="Show the first 20 rows").click()
        assert sum(r.is_visible() for r in rows.all()) == 20
    with opened(browser, tmp_path / "r.html", script=False) as seen:
        rows = seen.page.locator("table[data-speakers-of=informed] tbody tr")
        assert all(r.is_visible() for r in rows.all())


def test_how_many_people_are_exposed_is_told_in_one_unit(results, tmp_path):
    """22 of 24 people were 91.7 %, 0.73 to 0.99."""
    found = exposure(results.attacks, risk=0.5)
    write_report(replace(results, exposure=found), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    told = re.search(r'<p id="exposure">.*?</p>', page, re.DOTALL)
    assert told is not None
    assert re.search(r"\([\d.]+\s%; 95\s% interval [\d.]+\s% to [\d.]+\s%\)", told[0])


def test_a_few_speakers_need_no_button(browser, results, tmp_path):
    write_report(results, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        assert seen.page.locator("button.more").count() == 0
        rows = seen.page.locator("table[data-speakers-of=informed] tbody tr")
        assert all(r.is_visible() for r in rows.all())


def test_no_number_touches_its_percent_sign(browser, results, tmp_path):
    """65.0 % stood beside 65.0%."""
    write_report(results, tmp_path / "r.html")
    write_compare([results, sample(seed=1, strength=0.4, title="other")], tmp_path / "c.html")
    for name in ("r.html", "c.html"):
        with opened(browser, tmp_path / name) as seen:
            text = seen.page.locator("main").text_content()
            assert re.findall(r".{20}\d%", text) == []
            assert len(re.findall(r"\d[ \u00a0]%", text)) > 40


def test_no_text_of_a_report_is_written_with_a_percent_format() -> None:
    """``{share:.0%}`` gives 65%; notices mend it themselves, commands print tables of their own."""
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for room in ("pipeline", "report", "utility")
        for path in (SOURCE / room).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\{[^{}]*:[+]?\.\d%\}", line)
    ]
    assert found == []


def test_ticks_are_whole_also_at_the_edge_of_a_figure() -> None:
    """The tick of 100 % was cut off."""
    whole = Estimate("deid", 0.99, 0.0, {}, "", Interval(0.9, 1.0, 0.95, ""))
    up = Estimate("g_vd", -3.0, 0.0, {}, "")
    plot = charts.plane_plot([PlanePoint(SERIES, whole, up)], "deid", "g_vd")
    for value, text in plot.x.ticks:
        x, _ = plot.at(value, 0.0)
        assert x + 3.2 * len(text) <= plot.width, text
    assert "100 %" in [text for _, text in plot.x.ticks]


def test_a_word_error_rate_above_one_is_drawn_where_it_is() -> None:
    heard = Estimate("wer", 1.45, 0.0, {}, "", Interval(1.3, 1.6, 0.95, ""))
    eer = Estimate("rocch_eer", 0.4, 0.5, {}, "")
    plot = charts.plane_plot([PlanePoint(SERIES, heard, eer)], "wer", "rocch_eer")
    assert plot.x.high > 1.6
    full, drawn = plot.at(1.0, 0.4)[0], plot.at(1.45, 0.4)[0]
    assert drawn > full + 20


def test_no_figure_stands_outside_its_own_interval(results) -> None:
    """log10 l was 3.06 with an interval from 3.02 to 3.05."""
    for a in results.attacks:
        for e in (*a.figures.values(), *a.crowd):
            if e.interval:
                assert e.interval.low <= e.value <= e.interval.high, (a.name, e.name)


def test_the_title_names_no_command() -> None:
    """It was: Speech anonymized by command."""
    rows = [Utterance("u", Path("u.wav"), "s", extra={"anonymizer": "command"})]
    assert described(rows).description == "anonymized by a program of the user"
    function = [Utterance("u", Path("u.wav"), "s", extra={"anonymizer": "mine:protect"})]
    assert described(function).description == "anonymized by a function of the user"


def test_an_attacker_s_name_stands_once_in_the_table_of_groups(browser, results, tmp_path):
    write_report(results, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        names = seen.page.locator("#group-table tbody th").all_text_contents()
        assert names == [words.both_names(a) for a in results.attacks]


def test_every_run_has_only_what_every_run_has(browser, results, tmp_path):
    """An anonymizer without targets has no attacker who unlearns them, and none is claimed."""
    erasing = replace(results.attacks[0], name="informed + erasing")
    with_targets = replace(results, attacks=(erasing, *results.attacks))
    bare = replace(
        sample(seed=1, title="plain"),
        anonymizer=replace(results.anonymizer, name="plain", target_selection=None),
    )
    runs = [with_targets, bare]
    shared = common_attackers(runs)
    assert "informed + erasing" in shared
    assert "informed + erasing" not in in_every_run(runs, shared)
    write_compare(runs, tmp_path / "c.html")
    with opened(browser, tmp_path / "c.html") as seen:
        said = seen.page.locator("#ranking-heading + p").text_content()
        claimed = said.partition("every run has: ")[2].partition(". ")[0]
        assert "erasing" not in claimed
        assert "informed (VoicePrivacy" in claimed
        assert "Beside them informed + erasing" in said


def test_the_headline_of_a_comparison_says_the_price(results, tmp_path):
    other = sample(seed=1, strength=0.35, title="strong")
    kept = replace(other, utility=replace(other.utility, figures={
        **other.utility.figures,
        "wer": {**other.utility.figures["wer"],
                "anonymized": replace(other.utility.get("wer", "anonymized"), value=0.4)},
    }))  # fmt: skip
    write_compare([results, kept], tmp_path / "c.html")
    lead = re.search(r'<p class="lead">(.*?)</p>', (tmp_path / "c.html").read_text())[1]
    assert lead.startswith("Best protected: strong. The right one of 20 people is found in ")
    assert "The price: 40.0\u00a0% of the words are recognised wrongly, 4.1\u00a0% in the" in lead
    assert "mcadams keeps most words (10.0\u00a0% wrong), and people are found in 95.0" in lead
    silent = replace(kept, utility=None)
    write_compare([results, silent], tmp_path / "d.html")
    assert "At what price is not known" in (tmp_path / "d.html").read_text()
