"""Many damaged files through every reader, in processes that may hang or crash.

``make fuzz`` runs 100,000 cases; a short run with the same seed is part of the tests. Each case
depends on its number and the seed alone: ``--only TARGET --case N`` shows one again.
"""

import argparse
import faulthandler
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from random import Random
from typing import Any

from fuzz_mutations import mutate
from fuzz_targets import OPEN, SLOW, TARGETS, Target, plain

from voxrisk.types import InputError

TIMEOUT = 60.0  # seconds of one case; the machine may be busy
GROWTH = 700  # MB that one case may take at most
# What a case may end in. Good: an error that names the file; the same data; other data, as the text
# of the file says; other data of a form that is no text, and sound by its own laws.
GOOD = ("error", "same", "explained", "changed")
BAD = ("nameless", "unexplained", "traceback", "hang", "crash", "bomb")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case ended."""

    target: str
    case: int
    kind: str
    detail: str = ""


@dataclass(slots=True)
class Bench:
    """Sound files of every target in a folder of one worker, each read once for comparison."""

    folder: Path
    sound: dict[str, tuple[Path, Path, bytes, Any]] = field(default_factory=dict)

    def prepare(self, target: Target) -> tuple[Path, Path, bytes, Any]:
        """The folder of a target, its file to damage, its bytes and what is read from it."""
        if target.name not in self.sound:
            home = self.folder / f"t{len(self.sound)}"
            home.mkdir()
            path = target.build(home)
            read = plain(target.read(home), home)
            self.sound[target.name] = (home, path, path.read_bytes(), read)
        return self.sound[target.name]


def run_case(bench: Bench, target: Target, case: int, seed: int) -> Outcome:
    """Damage the file of a target, read it, and judge what comes of it."""
    home, path, data, expected = bench.prepare(target)
    random = Random(f"{seed}/{target.name}/{case}")
    damaged = mutate(data, random, target.kind)
    path.write_bytes(damaged)
    before = _memory()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind, detail = _judge(target, home, expected)
    finally:
        path.write_bytes(data)
    if _memory() - before > GROWTH:
        kind, detail = "bomb", f"{_memory() - before} MB"
    return Outcome(target.name, case, kind, detail)


def _judge(target: Target, home: Path, expected: Any) -> tuple[str, str]:
    try:
        found = plain(target.read(home), home)
    except InputError as error:
        named = str(home) in str(error)
        return ("error", "") if named else ("nameless", str(error)[:300])
    except BaseException:
        return "traceback", traceback.format_exc()[-1500:]
    if found == expected:
        return "same", ""
    if target.oracle is None:
        return "changed", ""
    try:
        said = plain(target.oracle(home), home)
    except Exception as error:
        return "unexplained", f"read {found}\nthe oracle says {error!r}"[:3000]
    if found == said:
        return "explained", ""
    return "unexplained", f"read {found}\nthe oracle says {said}"[:3000]


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _work(pipe: connection.Connection, targets: Sequence[str], cases: Sequence[int], seed: int,
          folder: str) -> None:  # fmt: skip
    faulthandler.disable()
    os.environ["VOXRISK_CACHE"] = folder
    limit = 12 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)  # libraries in C write to stderr as they like
    os.dup2(null, 2)
    bench = Bench(Path(tempfile.mkdtemp(dir=folder)))
    for case in cases:
        target = TARGETS[targets[case % len(targets)]]
        pipe.send(run_case(bench, target, case, seed))
    pipe.send(None)


def rounds(names: Sequence[str], count: int = 8) -> list[str]:
    """Whose turn it is: each target in every round, a slow one in every eighth."""
    return [name for i in range(count) for name in names if name not in SLOW or i % 8 == 0]


def campaign(
    cases: Sequence[int], *, seed: int, workers: int, targets: Sequence[str], timeout: float
) -> Iterator[Outcome]:
    """Run cases in ``workers`` processes; one that hangs or dies is an outcome, and goes on."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="voxrisk-fuzz-", dir=base)
    context = multiprocessing.get_context("fork")
    queues = [list(cases[i::workers]) for i in range(workers)]
    running: dict[Any, list[Any]] = {}

    def start(left: list[int]) -> None:
        if left:
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, targets, left, seed, folder))
            process.start()
            theirs.close()
            running[ours] = [process, left, time.monotonic()]

    try:
        for left in queues:
            start(left)
        while running:
            ready = connection.wait(list(running), timeout=0.5)
            for pipe in list(running):
                process, left, since = running[pipe]
                late = time.monotonic() - since > timeout
                if pipe not in ready and not late:
                    continue
                try:
                    found = pipe.recv() if pipe in ready else "hang"
                except EOFError:
                    found = "crash"
                if isinstance(found, Outcome):
                    left.pop(0)
                    running[pipe][2] = time.monotonic()
                    yield found
                    continue
                process.kill()
                process.join()
                del running[pipe]
                if found is not None:
                    case = left.pop(0)
                    name = targets[case % len(targets)]
                    yield Outcome(name, case, found, f"exit code {process.exitcode}")
                    start(left)
    finally:
        for process, _, _ in running.values():
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Run a campaign and print what came of it; exit code 1 if anything is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT)
    parser.add_argument("--only", action="append", help="A target, by name or a part of it.")
    parser.add_argument("--case", type=int, help="One case of one target, told in full.")
    parser.add_argument("--bad", type=Path, help="File for bad outcomes, a JSON object each.")
    given = parser.parse_args()
    names = [n for n in TARGETS if (any(part in n for part in given.only) if given.only
                                    else n not in OPEN)]  # fmt: skip
    cases = range(given.first, given.first + given.cases)
    if given.case is not None:
        cases = range(given.case, given.case + 1)
    table: dict[str, Counter[str]] = {name: Counter() for name in names}
    out = given.bad.open("w") if given.bad else None
    began = time.monotonic()
    turns = rounds(names)
    for found in campaign(cases, seed=given.seed, workers=given.workers, targets=turns,
                          timeout=given.timeout):  # fmt: skip
        table[found.target][found.kind] += 1
        if found.kind in BAD:
            if out:
                print(json.dumps([found.target, found.case, found.kind, found.detail]), file=out,
                      flush=True)  # fmt: skip
            else:
                print(f"{found.target} {found.case}: {found.kind}\n{found.detail}\n", flush=True)
    total = sum(table.values(), Counter())
    for name, count in table.items():
        print(f"{name:34s}", *(f"{kind} {count[kind]}" for kind in (*GOOD, *BAD) if count[kind]))
    print(f"{total.total()} cases, {time.monotonic() - began:.0f} s:", dict(total.most_common()))
    return int(any(total[kind] for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
