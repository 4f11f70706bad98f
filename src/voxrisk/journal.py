"""Long work item by item: what is finished is written down at once and never done again.

A journal holds the results of single items, such as the utterances of a corpus, each under the hash
of all that went into it. The rule of :func:`resumable` is the same for every stage: an item whose
key is in the journal, and whose files still have the hash written there, is done. A torn or altered
line and a damaged file are said in one line of the log, and what they held is done again.
"""

import glob
import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from voxrisk import shards
from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import naming_a_full_disk, write_text
from voxrisk.files.places import open_place, place_facts
from voxrisk.progress import log
from voxrisk.types import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
BATCH = 8  # items that a worker takes at once


@dataclass(frozen=True, slots=True)
class Line:
    """One finished item: its result, and size and hash of each file it wrote."""

    result: Any
    files: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """A file of finished items, a line each, which many processes may append to.

    On a cluster each machine has a file of its own beside it, since file systems of many machines
    cannot append from two of them at once. A line begins with the checksum of the rest, so that one
    torn by a kill, or altered, is known.
    """

    path: Path

    def read(self) -> dict[str, Line]:
        """Every whole line by its key; others are taken out of the file.

        A last line without an end is what a kill leaves; any other damage is said aloud.
        """
        machines = f"{glob.escape(self.path.stem)}.*{self.path.suffix}"
        done = {}
        for path in (self.path, *sorted(self.path.parent.glob(machines))):
            for line in _whole_lines(path) if path.is_file() else ():
                entry = json.loads(line[9:])
                done[entry["key"]] = Line(entry["result"], tuple(map(tuple, entry["files"])))
        return done

    def add(self, fresh: Mapping[str, Line]) -> None:
        """Append finished items, in one write."""
        block = b""
        for key, line in fresh.items():
            entry = {"key": key, "result": line.result, "files": line.files}
            body = json.dumps(entry).encode()
            block += _checksum(body) + body + b"\n"
        path, place = self.path, shards.machine()
        if place:
            path = path.with_name(f"{path.stem}.{place}{path.suffix}")
        with naming_a_full_disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab", buffering=0) as stream:
                stream.write(block)


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of a journal that are as they were written; others are taken out of the file."""
    *lines, torn = path.read_bytes().split(b"\n")
    lines = [line for line in lines if line]
    whole = [line for line in lines if _checksum(line[9:]) == line[:9]]
    if broken := len(lines) - len(whole):
        log.warning("%s: %d damaged lines; what they held is done again", path, broken)
    if torn:
        log.info("%s: the last line was never finished; its item is done again", path)
    if broken or torn:
        write_text(path, "".join(line.decode() + "\n" for line in whole))
    return whole


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=4).hexdigest().encode() + b" "


@dataclass(frozen=True, slots=True)
class Failed:
    """What a stage returns for an item it cannot do: not written down, so it is tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Work(Generic[Item, Result]):
    """What a worker needs to do items and to write them down."""

    stage: Callable[[Item], Result]
    files: Callable[[Item, Result], Iterable[Path]] | None
    journal: Journal | None

    def __call__(self, batch: Sequence[tuple[str, Item]]) -> list[Line]:
        lines = []
        for key, item in batch:
            line = Line(self.stage(item))
            if self.journal is not None and not isinstance(line.result, Failed):
                line = Line(line.result, self.state(item, line.result))
                self.journal.add({key: line})
            lines.append(line)
        return lines

    def state(self, item: Item, result: Result) -> tuple[tuple[int, str], ...]:
        paths = self.files(item, result) if self.files else ()
        return tuple((path.stat().st_size, hash_file(path)) for path in paths)

    def remember(self, item: Item, line: Line) -> None:
        """A file that was just hashed, here or by a worker, need not be read for it again."""
        if self.files and line.files:
            paths = self.files(item, line.result)
            for path, (_, digest) in zip(paths, line.files, strict=True):
                remember_hash(path, digest)

    def holds(self, item: Item, line: Line) -> bool:
        try:
            return self.state(item, line.result) == line.files
        except (OSError, LookupError, TypeError):
            return False


