"""What a study of slicing recommends, and its page in a real browser."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from report_browser import chromium, opened
from slicing_sample import estimate, sample
from voxrisk.cli import app
from voxrisk.pipeline.slicing.recommend import recommend
from voxrisk.pipeline.slicing.tables import tidy
from voxrisk.report.slicing import write_slicing_report
from voxrisk.report.slicing_tables import slicing_tables
from voxrisk.slicing_results import RestoredRow, SlicingResults
from voxrisk.types import InputError

LOSSES = {0.5: 0.2, 1.0: 0.04, 2.0: 0.01}


def test_the_shortest_length_whose_loss_is_inside_its_interval_is_recommended() -> None:
    told = sample(LOSSES).recommendation
    assert told.duration == 1.0
    assert "+20.0" in told.reason  # what the next shorter one costs
    assert "up to +9.0 cannot be ruled out" in told.reason  # 4 points and 5 more of its interval


def test_the_attack_that_undoes_it_best_is_one_on_the_published_speech() -> None:
    """Equal samples undo clear slices; what is published is anonymized."""
    told = sample(LOSSES).recommendation
    assert told.attacker == "likeness of the voice"
    assert "likeness of the voice" in told.reason


def test_where_every_length_costs_words_none_is_recommended() -> None:
    told = sample({0.5: 0.5, 1.0: 0.3, 2.0: 0.1}).recommendation
    assert told.duration is None
    assert "2 s costs least" in told.reason


def test_without_word_errors_none_is_recommended_and_the_best_attack_is_named() -> None:
    told = sample().recommendation
    assert told.duration is None
    assert "likeness of the voice" in told.reason


def test_a_recogniser_that_learned_nothing_recommends_nothing() -> None:
    """It gets nearly all words wrong, sliced or not: no loss, and no reason to slice at 0.5 s."""
    study = sample({0.5: 0.0, 1.0: 0.0, 2.0: 0.0})
    assert study.recommendation.duration == 0.5
    doubt = {"trusted": False, "reason": "it gets 93 % of the words wrong"}
    lost = tuple(replace(u, wer=replace(u.wer, parameters=doubt)) for u in study.utility)
    told = recommend(replace(study, utility=lost))
    assert told.duration is None
    assert "it gets 93 % of the words wrong" in told.reason
    ready = tuple(
        replace(u, recogniser="ready", train="", test="anonymized", wer=estimate("wer", 0.2))
        for u in sample(LOSSES).utility
        if u.train == "clear" == u.test
    )
    assert recommend(replace(study, utility=(*lost, *ready))).duration == 1.0


def test_losses_without_intervals_are_told_from_losses_that_were_not_measured() -> None:
    study = sample(LOSSES)
    bare = tuple(replace(u, loss=None) for u in study.utility)
    told = recommend(replace(study, utility=bare))
    assert told.duration is None
    assert "fewer than 5 speakers" in told.reason
    assert "was not measured" in sample().recommendation.reason


def test_a_length_that_is_undone_is_not_said_to_hide_anything() -> None:
    study = sample(LOSSES)
    assert "do not hide" not in study.recommendation.reason
    found = {"precision_at_1": estimate("precision_at_1", 0.9, 1 / 600)}
    undone = tuple(replace(s, figures={**s.figures, **found}) for s in study.successors)
    assert "do not hide" in recommend(replace(study, successors=undone)).reason


def test_the_strongest_attacker_counts_on_each_kind_of_speech() -> None:
    study = sample()
    row = study.strongest("anonymized", "sliced", 1.0)
    assert row is not None
    assert row.attacker == "informed"


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    study = sample(LOSSES)
    study.write(tmp_path)
    assert SlicingResults.read(tmp_path) == study
    (tmp_path / "results.json").write_text('{"kind": "slicing", "schema": 99}')
    with pytest.raises(InputError, match="schema 99"):
        SlicingResults.read(tmp_path)


def test_the_tidy_table_has_a_row_for_each_figure() -> None:
    study = sample(LOSSES)
    rows = list(tidy(study))
    figures = sum(len(r.figures) for r in (*study.privacy, *study.successors))
    mismatched = sum(u.mismatch is not None for u in study.utility)
    assert mismatched == len(LOSSES)
    assert sum(row["figure"] == "wer_mismatch" for row in rows) == mismatched
    assert len(rows) == figures + 2 * len(study.utility) + mismatched
    assert {tuple(row) for row in rows} == {tuple(rows[0])}


def test_report_writes_the_page_again(tmp_path: Path) -> None:
    sample(LOSSES).write(tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Slice at 1 s" in page
    assert "Against training on what is tested" in page
    assert page.count("+7.0") == len(LOSSES)  # matched against mismatched, once for each length


def test_the_papers_tables_are_written(tmp_path: Path) -> None:
    sample(LOSSES).write(tmp_path)
    asked = ["report", str(tmp_path), "--format", "markdown", "--format", "csv"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    names = {p.stem for p in (tmp_path / "tables").iterdir()}
    assert names == {"figure3", "table1", "table2", "successors"}
    first = (tmp_path / "tables" / "table1.md").read_text(encoding="utf-8").splitlines()
    row = "| clear | 0.5 s | anonymized | 30.0\u00a0% (25.0 to 35.0\u00a0%) | +20.0 (+15.0"
    assert next(line for line in first if line.startswith(row))
    refused = CliRunner().invoke(app, ["report", str(tmp_path), "--format", "bibtex"])
    assert isinstance(refused.exception, InputError)


def test_restored_utterances_are_shares_with_words_for_names(tmp_path: Path) -> None:
    figures = {"pairs_restored": estimate("pairs_restored", 0.832, 0.001)}
    row = RestoredRow(condition="clear", attacker="all", duration=1.0, pool="all", figures=figures)
    study = replace(sample(LOSSES), restored=(row,))
    write_slicing_report(study, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Successive pairs put together" in page
    assert "pairs_restored" not in page
    assert "83.2\u00a0%" in page
    table = next(t for t in slicing_tables(study) if t.name == "restored")
    assert table.rows[0][-1] == "0.1\u00a0%"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_one_length_can_be_chosen_and_nothing_needs_the_script(
    browser: Any, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    write_slicing_report(sample(LOSSES), path)
    with opened(browser, path) as seen:
        cards = seen.page.locator("article.card")
        assert [c.is_visible() for c in cards.all()] == [True] * 3
        seen.page.select_option("#choose-length", "1")
        assert [c.is_visible() for c in cards.all()] == [False, True, False]
        rows = seen.page.locator("#privacy-table tbody tr[data-length]")
        assert {r.get_attribute("data-length") for r in rows.all() if r.is_visible()} == {"1"}
        assert seen.said == []
        assert not seen.left
        wide = seen.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 1280
    with opened(browser, path, width=390, script=False) as seen:
        assert seen.page.locator("article.card").count() == 3
        assert not seen.page.locator("fieldset.controls").is_visible()
        assert "<world>" in seen.page.inner_text("h1")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
