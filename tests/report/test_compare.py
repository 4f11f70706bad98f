"""Comparing systems: only like with like, and no difference claimed that the data do not carry."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from report_browser import CONTRAST, chromium, opened
from report_sample import sample, with_attack, with_control
from voxrisk.cli import app
from voxrisk.measure.paired import paired_difference
from voxrisk.report import words
from voxrisk.report.compare import pareto_front, system_names, write_compare
from voxrisk.report.systems import common_attackers, common_setting
from voxrisk.results import AttackResult, Results
from voxrisk.types import InputError


@pytest.fixture(scope="module")
def runs() -> list[Results]:
    weak = sample(strength=1.2, title="weak <b>bold</b>")
    strong = sample(seed=1, strength=0.35, title="strong")
    twin = replace(weak, anonymizer=replace(weak.anonymizer, name="twin"))
    return [weak, strong, twin]


@pytest.fixture(scope="module")
def path(runs: list[Results], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("compare") / "compare.html"
    write_compare(runs, file)
    return file


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def strongest(run: Results) -> AttackResult:
    return run.attacks[0]


def with_speech(run: Results, sha256: str) -> Results:
    """The same run, started from other speech."""
    return replace(run, methods=replace(run.methods, hashes={"original": sha256}))


def test_ranking_has_the_least_linked_first_and_the_numbers_of_the_runs(browser, path, runs):
    with opened(browser, path) as seen:
        rows = seen.page.locator("#ranking tbody tr").all()
        names = [r.get_attribute("data-system") for r in rows]
        assert names == ["strong", "weak <b>bold</b>", "twin", "original speech"]
        value = strongest(runs[1]).at("linkability", 3, 20)
        text = rows[0].text_content()
        assert words.estimate(value) in text
        assert words.interval(value) in text
        assert seen.said == []
        assert [u for u in seen.requests if not u.startswith("data:")] == [path.as_uri()]


def test_every_figure_stands_with_the_attacker_it_belongs_to(browser, runs, tmp_path):
    """The strongest attacker is not the same by every figure."""
    strong = runs[1]
    semi = strong.attackers["semi-informed"]
    surer = {**semi.figures, "log10_l": replace(semi.figures["log10_l"], value=9.0)}
    other = with_attack(strong, "semi-informed", figures=surer, tag="F")
    write_compare([runs[0], other], tmp_path / "c.html")
    with opened(browser, tmp_path / "c.html") as seen:
        row = seen.page.locator('#ranking tr[data-system="strong"]')
        who = {
            label: row.locator(f'td[data-label="{label}"] .who').text_content()
            for label in ("Linkability", "Singling Out", "Equal error rate",
                          "Expected disclosure", "Worst case")
        }  # fmt: skip
        assert who.pop("Worst case") == "semi-informed"
        assert "tag F" in row.locator('td[data-label="Worst case"]').text_content()
        for label, metric in (("Linkability", "linkability"), ("Singling Out", "singling_out")):
            best = max(strong.attacks[:-1], key=lambda a, m=metric: a.at(m, 3, 20).value)
            assert who.pop(label) == best.name
            shown = row.locator(f'td[data-label="{label}"]').text_content()
            assert words.estimate(best.at(metric, 3, 20)) in shown
        assert set(who.values()) == {"informed"}
        lead = seen.page.locator("#ranking-heading + p").text_content()
        assert all(words.both_names(a) in lead for a in strong.attacks[:-1])
        reference = seen.page.locator("#ranking tr.reference")
        assert reference.count() == 1
        assert reference.locator(".who").count() == 0


def test_original_speech_stands_once_for_each_corpus(browser, runs, tmp_path):
    other = with_speech(runs[1], "0" * 64)
    for chosen, expected in (
        (runs, ["original speech"]),
        ([runs[0], other, runs[2]],
         ["original speech of weak <b>bold</b>", "original speech of strong"]),
    ):  # fmt: skip
        write_compare(chosen, tmp_path / "c.html")
        with opened(browser, tmp_path / "c.html") as seen:
            rows = seen.page.locator("#ranking tr.reference").all()
            assert [r.get_attribute("data-system") for r in rows] == expected
            eer = words.estimate(chosen[0].reference.eer)
            assert eer in rows[0].locator('td[data-label="Equal error rate"]').text_content()


def failed(run: Results, headline: str) -> Results:
    """The same run as a verdict on a failed control leaves it."""
    run = with_control(run, "positive", passed=False)
    criteria = tuple(
        replace(c, level="test failed") if c.assessed else c for c in run.verdict.criteria
    )
    return replace(run, verdict=replace(run.verdict, headline=headline, criteria=criteria))


def test_a_failed_run_is_ranked_last_and_its_headline_is_a_warning(browser, runs, tmp_path):
    """Its low risk is that of a broken attack."""
    headline = "This test failed: the recogniser does not recognise people even in original speech."
    broken = failed(runs[1], headline)
    write_compare([runs[0], broken, runs[2]], tmp_path / "c.html")
    with opened(browser, tmp_path / "c.html") as seen:
        said = seen.page.locator(".warning.serious").all_text_contents()
        assert said == [f"Warning. strong: {headline}"]
        rows = seen.page.locator("#ranking tbody tr")
        names = [r.get_attribute("data-system") for r in rows.all()]
        assert names == ["weak <b>bold</b>", "twin", "strong", "original speech"]
        assert rows.nth(2).locator("th").text_content() == "strongits test failed"
        lead = seen.page.locator(".lead").text_content()
        assert lead.startswith("Best protected: weak <b>bold</b>.")
        assert "strong" not in lead
        differences = seen.page.locator("#difference-table tbody tr").all_text_contents()
        assert ["not tested: the test of strong failed" in d for d in differences] == [
            False, True, True,
        ]  # fmt: skip
        shown = seen.page.locator("ul.legend li").all_text_contents()
        assert [text.strip() for text in shown] == ["weak <b>bold</b>", "twin"]
        points = seen.page.locator("svg.plot").first.locator(".pt")
        assert points.count() == 2
        assert [t for r, t in seen.page.evaluate(CONTRAST) if r < 4.5] == []
    write_compare([broken, failed(runs[0], headline)], tmp_path / "c.html")
    assert "none is shown to protect anybody" in (tmp_path / "c.html").read_text()


def test_an_attacker_that_failed_its_control_is_not_counted(browser, runs, tmp_path):
    deaf = with_attack(runs[2], "informed", ranked=False)
    assert "informed" not in common_attackers([runs[0], deaf])
    write_compare([runs[0], deaf], tmp_path / "c.html")
    with opened(browser, tmp_path / "c.html") as seen:
        said = seen.page.locator(".warning.serious").all_text_contents()
        assert (
            "Warning. twin: the informed attacker failed its control and is not counted here."
            in said
        )
        assert any(
            t.startswith("Warning. weak <b>bold</b> was also attacked by: informed.") for t in said
        )
        who = seen.page.locator("#ranking .who").all_text_contents()
        assert who
        assert "informed" not in who


def test_runs_on_other_trials_are_warned_of(runs, tmp_path):
    """Five enrolled utterances by a list and ten by our split give other figures for one system."""
    said = "do not share the enrolment and trials"
    write_compare(runs, tmp_path / "same.html")
    assert said not in (tmp_path / "same.html").read_text()
    methods = replace(runs[1].methods, enrolment="enrolment and trials by the official lists")
    write_compare([runs[0], replace(runs[1], methods=methods)], tmp_path / "other.html")
    assert said in (tmp_path / "other.html").read_text()


def test_a_control_that_was_not_made_is_no_failure(runs, tmp_path):
    write_compare([runs[0], with_control(runs[1], "words", passed=None)], tmp_path / "c.html")
    assert "Warning." not in (tmp_path / "c.html").read_text()


def test_synthetic_voices_and_results_of_other_commands(runs, tmp_path):
    made = replace(runs[0], corpus=replace(runs[0].corpus, synthetic="espeak-ng"))
    write_compare([made, runs[1]], tmp_path / "c.html")
    assert "Voices are synthetic" in (tmp_path / "c.html").read_text()
    with pytest.raises(InputError, match=r"'voxrisk measure'; a comparison needs those of"):
        write_compare([runs[0], replace(runs[1], kind="measure")], tmp_path / "d.html")
    assert not (tmp_path / "d.html").exists()


def test_differences_are_paired_by_speaker_and_twins_do_not_differ(browser, path, runs):
    def linked(run):
        return {p.speaker: p.linkability for p in strongest(run).speakers}

    a, b = linked(runs[1]), linked(runs[0])
    expected = paired_difference([a[s] for s in sorted(a)], [b[s] for s in sorted(a)])
    assert expected.p_value < 0.01
    with opened(browser, path) as seen:
        rows = seen.page.locator("#difference-table tbody tr").all_text_contents()
        assert words.points(-expected.difference.value) in rows[0]
        assert "linked less often under strong" in rows[0]
        assert "no difference shown" in rows[2]
        lead = seen.page.locator(".lead").text_content()
        assert lead.startswith("Best protected: strong.")
        assert "That is shown to be less than with weak <b>bold</b>, twin." in lead
        price = words.estimate(runs[1].utility.get("wer"))
        assert f"The price: {price} of the words are recognised wrongly, " in lead


def test_twins_alone_are_not_ranked_in_words(runs, tmp_path):
    write_compare([runs[0], runs[2]], tmp_path / "c.html")
    assert "not shown to be less than with any other" in (tmp_path / "c.html").read_text()


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
    eer = {(r.utility.get("wer").value, strongest(r).eer.value) for r in runs}
    alike = [r.similarity.figures for r in runs]
    deid = {(figures["deid"].value, figures["g_vd"].value) for figures in alike}
    assert {tuple(p) for p in drawn[0]} == eer
    assert {tuple(p) for p in drawn[1]} == deid


def test_attackers_that_not_every_run_has_are_left_out_and_named(runs, tmp_path):
    weaker = tuple(a for a in runs[1].attacks if a.name != "informed")
    fewer = replace(runs[1], attacks=weaker)
    assert common_attackers([runs[0], fewer])[0] == "semi-informed"
    write_compare([runs[0], fewer], tmp_path / "c.html")
    assert "was also attacked by: informed" in (tmp_path / "c.html").read_text()
    nobody = replace(fewer, attacks=(fewer.reference,))
    with pytest.raises(InputError, match="no attacker in common"):
        write_compare([runs[0], nobody], tmp_path / "d.html")


def test_other_speech_is_warned_of_and_its_speakers_are_not_paired(runs, tmp_path):
    write_compare([runs[0], with_speech(runs[1], "0" * 64)], tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "do not share the original speech" in text
    assert "speakers cannot be paired" in text


def test_no_system_is_best_on_other_speech(runs, tmp_path):
    """Half a second of a digit hides a voice better than any anonymizer of a sentence."""
    write_compare(runs, tmp_path / "same.html")
    assert "Best protected: " in (tmp_path / "same.html").read_text(encoding="utf-8")
    write_compare([runs[0], with_speech(runs[1], "0" * 64)], tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "which of them protects best is not shown" in page
    assert "Best protected: " not in page


def test_a_word_error_rate_that_cannot_be_believed_is_not_compared(browser, runs, tmp_path):
    doubted = replace(runs[1], utility=replace(runs[1].utility, untrusted={"wer": "93 % wrong"}))
    write_compare([runs[0], doubted], tmp_path / "c.html")
    with opened(browser, tmp_path / "c.html") as seen:
        cell = seen.page.locator('#ranking tr[data-system="strong"] td').last
        assert cell.text_content().strip() == "–"


def test_crowd_is_the_largest_that_every_run_has(runs):
    def smaller(a):
        return replace(a, crowd=tuple(e for e in a.crowd if (e.length, e.size) != (3, 20)))

    small = replace(runs[1], attacks=tuple(smaller(a) for a in runs[1].attacks))
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
        run.write(tmp_path / name)
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
    (tmp_path / "results.json").write_text('{"schema": 1, "attackers": []}')
    older = str(call(app, ["compare", *both, str(tmp_path), *where, "--force"]).exception)
    assert "schema 1, and this voxrisk reads schema 2" in older
    replace(runs[0], kind="measure").write(tmp_path)
    other = str(call(app, ["report", str(tmp_path), "--force"]).exception)
    assert "a report needs those of 'voxrisk evaluate'" in other


def test_without_target_voices_the_informed_attacker_stands_for_those_who_unlearn(
    runs: list[Results], tmp_path: Path
) -> None:
    """Else the strongest attacker of a system with targets would be left out of the comparison."""
    for name in ("informed + adversarial", "informed + erasing"):
        targets = with_attack(runs[0], "informed", name=name)
        targets = with_attack(targets, "semi-informed", name="informed")
        none = with_attack(with_attack(runs[1], "informed", name="x"), "semi-informed",
                           name="informed")  # fmt: skip
        assert name not in common_attackers([targets, none])
        none = replace(none, anonymizer=replace(none.anonymizer, target_selection=None))
        assert common_attackers([targets, none])[0] == name
        write_compare([none, targets], tmp_path / "c.html", names=["none", "targets"])
        page = (tmp_path / "c.html").read_text()
        assert f"was also attacked by: {name}" not in page


def test_speakers_of_different_crowds_are_not_paired(runs: list[Results], tmp_path: Path) -> None:
    small = replace(
        runs[1],
        attacks=tuple(
            replace(a, crowd=tuple(e for e in a.crowd if (e.length, e.size) != (3, 20)))
            for a in runs[1].attacks
        ),
    )
    write_compare([runs[0], small], tmp_path / "c.html")
    assert "are of crowds of different size" in (tmp_path / "c.html").read_text()
