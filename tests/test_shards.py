"""The engine behind every stage: order, errors, and workers that end with their parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from voxrisk.shards import kept_workers, per_batch, run
from voxrisk.types import InputError


def double(item: int) -> int:
    if item < 0:
        raise ValueError(f"{item} is negative")
    return 2 * item


@pytest.mark.parametrize(("workers", "threads"), [(1, False), (2, False), (2, True)])
def test_results_come_in_order_and_errors_as_they_are(workers: int, threads: bool) -> None:
    assert list(run(double, range(7), workers=workers, threads=threads)) == list(range(0, 14, 2))
    with pytest.raises(ValueError, match="-1 is negative"):
        list(run(double, [1, -1, 2], workers=workers, threads=threads))


def whose(item: int) -> int:
    time.sleep(0.2)
    return os.getpid()


def test_workers_live_from_stage_to_stage_where_they_are_kept() -> None:
    apart = [set(run(whose, range(4), workers=2)) for _ in range(2)]
    assert apart[0].isdisjoint(apart[1])
    with kept_workers():
        first = set(run(whose, range(4), workers=2))
        with kept_workers():
            second = set(run(whose, range(4), workers=2))
        third = set(run(whose, range(4), workers=2))
    assert first == second == third
    assert first.isdisjoint(run(whose, range(4), workers=2))


def test_a_killed_worker_is_replaced_where_workers_are_kept() -> None:
    with kept_workers():
        with pytest.raises(InputError, match="was killed"):
            list(run(dies, range(6), workers=2))
        assert list(run(double, range(3), workers=2)) == [0, 2, 4]


def threads_of(name: str) -> str | None:
    """What a library of matrix products would ask for."""
    return os.environ.get(name)


def test_workers_compute_with_one_thread_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NumPy would take all cores in each of them."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"]
    assert list(run(threads_of, names, workers=2)) == ["1", "3"]
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def dies(item: int) -> int:
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory runs out
    return item


def test_a_killed_worker_is_named_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"count: one of 2 worker .*memory.*--workers 1"):
        list(run(dies, range(6), workers=2, label="count"))


def test_a_gpu_is_fed_by_one_process_and_batches_leave_turns_for_all() -> None:
    assert list(run(lambda _: os.getpid(), [1, 2], workers=2, device="cuda:0")) == [os.getpid()] * 2
    assert per_batch(1, most=8, workers=2) == 1
    assert per_batch(0, most=8, workers=2) == 1
    assert per_batch(9, most=8, workers=1) == 3
    assert per_batch(9_000, most=8, workers=2) == 8


SCRIPT = """
import os, sys, time
from pathlib import Path
from voxrisk.shards import run

def wait(item):
    (Path(sys.argv[1]) / str(os.getpid())).touch()
    time.sleep(60)

if __name__ == "__main__":
    list(run(wait, [1, 2, 3, 4], workers=2))
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "pids").mkdir()
    parent = subprocess.Popen([sys.executable, tmp_path / "script.py", tmp_path / "pids"])
    deadline = time.monotonic() + 60
    while len(pids := list((tmp_path / "pids").iterdir())) < 2:
        assert time.monotonic() < deadline, "the workers did not start"
        time.sleep(0.05)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while any(Path("/proc", pid.name).is_dir() and _alive(pid.name) for pid in pids):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.05)


def _alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
