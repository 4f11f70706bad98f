"""Controls of a training: a broken one must fail them, a good one must not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from voxrisk.attack.soundness import (
    Rows,
    cross_validated,
    target_control,
    training_control,
)
from voxrisk.types import Embeddings, InputError

D, SPEAKERS, EACH, TARGETS = 24, 40, 8, 10


def made(seed: int = 0, *, trace: float = 1.0) -> tuple[Embeddings, list[str]]:
    """Converted voices: a trace of the source, a loud target, noise."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(SPEAKERS), EACH)
    target = random.integers(0, TARGETS, who.size)
    vectors = trace * random.normal(size=(SPEAKERS, D))[who]
    vectors += 2.0 * random.normal(size=(TARGETS, D))[target]
    vectors += 0.7 * random.normal(size=(who.size, D))
    return named(who, vectors), [f"t{t}" for t in target]


def named(who: np.ndarray, vectors: np.ndarray) -> Embeddings:
    ids = np.array([f"u{i}" for i in range(who.size)])
    return Embeddings(ids, np.array([f"s{w}" for w in who]), vectors, "made")


def whitened(embeddings: Embeddings, rows: Rows) -> Callable[[Any], Any]:
    """Within-class covariance normalisation: the plainest training there is."""
    x, speaker = embeddings.vectors[rows], embeddings.speaker[rows]
    mean = x.mean(axis=0)
    within = np.concatenate([x[speaker == s] - x[speaker == s].mean(axis=0) for s in set(speaker)])
    power, axes = np.linalg.eigh(within.T @ within / len(within) + 0.05 * np.eye(x.shape[1]))
    return lambda vectors: (vectors - mean) @ (axes / np.sqrt(power))


def shuffled(embeddings: Embeddings, seed: int = 0) -> Embeddings:
    """The same vectors; who speaks is mixed up among the utterances."""
    order = np.random.default_rng(seed).permutation(embeddings.speaker.size)
    return Embeddings(embeddings.utterance, embeddings.speaker[order], embeddings.vectors, "mixed")


def test_true_labels_pass_and_shuffled_ones_fail() -> None:
    held, _ = made()
    good = training_control(held, whitened)
    assert not good.failed
    assert good.trained.value < good.untrained.value - 0.02
    assert good.difference.value == pytest.approx(good.trained.value - good.untrained.value)
    assert good.trained.chance == good.untrained.chance == 0.5
    assert good.p_chance < 0.002
    passed = 0
    for seed in range(20):
        bad = training_control(shuffled(held, seed), whitened, seed=seed, resamples=200)
        assert bad.at_chance == (bad.p_chance > 0.01)
        passed += not bad.failed
    assert passed <= 1  # one in a hundred by accident


def test_a_training_that_does_harm_is_weaker_though_not_at_chance() -> None:
    """Two coordinates are all that is left: better than chance, worse than untouched vectors."""
    held = named(
        np.repeat(np.arange(SPEAKERS), EACH),
        np.random.default_rng(1).normal(size=(SPEAKERS, D)).repeat(EACH, axis=0)
        + 0.5 * np.random.default_rng(2).normal(size=(SPEAKERS * EACH, D)),
    )
    found = training_control(held, lambda e, rows: lambda vectors: vectors[:, :2])
    assert found.weaker
    assert found.failed
    assert not found.at_chance
    same = training_control(held, lambda e, rows: lambda vectors: 3.0 * vectors)
    assert same.difference.value == pytest.approx(0.0, abs=1e-12)
    assert not same.failed


def test_no_speaker_trains_the_map_that_tries_them() -> None:
    """Each fold's map learns from the others only, and every able speaker is tried once."""
    held, _ = made()
    seen: list[set[str]] = []

    def fit(embeddings: Embeddings, rows: Rows) -> Callable[[Any], Any]:
        seen.append(set(embeddings.speaker[rows].tolist()))
        return lambda vectors: vectors

    trained, plain = cross_validated(held, fit, folds=4, seed=5)
    assert np.allclose(trained.score, plain.score)
    assert trained.sizes["speaker"] == SPEAKERS
    assert trained.sizes["target"] == SPEAKERS * EACH // 2
    assert all(len(fold) == SPEAKERS - SPEAKERS // 4 for fold in seen)
    assert set.intersection(*seen) == set()
    # Trials stay within a fold: nobody meets a speaker who trained the map.
    pairs = set(zip(trained.enroll_speaker.tolist(), trained.trial_speaker.tolist(), strict=True))
    names = trained.speakers
    for fold in seen:
        assert not any((names[a] in fold) != (names[b] in fold) for a, b in pairs)


def test_targets_are_told_and_a_shuffled_column_is_not() -> None:
    held, targets = made()
    found = target_control(held, targets)
    assert found.told
    assert not found.failed
    assert found.ver_target.value < 0.1
    assert found.ver_target.chance == pytest.approx(
        1 - max(targets.count(t) for t in set(targets)) / len(targets)
    )
    mixed = np.random.default_rng(0).permutation(np.array(targets)).tolist()
    wrong = target_control(held, mixed)
    assert wrong.failed
    assert wrong.ver_target.value > 0.8


def test_what_cannot_be_controlled_is_said() -> None:
    held, targets = made()
    with pytest.raises(InputError, match="cannot be dealt into 30 folds"):
        training_control(held, whitened, folds=30)
    with pytest.raises(InputError, match="not finite; train with a lower rate"):
        training_control(held, lambda e, rows: lambda vectors: vectors * np.nan)
    with pytest.raises(InputError, match="319 targets for 320 utterances"):
        target_control(held, targets[1:])
    with pytest.raises(InputError, match="1 different targets: nothing to tell apart"):
        target_control(held, ["t"] * len(targets))
