"""Whatever dies, nothing is lost and nothing is doubled. The last file: it kills a node."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ray_nodes import Nodes, tree
from voxrisk.cluster import turn
from voxrisk.corpus import Utterance
from voxrisk.protect.run import anonymize
from voxrisk.shards import engine, run
from voxrisk.types import InputError

pytest.importorskip("ray", reason="no Ray; pip install 'voxrisk[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files open


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


def test_an_item_that_always_kills_its_worker_ends_the_run_with_the_way_out(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "MOST_LOSSES", 2)
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
