"""Directions of vectors: what is left of an embedding when its length is taken away."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import InputError


def unit_length(
    vectors: NDArray[np.floating[Any]], *, shortest: float | None = None
) -> NDArray[np.float64]:
    """Vectors ``(n, d)`` scaled to length one, in float64.

    Args:
        vectors: One in each row; they are not changed.
        shortest: A vector below this length is divided by ``shortest`` instead, so that a zero
            vector stays zero. None: a zero vector is an error, for it has no direction.

    >>> unit_length(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])

    Raises:
        InputError: If a vector is zero and ``shortest`` is None.
    """
    wide = vectors.astype(np.float64)
    norm = np.linalg.norm(wide, axis=1, keepdims=True)
    if shortest is not None:
        norm = np.maximum(norm, shortest)
    elif not norm.all():
        raise InputError("a vector is zero: it has no direction to compare; embed again")
    wide /= norm
    return wide
