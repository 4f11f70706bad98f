"""Text files of any origin: UTF-8 with or without a byte-order mark, gzipped or not."""

import contextlib
import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_TEXT, refuse_bomb, refuse_size
from voxrisk.types import InputError


@contextlib.contextmanager
def open_text(path: Path, *, newline: str | None = None) -> Iterator[TextIO]:
    """Open a text file to be read line by line; gzip is known by its first bytes.

    A byte-order mark is no part of the text.

    Raises:
        InputError: Inside the block too, if the file is no UTF-8 text (the line is named), no whole
            gzip archive, or one that unpacks to far more than it may.
    """
    with contextlib.ExitStack() as stack:
        try:
            with reading(path):
                stream = stack.enter_context(_open(path, newline))
            yield stream
        except (UnicodeDecodeError, OSError, EOFError, zlib.error, csv.Error) as error:
            # Only what a stream raises: the block's own mistakes are not the file's.
            with reading(path, "a text table"):
                raise error


def read_text(path: Path) -> str:
    """The whole of a small text file."""
    refuse_size(path, MOST_TEXT)
    with open_text(path) as stream:
        return stream.read()


def read_words(path: Path) -> str | None:
    """A transcript as one line, or None where the file is empty."""
    return " ".join(read_text(path).split()) or None


def refuse_unwritable(text: str, where: str) -> None:
    """Refuse half characters: they come from JSON escapes or old file names and fit no file.

    Raises:
        InputError: With the text as Python writes it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: {text!a} is not valid Unicode; rename it in UTF-8") from None


def _open(path: Path, newline: str | None) -> TextIO:
    with path.open("rb") as stream:
        head = stream.read(3)
    if head in (b"\xef", b"\xef\xbb"):  # Python reads half a byte-order mark as an empty text
        raise InputError(f"{path} line 1: is not UTF-8 text; save it as UTF-8")
    if head[:2] == b"\x1f\x8b":
        return io.TextIOWrapper(_Unpacked(path), encoding="utf-8-sig", newline=newline)
    return path.open(encoding="utf-8-sig", newline=newline)


class _Unpacked(gzip.GzipFile):
    """A gzip file that is refused once it turns out to be a bomb."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path, self._packed, self._seen = path, path.stat().st_size, 0

    def read(self, size: int | None = -1) -> bytes:
        # TextIOWrapper asks for all that is left when it is asked so itself: go in steps.
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read1(io.DEFAULT_BUFFER_SIZE), b""))
        return self._count(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._count(super().read1(size))

    def _count(self, data: Any) -> bytes:
        self._seen += len(data)
        refuse_bomb(self._path, self._packed, self._seen)
        return bytes(data)
