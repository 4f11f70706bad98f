"""What every test may ask for: the shared data (or a reason to skip)."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Compilation makes first calls slow, and a failure must be the same for everyone.
settings.register_profile("voxrisk", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("voxrisk")

from voxrisk.files.embeddings import read_embeddings
from voxrisk.types import Embeddings

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
