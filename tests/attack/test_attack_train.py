"""Training: the laws of paper 3, real learning on real speech, and going on after a kill."""

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from voxrisk.attack import load_encoder  # noqa: E402
from voxrisk.attack.crops import DecodedSpeech, batches, count_batches, cut_crops, split_validation  # noqa: E402
from voxrisk.attack.embed import embed_corpus  # noqa: E402
from voxrisk.attack.encoders import encoder_identity  # noqa: E402
from voxrisk.attack.features import filter_banks  # noqa: E402
from voxrisk.attack.heads import TwoHeads, aam_loss, reverse_gradient  # noqa: E402
from voxrisk.attack.recipes import (  # noqa: E402
    PAPER,
    RECIPES,
    SMALL,
    SPANE,
    VPC24,
    cyclic_rate,
    target_weight,
)
from voxrisk.attack.sizes import EcapaSize  # noqa: E402
from voxrisk.attack.train import train_attacker  # noqa: E402
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio  # noqa: E402
from voxrisk.report.training_figure import draw_training  # noqa: E402
from voxrisk.types import InputError  # noqa: E402

TINY = replace(
    SMALL,
    size=EcapaSize(16, attention=8, squeeze=8, embedding=16),
    epochs=3,
    batch=16,
    crop_seconds=1.0,
    tail_seconds=0.5,
    speeds=(1.0,),
    zero_epochs=1,
)


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[Utterance]:
    """Six real speakers, eight utterances each, with a made-up target for each utterance."""
    found: dict[str, list[Utterance]] = {}
    for row in read_corpus(shared / "train_opus"):
        found.setdefault(row.speaker, []).append(row)
    chosen = [group[:8] for group in found.values() if len(group) >= 8][:6]
    return [
        replace(row, extra={**row.extra, "target": f"t{i % 3}"})
        for group in chosen
        for i, row in enumerate(group)
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("speech")


def weights(folder: Path) -> dict[str, "torch.Tensor"]:
    return torch.load(folder / "embedding_model.ckpt", weights_only=True)


def test_schedule_of_paper_3():
    """Section 4.3: E = 6 of 10; E = 10 is the baseline; E = 0 rises from the first epoch on."""
    found = [target_weight(e, epochs=10, zero_epochs=6) for e in range(1, 11)]
    assert found == [0, 0, 0, 0, 0, 0, 0.25, 0.5, 0.75, 1]
    assert not any(target_weight(e, epochs=10, zero_epochs=10) for e in range(1, 11))
    assert target_weight(1, epochs=10, zero_epochs=0) == 0.1


def test_recipes_hold_the_published_constants():
    assert (SPANE.size.channels, VPC24.size.channels) == (1024, 512)
    assert (SPANE.max_rate, SPANE.base_rate) == (1e-3, 1e-6)
    assert (VPC24.max_rate, VPC24.base_rate) == (1e-2, 1e-8)
    for recipe in (SPANE, VPC24):
        found = (recipe.margin, recipe.scale, recipe.weight_decay, recipe.step_size)
        assert found == (0.2, 30.0, 2e-6, 65_000)
        assert (recipe.batch, recipe.epochs, recipe.crop_seconds) == (256, 10, 3.0)
    assert (SPANE.centre, VPC24.centre) == (True, False)  # paper 3 subtracts the mean, VPC does not
    assert replace(PAPER, step_size=65_000) == SPANE
    assert set(RECIPES) == {"paper", "spane", "vpc24", "small"}


def test_the_rate_of_the_paper_recipe_fits_the_data():
    """4 hours in crops of 3 s, batches of 256: 190 steps; the published cycle stays below."""
    steps = 190
    published = [cyclic_rate(s, recipe=SPANE, steps=steps) for s in range(steps)]
    fitted = [cyclic_rate(s, recipe=PAPER, steps=steps) for s in range(steps)]
    assert max(published) < 4e-6
    assert max(fitted) == pytest.approx(1e-3)
    assert fitted[0] == pytest.approx(1e-6)
    assert fitted[-1] < 2e-5


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_gradients_against_finite_differences(weight):
    """Target head: full gradient of its own loss. Recogniser: that of L_S − w_T · L_T."""
    torch.manual_seed(0)
    model = TwoHeads(EcapaSize(8, 4, 4, embedding=6), sources=3, targets=2).double().eval()
    features = torch.randn(4, 80, 20, dtype=torch.float64)
    source, target = torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 1, 0])
    model(features, None, source, target, weight).loss.backward()

    def losses() -> tuple[float, float]:
        with torch.no_grad():
            found = model(features, None, source, target, 0.0)
        return float(found.loss_source), float(found.loss_target)

    def slope(parameter, place, wanted):
        step = 1e-6
        before = parameter.data[place].item()
        ends = []
        for sign in (1, -1):
            parameter.data[place] = before + sign * step
            ends.append(wanted(*losses()))
        parameter.data[place] = before
        return (ends[0] - ends[1]) / (2 * step)

    head, layer = model.target.weight, model.encoder.fc.conv.weight
    early = model.encoder.blocks[0].conv.conv.weight
    assert head.grad[1, 2].item() == pytest.approx(slope(head, (1, 2), lambda s, t: t), rel=1e-4)
    for parameter, place in ((layer, (3, 5, 0)), (early, (2, 40, 1))):
        expected = slope(parameter, place, lambda s, t: s - weight * t)
        assert parameter.grad[place].item() == pytest.approx(expected, rel=1e-3, abs=1e-9)


