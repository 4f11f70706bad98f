"""What every test may ask for: the shared data (or a reason to skip)."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from voxrisk.files.embeddings import read_embeddings
from voxrisk.types import Embeddings

# Two files of this name cannot both be read for examples in docstrings.
collect_ignore_glob = ["*conftest.py"]

# Compilation makes first calls slow, and a failure must be the same for everyone.
settings.register_profile("voxrisk", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("voxrisk")

# Behind nohup, or as a background job, Ctrl-C is ignored, also by every program that a test starts:
# tests that send it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and (
    threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Side by side, each process of tests keeps to a core of its own: whatever it starts would else take
# all cores for itself, load every model once for each, and get in the way of the others.
if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

# The longest files begin first (`--no-loadscope-reorder`), or one core would wait for the last.
LONGEST = (
    "pipeline/test_sabotage.py",
    "pipeline/test_evaluate.py",
    "cluster/test_cluster_gang.py",
    "utility/test_utility.py",
    "tests/test_kills.py",
    "attack/test_attack_train.py",
    "pipeline/test_slicing_study.py",
    "report/test_report.py",
    "pipeline/test_leaks.py",
    "pipeline/test_flow.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest files to the front; all others stay where they are."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((i for i, end in enumerate(LONGEST) if path.endswith(end)), len(LONGEST))

    items.sort(key=place)


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
