"""How much a file may hold: what voxrisk refuses before it fills memory or disk.

A small file can claim to be a large one. Every reader asks here before it believes a claim;
``docs/limits.md`` has the same numbers in words.
"""

import math
from pathlib import Path

from voxrisk.types import InputError

FREE_BYTES = 256 * 2**20  # unpacked: up to here nothing is asked
UNPACKED_RATIO = 200  # beyond it, at most so many times the packed size; deflate reaches 1,032
MOST_ROWS = 500_000_000  # of one table
MOST_TEXT = 64 * 2**20  # bytes of one transcript, TextGrid or JSON file
MOST_YAML = 2**20  # bytes of an evaluation.yaml
MOST_RESULTS = 2 * 2**30  # bytes of results.json, which may hold audio
LONGEST_ID = 4096  # bytes of an id in a Kaldi archive
MOST_DIMENSIONS = 65_536  # of an embedding, or of a layer of an encoder


def refuse_bomb(path: Path | str, packed: int, unpacked: int) -> None:
    """Refuse content that unpacks to far more than any real file of its size does.

    >>> refuse_bomb("scores.npz", packed=10**9, unpacked=2 * 10**9)
    >>> refuse_bomb("scores.npz", packed=10**6, unpacked=10**9)
    Traceback (most recent call last):
        ...
    voxrisk.types.InputError: scores.npz: 1 MB that unpack to 1000 MB or more, over 200 times as \
much; refused. If it is sound, unpack it first
    """
    if unpacked > max(FREE_BYTES, UNPACKED_RATIO * packed):
        raise InputError(
            f"{path}: {packed / 1e6:.0f} MB that unpack to {unpacked / 1e6:.0f} MB or more, over "
            f"{UNPACKED_RATIO} times as much; refused. If it is sound, unpack it first"
        )


def refuse_rows(path: Path | str, rows: int) -> None:
    """Refuse a table that claims more rows than fit."""
    if rows > MOST_ROWS:
        raise InputError(f"{path}: claims {rows:,} rows; at most {MOST_ROWS:,} are read")


def refuse_size(path: Path, most: int) -> None:
    """Refuse a file of text that is larger than any real one of its kind."""
    if path.is_file() and (size := path.stat().st_size) > most:
        raise InputError(
            f"{path}: {size / 1e6:.0f} MB; a file of this kind has at most {most / 1e6:.0f} MB"
        )


def claimed_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    """Bytes of an array by its header alone, without the overflow of machine numbers."""
    return math.prod(int(length) for length in shape) * itemsize
