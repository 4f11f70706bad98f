"""Ray behind :mod:`voxrisk.shards`: the same stages, on every machine of a cluster.

Ray places the workers, starts others where a machine is lost, and moves what they need. A worker is
a process (a Ray actor) that lives through the whole command, so a model is loaded once in each.
What is here hands out the items, gives an item of a lost worker to another one, and puts results
into the order of the items. Workers write their results to files themselves, as they do on one
machine, so all machines must see the same folders under the same names: this is looked at before
the first item is done.
"""

import collections
import contextlib
import dataclasses
import functools
import os
import platform
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from voxrisk.progress import log
from voxrisk.types import InputError, require

AHEAD = 2  # items a worker has in hand: the next is there when one is done
MOST_LOSSES = 4  # workers that one item may take with it
START_TRIES = 3  # Ray gives its own parts 30 seconds to be there
SILENCE_SECONDS = 30.0
GIGABYTE = 2**30
SHARE = (
    "all machines of a cluster must see the same folders under the same names (NFS, Lustre, a "
    "mounted bucket); see docs/scaling.md"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Where the cluster is, and what one worker takes of it.

    Attributes:
        address: ``ray://host:port``; None takes the cluster that this machine belongs to
            (``RAY_ADDRESS`` or ``ray start``) or, where there is none, this machine alone.
        cpu: Cores of each worker.
        gpu: GPUs of each worker; a fraction lets several share one.
        memory: Gigabytes that Ray sets aside for each worker; None sets nothing aside.
    """

    address: str | None = None
    cpu: float = 1.0
    gpu: float = 0.0
    memory: float | None = None


def read_engine(text: str) -> Cluster | None:
    """What ``--engine`` says; None is this machine, without Ray.

    >>> read_engine("local")
    >>> read_engine("ray://head:10001,gpu=0.25")
    Cluster(address='ray://head:10001', cpu=1.0, gpu=0.25, memory=None)
    """
    name, *settings = text.strip().split(",")
    if name == "local" and not settings:
        return None
    if name != "ray" and not (name.startswith("ray://") and name != "ray://"):
        raise InputError(
            f"engine {text!r}: choose local, ray or ray://host:port; a worker takes one core "
            "unless the engine says more, as in ray,cpu=2,gpu=0.5,memory=4"
        )
    chosen: dict[str, float] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            chosen[key] = float(value)
        except ValueError:
            chosen[key] = -1.0
        if key not in ("cpu", "gpu", "memory") or not 0 <= chosen[key] < 1e6:
            raise InputError(
                f"engine {text!r}: {setting!r} is none of cpu=NUMBER, gpu=NUMBER, memory=GIGABYTES"
            )
    return Cluster(address=None if name == "ray" else name, **chosen)


class Crew:
    """The workers of one command on one cluster. They start when there is work."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._workers: list[Any] = []
        self._gpu = cluster.gpu
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
                cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
                self._start(num_cpus=cores, include_dashboard=False, **quiet)
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
                if not left or "timed out" not in str(error):
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
        if self._gpu != self.gpu(device):
            self.dismiss()  # or the old ones would keep the cores that the new ones wait for
            self._gpu = self.gpu(device)
        with _probe(shared) as sign:
            turn = _Turn(self, stage, items, workers, label or "work", sign)
            whole = False
            try:
                yield from turn.results()
                whole = True
            finally:
                if not whole:
                    self.dismiss()  # they would go on with work that nobody wants

    def hire(self, count: int) -> list[Any]:
        """So many workers: those that live, and new ones, which begin when Ray finds room."""
        memory = {"memory": int(self.cluster.memory * GIGABYTE)} if self.cluster.memory else {}
        kind = self.ray.remote(_Worker).options(
            num_cpus=self.cluster.cpu, num_gpus=self._gpu, scheduling_strategy="SPREAD", **memory
        )
        settings = {k: v for k, v in os.environ.items() if k.startswith("VOXRISK_")}
        while len(self._workers) < count:
            self._workers.append(kind.remote(str(Path.cwd()), sys.path, settings))
        return self._workers[:count]

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


class _Turn:
    """One stage on a crew: who has which item in hand, and what is done but not yet due."""

    def __init__(
        self,
        crew: Crew,
        stage: Callable[[Any], Any],
        items: Sequence[Any],
        workers: int,
        label: str,
        sign: tuple[str, str] | None,
    ) -> None:
        self.crew, self.items, self.workers, self.label = crew, items, workers, label
        self.ray = crew.ray
        self.stage = self.ray.put(stage)  # once on each machine, however many items there are
        inside = Path(sign[0]).parent if sign else None  # where files come and go
        seen = [
            (path, size)
            for path, size in _files_of([stage, *items[:1], *items[-1:]])
            if inside is None or not Path(path).is_relative_to(inside)
        ]
        self.look = {"files": seen, "sign": sign, "versions": _versions()}
        self.waiting = collections.deque(range(len(items)))
        self.running: dict[Any, tuple[Any, int]] = {}
        self.starting: dict[Any, Any] = {}
        self.ready: collections.Counter[Any] = collections.Counter()  # worker → items in hand
        self.losses: collections.Counter[int] = collections.Counter()
        self.done: dict[int, Any] = {}

    def results(self) -> Iterator[Any]:
        due = 0
        while due < len(self.items):
            self._call_workers()
            self._hand_out()
            self._take_in()
            while due in self.done:
                yield self.done.pop(due)
                due += 1

    def _call_workers(self) -> None:
        """Have as many workers as there are items for; each is looked at before it gets one."""
        wanted = min(self.workers, len(self.waiting) + len(self.running))
        known = {*self.ready, *self.starting.values()}
        if len(known) < wanted:
            for worker in self.crew.hire(wanted):
                if worker not in known:
                    self.starting[worker.look.remote(**self.look)] = worker

    def _hand_out(self) -> None:
        for worker in sorted(self.ready, key=self.ready.__getitem__):
            while self.waiting and self.ready[worker] < AHEAD:
                # At the end of the work nobody holds an item that another one could begin.
                if self.ready[worker] and len(self.waiting) < len(self.ready):
                    break
                place = self.waiting.popleft()
                self.running[worker.do.remote(self.stage, self.items[place])] = worker, place
                self.ready[worker] += 1

    def _take_in(self) -> None:
        calls = [*self.running, *self.starting]
        first, _ = self.ray.wait(calls, num_returns=1, timeout=SILENCE_SECONDS)
        if not first:
            self._tell_silence()
            return
        arrived, _ = self.ray.wait(calls, num_returns=len(calls), timeout=0)
        for call in arrived:
            if call in self.starting:
                self._look_at(call, self.starting.pop(call))
            else:
                self._receive(call, *self.running.pop(call))

    def _look_at(self, call: Any, worker: Any) -> None:
        try:
            wrong = self.ray.get(call)
        except self.ray.exceptions.RayError as error:
            self._lost(worker, None, error)
            return
        if wrong:
            raise InputError(f"{self.label}: {wrong}")
        self.ready[worker] = 0

    def _receive(self, call: Any, worker: Any, place: int) -> None:
        try:
            fine, result = self.ray.get(call)
        except self.ray.exceptions.RayActorError as error:
            self._lost(worker, place, error)
            return
        except self.ray.exceptions.ObjectLostError:
            self.waiting.appendleft(place)  # what it made was on a machine that is gone
            self.ready[worker] -= 1
            return
        self.ready[worker] -= 1
        if not fine:
            raise result
        self.done[place] = result

    def _lost(self, worker: Any, place: int | None, error: Exception) -> None:
        """A worker is gone: its items go to others, and another one is asked for."""
        if worker in self.ready or place is None:
            log.warning("%s: a worker was lost; its work is done again", self.label)
        self.ready.pop(worker, None)
        self.crew.lose(worker)
        # Which of its items took it down is not known; the first in hand is the likely one.
        at = len(self.items) if place is None else place
        self.losses[at] += 1
        if self.losses[at] >= MOST_LOSSES:
            raise InputError(
                f"{self.label}: {MOST_LOSSES} workers were lost at the same place, most likely "
                "because memory ran out. What is finished is kept: run the same command again with "
                f"fewer or larger workers (--workers, --engine ray,memory=8). Ray says: {error}"
            ) from error
        if place is not None:
            self.waiting.appendleft(place)

    def _tell_silence(self) -> None:
        if not self.ready:
            room = {k: v for k, v in self.ray.cluster_resources().items() if k in ("CPU", "GPU")}
            log.warning(
                "%s: waiting for room for a worker (cpu %g, gpu %g; the cluster has %s)",
                self.label, self.crew.cluster.cpu, self.crew._gpu, room,
            )  # fmt: skip


class _Worker:
    """A process on some machine of the cluster."""

    def __init__(self, folder: str, search: list[str], settings: dict[str, str]) -> None:
        sys.path += [place for place in search if place not in sys.path]
        os.environ.update(settings)
        self.folder = folder

    def look(self, **known: Any) -> str | None:
        """What keeps this worker from doing the same as its caller would, or None."""
        global _machine
        ray: Any = require("ray", extra="ray")
        _machine = ray.get_runtime_context().get_node_id()[:12]
        wrong = self.sees(**known)
        return wrong and f"machine {ray.util.get_node_ip_address()} of the cluster {wrong}"

    def sees(
        self, files: list[tuple[str, int]], sign: tuple[str, str] | None, versions: dict[str, str]
    ) -> str | None:
        """The same versions, the same folder, the same files."""
        mine = _versions()
        if other := [f"{k} {mine[k]} (here {v})" for k, v in versions.items() if mine[k] != v]:
            return f"has {', '.join(other)}; install the same everywhere"
        try:
            os.chdir(self.folder)
        except OSError:
            return f"does not see the folder {self.folder}; {SHARE}"
        for path, size in files:
            if not Path(path).is_file() or Path(path).stat().st_size != size:
                return f"does not see the file {path} as it is here; {SHARE}"
        if sign is None:
            return None
        with contextlib.suppress(OSError):
            if Path(sign[0]).read_text() == sign[1]:
                return None
        return f"does not see the folder {Path(sign[0]).parent}; {SHARE}"

    def do(self, stage: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
        """The result of one item, or the error it ended with, as it is."""
        try:
            return True, stage(item)
        except Exception as error:
            error.add_note("In a worker:\n" + traceback.format_exc())
            return False, error


_machine = ""


def machine() -> str:
    """The machine of the cluster that this worker is on; empty where there is no cluster."""
    return _machine


def _versions() -> dict[str, str]:
    import numpy as np

    from voxrisk import __version__

    return {"python": platform.python_version(), "voxrisk": __version__, "numpy": np.__version__}


@contextlib.contextmanager
def _probe(folder: Path | None) -> Iterator[tuple[str, str] | None]:
    """A file in ``folder`` that a worker elsewhere must find, with its secret."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(8)
    path = folder.absolute() / f".{secret}.part"
    path.write_text(secret)
    try:
        yield str(path), secret
    finally:
        path.unlink(missing_ok=True)


def _files_of(part: Any) -> list[tuple[str, int]]:
    """Absolute name and size of each file that some items name, as far as it exists here."""
    if isinstance(part, Path):
        with contextlib.suppress(OSError):
            if part.is_file():
                return [(str(part.absolute()), part.stat().st_size)]
        return []
    if isinstance(part, functools.partial):
        return _files_of([part.func, *part.args, *part.keywords.values()])
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return _files_of([getattr(part, f.name) for f in dataclasses.fields(part)])
    if isinstance(part, list | tuple):
        return [found for inner in part for found in _files_of(inner)]
    return []
