"""Stages that are done once: what a stage made is kept under the hash of all it depends on.

A stage is a function that fills a folder. The folder's name is the hash of the stage's name, its
inputs, its parameters and the version of the code; a file ``done.json`` says that it is complete.
A killed run leaves the folder without it, and the next run goes on in the same folder. A lock keeps
two runs out of each other's way: the second waits and finds the work done.
"""

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.files.atomic import write_text

# Raise a number when what the stage writes for the same input changes.
VERSIONS = {"anonymize": 2, "check": 2, "train": 1, "embed": 1, "utility": 2}
DONE = "done.json"


class Stages:
    """A folder of finished and unfinished stages, and how long each took in this run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.reused: list[str] = []
        self.notes: dict[str, Any] = {}  # what a run tells beside its results, such as times
        self._corpora: dict[Path, list[Utterance]] = {}

    def read(self, path: Path) -> list[Utterance]:
        """A corpus, read once in a run."""
        if path not in self._corpora:
            self._corpora[path] = read_corpus(path)
        return list(self._corpora[path])

    def run(
        self, name: str, inputs: Mapping[str, Any], make: Callable[[Path], None], *, label: str
    ) -> Path:
        """The folder in which ``make`` did its work for these inputs, now or in an earlier run.

        ``label`` is for people; everything the result depends on must be in ``inputs``.
        """
        recipe = {"stage": name, "version": [__version__, VERSIONS[name]], **inputs}
        text = json.dumps(recipe, sort_keys=True, ensure_ascii=False, default=str)
        key = hashlib.sha256(text.encode()).hexdigest()[:20]
        folder = self.folder / f"{name}-{key}"
        label = f"{name} {label}"
        if (folder / DONE).is_file():
            self.reused.append(label)
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(folder.name + ".lock")):
            if (folder / DONE).is_file():
                self.reused.append(label)
                return folder
            started = time.monotonic()
            say(f"{label} …")
            make(folder)
            write_text(folder / DONE, json.dumps(recipe, indent=2, default=str) + "\n")
            self.seconds[label] = round(time.monotonic() - started, 2)
        return folder


def say(text: str) -> None:
    """Tell a person at a terminal what is going on."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the system frees the lock when its holder is killed."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system: runs at once must use folders of their own
        yield
        return
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def digest_corpus(rows: Sequence[Utterance], memory: Path) -> str:
    """Hash of everything a stage can see of a corpus: its table and the content of its audio.

    The hash of a file is remembered in ``memory`` by path, size and time of change, so that a large
    corpus is read for hashing once.
    """
    known: dict[str, str] = {}
    if memory.is_file():
        with contextlib.suppress(json.JSONDecodeError):
            known = json.loads(memory.read_text(encoding="utf-8"))
    whole = hashlib.sha256()
    for row in rows:
        facts = row.path.stat()
        key = f"{row.path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}"
        if key not in known:
            with row.path.open("rb") as stream:
                known[key] = hashlib.file_digest(stream, "blake2b").hexdigest()[:32]
        table = (row.utterance, row.speaker, row.gender, row.text, row.session, row.start, row.end)
        whole.update(json.dumps([known[key], *table, sorted(row.extra.items())]).encode())
    write_text(memory, json.dumps(known))
    return whole.hexdigest()
