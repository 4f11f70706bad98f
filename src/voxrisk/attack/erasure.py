"""Remove from vectors what any linear classifier could know of a label, with the least change.

Reference: Belrose et al., "LEACE: Perfect linear concept erasure in closed form", NeurIPS 2023.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import InputError

Floats: TypeAlias = NDArray[np.float64]

KEPT = 0.25  # of the dimensions must be left to recognise anybody with
EACH = 3  # training utterances for each class, on average: fewer do not show what a class is


def check_classes(classes: int, *, utterances: int, dimension: int | None = None) -> None:
    """Refuse more targets than can be unlearned.

    Args:
        classes: Different targets.
        utterances: Training utterances.
        dimension: Of the vectors, where each target costs one of them (erasure).

    Raises:
        InputError: With both numbers and the way out.

    >>> check_classes(100, utterances=651, dimension=192)
    """
    most = utterances // EACH
    if classes > most:
        raise InputError(
            f"{utterances} training utterances have {classes} different targets: too many to "
            f"unlearn, at most {most} ({EACH} utterances for each); anonymize more training "
            "speech, or with fewer target speakers"
        )
    if dimension is not None and classes - 1 > (1 - KEPT) * dimension:
        raise InputError(
            f"{classes} targets: too many to erase from {dimension} dimensions, since each takes "
            f"one and {KEPT:.0%} must be left; anonymize the training speech with at most "
            f"{int((1 - KEPT) * dimension) + 1} targets, or unlearn by the reversed gradient"
        )


def erasure(x: Floats, label: NDArray[np.int64]) -> Floats:
    """The projection ``(d, d)`` after which no linear classifier tells the labels of ``x (n, d)``.

    All class means become the same, and of all such maps this one changes the vectors least. It
    takes one dimension for each class but one: 99 of 192 for the 100 targets of paper 3. The
    covariance is shrunk towards a sphere, since it is badly known from few vectors; the means
    become the same for any shrinkage.

    Raises:
        InputError: If there are so many classes that under a quarter of the dimensions would be
            left, or under three vectors for each class.
    """
    count = np.bincount(label)
    count_seen = count[count > 0]
    check_classes(count_seen.size, utterances=len(x), dimension=x.shape[1])
    centre = np.zeros((count.size, x.shape[1]))
    np.add.at(centre, label, x)
    centre = centre[count > 0] / count_seen[:, None]
    covariance = np.cov(x.T)
    sphere = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    power, axes = np.linalg.eigh(0.9 * covariance + 0.1 * sphere)
    root = axes * np.sqrt(power) @ axes.T
    inverse = axes / np.sqrt(power) @ axes.T
    differences = (centre - x.mean(axis=0)) * np.sqrt(count_seen)[:, None] @ inverse
    values, directions = np.linalg.svd(differences, full_matrices=False)[1:]
    basis = directions[values > 1e-9 * values.max()]
    projection: Floats = np.eye(x.shape[1]) - inverse @ basis.T @ basis @ root
    return projection
