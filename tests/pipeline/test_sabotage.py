"""Break the test on purpose: nothing that is broken may read as privacy.

Each case ends in an error, or in a headline that says that the test failed.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from short_speech import cut_short
from voxrisk import utility
from voxrisk.attack import encoders
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline import recognisers
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.protect.run import anonymize
from voxrisk.results import Control, Results
from voxrisk.types import InputError
from voxrisk.utility import measure_utility

FAILED = "This test failed"


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """22 synthetic voices in two sessions: eight under test, the others train."""
    folder = tmp_path_factory.mktemp("voices")
    rows = cut_short(make_demo(folder / "demo", voices=22, sentences=2), folder / "short")
    tested = set(sorted({row.speaker for row in rows})[::2][:8])
    write_corpus(folder / "tested.csv", [row for row in rows if row.speaker in tested])
    write_corpus(folder / "others.csv", [row for row in rows if row.speaker not in tested])
    return folder


@pytest.fixture(scope="module")
def protected(voices: Path) -> Path:
    """The tested voices after mcadams."""
    anonymize(read_corpus(voices / "tested.csv"), voices / "mcadams", "mcadams")
    return voices / "mcadams"


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stages")


def evaluated(voices: Path, folder: Path, stages: Path, **more: Any) -> Results:
    given: dict[str, Any] = {"effort": "quick", "utility": False, **more}
    return evaluate_speech(Evaluation(voices / "tested.csv", **given), folder, stages=stages)


def headline(results: Results) -> str:
    assert results.verdict is not None
    return results.verdict.headline


def control(results: Results, code: str, attacker: str = "") -> Control:
    return next(c for c in results.controls if (c.code, c.attacker) == (code, attacker))


def spoiled(rows: Sequence[Utterance], folder: Path) -> list[Utterance]:
    """A copy of some speech, in files of its own."""
    folder.mkdir(parents=True)
    copies = []
    for row in rows:
        path = folder / f"{row.utterance}.wav"
        write_audio(path, read_audio(row), rate=16_000)
        copies.append(replace(row, path=path))
    return copies


class Encoder:
    """An encoder that hears nothing: constant vectors, or random ones."""

    dimension = 192

    def __init__(self, name: str, device: str, threads: int | None) -> None:
        self.name = self.identity = name

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        if self.name == "constant":
            return np.ones((len(waveforms), self.dimension), np.float32)
        seed = [len(wave) for wave in waveforms]
        return np.random.default_rng(seed).normal(size=(len(seed), 192)).astype(np.float32)


def test_a_sound_test_passes_its_controls(voices: Path, tmp_path: Path, stages: Path) -> None:
    """The counterpart of all that follows: the same speech, unbroken."""
    results = evaluated(
        voices, tmp_path / "run", stages, anonymizer="mcadams", train=voices / "others.csv"
    )
    assert FAILED not in headline(results)
    assert all(c.passed for c in results.controls), results.controls
    assert {c.code for c in results.controls} >= {
        "pairs", "positive", "training", "negative", "words",
    }  # fmt: skip
    assert all(a.ranked for a in results.attacks)


@pytest.mark.parametrize("kind", ["constant", "random"])
def test_an_encoder_that_hears_nothing(
    kind: str,
    voices: Path,
    protected: Path,
    tmp_path: Path,
    stages: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(encoders.ENCODERS, kind, Encoder)
    results = evaluated(voices, tmp_path / "run", stages, anonymized=protected, encoder=kind)
    assert headline(results).startswith(FAILED)
    assert not control(results, "positive").passed
    assert results.verdict is not None
    assert {c.level for c in results.verdict.criteria} <= {"test failed", "not assessed"}


def test_silent_files(voices: Path, tmp_path: Path, stages: Path) -> None:
    rows = spoiled(read_corpus(voices / "tested.csv"), tmp_path / "silent")
    for row in rows:
        write_audio(row.path, np.zeros(24_000, np.float32), rate=16_000)
    write_corpus(tmp_path / "silent.csv", rows)
    with pytest.raises(InputError, match=r"anonymized files cannot be used \(\d+ silent\)"):
        evaluated(voices, tmp_path / "run", stages, anonymized=tmp_path / "silent.csv")


def test_copies_of_the_originals(voices: Path, tmp_path: Path, stages: Path) -> None:
    rows = spoiled(read_corpus(voices / "tested.csv"), tmp_path / "copies")
    write_corpus(tmp_path / "copies.csv", rows)
    results = evaluated(voices, tmp_path / "run", stages, anonymized=tmp_path / "copies.csv")
    assert headline(results).startswith(f"{FAILED}: anonymized files are copies")
    assert control(results, "pairs").passed is False


def test_one_file_that_was_not_protected(
    voices: Path, protected: Path, tmp_path: Path, stages: Path
) -> None:
    plain = read_corpus(voices / "tested.csv")[0]
    rows = [
        replace(row, path=plain.path) if row.utterance == plain.utterance else row
        for row in read_corpus(protected)
    ]
    write_corpus(tmp_path / "mixed.csv", rows)
    results = evaluated(voices, tmp_path / "run", stages, anonymized=tmp_path / "mixed.csv")
    assert control(results, "pairs").passed is False
    assert headline(results).startswith(FAILED)


@pytest.mark.parametrize("of", ["originals", "protected"])
def test_files_permuted_between_speakers(
    of: str, voices: Path, protected: Path, tmp_path: Path, stages: Path
) -> None:
    source = voices / "tested.csv" if of == "originals" else protected
    rows = sorted(read_corpus(source), key=lambda row: row.utterance)
    own = len(rows) // len({row.speaker for row in rows})
    moved = [replace(a, path=b.path) for a, b in zip(rows, rows[own:] + rows[:own], strict=True)]
    write_corpus(tmp_path / "moved.csv", moved)
    with pytest.raises(InputError, match="do not belong to the originals of the same id"):
        evaluated(voices, tmp_path / "run", stages, anonymized=tmp_path / "moved.csv")


def test_labels_of_the_training_speech_shuffled(voices: Path, tmp_path: Path, stages: Path) -> None:
    rows = read_corpus(voices / "others.csv")
    names = np.random.default_rng(3).permutation([row.speaker for row in rows]).tolist()
    mixed = [replace(row, speaker=name) for row, name in zip(rows, names, strict=True)]
    write_corpus(tmp_path / "mixed.csv", mixed)
    results = evaluated(
        voices, tmp_path / "run", stages, anonymizer="mcadams", train=tmp_path / "mixed.csv"
    )
    assert control(results, "training", "informed").passed is False
    assert not results.attackers["informed"].ranked
    assert not results.attackers["informed + suite"].ranked
    behind = {a.name for a in results.attacks[-3:-1]}  # all that count, before the reference
    assert behind == {"informed", "informed + suite"}
    assert "informed and informed + suite failed their controls" in headline(results)
    assert all(c.attacker != "informed" for c in results.verdict.criteria)  # type: ignore[union-attr]


def test_wrong_rate_of_the_anonymized_speech(
    voices: Path, protected: Path, tmp_path: Path, stages: Path
) -> None:
    """8 kHz samples in files that say 16 kHz: half as long, twice as high."""
    rows = spoiled(read_corpus(protected), tmp_path / "fast")
    for row in rows:
        write_audio(row.path, read_audio(row, rate=8_000), rate=16_000)
    write_corpus(tmp_path / "fast.csv", [replace(row, duration=None) for row in rows])
    with pytest.raises(InputError, match=r"0\.5 times as long as their originals"):
        evaluated(voices, tmp_path / "run", stages, anonymized=tmp_path / "fast.csv")


def test_wrong_rate_of_all_speech(
    voices: Path, tmp_path: Path, stages: Path, plain_encoder: str
) -> None:
    """Whole utterances: fewer than 200 words say nothing about the speed."""
    tested = {row.speaker for row in read_corpus(voices / "tested.csv")}
    whole = [row for row in read_corpus(voices / "demo") if row.speaker in tested]
    rows = spoiled(whole, tmp_path / "fast")
    for row in rows:
        write_audio(row.path, read_audio(row, rate=8_000), rate=16_000)
    write_corpus(tmp_path / "tested.csv", [replace(row, duration=None) for row in rows])
    asked = {"anonymizer": "mcadams", "encoder": plain_encoder}
    results = evaluated(tmp_path, tmp_path / "run", stages, **asked)
    assert headline(results).startswith(f"{FAILED}: the original speech does not run at its true")


def test_transcripts_swapped(
    voices: Path,
    tmp_path: Path,
    stages: Path,
    plain_encoder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sentence of each session, of four people: every utterance takes the text of another.

    Of what the speech is good for, words alone are looked at.
    """
    monkeypatch.setattr(utility, "measure_utility", partial(measure_utility, figures=("wer",)))
    tested = sorted({row.speaker for row in read_corpus(voices / "tested.csv")})[:4]
    whole = [row for row in read_corpus(voices / "demo") if row.speaker in tested]
    rows = [row for row in whole if row.utterance.endswith("-00")]
    texts = [row.text for row in rows]
    turned = [
        replace(row, text=text) for row, text in zip(rows, texts[3:] + texts[:3], strict=True)
    ]
    write_corpus(tmp_path / "tested.csv", turned)
    asked = {"anonymizer": "mcadams", "encoder": plain_encoder, "utility": True}
    results = evaluated(tmp_path, tmp_path / "run", stages, **asked)
    assert control(results, "transcripts").passed is False
    assert "The test of what the speech is still good for failed" in headline(results)
    assert results.utility is not None
    assert "wer" in results.utility.untrusted
    assert "words_untrusted" in {n.code for n in results.notices}
    assert "words_lost" not in {n.code for n in results.notices}


