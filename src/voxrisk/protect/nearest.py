"""The nearest of many frames, at the speed of the matrix product that compares them."""

import numba
import numpy as np
from numpy.typing import NDArray

from voxrisk.types import InputError

BLOCK = 512  # source frames compared at once
STRETCH = 128  # of the compared, looked at together


def nearest(source: NDArray[np.float32], target: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Rows ``(t, k)`` of ``target (n, d)`` with the highest dot product, in ascending order.

    Of rows that are equally near the first are taken.
    """
    if k < 1:
        raise InputError(f"k is {k}; at least one nearest frame is needed")
    found = np.empty((len(source), min(k, len(target))), np.intp)
    for start in range(0, len(source), BLOCK):
        likeness = source[start : start + BLOCK] @ target.T
        _highest(likeness, found[start : start + BLOCK])
    found.sort(axis=1)
    return found


@numba.njit(cache=True, nogil=True)
def _highest(likeness: NDArray[np.float32], out: NDArray[np.intp]) -> None:
    """Where the highest values of each row are; sorting them all would take ten times as long."""
    k = out.shape[1]
    best = np.empty(k, likeness.dtype)
    for j in range(likeness.shape[0]):
        # The first k, highest first, equal ones in their order.
        for i in range(k):
            _insert(best, out[j], i, likeness[j, i], i)
        for start in range(k, likeness.shape[1], STRETCH):
            part = likeness[j, start : start + STRETCH]
            lowest = best[k - 1]
            higher = 0
            for i in range(part.size):  # counting needs no branch, and most stretches hold nothing
                higher += part[i] > lowest
            if higher:
                for i in range(part.size):
                    if part[i] > best[k - 1]:
                        _insert(best, out[j], k - 1, part[i], start + i)


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
