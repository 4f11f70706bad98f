"""Two of the twelve likely changes of CONTRIBUTING, made here: one row each, all else follows."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk import knowledge, measure
from voxrisk.cli import app
from voxrisk.corpus.demo import make_demo
from voxrisk.knowledge import Knowledge
from voxrisk.measure.curve import Roc
from voxrisk.measure.figures import FIGURES, Figure
from voxrisk.pipeline.evaluate import evaluate
from voxrisk.report.html import write_report
from voxrisk.results import Results


def area(curve: Roc) -> float:
    """How often a stranger scores higher than the speaker (1 - AUC)."""
    alarm, miss = curve.false_alarm, curve.miss
    return float(abs(np.trapezoid(miss, alarm)))


@pytest.fixture
def new_figure() -> Iterator[None]:
    FIGURES["area"] = Figure(
        label="Area of errors", chance=0.5, unit="rate", privacy="higher", source="a test",
        of_curve=area,
    )  # fmt: skip
    yield
    del FIGURES["area"]


def test_a_figure_is_one_row(new_figure: None, tmp_path: Path) -> None:
    """With interval and chance, in the terminal's table, results.json and results.csv."""
    scored = measure.Trials(
        np.random.default_rng(0).normal(size=400) + np.repeat([1.0, 0.0], 200),
        np.tile(np.arange(20), 20),
        np.concatenate((np.tile(np.arange(20), 10), np.tile(np.roll(np.arange(20), 1), 10))),
    )
    found = measure.measure_scores(scored, resamples=60)
    assert 0.1 < found["area"].value < 0.4
    interval = found["area"].interval
    assert interval is not None
    assert interval.low <= found["area"].value <= interval.high < found["area"].chance
    rows = zip(scored.enroll_speaker, range(400), scored.score, scored.trial_speaker, strict=True)
    scores, trials = tmp_path / "scores.csv", tmp_path / "trials.csv"
    held = [(f"s{e}", f"u{i}", repr(float(s)), f"s{t}") for e, i, s, t in rows]
    with scores.open("w", newline="") as a, trials.open("w", newline="") as b:
        csv.writer(a).writerows([("enroll", "trial", "score"), *(r[:3] for r in held)])
        labels = [("target" if e == t else "nontarget") for e, _, _, t in held]
        csv.writer(b).writerows(
            [("enroll", "trial", "label", "enroll_speaker", "trial_speaker"),
             *((e, u, x, e, t) for (e, u, _, t), x in zip(held, labels, strict=True))]
        )  # fmt: skip
    out = tmp_path / "out"
    command = ["measure", str(scores), "--trials", str(trials), "--resamples", "60", "-o", str(out)]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert "Area of errors" in told.output
    assert Results.read(out).attacks[0].figures["area"].value == pytest.approx(found["area"].value)
    table = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert "area" in {row["figure"] for row in table}


def test_an_attacker_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs, is measured, ranked, and stands in the report under its own name and look."""
    row = Knowledge(
        name="forgetful", voiceprivacy="a test", paper1="a test", trains_on="original",
        enrols="anonymized", knows="Anonymizes what it enrols, and forgets why.",
        colour="#123456", mark="square",
    )  # fmt: skip
    monkeypatch.setitem(knowledge.ATTACKERS, row.name, row)
    make_demo(tmp_path / "speech", voices=6, sentences=2)
    run = evaluate(
        tmp_path / "speech", out=tmp_path / "run", anonymizer="mcadams", effort="quick",
        utility=False, attackers=("forgetful", "lazy-informed"),
    )  # fmt: skip
    assert run.attackers["forgetful"].figures == run.attackers["lazy-informed"].figures
    write_report(run, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Anonymizes what it enrols, and forgets why." in page
    assert "#123456" in page
