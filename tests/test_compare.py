"""Comparing systems: only like with like, and no difference claimed that the data do not carry."""

import copy
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from report_browser import CONTRAST, chromium, opened
from report_sample import sample
from voxrisk.cli import app
from voxrisk.measure.paired import paired_difference
from voxrisk.report import words
from voxrisk.report.compare import (
    common_attackers,
    common_setting,
    pareto_front,
    system_names,
    write_compare,
)
from voxrisk.types import InputError


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    weak = sample(strength=1.2, title="weak <b>bold</b>")
    strong = sample(seed=1, strength=0.35, title="strong")
    twin = copy.deepcopy(weak)
    twin["anonymizer"]["name"] = "twin"
    return [weak, strong, twin]


@pytest.fixture(scope="module")
def path(runs: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("compare") / "compare.html"
    write_compare(runs, file)
    return file


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def strongest(run: dict[str, Any]) -> dict[str, Any]:
    return run["attackers"][0]


def test_ranking_has_the_least_linked_first_and_the_numbers_of_the_runs(browser, path, runs):
    with opened(browser, path) as seen:
        rows = seen.page.locator("#ranking tbody tr").all()
        names = [r.get_attribute("data-system") for r in rows]
        assert names == ["strong", "weak <b>bold</b>", "twin", "original speech"]
        value = next(
            e for e in strongest(runs[1])["population"]
            if (e["metric"], e["L"], e["N"]) == ("linkability", 3, 20)
        )  # fmt: skip
        text = rows[0].text_content()
        assert words.percent(value["value"]) in text
        assert words.bounds("linkability", value["low"], value["high"]) in text
        assert seen.said == []
        assert [u for u in seen.requests if not u.startswith("data:")] == [path.as_uri()]


def test_differences_are_paired_by_speaker_and_twins_do_not_differ(browser, path, runs):
    def linked(run):
        return {s["speaker"]: s["linkability"] for s in strongest(run)["speakers"]}

    a, b = linked(runs[1]), linked(runs[0])
    expected = paired_difference([a[s] for s in sorted(a)], [b[s] for s in sorted(a)])
    assert expected.p_value < 0.01
    with opened(browser, path) as seen:
        rows = seen.page.locator("#difference-table tbody tr").all_text_contents()
        assert words.points(-expected.difference.value) in rows[0]
        assert "linked less often under strong" in rows[0]
        assert "no difference shown" in rows[2]
        lead = seen.page.locator(".lead").text_content()
        assert lead.startswith("Lowest linkability: strong")
        assert lead.endswith("It is shown to be lower than that of weak <b>bold</b>, twin.")


def test_twins_alone_are_not_ranked_in_words(runs, tmp_path):
    write_compare([runs[0], runs[2]], tmp_path / "c.html")
    assert "not shown to be lower than that of any other" in (tmp_path / "c.html").read_text()


def test_phone_contrast_headings_and_no_script(browser, path):
    with opened(browser, path, width=375) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 375
        assert [t for r, t in seen.page.evaluate(CONTRAST) if r < 4.5] == []
    with opened(browser, path, script=False) as seen:
        assert seen.page.locator("svg.plot").count() == 3
        levels = seen.page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])"
        )
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_points_of_the_planes_are_those_of_the_runs(browser, path, runs):
    with opened(browser, path, script=False) as seen:
        drawn = seen.page.evaluate(
            "[...document.querySelectorAll('svg.plot')].slice(0, 2).map(s =>"
            " [...s.querySelectorAll('.pt')].map(p => [+p.dataset.across, +p.dataset.value]))"
        )
    eer = {
        (r["utility"]["wer"]["anonymized"]["value"], strongest(r)["figures"]["rocch_eer"]["value"])
        for r in runs
    }
    deid = {(r["similarity"]["deid"]["value"], r["similarity"]["g_vd"]["value"]) for r in runs}
    assert {tuple(p) for p in drawn[0]} == eer
    assert {tuple(p) for p in drawn[1]} == deid


