"""Whole files or none: what is written appears under its name only when it is complete."""

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from voxrisk.files.errors import writing
from voxrisk.types import InputError

SYNC_THREADS = 32  # they only wait


@contextlib.contextmanager
def atomic(path: Path | str, *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path in the same folder; it takes the name ``path`` when the block succeeds.

    A kill leaves at most a hidden ``.part`` file, an error leaves nothing, and two processes that
    write the same file cannot mix their bytes.

    ``sync`` waits for the disk, so that not even a power cut leaves an empty file under the name.
    Without it that can happen: only for files whose hash a journal knows, and which
    :func:`sync_files` follows before they are called finished.
    """
    path = Path(path)
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{uuid.uuid4().hex}.part{path.suffix}")
    try:
        with writing(path):
            yield part
            if sync:
                _sync(part)
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def sync_files(paths: Iterable[Path]) -> None:
    """Wait until files are on the disk: together, which takes a fraction of one after another."""
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        for _ in pool.map(_sync, paths):
            pass


def _sync(path: Path) -> None:
    with writing(path), path.open("rb+") as stream:
        os.fsync(stream.fileno())


naming_a_full_disk = writing  # by which the journal knows it


def remove_leftovers(folder: Path) -> None:
    """Remove the half-written files that a kill left anywhere in a folder."""
    for part in folder.rglob(".*.part*"):
        part.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a whole UTF-8 text file at once."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def write_private(path: Path, text: str) -> None:
    """Write a text file that only its owner can read: a key, a secret."""
    with atomic(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def output_folder(path: Path | str, *, force: bool = False) -> Path:
    """Make ``path``, refusing to write into a folder that already holds something.

    Raises:
        InputError: If the folder is not empty and ``force`` is false, or a file is in the way.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; -o needs a folder")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise InputError(f"{path} is not empty; choose another folder or add --force")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path
