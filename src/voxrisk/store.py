"""The one store of finished work: what was made is found again, and what is damaged is made again.

An entry is a folder that one function filled; its name is the hash of all that went into it, and
``done.json`` says that it is complete, with the hash of every file. Nothing that was kept is
believed unseen: before an entry is used, once in a run, all its files are read and hashed. One that
is missing or changed is said in one line of the log, and the entry is made again. Inside an entry,
and outside, long work is kept item by item in a :mod:`voxrisk.journal`.
"""

import contextlib
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import remove_leftovers, write_text
from voxrisk.files.places import place_facts
from voxrisk.journal import Journal, Line, hash_audio, hash_file, remember_hash
from voxrisk.progress import cpu_seconds, log, telling
from voxrisk.scratch import ENDING, remove_scratch

DONE = "done.json"


@dataclass(frozen=True, slots=True)
class Took:
    """What one piece of work cost in this run; what it called for in turn is not counted twice.

    Attributes:
        stage: Kind of work.
        label: For people.
        seconds: By the clock.
        cpu_seconds: Work of this process and of its workers.
        speech_seconds: How much speech it went through; 0 where that says nothing.
        reused: It was finished before, and nothing was done.
        what: The tool (an encoder, an anonymizer) on which its cost depends.
    """

    stage: str
    label: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    speech_seconds: float = 0.0
    reused: bool = False
    what: str = ""


class Store:
    """A folder of finished and unfinished entries, and what each took in this run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.took: list[Took] = []
        self._inside: list[tuple[float, float]] = []  # what the works under way called for
        self._whole: set[Path] = set()
        for left in folder.glob(f"*/*{ENDING}"):  # by a killed run, also in an entry of no use now
            remove_scratch(left)

    def entry(
        self,
        kind: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        label: str,
        version: int = 1,
        fresh: bool = False,
    ) -> Path:
        """The folder in which ``make`` did its work for these inputs, now or in an earlier run.

        A kill leaves the folder without ``done.json``, and the next run goes on in it. Of two runs
        at once the second waits and finds the work done. Files that are damaged since are noticed:
        the entry is emptied and made again.

        Args:
            kind: Name of the stage.
            inputs: Everything the result depends on.
            make: Fills the folder.
            label: For people.
            version: Raised when ``make`` gives something else for the same inputs.
            fresh: Make it again, once in a run, even if it is there and whole.
        """
        folder, recipe = self.place(kind, inputs, version)
        if self._found(folder, kind, label, fresh=fresh):
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        named = f"{kind} {label}"
        with locked(folder.with_name(folder.name + ".lock"), named):
            if self._found(folder, kind, label, fresh=fresh):
                return folder
            if (folder / DONE).exists() or (fresh and any(folder.iterdir())):
                why = "as asked" if fresh else damage(folder)
                log.log(logging.INFO if fresh else logging.WARNING,
                        "%s: %s; it is made again", named, why)  # fmt: skip
                shutil.rmtree(folder)
                folder.mkdir()
            with self.timed(kind, label):
                make(folder)
                seal(folder, recipe)
            self._whole.add(folder)
        return folder

    def place(
        self, kind: str, inputs: Mapping[str, Any], version: int
    ) -> tuple[Path, dict[str, Any]]:
        """The folder of an entry, and all that it depends on."""
        recipe = {"stage": kind, "version": [__version__, version], **inputs}
        text = json.dumps(recipe, sort_keys=True, ensure_ascii=False, default=str)
        name = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        return self.folder / name, recipe

    @property
    def reused(self) -> list[str]:
        """What was finished before this run."""
        return [f"{t.stage} {t.label}" for t in self.took if t.reused]

    @contextlib.contextmanager
    def timed(self, kind: str, label: str) -> Iterator[None]:
        """Tell of some work, and write down what it took beside the entries it asks for itself."""
        began, before = time.monotonic(), cpu_seconds()
        self._inside.append((0.0, 0.0))
        try:
            with telling(f"{kind} {label}"):
                yield
        finally:
            seconds, work = time.monotonic() - began, cpu_seconds() - before
            own, own_work = self._inside.pop()
            if self._inside:
                last, last_work = self._inside[-1]
                self._inside[-1] = last + seconds, last_work + work
        self.took.append(Took(kind, label, round(seconds - own, 2), round(work - own_work, 2)))

    def about_last(self, **facts: Any) -> Took:
        """Add what is known about the work that was told of last."""
        self.took[-1] = replace(self.took[-1], **facts)
        return self.took[-1]

    def _found(self, folder: Path, kind: str, label: str, *, fresh: bool) -> bool:
        """Whether the entry is there and whole; it is looked at once in a run."""
        if folder in self._whole:
            return True
        if fresh or not (folder / DONE).exists() or damage(folder):
            return False
        self._whole.add(folder)
        self.took.append(Took(kind, label, reused=True))
        log.debug("%s %s: done in an earlier run", kind, label)
        return True


def seal(folder: Path, recipe: Mapping[str, Any], *, files: Iterable[Path] | None = None) -> None:
    """Write ``done.json``: what the entry was made of, and size and hash of its files.

    ``files`` are those that count, by default everything in the folder.
    """
    remove_leftovers(folder)
    chosen = (p for p in folder.rglob("*") if p.is_file()) if files is None else files
    kept = {
        path.relative_to(folder).as_posix(): [path.stat().st_size, hash_audio(path)]
        for path in sorted(chosen)
        if path != folder / DONE
    }
    write_text(folder / DONE, json.dumps({**recipe, "files": kept}, indent=2, default=str) + "\n")


def damage(folder: Path) -> str | None:
    """What is wrong with a sealed entry, or None: every file is read and compared with its hash.

    A file that is as it was need not be read for its hash again in this process.
    """
    try:
        done = json.loads((folder / DONE).read_text(encoding="utf-8"))
        for name, (size, digest) in done["files"].items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != size or hash_file(path) != digest:
                return f"{name} is not as it was written"
            remember_hash(path, digest)
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return f"{DONE} is damaged"
    return None


@contextlib.contextmanager
def locked(path: Path, label: str) -> Iterator[None]:
    """One process at a time; the system frees the lock when its holder is killed."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("%s: another run is at it; waiting", label)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def digest_corpus(rows: Sequence[Utterance], hashes: Path) -> str:
    """Hash of everything a stage can see of a corpus: its table and the content of its audio.

    The hash of a file is remembered in the journal ``hashes`` by path, size and time of change, so
    that a large corpus is read for hashing once.
    """
    journal = Journal(hashes)
    known, fresh = journal.read(), {}
    whole = hashlib.sha256()
    for row in rows:
        size, changed = place_facts(row.path)
        key = f"{row.path.resolve()}|{size}|{changed}"
        if key not in known:
            known[key] = fresh[key] = Line(hash_audio(row.path))
        else:
            remember_hash(row.path, known[key].result)
        table = (row.utterance, row.speaker, row.gender, row.text, row.session, row.start, row.end)
        extra = sorted(row.extra.items())
        whole.update(json.dumps([known[key].result, *table, extra]).encode())
    if fresh:
        journal.add(fresh)
    return whole.hexdigest()
