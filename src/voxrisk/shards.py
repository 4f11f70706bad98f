"""Run one pure function over many items, in order, on all cores: the engine behind every stage.

A stage is a plain function of one picklable item (an utterance, a list of utterances, a path); what
it makes goes to files. A cluster engine can stand behind the same call.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import connection, get_context, parent_process
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(
    stage: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    label: str = "",
    threads: bool = False,
) -> Iterator[Result]:
    """Yield ``stage(item)`` for every item, in the order of ``items``, from ``workers`` processes.

    The results do not depend on ``workers``. An error in a stage reaches the caller as it is.
    ``threads`` is for a stage that works outside of Python and needs one large thing (a model)
    that all workers can share; it takes threads instead of processes.
    Progress goes to stderr, only on a terminal and only with a ``label``.
    """
    workers = min(workers or cores(), max(len(items), 1))
    started = time.monotonic()
    if workers == 1:
        results: Iterator[Result] = map(stage, items)
        yield from _progress(results, len(items), label, started)
        return
    pool: Executor
    if threads:
        pool = ThreadPoolExecutor(workers)
    else:
        # Workers start fresh: a forked copy of a process with running threads can lock up.
        pool = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=end_with_parent
        )
    with pool:
        yield from _progress(pool.map(stage, items), len(items), label, started)


def end_with_parent() -> None:
    """Let this worker end when its parent does, also when that is killed: nobody wants its work."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _progress(
    results: Iterator[Result], total: int, label: str, started: float
) -> Iterator[Result]:
    show = bool(label) and sys.stderr.isatty()
    for done, result in enumerate(results, start=1):
        yield result
        if show:
            left = (time.monotonic() - started) / done * (total - done)
            end = "\n" if done == total else ""
            print(f"\r{label}: {done}/{total}, {left:4.0f} s left ", end=end, file=sys.stderr)