def resumable(
    stage: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    key: Callable[[Item], str],
    journal: Path | str | None,
    files: Callable[[Item, Result], Iterable[Path]] | None = None,
    group: Callable[[Item], Hashable] | None = None,
    batch: int = BATCH,
    workers: int | None = None,
    label: str = "",
    device: str = "cpu",
) -> list[Result]:
    """``stage`` of every item, in their order; what the journal knows is not done again.

    An item is written down by the worker that did it, at once: a kill loses the items in hand.

    Args:
        stage: Picklable; takes an item, writes its files, returns a JSON value or :class:`Failed`.
        items: What to do. Items with the same key are done once.
        key: Hash of all that an item's result depends on, see :func:`hash_of`.
        journal: File that keeps the results; None keeps nothing.
        files: The files that an item with that result has written; picklable.
        group: Items that are better done by one worker, one after another, have the same group.
        batch: The most that a worker takes at once.
        workers: Processes; None takes all cores. The results do not depend on it.
        label: What the progress is called.
        device: Where the stage computes.
    """
    kept = None if journal is None else Journal(Path(journal))
    work = _Work(stage, files, kept)
    known = kept.read() if kept else {}
    keys = [key(item) for item in items] if kept else [str(i) for i in range(len(items))]
    # As long from the first item on as at the end: what is finished takes a line, not objects.
    done: dict[str, _Packed | None] = dict.fromkeys(keys)
    todo: dict[Hashable, dict[str, Item]] = {}
    damaged = 0
    for name, item in zip(keys, items, strict=True):
        line = known.get(name)
        if done[name] is not None:
            continue
        if line is not None and work.holds(item, line):
            work.remember(item, line)
            done[name] = _packed(line.result)
            continue
        damaged += line is not None
        todo.setdefault(group(item) if group else None, {})[name] = item
    if damaged:
        log.warning("%s: finished files of %d items are damaged; made again", label, damaged)
    if ready := sum(line is not None for line in done.values()):
        log.info("%s: %d of %d are done already", label, ready, len(done))
    size = shards.per_batch(sum(map(len, todo.values())), most=batch, workers=workers)
    batches = [
        pairs[at : at + size]
        for pairs in (list(part.items()) for part in todo.values())
        for at in range(0, len(pairs), size)
    ]
    if kept and batches:
        kept.add({})  # it is there from the beginning, also where machines have their own
    results = shards.run(
        work, batches, workers=workers, label=label, device=device,
        shared=kept.path.parent if kept else None,
    )  # fmt: skip
    for pairs, found in zip(batches, results, strict=True) if batches else ():
        for (name, item), line in zip(pairs, found, strict=True):
            work.remember(item, line)
            done[name] = _packed(line.result) if kept else (line.result,)
    return [_unpacked(done[name]) for name in keys]


_Packed = bytes | tuple[Any]


def _packed(result: Any) -> _Packed:
    """A result as the line of its journal: a tenth of its objects, which a long run has many of."""
    return (result,) if isinstance(result, Failed) else json.dumps(result).encode()


def _unpacked(packed: _Packed | None) -> Any:
    return json.loads(packed) if isinstance(packed, bytes) else packed[0]  # type: ignore[index]


def hash_of(*parts: Any) -> str:
    """The key of an item: a hash of plain values. Utterances count with the content of their audio.

    >>> hash_of("dnsmos", {"version": 1}) == hash_of("dnsmos", {"version": 2})
    False
    """
    text = json.dumps(parts, sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(part: Any) -> Any:
    if not isinstance(part, Utterance):
        return str(part)
    return [hash_audio(part.path), part.start, part.end]


def hash_audio(path: Path) -> str:
    """Hash of the bytes of an audio file, read once in a process while it does not change."""
    try:
        key = _as_it_is(path)
        if key not in _hashes:
            _hashes[key] = bytes.fromhex(hash_file(path))
        return _hashes[key].hex()
    except OSError as error:
        raise InputError(f"{path}: cannot be read as audio ({error})") from error


def remember_hash(path: Path, digest: str) -> None:
    """Let :func:`hash_audio` give ``digest`` for a file as it is now, without reading it."""
    _hashes[_as_it_is(path)] = bytes.fromhex(digest)


_hashes: dict[bytes, bytes] = {}  # file as it is → hash of its bytes; small, one for every file


def _as_it_is(path: Path) -> bytes:
    """Size and time of change make a changed file be read again."""
    facts = repr((str(path.absolute()), *place_facts(path)))
    return hashlib.blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def hash_file(path: Path) -> str:
    """Hash of the bytes of a file."""
    with open_place(path) as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]  # type: ignore[arg-type]
