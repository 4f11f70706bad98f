"""What every test may ask for: the shared data (or a reason to skip)."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from voxrisk.files.embeddings import read_embeddings
from voxrisk.types import Embeddings

# Compilation makes first calls slow, and a failure must be the same for everyone.
settings.register_profile("voxrisk", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("voxrisk")

SHARED = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data: real speech, real scores, published figures."""
    if not (SHARED / "data").is_dir():
        pytest.skip(
            f"no shared data at {SHARED}; set VOXRISK_SHARED to the folder that holds data/"
        )
    return SHARED / "data"


@pytest.fixture(scope="session")
def golden(shared: Path) -> Path:
    """Outputs of real systems with published figures."""
    return shared / "golden"


@pytest.fixture(scope="session")
def golden_ecapa(golden: Path) -> Embeddings:
    """192-d ECAPA embeddings of LibriSpeech test-clean: 40 speakers, 2,620 utterances."""
    return read_embeddings(golden / "librispeech_testclean_ecapa")


@pytest.fixture(scope="session")
def golden_x_vectors(golden: Path) -> Callable[..., Embeddings]:
    """x-vectors of VoicePrivacy 2020, LibriSpeech test, by file name (``*`` joins both genders).

    ``of`` names a set whose speakers alone are kept.
    """
    folder = golden / "vpc2020_libri_test" / "xvectors"

    def read(name: str, of: str | None = None) -> Embeddings:
        parts = [np.load(path) for path in sorted(folder.glob(f"{name}.npz"))]
        utterance = np.concatenate([part["utt"] for part in parts])
        vectors = np.concatenate([part["x"] for part in parts])
        speaker = np.array([u.split("-")[0] for u in utterance])
        keep = np.isin(speaker, read(of).speaker) if of else np.ones(speaker.size, bool)
        return Embeddings(utterance[keep], speaker[keep], vectors[keep], name)

    return read
