"""Made-up embeddings of speakers, for tests of the crowd."""

import numpy as np

from voxrisk.types import Embeddings


def voices(n: int = 30, utterances: int = 20, strength: float = 0.6, seed: int = 0, tag: str = "u"):
    """Made-up embeddings: ``strength`` says how much of a speaker is in each utterance."""
    rng = np.random.default_rng(seed)
    centre = np.random.default_rng(99).standard_normal((n, 16))
    vectors = strength * np.repeat(centre, utterances, 0) + rng.standard_normal(
        (n * utterances, 16)
    )
    speaker = np.repeat([f"s{i:02d}" for i in range(n)], utterances)
    utterance = np.array([f"{s}-{tag}{k}" for k, s in enumerate(speaker)])
    return Embeddings(utterance, speaker, vectors.astype(np.float32), f"{tag}.npz")
