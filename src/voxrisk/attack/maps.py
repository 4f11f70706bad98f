"""Back ends of an attacker as linear maps behind an encoder, fitted on training speech alone.

Each takes vectors of a ready encoder and gives vectors that are compared by their cosine, so any
attacker is vectors and every figure, control and crowd takes them. A row of :data:`BACKENDS` is one
way to fit the map; x are vectors of length one, less their mean, and of length one again.

* ``centred``: nothing but the mean is removed.
* ``wccn``: directions in which a speaker's own utterances vary count less (within-class covariance
  normalisation; Hatch, Kajarekar and Stolcke, Interspeech 2006).
* ``plda``: the part of a two-covariance PLDA's score that joins both sides. In coordinates where W
  is the identity and B = diag(ψ) it is Σ u v ψ / (1 + 2ψ), an inner product of mapped vectors; the
  rest depends on one side only, and the cosine takes its place.
* ``erased wccn``: what tells target voices apart is removed before (:mod:`voxrisk.attack.erasure`).
* ``adapter``: the map of the informed attacker (:mod:`voxrisk.attack.adapter`).

Covariances are badly known from few vectors: they are shrunk by a third towards a sphere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import Adapter, direction
from voxrisk.attack.adapter import fit_adapter
from voxrisk.attack.erasure import erasure
from voxrisk.attack.recipes import ADAPTED
from voxrisk.types import Embeddings, InputError

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
SHRINK = 1 / 3  # of a covariance towards a sphere


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to fit a map: of an ``Embeddings``, its targets (or None) and a seed."""

    fit: Callable[[Embeddings, Sequence[str] | None, int], Adapter]
    needs_targets: bool = False


def fit_map(
    name: str, embeddings: Embeddings, *, targets: Sequence[str] | None = None, seed: int = 0
) -> Adapter:
    """Fit a back end on vectors labelled with their (source) speakers.

    Args:
        name: A row of :data:`BACKENDS`.
        embeddings: Vectors ``(n, d)``, two speakers or more, some with two utterances or more.
        targets: Target voice of each utterance, for the back ends that erase them.
        seed: Of those that draw.

    Raises:
        InputError: If there is no such back end, or the speech cannot train it.
    """
    if name not in BACKENDS:
        raise InputError(f"no back end {name!r}; known are {', '.join(BACKENDS)}")
    speakers = np.unique(embeddings.speaker).size
    if speakers < 2 or embeddings.speaker.size <= speakers:
        raise InputError(
            f"{embeddings.source}: {embeddings.speaker.size} utterances of {speakers} speakers "
            f"cannot train the back end {name!r}; it needs two speakers and several utterances"
        )
    if BACKENDS[name].needs_targets and targets is None:
        raise InputError(f"the back end {name!r} needs the target voice of each utterance")
    return BACKENDS[name].fit(embeddings, targets, seed)


def within_speakers(x: Floats, speaker: Codes) -> Floats:
    """Covariance ``(d, d)`` of ``x (n, d)`` around the mean of each speaker, shrunk."""
    count = np.bincount(speaker)
    rest = x - _means(x, speaker)[speaker]
    covariance = rest.T @ rest / (len(x) - (count > 0).sum())
    sphere = max(float(np.trace(covariance)) / len(covariance), 1e-12) * np.eye(len(covariance))
    return np.asarray((1 - SHRINK) * covariance + SHRINK * sphere)


def _means(x: Floats, speaker: Codes) -> Floats:
    total = np.zeros((int(speaker.max()) + 1, x.shape[1]))
    np.add.at(total, speaker, x)
    return total / np.maximum(np.bincount(speaker), 1)[:, None]


def _whitening(covariance: Floats) -> Floats:
    power, axes = np.linalg.eigh(covariance)
    return np.asarray(axes / np.sqrt(power) @ axes.T)


def _prepared(embeddings: Embeddings) -> tuple[Floats, Floats, Codes]:
    raw = direction(embeddings.vectors)
    mean = raw.mean(axis=0)
    return mean, direction(raw - mean), np.unique(embeddings.speaker, return_inverse=True)[1]


def _centred(embeddings: Embeddings, targets: Sequence[str] | None, seed: int) -> Adapter:
    mean, x, _ = _prepared(embeddings)
    return Adapter("", "", mean, np.eye(x.shape[1]))


def _wccn(embeddings: Embeddings, targets: Sequence[str] | None, seed: int) -> Adapter:
    mean, x, speaker = _prepared(embeddings)
    return Adapter("", "", mean, _whitening(within_speakers(x, speaker)))


def _plda(embeddings: Embeddings, targets: Sequence[str] | None, seed: int) -> Adapter:
    mean, x, speaker = _prepared(embeddings)
    white = _whitening(within_speakers(x, speaker))
    voices = _means(x, speaker) @ white
    voices -= voices.mean(axis=0)
    own = float(np.mean(1.0 / np.bincount(speaker)))  # what is left of W in a speaker's mean
    between = voices.T @ voices / (len(voices) - 1) - own * np.eye(x.shape[1])
    psi, axes = np.linalg.eigh(between)
    kept = psi > 0
    if not kept.any():
        raise InputError(f"{embeddings.source}: speakers differ by no more than their utterances")
    gain = np.sqrt(psi[kept] / (1.0 + 2.0 * psi[kept]))
    return Adapter("", "", mean, white @ (axes[:, kept] * gain))


def _erased(embeddings: Embeddings, targets: Sequence[str] | None, seed: int) -> Adapter:
    mean, x, speaker = _prepared(embeddings)
    label = np.unique(np.array(targets), return_inverse=True)[1]
    erase = erasure(x, label)
    left = direction(x @ erase)
    return Adapter("", "", mean, erase @ _whitening(within_speakers(left, speaker)))


def _adapter(embeddings: Embeddings, targets: Sequence[str] | None, seed: int) -> Adapter:
    return fit_adapter(embeddings, ADAPTED, seed=seed).adapter


BACKENDS = {
    "centred": Backend(_centred),
    "wccn": Backend(_wccn),
    "plda": Backend(_plda),
    "erased wccn": Backend(_erased, needs_targets=True),
    "adapter": Backend(_adapter),
}
