"""A ready encoder with a trained map behind it; how the map is trained is :mod:`adapter`."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import ADAPTER, Encoder
from voxrisk.files.arrays import read_npz
from voxrisk.measure.vectors import unit_length
from voxrisk.types import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A trained map.

    Attributes:
        encoder: Name of the ready encoder whose vectors it maps.
        identity: Hash of that encoder's weights, as far as it was known.
        mean: ``(d,)`` mean of the training vectors, each of length one.
        matrix: ``(d, e)``, mostly square.
    """

    encoder: str
    identity: str
    mean: Floats
    matrix: Floats

    def apply(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Map vectors ``(n, d)`` of the ready encoder; the result has length one."""
        return direction(direction(direction(vectors) - self.mean) @ self.matrix).astype(np.float32)


class AdaptedEncoder:
    """A ready encoder with its map; see :class:`voxrisk.attack.Encoder`."""

    def __init__(self, name: str, base: Encoder, adapter: Adapter) -> None:
        if adapter.identity and adapter.identity != base.identity:
            raise InputError(
                f"{name}: was trained behind another {adapter.encoder} than the one that is here "
                f"({adapter.identity[:12]} …, not {base.identity[:12]} …); train it again"
            )
        self.name = name
        self.base, self.adapter = base, adapter
        self.identity = f"{base.identity}+{_fingerprint(adapter)}"
        self.dimension = adapter.matrix.shape[1]

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        return self.adapter.apply(self.base.embed(waveforms))


def direction(vectors: NDArray[np.floating[Any]]) -> Floats:
    """Vectors ``(n, d)`` of length one; one that the map erased to nothing stays zero."""
    return unit_length(vectors, shortest=1e-12)


def read_adapter(folder: Path) -> Adapter:
    """Read what :func:`write_adapter` wrote; nothing in it is executed."""
    path = folder / ADAPTER
    held = read_npz(path)
    if missing := [k for k in ("encoder", "identity", "mean", "matrix") if k not in held]:
        raise InputError(
            f"{path}: not an attacker's map (no array {', '.join(missing)}); train it again"
        )
    mean, matrix = held["mean"], held["matrix"]
    words = [held[key] for key in ("encoder", "identity")]
    shapes = mean.ndim == 1 and matrix.ndim == 2 and matrix.shape[0] == mean.size > 0
    if not shapes or any(x.dtype.kind != "f" for x in (mean, matrix)):
        raise InputError(
            f"{path}: not an attacker's map (a mean of shape {mean.shape} and a matrix of shape "
            f"{matrix.shape}); train it again"
        )
    if any(word.ndim or word.dtype.kind != "U" for word in words):
        raise InputError(f"{path}: does not name its encoder; train the attacker again")
    if not (np.isfinite(mean).all() and np.isfinite(matrix).all()):
        raise InputError(f"{path}: the map is not finite; train the attacker again")
    return Adapter(str(words[0]), str(words[1]), mean, matrix)


def _fingerprint(adapter: Adapter) -> str:
    return hashlib.sha256(adapter.mean.tobytes() + adapter.matrix.tobytes()).hexdigest()[:32]
