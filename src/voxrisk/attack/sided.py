"""A back end as one map for each side of a trial, whose cosine is the score.

Most back ends map both sides alike. Two do not. *Alignment* enrols original speech and turns
anonymized vectors into its space. *AS-norm* takes from a score what anybody would get (Matějka et
al., Interspeech 2017), here for each utterance of the enrolment::

    s' = ½ (s − μ_e) / σ_e + ½ (s − μ_t) / σ_t

with mean and deviation of the scores of either side against its nearest cohort speakers. That is an
inner product of two unlike vectors::

    [x/σ, x, μ/σ, 1] · [y, y/σ, −1, −μ/σ] / 2

and where each side is filled up to one common length, in a place where the other side is empty,
their cosine is s' but for a constant factor. An enrolment of several utterances scores as their
mean. So a normalised attacker is vectors too, and crowds and controls take it as any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import Adapter
from voxrisk.types import InputError

Floats: TypeAlias = NDArray[np.float64]
# The enrolment; what is tried; and what is tried where nothing was protected, for the control.
Side: TypeAlias = Literal["enroll", "trial", "open"]
NEAREST = 30  # cohort speakers of AS-norm


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """Speakers that nobody looks for.

    Attributes:
        voices: ``(c, e)`` mapped mean vectors of length one.
        floor: Least deviation that a score is divided by: the least that training speech has. It
            bounds the length of the vectors.
    """

    voices: Floats
    floor: float

    def normed(self, vectors: Floats, side: Side) -> Floats:
        """Vectors ``(n, e)`` of length one → ``(n, 2 e + 4)`` of length one."""
        mean, deviation = nearest_scores(vectors, self.voices)
        deviation = np.maximum(deviation, self.floor)[:, None]
        mean, one = mean[:, None], np.ones((len(vectors), 1))
        if side == "enroll":
            parts = [vectors / deviation, vectors, mean / deviation, one]
        else:
            parts = [vectors, vectors / deviation, -one, -mean / deviation]
        joined = np.hstack(parts)
        most = 2.0 * (1.0 + self.floor**-2)  # of the squared length, since no cosine exceeds 1
        rest = np.sqrt(np.maximum(most - (joined**2).sum(axis=1), 0.0))[:, None]
        filled = [rest, 0 * rest] if side == "enroll" else [0 * rest, rest]
        return np.asarray(np.hstack([joined, *filled]) / np.sqrt(most))


def nearest_scores(vectors: Floats, voices: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation ``(n,)`` of the scores of ``vectors`` against their nearest ``voices``."""
    kept = min(NEAREST, len(voices))
    top = np.partition(vectors @ voices.T, -kept, axis=1)[:, -kept:]
    return top.mean(axis=1), top.std(axis=1)


def cohort_of(vectors: Floats, speaker: NDArray[np.int64]) -> Cohort:
    """The training speakers as a cohort; no speaker is held against the own voice for the floor.

    Args:
        vectors: ``(n, e)`` mapped training vectors of length one.
        speaker: ``(n,)`` speaker of each, from 0.

    Raises:
        InputError: If there are fewer than three speakers.
    """
    people = int(speaker.max()) + 1
    if people < 3:
        raise InputError(f"a cohort of {people} speakers cannot normalise scores; give more")
    sums = np.zeros((people, vectors.shape[1]))
    np.add.at(sums, speaker, vectors)
    voices = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    score = vectors @ voices.T
    score[np.arange(len(score)), speaker] = -np.inf
    kept = min(NEAREST, people - 1)
    spread = np.partition(score, -kept, axis=1)[:, -kept:].std(axis=1)
    return Cohort(voices, max(float(spread.min()), 1e-3))


@dataclass(frozen=True, slots=True, eq=False)
class SideMap:
    """A fitted back end.

    Attributes:
        enroll: Map of the vectors that are enrolled.
        trial: Of those that are tried.
        cohort: For AS-norm, or None.
    """

    enroll: Adapter
    trial: Adapter
    cohort: Cohort | None = None

    def apply(self, vectors: NDArray[np.floating[Any]], side: Side) -> NDArray[np.float32]:
        """Map vectors ``(n, d)`` of one side; the result has length one.

        Speech that nobody protected has nothing to be turned back: it is mapped as enrolled speech.
        """
        adapter = self.trial if side == "trial" else self.enroll
        mapped = adapter.apply(vectors)
        if self.cohort is None:
            return mapped
        return self.cohort.normed(mapped.astype(np.float64), side).astype(np.float32)

    def arrays(self) -> dict[str, Any]:
        """As arrays to write; :meth:`read` gives the same back."""
        found: dict[str, Any] = {"mean": self.enroll.mean, "matrix": self.enroll.matrix}
        if self.trial is not self.enroll:
            found |= {"trial_mean": self.trial.mean, "trial_matrix": self.trial.matrix}
        if self.cohort is not None:
            found |= {"voices": self.cohort.voices, "floor": self.cohort.floor}
        return found

    @classmethod
    def read(cls, held: Mapping[str, NDArray[Any]]) -> "SideMap":
        """The map of :meth:`arrays`."""
        enroll = Adapter("", "", held["mean"], held["matrix"])
        trial = enroll
        if "trial_mean" in held:
            trial = Adapter("", "", held["trial_mean"], held["trial_matrix"])
        cohort = Cohort(held["voices"], float(held["floor"])) if "voices" in held else None
        return cls(enroll, trial, cohort)


def alike(adapter: Adapter) -> SideMap:
    """The same map for both sides."""
    return SideMap(adapter, adapter)
