"""How often a yes-or-no answer to "does this slice follow that one?" is right, by class of pair."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.successors import LAST, Slices
from voxrisk.measure.intervals import corrected_interval, rate_interval
from voxrisk.measure.resampling import MIN_SPEAKERS, speaker_weights
from voxrisk.types import Estimate, Interval

CLASSES = ("successive", "same_speaker", "other_speaker")
SOURCE = "Maouche et al., Interspeech 2022, Section 5.2"
RESAMPLES = 1000


class Tally(msgspec.Struct):
    """For each speaker and class of pair: right answers, and pairs."""

    speaker: list[str]
    right: list[list[int]]  # speaker, class
    pairs: list[list[int]]

    @classmethod
    def of(cls, yes: NDArray[np.bool_], slices: Slices) -> "Tally":
        """Count the answers ``yes (n, n)``; a pair belongs to the speaker of its first slice."""
        names, person = np.unique(np.asarray(slices.speaker), return_inverse=True)
        n = len(slices)
        follows = np.zeros((n, n), bool)
        rows = np.flatnonzero(slices.successor != LAST)
        follows[rows, slices.successor[rows]] = True
        same = person[:, None] == person[None]
        off = ~np.eye(n, dtype=bool)
        right, pairs = [], []
        for kind, answer in (
            (follows, yes),
            (same & ~follows & off, ~yes),
            (~same, ~yes),
        ):
            right.append(np.bincount(person, (kind & answer).sum(1), names.size))
            pairs.append(np.bincount(person, kind.sum(1), names.size))
        return cls(
            names.tolist(),
            np.stack(right, axis=1).astype(int).tolist(),
            np.stack(pairs, axis=1).astype(int).tolist(),
        )


def accuracies(tallies: Sequence[Tally], confidence: float) -> Mapping[str, Estimate]:
    """Accuracy of each class, and whether successive pairs are told from each other class.

    ``balanced`` weighs the classes as the training does (½, ¼, ¼). ``against_same_speaker`` and
    ``against_other_speaker`` are the means of two classes. The chance of all three is ½ for
    whoever learns nothing, however often it says yes; that of a single class is not, so a class
    must be read beside the others.
    """
    if not tallies:
        return {}
    right, pairs = _added(tallies)
    n = {"speaker": len(right), **dict(zip(CLASSES, map(int, pairs.sum(0)), strict=True))}
    found = {}
    for k, name in enumerate(CLASSES):
        if pairs[:, k].sum() == 0:
            continue
        there = pairs[:, k] > 0
        span = None
        if there.sum() > 1:
            span = rate_interval(right[there, k], pairs[there, k], confidence=confidence)
        value = float(right[:, k].sum() / pairs[:, k].sum())
        found[name] = Estimate("pair_accuracy", value, 0.5, n, SOURCE, span)
    mixed = {
        "balanced": (0.5, 0.25, 0.25),
        "against_same_speaker": (0.5, 0.5, 0.0),
        "against_other_speaker": (0.5, 0.0, 0.5),
    }
    for name, weights in mixed.items():
        if any(w and c not in found for w, c in zip(weights, CLASSES, strict=True)):
            continue
        value, span = _mixture(right, pairs, np.array(weights), confidence)
        found[name] = Estimate("pair_accuracy", value, 0.5, n, SOURCE, span)
    return found


def _added(tallies: Sequence[Tally]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Right answers and pairs ``(speakers, classes)`` of several draws, added up by speaker."""
    names = sorted({name for t in tallies for name in t.speaker})
    place = {name: i for i, name in enumerate(names)}
    right, pairs = np.zeros((len(names), 3)), np.zeros((len(names), 3))
    for tally in tallies:
        at = [place[name] for name in tally.speaker]
        right[at] += np.array(tally.right)
        pairs[at] += np.array(tally.pairs)
    return right, pairs


def _mixture(
    right: NDArray[np.float64],
    pairs: NDArray[np.float64],
    weights: NDArray[np.float64],
    confidence: float,
) -> tuple[float, Interval | None]:
    """A weighted mean of accuracies; its interval resamples speakers."""
    value = float(weights @ (right.sum(0) / np.maximum(pairs.sum(0), 1)))
    speakers = len(right)
    if speakers < MIN_SPEAKERS:
        return value, None
    drawn = speaker_weights(speakers, resamples=RESAMPLES, seed=0).astype(np.float64)
    total = drawn @ pairs
    kept = (total[:, weights > 0] > 0).all(axis=1)
    draws = (drawn[kept] @ right / np.maximum(total[kept], 1)) @ weights
    if np.ptp(draws) == 0.0:
        return value, None
    span = corrected_interval(
        draws, value, speakers=speakers, confidence=confidence, scale=(0.0, 1.0)
    )
    return value, span
