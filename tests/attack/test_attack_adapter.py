"""The map behind a ready encoder: it learns what anonymization does, and unlearns the targets."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from short_speech import cut_short
from voxrisk.attack.adapted import AdaptedEncoder, Adapter, read_adapter
from voxrisk.attack.adapter import (
    UNLEARN,
    Unlearn,
    adapter_fit,
    fit_adapter,
    target_names,
    train_adapter,
    write_adapter,
)
from voxrisk.attack.encoders import load_encoder
from voxrisk.attack.erasure import erasure
from voxrisk.attack.recipes import ADAPTED, AdapterRecipe
from voxrisk.attack.soundness import target_control, training_control
from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_audio, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.measure.eer import rocch_eer
from voxrisk.types import Embeddings, InputError

D, SPEAKERS, TARGETS, EACH = 32, 30, 6, 20


def voices(seed: int, speakers: int = SPEAKERS) -> tuple[Embeddings, list[str]]:
    """Anonymized voices: a faint trace of the source, a loud target, and noise."""
    random = np.random.default_rng(seed)
    source = random.normal(size=(speakers, D))
    target = np.random.default_rng(99).normal(size=(TARGETS, D))  # the anonymizer's own
    who = np.repeat(np.arange(speakers), EACH)
    chosen = random.integers(0, TARGETS, who.size)
    vectors = 0.5 * source[who] + 2.0 * target[chosen] + 0.4 * random.normal(size=(who.size, D))
    names = np.array([f"{seed}-{i}" for i in range(who.size)])
    held = Embeddings(names, np.array([f"s{w}" for w in who]), vectors.astype(np.float32), "made")
    return held, [f"t{c}" for c in chosen]


def eer(vectors: np.ndarray, speaker: np.ndarray) -> float:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    i, j = np.triu_indices(len(unit), 1)
    score, same = (unit @ unit.T)[i, j], speaker[i] == speaker[j]
    return rocch_eer(score[same], score[~same])


@pytest.fixture(scope="module")
def seen() -> tuple[Embeddings, list[str]]:
    return voices(1)


def test_it_recognises_other_speakers_better_than_the_ready_vectors(
    seen: tuple[Embeddings, list[str]],
) -> None:
    found = fit_adapter(seen[0], ADAPTED)
    others = voices(2)[0]
    plain, mapped = (
        eer(others.vectors, others.speaker),
        eer(found.adapter.apply(others.vectors), others.speaker),
    )
    assert mapped < plain - 0.05
    assert found.epochs[-1].ver_target is None


@pytest.mark.parametrize("unlearn", UNLEARN)
def test_the_map_that_unlearns_forgets_the_targets_and_the_other_knows_them(
    seen: tuple[Embeddings, list[str]], unlearn: Unlearn
) -> None:
    held, targets = seen
    knows = fit_adapter(held, ADAPTED, targets=targets)
    forgets = fit_adapter(held, ADAPTED, targets=targets, unlearn=unlearn)
    assert knows.epochs[-1].ver_target is not None
    assert forgets.epochs[-1].ver_target is not None
    assert knows.epochs[-1].ver_target < 0.2
    assert forgets.epochs[-1].ver_target > 0.7  # chance is 0.83
    assert forgets.epochs[-1].ver_source <= knows.epochs[-1].ver_source
    # Not only its own head: the nearest class mean does not find the targets of others either.
    others, drawn = voices(2)
    for found, least, most in ((knows, 0.0, 0.2), (forgets, 0.5, 1.0)):
        mapped, tried = found.adapter.apply(held.vectors), found.adapter.apply(others.vectors)
        names = sorted(set(targets))
        mean = np.stack([mapped[np.array(targets) == n].mean(axis=0) for n in names])
        mean -= mapped.mean(axis=0)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        guess = np.array(names)[np.argmax((tried - mapped.mean(axis=0)) @ mean.T, axis=1)]
        assert least <= (guess != np.array(drawn)).mean() <= most


def test_only_a_reversed_gradient_has_a_weight(seen: tuple[Embeddings, list[str]]) -> None:
    """Erasing reverses nothing, so its curves say w_T = 0; reversing follows paper 3's schedule."""
    brief = replace(ADAPTED, epochs=2, reverse_epochs=4, zero_epochs=2)
    found = {
        way: [e.w_target for e in fit_adapter(seen[0], brief, targets=seen[1], unlearn=way).epochs]
        for way in (None, *UNLEARN)
    }
    assert found == {None: [0.0, 0.0], "erase": [0.0, 0.0], "reverse": [0.0, 0.0, 0.5, 1.0]}


