"""The nearest of many frames, at the speed of the matrix product that compares them."""

import numba
import numpy as np
from numpy.typing import NDArray

from voxrisk.types import InputError

BLOCK = 512  # source frames compared at once,
CHUNK = 1024  # with so many of the target: what they give stays in the cache
STRETCH = 128  # of the compared, looked at together


def nearest(source: NDArray[np.float32], target: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Rows ``(t, k)`` of ``target (n, d)`` with the highest dot product, in ascending order.

    Of rows that are equally near the first are taken.
    """
    if k < 1:
        raise InputError(f"k is {k}; at least one nearest frame is needed")
    found = np.zeros((len(source), min(k, len(target))), np.intp)
    best = np.full(found.shape, -np.inf, np.float32)
    room = np.empty(BLOCK * CHUNK, np.float32)
    for start in range(0, len(source), BLOCK):
        some, rows = source[start : start + BLOCK], slice(start, start + BLOCK)
        for first in range(0, len(target), CHUNK):
            part = target[first : first + CHUNK]
            likeness = room[: len(some) * len(part)].reshape(len(some), len(part))
            np.matmul(some, part.T, out=likeness)
            _highest(likeness, first, best[rows], found[rows])
    found.sort(axis=1)
    return found


@numba.njit(cache=True, nogil=True)
def _highest(
    likeness: NDArray[np.float32], first: int, best: NDArray[np.float32], out: NDArray[np.intp]
) -> None:
    """Bring the highest values of each row among its ``best``, and where they stand into ``out``.

    Columns are numbered from ``first``. Sorting them all would take ten times as long.
    """
    k = out.shape[1]
    for j in range(likeness.shape[0]):
        for start in range(0, likeness.shape[1], STRETCH):
            part = likeness[j, start : start + STRETCH]
            lowest = best[j, k - 1]
            higher = 0
            for i in range(part.size):  # counting needs no branch, and most stretches hold nothing
                higher += part[i] > lowest
            if higher:
                for i in range(part.size):
                    if part[i] > best[j, k - 1]:
                        _insert(best[j], out[j], k - 1, part[i], first + start + i)


@numba.njit(cache=True, nogil=True)
def _insert(
    best: NDArray[np.float32], where: NDArray[np.intp], end: int, value: float, at: int
) -> None:
    """Put a value among the ``end`` highest, which stand in order; what was at ``end`` goes."""
    while end > 0 and best[end - 1] < value:
        best[end] = best[end - 1]
        where[end] = where[end - 1]
        end -= 1
    best[end] = value
    where[end] = at
