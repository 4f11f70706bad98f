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
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic, remove_leftovers, write_text
from voxrisk.journal import Journal, Line, hash_audio, hash_file, remember_hash
from voxrisk.progress import log
from voxrisk.scratch import ENDING, remove_scratch

DONE = "done.json"


class Store:
    """A folder of finished and unfinished entries, and how long each took in this run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.reused: list[str] = []
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
        """
        recipe = {"stage": kind, "version": [__version__, version], **inputs}
        text = json.dumps(recipe, sort_keys=True, ensure_ascii=False, default=str)
        folder = self.folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        label = f"{kind} {label}"
        if self._found(folder, label):
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(folder.name + ".lock"), label):
            if self._found(folder, label):
                return folder
            if (folder / DONE).exists():
                log.warning("%s: %s; it is made again", label, damage(folder))
                shutil.rmtree(folder)
                folder.mkdir()
            started = time.monotonic()
            log.info("%s …", label)
            make(folder)
            seal(folder, recipe)
            self._whole.add(folder)
            self.seconds[label] = round(time.monotonic() - started, 2)
        return folder

    def _found(self, folder: Path, label: str) -> bool:
        """Whether the entry is there and whole; it is looked at once in a run."""
        if folder not in self._whole:
            if not (folder / DONE).exists() or damage(folder):
                return False
            self._whole.add(folder)
        self.reused.append(label)
        log.debug("%s: done in an earlier run", label)
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


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read: a key, a secret."""
    with atomic(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


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
        facts = row.path.stat()
        key = f"{row.path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}"
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
