"""Measure each utterance once: what is done is written down at once and never done again.

A line of the journal holds a key and a result. The key is a hash of the audio, of the settings and
of nothing else, so one journal serves all figures, a changed file is measured anew, and a kill
loses at most the batches in hand.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from voxrisk import shards
from voxrisk.corpus import Utterance
from voxrisk.files.atomic import naming_a_full_disk
from voxrisk.types import InputError

Item = TypeVar("Item")
BATCH = 8


def resumable(
    stage: Callable[[list[Item]], list[Any]],
    items: Sequence[Item],
    *,
    rows: Callable[[Item], Sequence[Utterance]],
    settings: Mapping[str, Any],
    journal: Path | str | None = None,
    workers: int | None = None,
    label: str = "",
) -> list[Any]:
    """``stage`` of every item, in their order; what the journal knows is not done again.

    Args:
        stage: Picklable; takes a batch of items, gives one JSON value for each.
        items: What to measure.
        rows: The utterances whose audio an item consists of.
        settings: Everything else the result depends on.
        journal: File that keeps the results; None keeps nothing.
        workers: Processes; None takes all cores.
        label: What the progress line says.
    """
    if journal is None:
        keys = [str(i) for i in range(len(items))]
        done: dict[str, Any] = {}
    else:
        keys = [_key(settings, rows(item)) for item in items]
        done = _read(Path(journal))
    todo = {key: item for key, item in zip(keys, items, strict=True) if key not in done}
    names = list(todo)
    batches = [names[i : i + BATCH] for i in range(0, len(names), BATCH)]
    work = [[todo[name] for name in batch] for batch in batches]
    results = shards.run(stage, work, workers=workers, label=label) if work else iter(())
    for batch, found in zip(batches, results, strict=True):
        fresh = dict(zip(batch, found, strict=True))
        if journal is not None:
            _append(Path(journal), fresh)
        done |= fresh
    return [done[key] for key in keys]


def _key(settings: Mapping[str, Any], rows: Sequence[Utterance]) -> str:
    parts: list[Any] = [dict(settings)]
    for row in rows:
        try:
            state = row.path.stat()
            parts.append([_sha256(row.path, state.st_size, state.st_mtime_ns), row.start, row.end])
        except OSError as error:
            raise InputError(f"{row.path}: cannot be read as audio ({error})") from error
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=1 << 18)
def _sha256(path: Path, size: int, changed: int) -> str:
    """The hash of a file; size and time stamp make a changed file be read again."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(journal: Path) -> dict[str, Any]:
    done = {}
    for line in journal.read_bytes().splitlines() if journal.is_file() else ():
        try:
            entry = json.loads(line)
            done[entry["key"]] = entry["result"]
        except (ValueError, KeyError, TypeError):
            continue  # torn by a kill: this batch is done again
    return done


def _append(journal: Path, fresh: Mapping[str, Any]) -> None:
    lines = [json.dumps({"key": key, "result": value}) for key, value in fresh.items()]
    # The block begins on a line of its own, should a kill have torn the one before.
    block = "\n".join(["", *lines, ""]).encode()
    with naming_a_full_disk(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        with journal.open("ab", buffering=0) as stream:
            stream.write(block)
