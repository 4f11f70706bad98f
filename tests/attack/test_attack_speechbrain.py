"""Differential tests against SpeechBrain's own classes.

SpeechBrain imports torchaudio whatever it needs of it, and torchaudio's builds do not load beside a
torch for CPUs; so an empty module stands in for it. Without SpeechBrain these tests are skipped
(``pip install --no-deps speechbrain hyperpyyaml ruamel.yaml``).
"""

import importlib.machinery
import sys
import types
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hyperpyyaml")

from voxrisk.attack.ecapa import Ecapa  # noqa: E402
from voxrisk.attack.features import filter_banks  # noqa: E402
from voxrisk.attack.heads import CosineHead, aam_loss  # noqa: E402
from voxrisk.attack.recipes import VPC24, cyclic_rate  # noqa: E402
from voxrisk.attack.sizes import SIZES, EcapaSize  # noqa: E402
from voxrisk.corpus import read_audio, read_corpus  # noqa: E402


@pytest.fixture(scope="module")
def speechbrain():
    before = set(sys.modules)
    if "torchaudio" not in before:
        for name in ("torchaudio", "torchaudio.transforms", "torchaudio.functional"):
            module = types.ModuleType(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
            module.__version__ = "0"
            module.list_audio_backends = lambda: ["soundfile"]
            sys.modules[name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("speechbrain")
        import speechbrain.lobes.features
        import speechbrain.lobes.models.ECAPA_TDNN
        import speechbrain.nnet.losses
        import speechbrain.nnet.schedulers  # noqa: F401
    yield package
    # Its lazy modules raise when others look through sys.modules, as Hypothesis does.
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("speechbrain", "torchaudio"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def waves(shared):
    rows = read_corpus(shared / "librispeech_eval")[:3]
    return torch.from_numpy(np.stack([read_audio(row)[:40_000] for row in rows]))


def test_filter_banks_equal_speechbrains_fbank(speechbrain, waves):
    theirs = speechbrain.lobes.features.Fbank(n_mels=80)(waves)
    theirs = theirs - theirs.mean(dim=1, keepdim=True)
    torch.testing.assert_close(filter_banks(waves), theirs.transpose(1, 2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", [SIZES["small"], EcapaSize(32, attention=16, squeeze=24)])
def test_ecapa_loads_speechbrains_weights_and_gives_its_vectors_to_1e_4(speechbrain, waves, size):
    channels = [size.channels] * 4 + [3 * size.channels]
    torch.manual_seed(1)
    theirs = speechbrain.lobes.models.ECAPA_TDNN.ECAPA_TDNN(
        80,
        channels=channels,
        attention_channels=size.attention,
        se_channels=size.squeeze,
        lin_neurons=size.embedding,
    )
    ours = Ecapa(size)
    features = filter_banks(waves)
    for mode in (True, False):  # in training first, so that running statistics are not trivial
        ours.load_state_dict(theirs.state_dict())
        expected = theirs.train(mode)(features.transpose(1, 2))[:, 0]
        found = ours.train(mode)(features)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, atol=1e-4, rtol=1e-4)


def test_aam_loss_and_its_gradient_equal_speechbrains(speechbrain):
    torch.manual_seed(2)
    losses = speechbrain.nnet.losses
    theirs = losses.LogSoftmaxWrapper(losses.AdditiveAngularMargin(margin=0.2, scale=30))
    label = torch.randint(0, 7, (64,))
    cosine = (2 * torch.rand(64, 7) - 1).requires_grad_()
    # Some crops lie beyond π − m, where the straight line goes on.
    cosine.data[:8].scatter_(1, label[:8, None], -0.995)
    expected = theirs(cosine.unsqueeze(1), label.unsqueeze(1))
    (gradient,) = torch.autograd.grad(expected, cosine)
    found = aam_loss(cosine, label, margin=0.2, scale=30.0)
    (ours,) = torch.autograd.grad(found, cosine)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours, gradient)


def test_head_equals_speechbrains_classifier(speechbrain):
    theirs = speechbrain.lobes.models.ECAPA_TDNN.Classifier(12, out_neurons=5)
    ours = CosineHead(12, 5)
    ours.load_state_dict(theirs.state_dict())
    vectors = torch.randn(4, 12)
    torch.testing.assert_close(ours(vectors), theirs(vectors[:, None])[:, 0])


def test_cyclic_rate_equals_speechbrains_scheduler(speechbrain):
    theirs = speechbrain.nnet.schedulers.CyclicLRScheduler(
        base_lr=VPC24.base_rate, max_lr=VPC24.max_rate, step_size=VPC24.step_size
    )
    for step in (0, 1, 64_999, 65_000, 100_000, 130_000, 200_001):
        theirs.clr_iterations = step
        found = cyclic_rate(step, recipe=VPC24, steps=4_000)
        assert found == pytest.approx(theirs.clr(step), rel=1e-6, abs=1e-12)
