"""Processes that need each other, on a cluster: a training whose processes share every batch.

They are told of each other as ``torchrun`` tells its own (RANK, WORLD_SIZE, MASTER_ADDR …), so what
they do is the same, and so are the checkpoints. Ray gives room to all of them at once or to none.
Where one is lost, all end, and a new gang goes on from the last checkpoint.
"""

import collections
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from voxrisk.cluster.crew import Crew
from voxrisk.cluster.worker import Worker, files_of, own_versions, probe
from voxrisk.progress import log
from voxrisk.types import InputError, require

MOST_GANGS = 4  # that one piece of work may lose
LISTEN_SECONDS = 2.0
SILENCE_SECONDS = 30.0


Lines = collections.deque[tuple[int, str]]  # level and words of what was logged


class Member(Worker):
    """One of the processes."""

    def __init__(self, *greeting: Any) -> None:
        super().__init__(*greeting)
        self.lines: Lines = collections.deque()

    def address(self) -> tuple[str, int]:
        """Where the others find this process: its machine, and a port that is free there."""
        ray: Any = require("ray", extra="ray")
        with socket.socket() as free:
            free.bind(("", 0))
            return ray.util.get_node_ip_address(), free.getsockname()[1]

    def join(
        self, work: Callable[[], Any], rank: int, size: int, address: tuple[str, int], level: int
    ) -> tuple[bool, Any]:
        """Do the work as number ``rank`` of ``size``; its result, or the error it ended with."""
        # Ray shows each process its own GPUs alone, so that its own is always the first.
        os.environ.update(
            RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK="0", MASTER_ADDR=address[0],
            MASTER_PORT=str(address[1]),
        )  # fmt: skip
        log.addHandler(_Ear(self.lines))
        log.setLevel(level)
        return self.do(lambda _: work(), None)

    def said(self) -> list[tuple[int, str]]:
        """What was logged since this was asked last."""
        return [self.lines.popleft() for _ in range(len(self.lines))]


class _Ear(logging.Handler):
    """Keeps what is logged until somebody asks for it."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append((record.levelno, record.getMessage()))


def together(
    crew: Crew,
    work: Callable[[], Any],
    count: int,
    *,
    device: str = "cpu",
    shared: Path | None = None,
    label: str = "work",
) -> Any:
    """Let ``count`` processes do ``work`` together; what the first of them gives.

    The work must go on by itself from where it was, since it begins anew when a process is lost.
    """
    crew.dismiss()  # workers of other stages would keep the room that is waited for
    with probe(shared) as sign:
        files = files_of(work)
        known = {"files": files[:1] + files[-1:], "sign": sign, "versions": own_versions()}
        for left in reversed(range(MOST_GANGS)):
            with _gathered(crew, count, device, label) as members:
                try:
                    return _result(crew.ray, members, work, known, label)
                except crew.ray.exceptions.RayActorError as error:
                    if not left:
                        raise InputError(
                            f"{label}: {MOST_GANGS} times a process was lost, most likely because "
                            "memory ran out. The last checkpoint is kept: run the same command "
                            f"again with fewer or larger processes. Ray says: {error}"
                        ) from error
                    log.warning("%s: a process was lost; all begin at the last checkpoint", label)
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _gathered(crew: Crew, count: int, device: str, label: str) -> Iterator[list[Any]]:
    """So many processes, all there at once; they end with the block."""
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ray, takes = crew.ray, crew.takes(device)
    bundle = {"CPU": takes["num_cpus"], "GPU": takes["num_gpus"], "memory": takes.get("memory", 0)}
    group = placement_group([{k: v for k, v in bundle.items() if v}] * count, strategy="PACK")
    members: list[Any] = []
    try:
        while not group.wait(SILENCE_SECONDS):
            log.warning("%s: waiting for room for %d processes at once", label, count)
        for rank in range(count):
            place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
            kind = ray.remote(Member).options(**takes, scheduling_strategy=place, max_concurrency=2)
            members.append(kind.remote(*crew.greeting()))
        yield members
    finally:
        for member in members:
            with contextlib.suppress(Exception):  # it may be gone already
                ray.kill(member)
        remove_placement_group(group)


def _result(
    ray: Any, members: list[Any], work: Callable[[], Any], known: dict[str, Any], label: str
) -> Any:
    for wrong in ray.get([member.look.remote(**known) for member in members]):
        if wrong:
            raise InputError(f"{label}: {wrong}")
    first, size = members[0], len(members)
    address, level = ray.get(first.address.remote()), log.getEffectiveLevel()
    held = ray.put(work)
    calls = [m.join.remote(held, rank, size, address, level) for rank, m in enumerate(members)]
    found: Any = None
    waiting = list(calls)
    while waiting:
        done, waiting = ray.wait(waiting, timeout=LISTEN_SECONDS)
        for severity, line in ray.get(first.said.remote()):
            log.log(severity, "%s", line)
        for call in done:
            fine, result = ray.get(call)
            if not fine:
                raise result  # the others would wait for it for ever
            if call == calls[0]:
                found = result
    return found
