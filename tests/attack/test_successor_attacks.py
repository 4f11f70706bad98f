"""Attackers on the sound of slices: what must be found is found, and nothing where nothing is."""

from pathlib import Path

import numpy as np
import pytest
import torch

from voxrisk.attack.cut_cues import CUES, by_equal_samples, by_pitch, by_voice
from voxrisk.attack.successor_net import SuccessorNet, joined, mel_frames, score_pairs
from voxrisk.attack.successor_training import (
    Lessons,
    draw_pairs,
    load_successor,
    train_successor,
)
from voxrisk.types import InputError

RATE = 16_000


def drifting(seed: int, *, seconds: float = 8.0) -> np.ndarray:
    """A buzz whose pitch and level wander slowly, with a little noise: it goes on as it was."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    slow = np.interp(np.arange(n), np.linspace(0, n, 12), rng.standard_normal(12))
    loud = np.interp(np.arange(n), np.linspace(0, n, 12), rng.standard_normal(12))
    phase = np.cumsum(2 * np.pi * 120 * 2 ** (0.8 * slow) / RATE)
    voice = sum(np.sin(k * phase) / k for k in range(1, 6))
    sound = 0.05 * np.exp(0.8 * loud) * voice + 1e-3 * rng.standard_normal(n)
    return np.asarray(np.rint(sound * 32768) / 32768, np.float32)


@pytest.fixture(scope="module")
def waves() -> list[np.ndarray]:
    """Eight recordings of eight slices of a second, each sharing 50 ms with the next."""
    recordings = [drifting(seed) for seed in range(8)]
    return [one[k * RATE : (k + 1) * RATE + 800] for one in recordings for k in range(8)]


FOLLOWS = np.array([i + 1 if i % 8 < 7 else -1 for i in range(64)])


def standing(scores: np.ndarray, after: np.ndarray) -> float:
    """Share of the candidates that score at least as high as the right one."""
    rows = np.flatnonzero(after >= 0)
    return float((scores[rows] >= scores[rows, after[rows]][:, None]).mean())


def test_slices_that_share_samples_are_given_away_by_them(waves: list[np.ndarray]) -> None:
    found = by_equal_samples(waves)
    assert {tuple(p) for p in np.argwhere(found)} == {
        (i, j) for i, j in enumerate(FOLLOWS.tolist()) if j >= 0
    }


def test_slices_that_share_nothing_are_not(waves: list[np.ndarray]) -> None:
    assert by_equal_samples([wave[:RATE] for wave in waves]).sum() == 0


@pytest.mark.parametrize("name", [n for n in CUES if n != "equal samples"])
def test_what_goes_on_across_a_cut_finds_the_next_slice(name: str, waves: list[np.ndarray]) -> None:
    """Few others score as high; against a shuffled truth as many as chance has it, one half."""
    scores = CUES[name]([wave[:RATE] for wave in waves])
    assert scores.shape == (64, 64)
    assert np.isfinite(scores).all()
    assert standing(scores, FOLLOWS) < 0.3
    shuffled = np.where(FOLLOWS >= 0, np.random.default_rng(0).permutation(64), -1)
    assert abs(standing(scores, shuffled) - 0.5) < 0.15


@pytest.mark.parametrize("name", list(CUES))
def test_cues_bear_slices_of_a_few_samples(name: str) -> None:
    rng = np.random.default_rng(0)
    short = [rng.standard_normal(n).astype(np.float32) * 0.1 for n in (5, 100, 700, 20_000)]
    for clean in (False, True):
        assert np.isfinite(CUES[name](short, clean=clean)).all()


def test_pitch_is_told_from_its_octave() -> None:
    tones = [np.sin(2 * np.pi * f * np.arange(RATE) / RATE).astype(np.float32) * 0.3
             for f in (100, 200, 205)]  # fmt: skip
    scores = by_pitch(tones)
    assert scores[1, 2] > scores[1, 0] + 0.5


def test_likeness_of_the_voice_prefers_the_same_voice() -> None:
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((4, 16))
    vectors = np.repeat(voices, 5, axis=0) + 0.2 * rng.standard_normal((20, 16))
    scores = by_voice(vectors)
    np.fill_diagonal(scores, -np.inf)
    assert (scores.argmax(1) // 5 == np.arange(20) // 5).all()


def test_all_pairs_at_once_equal_joining_each_pair() -> None:
    torch.manual_seed(0)
    net = SuccessorNet()
    rng = np.random.default_rng(0)
    slices = [rng.standard_normal((n, 24)).astype(np.float32) for n in (3, 14, 15, 60, 199, 260)]
    net(*joined(slices, slices[::-1]))  # so that the norms of the network have seen something
    net.eval()
    each = [[net(*joined([a], [b])).item() for b in slices] for a in slices]
    np.testing.assert_allclose(score_pairs(net, slices), each, atol=1e-5)
    several = net(*joined(slices, slices[::-1])).detach().numpy()
    np.testing.assert_allclose(several, np.array(each)[range(6), range(5, -1, -1)], atol=1e-5)


def lessons(waves: list[np.ndarray], successor: np.ndarray) -> Lessons:
    frames = [mel_frames(wave[:RATE]) for wave in waves]
    speaker = np.array([f"s{i // 16}" for i in range(len(waves))])
    return Lessons(frames, speaker, np.ones(len(waves)), successor)


def test_training_pairs_are_half_successive_a_quarter_of_the_same_and_of_other_speakers(
    waves: list[np.ndarray],
) -> None:
    held = lessons(waves, FOLLOWS)
    first, second, label = draw_pairs(held, seed=(0, 0))
    assert label.mean() == pytest.approx(0.5, abs=0.01)
    yes = label == 1
    assert (FOLLOWS[first[yes]] == second[yes]).all()
    assert (FOLLOWS[first[~yes]] != second[~yes]).all()
    same = held.speaker[first[~yes]] == held.speaker[second[~yes]]
    assert same.mean() == pytest.approx(0.5, abs=0.02)
    assert (first != second).all()


def test_too_few_pairs_are_refused(waves: list[np.ndarray]) -> None:
    with pytest.raises(InputError, match="--train"):
        draw_pairs(lessons(waves, np.full(64, -1)), seed=(0, 0))


def test_the_network_learns_what_goes_on_and_nothing_from_a_shuffled_truth(
    waves: list[np.ndarray], tmp_path: Path
) -> None:
    """In new recordings few pairs score as high as the successive ones; chance is one half."""
    half = RATE // 2
    recordings = [drifting(seed) for seed in range(28)]
    frames = [mel_frames(one[k * half : (k + 1) * half]) for one in recordings for k in range(16)]
    after = np.array([i + 1 if i % 16 < 15 else -1 for i in range(len(frames))])
    learn = 24 * 16
    broken = np.where(after >= 0, np.random.default_rng(1).permutation(len(after)) % learn, -1)
    found = []
    for k, successor in enumerate((after, broken)):
        (tmp_path / str(k)).mkdir()
        speaker = np.array([f"s{i // 64}" for i in range(learn)])
        held = Lessons(frames[:learn], speaker, np.ones(learn), successor[:learn])
        net = train_successor(held, tmp_path / str(k), epochs=12)
        odds = score_pairs(net, frames[learn:])
        found.append(standing(odds, np.where(after < 0, -1, after - learn)[learn:]))
    assert found[0] < 0.3
    assert found[1] > 0.35


def test_training_goes_on_after_a_kill(
    waves: list[np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same weights as of a training that nobody disturbed."""
    from voxrisk.attack import successor_training

    held = lessons(waves, FOLLOWS)
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = train_successor(held, tmp_path / "whole", epochs=3)
    epoch = successor_training._epoch
    done: list[int] = []

    def dies(*args: object, **more: object) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        epoch(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(successor_training, "_epoch", dies)
    with pytest.raises(KeyboardInterrupt):
        train_successor(held, tmp_path / "killed", epochs=3)
    monkeypatch.setattr(successor_training, "_epoch", epoch)
    train_successor(held, tmp_path / "killed", epochs=3)
    again = load_successor(tmp_path / "killed").state_dict()
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again[name]), name
    assert not (tmp_path / "killed" / "checkpoint.pt").exists()
