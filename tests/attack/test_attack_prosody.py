"""Prosody and the long-term spectrum: what they must notice, and what they must not."""

from pathlib import Path

import numpy as np
import pytest

from voxrisk.attack import load_encoder
from voxrisk.attack.embed import embed_corpus
from voxrisk.attack.encoders import encoder_identity
from voxrisk.attack.longterm import longterm
from voxrisk.attack.prosody import PROSODY, prosody
from voxrisk.corpus import Utterance
from voxrisk.corpus.audio import RATE, write_audio
from voxrisk.types import InputError


def spoken(
    *, syllable: float = 0.2, pause: float = 0.4, pitch: float = 120.0, seconds: float = 6.0
) -> np.ndarray:
    """Syllables of a buzz with a falling melody, eight at a time, with pauses between."""
    random = np.random.default_rng(0)
    parts = [np.zeros(RATE // 5)]
    while sum(map(len, parts)) < seconds * RATE:
        for _ in range(8):
            time = np.arange(int(syllable * RATE)) / RATE
            tone = sum(
                np.sin(2 * np.pi * pitch * k * time * (1 - 0.1 * time)) / k for k in (1, 2, 3)
            )
            parts.append(0.2 * tone * np.sin(np.pi * time / syllable) ** 2)
        parts.append(np.zeros(int(pause * RATE)))
    wave = np.concatenate(parts)
    return (wave + 1e-4 * random.standard_normal(wave.size)).astype(np.float32)


def value(wave: np.ndarray, name: str) -> float:
    row = PROSODY[name]
    return float(prosody(wave)[list(PROSODY).index(name)] * row.spread + row.centre)


def test_each_number_says_what_its_row_says() -> None:
    plain = spoken()
    assert value(plain, "pitch") == pytest.approx(np.log2(1.2), abs=0.1)
    assert np.exp(value(plain, "syllable_rate")) == pytest.approx(5.0, rel=0.15)
    assert np.exp(value(plain, "pause_length")) == pytest.approx(0.45, abs=0.1)
    assert value(spoken(pitch=180.0), "pitch") - value(plain, "pitch") == pytest.approx(
        np.log2(1.5), abs=0.05
    )
    assert value(spoken(syllable=0.3), "syllable_rate") < value(plain, "syllable_rate") - 0.3
    assert value(spoken(pause=0.8), "pause_length") > value(plain, "pause_length") + 0.4


def test_the_gain_of_the_recording_is_no_prosody() -> None:
    """Neither is the silence around the speech: both tell how it was recorded and cut."""
    plain, silence = spoken(), np.zeros(RATE // 2, np.float32)
    assert prosody(2.0 * plain) == pytest.approx(prosody(plain), abs=0.05)
    cut = np.concatenate([silence, plain])
    assert np.median(np.abs(prosody(cut) - prosody(plain))) < 0.1
    assert longterm(2.0 * plain)[-5] - longterm(plain)[-5] == pytest.approx(1.0, abs=0.1)  # 6 dB


def test_timbre_is_no_prosody_and_the_room_is_neither() -> None:
    """A filter changes the long-term spectrum far more than the prosody."""
    plain = spoken()
    coloured = np.convolve(plain, [1.0, -0.9])[: len(plain)].astype(np.float32)
    coloured *= plain.std() / coloured.std()
    shift = np.abs(prosody(coloured) - prosody(plain))
    assert np.median(shift) < 0.3
    assert np.abs(longterm(coloured) - longterm(plain)).mean() > 3 * shift.mean()


def test_noise_of_the_room_moves_the_floor() -> None:
    plain = spoken()
    noisy = plain + 3e-3 * np.random.default_rng(1).standard_normal(len(plain)).astype(np.float32)
    assert longterm(noisy)[-4] < longterm(plain)[-4] - 0.5  # speech is less far above the floor


@pytest.mark.parametrize("name", ["prosody", "longterm"])
def test_an_utterance_without_pause_or_voice_still_has_a_vector(name: str) -> None:
    encoder = load_encoder(name)
    noise = np.random.default_rng(0).standard_normal(RATE // 8).astype(np.float32)
    vectors = encoder.embed([0.1 * noise, spoken()])
    assert vectors.shape == (2, encoder.dimension)
    assert np.isfinite(vectors).all()
    assert encoder_identity(name) == encoder.identity
    with pytest.raises(InputError, match="silent"):
        encoder.embed([np.zeros(RATE, np.float32)])


def test_vectors_of_a_corpus_come_in_its_order(tmp_path: Path) -> None:
    rows = []
    for i, pitch in enumerate((220.0, 110.0)):
        path = tmp_path / f"{i}.wav"
        write_audio(path, spoken(pitch=pitch, seconds=2.0), rate=RATE)
        rows.append(Utterance(utterance=str(i), speaker=f"s{i}", path=path))
    found = embed_corpus(rows, "prosody", tmp_path / "prosody.npz", workers=1)
    place = list(PROSODY).index("pitch")
    assert found.utterance.tolist() == ["0", "1"]
    assert found.vectors[0, place] > found.vectors[1, place]
