"""The workers of one command, and the connection to the cluster they are on."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from voxrisk.cluster.engines import Cluster
from voxrisk.cluster.turn import Turn
from voxrisk.cluster.worker import Worker, probe
from voxrisk.progress import log
from voxrisk.types import InputError, cores, require

START_TRIES = 3  # Ray gives its own parts 30 seconds to be there
GIGABYTE = 2**30


class Crew:
    """The workers of one command on one cluster. They start when there is work."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._workers: list[Any] = []
        self.device = "cpu"
        self._ours = False
        self._ray: Any = None

    @property
    def ray(self) -> Any:
        """The module ``ray``, connected."""
        if self._ray is None:
            self._ray = require("ray", extra="ray")
            if not self._ray.is_initialized():
                self._connect()
                self._ours = True
        return self._ray

    def _connect(self) -> None:
        # What speech is worked on here concerns nobody; Ray asks this before it reports anything.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray lets its workers give way to everything else; ours are what somebody waits for.
        os.environ.setdefault("RAY_worker_niceness", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        address = self.cluster.address
        try:
            if address is not None:
                self._ray.init(address, **quiet)
                return
            try:
                self._ray.init("auto", **quiet)
            except ConnectionError:
                if os.environ.get("RAY_ADDRESS"):
                    raise
                log.info("ray: no cluster runs here; one is started on this machine")
                self._start(num_cpus=cores(), include_dashboard=False, **quiet)
        except Exception as error:  # of many kinds: network, versions, a start that took too long
            where = address or os.environ.get("RAY_ADDRESS") or "this machine"
            raise InputError(
                f"no Ray cluster answers at {where} ({error}); start one with `ray start --head`, "
                "or give --engine ray://host:10001"
            ) from error

    def _start(self, **settings: Any) -> None:
        """Start Ray here; on a machine that is very busy it may need more than one try."""
        for left in reversed(range(START_TRIES)):
            try:
                self._ray.init("local", **settings)
                return
            except Exception as error:
                self._ray.shutdown()
                if not left or "timed out" not in str(error).lower():
                    raise

    def size(self, device: str = "cpu") -> int:
        """How many workers the cluster has room for as it is now, at least 1."""
        room = self.ray.cluster_resources()
        counts = [room.get("CPU", 0.0) / self.cluster.cpu if self.cluster.cpu else float("inf")]
        if gpu := self.gpu(device):
            counts.append(room.get("GPU", 0.0) / gpu)
        if self.cluster.memory:
            counts.append(room.get("memory", 0.0) / (self.cluster.memory * GIGABYTE))
        most = min(counts)
        return max(1, int(most + 1e-9)) if most < float("inf") else os.cpu_count() or 1

    def gpu(self, device: str) -> float:
        """GPUs of one worker of a stage that computes on ``device``."""
        return self.cluster.gpu or (1.0 if device.startswith("cuda") else 0.0)

    def run(
        self,
        stage: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        workers: int,
        device: str = "cpu",
        shared: Path | None = None,
        label: str = "",
    ) -> Iterator[Any]:
        """``stage(item)`` of every item in their order; see :func:`voxrisk.shards.run`."""
        if self.gpu(self.device) != self.gpu(device):
            self.dismiss()  # or the old ones would keep the cores that the new ones wait for
        self.device = device
        with probe(shared) as sign:
            turn = Turn(self, stage, items, workers, label or "work", sign)
            whole = False
            try:
                yield from turn.results()
                whole = True
            finally:
                if not whole:
                    self.dismiss()  # they would go on with work that nobody wants

    def hire(self, count: int) -> list[Any]:
        """So many workers: those that live, and new ones, which begin when Ray finds room."""
        kind = self.ray.remote(Worker).options(
            **self.takes(self.device), scheduling_strategy="SPREAD"
        )
        while len(self._workers) < count:
            self._workers.append(kind.remote(*self.greeting()))
        return self._workers[:count]

    def takes(self, device: str) -> dict[str, Any]:
        """What one worker of a stage on ``device`` takes of the cluster, in Ray's words."""
        memory = {"memory": int(self.cluster.memory * GIGABYTE)} if self.cluster.memory else {}
        return {"num_cpus": self.cluster.cpu, "num_gpus": self.gpu(device), **memory}

    def greeting(self) -> tuple[str, list[str], dict[str, str]]:
        """What a worker is told when it begins: folder, places of modules, settings."""
        settings = {k: v for k, v in os.environ.items() if k.startswith("VOXRISK_")}
        return str(Path.cwd()), sys.path, settings

    def lose(self, worker: Any) -> None:
        """Forget a worker that is gone, and end it if it is not."""
        if worker in self._workers:
            self._workers.remove(worker)
            self._end(worker)

    def dismiss(self) -> None:
        """End all workers."""
        for worker in self._workers:
            self._end(worker)
        self._workers.clear()

    def _end(self, worker: Any) -> None:
        with contextlib.suppress(Exception):  # it may have ended by itself, or its machine
            self.ray.kill(worker)

    def close(self) -> None:
        """End all workers, and the connection if it was made here."""
        if self._ray is not None and self._ray.is_initialized():
            self.dismiss()
            if self._ours:
                self._ray.shutdown()
