"""A real Ray cluster of several nodes does what one machine does: the same bytes, whatever dies."""

import contextlib
import functools
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulated_voices import voices
from voxrisk import cluster
from voxrisk.api import measure_crowd
from voxrisk.attack.embed import embed_corpus
from voxrisk.corpus import Utterance, write_audio, write_corpus
from voxrisk.journal import Journal, hash_of, resumable
from voxrisk.protect.run import TIMES, anonymize
from voxrisk.shards import engine, run, spread
from voxrisk.types import InputError

pytest.importorskip("ray", reason="no Ray; pip install 'voxrisk[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files open

STORE = 80 * 2**20
SLOWLY = """
import time

def slowly(samples, *, rate, target, seed):
    time.sleep(0.15)
    return samples[::-1]
"""


def patient(start: Callable[[], Any]) -> Any:
    """Ray gives its parts 30 seconds to start, which beside much other work can be too little."""
    for left in (2, 1, 0):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            if not left:
                pytest.skip(f"this machine is too busy to start Ray: {error}")
    return None


class Nodes:
    """A head without cores and two nodes of one core each, on this machine."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # A node that is gone should be known to be gone in seconds, not in half a minute.
        health = {"health_check_period_ms": 1000, "health_check_failure_threshold": 4}
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        node = {"num_cpus": 1, "object_store_memory": STORE}
        self.cluster = patient(
            lambda: Cluster(True, head_node_args={**head, "_system_config": health})
        )
        self.nodes = [patient(lambda: self.cluster.add_node(**node)) for _ in range(2)]

    def kill_one(self) -> None:
        """As a power cut would."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """The cluster, and the tests of this file inside its engine."""
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


def tree(folder: Path) -> dict[str, str]:
    """A hash of every file, but for the one that tells times."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES
    }