@pytest.mark.parametrize("unlearn", UNLEARN)
def test_without_the_targets_other_speakers_are_recognised_better(
    seen: tuple[Embeddings, list[str]], unlearn: Unlearn
) -> None:
    others = voices(2)[0]
    plain, blind = (
        fit_adapter(seen[0], ADAPTED, targets=seen[1], unlearn=way).adapter
        for way in (None, unlearn)
    )
    before = eer(plain.apply(others.vectors), others.speaker)
    assert eer(blind.apply(others.vectors), others.speaker) < before - 0.03


@pytest.mark.parametrize("against", ["uniform", "reversed"])
def test_the_head_learns_with_full_strength_and_the_map_moves_against_it(against: str) -> None:
    """Paper 3: only what reaches the map is turned round and weighted; the head gets none of it."""
    torch = pytest.importorskip("torch")
    from voxrisk.attack.descend import _against
    from voxrisk.attack.heads import CosineHead, aam_loss

    torch.manual_seed(0)
    head, label = CosineHead(6, 3), torch.tensor([0, 1, 2, 1])
    mapped = torch.randn(4, 6, requires_grad=True)
    recipe = replace(ADAPTED, against=against, strength=2.0)
    _against(head, mapped, label, recipe, 0.5).backward()
    assert head.weight.grad is None
    pushed = mapped.grad.clone()
    mapped.grad = None
    aam_loss(head(mapped), label, margin=0.2, scale=30.0).backward()
    if against == "reversed":
        assert torch.allclose(pushed, -mapped.grad, atol=1e-6)  # w_T 0.5 times strength 2
    else:  # a step against this gradient makes the guesses more alike
        before, after = (
            torch.nn.functional.log_softmax(30 * head(m), dim=1).mean()
            for m in (mapped, mapped - 1e-3 * pushed)
        )
        assert after > before


def test_the_hundred_targets_of_paper_3_can_be_unlearned() -> None:
    """100 targets in 192 dimensions: erasing leaves 93 of them; 150 targets are refused."""
    random = np.random.default_rng(0)
    who, target = np.repeat(np.arange(50), 13), np.arange(650) % 100
    vectors = random.normal(size=(50, 192))[who] + random.normal(size=(100, 192))[target]
    vectors += 0.5 * random.normal(size=(650, 192))
    names = np.array([f"u{i}" for i in range(650)])
    held = Embeddings(names, np.array([f"s{w}" for w in who]), vectors, "made")
    brief = replace(ADAPTED, reverse_epochs=8, zero_epochs=4, epochs=5)
    for way in UNLEARN:
        found = fit_adapter(held, brief, targets=[f"t{t}" for t in target], unlearn=way)
        assert np.isfinite(found.adapter.apply(vectors)).all()
    rank = np.linalg.matrix_rank(erasure(vectors, target), tol=1e-8)
    assert rank == 192 - 99
    with pytest.raises(InputError, match=r"150 targets: too many to erase from 192 dimensions"):
        erasure(vectors, np.arange(650) % 150)


