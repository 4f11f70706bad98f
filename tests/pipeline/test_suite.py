"""The suite inside an evaluation: what it hears, and what it leaves alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance
from voxrisk.corpus.demo import make_demo
from voxrisk.knowledge import attacker
from voxrisk.models import is_cached
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, shared_yaml, write_yaml
from voxrisk.pipeline.recogniser import Recogniser
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.suite import train_suite, usable_encoders
from voxrisk.protect.run import anonymize


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    """Twelve voices after mcadams; a light encoder of voices, and one that must stand aside."""
    if not is_cached("ge2e"):
        pytest.skip("the model ge2e is not in the cache: voxrisk models fetch ge2e")
    folder = tmp_path_factory.mktemp("suite")
    original = make_demo(folder / "voices", voices=12, sentences=2)
    rows = anonymize(original, folder / "protected", "mcadams", seed=1, workers=1)
    chosen = Evaluation(
        folder / "voices", anonymizer="mcadams", encoder="ge2e", suite=("longterm", "prosody"),
        effort="quick",
    )  # fmt: skip
    stages = Stages(folder / "stages")
    stages.folder.mkdir()
    found = train_suite(chosen, attacker("informed + suite"), rows, stages)
    return chosen, original, rows, stages, found


def test_the_voice_is_heard_as_it_is_and_undone(trained) -> None:
    _, _, rows, stages, found = trained
    blocks = list(found.suite.blocks)
    assert blocks == ["ge2e", "prosody", "undone ge2e", "longterm", "words"]
    assert len(list(stages.folder.glob("undo-*/*.flac"))) == len(rows)
    assert not any(j.weight for j in found.suite.judged if j.member.hears == "longterm")
    assert found.training.speakers == 12
    assert found.vectors.vectors.shape[1] == found.suite.blocks["undone ge2e"][1]


def test_original_speech_is_not_undone(trained) -> None:
    _, original, _, stages, found = trained
    digest = digest_corpus(original, stages.folder / "hashes.json")
    heard = found.listen.heard(original, digest, stages, "original")
    assert (heard["ge2e"].vectors == heard["undone ge2e"].vectors).all()
    assert len(list(stages.folder.glob("undo-*.lock"))) == 1
    with pytest.raises(ValueError, match="which side"):
        found.embed(original, digest, stages, "original")
    assert np.isfinite(found.embed(original, digest, stages, "original", side="open").vectors).all()


def test_training_utterances_are_undone_by_guesses_that_did_not_hear_them(trained) -> None:
    _, _, rows, stages, found = trained
    listen = found.listen
    digest = digest_corpus(rows, stages.folder / "hashes.json")
    assert listen.learned == digest
    heard = listen.heard(rows, digest, stages, "training")
    forgetful = replace(listen, learned="")
    again = forgetful.heard(rows, digest, stages, "training")
    assert (heard["ge2e"].vectors == again["ge2e"].vectors).all()
    assert (heard["undone ge2e"].vectors != again["undone ge2e"].vectors).any()


@pytest.mark.parametrize("change", [{"text": None}, {"text": ""}, {"language": "pl"}])
def test_phones_are_timed_only_where_everybody_has_an_english_transcript(change) -> None:
    """A member that hears nothing in the speech under test would look like privacy."""
    pytest.importorskip("pocketsphinx")
    row = Utterance("a", Path("a.flac"), "a", text="YES")
    chosen = Evaluation(Path("voices"), anonymizer="mcadams", suite=("durations", "prosody"))
    assert "durations" in usable_encoders(chosen, [row, row])
    assert usable_encoders(chosen, [row, replace(row, **change)])[1:] == ("prosody",)
    assert "durations" not in usable_encoders(replace(chosen, language="pl"), [row])


def test_speech_under_attack_is_tried_without_its_original(trained) -> None:
    """The attacker has the original of what is enrolled only: what is tried must not need it."""
    chosen, original, rows, stages, _ = trained
    chosen = replace(chosen, effort="standard", suite=("prosody",))
    found = train_suite(chosen, attacker("informed + suite"), rows, stages, before=original)
    assert found.listen.aligned == ("ge2e",)
    hashes = stages.folder / "hashes.json"
    digest = digest_corpus(rows, hashes)
    spoken = (original, digest_corpus(original, hashes))
    alone = found.heard(rows, digest, stages, "tried")
    beside = found.heard(rows, digest, stages, "enrolled", spoken)
    crossing = [m for m in found.suite.maps if m.crosses]
    assert {m.backend for m in crossing} == {"procrustes"}
    for member in found.suite.maps:
        tried = [found.suite.alone(member, held.vectors, "trial") for held in (alone, beside)]
        assert np.ptp(tried[0], axis=0).any()
        assert (tried[0] == tried[1]).all()
    enrolled = [found.suite.alone(crossing[0], h.vectors, "enroll") for h in (alone, beside)]
    assert not np.ptp(enrolled[0], axis=0).any()
    assert np.ptp(enrolled[1], axis=0).any()
    assert np.isfinite(found.mapped(alone, "trial").vectors).all()


def test_a_second_run_finds_the_choice_again(trained) -> None:
    chosen, _, rows, stages, found = trained
    again: Recogniser = train_suite(
        chosen, attacker("informed + suite"), rows, Stages(stages.folder)
    )
    assert again.suite.judged == found.suite.judged
    vectors = again.listen(rows, found.listen.learned, stages, "x").vectors
    before = found.embed(rows, found.listen.learned, stages, "x", side="trial").vectors
    assert (again.suite.apply(vectors, "trial") == before).all()


def test_more_encoders_are_written_down_and_paths_among_them_hidden(tmp_path: Path) -> None:
    one = Evaluation(tmp_path, anonymizer="mcadams", suite=("campplus", "/secret/encoder"))
    assert one.suite_encoders == ("ecapa-voxceleb", "campplus", "/secret/encoder")
    assert "secret" not in shared_yaml(one)
    (tmp_path / "evaluation.yaml").write_text(write_yaml(one, tmp_path))
    assert read_yaml(tmp_path / "evaluation.yaml").suite == one.suite
    quick = Evaluation(tmp_path, anonymizer="mcadams", effort="quick")
    assert quick.suite_encoders == ("ecapa-voxceleb", "prosody")


def test_encoder_can_be_repeated_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from voxrisk.cli import app
    from voxrisk.pipeline import evaluate

    seen: list[Evaluation] = []

    def stop(chosen: Evaluation, *_: object, **__: object) -> None:
        seen.append(chosen)
        raise SystemExit(0)

    monkeypatch.setattr(evaluate, "evaluate_speech", stop)
    command = ["evaluate", "--original", str(tmp_path), "--anonymizer", "mcadams", "-o", "run"]
    CliRunner().invoke(app, [*command, "--encoder", "campplus", "--encoder", "prosody"])
    CliRunner().invoke(app, [*command, "--risk", "0.2"])
    assert [(c.encoder, c.suite, c.risk) for c in seen] == [
        ("campplus", ("prosody",), 0.5),
        ("ecapa-voxceleb", (), 0.2),
    ]
