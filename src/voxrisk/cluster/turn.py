"""One stage on a crew: items go out to workers, results come back in order, whatever is lost."""

import collections
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxrisk.cluster.worker import files_of, own_versions
from voxrisk.progress import log
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.cluster.crew import Crew

AHEAD = 2  # items a worker has in hand: the next is there when one is done
MOST_LOSSES = 4  # workers that one item may take with it
SILENCE_SECONDS = 30.0


class Turn:
    """One stage on a crew: who has which item in hand, and what is done but not yet due."""

    def __init__(
        self,
        crew: "Crew",
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
            for path, size in files_of([stage, *items[:1], *items[-1:]])
            if inside is None or not Path(path).is_relative_to(inside)
        ]
        self.look = {"files": seen, "sign": sign, "versions": own_versions()}
        self.waiting = collections.deque(range(len(items)))
        self.running: dict[Any, tuple[Any, int]] = {}
        self.starting: dict[Any, Any] = {}
        self.ready: collections.Counter[Any] = collections.Counter()  # worker → items in hand
        self.losses: collections.Counter[int] = collections.Counter()
        self.done: dict[int, Any] = {}

    def results(self) -> Iterator[Any]:
        """The result of every item, in their order."""
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
                self.label, self.crew.cluster.cpu, self.crew.gpu(self.crew.device), room,
            )  # fmt: skip
