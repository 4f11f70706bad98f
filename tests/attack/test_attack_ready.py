"""Ready encoders of other publishers: our code gives what their figures say."""

import numpy as np
import pytest
import torch

from voxrisk.attack import ENCODERS, load_encoder
from voxrisk.attack.ge2e import FRAMES, windows
from voxrisk.attack.threed_speaker import CamPlus, ERes2Net
from voxrisk.corpus import read_audio, read_corpus
from voxrisk.models import is_cached
from voxrisk.types import InputError

# Mean cosine within and between speakers, of five speakers of librispeech_eval with two utterances
# of 8 s from different chapters. Tried with the publishers' own code on other utterances of
# LibriSpeech, within one chapter: .78/.04, .77/.06 and .88/.53.
COSINES = {"campplus": (0.72, 0.05), "eres2net-voxceleb": (0.66, 0.09), "ge2e": (0.82, 0.52)}


@pytest.mark.parametrize("name", COSINES)
def test_a_ready_encoder_tells_people_apart_as_its_publisher_says(name, shared) -> None:
    if not is_cached(name):
        pytest.skip(f"the model {name} is not in the cache: voxrisk models fetch {name}")
    people: dict[str, list] = {}
    for row in read_corpus(shared / "librispeech_eval"):
        people.setdefault(row.speaker, []).append(row)
    chosen = [row for who in list(people)[:20:4] for row in people[who][:9:8]]
    encoder = load_encoder(name, device="cpu", threads=1)
    vectors = encoder.embed([read_audio(row)[: 8 * 16_000] for row in chosen])
    assert vectors.shape == (10, encoder.dimension)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    speaker = np.array([row.speaker for row in chosen])
    same = speaker[:, None] == speaker
    cosines = unit @ unit.T
    within = cosines[same & ~np.eye(10, dtype=bool)].mean()
    assert (within, cosines[~same].mean()) == pytest.approx(COSINES[name], abs=0.01)


@pytest.mark.parametrize("network", [CamPlus, ERes2Net])
def test_a_network_gives_one_vector_whatever_the_length(network) -> None:
    model = network().eval()
    with torch.inference_mode():
        for frames in (30, 100, 257):
            assert model(torch.randn(1, 80, frames)).shape == (1, 192)


@pytest.mark.parametrize(("seconds", "count"), [(0.2, 1), (1.6, 1), (2.5, 2), (5.0, 5)])
def test_windows_cover_speech_and_are_not_mostly_padding(seconds: float, count: int) -> None:
    wave = np.random.default_rng(0).standard_normal(int(seconds * 16_000)).astype(np.float32)
    found = windows(0.01 * wave)
    assert len(found) == count
    assert {window.shape for window in found} == {(FRAMES, 40)}


def test_the_mel_bands_of_ge2e_are_those_of_slaney() -> None:
    """A tone of 1 kHz is loudest in the band whose centre is nearest to it."""
    tone = np.sin(2 * np.pi * 1000.0 * np.arange(32_000) / 16_000).astype(np.float32)
    assert int(np.argmax(windows(tone)[0][50])) == 13


def test_weights_of_something_else_are_refused(tmp_path) -> None:
    from voxrisk.attack.ge2e import Ge2eEncoder
    from voxrisk.attack.threed_speaker import TorchEncoder

    torch.save({"weight": torch.zeros(3)}, tmp_path / "x.pt")
    with pytest.raises(InputError, match="fit neither"):
        TorchEncoder("x", tmp_path / "x.pt")
    with pytest.raises(InputError, match="no GE2E encoder"):
        Ge2eEncoder("x", tmp_path / "x.pt")
    assert set(COSINES) <= set(ENCODERS)


def test_the_state_of_a_training_is_read_and_is_no_encoder(tmp_path) -> None:
    """It holds texts and tables too; refused, every training that was killed would begin again."""
    from voxrisk.attack.ecapa_encoder import read_checkpoint, read_tensors

    path = tmp_path / "checkpoint.pt"
    torch.save({"facts": "{}", "model": {"weight": torch.zeros(2)}, "curves": []}, path)
    assert set(read_checkpoint(path)) == {"facts", "model", "curves"}
    with pytest.raises(InputError, match="no named tensors"):
        read_tensors(path)
