"""One cluster for the tests of a file: to start it takes longer than most of them."""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from ray_nodes import Nodes
from voxrisk.corpus import Utterance, write_audio, write_corpus
from voxrisk.shards import engine

SLOWLY = """
import time

def slowly(samples, *, rate, target, seed):
    time.sleep(0.15)
    return samples[::-1]
"""


# Not longer than a file: what comes after in the same process must not run on the cluster.
@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """The cluster, and the tests of a file inside its engine."""
    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing of a test is reported anywhere
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    made = Nodes()
    os.environ["RAY_ADDRESS"] = made.cluster.address
    with engine("ray"):
        yield made
    os.environ.clear()
    os.environ.update(before)
    made.cluster.shutdown()


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> list[Utterance]:
    """24 short utterances of four voices: hums with overtones, each a little different."""
    folder = tmp_path_factory.mktemp("speech")
    rng, time_ = np.random.default_rng(0), np.arange(16_000) / 16_000
    rows = []
    for k in range(24):
        pitch = 90 + 25 * (k % 4) + rng.uniform(-3, 3)
        wave = sum(np.sin(2 * np.pi * h * pitch * time_) / h for h in range(1, 20))
        wave = 0.1 * wave + 0.01 * rng.standard_normal(time_.size)
        path = folder / f"u{k:02d}.wav"
        write_audio(path, wave.astype(np.float32), rate=16_000)
        rows.append(Utterance(f"u{k:02d}", path, f"s{k % 4}", duration=1.0))
    write_corpus(folder / "manifest.csv", rows)
    (folder / "slowly.py").write_text(SLOWLY)
    return rows
