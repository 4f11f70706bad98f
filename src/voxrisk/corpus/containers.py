"""Whether an audio file is whole, by its own header: libsndfile reads what is left without a word.

A file that is cut short sounds like a shorter utterance, and every figure of it is of another one.
"""

import os
import struct
from collections.abc import Callable
from typing import BinaryIO

# The formats whose end can be told; libsndfile knows more, and nobody keeps speech in them.
FORMATS = ("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "NIST", "FLAC", "OGG", "MP3")
# What a program writes for the length of a stream that it did not know.
UNKNOWN = (0, 0xFFFFFFFF)
_W64_DATA = b"data\xf3\xac\xd3\x11\x8c\xd1\x00\xc0O\x8e\xdb\x8a"  # a GUID


def cut_short(file: BinaryIO, kind: str, *, missing: int) -> bool:
    """Whether an open file ends before its own header says.

    Args:
        file: The open file; its position is lost.
        kind: libsndfile's name of the format.
        missing: How many samples fewer were decoded than the header told; FLAC, MP3 and NIST tell.
    """
    if kind == "MP3":
        file.seek(0)
        head = file.read(8192)
        # Without this tag the length is only an estimate.
        return missing > 0 and (b"Xing" in head or b"Info" in head)
    look = _LOOKS.get(kind)
    return missing > 0 if look is None else look(file)


def _size(file: BinaryIO) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _riff(file: BinaryIO) -> bool:
    """RIFF (WAV), its big-endian twin RIFX, and RF64 with lengths of 64 bits in ``ds64``."""
    size = _size(file)
    name, *_ = struct.unpack("4s8x", file.read(12).ljust(12, b"\0"))
    if name not in (b"RIFF", b"RIFX", b"RF64"):
        return False
    order, long_data = (">" if name == b"RIFX" else "<"), None
    while len(head := file.read(8)) == 8:
        name, length = struct.unpack(f"{order}4sI", head)
        begin = file.tell()
        if name == b"ds64":
            long_data = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))[0]
        if name == b"data":
            if length == 0xFFFFFFFF and long_data is not None:
                length = long_data
            return bool(length not in UNKNOWN and begin + length > size)
        file.seek(begin + length + length % 2)
    return True


def _w64(file: BinaryIO) -> bool:
    """Sony Wave64: chunks named by GUIDs, each 8 bytes aligned, lengths with their header."""
    size = _size(file)
    file.seek(40)
    while len(head := file.read(24)) == 24:
        name, length = struct.unpack("<16sQ", head)
        begin = file.tell() - 24
        if name == _W64_DATA:
            return bool(length > 24 and begin + length > size)
        if length < 24:
            return True
        file.seek(begin + length + -length % 8)
    return True


def _aiff(file: BinaryIO) -> bool:
    """AIFF and AIFF-C: IFF chunks, big-endian; the sound is in ``SSND``."""
    size = _size(file)
    file.seek(12)
    while len(head := file.read(8)) == 8:
        name, length = struct.unpack(">4sI", head)
        if name == b"SSND":
            return length not in UNKNOWN and file.tell() + length > size
        file.seek(length + length % 2, os.SEEK_CUR)
    return True


def _au(file: BinaryIO) -> bool:
    """Sun AU: where the data begin and how long they are, big-endian (``dns.``: little)."""
    size = _size(file)
    head = file.read(12)
    if len(head) < 12:
        return True
    begin, length = struct.unpack("<4xII" if head[:4] == b"dns." else ">4xII", head)
    return length not in UNKNOWN and begin + length > size


def _caf(file: BinaryIO) -> bool:
    """Apple's Core Audio format: chunks with lengths of 64 bits; -1 is unknown, to the end."""
    size = _size(file)
    file.seek(8)
    while len(head := file.read(12)) == 12:
        name, length = struct.unpack(">4sq", head)
        if name == b"data":
            return bool(length >= 0 and file.tell() + length > size)
        if length < 0:
            return True
        file.seek(length, os.SEEK_CUR)
    return True


def _nist(file: BinaryIO) -> bool:
    """NIST SPHERE: a header in text with the number of samples, their bytes and channels."""
    size = _size(file)
    lines = file.read(4096).decode("latin-1").splitlines()
    said = {cells[0]: cells[2] for line in lines if len(cells := line.split()) == 3}
    try:
        begin = int(lines[1])
        numbers = (int(said[k]) for k in ("sample_count", "sample_n_bytes", "channel_count"))
        count, width, channels = numbers
    except (IndexError, KeyError, ValueError):
        return True
    return begin + count * width * channels > size


def _ogg(file: BinaryIO) -> bool:
    """The last Ogg page must be whole and marked as the end of the stream."""
    size = _size(file)
    file.seek(max(0, size - 70_000))  # a page is at most 65,307 bytes long
    tail = file.read()
    at = tail.rfind(b"OggS")
    if at < 0 or len(tail) < at + 27:
        return True
    segments = tail[at + 27 : at + 27 + tail[at + 26]]
    whole = len(tail) >= at + 27 + tail[at + 26] + sum(segments)
    return not (whole and tail[at + 5] & 4)


_LOOKS: dict[str, Callable[[BinaryIO], bool]] = {
    "WAV": _riff,
    "WAVEX": _riff,
    "RF64": _riff,
    "W64": _w64,
    "AIFF": _aiff,
    "AU": _au,
    "CAF": _caf,
    "NIST": _nist,
    "OGG": _ogg,
}
