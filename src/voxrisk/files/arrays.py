"""NumPy's files, read without trust: no pickles, no header believed before the size is checked."""

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.files.limits import claimed_bytes, refuse_bomb
from voxrisk.types import InputError

KINDS = "biufUS"  # truth values, numbers and text; anything else is no data of ours
Array = NDArray[Any]


def read_npz(path: Path, names: Sequence[str] | None = None) -> dict[str, Array]:
    """The arrays ``names`` of an NPZ file, as far as they are there; None reads all.

    Raises:
        InputError: If the archive or an array is damaged, holds Python objects, or unpacks to far
            more than it may; the message names file and array.
    """
    found: dict[str, Array] = {}
    with reading(path, "NumPy arrays"), zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise InputError(f"{path}: an array is there twice; write it again")
        wanted = [name for name in members if names is None or name in names]
        refuse_bomb(path, path.stat().st_size, sum(members[name].file_size for name in wanted))
        for name in wanted:
            where = f"{path} array {name}"
            with archive.open(members[name]) as stream:
                _check(stream, members[name].file_size, where)
            with archive.open(members[name]) as stream:
                found[name] = _array(stream, where)
    return found


def array_names(path: Path) -> list[str]:
    """Which arrays an NPZ file holds."""
    with reading(path, "NumPy arrays"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_npy(path: Path) -> Array:
    """The array of an NPY file; the same rules as for :func:`read_npz`."""
    with reading(path, "NumPy arrays"), path.open("rb") as stream:
        _check(stream, path.stat().st_size, str(path))
        stream.seek(0)
        return _array(stream, str(path))


def as_text(array: Array, where: str) -> NDArray[np.str_]:
    """Ids, whatever type they were stored in; flat.

    Raises:
        InputError: If they are no text or numbers, or hold characters that do not exist.
    """
    if array.dtype.kind not in "iuUS":
        raise InputError(f"{where}: ids are of type {array.dtype}, not text")
    with reading(where):
        if array.dtype.kind == "S":
            return np.char.decode(array, "utf-8")
        return np.ascontiguousarray(array).astype(str)


def _check(stream: Any, size: int, where: str) -> None:
    """Hold what the header claims against the bytes that are there, before memory is taken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers by Python 2 are read as well
        version = np.lib.format.read_magic(stream)
        read_header: Any = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise InputError(f"{where}: is of NumPy's version {version}; save it again")
        shape, _, dtype = read_header(stream)
    if dtype.hasobject or dtype.kind not in KINDS:
        raise InputError(
            f"{where}: cannot be read as NumPy arrays (it holds {dtype}, no numbers or text); "
            "Python objects are never loaded: save plain arrays"
        )
    claimed, there = claimed_bytes(shape, dtype.itemsize), size - stream.tell()
    if min(shape, default=0) < 0 or claimed != there:
        raise InputError(
            f"{where}: its header claims {claimed:,} bytes {shape}, {there:,} are there; "
            "it is damaged, write or copy it again"
        )


def _array(stream: BinaryIO | Any, where: str) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    stream.read(1)  # at its end an archive checks the checksum
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="))
        points = codes.reshape(-1).view(np.uint32) if codes.itemsize else np.zeros(0, np.uint32)
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
            raise InputError(f"{where}: holds text that is not valid Unicode; write it again")
    return array