def test_the_control_passes_true_labels_and_fails_shuffled_ones(golden_ecapa: Embeddings) -> None:
    """Real ECAPA vectors of 40 speakers, 10 utterances each, with a loud target added to each."""
    random = np.random.default_rng(0)
    speaker = golden_ecapa.speaker
    rows = np.concatenate([np.flatnonzero(speaker == s)[:10] for s in np.unique(speaker)])
    real = golden_ecapa.vectors[rows]
    real = real / np.linalg.norm(real, axis=1, keepdims=True)
    voice = random.normal(size=(20, real.shape[1])) / real.shape[1] ** 0.5
    drawn = random.integers(0, 20, len(rows))
    vectors = real + 1.5 * voice[drawn] + random.normal(size=real.shape) * 0.6 / 192**0.5
    held = Embeddings(golden_ecapa.utterance[rows], speaker[rows], vectors, "golden")
    targets = [f"t{t}" for t in drawn]
    quick = replace(ADAPTED, epochs=10)
    for unlearn in (None, "erase"):
        fit = adapter_fit(quick, targets=targets, unlearn=unlearn)
        assert not training_control(held, fit, resamples=200).failed
    assert target_control(held, targets, resamples=200).told
    mixed = Embeddings(held.utterance, random.permutation(held.speaker), held.vectors, "mixed")
    assert training_control(mixed, adapter_fit(quick), resamples=200).failed
    wrong = random.permutation(np.array(targets)).tolist()
    assert target_control(held, wrong, resamples=200).failed


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5))
def test_erasure_makes_all_class_means_the_same_and_erases_once(seed: int, classes: int) -> None:
    random = np.random.default_rng(seed)
    label = np.arange(60) % classes
    x = random.normal(size=(60, 12)) @ random.normal(size=(12, 12))
    x += random.normal(size=(classes, 12))[label] * 3
    projection = erasure(x, label)
    means = np.stack([(x @ projection)[label == k].mean(axis=0) for k in range(classes)])
    assert np.allclose(means, means[0], atol=1e-8 * np.abs(x).max())
    assert np.allclose(projection @ projection, projection, atol=1e-8)
    assert np.linalg.matrix_rank(projection, tol=1e-8) == 12 - (classes - 1)


def test_the_target_head_of_the_baseline_does_not_move_the_map(
    seen: tuple[Embeddings, list[str]],
) -> None:
    held, targets = seen
    alone = fit_adapter(held, ADAPTED).adapter.matrix
    beside = fit_adapter(held, ADAPTED, targets=targets).adapter.matrix
    assert np.allclose(alone, beside, atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.01, 100))
def test_lengths_of_vectors_do_not_matter(seed: int, factor: float) -> None:
    random = np.random.default_rng(seed)
    adapter = Adapter("x", "", random.normal(size=4) * 0.1, random.normal(size=(4, 4)))
    vectors = random.normal(size=(5, 4)).astype(np.float32)
    out = adapter.apply(vectors)
    assert np.allclose(np.linalg.norm(out, axis=1), 1, atol=1e-5)
    assert np.allclose(out, adapter.apply(vectors * np.float32(factor)), atol=1e-4)


def test_the_same_seed_gives_the_same_map_and_files(
    seen: tuple[Embeddings, list[str]], tmp_path: Path
) -> None:
    quick = AdapterRecipe(epochs=2)
    one, two = (fit_adapter(seen[0], quick, seed=3, encoder="e", identity="i") for _ in "12")
    assert np.array_equal(one.adapter.matrix, two.adapter.matrix)
    write_adapter(tmp_path, one, {"seed": 3})
    held = read_adapter(tmp_path)
    assert (held.encoder, held.identity) == ("e", "i")
    assert np.array_equal(held.matrix, one.adapter.matrix)
    assert np.array_equal(held.mean, one.adapter.mean)
    assert len((tmp_path / "curves.csv").read_text().splitlines()) == 3
    (tmp_path / "adapter.npz").write_bytes(b"PK torn")
    with pytest.raises(InputError, match=r"adapter\.npz: cannot be read as NumPy arrays"):
        read_adapter(tmp_path)


