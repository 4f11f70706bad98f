"""Run one pure function over many items, in order, on all cores: the engine behind every stage.

A stage is a plain function of one picklable item (an utterance, a list of utterances, a path); what
it makes goes to files. Which engine does it, the cores of this machine or a Ray cluster
(:func:`engine`), and how many workers there are is decided here and nowhere else.
"""

import contextlib
import functools
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from multiprocessing import connection, get_context, parent_process, resource_tracker
from pathlib import Path
from typing import TypeVar

from voxrisk.cluster import Crew, machine, read_engine
from voxrisk.progress import Counted, Progress, log
from voxrisk.types import InputError, cores

__all__ = [
    "end_with_parent",
    "engine",
    "kept_workers",
    "machine",
    "one_thread",
    "per_batch",
    "run",
    "spread",
    "together",
    "worker_count",
]

Item = TypeVar("Item")
Result = TypeVar("Result")
_KEPT: ContextVar[dict[int, ProcessPoolExecutor] | None] = ContextVar("kept", default=None)
_CREW: ContextVar[Crew | None] = ContextVar("crew", default=None)
THREADS_OF = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ROUNDS = 4  # batches for each worker, so that none waits long for the last


def run(
    stage: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    label: str = "",
    threads: bool = False,
    device: str = "cpu",
    shared: Path | None = None,
) -> Iterator[Result]:
    """Yield ``stage(item)`` for every item, in the order of ``items``, from ``workers`` processes.

    Args:
        stage: What to do; picklable.
        items: To what.
        workers: Processes; None takes all cores. The results do not depend on it.
        label: What the progress is called; without one nothing is shown.
        threads: For a stage that works outside of Python and needs one large thing (a model) that
            all workers can share: threads instead of processes, on this machine.
        device: Where the stage computes; a GPU of this machine is fed by one process.
        shared: Folder that the stage writes to, which every machine of a cluster must see.

    Raises:
        InputError: If a worker was killed, which is mostly the system when memory runs out. An
            error in a stage reaches the caller as it is.
    """
    crew = None if threads else _CREW.get()
    counted = Counted(stage)
    with Progress(label, len(items)) as progress:
        if crew is None:
            count = _workers(workers, len(items), device)
            results = _results(counted, items, count, label, threads)
        else:
            results = crew.run(
                counted, items, workers=workers or crew.size(device), device=device, shared=shared,
                label=label,
            )  # fmt: skip
        for done, told in enumerate(results, start=1):
            yield counted.take(told)
            progress.at(done)


@contextlib.contextmanager
def engine(name: str) -> Iterator[None]:
    """Inside, stages run on this engine: ``local``, ``ray``, or ``ray://host:port``.

    The workers of a cluster live through the block, and so do the models they loaded. Results are
    the same, byte for byte, on every engine. ``ray,gpu=0.25`` lets four workers share a GPU;
    ``cpu`` (cores, 1) and ``memory`` (gigabytes) are said the same way.
    """
    cluster = read_engine(name)
    crew = None if cluster is None else Crew(cluster)
    token = _CREW.set(crew)
    try:
        yield
    finally:
        _CREW.reset(token)
        if crew is not None:
            crew.close()


