"""The stages of an evaluation: entries of the store, by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.progress import log
from voxrisk.store import Store, digest_corpus

__all__ = ["Stages", "digest_corpus", "say"]

# Raise a number when what the stage writes for the same input changes.
VERSIONS = {
    "anonymize": 2,
    "check": 4,
    "train": 2,
    "embed": 1,
    "utility": 4,
    "undo": 1,
    "suite": 2,
    "infer": 1,
}


class Stages(Store):
    """The store of a run, the corpora it has read, and what it tells beside its results."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.notes: dict[str, Any] = {}  # such as times
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
        return self.entry(name, inputs, make, label=label, version=VERSIONS[name])


def say(text: str) -> None:
    """Tell a person what is going on."""
    log.info("%s", text)