@given(st.floats(0, 2), st.integers(0, 1000))
def test_reversal_changes_no_value_and_scales_the_gradient(weight, seed):
    torch.manual_seed(seed)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    y = reverse_gradient(x, weight)
    assert torch.equal(y, x)
    (gradient,) = torch.autograd.grad((y**2).sum(), x)
    torch.testing.assert_close(gradient, -weight * 2 * x.detach())


def test_a_margin_of_zero_is_plain_cross_entropy():
    cosine, label = torch.rand(6, 4), torch.randint(0, 4, (6,))
    found = aam_loss(cosine, label, margin=0.0, scale=5.0)
    torch.testing.assert_close(found, torch.nn.functional.cross_entropy(5 * cosine, label))
    assert aam_loss(cosine, label, margin=0.2, scale=5.0) > found


def made_speech(lengths: list[int], speakers: list[int]) -> DecodedSpeech:
    length = np.array(lengths)
    names = tuple(str(s) for s in range(max(speakers) + 1))
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    label = np.array(speakers)
    return DecodedSpeech(np.zeros(length.sum(), np.int16), start, length, label, None, names, None)


@given(st.lists(st.integers(1_600, 200_000), min_size=1, max_size=20))
def test_consecutive_crops_cover_an_utterance_and_keep_a_tail_of_one_second(lengths):
    speech = made_speech(lengths, [0] * len(lengths))
    crops = cut_crops(speech, np.arange(len(lengths)), SPANE, None)
    for i, length in enumerate(lengths):
        own = crops.row == i
        rest = length % 48_000
        assert crops.length[own].sum() == length - (rest if rest < 16_000 else 0)
        assert all(16_000 <= n <= 48_000 for n in crops.length[own])
        ends = crops.start[own] + crops.length[own]
        assert (crops.start[own][1:] == ends[:-1]).all()
        assert (crops.start[own] >= speech.start[i]).all()
        assert (ends <= speech.start[i] + length).all()


@given(st.lists(st.integers(1_600, 200_000), min_size=1, max_size=20), st.integers(0, 99))
def test_random_crops_lie_inside_their_utterance(lengths, seed):
    speech = made_speech(lengths, [0] * len(lengths))
    crops = cut_crops(speech, np.arange(len(lengths)), VPC24, np.random.default_rng(seed))
    assert crops.row.tolist() == [i for i, n in enumerate(lengths) if n >= 16_000]
    assert (crops.length == np.minimum(speech.length[crops.row], 48_000)).all()
    assert (crops.start >= speech.start[crops.row]).all()
    ends = speech.start[crops.row] + speech.length[crops.row]
    assert (crops.start + crops.length <= ends).all()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=60), st.integers(0, 99))
def test_validation_holds_out_a_share_of_each_speaker_and_never_all(labels, seed):
    labels = np.unique([*labels, 0, 0, 1], return_inverse=True)[1].tolist()
    labels = [*labels, 0]
    speech = made_speech([16_000] * len(labels), labels)
    for recipe in (SPANE, VPC24):
        try:
            kept, held = split_validation(speech, recipe, seed)
        except InputError:
            assert recipe is VPC24
            continue
        assert sorted([*kept, *held]) == list(range(len(labels)))
        assert set(speech.source[kept]) == set(labels)
        if recipe is SPANE:
            counts = np.bincount(labels)
            wanted = np.where(counts > 1, np.maximum(1, np.round(0.1 * counts)), 0)
            assert (np.bincount(speech.source[held], minlength=len(counts)) == wanted).all()


@given(st.integers(1, 300), st.integers(2, 64), st.integers(1, 4))
def test_processes_share_each_batch_without_overlap(count, size, world):
    size *= world
    shares = [
        list(batches(count, size, random=np.random.default_rng(0), rank=r, world=world))
        for r in range(world)
    ]
    assert {len(s) for s in shares} == {count_batches(count, size, world=world)}
    seen = np.concatenate([b for s in shares for b in s]) if shares[0] else np.array([])
    assert len(set(seen.tolist())) == len(seen) >= count - 2 * world + 1 or count < 2 * world


