"""Guess the parameter that an anonymizer drew for an utterance, from how the utterance sounds.

An anonymizer that draws one number for each utterance hides little behind it if the number can be
heard: whoever has the anonymizer makes speech with known numbers and learns to tell them. A guess
is a ridge regression of the number's logarithm on vectors of ready encoders; the strength of the
ridge is chosen by cross-validation over speakers.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.soundness import speaker_folds
from voxrisk.types import Embeddings, InputError

Floats: TypeAlias = NDArray[np.float64]
FOLDS = 5
RIDGES = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """A fitted guess.

    Attributes:
        mean: ``(d,)`` of the training vectors.
        weight: ``(d,)``.
        offset: Mean of the logarithms.
        span: Smallest and largest value of the training: no guess lies beyond.
        held_out: ``(n,)`` guesses for the training utterances, each by the other folds of speakers.
        correlation: Of these with the true logarithms; 0: it cannot be heard.
    """

    mean: Floats
    weight: Floats
    offset: float
    span: tuple[float, float]
    held_out: Floats
    correlation: float

    def of(self, vectors: NDArray[np.floating[Any]]) -> Floats:
        """Guesses ``(n,)`` for vectors ``(n, d)``."""
        found = np.exp((vectors - self.mean) @ self.weight + self.offset)
        return np.asarray(np.clip(found, *self.span))


def fit_guess(embeddings: Embeddings, values: Floats, *, seed: int = 0) -> Guess:
    """Learn to hear a parameter.

    Args:
        embeddings: Vectors ``(n, d)`` of speech that was made with known values.
        values: ``(n,)`` positive values that were drawn.
        seed: Deals the speakers into folds.

    Raises:
        InputError: If the values do not vary or are not positive, or there are too few speakers.
    """
    if values.shape != embeddings.speaker.shape or not (values > 0).all():
        raise InputError(f"{embeddings.source}: one positive value for each utterance is needed")
    y = np.log(values)
    if float(y.std()) < 1e-6:
        raise InputError(f"{embeddings.source}: all values are the same; nothing to guess")
    _, code, each = np.unique(embeddings.speaker, return_inverse=True, return_counts=True)
    folds = max(2, min(FOLDS, int((each > 1).sum()) // 2))
    fold = speaker_folds(embeddings, folds=folds, seed=seed)[code]
    x = embeddings.vectors.astype(np.float64)
    tried = {ridge: _crossed(x, y, fold, ridge) for ridge in RIDGES}
    best = min(tried, key=lambda ridge: float(((tried[ridge] - y) ** 2).mean()))
    mean, weight, offset = _ridge(x, y, best)
    span = float(values.min()), float(values.max())
    held_out = np.clip(np.exp(tried[best]), *span)
    fit = float(np.corrcoef(np.log(held_out), y)[0, 1]) if held_out.std() > 0 else 0.0
    return Guess(mean, weight, offset, span, held_out, fit)


def _crossed(x: Floats, y: Floats, fold: NDArray[np.int64], ridge: float) -> Floats:
    found = np.empty(y.size)
    for number in np.unique(fold):
        held = fold == number
        mean, weight, offset = _ridge(x[~held], y[~held], ridge)
        found[held] = (x[held] - mean) @ weight + offset
    return found


def _ridge(x: Floats, y: Floats, ridge: float) -> tuple[Floats, Floats, float]:
    mean, offset = x.mean(axis=0), float(y.mean())
    z = x - mean
    gram = z.T @ z + ridge * np.eye(x.shape[1])
    return mean, np.linalg.solve(gram, z.T @ (y - offset)), offset
