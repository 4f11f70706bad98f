"""The commands on real speech: train a tiny attacker, embed with it, score, refuse nonsense."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

from voxrisk.attack import recipes
from voxrisk.attack.sizes import EcapaSize
from voxrisk.cli import app
from voxrisk.corpus import read_corpus, write_corpus
from voxrisk.types import InputError


def call(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_train_embed_score_from_the_command_line(shared: Path, tmp_path: Path, monkeypatch):
    tiny = EcapaSize(16, attention=8, squeeze=8, embedding=16)
    changed = replace(recipes.SMALL, size=tiny, speeds=(1.0,), batch=8, crop_seconds=1.0)
    monkeypatch.setitem(recipes.RECIPES, "small", changed)
    rows = read_corpus(shared / "train_opus")[:40]
    assert len({row.speaker for row in rows}) >= 2
    write_corpus(tmp_path / "manifest.csv", rows)

    folder = tmp_path / "attacker"
    train = ("train", tmp_path / "manifest.csv", "-o", folder, "--epochs", 1, "--workers", 1)
    facts = json.loads(call(*train, "--json"))
    assert 0 <= facts["ver_source"] <= 1
    with pytest.raises(InputError, match="adversarial head needs a column 'target'"):
        call(*train, "--adversarial")
    with pytest.raises(InputError, match="holds another training"):
        call(*train, "--seed", 3)

    assert "How the recogniser learned" in (folder / "curves.svg").read_text()
    vectors = tmp_path / "vectors.npz"
    embed = ("embed", tmp_path / "manifest.csv", "--encoder", folder, "-o", vectors)
    assert json.loads(call(*embed, "--workers", 1, "--json"))["utterances"] == 40
    with pytest.raises(InputError, match="exists; choose another file or add --force"):
        call(*embed)

    enroll = tmp_path / "enroll.csv"
    first = {}
    for row in rows:
        first.setdefault(row.speaker, row.utterance)
    lines = "".join(f"{speaker},{name}\n" for speaker, name in first.items())
    enroll.write_text("enroll,utterance\n" + lines, encoding="utf-8")
    out = tmp_path / "scores.csv"
    score = ("score", vectors, "--enroll", enroll, "-o", out, "--json", "--force")
    plain = json.loads(call(*score, "--trials", "all-pairs"))
    assert plain["target"] == 40 - len(first)
    assert plain["nontarget"] == plain["target"] * (len(first) - 1)
    with out.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == plain["target"] + plain["nontarget"]
    more = ("--train-embeddings", vectors, "--centre", "--as-norm", 5)
    assert 0 <= json.loads(call(*score, "--trials", "all-pairs", *more))["rocch_eer"] <= 0.5
    with pytest.raises(InputError, match="need the training set"):
        call(*score, "--trials", "all-pairs", "--centre")
    with pytest.raises(InputError, match="same-gender needs --corpus"):
        call(*score, "--trials", "same-gender")
    same = json.loads(
        call(*score, "--trials", "same-gender", "--corpus", tmp_path / "manifest.csv")
    )
    assert same["nontarget"] <= plain["nontarget"]
    with pytest.raises(InputError, match="no such file"):
        call(*score, "--trials", tmp_path / "none.csv")
