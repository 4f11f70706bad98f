"""Tables to cite: the numbers of the page, in forms that other programs read without harm."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report_sample import sample
from voxrisk.attack.encoders import ENCODERS
from voxrisk.cli import app
from voxrisk.knowledge import ATTACKERS
from voxrisk.measure import FIGURES
from voxrisk.protect.anonymizers import ANONYMIZERS
from voxrisk.report import words
from voxrisk.report.export import (
    MEAN,
    POOLED,
    SPECIAL,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    attackers_table,
    latex,
    mean_of_sets,
    sets_table,
    tables_of,
)
from voxrisk.report.html import write_report
from voxrisk.report.references import CORPORA, REFERENCES, bibtex
from voxrisk.results import Results, SetResult, SuiteMember
from voxrisk.types import InputError

EER = words.LABELS["rocch_eer"]
NASTY = r"50 % & $x_1$ #{a} ~b^c \input{/etc/passwd} <i>|"


@pytest.fixture(scope="module")
def results() -> Results:
    """The sample with two sets of trials, one of them with a name made to break tables."""
    found = sample()
    return replace(found, attacks=tuple(
        replace(a, sets=(
            SetResult(name="libri_test_f", figures=a.figures, sizes=a.sizes),
            SetResult(name=NASTY, figures={}, sizes=a.sizes),
        )) for a in found.attacks
    ))  # fmt: skip


def cells_of(line: str) -> list[str]:
    """Cells of a LaTeX line: cut where an ampersand is not escaped."""
    return re.split(r"(?<!\\)&", line.removesuffix(r"\\"))


def test_the_suite_has_a_table_of_what_it_chose_from(results: Results) -> None:
    first = results.attacks[0]
    eer = first.figures["rocch_eer"]
    members = (
        SuiteMember(hears="ecapa-voxceleb", backend="wccn", weight=1.0, held_out=eer, eer=eer),
        SuiteMember(hears="words", backend="wccn", weight=0.0, held_out=eer, eer=eer, aside=True),
    )
    chose = replace(results, attacks=(replace(first, members=members), *results.attacks[1:]))
    (table,) = [t for t in tables_of(chose) if t.name == "suite"]
    assert [row[1:4] for row in table.rows] == [
        ("ecapa-voxceleb", "wccn", words.percent(1.0)), ("words", "wccn", "aside"),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert float(rows[0][f"{EER}, people under test"]) == eer.value
    assert not [t for t in tables_of(results) if t.name == "suite"]  # nobody chose


def test_csv_holds_every_digit_and_both_ends(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(attackers_table(results)))))
    assert [row["Attacker"] for row in rows] == list(results.attackers)
    for row, attack in zip(rows, results.attacks, strict=True):
        interval = attack.eer.interval
        assert interval is not None
        assert float(row[EER]) == attack.eer.value
        assert float(row[f"{EER}, low"]) == interval.low
        assert float(row[f"{EER}, high"]) == interval.high
        assert row["ZEBRA tag"] == attack.tag
    linked = next(name for name in rows[0] if name.startswith("Linkability, L = "))
    assert results.verdict is not None
    found = results.verdict["linkability"].value
    assert found is not None
    assert max(float(row[linked]) for row in rows[:-1]) == found.value


def test_latex_is_a_table_of_booktabs_with_as_many_cells_as_columns(results: Results) -> None:
    for table in tables_of(results):
        text = as_latex(table)
        columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
        assert columns is not None
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len(body) == len(table.rows) + 1
        assert {len(cells_of(line)) for line in body} == {len(columns[1])} == {len(table.header)}
        for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
            assert text.count(rule) == 1
        opened = re.findall(r"\\begin\{(\w+)\}", text)
        assert opened == re.findall(r"\\end\{(\w+)\}", text)[::-1]


@pytest.mark.parametrize("letter", [*SPECIAL, "x"])
def test_no_letter_reaches_latex_as_a_command(letter: str) -> None:
    """Braces balance, and nothing is left that TeX would act on."""
    text = latex(f"a{letter}b")
    plain = re.sub(r"\\[&%$#_{}]|\\text\w+\{\}|\\ldots\{\}|\$-\$|~", "", text)
    assert not set(plain) & set('\\&%$#_{}~^<>|"')
    if letter in "&%$#_{}\\":
        assert text != f"a{letter}b"


def test_names_cannot_break_a_table(results: Results) -> None:
    table = sets_table(results)
    assert as_latex(table).count(r"\input") == 0
    (line,) = [t for t in as_latex(table).splitlines() if "etc/passwd" in t]
    assert len(cells_of(line)) == len(table.header)
    for text in as_markdown(table).splitlines()[: len(table.rows) + 2]:
        assert len(re.split(r"(?<!\\)\|", text)) == len(table.header) + 2
    assert "<i>" not in as_markdown(table).replace(r"\<i\>", "")
    (row,) = [r for r in csv.reader(io.StringIO(as_csv(table))) if r[0] == NASTY]
    assert row[2:] == [""] * (len(row) - 2)  # no figure is an empty cell, never a nought


def test_the_table_of_sets_ends_with_the_pool(results: Results, tmp_path: Path) -> None:
    table = sets_table(results)
    assert [row[0] for row in table.rows] == ["libri_test_f", NASTY, MEAN, POOLED]
    assert table.rows[-1][2:] == tuple(a.eer for a in results.attacks)
    assert "sets" not in [t.name for t in tables_of(sample())]
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="set-table"' in page
    assert "<i>|" not in page
    write_report(sample(), tmp_path / "plain.html")
    assert 'id="set-table"' not in (tmp_path / "plain.html").read_text()


def test_the_mean_of_the_sets_is_plain_and_needs_all_of_them(results: Results) -> None:
    """VoicePrivacy 2020, B1 retrained: (16.90 + 13.59) / 2 = 15.245 %, and 17.1 % pooled."""
    attack = results.attacks[0]
    assert mean_of_sets(attack) is None  # one set has no figure
    eers = [replace(attack.eer, value=value) for value in (0.1690, 0.1359)]
    sets = tuple(SetResult(name=str(e.value), figures={"rocch_eer": e}) for e in eers)
    found = mean_of_sets(replace(attack, sets=sets))
    assert found is not None
    assert found.value == pytest.approx(0.15245)
    assert found.interval is None


def test_an_attacker_who_failed_is_marked_in_every_table(results: Results) -> None:
    failed = replace(results, attacks=tuple(replace(a, ranked=False) for a in results.attacks))
    for write in (as_csv, as_latex, as_markdown):
        assert "informed (failed its control)" in write(attackers_table(failed))


def test_what_is_cited_is_what_was_used(results: Results) -> None:
    keys = re.findall(r"@\w+\{([^,]+),", bibtex(results))
    assert len(keys) == len(set(keys))
    assert {"voxrisk", "vauquier2025legally", "nautsch2020zebra", "wp29opinion2014"} <= set(keys)
    assert "panayotov2015librispeech" in keys  # a set of LibriSpeech
    assert "belrose2023leace" not in keys
    assert "panayotov2015librispeech" not in bibtex(sample())
    text = bibtex(results)
    assert text.count("{") == text.count("}")


def test_references_stand_behind_things_that_exist() -> None:
    """A renamed figure or attacker must not lose its paper."""
    known = {
        "evaluation", *FIGURES, *(f"attacker:{n}" for n in ATTACKERS),
        *(f"anonymizer:{n}" for n in ANONYMIZERS), *(f"encoder:{n}" for n in ENCODERS),
        *(f"corpus:{n}" for n in CORPORA),
    }  # fmt: skip
    assert {token for r in REFERENCES for token in r.behind} <= known
    for row in REFERENCES:
        assert {"author", "title", "year"} <= set(row.fields), row.key


def test_report_writes_tables_on_demand(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)

    def said(*more: str) -> str:
        told = CliRunner().invoke(app, ["report", str(tmp_path), *more])
        if told.exception is not None:
            assert isinstance(told.exception, InputError)
            return str(told.exception)
        return told.output

    said("--format", "latex", "--format", "bibtex")
    written = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"attackers.tex", "sets.tex", "crowd.tex", "references.bib"} <= written
    assert {Path(name).suffix for name in written} == {".tex", ".bib"}
    assert not (tmp_path / "report.html").exists()
    assert "add --force" in said("--format", "latex")
    assert "attackers.tex" in said("--format", "latex", "--force")
    said("--format", "csv", "-o", str(tmp_path / "there"))
    assert (tmp_path / "there" / "sets.csv").is_file()
    said("--format", "html", "--format", "markdown")
    assert (tmp_path / "report.html").is_file()
    assert "known are html, pdf, csv" in said("--format", "docx")


def test_a_table_without_figures_is_still_a_table() -> None:
    table = Table("t", "c", ("a", "b"), (("x", None),))
    assert "x & --" in as_latex(table)
    assert as_csv(table) == "a,b\nx,\n"
