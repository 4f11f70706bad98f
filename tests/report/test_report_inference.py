"""Attributes on the pages: every figure of the results, what survives, and systems side by side."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from report_sample import sample
from simulated_attributes import rows
from voxrisk.corpus.attributes import read_attribute
from voxrisk.pipeline.attribute_attacks import Features, infer
from voxrisk.pipeline.criteria.attributes import inference
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.report import words
from voxrisk.report.compare import write_compare
from voxrisk.report.html import write_report
from voxrisk.report.inference import compared_attributes, not_compared
from voxrisk.results import AttributeResult, InferenceResult, Results


def inferred(told: float, seed: int = 0) -> InferenceResult:
    """Gender and age of 16 people, to be hidden, and accent, to survive."""
    columns = {
        "gender": ["f", "m"] * 8,
        "age": [str(20 + i) for i in range(16)],
        "accent": ["<b>a</b>", "b", "c", "c"] * 4,
    }
    given = rows(columns, utterances=4)
    wanted = [read_attribute(given, name) for name in columns]
    rng = np.random.default_rng(seed)
    heard = {}
    for kind, strength in (("original", 4.0), ("anonymized", told)):
        parts = [strength * np.eye(4)[[a.label[r.utterance] for r in given]] for a in wanted]
        noise = rng.standard_normal((len(given), 12))
        heard[kind] = Features(tuple(given), {"voice": np.concatenate(parts, axis=1) + noise})
    uses = ("hide", "hide", "keep")
    chosen = Evaluation(Path("a"), anonymized=Path("b"), effort="quick")
    return infer(chosen, list(zip(wanted, uses, strict=True)), heard, {})


def run(told: float, title: str = "mcadams") -> Results:
    plain, found = sample(title=title), inferred(told)
    assert plain.verdict is not None
    criteria = (*plain.verdict.criteria[:2], inference((), found))
    return replace(plain, inference=found, verdict=replace(plain.verdict, criteria=criteria))


@pytest.fixture(scope="module")
def told() -> Results:
    return run(2.0)


@pytest.fixture(scope="module")
def page(told: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(told, path)
    return path.read_text(encoding="utf-8")


def test_every_figure_of_every_attacker_is_in_the_table(told: Results, page: str) -> None:
    assert told.inference is not None
    for attribute in told.inference.of("hide"):
        assert f'data-attribute="{attribute.name}"' in page
        for attack in attribute.attacks:
            for e in attack.figures:
                assert words.estimate(e) in page
    assert "A blind guess (the median) is off by" in page


def test_the_card_names_the_attribute_and_no_crowd(told: Results, page: str) -> None:
    assert told.verdict is not None
    card = page[page.index('data-criterion="inference"') :]
    card = card[: card.index("</article>")]
    assert "among" not in card[: card.index("</p>", card.index('class="who"'))].split("who")[-1]
    assert 'class="who">gender; strongest attacker' in card
    assert told.verdict["inference"].value is not None
    assert words.estimate(told.verdict["inference"].value) in card


def test_what_survives_stands_under_usefulness(told: Results, page: str) -> None:
    useful = page[page.index('<section id="utility"') :]
    assert 'data-kept="accent"' in useful
    assert 'data-attribute="accent"' not in page


def test_what_survives_is_told_by_class(told: Results, page: str) -> None:
    assert told.inference is not None
    (accent,) = told.inference.of("keep")
    after, before = accent.best("anonymized"), accent.best("original")
    assert after is not None
    assert before is not None
    table = page[page.index('data-classes="accent"') :]
    table = table[: table.index("</table>")]
    for i in range(len(accent.classes)):
        cells = [words.percent(k.confusion[i][i]) for k, _ in (before, after)]
        assert "".join(f'<td class="num">{c}</td>' for c in cells) in table


def test_every_attacker_of_the_table_is_explained(told: Results, page: str) -> None:
    assert told.inference is not None
    section = page[page.index('<section id="inference"') :]
    lead = section[: section.index("<table")]
    for name in {k.attacker for a in told.inference.attributes for k in a.attacks}:
        assert f"<b>{name}</b>, from" in lead
    assert "semi-informed" not in lead  # nobody was in this run


def test_the_crowd_is_narrowed_from_chance_to_true_attributes(told: Results, page: str) -> None:
    assert told.inference is not None
    assert [n.source for n in told.inference.together] == ["anonymized", "original", "true"]
    for n in told.inference.together:
        assert f'data-source="{n.source}"' in page
        assert words.estimate(n.left) in page


def test_names_of_classes_are_escaped(page: str) -> None:
    assert "<b>a</b>" not in page


def test_a_refused_attribute_is_named_with_its_reason(told: Results, tmp_path: Path) -> None:
    refused = AttributeResult(name="age", use="hide", refused="everybody has the same value")
    path = tmp_path / "r.html"
    write_report(replace(told, inference=InferenceResult(attributes=(refused,))), path)
    assert "age (everybody has the same value)" in path.read_text(encoding="utf-8")


def test_a_comparison_puts_attributes_beside_the_rest(told: Results, tmp_path: Path) -> None:
    other = run(0.0, title="knn")
    write_compare([told, other], tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    columns = compared_attributes([told, other])
    assert [(c.name, c.use) for c in columns] == [
        ("gender", "hide"), ("age", "hide"), ("accent", "keep"),
    ]  # fmt: skip
    for column in (columns[0], columns[2]):  # age is told too poorly by so few to be ordered
        assert column.cells[0][0].value > column.cells[1][0].value
    table = page[page.index('id="attribute-table"') :]
    for column in columns:
        for e, _ in column.cells:
            assert words.estimate(e) in table
    assert compared_attributes([told, sample(title="plain")]) == []


def test_what_one_run_hides_and_another_keeps_is_compared_and_said(
    told: Results, tmp_path: Path
) -> None:
    assert told.inference is not None
    turned = [replace(a, use="keep") for a in told.inference.attributes]
    other = replace(told, title="kept", inference=InferenceResult(attributes=tuple(turned)))
    columns = compared_attributes([told, other])
    assert (columns[0].name, columns[0].use) == ("gender", "either")
    write_compare([told, other], tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "hidden in some runs, to survive in others" in page


def test_what_cannot_be_compared_is_named(told: Results, tmp_path: Path) -> None:
    """A run without it, or with other classes: one of two is easier to guess than one of three."""
    assert told.inference is not None
    gender, age, accent = told.inference.attributes
    fewer = replace(accent, classes=("a", "b"))
    other = replace(told, title="other", inference=InferenceResult(attributes=(gender, fewer)))
    assert [c.name for c in compared_attributes([told, other])] == ["gender"]
    assert not_compared([told, other]) == [accent.name, age.name]
    write_compare([told, other], tmp_path / "c.html")
    assert "accent, age." in (tmp_path / "c.html").read_text(encoding="utf-8")
