"""Every stage gives on a cluster what it gives on one machine, byte for byte."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ray_nodes import Nodes, make_room, spied, tree
from simulated_attributes import rows
from simulated_voices import voices
from voxrisk.api import measure_crowd
from voxrisk.attack.embed import embed_corpus
from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.attributes import read_attribute
from voxrisk.pipeline.attribute_attacks import Features, infer
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.protect.run import anonymize
from voxrisk.shards import engine

pytest.importorskip("ray", reason="no Ray; pip install 'voxrisk[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files open


def test_anonymize_and_embed_give_the_same_bytes(
    nodes: Nodes, speech: list[Utterance], tmp_path: Path
) -> None:
    for name in ("local", "ray"):
        with engine("local") if name == "local" else contextlib.nullcontext():
            made = anonymize(speech, tmp_path / name / "out", "mcadams", seed=4)
            (tmp_path / name / "vectors").mkdir()
            embed_corpus(made, "longterm", tmp_path / name / "vectors" / "v.npz")
    assert len(tree(tmp_path / "local")) == len(speech) + 4
    assert tree(tmp_path / "local" / "out") == tree(tmp_path / "ray" / "out")
    assert tree(tmp_path / "local" / "vectors") == tree(tmp_path / "ray" / "vectors")


def test_align_slice_and_utility_give_the_same_bytes(
    nodes: Nodes, shared: Path, tmp_path: Path
) -> None:
    """The commands themselves, on real speech."""
    write_corpus(tmp_path / "speech.csv", read_corpus(shared / "librispeech_eval")[1:40:10])
    speech = str(tmp_path / "speech.csv")
    make_room()
    for name in ("local", "ray"):
        out = tmp_path / name
        out.mkdir()
        words, slices = str(out / "words.csv"), str(out / "slices")
        for command in (
            ["align", speech, "-o", words],
            ["slice", speech, "--duration", "1", "--alignment", words, "-o", slices],
            ["anonymize", speech, "--anonymizer", "mcadams", "-o", str(out / "protected")],
            ["utility", speech, str(out / "protected"), "-o", str(out / "utility"),
             "--figure", "pitch_correlation", "--figure", "duration_change", "--resamples", "0"],
        ):  # fmt: skip
            done = CliRunner().invoke(app, [*command, "--engine", name])
            assert done.exit_code == 0, done.output
    here, there = (tree(tmp_path / name) for name in ("local", "ray"))
    same = [name for name in here if name.endswith((".csv", ".flac", ".wav"))]
    assert {"words.csv", "utility/utterances.csv"} < set(same)
    assert len(same) > 20
    assert [here[name] for name in same] == [there.get(name) for name in same]


def test_attributes_are_inferred_alike(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"gender": ["f", "m"] * 10, "accent": ["north", "south", "south", "north"] * 5}
    heard = rows(columns, 4)
    wanted = [(read_attribute(heard, name), "hide") for name in columns]
    random = np.random.default_rng(0)
    told = np.array([row.gender == "f" for row in heard])[:, None]
    vectors = {
        kind: random.standard_normal((len(heard), 24)).astype(np.float32) + strength * told
        for kind, strength in (("original", 1.5), ("anonymized", 0.5))
    }
    features = {kind: Features(tuple(heard), {"voice": v}) for kind, v in vectors.items()}
    chosen = Evaluation(Path("speech"), anonymizer="mcadams", effort="quick")
    work = spied(monkeypatch)
    there = infer(chosen, wanted, features, {})
    assert work == ["attributes"]
    with engine("local"):
        assert infer(chosen, wanted, features, {}).to_json() == there.to_json()
    assert len(there.attributes) == 2


@pytest.mark.parametrize(
    "command",
    [["anonymize"], ["align"], ["slice"], ["embed"], ["utility"], ["evaluate"], ["population"],
     ["train"], ["slicing"], ["corpus", "check"]],
)  # fmt: skip
def test_every_long_command_takes_an_engine(command: list[str]) -> None:
    told = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*command, "--help"]).output
    assert "--engine" in told


def test_crowd_metrics_are_the_same_to_the_last_bit(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled, tested = voices(40, 8, tag="a"), voices(40, 8, seed=1, tag="b")
    work = spied(monkeypatch)
    there = measure_crowd(enrolled, tested, L=(1, 3), resamples=50)
    assert set(work) == {"link", "intervals", "single out"}  # all of it was done by workers
    with engine("local"):
        here = measure_crowd(enrolled, tested, L=(1, 3), resamples=50)
    assert len(here.estimates) == 20
    assert here.estimates == there.estimates
    assert here.speakers == there.speakers
