"""Where a file lies: on a disk, inside a tar, or anywhere that fsspec reaches (s3, gs, https …).

All are paths. A member of a tar is a path that goes through it (``shard-0001.tar/p225-001.flac``),
a remote file one that begins with its protocol (``s3://bucket/clips/1.mp3``; :class:`~pathlib.Path`
keeps one of the slashes, which is understood too). Members are read where they lie, a tar is never
unpacked, and its table of contents is read once in a process.
"""

import contextlib
import functools
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from voxrisk.files.errors import reading
from voxrisk.types import InputError, require

# Two letters at least: a single one is a drive of Windows.
_REMOTE = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)", re.DOTALL)


# What file systems call a sign that changes with the content.
_MARKS = ("ETag", "etag", "mtime", "LastModified", "updated", "created")


class Member(NamedTuple):
    """Where a file lies inside a tar."""

    offset: int
    size: int


def remote_address(path: Path | str) -> str | None:
    """The address of a remote file, or None where ``path`` is on a disk.

    >>> remote_address(Path("s3://bucket/a.flac")), remote_address("C:/a.flac")
    ('s3://bucket/a.flac', None)
    """
    found = _REMOTE.fullmatch(str(path).replace("\\", "/"))
    return f"{found[1]}://{found[2]}" if found else None


def place_at(base: Path, text: str) -> Path:
    """The place that ``text`` names in a file that lies in ``base``."""
    return Path(text) if remote_address(text) else base / text


def place_name(path: Path, home: Path) -> str:
    """What to write into a file in the folder ``home`` so that :func:`place_at` finds ``path``."""
    if (address := remote_address(path)) is not None:
        return address
    full = path.absolute()
    return (full.relative_to(home) if full.is_relative_to(home) else full).as_posix()


def place_exists(path: Path) -> bool:
    """Whether there is such a file, member or object."""
    try:
        if path.is_file():
            return True
        if (inside := _through_tar(path)) is not None:
            return inside[1] in tar_members(inside[0])
        if (address := remote_address(path)) is not None:
            system, name = _system(address)
            return bool(system.isfile(name))
    except OSError:  # a name longer than any disk allows, a folder without permission
        return False
    return False


def place_facts(path: Path) -> tuple[int, int]:
    """Size and time of change, or what stands for it: both are the same while the bytes are."""
    inside = _through_tar(path)
    if inside is not None:
        _, changed = place_facts(inside[0])
        return _member(*inside).size, changed
    if (address := remote_address(path)) is not None:
        system, name = _system(address)
        about = system.info(name)
        marks = "|".join(str(about.get(key)) for key in _MARKS)
        return int(about["size"]), zlib.crc32(marks.encode())
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


@contextlib.contextmanager
def open_place(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes; a member or an object is read whole, as utterances are."""
    inside = _through_tar(path)
    if inside is not None:
        tar, name = inside
        member = _member(tar, name)
        with _open_whole(tar) as stream:
            stream.seek(member.offset)
            yield io.BytesIO(stream.read(member.size))
    elif remote_address(path) is not None:
        with _open_whole(path) as stream:
            yield io.BytesIO(stream.read())
    else:
        with path.open("rb") as stream:
            yield stream


def on_disk(path: Path) -> bool:
    """Whether it is a plain file, which libraries can open by themselves."""
    return path.is_file()


def tar_members(tar: Path) -> dict[str, Member]:
    """The files of a tar in their order; the same tar is looked through once in a process."""
    return _members(tar, place_facts(tar))


@functools.lru_cache(maxsize=64)
def _members(tar: Path, facts: tuple[int, int]) -> dict[str, Member]:
    with (
        reading(tar, "a tar"),
        _open_whole(tar) as stream,
        tarfile.open(fileobj=stream, mode="r:") as opened,  # in packed ones nothing can be sought
    ):
        found: dict[str, Member] = {}
        for member in opened:
            if not member.isfile():
                continue
            name = _inside(tar, member.name)
            if name in found:
                raise InputError(f"{tar}: holds {name} twice, and only one can be meant; repack it")
            found[name] = Member(member.offset_data, member.size)
        # A tar ends with blocks of zeros; without them a part of it is gone, and nobody would say.
        stream.seek(opened.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise InputError(f"{tar}: is cut short; copy or download it again")
    return found


def _inside(tar: Path, name: str) -> str:
    """The name of a member as paths have it; one that leads out of the tar is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise InputError(
            f"{tar}: the name of its member {name!r} leads out of the tar; pack it again with "
            "plain names"
        )
    return str(path)


def _member(tar: Path, name: str) -> Member:
    try:
        return tar_members(tar)[name]
    except KeyError:
        raise InputError(f"{tar}: holds no file {name}; make the tar or the table again") from None


def _through_tar(path: Path) -> tuple[Path, str] | None:
    """The tar that a path goes through, and the name inside of it."""
    parts = path.parts
    for k, part in enumerate(parts[:-1], start=1):
        if part.endswith(".tar"):
            tar = Path(*parts[:k])
            if remote_address(tar) is not None or tar.is_file():
                return tar, "/".join(parts[k:])
    return None


@contextlib.contextmanager
def _open_whole(path: Path) -> Iterator[BinaryIO]:
    address = remote_address(path)
    if address is None:
        with path.open("rb") as stream:
            yield stream
        return
    system, name = _system(address)
    with system.open(name, "rb") as stream:
        yield stream


def _system(address: str) -> tuple[Any, str]:
    fsspec: Any = require("fsspec", extra="remote")
    try:
        system, name = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{address}: {error}; s3 needs the package s3fs, gs needs gcsfs"
        ) from error
    return system, name
