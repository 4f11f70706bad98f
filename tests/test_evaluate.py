"""``voxrisk evaluate`` from speech to results: real audio, a real encoder, real faults."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxrisk.attack.encoders import encoder_identity
from voxrisk.corpus import Utterance, read_corpus, write_audio, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, write_yaml
from voxrisk.pipeline.score_sets import load_sets, measure_sets
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.verdict import general_warnings, lost_words, share_targets
from voxrisk.report.html import write_report
from voxrisk.types import InputError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six synthetic voices in two sessions."""
    folder = tmp_path_factory.mktemp("speech") / "demo"
    make_demo(folder, voices=6, sentences=3)
    return folder


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("run")
    return folder, evaluate_speech(chosen(corpus), folder)


def chosen(corpus: Path, **more: Any) -> Evaluation:
    given = {"anonymizer": "mcadams", "effort": "quick", "utility": False, **more}
    return Evaluation(corpus, **given)


def test_results_hold_the_verdict_and_every_attacker(run: tuple[Path, dict[str, Any]]) -> None:
    folder, results = run
    assert results == json.loads((folder / "results.json").read_text())
    assert [a["name"] for a in results["attackers"]][-1] == "original"
    assert {a["name"] for a in results["attackers"]} == {"original", "ignorant", "lazy-informed"}
    criteria = {c["criterion"]: c for c in results["verdict"]["criteria"]}
    assert criteria["inference"]["level"] == "not assessed"
    assert criteria["linkability"]["N"] == 6
    texts = " ".join(w["text"] for w in results["warnings"])
    assert "synthetic" in texts
    assert "Only 6 speakers" in texts
    assert "No attacker was trained on anonymized speech" in texts
    eer = {a["name"]: a["figures"]["rocch_eer"]["value"] for a in results["attackers"]}
    assert eer["original"] <= eer["ignorant"]


def test_speakers_are_pseudonyms_unless_asked_for(run: tuple[Path, dict[str, Any]]) -> None:
    folder, results = run
    names = {row.speaker for row in read_corpus(results_original(folder))}
    text = (folder / "results.json").read_text()
    assert not any(f'"{name}"' in text for name in names)
    assert results["attackers"][0]["speakers"][0]["speaker"].startswith("S")


def results_original(folder: Path) -> Path:
    return read_yaml(folder / "evaluation.yaml").original


def test_the_scores_of_a_run_give_its_figures(run: tuple[Path, dict[str, Any]]) -> None:
    """Entering with scores gives the figures of entering with audio."""
    folder, results = run
    for attacker in results["attackers"]:
        path = folder / "scores" / f"scores-{attacker['name']}.csv"
        sets = load_sets([("x", path)], [folder / "scores" / "trials.csv"])
        found = measure_sets(sets, resamples=300)[0].figures
        for name, estimate in attacker["figures"].items():
            assert found[name].to_json() == estimate


def test_a_second_run_does_nothing_twice_and_finds_the_same(
    corpus: Path, run: tuple[Path, dict[str, Any]]
) -> None:
    folder, results = run
    before = (folder / "results.json").read_bytes()
    assert evaluate_speech(chosen(corpus), folder) == results
    assert (folder / "results.json").read_bytes() == before
    assert json.loads((folder / "run.json").read_text())["stages_run"] == {}


def test_the_written_yaml_repeats_the_run(run: tuple[Path, dict[str, Any]], corpus: Path) -> None:
    folder, _ = run
    again = read_yaml(folder / "evaluation.yaml")
    assert again == chosen(corpus)
    assert write_yaml(again) == (folder / "evaluation.yaml").read_text()


def copied(corpus: Path, folder: Path) -> list[Utterance]:
    """A copy of the corpus that a test may spoil."""
    shutil.copytree(corpus, folder)
    return read_corpus(folder)


