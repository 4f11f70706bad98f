"""Three of the twelve likely changes of CONTRIBUTING, made here: one row each, all else follows."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk import knowledge, measure
from voxrisk.cli import app
from voxrisk.corpus import read_audio, read_corpus, write_audio, write_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.corpus.demo import make_demo
from voxrisk.knowledge import Knowledge
from voxrisk.measure.curve import Roc
from voxrisk.measure.figures import FIGURES, Figure
from voxrisk.pipeline.evaluate import evaluate
from voxrisk.report.html import write_report
from voxrisk.results import Results
from voxrisk.utility import duration, figures_of_speech
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import Measured, Pairs, by_side


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


def loudness(pairs: Pairs) -> Measured:
    """How much louder the speech became, in dB: what a file of a new figure would hold."""
    rows = [*pairs.original, *pairs.anonymized]
    levels = [np.log10(np.mean(read_audio(row) ** 2) + 1e-12) * 10 for row in rows]
    sides = by_side(levels)
    change = np.subtract(sides["anonymized"], sides["original"]).tolist()
    estimate = ratio_estimate(
        "louder", change, pairs.speakers, chance=0.0, source="a test", **pairs.draw
    )
    return {"louder": {"anonymized": estimate}}, {"louder": change}


def test_a_figure_of_usefulness_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal's table, results.json and utterances.csv."""
    monkeypatch.setattr(duration, "loudness", loudness, raising=False)
    row = Figure(
        label="Change of level", kind="utility", chance=0.0, unit="dB",
        of_speech="utility.duration:loudness",
    )  # fmt: skip
    monkeypatch.setitem(FIGURES, "louder", row)
    make_demo(tmp_path / "speech", voices=5, sentences=1)
    rows = []
    for utterance in read_corpus(tmp_path / "speech"):
        path = tmp_path / "loud" / f"{utterance.utterance}.wav"
        write_audio(path, 0.5 * read_audio(utterance), rate=RATE)
        rows.append(replace(utterance, path=path))
    write_corpus(tmp_path / "loud" / "manifest.csv", rows)
    out = tmp_path / "out"
    command = ["utility", str(tmp_path / "speech"), str(tmp_path / "loud"), "-o", str(out)]
    for name in ("louder", "duration_change"):
        command += ["--figure", name]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert "Change of level" in told.output
    assert "louder" in figures_of_speech()
    found = Results.read(out).utility.figures["louder"]["anonymized"]
    assert found.value == pytest.approx(20 * np.log10(0.5), abs=0.05)
    assert "louder" in (out / "utterances.csv").read_text().splitlines()[0]


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
