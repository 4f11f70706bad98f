"""Moonshine's encoder as features: real weights, any length, one vector for each utterance."""

import numpy as np
import pytest

from voxrisk.attack import load_encoder
from voxrisk.attack.encoder import Encoder
from voxrisk.attack.moonshine import PIECE, _pieces
from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def moonshine() -> Encoder:
    from voxrisk.models import model_path

    try:
        model_path("moonshine-base")
    except InputError as error:
        pytest.skip(f"no weights: {error}")
    return load_encoder("moonshine-base", threads=1)


def sound(seconds: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * RATE)) / RATE
    tone = np.sin(2 * np.pi * 150 * time) * (1 + np.sin(2 * np.pi * 4 * time))
    return (0.1 * tone + 0.01 * rng.standard_normal(time.size)).astype(np.float32)


def test_one_vector_for_each_utterance_whatever_stands_beside_it(moonshine: Encoder) -> None:
    short, long = sound(0.12), sound(1.5, seed=1)
    vectors = moonshine.embed([short, long])
    assert vectors.shape == (2, moonshine.dimension) == (2, 832)
    assert np.isfinite(vectors).all()
    assert np.array_equal(vectors[1], moonshine.embed([long])[0])
    assert (vectors[:, 416:] >= 0.0).all()  # deviations


def test_what_is_silent_is_refused(moonshine: Encoder) -> None:
    with pytest.raises(InputError, match="waveform 0: the recording is silent"):
        moonshine.embed([np.zeros(RATE, np.float32)])


def test_long_speech_is_heard_in_pieces_that_leave_nothing_out() -> None:
    wave = sound(2.5 * PIECE)
    pieces = _pieces(wave)
    assert len(pieces) == 3
    assert max(map(len, pieces)) <= PIECE * RATE
    assert np.array_equal(np.concatenate(pieces), wave)