def test_faults_of_the_anonymized_speech_are_told_and_left_out(
    corpus: Path, run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """A file of zeros, an unreadable file, a missing and an extra utterance, another rate."""
    rows = copied(corpus, tmp_path / "anonymized")
    write_audio(rows[0].path, np.zeros(16_000, np.float32), rate=16_000)
    rows[1].path.write_bytes(b"not audio")
    write_audio(rows[3].path, np.sin(np.arange(16_000) / 9).astype(np.float32), rate=8_000)
    extra = Utterance("extra-1", rows[5].path, rows[5].speaker, session="9")
    write_corpus(tmp_path / "anonymized" / "manifest.csv", [*rows[:2], *rows[3:], extra])
    asked = chosen(corpus, anonymizer=None, anonymized=tmp_path / "anonymized")
    results = evaluate_speech(asked, tmp_path / "run", stages=run[0] / "stages")
    texts = " ".join(w["text"] for w in results["warnings"])
    assert "2 of " in texts
    assert "silent" in texts
    assert "unreadable" in texts
    assert "1 utterances are only in the original corpus" in texts
    assert "1 utterances are only in the anonymized corpus" in texts
    assert results["corpus"]["utterances"] == len(rows) - 3


@pytest.mark.parametrize("speakers", [1, 3])
def test_few_speakers(corpus: Path, tmp_path: Path, speakers: int) -> None:
    rows = read_corpus(corpus)
    names = sorted({row.speaker for row in rows})[:speakers]
    write_corpus(tmp_path / "few.csv", [row for row in rows if row.speaker in names])
    results = evaluate_speech(chosen(tmp_path / "few.csv"), tmp_path / "run")
    texts = " ".join(w["text"] for w in results["warnings"])
    if speakers == 1:
        assert "nobody to be confused with" in texts
        assert results["attackers"] == []
        assert {c["level"] for c in results["verdict"]["criteria"]} == {"not assessed"}
    else:
        assert "Only 3 speakers" in texts
        assert results["attackers"][0]["figures"]["rocch_eer"]["interval"] is None


def test_folders_that_do_not_match(corpus: Path, tmp_path: Path) -> None:
    rows = copied(corpus, tmp_path / "other")
    renamed = [Utterance(f"x{i}", row.path, row.speaker) for i, row in enumerate(rows)]
    write_corpus(tmp_path / "other" / "manifest.csv", renamed)
    asked = chosen(corpus, anonymizer=None, anonymized=tmp_path / "other")
    with pytest.raises(InputError, match="no utterance id is in both corpora"):
        evaluate_speech(asked, tmp_path / "run")


def test_choices_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="either anonymized speech or an anonymizer"):
        Evaluation(tmp_path)
    with pytest.raises(InputError, match="effort is 'huge'"):
        chosen(tmp_path, effort="huge")
    with pytest.raises(InputError, match="needs training speech"):
        chosen(tmp_path, similar="world")
    bad = tmp_path / "evaluation.yaml"
    bad.write_text("original: x\nanonymiser: y\n")
    with pytest.raises(InputError, match="unknown keys anonymiser"):
        read_yaml(bad)


def slow_stage(folder: Path, log: Path) -> None:
    def make(inside: Path) -> None:
        with log.open("a") as stream:
            stream.write("made\n")
        time.sleep(0.5)
        (inside / "result").write_text("done")

    Stages(folder).run("check", {"x": 1}, make, label="test")


def test_two_runs_at_once_do_the_work_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    arguments = (tmp_path / "stages", tmp_path / "log")
    pair = [context.Process(target=slow_stage, args=arguments) for _ in range(2)]
    for process in pair:
        process.start()
    for process in pair:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_stage_that_failed_is_not_done(tmp_path: Path) -> None:
    def fail(_: Path) -> None:
        raise InputError("broken")

    stages = Stages(tmp_path)
    with pytest.raises(InputError, match="broken"):
        stages.run("check", {"x": 1}, fail, label="test")
    made = stages.run("check", {"x": 1}, lambda f: (f / "r").touch(), label="test")
    assert (made / "r").exists()
    assert stages.run("check", {"x": 2}, lambda f: None, label="test") != made


def test_a_corpus_is_known_by_what_it_sounds_like(corpus: Path, tmp_path: Path) -> None:
    rows = copied(corpus, tmp_path / "copy")
    memory = tmp_path / "hashes.json"
    first = digest_corpus(rows, memory)
    assert digest_corpus(read_corpus(corpus), memory) == first
    write_audio(rows[0].path, np.ones(400, np.float32) / 2, rate=16_000)
    assert digest_corpus(rows, memory) != first


