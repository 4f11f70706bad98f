"""Scores of trials from speaker vectors: how alike an enrolment and a trial utterance sound.

A higher score always means "more likely the same speaker". The enrolment vector is the plain mean
of the vectors of its utterances, as VoicePrivacy and paper 3 do it; vectors are not brought to unit
length before that mean.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.plda import train_plda
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
# Scores (m, n) of enrolment vectors (m, d) against trial vectors (n, d).
Backend: TypeAlias = Callable[[Floats, Floats], Floats]

BLOCK = 4_000_000  # scores held at once
COHORT = 300  # nearest cohort vectors of AS-norm


def cosine(enroll: Floats, trial: Floats) -> Floats:
    """Cosine of the angle between vectors: 1 the same direction, 0 nothing in common.

    >>> cosine(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 3.0]]))
    array([[1., 0.]])
    """
    return np.asarray(unit_length(enroll) @ unit_length(trial).T)


def plda(training: Embeddings) -> Backend:
    """Log-likelihood ratio of a two-covariance PLDA that ``training`` teaches.

    Vectors are scaled to length one; an enrolment of several utterances counts as one.
    """
    model = train_plda(training)

    def compare(enroll: Floats, trial: Floats) -> Floats:
        left, right = model.maps(unit_length(enroll), unit_length(trial))
        return np.asarray(left @ right.T)

    return compare


def rows_of(embeddings: Embeddings) -> dict[str, int]:
    """Utterance → its row."""
    return {name: i for i, name in enumerate(embeddings.utterance.tolist())}


def utterances_of(embeddings: Embeddings) -> dict[str, list[str]]:
    """Speaker → utterances, in the order of the file."""
    groups: dict[str, list[str]] = {}
    for name, speaker in zip(
        embeddings.utterance.tolist(), embeddings.speaker.tolist(), strict=True
    ):
        groups.setdefault(speaker, []).append(name)
    return groups


def enrolment_vectors(embeddings: Embeddings, enrolments: Mapping[str, Sequence[str]]) -> Floats:
    """Mean vector ``(m, d)`` of each enrolment, in the order of ``enrolments``.

    Raises:
        InputError: If an enrolment names an utterance that has no vector, or names none.
    """
    place = rows_of(embeddings)
    vectors = np.empty((len(enrolments), embeddings.vectors.shape[1]))
    for i, (name, utterances) in enumerate(enrolments.items()):
        missing = [u for u in utterances if u not in place]
        if missing or not utterances:
            what = f"utterance {missing[0]} has no vector" if missing else "no utterance"
            raise InputError(f"enrolment {name}: {what}; embed it, or leave the enrolment out")
        rows = [place[u] for u in utterances]
        vectors[i] = embeddings.vectors[rows].mean(axis=0, dtype=np.float64)
    return vectors


def speaker_means(embeddings: Embeddings) -> Floats:
    """One mean vector for each speaker of a training set: the cohort of AS-norm."""
    return enrolment_vectors(embeddings, utterances_of(embeddings))


def score_pairs(
    enroll: Floats,
    trial: Floats,
    pairs: tuple[Integers, Integers],
    *,
    backend: Backend = cosine,
    cohort: Floats | None = None,
    nearest: int = COHORT,
) -> Floats:
    """Score the pairs (row of ``enroll``, row of ``trial``), in their order.

    Args:
        enroll: Enrolment vectors ``(m, d)``.
        trial: Trial vectors ``(n, d)``.
        pairs: Two index arrays ``(k,)``.
        backend: What compares two vectors.
        cohort: Vectors ``(c, d)`` of other speakers. With it, scores are normalised (AS-norm):
            ``s' = ½ (s − μ_e)/σ_e + ½ (s − μ_t)/σ_t``, with mean and deviation of the ``nearest``
            highest scores against the cohort, for the enrolment and for the trial.
        nearest: See ``cohort``; capped at its size.

    Raises:
        InputError: If a score is not finite.
    """
    left, right = pairs
    scores = np.empty(len(left))
    rows_at_once = max(1, BLOCK // max(len(trial), 1))
    order = np.argsort(left, kind="stable")
    bounds = np.searchsorted(left[order], np.arange(0, len(enroll) + rows_at_once, rows_at_once))
    for block, (start, stop) in enumerate(pairwise(bounds.tolist())):
        chosen = order[start:stop]
        first = block * rows_at_once
        table = backend(enroll[first : first + rows_at_once], trial)
        scores[chosen] = table[left[chosen] - first, right[chosen]]
    if cohort is not None:
        mean, deviation = _cohort_statistics(enroll, cohort, backend, nearest)
        normal = (scores - mean[left]) / deviation[left]
        mean, deviation = _cohort_statistics(trial, cohort, backend, nearest)
        scores = 0.5 * normal + 0.5 * (scores - mean[right]) / deviation[right]
    if not np.isfinite(scores).all():
        raise InputError(f"{int((~np.isfinite(scores)).sum())} scores are not finite")
    return scores


def _cohort_statistics(
    vectors: Floats, cohort: Floats, backend: Backend, nearest: int
) -> tuple[Floats, Floats]:
    if len(cohort) < 2:
        raise InputError(f"a cohort of {len(cohort)} vectors cannot normalise scores; give more")
    kept = min(nearest, len(cohort))
    means, deviations = np.empty(len(vectors)), np.empty(len(vectors))
    for rows in _blocks(len(vectors), max(1, BLOCK // len(cohort))):
        table = backend(vectors[rows], cohort)
        top = np.partition(table, -kept, axis=1)[:, -kept:]
        means[rows], deviations[rows] = top.mean(axis=1), top.std(axis=1)
    return means, deviations


def _blocks(total: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, total, size))
