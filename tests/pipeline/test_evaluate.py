"""``voxrisk evaluate`` from speech to results: real audio, a real encoder, real faults."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from short_speech import cut_short
from voxrisk.attack.encoders import encoder_identity
from voxrisk.attack.maps import BACKENDS
from voxrisk.corpus import Utterance, read_corpus, write_audio, write_corpus
from voxrisk.corpus.audio import audio_seconds
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.dry_run import look_ahead
from voxrisk.pipeline.estimate import expected_steps
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, write_yaml
from voxrisk.pipeline.score_sets import load_sets, measure_sets
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.report.html import write_report
from voxrisk.results import Results, UtilityResult
from voxrisk.types import Estimate, InputError

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six synthetic voices in two sessions."""
    folder = tmp_path_factory.mktemp("speech") / "demo"
    make_demo(folder, voices=6, sentences=3)
    return folder


@pytest.fixture(scope="module")
def short(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How they begin two sentences of a session: enough where no figure is looked at."""
    folder = tmp_path_factory.mktemp("short")
    first = [row for row in read_corpus(corpus) if not row.utterance.endswith("-02")]
    rows = cut_short(first, folder / "audio")
    write_corpus(folder / "manifest.csv", rows)
    return folder


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    folder = tmp_path_factory.mktemp("run")
    return folder, evaluate_speech(chosen(corpus), folder)


def chosen(corpus: Path, **more: Any) -> Evaluation:
    given = {"anonymizer": "mcadams", "effort": "quick", "utility": False, **more}
    return Evaluation(corpus, **given)


def texts(results: Results) -> str:
    return " ".join(n.text for n in results.notices)


def test_results_hold_the_verdict_and_every_attacker(run: tuple[Path, Results]) -> None:
    folder, results = run
    assert results == Results.read(folder)
    assert [a.name for a in results.attacks][-1] == "original"
    assert set(results.attackers) == {"original", "ignorant", "lazy-informed"}
    assert results.verdict is not None
    assert results.verdict["inference"].level == "not assessed"
    assert results.verdict["linkability"].value.size == 6  # type: ignore[union-attr]
    codes = {n.code for n in results.notices}
    assert {"synthetic", "few_speakers", "untrained"} <= codes
    assert "Only 6 speakers" in texts(results)
    eer = {a.name: a.eer.value for a in results.attacks}
    assert eer["original"] <= eer["ignorant"]


def test_figures_are_those_of_schema_1_but_for_what_was_wrong(run: tuple[Path, Results]) -> None:
    """The results of the same speech before the redesign, mapped from the old form to the new.

    What may differ: Singling Out tested the enrolled speech; intervals were of another kind and are
    not compared; D_sys was 0 where it is undefined (fewer than 20 targets).
    """
    _, results = run
    before = json.loads((FIXTURES / "results-schema-1.json").read_text(encoding="utf-8"))
    assert [a["name"] for a in before["attackers"]] == [a.name for a in results.attacks]
    for old in before["attackers"]:
        new = results.attackers[old["name"]]
        assert (old["enrols"], old["reference"], old["zebra_tag"]) == (
            new.enrols, new.reference, new.tag,
        )  # fmt: skip
        dropped = set(old["figures"]) - set(new.figures)
        assert dropped <= {"d_sys", "precision_at_10"}
        since = {"speaker_eer", "found_in_5", "rank_bits", "worst_rank_bits"}
        assert set(new.figures) - set(old["figures"]) <= since
        for name in old["figures"].keys() & new.figures.keys():
            estimate = new.figures[name]
            # The encoder is computed otherwise since, and rounds otherwise.
            assert estimate.value == pytest.approx(old["figures"][name], abs=1e-6), name
            assert estimate.chance == old["chance"][name], name
        for point in old["population"]:
            found = new.at(point["metric"], point["L"], point["N"])
            if point["metric"] != "singling_out" and found is not None:
                assert (found.value, found.chance) == (point["value"], point["chance"])
        lengths = {e["L"] for e in old["population"]}
        assert {e.length for e in new.crowd} <= lengths
        if new.crowd and max(e.length for e in new.crowd) == max(lengths):
            assert [p.linkability for p in new.speakers] == old["linked"]
    old = before["methods"]
    assert (old["effort"], old["seed"], old["resamples"], old["trials"]) == (
        results.methods.effort, results.methods.seed, results.methods.resamples,
        dict(results.methods.trials),
    )  # fmt: skip
    assert old["hashes"] == dict(results.methods.hashes)


def test_what_is_tested_is_the_published_speech(run: tuple[Path, Results]) -> None:
    """Singling Out isolates somebody in the anonymized speech; only the reference is original.

    The figures are counted again from the embeddings of the run, with the roles as they must be,
    and differ where the roles are exchanged.
    """
    from voxrisk.files.embeddings import read_embeddings
    from voxrisk.measure import Protocol, measure_crowd

    folder, results = run
    for attack in results.attacks:
        assert attack.tests == ("original" if attack.reference else "anonymized")
        sides = {
            side: read_embeddings(folder / "embeddings" / f"{attack.name}-{side}.npz")
            for side in ("enroll", "trial")
        }
        protocol = Protocol(lengths=(1,), sizes=(5, 6), trials=10, resamples=0)
        again = measure_crowd(enrolled=sides["enroll"], tested=sides["trial"], protocol=protocol)
        mine = {(e.name, e.size): e.value for e in attack.crowd if e.length == 1}
        assert {(e.name, e.size): e.value for e in again.estimates} == mine


def test_nothing_shared_names_a_speaker_a_file_or_a_place(
    run: tuple[Path, Results], corpus: Path
) -> None:
    folder, results = run
    write_report(results, folder / "report.html")
    rows = read_corpus(corpus)
    secret = {row.speaker for row in rows} | {row.utterance for row in rows}
    secret |= {corpus.name, str(corpus), str(folder), corpus.parent.name}
    for name in ("results.json", "report.html", "run.json"):
        text = (folder / name).read_text()
        # A short name may stand inside a word or a number: look for it between quotes or tags.
        found = [s for s in secret if f'"{s}"' in text or f">{s}<" in text or f" {s}:" in text]
        found += [s for s in secret if len(s) > 8 and s in text]
        assert found == [], name
    assert results.attacks[0].speakers[0].speaker.startswith("S")
    key = folder / "private" / "speakers.csv"
    assert key.stat().st_mode & 0o777 == 0o600
    named = dict(line.split(",") for line in key.read_text().split()[1:])
    assert set(named.values()) == {row.speaker for row in rows}
    assert sorted(named, key=lambda s: named[s]) != sorted(named)  # not in the order of the ids


def test_names_are_shown_where_they_are_asked_for(
    corpus: Path, run: tuple[Path, Results], tmp_path: Path
) -> None:
    asked = chosen(corpus, reveal=True, attackers=("ignorant",))
    results = evaluate_speech(asked, tmp_path, stages=run[0] / "stages")
    people = {row.speaker for row in read_corpus(corpus)}
    assert {p.speaker for p in results.attacks[0].speakers} == people
    assert results.corpus is not None
    assert results.corpus.name == corpus.name


def test_the_scores_of_a_run_give_its_figures(run: tuple[Path, Results]) -> None:
    """Entering with scores gives the figures of entering with audio."""
    folder, results = run
    for attack in results.attacks:
        path = folder / "scores" / f"scores-{attack.name}.csv"
        sets = load_sets([("x", path)], [folder / "scores" / "trials.csv"])
        found = measure_sets(sets, resamples=300)[0].figures
        for name, estimate in attack.figures.items():
            assert found[name] == estimate


def test_a_second_run_does_nothing_twice_and_finds_the_same(
    corpus: Path, run: tuple[Path, Results]
) -> None:
    folder, results = run
    before = (folder / "results.json").read_bytes()
    assert evaluate_speech(chosen(corpus), folder) == results
    assert (folder / "results.json").read_bytes() == before
    told = json.loads((folder / "run.json").read_text())["stages"]
    assert [t["stage"] for t in told if not t["reused"]] == ["measure", "control"]


def done(folder: Path) -> list[dict[str, Any]]:
    """What run.json tells of the stages."""
    return list(json.loads((folder / "run.json").read_text())["stages"])


def test_run_json_holds_the_cost_of_every_stage(
    short: Path, plain_encoder: str, tmp_path: Path
) -> None:
    evaluate_speech(chosen(short, attackers=("ignorant",), encoder=plain_encoder), tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    spoken = sum(audio_seconds(row) for row in read_corpus(short))
    kinds = [t["stage"] for t in facts["stages"]]
    assert kinds[:3] == ["check", "anonymize", "check"]
    assert {"embed", "measure", "control"} <= set(kinds)
    for told in facts["stages"]:
        assert told["seconds"] > 0 or told["stage"] in ("measure", "control")
        if told["stage"] in ("check", "anonymize", "embed"):
            assert told["speech_seconds"] == pytest.approx(spoken, rel=0.01)
            assert told["cpu_seconds"] > 0
    assert sum(t["seconds"] for t in facts["stages"]) <= facts["seconds"] + 1
    assert facts["cpu_seconds"] > 0.5 * sum(t["cpu_seconds"] for t in facts["stages"])
    assert facts["estimated_seconds"] > 0


def test_a_dry_run_says_what_is_finished_and_writes_nothing(
    corpus: Path, run: tuple[Path, Results], tmp_path: Path
) -> None:
    folder, _ = run
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = look_ahead(chosen(corpus), folder)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert [step.stage for step in found.left] == ["measure", "control"]
    assert {t.stage for t in found.finished} == {"check", "anonymize", "embed"}
    again = look_ahead(chosen(corpus), folder, fresh=True)
    assert [step.stage for step in again.left][:1] == ["anonymize"]
    other = look_ahead(chosen(corpus, options={"alpha": 0.7}), folder)
    assert {"anonymize", "embed", "measure"} <= {step.stage for step in other.left}
    assert [t.label for t in other.finished] == ["original speech"]
    look_ahead(chosen(corpus), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_dry_run_expects_what_the_run_then_does(run: tuple[Path, Results], corpus: Path) -> None:
    """An estimate that forgets a stage is an estimate of another run."""
    folder, _ = run
    expected = expected_steps(chosen(corpus), Stages(folder / "stages"))
    assert sorted((s.stage, s.what) for s in expected) == sorted(
        (t["stage"], t["what"]) for t in done(folder)
    )


def test_damaged_stages_are_noticed_and_the_results_stay_the_same(
    corpus: Path, run: tuple[Path, Results], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One byte is other in a file of every kind, with size and date as they were."""
    shutil.copytree(run[0] / "stages", tmp_path / "stages")
    harmed = [
        next((tmp_path / "stages").glob(form))
        for form in ("check-*/problems.json", "check-*/heard/*", "anonymize-*/speech/audio/*.flac",
                     "embed-*/embeddings.npz", "hashes.json")
    ]  # fmt: skip
    for path in harmed:
        facts, data = path.stat(), bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    evaluate_speech(chosen(corpus), tmp_path / "run", stages=tmp_path / "stages")
    again, before = (f / "results.json" for f in (tmp_path / "run", run[0]))
    assert again.read_bytes() == before.read_bytes()
    for path in harmed[2:4]:
        assert f"{path.name} is not as it was written; it is made again" in caplog.text
    assert "hashes.json: 1 damaged lines" in caplog.text


def test_a_stage_that_was_begun_otherwise_is_begun_anew(
    corpus: Path, run: tuple[Path, Results], tmp_path: Path
) -> None:
    """As an older version may leave it: nobody could say --force to a folder of stages."""
    shutil.copytree(run[0] / "stages", tmp_path / "stages")
    (stage,) = (tmp_path / "stages").glob("anonymize-*/speech")
    record = json.loads((stage / "run.json").read_text())
    (stage / "run.json").write_text(json.dumps({**record, "jobs": "others"}))
    for path in [p for p in stage.parent.iterdir() if p.is_file()]:
        path.unlink()  # what says that it is finished
    evaluate_speech(chosen(corpus), tmp_path / "run", stages=tmp_path / "stages")
    again, before = (f / "results.json" for f in (tmp_path / "run", run[0]))
    assert again.read_bytes() == before.read_bytes()
    assert json.loads((stage / "run.json").read_text()) == record


def test_the_written_yaml_repeats_the_run(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from another folder, for a run that was asked for with relative paths."""
    monkeypatch.chdir(corpus.parent)
    asked = chosen(Path(corpus.name), train=Path("others"), anonymizer="knn", seed=3)
    run = tmp_path / "run"
    run.mkdir()
    (run / "evaluation.yaml").write_text(write_yaml(asked, run))
    monkeypatch.chdir(tmp_path)
    again = read_yaml(run / "evaluation.yaml")
    assert again.original.resolve() == corpus.resolve()
    assert again.train is not None
    assert again.train.resolve() == corpus.parent / "others"
    assert write_yaml(again, run) == (run / "evaluation.yaml").read_text()
    assert (again.seed, again.anonymizer, again.effort) == (3, "knn", "quick")


def test_types_in_a_yaml_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("original: x\nanonymizer: mcadams\nreveal: 'false'\n")
    with pytest.raises(InputError, match=r"Expected `bool`, got `str` - at `\$.reveal`"):
        read_yaml(file)


def test_options_beside_a_config_change_it(short: Path, plain_encoder: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from voxrisk.cli import app

    asked = chosen(short, attackers=("ignorant",), seed=1, encoder=plain_encoder)
    config = tmp_path / "e.yaml"
    config.write_text(write_yaml(asked, tmp_path))
    command = ["evaluate", "--config", str(config), "--seed", "7", "-o", str(tmp_path / "run")]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    again = read_yaml(tmp_path / "run" / "evaluation.yaml")
    assert (again.seed, again.effort, again.attackers) == (7, "quick", ("ignorant",))
    assert Results.read(tmp_path / "run").methods.seed == 7


def test_results_of_another_evaluation_are_not_written_over(
    corpus: Path, run: tuple[Path, Results]
) -> None:
    folder, _ = run
    before = (folder / "results.json").read_bytes()
    with pytest.raises(InputError, match="results of another evaluation"):
        evaluate_speech(chosen(corpus, seed=9), folder)
    assert (folder / "results.json").read_bytes() == before


def copied(corpus: Path, folder: Path) -> list[Utterance]:
    """A copy of the corpus that a test may spoil."""
    shutil.copytree(corpus, folder)
    return read_corpus(folder)


def test_faults_of_the_anonymized_speech_are_told_and_left_out(
    corpus: Path, run: tuple[Path, Results], plain_encoder: str, tmp_path: Path
) -> None:
    """A file of zeros, an unreadable file, a missing and an extra utterance, another rate."""
    rows = copied(corpus, tmp_path / "anonymized")
    write_audio(rows[0].path, np.zeros(16_000, np.float32), rate=16_000)
    rows[1].path.write_bytes(b"not audio")
    write_audio(rows[3].path, np.sin(np.arange(16_000) / 9).astype(np.float32), rate=8_000)
    extra = Utterance("extra-1", rows[5].path, rows[5].speaker, session="9")
    write_corpus(tmp_path / "anonymized" / "manifest.csv", [*rows[:2], *rows[3:], extra])
    given = tmp_path / "anonymized"
    asked = chosen(corpus, anonymizer=None, anonymized=given, encoder=plain_encoder)
    results = evaluate_speech(asked, tmp_path / "run", stages=run[0] / "stages")
    said = texts(results)
    assert "2 of " in said
    assert "silent" in said
    assert "unreadable" in said
    assert "1 utterances are only in the original corpus" in said
    assert "1 utterances are only in the anonymized corpus" in said
    assert results.corpus is not None
    assert results.corpus.utterances == len(rows) - 3
    assert rows[0].utterance not in results.to_json()
    assert rows[0].utterance in (tmp_path / "run" / "private" / "notices.txt").read_text()


@pytest.mark.parametrize("speakers", [1, 3])
def test_few_speakers(short: Path, plain_encoder: str, tmp_path: Path, speakers: int) -> None:
    rows = read_corpus(short)
    names = sorted({row.speaker for row in rows})[:speakers]
    write_corpus(tmp_path / "few.csv", [row for row in rows if row.speaker in names])
    asked = chosen(tmp_path / "few.csv", encoder=plain_encoder)
    results = evaluate_speech(asked, tmp_path / "run")
    assert results.verdict is not None
    if speakers == 1:
        assert "nobody to be confused with" in texts(results)
        assert results.attacks == ()
        assert {c.level for c in results.verdict.criteria} == {"not assessed"}
    else:
        assert "Only 3 speakers" in texts(results)
        assert results.attacks[0].eer.interval is None


def test_folders_that_do_not_match(corpus: Path, tmp_path: Path) -> None:
    rows = copied(corpus, tmp_path / "other")
    renamed = [Utterance(f"x{i}", row.path, row.speaker) for i, row in enumerate(rows)]
    write_corpus(tmp_path / "other" / "manifest.csv", renamed)
    asked = chosen(corpus, anonymizer=None, anonymized=tmp_path / "other")
    with pytest.raises(InputError, match="no utterance id is in both corpora"):
        evaluate_speech(asked, tmp_path / "run")


def test_choices_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"either anonymized speech .--anonymized. or an anon"):
        Evaluation(tmp_path)
    with pytest.raises(InputError, match="effort is 'huge'"):
        chosen(tmp_path, effort="huge")
    with pytest.raises(InputError, match="needs training speech"):
        chosen(tmp_path, similar="world")
    with pytest.raises(InputError, match="--train needs an anonymizer"):
        Evaluation(tmp_path, anonymized=tmp_path, train=tmp_path)
    with pytest.raises(InputError, match="seed is -3"):
        chosen(tmp_path, seed=-3)
    with pytest.raises(InputError, match="no attacker 'omniscient'"):
        chosen(tmp_path, attackers=("omniscient",))
    bad = tmp_path / "evaluation.yaml"
    bad.write_text("original: x\nanonymiser: y\n")
    with pytest.raises(InputError, match="unknown keys anonymiser"):
        read_yaml(bad)


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
def informed(
    short: Path, plain_encoder: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Results]:
    """A run with trained attackers: other voices train, and some of them are the targets.

    Whether they learn is asked of ECAPA in test_sabotage.py; here, who is trained on what.
    """
    folder = tmp_path_factory.mktemp("informed")
    rows = cut_short(make_demo(folder / "voices", voices=22, sentences=2), folder / "audio")
    known = {row.speaker for row in read_corpus(short)}
    write_corpus(folder / "train.csv", [row for row in rows if row.speaker not in known])
    asked = chosen(
        short,
        anonymizer="knn",
        options={"part": "light"},
        train=folder / "train.csv",
        similar="mcadams",
        encoder=plain_encoder,
    )
    return folder, evaluate_speech(asked, folder / "run")


def test_trained_attackers_train_on_others_and_targets_are_nobody_evaluated(
    short: Path, informed: tuple[Path, Results]
) -> None:
    folder, results = informed
    found = results.attackers
    assert set(found) == {
        "original", "ignorant", "lazy-informed", "semi-informed", "informed",
        "informed + erasing", "informed + adversarial", "informed + suite",
    }  # fmt: skip
    assert found["ignorant"].training is None
    manifests = list((folder / "run" / "stages").glob("anonymize-*/speech/manifest.csv"))
    evaluated = {row.speaker for row in read_corpus(short)}
    targets, trained = set(), set()
    for path in manifests:
        rows = read_corpus(path)
        targets |= {row.extra["target"] for row in rows if row.extra.get("target")}
        if not evaluated & {row.speaker for row in rows}:
            trained |= {row.speaker for row in rows}
    assert len(manifests) == 3
    assert len(list((folder / "run" / "stages").glob("train-*/curves.svg"))) == 4
    assert len(targets) > 1
    assert not targets & (evaluated | trained)
    for name in found:
        if name in ("original", "ignorant", "lazy-informed"):
            continue
        training = found[name].training
        assert training is not None
        assert training.speakers == len(trained)
    assert "a map behind it" in found["informed"].extractor
    assert "erasing what tells target voices apart" in found["informed + erasing"].extractor
    assert "against a head that tells them" in found["informed + adversarial"].extractor
    assert "a similar anonymizer" in found["semi-informed"].extractor
    assert "untrained" not in {n.code for n in results.notices}
    times = json.loads((folder / "run" / "run.json").read_text())
    assert times["anonymizer"]["cpu_seconds"] > 0
    write_report(results, folder / "report.html", run=times)
    page = (folder / "report.html").read_text()
    assert f"Target voices: {len(targets)}, selection random, one for each utterance" in page


def test_the_suite_shows_what_it_chose_from_and_chose_on_training_speakers(
    informed: tuple[Path, Results],
) -> None:
    folder, results = informed
    attack = results.attackers["informed + suite"]
    members = {(m.hears, m.backend): m for m in attack.members}
    heard = {hears for hears, _ in members}
    assert heard == {"plain", "prosody", "words"}
    aside = {(m.hears, m.backend) for m in attack.members if m.aside}
    assert aside == {(h, b) for h, b in members if h == "words" or b == "gender"}
    assert ("plain", "as-norm") in members
    assert {b for _, b in members} <= set(BACKENDS)
    assert sum(m.weight for m in attack.members) == pytest.approx(1.0)
    assert attack.training is not None
    people = {m.held_out.n["speaker"] for m in attack.members}
    assert max(people) <= attack.training.speakers  # judged on those who train, nobody else
    assert {m.eer.n["speaker"] for m in attack.members} == {attack.sizes["speaker"]}
    assert [m.held_out.value for m in attack.members] == sorted(
        m.held_out.value for m in attack.members
    )
    assert "chosen: " in attack.extractor
    codes = [(c.code, c.passed) for c in results.controls if c.attacker == "informed + suite"]
    assert {code for code, _ in codes} >= {"positive", "training"}
    write_report(results, folder / "report.html")
    page = (folder / "report.html").read_text()
    assert page.count('id="suite-table"') == 1
    assert "erased wccn" in page
    assert not any(a.members for name, a in results.attackers.items() if name != attack.name)


def test_the_embeddings_of_a_run_give_its_figures(
    informed: tuple[Path, Results], tmp_path: Path
) -> None:
    """Entering with embeddings gives the figures of entering with audio, trained attackers too."""
    from typer.testing import CliRunner

    from voxrisk.cli import app
    from voxrisk.files.embeddings import read_embeddings
    from voxrisk.measure.crowd import measure_crowd
    from voxrisk.measure.population import Protocol

    folder, results = informed
    for attack in results.attacks:
        name = attack.name.replace(" + ", "-")
        sides = [folder / "run" / "embeddings" / f"{name}-{s}.npz" for s in ("enroll", "trial")]
        out = tmp_path / f"{name}.csv"
        trials = folder / "run" / "scores" / "trials.csv"
        command = ["score", sides[1], "--enroll-embeddings", sides[0], "--trials", trials]
        told = CliRunner().invoke(app, [*map(str, command), "-o", str(out)])
        assert told.exit_code == 0, told.output
        sets = load_sets([("x", out)], [trials])
        figures = measure_sets(sets, resamples=300)[0].figures
        for figure, estimate in attack.figures.items():
            assert figures[figure].value == pytest.approx(estimate.value, abs=1e-9)
        lengths = {e.length for e in attack.crowd}
        sizes = {e.size for e in attack.crowd}
        protocol = Protocol(
            lengths=tuple(sorted(lengths)), sizes=tuple(sorted(sizes)), trials=10, resamples=300
        )
        enrolled, tested = map(read_embeddings, sides)
        crowd = measure_crowd(enrolled=enrolled, tested=tested, attacker="x", protocol=protocol)
        mine = [e.value for e in crowd.estimates]
        assert mine == pytest.approx([e.value for e in attack.crowd], abs=1e-12)


def test_an_external_program_can_be_evaluated(
    short: Path, plain_encoder: str, tmp_path: Path
) -> None:
    """One that halves the level does nothing for privacy, and its text is nobody's business."""
    half = "import sys,soundfile as s; x,r=s.read(sys.argv[1]); s.write(sys.argv[2],x/2,r)"
    program = f'{sys.executable} -c "{half}" {{input}} {{output}}'
    asked = chosen(short, anonymizer=program, encoder=plain_encoder)
    results = evaluate_speech(asked, tmp_path / "run")
    eer = {a.name: a.eer.value for a in results.attacks}
    assert eer["ignorant"] == pytest.approx(eer["original"], abs=0.02)
    assert results.verdict is not None
    assert results.verdict.headline.startswith("No protection was shown")
    assert sys.executable not in results.to_json()


def test_one_target_for_each_speaker_is_told_apart(corpus: Path) -> None:
    assert not chosen(corpus, per="speaker", select="farthest").draws_apart  # nothing is drawn
    assert not chosen(corpus).draws_apart
    assert chosen(corpus, per="speaker").draws_apart


def test_with_one_target_for_each_speaker_the_attacker_draws_its_own(
    short: Path, plain_encoder: str, tmp_path: Path
) -> None:
    """The published version of enrolled speech would give the target of the tried speech away."""
    lazy = {"attackers": ("lazy-informed",), "encoder": plain_encoder}
    results = evaluate_speech(chosen(short, anonymizer="world", per="speaker", **lazy), tmp_path)
    assert "draw targets of their own" in texts(results)
    assert "G_VD assumes one pseudo-voice" not in texts(results)
    made = [read_corpus(f / "speech") for f in (tmp_path / "stages").glob("anonymize-*[!k]")]
    own, published = sorted(made, key=len)
    sides = json.loads((tmp_path / "scores" / "sides.json").read_text())
    assert sorted(row.utterance for row in own) == sorted(sides["enroll"])
    assert len({(row.speaker, row.extra["target"]) for row in own}) == 6
    target = {row.utterance: row.extra["target"] for row in published}
    assert any(row.extra["target"] != target[row.utterance] for row in own)


def test_damaged_speech_is_not_called_private() -> None:
    from voxrisk.pipeline.usefulness import word_notices

    def heard(before: float, after: float) -> list[str]:
        sides = {
            side: Estimate("wer", value, 1.0, {}, "")
            for side, value in (("original", before), ("anonymized", after))
        }
        return [n.text for n in word_notices(UtilityResult(figures={"wer": sides}))]

    assert "61\u00a0% of the words wrong" in heard(0.06, 0.61)[0]
    assert heard(0.06, 0.2) == []
    (hard,) = heard(0.45, 0.5)  # hard to recognise before, too
    assert "45\u00a0% of the words of the original speech wrong already" in hard
    assert word_notices(UtilityResult(missing={"wer": "no transcripts"})) == []


def test_another_encoder_under_the_same_path_is_another_encoder(tmp_path: Path) -> None:
    assert encoder_identity("ecapa-voxceleb") == "ecapa-voxceleb"
    file = tmp_path / "encoder.onnx"
    file.write_bytes(b"one")
    first = encoder_identity(str(file))
    assert first == encoder_identity(str(tmp_path))
    file.write_bytes(b"two")
    assert encoder_identity(str(file)) != first


def test_effort_paper_trains_from_nothing_and_a_weak_training_is_no_privacy(
    short: Path, plain_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paper 3's attackers end to end at tiny size: too little speech makes no attacker."""
    from voxrisk.attack.recipes import RECIPES
    from voxrisk.attack.sizes import EcapaSize

    size = EcapaSize(16, attention=8, squeeze=8, embedding=16)
    tiny = replace(RECIPES["paper"], size=size, epochs=2, batch=16, zero_epochs=1)
    monkeypatch.setitem(RECIPES, "paper", tiny)
    rows = cut_short(make_demo(tmp_path / "voices", voices=30, sentences=1), tmp_path / "audio")
    known = {row.speaker for row in read_corpus(short)}
    write_corpus(tmp_path / "train.csv", [row for row in rows if row.speaker not in known])
    asked = chosen(
        short,
        anonymizer="world",
        train=tmp_path / "train.csv",
        effort="paper",
        attackers=("informed", "informed + adversarial"),
        encoder=plain_encoder,
    )
    results = evaluate_speech(asked, tmp_path / "run")
    assert results.verdict is not None
    for name in ("informed", "informed + adversarial"):
        attack = results.attackers[name]
        assert "an ECAPA-TDNN, trained on this anonymizer's speech" in attack.extractor
        assert attack.training is not None
        assert attack.training.targets
        controls = {c.code: c for c in results.controls if c.attacker == name}
        assert controls.keys() == {"positive", "training"}
        assert not all(c.passed for c in controls.values())
        assert not attack.ranked
        assert name in results.verdict.headline
    weights = list((tmp_path / "run" / "stages").glob("train-*/attacker/centre.npy"))
    assert len(weights) == 2
    curves = (weights[0].parent / "curves.csv").read_text().splitlines()
    assert len(curves) == 3  # a header and two epochs


def test_a_limit_keeps_fewer_speakers_with_enough_utterances_each() -> None:
    """15 of 240 minutes of 153 speakers: 37 people with four each, not 153 with one."""
    from voxrisk.pipeline.speech import limited

    rows = [
        Utterance(f"{s}-{u}", Path("x.wav"), f"s{s:03}", duration=6.0)
        for s in range(153)
        for u in range(15)
    ]
    kept = limited(rows, 15.0, each=4)
    counts = {s: sum(row.speaker == s for row in kept) for s in {row.speaker for row in kept}}
    assert len(counts) == 37
    assert set(counts.values()) <= {4, 5}
    assert len(limited(rows, 15.0)) == 150
    assert len({row.speaker for row in limited(rows, 90.0, each=4)}) == 153
    assert limited(rows, 90.0, each=4) == limited(rows, 90.0)