def test_a_training_that_was_killed_goes_on_to_the_same_weights(
    rows, cache, tmp_path, monkeypatch, caplog
):
    whole = train_attacker(rows, tmp_path / "whole", TINY, adversarial=True, cache=cache, workers=1)
    assert [e.w_target for e in whole.epochs] == [0.0, 0.5, 1.0]

    from voxrisk.attack import training_run as room

    original = room.TrainingRun.epoch

    def dies(self, epoch):
        if epoch == 3:
            raise KeyboardInterrupt
        return original(self, epoch)

    monkeypatch.setattr(room.TrainingRun, "epoch", dies)
    again = {"adversarial": True, "cache": cache, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        train_attacker(rows, tmp_path / "killed", TINY, **again)
    assert not (tmp_path / "killed" / "embedding_model.ckpt").exists()
    monkeypatch.undo()
    train_attacker(rows, tmp_path / "killed", TINY, **again)
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    files = [tmp_path / run / "embedding_model.ckpt" for run in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()

    for name in ("attacker.json", "embedding_model.ckpt"):  # not finished, its state damaged
        (tmp_path / "killed" / name).unlink()
    (tmp_path / "killed" / "checkpoint.pt").write_bytes(b"PK broken")
    samples = next(cache.glob("decode-*/samples.i16"))
    samples.write_bytes(samples.read_bytes()[:-2])
    train_attacker(rows, tmp_path / "killed", TINY, **again)
    assert "the training begins again" in caplog.text
    assert "samples.i16 is not as it was written; it is made again" in caplog.text
    found = weights(tmp_path / "killed")
    assert all(torch.equal(found[name], value) for name, value in expected.items())

    with (tmp_path / "whole" / "curves.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert [line["epoch"] for line in lines] == ["1", "2", "3"]
    assert "target head" in draw_training(tmp_path / "whole")[0].read_text()
    facts = json.loads((tmp_path / "whole" / "attacker.json").read_text())
    assert (facts["sources"], facts["targets"], facts["seed"]) == (6, 3, 0)
    assert load_encoder(tmp_path / "whole").dimension == 16
    with pytest.raises(InputError, match=r"holds another training \(seed, adversarial"):
        train_attacker(rows, tmp_path / "whole", TINY, seed=5, cache=cache)
    (tmp_path / "whole" / "checkpoint.pt").write_bytes(b"broken")
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        train_attacker(rows, tmp_path / "whole", TINY, **again)


def test_it_learns_real_speakers_and_seeds_differ(shared, rows, cache, tmp_path):
    """Four LibriSpeech speakers, six utterances each to learn from, two each to be tested on."""
    speakers: dict[str, list[Utterance]] = {}
    for row in read_corpus(shared / "train_opus"):
        if row.speaker.startswith("ls"):
            speakers.setdefault(row.speaker, []).append(row)
    chosen = [row for group in list(speakers.values())[:4] for row in group[:8]]
    recipe = replace(
        TINY,
        size=EcapaSize(24, 16, 16, 32),
        epochs=5,
        max_rate=1e-2,
        crops="consecutive",
        validation=0.25,
    )
    first = train_attacker(chosen, tmp_path / "a", recipe, cache=cache, workers=1)
    assert first.epochs[-1].ver_source < 0.4  # chance is 3/4
    assert first.epochs[-1].loss_source < 0.5 * first.epochs[0].loss_source
    assert first.epochs[-1].ver_target is None
    plain = [replace(row, extra={}) for row in rows]
    brief = replace(TINY, epochs=1, zero_epochs=1)
    train_attacker(plain, tmp_path / "b", brief, seed=0, cache=cache)
    train_attacker(plain, tmp_path / "c", brief, seed=1, cache=cache)
    a, b = weights(tmp_path / "b"), weights(tmp_path / "c")
    assert any(not torch.equal(a[name], b[name]) for name in a)


def test_fine_tuning_begins_with_the_ready_weights(rows, cache, tmp_path):
    ready = train_attacker(rows, tmp_path / "ready", TINY, cache=cache, workers=1)
    still = replace(TINY, epochs=1, zero_epochs=1, max_rate=0.0, base_rate=0.0)
    start = tmp_path / "ready" / "embedding_model.ckpt"
    tuned = train_attacker(rows, tmp_path / "tuned", still, start=start, cache=cache)
    before, after = weights(tmp_path / "ready"), weights(tmp_path / "tuned")
    learned = [name for name in before if "running" not in name and "num_batches" not in name]
    assert all(torch.equal(before[name], after[name]) for name in learned)
    assert not all(torch.equal(before[name], after[name]) for name in before if "running" in name)
    kept = replace(still, keep_statistics=True)
    train_attacker(rows, tmp_path / "kept", kept, start=start, cache=cache)
    same = weights(tmp_path / "kept")
    assert all(torch.equal(before[name], same[name]) for name in before)
    # Heads that begin with class means know the speakers before the first step.
    assert tuned.epochs[0].loss_source < 0.8 * ready.epochs[0].loss_source


def test_the_paper_recipe_end_to_end_gives_centred_vectors(rows, cache, tmp_path):
    """Paper 3: from nothing, both heads, the mean training vector subtracted from every one."""
    recipe = replace(PAPER, size=TINY.size, epochs=2, zero_epochs=1, batch=16)
    done = train_attacker(rows, tmp_path / "a", recipe, adversarial=True, cache=cache, workers=1)
    assert [e.w_target for e in done.epochs] == [0.0, 1.0]
    found = embed_corpus(rows, str(tmp_path / "a"), tmp_path / "a.npz", device="cpu", workers=1)
    assert np.isfinite(found.vectors).all()
    encoder = load_encoder(tmp_path / "a", device="cpu")
    whole = encoder_identity(str(tmp_path / "a"))
    centre = np.load(tmp_path / "a" / "centre.npy")
    assert np.linalg.norm(centre) > 0.1
    # A tenth of each speaker is held out, so the mean of all is near zero, not zero.
    spread = np.linalg.norm(found.vectors.std(axis=0))
    assert np.linalg.norm(found.vectors.mean(axis=0)) < 0.1 * spread
    wave = read_audio(rows[0], rate=16_000)
    (tmp_path / "a" / "centre.npy").rename(tmp_path / "centre.npy")
    bare = load_encoder(tmp_path / "a", device="cpu")
    assert encoder_identity(str(tmp_path / "a")) != whole
    assert bare.identity != encoder.identity
    assert np.allclose(bare.embed([wave]) - centre, encoder.embed([wave]), atol=1e-5)
    np.save(tmp_path / "a" / "centre.npy", centre[:3])
    with pytest.raises(InputError, match=r"centre\.npy: a mean vector of shape \(3,\)"):
        load_encoder(tmp_path / "a", device="cpu")


def test_what_cannot_train_is_refused(rows, cache, tmp_path):
    with pytest.raises(InputError, match="has 1 speaker"):
        train_attacker(rows[:8], tmp_path / "one", TINY, cache=cache)
    without = [replace(row, extra={}) for row in rows]
    with pytest.raises(InputError, match="adversarial head needs a column 'target'"):
        train_attacker(without, tmp_path / "none", TINY, adversarial=True, cache=cache)
    some = [*rows[:-1], without[-1]]
    with pytest.raises(InputError, match=f"utterance {rows[-1].utterance} has no 'target'"):
        train_attacker(some, tmp_path / "some", TINY, adversarial=True, cache=cache)
    noise = np.random.default_rng(0).normal(size=160).astype(np.float32)
    write_audio(tmp_path / "short.wav", 0.1 * noise, rate=16_000)
    short = Utterance("x-10ms", tmp_path / "short.wav", "x", extra={"target": "t0"})
    with pytest.raises(InputError, match="utterance x-10ms: 10 ms of speech"):
        train_attacker([*rows, short], tmp_path / "short", TINY, cache=cache, workers=1)
    with pytest.raises(InputError, match="crops is 'all'"):
        replace(TINY, crops="all")
    assert filter_banks(torch.zeros(1, 800)).shape == (1, 80, 6)


TWO_PROCESSES = """
import sys
from dataclasses import replace
from pathlib import Path
import torch
from torch import distributed
from voxrisk.attack import train
from voxrisk.attack.training_run import TrainingRun
from voxrisk.attack.parallel import leave_world
from voxrisk.attack.recipes import SMALL
from voxrisk.attack.sizes import EcapaSize
from voxrisk.corpus import read_corpus

rows = read_corpus(sys.argv[1])[:40]
tiny = replace(SMALL, size=EcapaSize(8, 8, 8, 8), epochs=1, zero_epochs=1, batch=16,
               crop_seconds=1.0, speeds=(1.0,))
seen = []
original = TrainingRun.epoch
TrainingRun.epoch = lambda self, epoch: (original(self, epoch), seen.append(self.model))[0]
train.train_attacker(rows, Path(sys.argv[2]), tiny, workers=1, device="cpu")
own = torch.cat([p.detach().ravel() for p in seen[0].parameters()])
both = [torch.empty_like(own) for _ in range(2)]
distributed.all_gather(both, own)
assert torch.equal(*both), "the processes have drifted apart"
leave_world()
"""


def test_two_processes_train_one_attacker(shared, tmp_path):
    """Real processes on this machine (gloo): each takes half of every batch, weights stay equal."""
    script = tmp_path / "two.py"
    script.write_text(TWO_PROCESSES, encoding="utf-8")
    out = tmp_path / "attacker"
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *words, str(script), str(shared / "train_opus"), str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:4000]
    assert load_encoder(out).dimension == 8
