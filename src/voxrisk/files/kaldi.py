"""Vectors in Kaldi's archives (.ark, .scp; binary or text) and its lists of speakers."""

import re
import struct
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.limits import LONGEST_ID, MOST_DIMENSIONS
from voxrisk.files.numbers import read_number
from voxrisk.files.text import open_text
from voxrisk.types import InputError

Vector = NDArray[np.generic]
_KINDS: dict[bytes, np.dtype[Any]] = {b"FV ": np.dtype("<f4"), b"DV ": np.dtype("<f8")}


def read_vectors(path: Path) -> dict[str, Vector]:
    """Vectors by utterance id, from an archive or from a list of places in archives."""
    return _read_scp(path) if path.suffix == ".scp" else _read_ark(path)


def read_utt2spk(folder: Path) -> tuple[dict[str, str], Path]:
    """Speaker of each utterance from ``utt2spk`` or ``spk2utt``, and which of the two it was."""
    if (path := folder / "utt2spk").is_file():
        pairs = [
            (line, name, rest[0])
            for line, name, rest in _lines(path)
            if _complete(path, line, len(rest) == 1, "utterance speaker")
        ]
    elif (path := folder / "spk2utt").is_file():
        pairs = [
            (line, name, speaker)
            for line, speaker, rest in _lines(path)
            if _complete(path, line, len(rest) >= 1, "speaker utterance utterance …")
            for name in rest
        ]
    else:
        raise InputError(f"{folder}: who speaks? Put utt2spk or spk2utt beside the embeddings")
    speaker_of: dict[str, str] = {}
    for line, name, speaker in pairs:
        if name in speaker_of:
            raise InputError(f"{path} line {line}: utterance {name} is there twice; keep one")
        speaker_of[name] = speaker
    return speaker_of, path


def _complete(path: Path, line: int, good: bool, form: str) -> bool:
    if not good:
        raise InputError(f"{path} line {line}: expected '{form}'")
    return True


def _lines(path: Path) -> list[tuple[int, str, list[str]]]:
    with open_text(path) as stream:
        numbered = [(i, line.split()) for i, line in enumerate(stream, 1)]
    return [(i, cells[0], cells[1:]) for i, cells in numbered if cells]


def _read_ark(path: Path) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    with path.open("rb") as stream:
        while (name := _name(stream, path)) is not None:
            if name in found:
                raise InputError(f"{path}: utterance {name} is there twice; keep one of them")
            found[name] = _vector(stream, path, name)
    return found


def _read_scp(path: Path) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    for line, name, rest in _lines(path):
        place = " ".join(rest)
        if place.endswith("|"):
            raise InputError(
                f"{path} line {line}: commands are not run; write the vectors to a file"
            )
        file, _, offset = place.rpartition(":")
        if not file or not re.fullmatch("[0-9]+", offset):
            raise InputError(f"{path} line {line}: expected 'utterance archive.ark:offset'")
        if name in found:
            raise InputError(f"{path} line {line}: utterance {name} is there twice; keep one")
        archive = _archive(path, Path(file), line)
        with archive.open("rb") as stream:
            stream.seek(int(offset))
            found[name] = _vector(stream, archive, name)
    return found


def _archive(scp: Path, file: Path, line: int) -> Path:
    """Where the archive is: beside the list, as written, or moved together with the list."""
    for candidate in (scp.parent / file, file, scp.parent / file.name):
        if candidate.is_file():
            return candidate
    raise InputError(f"{scp} line {line}: no archive {file}; put {file.name} beside the list")


def _name(stream: BufferedReader, path: Path) -> str | None:
    name = bytearray()
    while (byte := stream.read(1)) not in (b" ", b"\t", b""):
        name += byte
        if len(name) > LONGEST_ID:
            raise InputError(f"{path}: is no Kaldi archive: no id ends in {LONGEST_ID} bytes")
    try:
        text = name.decode().removeprefix("\ufeff").strip()
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: the id {bytes(name)!r} is not UTF-8; it is damaged, copy it again"
        ) from None
    if byte == b"":
        if text:
            raise InputError(f"{path}: ends in the middle of utterance {text}; copy it again")
        return None
    if not text or "\0" in text or len(text.split()) > 1:
        raise InputError(f"{path}: {text!r} is no id; the archive is damaged, copy it again")
    return text


def _vector(stream: BufferedReader, path: Path, name: str) -> Vector:
    start = stream.read(2)
    if start != b"\0B":
        return _text_vector(start + stream.readline(64 * MOST_DIMENSIONS), path, name)
    kind = stream.read(3)
    if kind not in _KINDS:
        raise InputError(
            f"{path}: utterance {name} is of Kaldi type {kind!r}, not a vector (FV or DV); "
            "give one vector for each utterance"
        )
    try:
        width, size = struct.unpack("<bi", stream.read(5))
        if width != 4 or not 1 <= size <= MOST_DIMENSIONS:
            raise ValueError
        data = stream.read(size * _KINDS[kind].itemsize)
        return np.frombuffer(data, _KINDS[kind], count=size)
    except (struct.error, ValueError):
        raise InputError(f"{path}: utterance {name} is cut off or damaged; copy it again") from None


def _text_vector(text: bytes, path: Path, name: str) -> Vector:
    cells = text.decode("ascii", errors="replace").split()
    try:
        if cells[0] != "[" or cells[-1] != "]":
            raise ValueError
        values = [read_number(cell, "a value", f"{path}") for cell in cells[1:-1]]
        with np.errstate(over="ignore"):  # what overflows is not finite, and named as such
            return np.array(values).astype(np.float32)
    except (IndexError, ValueError):
        raise InputError(
            f"{path}: the vector of utterance {name} is not written '[ 0.1 0.2 … ]'"
        ) from None
