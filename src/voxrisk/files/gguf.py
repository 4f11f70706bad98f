"""GGUF, the form in which small language models are given away: facts, and quantised tensors.

Layout (version 2 and 3, little-endian): the word GGUF, version, number of tensors, number of facts;
facts (name, kind, value); tensors (name, shape with the fastest axis first, kind, offset); then,
aligned, their blocks. A block of Q8_0 holds 32 values as a scale and 32 bytes; one of Q4_1 as a
scale, a least value and 32 half bytes, the lower halves first.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.types import InputError

NUMBERS = "BbHhIif?"  # kinds 0 to 7 as struct knows them
LONG = {10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
BLOCK = 32
MOST_AXES = 4
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Gguf:
    """What a file holds: facts by name, and tensors, unpacked to single precision."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Floats]


def _plain(kind: str) -> Callable[[NDArray[np.uint8]], Floats]:
    return lambda raw: raw.view(kind).astype(np.float32)


def _q8_0(raw: NDArray[np.uint8]) -> Floats:
    rows = raw.reshape(-1, 2 + BLOCK)
    scale = rows[:, :2].copy().view("<f2").astype(np.float32)
    return np.asarray(scale * rows[:, 2:].copy().view(np.int8)).ravel()


def _q4_1(raw: NDArray[np.uint8]) -> Floats:
    rows = raw.reshape(-1, 4 + BLOCK // 2)
    scale, least = (rows[:, k : k + 2].copy().view("<f2").astype(np.float32) for k in (0, 2))
    half = np.concatenate([rows[:, 4:] & 15, rows[:, 4:] >> 4], axis=1)
    return np.asarray(scale * half.astype(np.float32) + least).ravel()


# Kind → bytes of how many values, and how they are unpacked.
KINDS: dict[int, tuple[int, int, Callable[[NDArray[np.uint8]], Floats]]] = {
    0: (4, 1, _plain("<f4")),
    1: (2, 1, _plain("<f2")),
    3: (4 + BLOCK // 2, BLOCK, _q4_1),
    8: (2 + BLOCK, BLOCK, _q8_0),
}


def read_gguf(path: Path) -> Gguf:
    """Facts and tensors of a file.

    Raises:
        InputError: If it is no such file, is not whole, or holds tensors of another kind.
    """
    with reading(path, "a GGUF model"):
        data = path.read_bytes()
        if data[:4] != b"GGUF":
            raise InputError(f"{path}: is no GGUF file")
        cursor = _Cursor(path, data, 4)
        version, tensors, facts = cursor.take("IQQ")
        if version not in (2, 3):
            raise InputError(f"{path}: is GGUF of version {version}; 2 and 3 are read")
        found = dict(_fact(cursor) for _ in range(cursor.fitting(facts)))
        heads = [_head(cursor) for _ in range(cursor.fitting(tensors))]
        align = int(found.get("general.alignment", 32))
        start = -(-cursor.at // align) * align
        return Gguf(found, {h[0]: _tensor(cursor, start, *h) for h in heads})


class _Cursor:
    """A place in the file, and what is read from there."""

    def __init__(self, path: Path, data: bytes, at: int) -> None:
        self.path, self.data, self.at = path, data, at

    def take(self, kinds: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{kinds}", self.data, self.at)
        self.at += struct.calcsize(f"<{kinds}")
        return found

    def fitting(self, count: int) -> int:
        """A number of items, refused if the rest of the file cannot hold as many."""
        if count > len(self.data) - self.at:
            raise InputError(f"{self.path}: claims {count:,} items and is shorter than that")
        return count

    def text(self) -> str:
        size = self.fitting(self.take("Q")[0])
        self.at += size
        return self.data[self.at - size : self.at].decode()


def _fact(cursor: _Cursor) -> tuple[str, Any]:
    name = cursor.text()
    return name, _value(cursor, cursor.take("I")[0])


def _value(cursor: _Cursor, kind: int) -> Any:
    if kind == TEXT:
        return cursor.text()
    if kind == ARRAY:
        inner, count = cursor.take("IQ")
        if inner == ARRAY:
            raise InputError(f"{cursor.path}: holds lists of lists, which no model needs")
        return [_value(cursor, inner) for _ in range(cursor.fitting(count))]
    letter = NUMBERS[kind] if kind < len(NUMBERS) else LONG[kind]
    return cursor.take(letter)[0]


def _head(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text()
    axes = cursor.take("I")[0]
    if not 1 <= axes <= MOST_AXES:
        raise InputError(f"{cursor.path}: the tensor {name!r} has {axes} axes")
    shape = cursor.take("Q" * axes)[::-1]
    kind, offset = cursor.take("IQ")
    return name, shape, kind, offset


def _tensor(
    cursor: _Cursor, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int
) -> Floats:
    if kind not in KINDS:
        raise InputError(
            f"{cursor.path}: the tensor {name!r} is of kind {kind}; "
            "F32, F16, Q4_1 and Q8_0 are read"
        )
    size, values, unpack = KINDS[kind]
    count = math.prod(shape)
    if count % values or shape[-1] % values:
        raise InputError(f"{cursor.path}: the tensor {name!r} is cut through a block")
    raw = np.frombuffer(cursor.data, np.uint8, count // values * size, start + offset)
    found = unpack(raw).reshape(shape)
    if not np.isfinite(found).all():
        raise InputError(f"{cursor.path}: the tensor {name!r} holds values that are not finite")
    return found