def when(ready: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Do something beside the test as soon as a condition holds."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The work that workers of the cluster do from now on, by its label."""
    labels: list[str] = []
    there = cluster.Crew.run

    def run(crew: cluster.Crew, *args: Any, **options: Any) -> Iterator[Any]:
        labels.append(options["label"])
        return there(crew, *args, **options)

    monkeypatch.setattr(cluster.Crew, "run", run)
    return labels


def test_anonymize_and_embed_give_the_same_bytes(
    nodes: Nodes, speech: list[Utterance], tmp_path: Path
) -> None:
    for name in ("local", "ray"):
        with engine("local") if name == "local" else contextlib.nullcontext():
            rows = anonymize(speech, tmp_path / name / "out", "mcadams", seed=4)
            (tmp_path / name / "vectors").mkdir()
            embed_corpus(rows, "longterm", tmp_path / name / "vectors" / "v.npz")
    assert len(tree(tmp_path / "local")) == len(speech) + 4
    assert tree(tmp_path / "local" / "out") == tree(tmp_path / "ray" / "out")
    assert tree(tmp_path / "local" / "vectors") == tree(tmp_path / "ray" / "vectors")


def test_crowd_metrics_are_the_same_to_the_last_bit(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled, tested = voices(40, 8, tag="a"), voices(40, 8, seed=1, tag="b")
    work = spied(monkeypatch)
    there = measure_crowd(enrolled, tested, L=(1, 3), resamples=50)
    assert set(work) == {"link", "intervals", "single out"}  # all of it was done by workers
    with engine("local"):
        here = measure_crowd(enrolled, tested, L=(1, 3), resamples=50)
    assert len(here.estimates) == 20
    assert here.estimates == there.estimates
    assert here.speakers == there.speakers


def test_results_come_in_order_from_workers_that_live_on(nodes: Nodes) -> None:
    found = list(run(whose, range(12)))
    assert [item for item, _ in found] == list(range(12))
    processes = {process for _, process in found}
    assert len(processes) == 2
    assert {process for _, process in run(whose, range(6))} <= processes
    assert os.getpid() not in processes
    parts = spread(part_of, 20)
    assert len(parts) > 2
    assert list(itertools.chain(*parts)) == list(range(20))


def whose(item: int) -> tuple[int, int]:
    time.sleep(0.05)
    return item, os.getpid()


def part_of(part: slice, threads: int | None) -> list[int]:
    assert threads == 1
    return list(range(part.start, part.stop))


def test_machines_keep_journals_of_their_own_and_all_are_read(nodes: Nodes, tmp_path: Path) -> None:
    """No file system of many machines appends from two of them at once."""
    path = tmp_path / "kept.jsonl"
    first = resumable(double, range(10), key=hash_of, journal=path, batch=1)
    assert first == list(range(0, 20, 2))
    assert path.read_bytes() == b""
    assert len(list(tmp_path.glob("kept.*.jsonl"))) == 2
    assert len(Journal(path).read()) == 10
    with engine("local"):
        assert resumable(fails, range(10), key=hash_of, journal=path) == first


def double(item: int) -> int:
    time.sleep(0.05)
    return 2 * item


def fails(item: int) -> int:
    raise AssertionError("this item was done already")


def test_an_error_of_a_stage_reaches_the_caller_as_it_is(nodes: Nodes) -> None:
    with pytest.raises(InputError) as caught:
        list(run(refuse_odd, [0, 2, 3, 4]))
    assert str(caught.value) == "3 is odd"
    assert "refuse_odd" in caught.value.__notes__[0]  # where it arose, for --debug


def refuse_odd(item: int) -> int:
    if item % 2:
        raise InputError(f"{item} is odd")
    return item


def test_an_item_that_always_kills_its_worker_ends_the_run_with_the_way_out(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "MOST_LOSSES", 2)
    with pytest.raises(InputError, match=r"2 workers were lost.*memory"):
        list(run(dies_at_two, range(3)))


def dies_at_two(item: int) -> int:
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_driver_that_is_killed_and_started_again_goes_on(
    nodes: Nodes, speech: list[Utterance], tmp_path: Path
) -> None:
    folder = speech[0].path.parent
    words = [sys.executable, "-m", "voxrisk", "anonymize", str(folder / "manifest.csv")]
    words += ["--anonymizer", "slowly:slowly", "-o", str(tmp_path / "out")]
    there = [*words, "--engine", "ray"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    driver = subprocess.Popen(there, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "out" / "audio").glob("*.flac"))) < 6:
        assert time.monotonic() < deadline, "the workers did not begin"
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    done = subprocess.run(there, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [counted] = [line for line in done.stderr.splitlines() if "are done already" in line]
    assert 4 <= int(counted.split()[1]) < len(speech)
    words[-1] = str(tmp_path / "here")
    subprocess.run(words, env=environment, check=True, capture_output=True)
    assert tree(tmp_path / "here") == tree(tmp_path / "out")


def test_a_node_killed_in_the_middle_changes_nothing(
    nodes: Nodes,
    speech: list[Utterance],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Half of the workers go, with the work they had in hand; every utterance is done."""
    monkeypatch.syspath_prepend(str(speech[0].path.parent))
    with engine("local"):
        anonymize(speech, tmp_path / "here", "slowly:slowly")
    made = tmp_path / "there" / "audio"
    killer = when(lambda: len(list(made.glob("*.flac"))) >= 6, nodes.kill_one)
    anonymize(speech, tmp_path / "there", "slowly:slowly")
    killer.join()
    assert "a worker was lost" in caplog.text
    assert tree(tmp_path / "here") == tree(tmp_path / "there")


def test_a_machine_that_does_not_see_the_same_is_named(
    speech: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at before the first item is done; here without a cluster, by the worker itself."""
    monkeypatch.chdir(tmp_path)
    path, versions = speech[0].path, cluster._versions()
    right = {"files": [(str(path), path.stat().st_size)], "sign": None, "versions": versions}
    worker = cluster._Worker(str(tmp_path), [], {})
    with cluster._probe(tmp_path) as sign:
        assert worker.sees(**{**right, "sign": sign}) is None
    assert not list(tmp_path.iterdir())
    gone = str(tmp_path / "gone")
    for change, words in (
        ({"files": [(str(path), 5)]}, "u00.wav as it is"),
        ({"sign": (gone + "/.1.part", "1")}, f"the folder {gone}"),
        ({"versions": {**versions, "voxrisk": "0"}}, "install the same"),
    ):
        assert words in str(worker.sees(**{**right, **change}))
    assert gone in str(cluster._Worker(gone, [], {}).sees(**right))


def test_files_are_found_wherever_an_item_holds_them(speech: list[Utterance]) -> None:
    stage = functools.partial(anonymize, speech[:1])
    found = cluster._files_of([stage, [("key", speech[1])], Path("none.wav"), 3])
    assert [Path(path) for path, _ in found] == [row.path for row in speech[:2]]


@pytest.mark.parametrize(
    "text", ["dask", "ray://", "ray,cores=2", "ray,gpu=much", "ray,cpu=-1", "local,gpu=1"]
)
def test_an_engine_that_is_none_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(InputError, match="engine"), engine(text):
        pass
