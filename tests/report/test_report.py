"""The report in a real browser: it shows what the results say and sends nothing."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from report_browser import CONTRAST, DRAWN, chromium, opened
from report_sample import sample, spoken, with_attack, with_control
from voxrisk.knowledge import ATTACKERS
from voxrisk.notices import notice
from voxrisk.report import words
from voxrisk.report.heatmap import colours, whole
from voxrisk.report.html import write_pdf, write_report
from voxrisk.results import Results, UtilityResult
from voxrisk.types import InputError, MissingExtraError

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results() -> Results:
    found = sample(names=(EVIL,))
    notices = (
        notice("synthetic", by="espeak-ng"),
        *found.notices,
        notice("left_out", count=1, why="one session only", speakers=[EVIL]),
    )
    return replace(
        found,
        audio=(spoken(text=f"he said {EVIL}"),),
        corpus=replace(found.corpus, synthetic="espeak-ng"),
        notices=notices,
    )


@pytest.fixture(scope="module")
def path(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(results, file)
    return file


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser, path):
    with opened(browser, path) as seen:
        yield seen.page


def test_renders_without_a_complaint_and_asks_for_nothing(browser, path):
    with opened(browser, path) as seen:
        seen.page.mouse.move(400, 400)
        seen.page.wait_for_timeout(200)
        assert seen.said == []
        assert {u for u in seen.requests if not u.startswith("data:")} == {path.resolve().as_uri()}


def test_steps_to_take_follow_the_verdict(page, results):
    """As many as the results hold, in their order, what to do in bold; options do not break."""
    shown = page.locator("#next li")
    steps = [n for n in results.notices if n.severity == "next"]
    assert [shown.nth(i).get_attribute("data-step") for i in range(shown.count())] == [
        s.code for s in steps
    ]
    assert shown.first.inner_text().replace("\n", " ") == steps[0].text
    assert page.locator("#next li b").count() == len(steps) > 0


def test_its_own_policy_stops_foreign_scripts_and_requests(browser, path):
    with opened(browser, path) as seen:
        seen.page.evaluate("""() => {
            const s = document.createElement('script'); s.textContent = 'window.foreign = 1';
            document.body.append(s);
            const i = new Image(); i.src = 'http://example.com/x.png'; document.body.append(i);
        }""")
        seen.page.wait_for_timeout(200)
        assert seen.page.evaluate("window.foreign") is None
        assert seen.left == []


def test_source_names_no_other_place(path):
    html = path.read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)=[\"'](?!data:|#)", html)
    assert not re.search(r"\son\w+\s*=", html.partition("<script")[0])
    assert "url(" not in html


@pytest.mark.parametrize("metric", ["singling_out", "linkability", "rocch_eer"])
def test_every_point_of_the_curves_stands_where_the_results_say(page, results, metric):
    drawn = {(s, length, n): rest for s, length, n, *rest in page.evaluate(DRAWN, metric)}
    expected = {
        (a.name, e.length, e.size): e.value
        for a in results.attacks
        for e in a.crowd
        if e.name == metric
    }
    assert drawn.keys() == expected.keys()
    for key, value in expected.items():
        written, share, ticked, _ = drawn[key]
        assert written == value
        assert ticked
        # Triangles are not drawn around their middle: half a mark is two percent of the height.
        assert share == pytest.approx(1 - value if metric == "rocch_eer" else value, abs=0.02)


def test_tables_of_curves_give_the_same_numbers(page, results):
    for metric in ("singling_out", "linkability", "rocch_eer"):
        rows = page.locator(f"table[data-table={metric}] tbody tr").all_text_contents()
        entries = [e for a in results.attacks for e in a.crowd if e.name == metric]
        assert len(rows) == len(entries)
        for row, e in zip(rows, entries, strict=True):
            assert words.percent(e.value) in row
            assert words.interval(e) in row


def test_verdict_comes_first_with_value_interval_chance_and_original(page, results):
    assert page.locator(".lead").text_content() == results.verdict.headline
    cards = page.locator(".card")
    assert [c.get_attribute("data-criterion") for c in cards.all()] == [
        "singling out", "linkability", "inference",
    ]  # fmt: skip
    for card, c in zip(cards.all()[:2], results.verdict.criteria, strict=False):
        box = card.bounding_box()
        assert box["y"] + box["height"] < 900, "the verdict is on the first screen"
        text = card.text_content()
        for said in (
            words.estimate(c.value), words.interval(c.value), words.estimate(c.original),
            words.percent(c.value.chance), c.sentence, "VoicePrivacy: semi-informed, a-a",
            "3 utterances of each voice, among 20 people",
        ):  # fmt: skip
            assert said in text
        scale = card.locator("svg.scale")
        found = float(scale.locator(".found").get_attribute("cx"))
        ticks = [float(t.get_attribute("x")) for t in scale.locator("text").all()]
        assert (found - ticks[0]) / (ticks[-1] - ticks[0]) == pytest.approx(c.value.value, abs=1e-3)
    assert "Not assessed" in cards.nth(2).text_content()


def test_notices_are_in_plain_sight_and_serious_ones_stand_first(page, results):
    serious = page.locator(".warning.serious").all_text_contents()
    notes = page.locator(".warning.note").all_text_contents()
    for severity, shown in (("serious", serious), ("note", notes)):
        expected = [n.text for n in results.notices if n.severity == severity]
        assert [text.strip().removeprefix("Warning. ") for text in shown] == expected
    first = page.locator(".warning.serious").first
    assert "These voices are synthetic (espeak-ng)" in first.text_content()
    assert first.bounding_box()["y"] < 400
    assert all(w.is_visible() for w in page.locator(".warning").all())


def test_every_control_says_what_is_asked_expected_and_found(page, results):
    rows = page.locator("#controls tbody tr")
    assert [r.get_attribute("data-control") for r in rows.all()] == [
        "positive", "training", "negative", "words",
    ]  # fmt: skip
    for row, c in zip(rows.all(), results.controls, strict=True):
        said = [t.strip() for t in row.locator("th, td").all_text_contents()]
        assert said[:2] == [c.question, c.expected]
        assert said[2].startswith(c.found)
        assert (c.value is not None) == (f"95 % interval {words.interval(c.value)}" in said[2])
        assert said[3] == "yes"
        assert row.get_attribute("class") == "passed"


def test_controls_that_failed_or_could_not_be_made_are_marked(browser, results, tmp_path):
    failed = with_control(results, "training", passed=False, found="EER 49.0 %", value=None)
    failed = with_control(failed, "words", passed=None, found="not every utterance has a text")
    failed = with_attack(failed, "informed", ranked=False)
    write_report(failed, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        rows = seen.page.locator("#controls tbody tr")
        said = [(r.get_attribute("class"), r.locator("b").text_content()) for r in rows.all()]
        assert said == [("passed", "yes"), ("failed", "no"), ("passed", "yes"),
                        ("open", "not known")]  # fmt: skip
        behind = [r.evaluate("r => getComputedStyle(r).backgroundColor") for r in rows.all()]
        assert behind[1] not in {behind[0], behind[2], behind[3]}
        assert [t for r, t in seen.page.evaluate(CONTRAST) if r < 4.5] == []
        told = {
            r.get_attribute("data-attacker"): "failed its control" in r.text_content()
            for r in seen.page.locator("#attacker-table tbody tr").all()
        }
        assert [name for name, unsound in told.items() if unsound] == ["informed"]


def test_without_controls_there_is_no_table_of_them(results, tmp_path):
    write_report(replace(results, controls=()), tmp_path / "r.html")
    assert "Can this test be trusted?" not in (tmp_path / "r.html").read_text()


def test_attackers_stand_in_the_order_of_the_results_with_all_their_names(page, results):
    rows = page.locator("#attacker-table tbody tr")
    assert [r.get_attribute("data-attacker") for r in rows.all()] == [
        a.name for a in results.attacks
    ]
    for row, a in zip(rows.all(), results.attacks, strict=True):
        text = row.text_content()
        known = ATTACKERS[a.name]
        both = f"VoicePrivacy: {known.voiceprivacy}; paper 1: {known.paper1}"
        assert (both in text) != a.reference
        assert ("reference" in text) == a.reference
        assert "failed its control" not in text
        for name in ("rocch_eer", "d_ece", "log10_l"):
            assert words.estimate(a.figures[name]) in text
            assert words.interval(a.figures[name]) in text
        for metric in ("singling_out", "linkability"):
            assert words.estimate(a.at(metric, 3, 20)) in text
        assert f"tag {a.tag}" in text


def test_an_attacker_has_one_colour_and_mark_on_the_whole_page(page):
    for name, known in ATTACKERS.items():
        drawn = page.locator(f'.series[data-series="{name}"] .line')
        found = {line.get_attribute("stroke") for line in drawn.all()}
        assert found in ({known.colour}, set()), name
    assert page.locator('.series[data-series="informed"] .line').count() > 6


def test_every_attacker_has_its_groups_and_those_too_small_say_so(page, results):
    rows = page.locator("#group-table tbody tr")
    assert rows.count() == sum(len(a.groups) for a in results.attacks)
    who = page.locator("#group-table tbody th").all_text_contents()
    assert who == [words.both_names(a) for a in results.attacks]
    groups = [g for a in results.attacks for g in a.groups]
    for row, g in zip(rows.all(), groups, strict=True):
        text = row.text_content()
        assert f"{g.group}: {g.value}" in text
        assert ("too few to tell" in text) == g.too_small
        if not g.too_small:
            assert words.estimate(g.figures["rocch_eer"]) in text


def test_heat_map_has_the_colour_of_every_pair_and_names_it_on_pointing(page, results):
    matrix = whole(results.similarity)
    middles = page.evaluate(
        """async cells => {
        const image = new Image();
        image.src = document.querySelector('svg.heat image').getAttribute('href');
        await image.decode();
        const c = document.createElement('canvas'); c.width = image.width; c.height = image.height;
        const g = c.getContext('2d', {willReadFrequently: true}); g.drawImage(image, 0, 0);
        const at = k => Math.floor((k + .5) * image.width / cells), found = [];
        for (let i = 0; i < cells; i++) for (let j = 0; j < cells; j++)
            found.push(...g.getImageData(at(j), at(i), 1, 1).data.slice(0, 3));
        return found;
    }""",
        len(matrix),
    )
    assert (np.reshape(middles, (*matrix.shape, 3)) == colours(matrix)).all()

    n = len(results.similarity.speakers)
    heat = page.locator("svg.heat")
    heat.scroll_into_view_if_needed()
    box = heat.locator("image").first.bounding_box()
    for i, j in ((0, n), (3, n + 7), (n + 2, 5), (n + 4, n + 4)):
        page.mouse.move(
            box["x"] + (j + 0.5) * box["width"] / (2 * n),
            box["y"] + (i + 0.5) * box["height"] / (2 * n),
        )
        tip = page.locator(".tip").text_content()
        assert f"similarity {matrix[i, j]:.3f}" in tip
        assert results.similarity.speakers[i % n] in tip


def test_speaker_named_like_a_script_stays_text(browser, path):
    with opened(browser, path) as seen:
        cell = seen.page.locator("table[data-speakers-of=informed] tbody th", has_text="alert(1)")
        assert cell.text_content() == EVIL
        assert seen.page.evaluate(
            "[...document.scripts].every(s => !s.textContent.startsWith('alert'))"
        )
        assert seen.said == []
    assert EVIL not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_page_never_scrolls_sideways(browser, path, width):
    with opened(browser, path, width=width, height=800) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        out = seen.page.evaluate(
            "[...document.querySelectorAll('svg.plot, svg.heat, svg.scale, .card')]"
            ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
        )
        assert out == 0


def test_headings_go_down_step_by_step_and_everything_has_a_name(page):
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.tagName[1])"
    )
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    bare = page.evaluate("""() => [
        ...document.querySelectorAll('svg:not([aria-hidden]):not([aria-label]):not(dt svg)'),
        ...document.querySelectorAll('img:not([alt]), audio:not([aria-label])'),
        ...document.querySelectorAll('table th:not([scope])'),
        ...[...document.querySelectorAll('figure')].filter(f => !f.querySelector('figcaption')),
        ...document.querySelectorAll('[aria-labelledby]'),
    ].filter(e => !e.hasAttribute('aria-labelledby')
              || !document.getElementById(e.getAttribute('aria-labelledby')))
     .map(e => e.outerHTML.slice(0, 80))""")
    assert bare == []
    assert page.evaluate("document.documentElement.lang") == "en"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("media", ["screen", "print"])
def test_every_text_stands_out_from_what_is_behind_it(page, media):
    page.emulate_media(media=media)
    found = page.evaluate(CONTRAST)
    assert len(found) > 300
    assert [(round(r, 2), text) for r, text in found if r < 4.5] == []


def test_all_is_there_without_javascript(browser, path, results):
    with opened(browser, path, script=False) as seen:
        page = seen.page
        assert page.get_by_text(results.verdict.headline).is_visible()
        assert page.locator(".card").count() == 3
        panels = page.locator(".panel svg.plot")
        assert panels.count() == 6
        assert all(p.is_visible() for p in panels.all())
        assert page.locator(".controls").first.is_hidden()
        assert page.locator("table[data-speakers-of=informed]").is_visible()
        title = page.locator(".pt title").first.text_content()
        assert "guessing" in title


def test_keyboard_reads_points_cells_and_sorts(page, results):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    tip = page.locator(".tip")
    plot = page.locator(".panel svg.plot").first
    plot.focus()
    page.keyboard.press("ArrowRight")
    first = tip.text_content()
    assert tip.is_visible()
    page.keyboard.press("ArrowRight")
    assert tip.text_content() != first
    page.keyboard.press("ArrowDown")
    assert tip.text_content().split("\n")[0] != first.split("\n")[0]
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.locator("svg.heat").focus()
    page.keyboard.press("ArrowRight")
    assert "the same person" in tip.text_content()
    table = page.locator("table[data-speakers-of=informed]")
    table.get_by_role("button", name="Speaker").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    names = table.locator("tbody th").all_text_contents()
    assert names == sorted(results.similarity.speakers)
    assert table.locator("th[aria-sort=ascending]").count() == 1


def test_choosing_attacker_length_and_metric(page):
    hidden = page.locator('.series[data-series="ignorant"]')
    assert hidden.first.is_visible()
    page.get_by_label("ignorant", exact=True).uncheck()
    assert not any(s.is_visible() for s in hidden.all())
    page.locator("select[name=length]").select_option("3")
    page.locator("select[name=metric]").select_option("linkability")
    shown = [p for p in page.locator(".panel").all() if p.is_visible()]
    assert [(p.get_attribute("data-row"), p.get_attribute("data-length")) for p in shown] == [
        ("linkability", "3")
    ]


def test_pointing_at_a_curve_names_attacker_and_numbers(page, results):
    point = page.locator('.series[data-series="informed"] .pt[data-metric=linkability]').first
    point.scroll_into_view_if_needed()
    box = point.locator(".mark").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator(".tip").text_content()
    assert "VoicePrivacy" in tip
    assert words.percent(float(point.get_attribute("data-value"))) in tip


def test_prints_on_several_pages_without_controls(page, path, tmp_path):
    page.emulate_media(media="print")
    assert not any(c.is_visible() for c in page.locator(".controls, .tip, nav.contents").all())
    assert page.locator(".panel svg.plot").first.is_visible()
    pdf = page.pdf(format="A4")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    write_pdf(path, tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_pdf_without_a_browser_names_the_ways_out(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"apt install chromium.*weasyprint"):
        write_pdf(path, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="write the report first"):
        write_pdf(tmp_path / "no.html", tmp_path / "report.pdf")


def test_what_was_not_measured_is_said_and_nothing_breaks(browser, results, tmp_path):
    def bared(a):
        figures = {name: replace(e, interval=None) for name, e in a.figures.items()}
        return replace(a, crowd=(), groups=(), speakers=(), figures=figures)

    nothing = {"attacker": None, "value": None, "original": None, "level": "not assessed"}
    criteria = tuple(replace(c, **nothing) for c in results.verdict.criteria)
    bare = replace(
        results,
        similarity=None,
        utility=UtilityResult(missing={"all": "no transcripts"}),
        audio=(),
        controls=(),
        notices=(),
        corpus=replace(results.corpus, genders={"unknown": 20}, synthetic=None),
        attacks=tuple(bared(a) for a in results.attacks),
        verdict=replace(results.verdict, criteria=criteria),
    )
    alone = replace(bare, attacks=(), methods=replace(bare.methods, trials={}))
    for number, case in enumerate((bare, alone)):
        file = tmp_path / f"{number}.html"
        write_report(case, file)
        with opened(browser, file) as seen:
            text = seen.page.locator("main").text_content()
            assert text.count("Not assessed") >= 3
            assert "no transcripts" in text
            assert text.count("Not measured") >= 4
            assert "nan" not in text.lower().split()
            assert "None" not in text
            assert "unknown" not in seen.page.locator("header").text_content()
            assert seen.said == []
    write_report(replace(bare, utility=None), tmp_path / "unasked.html")
    assert "Not measured: not asked for." in (tmp_path / "unasked.html").read_text()


def test_a_figure_that_cannot_be_believed_costs_its_chart(browser, results, tmp_path):
    doubt = "93 % of the words of the original speech are wrong"
    utility = replace(results.utility, untrusted={"wer": doubt})
    write_report(replace(results, utility=utility), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as seen:
        said = seen.page.locator("#utility .warning.serious").text_content()
        assert "Word error rate (WER) cannot be believed." in said
        assert f"{doubt}. No loss is stated from it." in said
        assert seen.page.locator("#utility svg.plot").count() == 0


def test_intervals_that_are_missing_and_a_single_crowd_are_drawn(browser, results, tmp_path):
    def single(a):
        return replace(a, crowd=tuple(replace(e, interval=None) for e in a.crowd if e.size == 20))

    one = replace(results, attacks=tuple(single(a) for a in results.attacks))
    write_report(one, tmp_path / "one.html")
    with opened(browser, tmp_path / "one.html") as seen:
        assert seen.page.locator(".panel .pt").count() == 6 * len(one.attacks)
        assert seen.said == []


def test_results_of_another_command_or_not_complete_are_refused(results, tmp_path):
    file = tmp_path / "r.html"
    said = r"results of 'voxrisk measure'; a report needs those of 'voxrisk evaluate'"
    with pytest.raises(InputError, match=said):
        write_report(replace(results, kind="measure"), file)
    for part in ("verdict", "corpus", "anonymizer", "encoder"):
        with pytest.raises(InputError, match=rf"not complete \(no {part}\)"):
            write_report(replace(results, **{part: None}), file)
    away = replace(results.audio[0], original="http://example.com/a.wav")
    with pytest.raises(InputError, match="U0001 is not embedded"):
        write_report(replace(results, audio=(away,)), file)
    assert not file.exists()


def test_results_come_back_from_their_file_as_they_were(results, tmp_path):
    text = results.write(tmp_path)
    assert (tmp_path / "results.json").read_text(encoding="utf-8") == text
    assert Results.read(tmp_path) == Results.read(tmp_path / "results.json") == results
    assert Results.from_json(text).to_json() == text
    assert Results.from_json(text).notices[-1].text == results.notices[-1].text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": 1}', r"run/results.json: schema 1, .*reads schema 2 \(an older"),
        ("[1]", r"run/results.json: schema None, .*an older voxrisk wrote it"),
        ('{"schema": 3}', r"run/results.json: schema 3, .*it is newer"),
        ("{", r"run/results.json: not JSON \(.*run the command again"),
        ('{"schema": 2}', r"run/results.json: .*`kind`; run the command again"),
        (
            '{"schema": 2, "kind": "evaluate", "attacks": [{"name": 7}]}',
            r"run/results.json: Expected `str`, got `int` - at `\$.attacks\[0\].name`",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_says_what_is_wrong(text, said):
    with pytest.raises(InputError, match=said):
        Results.from_json(text, where="run/results.json")


def test_a_run_that_is_not_there_says_what_to_give(tmp_path):
    with pytest.raises(InputError, match=r"results\.json is not there; give the folder"):
        Results.read(tmp_path)


def test_same_results_give_the_same_bytes(results, path, tmp_path):
    write_report(results, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()


def test_the_time_of_the_anonymizer_is_told_where_it_is_known(results, tmp_path):
    said = "seconds of work on one core for one second of speech"
    times = {"anonymizer": {"speech_seconds": 100.0, "cpu_seconds": 25.0}}
    write_report(results, tmp_path / "r.html", run=times)
    page = (tmp_path / "r.html").read_text()
    assert said in page
    assert ">0.25<" in page
    write_report(results, tmp_path / "r.html")
    assert said not in (tmp_path / "r.html").read_text()
