"""The engine of a cluster: order, errors, journals, GPUs, and machines that do not see the same."""

import functools
import itertools
import os
import time
from pathlib import Path

import pytest

from ray_nodes import Nodes, make_room
from voxrisk.cluster import Cluster, Crew
from voxrisk.cluster.worker import Worker, files_of, own_versions, probe
from voxrisk.corpus import Utterance
from voxrisk.journal import Journal, hash_of, resumable
from voxrisk.protect.run import anonymize
from voxrisk.shards import engine, machine, run, spread, worker_count
from voxrisk.types import InputError

pytest.importorskip("ray", reason="no Ray; pip install 'voxrisk[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray leaves its log files open


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


def test_workers_share_a_gpu_and_are_where_it_is(nodes: Nodes, tmp_path: Path) -> None:
    """One of the nodes has a GPU (in name: there is none here). Quarters of it go to four."""
    make_room()
    with engine("ray,cpu=0.25,gpu=0.25"):
        assert worker_count() == 4
        work = functools.partial(seen_gpu, tmp_path)
        found = list(run(work, range(12), device="cuda"))
        alone = Crew(Cluster(cpu=0.25))  # connected already, so it needs no end
        assert alone.takes("cuda")["num_gpus"] == 1.0  # a whole one, unless told otherwise
        assert (alone.size("cpu"), alone.size("cuda")) == (8, 1)
    assert len({process for process, _, _ in found}) == 4
    assert {(gpu, place) for _, gpu, place in found} == {("0", nodes.of_gpu)}


def seen_gpu(folder: Path, _: int) -> tuple[int, str | None, str]:
    """Who this is, where, and what GPU it sees; not before all four are there."""
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES"), machine()


def test_a_machine_that_does_not_see_the_same_is_named(
    speech: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at before the first item is done; here without a cluster, by the worker itself."""
    monkeypatch.chdir(tmp_path)
    path, mine = speech[0].path, own_versions()
    right = {"files": [(str(path), path.stat().st_size)], "sign": None, "versions": mine}
    worker = Worker(str(tmp_path), [], {})
    with probe(tmp_path) as sign:
        assert worker.sees(**{**right, "sign": sign}) is None
    assert not list(tmp_path.iterdir())
    gone = str(tmp_path / "gone")
    for change, words in (
        ({"files": [(str(path), 5)]}, "u00.wav as it is"),
        ({"sign": (gone + "/.1.part", "1")}, f"the folder {gone}"),
        ({"versions": {**mine, "voxrisk": "0"}}, "install the same"),
    ):
        assert words in str(worker.sees(**{**right, **change}))
    assert gone in str(Worker(gone, [], {}).sees(**right))


def test_files_are_found_wherever_an_item_holds_them(speech: list[Utterance]) -> None:
    stage = functools.partial(anonymize, speech[:1])
    found = files_of([stage, [("key", speech[1])], Path("none.wav"), 3])
    assert [Path(path) for path, _ in found] == [row.path for row in speech[:2]]


@pytest.mark.parametrize(
    "text", ["dask", "ray://", "ray,cores=2", "ray,gpu=much", "ray,cpu=-1", "local,gpu=1"]
)
def test_an_engine_that_is_none_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(InputError, match="engine"), engine(text):
        pass