def test_what_cannot_train_is_said(seen: tuple[Embeddings, list[str]]) -> None:
    held, _ = seen
    one = held.speaker == "s1"
    few = Embeddings(held.utterance[one], held.speaker[one], held.vectors[one], "one.npz")
    with pytest.raises(InputError, match=r"one\.npz: 20 utterances of 1 speakers cannot train"):
        fit_adapter(few, ADAPTED)
    with pytest.raises(InputError, match="the target speaker of each utterance is needed"):
        fit_adapter(held, ADAPTED, unlearn="reverse")
    with pytest.raises(InputError, match="unlearn is 'forget'; choose erase or reverse"):
        fit_adapter(held, ADAPTED, targets=seen[1], unlearn="forget")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="against is 'x'"):
        AdapterRecipe(against="x")
    with pytest.raises(InputError, match="zero_epochs is 90"):
        AdapterRecipe(zero_epochs=90)
    rows = [Utterance("a", Path("a"), "s", extra={"target": "t"}), Utterance("b", Path("b"), "s")]
    with pytest.raises(InputError, match=r"utterance b has no 'target' \(1 of 2\)"):
        target_names(rows, "target")
    assert target_names(rows[1:], "target") is None
    with pytest.raises(InputError, match="utterance b has no 'target'"):
        target_names(rows[1:], "target", needed=True)
    with pytest.raises(InputError, match="0 epochs of batches"):
        AdapterRecipe(epochs=0)
    each = [f"t{i}" for i in range(len(held.speaker))]
    for way in UNLEARN:
        with pytest.raises(InputError, match=r"too many to unlearn, at most 180 \(3 utterances"):
            fit_adapter(held, ADAPTED, targets=each, unlearn=way)


def test_train_and_embed_with_it(tmp_path: Path) -> None:
    """The command trains it on real audio, and any command that takes an encoder can use it."""
    rows = cut_short(make_demo(tmp_path / "speech", voices=3, sentences=3), tmp_path / "audio")
    write_corpus(tmp_path / "train.csv", rows)
    command = ["train", str(tmp_path / "train.csv"), "-o", str(tmp_path / "attacker"),
               "--recipe", "adapter", "--epochs", "2", "--json"]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["epoch"] == 2
    encoder = load_encoder(tmp_path / "attacker", device="cpu", threads=1)
    assert isinstance(encoder, AdaptedEncoder)
    wave = read_audio(rows[0])
    base = load_encoder("ecapa-voxceleb", device="cpu", threads=1)
    held = read_adapter(tmp_path / "attacker")
    assert np.allclose(encoder.embed([wave]), held.apply(base.embed([wave])), atol=1e-6)
    assert encoder.identity != base.identity
    other = Adapter("ecapa-voxceleb", "0" * 64, held.mean, held.matrix)
    with pytest.raises(InputError, match="was trained behind another ecapa-voxceleb"):
        AdaptedEncoder("x", base, other)
    drawn = [replace(row, extra={"target": f"t{i % 2}"}) for i, row in enumerate(rows)]
    write_corpus(tmp_path / "drawn.csv", drawn)
    call = ["train", str(tmp_path / "drawn.csv"), "-o", str(tmp_path / "blind"),
            "--recipe", "adapter"]  # fmt: skip
    words = [*call, "--unlearn", "reverse", "--epochs", "4", "--zero-epochs", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "blind" / "curves.csv").read_text().splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == ["0.0", "0.0", "0.5", "1.0"]
    facts = json.loads((tmp_path / "blind" / "attacker.json").read_text())
    assert (facts["unlearn"], facts["targets"]) == ("reverse", 2)
    for extra, reason in (
        (["--zero-epochs", "1"], "--zero-epochs is for --unlearn reverse"),
        (["--adversarial", "--unlearn", "erase"], "--adversarial is the reversed gradient"),
        (["--recipe", "small", "--unlearn", "erase"], "--unlearn is for --recipe adapter"),
    ):
        with pytest.raises(InputError, match=reason):
            CliRunner().invoke(app, [*call, *extra], catch_exceptions=False)
    with pytest.raises(InputError, match="has no 'target'"):
        train_adapter(rows, tmp_path / "no", ADAPTED, unlearn="erase")