@pytest.fixture(scope="module")
def informed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run with trained attackers: other voices train, and some of them are the targets."""
    folder = tmp_path_factory.mktemp("informed")
    rows = make_demo(folder / "voices", voices=18, sentences=2)
    known = {row.speaker for row in read_corpus(corpus)}
    write_corpus(folder / "train.csv", [row for row in rows if row.speaker not in known])
    asked = chosen(
        corpus,
        anonymizer="knn",
        options={"part": "light"},
        train=folder / "train.csv",
        similar="mcadams",
    )
    return folder, evaluate_speech(asked, folder / "run")


def test_trained_attackers_train_on_others_and_targets_are_nobody_evaluated(
    corpus: Path, informed: tuple[Path, dict[str, Any]]
) -> None:
    folder, results = informed
    found = {a["name"]: a for a in results["attackers"]}
    assert set(found) == {
        "original", "ignorant", "lazy-informed", "semi-informed", "informed",
        "informed + adversarial",
    }  # fmt: skip
    assert found["ignorant"]["training"] is None
    manifests = list((folder / "run" / "stages").glob("anonymize-*/speech/manifest.csv"))
    evaluated = {row.speaker for row in read_corpus(corpus)}
    targets, trained = set(), set()
    for path in manifests:
        rows = read_corpus(path)
        targets |= {row.extra["target"] for row in rows if row.extra.get("target")}
        if not evaluated & {row.speaker for row in rows}:
            trained |= {row.speaker for row in rows}
    assert len(manifests) == 3
    assert len(list((folder / "run" / "stages").glob("train-*/curves.svg"))) == 3
    assert len(targets) > 1
    assert not targets & (evaluated | trained)
    for name in ("semi-informed", "informed", "informed + adversarial"):
        assert found[name]["training"]["speakers"] == len(trained)
    assert "linear map" in found["informed"]["extractor"]
    assert "a similar anonymizer" in found["semi-informed"]["extractor"]
    assert not any("No attacker was trained" in w["text"] for w in results["warnings"])
    times = json.loads((folder / "run" / "run.json").read_text())
    assert times["anonymizer"]["cpu_seconds"] > 0
    write_report(results, folder / "report.html", run=times)
    page = (folder / "report.html").read_text()
    assert f"Target voices: {len(targets)}, selection random, one for each utterance" in page


def test_the_embeddings_of_a_run_give_its_figures(
    informed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """Entering with embeddings gives the figures of entering with audio, trained attackers too."""
    from typer.testing import CliRunner

    from voxrisk.cli import app
    from voxrisk.files.embeddings import read_embeddings
    from voxrisk.measure.curves import Protocol
    from voxrisk.measure.population import population

    folder, results = informed
    for attacker in results["attackers"]:
        name = attacker["name"].replace(" + ", "-")
        sides = [folder / "run" / "embeddings" / f"{name}-{s}.npz" for s in ("enroll", "trial")]
        out = tmp_path / f"{name}.csv"
        trials = folder / "run" / "scores" / "trials.csv"
        command = ["score", sides[1], "--enroll-embeddings", sides[0], "--trials", trials]
        told = CliRunner().invoke(app, [*map(str, command), "-o", str(out)])
        assert told.exit_code == 0, told.output
        sets = load_sets([("x", out)], [trials])
        figures = measure_sets(sets, resamples=300)[0].figures
        for figure, estimate in attacker["figures"].items():
            assert figures[figure].value == pytest.approx(estimate["value"], abs=1e-9)
        lengths = {e["L"] for e in attacker["population"]}
        sizes = {e["N"] for e in attacker["population"]}
        protocol = Protocol(
            lengths=tuple(sorted(lengths)), sizes=tuple(sorted(sizes)), trials=10, resamples=300
        )
        crowd = population(*map(read_embeddings, sides), attacker="x", protocol=protocol)
        mine = [e.value for e in crowd.estimates]
        assert mine == pytest.approx([e["value"] for e in attacker["population"]], abs=1e-12)


def test_an_external_program_can_be_evaluated(corpus: Path, tmp_path: Path) -> None:
    program = "cp {input} {output}"
    results = evaluate_speech(chosen(corpus, anonymizer=program), tmp_path / "run")
    eer = {a["name"]: a["figures"]["rocch_eer"]["value"] for a in results["attackers"]}
    assert eer["ignorant"] == pytest.approx(eer["original"], abs=0.02)
    assert results["verdict"]["headline"].startswith("For the strongest attacker tried")


def test_killed_ten_times_it_ends_with_the_same_results(corpus: Path, tmp_path: Path) -> None:
    """SIGKILL to the whole process group at random moments, then the same command to its end."""
    rows = make_demo(tmp_path / "voices", voices=15, sentences=1)
    known = {row.speaker for row in read_corpus(corpus)}
    write_corpus(tmp_path / "train.csv", [row for row in rows if row.speaker not in known])
    command = [sys.executable, "-m", "voxrisk", "evaluate", "--original", str(corpus),
               "--anonymizer", "knn", "--set", "part=light", "--effort", "quick",
               "--train", str(tmp_path / "train.csv"), "--no-utility", "-o"]  # fmt: skip
    started = time.monotonic()
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    took = time.monotonic() - started

    def same_as_undisturbed() -> None:
        for name in ("results.json", "evaluation.yaml", "scores/scores-informed.csv"):
            whole, other = ((tmp_path / run / name).read_bytes() for run in ("whole", "killed"))
            assert whole == other, name
        assert not list((tmp_path / "killed").glob("*.part*"))

    random = np.random.default_rng(0)
    killed = 0
    while killed < 10:
        run = subprocess.Popen(
            [*command, str(tmp_path / "killed")],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            run.wait(random.uniform(0.1, 0.5) * took)
            same_as_undisturbed()  # it came to its end between two kills: begin again
            shutil.rmtree(tmp_path / "killed")
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            killed += 1
    subprocess.run([*command, str(tmp_path / "killed")], check=True, capture_output=True)
    same_as_undisturbed()


def test_one_target_for_each_speaker_is_warned_about(corpus: Path) -> None:
    rows = [replace(row, extra={"target": f"of {row.speaker}"}) for row in read_corpus(corpus)]
    assert share_targets(rows)
    assert not share_targets([*rows, replace(rows[0], extra={"target": "another"})])
    assert not share_targets(read_corpus(corpus))
    warned = general_warnings(30, [], "session", None, shared_targets=True)
    assert any("recognise the target instead of the speaker" in w.text for w in warned)
    assert not chosen(corpus, per="speaker", select="farthest").draws_apart  # nothing is drawn
    assert not chosen(corpus).draws_apart


def test_with_one_target_for_each_speaker_the_attacker_draws_its_own(
    corpus: Path, tmp_path: Path
) -> None:
    """The published version of enrolled speech would give the target of the tried speech away."""
    one = chosen(corpus, anonymizer="world", per="speaker", attackers=("lazy-informed",))
    results = evaluate_speech(one, tmp_path)
    assert any("draw targets of their own" in w["text"] for w in results["warnings"])
    made = [read_corpus(f / "speech") for f in (tmp_path / "stages").glob("anonymize-*[!k]")]
    own, published = sorted(made, key=len)
    sides = json.loads((tmp_path / "scores" / "sides.json").read_text())
    assert sorted(row.utterance for row in own) == sorted(sides["enroll"])
    assert len({(row.speaker, row.extra["target"]) for row in own}) == 6
    target = {row.utterance: row.extra["target"] for row in published}
    assert any(row.extra["target"] != target[row.utterance] for row in own)


def test_damaged_speech_is_not_called_private() -> None:
    def heard(before: float, after: float) -> dict[str, Any]:
        return {"wer": {"original": {"value": before}, "anonymized": {"value": after}}}

    assert "61% of the words wrong" in lost_words(heard(0.06, 0.61))[0].text
    assert lost_words(heard(0.06, 0.2)) == []
    assert lost_words(heard(0.45, 0.5)) == []  # hard to recognise before, too
    assert lost_words({"missing": {"wer": "no transcripts"}}) == []


def test_another_encoder_under_the_same_path_is_another_encoder(tmp_path: Path) -> None:
    assert encoder_identity("ecapa-voxceleb") == "ecapa-voxceleb"
    file = tmp_path / "encoder.onnx"
    file.write_bytes(b"one")
    first = encoder_identity(str(file))
    assert first == encoder_identity(str(tmp_path))
    file.write_bytes(b"two")
    assert encoder_identity(str(file)) != first
