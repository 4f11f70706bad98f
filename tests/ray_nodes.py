"""A real Ray cluster of several nodes on this machine, and what tests on it share."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from voxrisk import shards
from voxrisk.cluster import Crew
from voxrisk.protect.run import TIMES

STORE = 80 * 2**20


def patient(start: Callable[[], Any]) -> Any:
    """Ray gives its parts 30 seconds to start, which beside much other work can be too little."""
    for left in (2, 1, 0):
        try:
            return start()
        except Exception as error:
            if "timed out" not in str(error).lower():
                raise
            if not left:
                pytest.skip(f"this machine is too busy to start Ray: {error}")
    return None


class Nodes:
    """A head without cores and two nodes of one core each; one of them claims a GPU."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # A node that is gone should be known to be gone in seconds, not in half a minute.
        health = {"health_check_period_ms": 1000, "health_check_failure_threshold": 4}
        # Nobody reads logs or grows this cluster: fewer processes begin sooner.
        spare = {"object_store_memory": STORE, "include_log_monitor": False}
        head = {"num_cpus": 0, "include_dashboard": False, "no_monitor": True, **spare}
        node = {"num_cpus": 1, **spare}
        self.cluster = patient(
            lambda: Cluster(True, head_node_args={**head, "_system_config": health})
        )
        self.nodes = [patient(lambda: self.cluster.add_node(**node, num_gpus=1))]
        self.nodes.append(patient(lambda: self.cluster.add_node(**node)))

    @property
    def of_gpu(self) -> str:
        """The name of the node with the GPU, as workers know it."""
        return str(self.nodes[0].node_id)[:12]

    def kill_one(self) -> None:
        """As a power cut would."""
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)


def make_room() -> None:
    """End the workers of the tests before, which would keep the cores that others wait for."""
    crew = shards._CREW.get()
    if crew is not None:
        crew.dismiss()


def tree(folder: Path) -> dict[str, str]:
    """A hash of every file, but for the one that tells times."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES
    }


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The work that workers of the cluster do from now on, by its label."""
    labels: list[str] = []
    there = Crew.run

    def run(crew: Crew, *args: Any, **options: Any) -> Iterator[Any]:
        labels.append(options["label"])
        return there(crew, *args, **options)

    monkeypatch.setattr(Crew, "run", run)
    return labels