def spread(
    work: Callable[[slice, int | None], Result], count: int, *, label: str = ""
) -> list[Result]:
    """``work(part, threads)`` on parts of ``range(count)``: for work that has threads of its own.

    On this machine there is one part and as many threads as ``work`` likes (None); on a cluster
    there are a few parts for each worker, and one thread. Parts come in order.
    """
    crew = _CREW.get()
    if crew is None or count == 0:
        return [work(slice(0, count), None)]
    parts = min(count, ROUNDS * crew.size())
    edges = [count * k // parts for k in range(parts + 1)]
    slices = [slice(a, b) for a, b in itertools.pairwise(edges)]
    return list(run(functools.partial(_alone, work), slices, label=label))


def _alone(work: Callable[[slice, int | None], Result], part: slice) -> Result:
    return work(part, 1)


def together(
    work: Callable[[], Result],
    processes: int,
    *,
    device: str = "cpu",
    shared: Path | None = None,
    label: str = "",
) -> Result:
    """What ``work`` gives where so many processes, which know of each other, do it at once.

    On a cluster they are told of each other as ``torchrun`` does it. Here there is one process: the
    one that calls, which may be one of several that ``torchrun`` has started.
    """
    crew = _CREW.get()
    if crew is not None:
        from voxrisk.cluster.gang import together as gather

        found: Result = gather(crew, work, processes, device=device, shared=shared, label=label)
        return found
    if processes != 1:
        raise InputError(
            f"{processes} processes on this machine: start them with `torchrun --nproc-per-node "
            f"{processes} -m voxrisk train …`, or give --engine ray"
        )
    return work()


def worker_count() -> int:
    """How many workers a long stage gets, on the engine of now."""
    crew = _CREW.get()
    return cores() if crew is None else crew.size()


def per_batch(count: int, *, most: int, workers: int | None = None) -> int:
    """How many of ``count`` items a worker takes at once: at most ``most``, and a few turns each.

    >>> per_batch(10_000, most=32, workers=2), per_batch(12, most=32, workers=2)
    (32, 2)
    """
    crew = _CREW.get()
    count_of_workers = _workers(workers, count) if crew is None else workers or crew.size()
    return max(1, min(most, -(-count // (ROUNDS * count_of_workers))))


def _workers(workers: int | None, count: int, device: str = "cpu") -> int:
    if device.startswith("cuda"):
        return 1
    return max(1, min(workers or cores(), count))


def _results(
    stage: Callable[[Item], Result], items: Sequence[Item], workers: int, label: str, threads: bool
) -> Iterator[Result]:
    if workers == 1:
        yield from map(stage, items)
        return
    log.debug("%s: %d items on %d workers", label or "work", len(items), workers)
    try:
        with ThreadPoolExecutor(workers) if threads else _processes(workers) as pool:
            try:
                with _interrupts_held(), _a_core_each():
                    results = pool.map(stage, items)
            except KeyboardInterrupt:
                # Workers that began after it know nothing of it, and would do all items first.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            yield from results
    except BrokenProcessPool as error:
        raise InputError(
            f"{label or 'work'}: one of {workers} worker processes was killed, most likely "
            "because memory ran out. What is finished is kept: run the same command again "
            f"with fewer processes (--workers {workers // 2}, or `taskset -c 0` before it) "
            "or with more memory"
        ) from error


@contextlib.contextmanager
def kept_workers() -> Iterator[None]:
    """Inside, worker processes live from stage to stage, and so do the models they loaded.

    To start a worker and load what it needs takes seconds; a whole evaluation has a dozen stages.
    Blocks may stand in each other: the outermost counts. A change of the user's code, of the
    environment or of ``sys.path`` inside reaches no worker that lives already.
    """
    if _KEPT.get() is not None:
        yield
        return
    pools: dict[int, ProcessPoolExecutor] = {}
    token = _KEPT.set(pools)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for pool in pools.values():
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    """Worker processes: those that are kept, or fresh ones that end with the block."""
    pools = _KEPT.get()
    if pools is None:
        with _fresh(workers) as pool:
            yield pool
        return
    pool = pools.setdefault(workers, _fresh(workers))  # no process starts before it has work
    try:
        yield pool
    except BrokenProcessPool:
        del pools[workers]
        pool.shutdown(wait=False)
        raise


def _fresh(workers: int) -> ProcessPoolExecutor:
    # Workers start fresh: a forked copy of a process with running threads can lock up.
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=end_with_parent
    )


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait while workers start: a process half begun would print where it was.

    New processes inherit the mask and lift it when they are ready. For this one a mask is not
    enough, since any other thread may take the signal: it is noted, and raised at the end.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    arrived: list[int] = []
    resource_tracker.ensure_running()  # or it would let interrupts through when it starts
    handler = signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if arrived:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _a_core_each() -> Iterator[None]:
    """Let workers that start here compute with one thread, as on a cluster.

    NumPy's products would take all cores in each of them, and threads that wait for their turn keep
    a core busy. Who has set a number keeps it. A library asks once, when it is loaded.
    """
    ours = [name for name in THREADS_OF if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def end_with_parent() -> None:
    """Let this worker end when its parent does, also when that is killed: nobody wants its work.

    At Ctrl-C it ends at once and without a word: its parent speaks for all.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One core for torch: processes share the work, and sums come out the same for any number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