def test_wrong_target_voices(
    voices: Path, tmp_path: Path, stages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unlearning attackers would unlearn something else: they are named and do not count."""
    honest = recognisers.anonymize_stage

    def lying(*given: Any, **options: Any) -> Any:
        rows, made = honest(*given, **options)
        targets = [row.extra["target"] for row in rows]
        mixed = np.random.default_rng(5).permutation(targets).tolist()
        return [
            replace(row, extra={**row.extra, "target": target})
            for row, target in zip(rows, mixed, strict=True)
        ], made

    monkeypatch.setattr(recognisers, "anonymize_stage", lying)
    unlearning = ("informed + erasing", "informed + adversarial")
    results = evaluated(
        voices, tmp_path / "run", stages, anonymizer="world", train=voices / "others.csv",
        attackers=unlearning,
    )  # fmt: skip
    for name in unlearning:
        assert control(results, "targets", name).passed is False
        assert not results.attackers[name].ranked
        assert name in headline(results)


@pytest.mark.parametrize("under", ["the same names", "other names"])
def test_training_on_the_people_under_test_is_refused(
    under: str, voices: Path, tmp_path: Path, stages: Path
) -> None:
    rows = [*read_corpus(voices / "others.csv"), *read_corpus(voices / "tested.csv")]
    if under == "other names":
        rows = [
            replace(row, speaker=f"x{row.speaker}", utterance=f"x{row.utterance}") for row in rows
        ]
    write_corpus(tmp_path / "train.csv", rows)
    words = "training speakers are under test" if under == "the same names" else (
        "training recordings are under test too, under other names"
    )  # fmt: skip
    with pytest.raises(InputError, match=words):
        evaluated(
            voices, tmp_path / "run", stages, anonymizer="mcadams", train=tmp_path / "train.csv"
        )


def test_a_broken_trained_attacker_does_not_end_the_run(
    voices: Path, tmp_path: Path, stages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise InputError("/home/ann/speech: cannot train")

    for training in ("_train_adapter", "train_suite"):
        monkeypatch.setattr(recognisers, training, refuse)
    results = evaluated(
        voices, tmp_path / "run", stages, anonymizer="mcadams", train=voices / "others.csv"
    )
    assert [a.name for a in results.attacks] == ["lazy-informed", "ignorant", "original"]
    failed = [n.facts["attacker"] for n in results.notices if n.code == "attacker_failed"]
    assert failed == ["informed", "informed + suite"]
    said = "The attackers informed and informed + suite could not run: the risk may be higher."
    assert said in headline(results)
    assert "/home/ann" not in results.to_json()
    assert "/home/ann" in (tmp_path / "run" / "private" / "notices.txt").read_text()
    shutil.rmtree(tmp_path / "run")
