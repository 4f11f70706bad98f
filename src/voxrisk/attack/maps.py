"""Back ends of an attacker as maps behind an encoder, fitted on training speech alone.

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
* ``as-norm``: scores of ``erased wccn`` (``wccn`` without targets) less what anybody would get
  (:mod:`voxrisk.attack.sided`); the cohort are the training speakers.
* ``procrustes``: the rotation that brings anonymized training vectors nearest to their originals
  (Champion et al., ASRU 2021); enrolled is original speech, and ``wccn`` follows in its space.
* ``adapter``: the map of the informed attacker (:mod:`voxrisk.attack.adapter`).
* ``reversed``: the same, against a head that tells target voices (paper 3).
* ``last layer``: the last layer of ECAPA-TDNN, trained on from the published weights.
* ``gender``: one direction, that which tells women from men: what an attacker finds who hears
  nothing else. Judged and shown, never chosen.

Covariances are badly known from few vectors: they are shrunk by a third towards a sphere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import Adapter, direction
from voxrisk.attack.adapter import fit_adapter
from voxrisk.attack.erasure import erasure
from voxrisk.attack.recipes import ADAPTED, LAST_LAYER
from voxrisk.attack.sided import SideMap, alike, cohort_of
from voxrisk.types import Embeddings, InputError

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
SHRINK = 1 / 3  # of a covariance towards a sphere
# What a back end must be told beside who speaks: target voices, the same speech before it was
# anonymized, the gender of each speaker.
Need: TypeAlias = Literal["targets", "originals", "kinds"]


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Training speech as vectors, and what is known of it.

    Attributes:
        heard: Vectors ``(n, d)`` with their (source) speakers.
        targets: Target voice of each.
        originals: Vectors of the same utterances before they were anonymized.
        kinds: Gender of each one's speaker.
    """

    heard: Embeddings
    targets: Sequence[str] | None = None
    originals: Embeddings | None = None
    kinds: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to fit a map to a lesson, with a seed.

    Attributes:
        fit: Fits it.
        needs: What it must be told.
        hears: Which sorts of vectors it stands behind (:data:`voxrisk.attack.suite.Sort`).
        aside: Whether it is judged and shown, and never chosen.
    """

    fit: Callable[[Lesson, int], SideMap]
    needs: tuple[Need, ...] = ()
    hears: tuple[str, ...] = ("voice", "manner", "recording")
    aside: bool = False


def fit_map(name: str, lesson: Lesson, *, seed: int = 0) -> SideMap:
    """Fit a back end.

    Args:
        name: A row of :data:`BACKENDS`.
        lesson: Vectors of two speakers or more, some with two utterances or more.
        seed: Of those that draw.

    Raises:
        InputError: If there is no such back end, or the speech cannot train it.
    """
    if name not in BACKENDS:
        raise InputError(f"no back end {name!r}; known are {', '.join(BACKENDS)}")
    heard = lesson.heard
    speakers = np.unique(heard.speaker).size
    if speakers < 2 or heard.speaker.size <= speakers:
        raise InputError(
            f"{heard.source}: {heard.speaker.size} utterances of {speakers} speakers "
            f"cannot train the back end {name!r}; it needs two speakers and several utterances"
        )
    for need in BACKENDS[name].needs:
        if getattr(lesson, need) is None:
            raise InputError(f"the back end {name!r} needs {NEEDED[need]}")
    return BACKENDS[name].fit(lesson, seed)


NEEDED = {
    "targets": "the target voice of each utterance",
    "originals": "the same speech before it was anonymized",
    "kinds": "the gender of each speaker",
}


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


def _centred(lesson: Lesson, seed: int) -> SideMap:
    mean, x, _ = _prepared(lesson.heard)
    return alike(Adapter("", "", mean, np.eye(x.shape[1])))


def _wccn(lesson: Lesson, seed: int) -> SideMap:
    mean, x, speaker = _prepared(lesson.heard)
    return alike(Adapter("", "", mean, _whitening(within_speakers(x, speaker))))


def _plda(lesson: Lesson, seed: int) -> SideMap:
    mean, x, speaker = _prepared(lesson.heard)
    white = _whitening(within_speakers(x, speaker))
    voices = _means(x, speaker) @ white
    voices -= voices.mean(axis=0)
    own = float(np.mean(1.0 / np.bincount(speaker)))  # what is left of W in a speaker's mean
    between = voices.T @ voices / (len(voices) - 1) - own * np.eye(x.shape[1])
    psi, axes = np.linalg.eigh(between)
    kept = psi > 0
    if not kept.any():
        raise InputError(f"{lesson.heard.source}: speakers differ by no more than their utterances")
    gain = np.sqrt(psi[kept] / (1.0 + 2.0 * psi[kept]))
    return alike(Adapter("", "", mean, white @ (axes[:, kept] * gain)))


def _erased(lesson: Lesson, seed: int) -> SideMap:
    mean, x, speaker = _prepared(lesson.heard)
    label = np.unique(np.array(lesson.targets), return_inverse=True)[1]
    erase = erasure(x, label)
    left = direction(x @ erase)
    return alike(Adapter("", "", mean, erase @ _whitening(within_speakers(left, speaker))))


def _as_norm(lesson: Lesson, seed: int) -> SideMap:
    heard = lesson.heard
    fit = _erased if lesson.targets is not None else _wccn
    try:
        adapter = fit(lesson, seed).enroll
    except InputError:  # too many targets for these vectors
        adapter = _wccn(lesson, seed).enroll
    mapped = adapter.apply(heard.vectors).astype(np.float64)
    cohort = cohort_of(mapped, np.unique(heard.speaker, return_inverse=True)[1])
    return SideMap(adapter, adapter, cohort)


def _procrustes(lesson: Lesson, seed: int) -> SideMap:
    assert lesson.originals is not None
    mean, x, speaker = _prepared(lesson.heard)
    before, original, _ = _prepared(lesson.originals)
    left, _, right = np.linalg.svd(x.T @ original)
    turn = left @ right
    both = np.vstack([original, x @ turn])
    white = _whitening(within_speakers(both, np.tile(speaker, 2)))
    return SideMap(Adapter("", "", before, white), Adapter("", "", mean, turn @ white))


def _adapter(lesson: Lesson, seed: int) -> SideMap:
    return alike(fit_adapter(lesson.heard, ADAPTED, seed=seed).adapter)


def _reversed(lesson: Lesson, seed: int) -> SideMap:
    found = fit_adapter(lesson.heard, ADAPTED, targets=lesson.targets, unlearn="reverse", seed=seed)
    return alike(found.adapter)


def _last_layer(lesson: Lesson, seed: int) -> SideMap:
    begin = last_layer(lesson.heard.vectors.shape[1])
    return alike(fit_adapter(lesson.heard, LAST_LAYER, begin=begin, seed=seed).adapter)


@lru_cache(maxsize=1)
def last_layer(width: int) -> Floats:
    """The last layer ``(width, 192)`` of the ready ECAPA-TDNN; what it adds, centring removes."""
    from voxrisk.attack.ecapa_encoder import read_tensors
    from voxrisk.models import model_path

    weight = read_tensors(model_path("ecapa-voxceleb"))["fc.conv.weight"][:, :, 0]
    if weight.shape[1] != width:
        raise InputError(f"vectors of {width} values are not what ECAPA-TDNN's last layer reads")
    return weight.numpy().T.astype(np.float64)


def _gender(lesson: Lesson, seed: int) -> SideMap:
    raw = direction(lesson.heard.vectors)
    kinds, label = np.unique(np.array(lesson.kinds), return_inverse=True)
    if kinds.size != 2:
        raise InputError(f"{lesson.heard.source}: {kinds.size} genders; two are needed")
    middle = _means(raw, label).mean(axis=0)  # between the two, however many there are of each
    x = direction(raw - middle)
    women, men = _means(x, label)
    within = within_speakers(x, label)
    apart = np.linalg.solve(within, men - women)
    # An enrolment half of which sounds like either would have no direction: a trace of another one.
    trace = 1e-3 * np.linalg.eigh(within)[1][:, -1]
    return alike(Adapter("", "", middle, np.stack([apart / np.linalg.norm(apart), trace], axis=1)))


ALL = ("voice", "manner", "recording", "words")
BACKENDS = {
    "centred": Backend(_centred, hears=ALL),
    "wccn": Backend(_wccn, hears=ALL),
    "plda": Backend(_plda),
    "erased wccn": Backend(_erased, needs=("targets",)),
    "as-norm": Backend(_as_norm),
    "procrustes": Backend(_procrustes, needs=("originals",), hears=("voice",)),
    "adapter": Backend(_adapter),
    "reversed": Backend(_reversed, needs=("targets",), hears=("voice",)),
    "last layer": Backend(_last_layer, hears=("pooled",)),
    "gender": Backend(_gender, needs=("kinds",), hears=("voice",), aside=True),
}
