"""PLDA: the score is the likelihood ratio of its model, and training finds the model."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from voxrisk.measure.crowd import crowd_of_sets
from voxrisk.measure.plda import Plda, train_plda
from voxrisk.measure.population import Protocol
from voxrisk.types import Embeddings, InputError


def test_the_inner_product_is_the_log_likelihood_ratio() -> None:
    """Against the densities of the two-covariance model, written out."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((3, 3))
    within, spread = mix @ mix.T + np.eye(3), rng.standard_normal((3, 3))
    between, mean = spread @ spread.T, rng.standard_normal(3)
    from scipy.linalg import eigh

    psi, project = eigh(between, within)
    model = Plda(mean, project, psi)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    left, right = model.maps(x, y)
    total = between + within
    both = np.block([[total, between], [between, total]])
    for i in range(4):
        for j in range(5):
            ratio = (
                multivariate_normal(np.tile(mean, 2), both).logpdf(np.concatenate([x[i], y[j]]))
                - multivariate_normal(mean, total).logpdf(x[i])
                - multivariate_normal(mean, total).logpdf(y[j])
            )
            assert left[i] @ right[j] == pytest.approx(ratio, rel=1e-9)


def test_training_finds_the_covariances_that_made_the_data() -> None:
    """Vectors far from the origin keep their shape when scaled to length one."""
    rng = np.random.default_rng(1)
    n, d = 1500, 4
    count = rng.integers(2, 9, n)
    between, within = np.diag([4.0, 2.0, 1.0, 0.0]) * 1e-6, np.diag([1.0, 1.0, 2.0, 1.0]) * 1e-6
    voice = rng.multivariate_normal(np.zeros(d), between, n)
    vectors = np.repeat(voice, count, 0) + rng.multivariate_normal(np.zeros(d), within, count.sum())
    # One more coordinate of length one: scaling then changes nothing to first order.
    vectors = np.column_stack([vectors, np.ones(len(vectors))])
    speaker = np.repeat([f"s{i}" for i in range(n)], count)
    names = np.array([f"u{i}" for i in range(len(vectors))])
    model = train_plda(Embeddings(names, speaker, vectors, "simulated"), iterations=50)
    # Ratios of between to within variance; the fifth coordinate is constant and means nothing.
    for truth in (0.5, 2.0, 4.0):
        assert np.abs(model.between / truth - 1).min() < 0.1
    assert model.between.min() < 0.05


def test_plda_tells_real_voices_apart(golden_ecapa) -> None:
    """Trained on 20 speakers of LibriSpeech, it links the other 20."""
    first = np.isin(golden_ecapa.speaker, np.unique(golden_ecapa.speaker)[:20])

    def part(keep):
        e = golden_ecapa
        return Embeddings(e.utterance[keep], e.speaker[keep], e.vectors[keep], "part")

    model = train_plda(part(first), iterations=5)
    found = crowd_of_sets(
        part(~first), scorer=model, protocol=Protocol(lengths=(1,), sizes=(5,), resamples=0)
    )
    assert found.curve("linkability", 1)[-1].value >= 0.9
    assert found.curve("rocch_eer", 1)[-1].value < 0.05


def test_too_little_speech_to_learn_from_is_refused() -> None:
    e = Embeddings(np.array(["a", "b"]), np.array(["s", "t"]), np.eye(2), "two.npz")
    with pytest.raises(InputError, match=r"two.npz: PLDA learns from several speakers"):
        train_plda(e)