def test_attackers_that_not_every_run_has_are_left_out_and_named(runs, tmp_path):
    fewer = copy.deepcopy(runs[1])
    fewer["attackers"] = [a for a in fewer["attackers"] if a["name"] != "informed"]
    assert common_attackers([runs[0], fewer])[0] == "semi-informed"
    write_compare([runs[0], fewer], tmp_path / "c.html")
    assert "was also attacked by: informed" in (tmp_path / "c.html").read_text()
    fewer["attackers"] = [a for a in fewer["attackers"] if a["reference"]]
    with pytest.raises(InputError, match="no attacker in common"):
        write_compare([runs[0], fewer], tmp_path / "d.html")


def test_other_speech_is_warned_of_and_its_speakers_are_not_paired(runs, tmp_path):
    other = copy.deepcopy(runs[1])
    other["methods"]["hashes"]["original"] = "0" * 64
    write_compare([runs[0], other], tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "do not share the original speech" in text
    assert "speakers cannot be paired" in text


def test_crowd_is_the_largest_that_every_run_has(runs):
    small = copy.deepcopy(runs[1])
    for a in small["attackers"]:
        a["population"] = [e for e in a["population"] if (e["L"], e["N"]) != (3, 20)]
    attackers = common_attackers(runs)
    assert common_setting(runs, attackers, "linkability") == (3, 20)
    assert common_setting([runs[0], small], attackers, "linkability") == (3, 10)


points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


@given(points)
def test_front_holds_exactly_the_points_that_nothing_beats(chosen):
    front = pareto_front(chosen)
    assert front
    for i, (x, y) in enumerate(chosen):
        beaten = any(a <= x and b >= y and (a < x or b > y) for a, b in chosen)
        assert beaten == (i not in front)


def test_systems_of_one_name_are_told_apart(runs):
    assert system_names(runs) == ["weak <b>bold</b>", "strong", "twin"]
    assert len(set(system_names([runs[0], runs[0]]))) == 2


def test_commands_write_the_pages_and_refuse_to_overwrite(runs, tmp_path):
    for name, run in zip("ab", runs, strict=False):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(run))
    call = CliRunner().invoke
    where = ["-o", str(tmp_path / "c.html")]
    both = [f"x={tmp_path / 'a'}", str(tmp_path / "b")]
    assert call(app, ["compare", *both, *where]).exit_code == 0
    assert "<h1>strong, x</h1>" in (tmp_path / "c.html").read_text()
    again = call(app, ["compare", *both, *where])
    assert isinstance(again.exception, InputError)
    assert "already there" in str(again.exception)
    assert call(app, ["compare", *both, *where, "--force"]).exit_code == 0
    alone = call(app, ["compare", str(tmp_path / "a"), "-o", str(tmp_path / "d.html")])
    assert "at least two" in str(alone.exception)
    assert call(app, ["report", str(tmp_path / "a")]).exit_code == 0
    assert (tmp_path / "a" / "report.html").stat().st_size > 50_000
    nothing = call(app, ["report", str(tmp_path)])
    assert "results.json is not there; give the folder" in str(nothing.exception)
    (tmp_path / "results.json").write_text("{")
    assert "not JSON" in str(call(app, ["report", str(tmp_path)]).exception)
    (tmp_path / "results.json").write_text("[1]")
    assert "not of an evaluation" in str(call(app, ["report", str(tmp_path)]).exception)


def test_without_target_voices_the_informed_attacker_stands_for_the_adversarial_one(
    runs: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Else the strongest attacker of a system with targets would be left out of the comparison."""
    targets, none = copy.deepcopy(runs[0]), copy.deepcopy(runs[1])
    for run in (targets, none):
        run["attackers"][1]["name"] = "informed"
    targets["attackers"][0]["name"] = "informed + adversarial"
    assert "informed + adversarial" not in common_attackers([targets, none])
    none["anonymizer"]["target_selection"] = None
    assert common_attackers([targets, none])[0] == "informed + adversarial"
    write_compare([none, targets], tmp_path / "c.html", names=["none", "targets"])
    page = (tmp_path / "c.html").read_text()
    assert "was also attacked by: informed + adversarial" not in page
