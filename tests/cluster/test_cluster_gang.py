"""Processes that train together on a cluster make what torchrun's make."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ray_nodes import Nodes, make_room
from voxrisk.cli import app
from voxrisk.cluster import gang
from voxrisk.corpus import Utterance
from voxrisk.shards import engine, together
from voxrisk.types import InputError

pytest.importorskip("ray", reason="no Ray; pip install 'voxrisk[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files open


def test_a_training_on_the_cluster_is_the_training_of_torchrun(
    nodes: Nodes, speech: list[Utterance], tmp_path: Path
) -> None:
    """The same recipe, the same checkpoint, byte for byte: two processes, two nodes."""
    words = ["train", str(speech[0].path.parent / "manifest.csv"), "--recipe", "small"]
    words += ["--epochs", "1", "--batch", "8", "--device", "cpu", "--workers", "1"]
    make_room()
    there = [*words, "-o", str(tmp_path / "there"), "--engine", "ray", "--ranks", "2"]
    done = CliRunner().invoke(app, there)
    assert done.exit_code == 0, done.output
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run(
        [sys.executable, *torchrun, "-m", "voxrisk", *words, "-o", str(tmp_path / "here")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        check=True, capture_output=True,
    )  # fmt: skip
    for name in ("embedding_model.ckpt", "attacker.json"):
        here, far = (tmp_path / place / name for place in ("here", "there"))
        assert here.read_bytes() == far.read_bytes()
    assert "VER_S" in done.output


def test_a_gang_that_loses_a_process_begins_again_and_goes_on(
    nodes: Nodes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_room()
    caplog.set_level("INFO", logger="voxrisk")
    found = together(Counting(tmp_path), 2, shared=tmp_path, label="count")
    assert found == ("0 of 2", 2)  # the first process, and the epoch it came to in two lives
    assert "a process was lost" in caplog.text
    assert "epoch 2 is done" in caplog.text  # what the first says is heard here


class Counting:
    """Two epochs with a file as the checkpoint; the second process dies in its first life."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> tuple[str, int]:
        import signal
        import time

        from voxrisk.progress import log

        rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
        assert int(os.environ["MASTER_PORT"]) > 0
        done = self.folder / "epoch"
        lived = self.folder / f"lived-{rank}"
        if rank == "1":
            if not lived.exists():
                while not done.exists():
                    time.sleep(0.01)
                lived.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return f"{rank} of {size}", 0
        epoch = int(done.read_text()) if done.exists() else 0
        done.write_text(str(epoch + 1))
        while not (self.folder / "lived-1").exists():
            time.sleep(0.01)
        if epoch == 0:
            time.sleep(60)  # as it would wait for the one that is gone
        log.info("epoch %d is done", epoch + 1)
        return f"{rank} of {size}", epoch + 1


def test_an_error_in_one_process_ends_all_and_is_told(nodes: Nodes) -> None:
    make_room()
    with pytest.raises(InputError, match="process 1 cannot"):
        together(refuse, 2, label="work")


def refuse() -> None:
    import time

    if os.environ["RANK"] == "1":
        raise InputError("process 1 cannot")
    time.sleep(60)


def test_a_gang_that_always_dies_is_given_up(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "MOST_GANGS", 1)
    make_room()
    with pytest.raises(InputError, match=r"1 times a process was lost.*memory"):
        together(die, 1, label="work")


def die() -> None:
    os._exit(1)


def test_several_processes_without_a_cluster_are_left_to_torchrun() -> None:
    with engine("local"), pytest.raises(InputError, match="torchrun --nproc-per-node 3"):
        together(die, 3)
    with engine("local"):
        assert together(int, 1) == 0
