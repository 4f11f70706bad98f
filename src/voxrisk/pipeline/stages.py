"""The stages of an evaluation: entries of the store, by name."""

import contextlib
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.pipeline.course import Course
from voxrisk.progress import cpu_seconds, log
from voxrisk.store import Store, digest_corpus

__all__ = ["Stages", "digest_corpus", "say"]

# Raise a number when what the stage writes for the same input changes.
VERSIONS = {
    "anonymize": 2,
    "check": 4,
    "train": 2,
    "embed": 1,
    "utility": 5,
    "undo": 1,
    "suite": 5,
    "infer": 3,
    "align": 1,
    "slice": 1,
    "recognise": 1,
    "follow": 1,
    "learn": 1,
    "read": 1,
}


class Stages(Store):
    """The store of a run, the corpora it has read, and what it tells beside its results."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        super().__init__(folder)
        self.fresh = fresh  # whether anonymizers run again
        self.course = Course()
        self._began = time.time(), cpu_seconds()
        self.notes: dict[str, Any] = {}  # such as times
        self._corpora: dict[Path, list[Utterance]] = {}

    def read(self, path: Path) -> list[Utterance]:
        """A corpus, read once in a run."""
        if path not in self._corpora:
            self._corpora[path] = read_corpus(path)
        return list(self._corpora[path])

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        label: str,
        speech: Iterable[Utterance] | Callable[[Path], float] = (),
        what: str = "",
    ) -> Path:
        """The folder in which ``make`` did its work for these inputs, now or in an earlier run.

        ``label`` is for people; everything the result depends on must be in ``inputs``. The
        ``speech`` it goes through (or a function of its folder that knows the seconds) and ``what``
        it goes through it with say what it should cost.
        """
        before = len(self.took)
        again = self.fresh and name == "anonymize"
        folder = self.entry(name, inputs, make, label=label, version=VERSIONS[name], fresh=again)
        if len(self.took) > before:  # else it was looked at before in this run
            self._told(speech(folder) if callable(speech) else seconds_of(speech), what)
        return folder

    @contextlib.contextmanager
    def work(self, name: str, label: str, *, what: str = "", speech: float = 0.0) -> Iterator[None]:
        """Work that is not kept, told of as a stage is."""
        with self.timed(name, label):
            yield
        self._told(speech, what)

    def facts(self) -> dict[str, Any]:
        """What run.json tells: when, how long beside what was expected, and of every stage."""
        began, before = self._began
        return {
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(began)),
            "seconds": round(time.time() - began, 1),
            "cpu_seconds": round(cpu_seconds() - before, 1),
            "estimated_seconds": round(self.course.beforehand, 1),
            "stages": [asdict(took) for took in self.took],
            **self.notes,
            "machine": platform.platform(),
        }

    def _told(self, speech: float, what: str) -> None:
        took = self.about_last(speech_seconds=round(speech, 2), what=what)
        said = self.course.passed(took)
        if not took.reused:
            log.info("%s %s: %s", took.stage, took.label, said)


def seconds_of(rows: Iterable[Utterance]) -> float:
    """How long the speech of a table is; an utterance of unknown length counts five seconds."""
    return sum(row.duration or 5.0 for row in rows)


def say(text: str) -> None:
    """Tell a person what is going on."""
    log.info("%s", text)
