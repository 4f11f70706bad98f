"""The two anonymizers without any trained model, on real speech."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.protect.mcadams import mcadams
from voxrisk.protect.world import analyse, convert_pitch, pitch, target_statistics, world

Samples = NDArray[np.float32]


@pytest.fixture(scope="session")
def speech(shared: Path) -> dict[str, list[Samples]]:
    """Three utterances of a man (61) and of a woman (121)."""
    rows = read_corpus(shared / "librispeech_eval")
    return {
        speaker: [read_audio(row) for row in rows if row.speaker == speaker][:3]
        for speaker in ("61", "121")
    }


def _decibel(error: Samples, signal: Samples) -> float:
    return float(20 * np.log10(np.linalg.norm(error) / np.linalg.norm(signal)))


def test_mcadams_with_alpha_1_returns_the_input(speech: dict[str, list[Samples]]) -> None:
    for samples in speech["61"] + speech["121"]:
        assert _decibel(mcadams(samples, alpha=1.0) - samples, samples) < -40


def test_mcadams_moves_a_formant_to_its_angle_to_the_power_of_alpha() -> None:
    """One resonance at φ = 0.5 rad, α = 0.8: it must come out at 0.5^0.8 = 0.574 rad."""
    noise = np.random.default_rng(0).normal(0, 0.1, 32_000)
    radius, angle = 0.98, 0.5
    samples = np.zeros(32_000)
    for t in range(2, 32_000):
        back = 2 * radius * np.cos(angle) * samples[t - 1] - radius**2 * samples[t - 2]
        samples[t] = noise[t] + back
    out = mcadams((samples * 0.05).astype(np.float32), alpha=0.8)
    frames = out[: 32_000 // 512 * 512].reshape(-1, 512) * np.hanning(512)
    spectrum = np.mean(np.abs(np.fft.rfft(frames)) ** 2, axis=0)
    assert np.argmax(spectrum) * 2 * np.pi / 512 == pytest.approx(0.5**0.8, abs=0.02)


def test_mcadams_does_not_click_at_frame_borders(speech: dict[str, list[Samples]]) -> None:
    """High-frequency energy does not depend on the place within the frame (160 samples apart)."""
    samples = np.concatenate(speech["61"])
    out = mcadams(samples, alpha=0.7)
    sharp = np.diff(out, 4) ** 2
    by_place = np.median(sharp[: len(sharp) // 160 * 160].reshape(-1, 160), axis=0)
    assert by_place.max() < 1.5 * np.median(by_place)


def test_mcadams_keeps_length_and_loudness(speech: dict[str, list[Samples]]) -> None:
    samples = speech["121"][0][:10_001]
    out = mcadams(samples, alpha=0.6)
    assert len(out) == len(samples)
    assert np.linalg.norm(out) == pytest.approx(np.linalg.norm(samples), rel=1e-3)


def test_mcadams_in_blocks_is_the_same(
    speech: dict[str, list[Samples]], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = speech["61"][0]
    whole = mcadams(samples, alpha=0.8)
    monkeypatch.setattr("voxrisk.protect.mcadams.BLOCK", 17)
    np.testing.assert_allclose(mcadams(samples, alpha=0.8), whole, atol=1e-5)


def test_mcadams_refuses_a_negative_exponent() -> None:
    with pytest.raises(ValueError, match="alpha is -1"):
        mcadams(np.zeros(10, np.float32), alpha=-1)


def test_world_moves_the_pitch_of_a_man_to_that_of_a_woman(
    speech: dict[str, list[Samples]],
) -> None:
    woman = target_statistics(speech["121"])
    man = speech["61"][1]
    out = world(man, woman)
    assert len(out) == len(man)
    before, after = pitch(man), pitch(out)
    assert np.median(before[before > 0]) < 130
    assert np.median(after[after > 0]) == pytest.approx(np.exp(woman.log_f0[0]), rel=0.1)
    both = (before > 0) & (after > 0)
    assert np.corrcoef(np.log(before[both]), np.log(after[both]))[0, 1] > 0.7


def test_world_keeps_voiced_and_unvoiced(speech: dict[str, list[Samples]]) -> None:
    man = speech["61"][1]
    voiced = analyse(man).f0 > 0
    again = analyse(world(man, target_statistics(speech["121"]))).f0 > 0
    assert np.mean(voiced == again) > 0.9


def test_pitch_conversion_moves_mean_and_spread_and_leaves_unvoiced_alone() -> None:
    f0 = np.array([0, 100, 110, 0, 120, 130.0])
    log = np.log(f0[f0 > 0])
    out = convert_pitch(f0, (log.mean(), log.std()), (np.log(200), 0.2))
    assert np.array_equal(out == 0, f0 == 0)
    assert np.log(out[out > 0]).mean() == pytest.approx(np.log(200))
    assert np.log(out[out > 0]).std() == pytest.approx(0.2)


def test_world_needs_no_setuptools() -> None:
    """Pyworld's own import asks ``pkg_resources``, which setuptools 82 does not have any more."""
    code = (
        "import sys; sys.modules['pkg_resources'] = None\n"
        "import numpy as np\n"
        "from voxrisk.protect.world import pitch\n"
        "from voxrisk.utility.pitch import track_pitch\n"
        "tone = np.sin(np.arange(8000) * 2 * np.pi * 150 / 16000).astype(np.float32)\n"
        "print(round(float(np.median(pitch(tone)))), round(float(np.median(track_pitch(tone)))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["150", "150"]
