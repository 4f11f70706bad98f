"""Infer an attribute of a speaker, or of what was said, from vectors: classifiers and their choice.

An attacker learns from speech whose attribute is known, of people who are not those under attack,
and chooses what to listen to (speaker vectors, Moonshine's frames, melody and timing, or all of
them) by what works on people kept out of the training. The people under attack have no say in it.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.attributes import balanced_accuracy, correlation
from voxrisk.measure.logistic import Floats, Integers, Linear, fit_logistic, fit_ridge, log_softmax
from voxrisk.measure.posteriors import balanced, speaker_folds, speaker_shares
from voxrisk.types import InputError

FOLDS = 6  # parts of the speakers, where there is no training speech
INNER = 3  # parts of the training speakers, to choose features and caution
PENALTIES = (1e-2, 1e-1, 1.0)
ALL = "all together"


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Utterances whose attribute is known; row i of every array is utterance i.

    Attributes:
        speaker: ``(n,)`` who speaks.
        truth: ``(n,)`` class, or group of the number.
        vectors: Name of the features → ``(n, d)``.
        value: ``(n,)`` the number itself, where the attribute is one.
    """

    speaker: NDArray[np.str_]
    truth: Integers
    vectors: Mapping[str, NDArray[np.floating]]
    value: Floats | None = None

    def rows(self, kept: NDArray[np.bool_]) -> "Labelled":
        """Some of the utterances."""
        return Labelled(
            self.speaker[kept],
            self.truth[kept],
            {name: v[kept] for name, v in self.vectors.items()},
            None if self.value is None else self.value[kept],
        )

    def features(self, name: str) -> NDArray[np.floating]:
        """One kind of features, or all side by side."""
        if name != ALL:
            return self.vectors[name]
        return np.concatenate(list(self.vectors.values()), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Guesser:
    """What an attacker guesses an attribute with.

    Attributes:
        features: What it listens to.
        penalty: How cautious it is.
        model: The map.
    """

    features: str
    penalty: float
    model: Linear

    def __call__(self, tested: Labelled) -> Floats:
        """Log-shares of the classes ``(n, k)``, or guessed numbers ``(n,)``."""
        found = self.model(tested.features(self.features))
        return found[:, 0] if tested.value is not None else log_softmax(found)


def train_guesser(known: Labelled, *, classes: int, seed: int) -> Guesser:
    """The classifier (or, for a number, the regression) that does best on held-out speakers.

    Args:
        known: Speech to learn from.
        classes: How many there are.
        seed: Of the held-out speakers.
    """
    options = list(product(_kinds(known), PENALTIES))
    fold = speaker_folds(known.speaker, known.truth, folds=INNER, seed=seed)
    scores = np.zeros(len(options))
    for f in np.unique(fold):
        learned, held = known.rows(fold != f), known.rows(fold == f)
        for i, (name, penalty) in enumerate(options):
            guess = _fit(learned, name, penalty, classes)
            scores[i] += _success(guess(held), held)
    name, penalty = options[int(scores.argmax())]
    return _fit(known, name, penalty, classes)


def guess_by_folds(
    known: Labelled, tested: Sequence[Labelled], *, classes: int, seed: int
) -> tuple[list[Floats], list[str]]:
    """Guesses about every speaker from a classifier that the other speakers trained.

    Nothing of a speaker under test is in the training, in any version of the speech.

    Args:
        known: Speech to learn from.
        tested: Versions of speech of the same people to attack (original, anonymized).
        classes: How many there are.
        seed: Of the folds.

    Returns:
        The scores for each of ``tested``, and the features that each fold chose.
    """
    people = {s: i for i, s in enumerate(np.unique(known.speaker).tolist())}
    if unknown := sorted({s for t in tested for s in t.speaker.tolist()} - set(people)):
        raise InputError(f"speaker {unknown[0]} is tested and in no fold; give speech to both")
    fold = speaker_folds(known.speaker, known.truth, folds=FOLDS, seed=seed)
    of = dict(zip(known.speaker.tolist(), fold.tolist(), strict=True))
    found = [_empty(part, classes) for part in tested]
    chosen = []
    for f in np.unique(fold):
        guess = train_guesser(known.rows(fold != f), classes=classes, seed=seed)
        chosen.append(guess.features)
        for part, scores in zip(tested, found, strict=True):
            mine = np.array([of[s] == f for s in part.speaker.tolist()])
            if mine.any():
                scores[mine] = guess(part.rows(mine))
    return found, chosen


def join_utterances(
    scores: Floats, known: Labelled, utterance: NDArray[np.str_], *, length: int, seed: int
) -> tuple[Floats, Integers, NDArray[np.str_], NDArray[np.str_], Floats | None]:
    """Scores of ``length`` utterances of one speaker and class together: their mean.

    Utterances are drawn without repetition; what is left over is not used.

    Returns:
        Scores, truth, speaker, a key that names the utterances, and the true number if there is
        one, one row for each group.

    Raises:
        InputError: If nobody has so many utterances.
    """
    groups: list[NDArray[np.intp]] = []
    places: dict[tuple[str, int], list[int]] = {}
    for i, name in enumerate(zip(known.speaker.tolist(), known.truth.tolist(), strict=True)):
        places.setdefault(name, []).append(i)
    for (speaker, _), mine in sorted(places.items()):
        # The draw hangs on the speaker alone, so that all attributes of a speaker share it.
        rng = np.random.default_rng([seed, length, zlib.crc32(speaker.encode())])
        mixed = rng.permutation(np.array(sorted(mine, key=lambda i: str(utterance[i]))))
        groups += [mixed[i : i + length] for i in range(0, len(mine) - length + 1, length)]
    if not groups:
        raise InputError(f"nobody has {length} utterances")
    first = np.array([g[0] for g in groups])
    return (
        np.array([scores[g].mean(axis=0) for g in groups]),
        known.truth[first],
        known.speaker[first],
        np.array(["|".join(sorted(utterance[g].tolist())) for g in groups]),
        None if known.value is None else np.array([known.value[g].mean() for g in groups]),
    )


def _kinds(known: Labelled) -> list[str]:
    return [*known.vectors, ALL] if len(known.vectors) > 1 else list(known.vectors)


def _fit(known: Labelled, name: str, penalty: float, classes: int) -> Guesser:
    vectors = known.features(name)
    if known.value is not None:
        shares = speaker_shares(known.speaker)
        ridge = 10.0 * penalty  # least squares needs more caution for the same effect
        return Guesser(
            name, penalty, fit_ridge(vectors, known.value, weights=shares, penalty=ridge)
        )
    weights = balanced(known.truth, known.speaker, classes)
    model = fit_logistic(vectors, known.truth, classes=classes, weights=weights, penalty=penalty)
    return Guesser(name, penalty, model)


def _success(scores: Floats, held: Labelled) -> float:
    shares = speaker_shares(held.speaker)
    if held.value is not None:
        return correlation(held.value, scores, shares)
    return balanced_accuracy(held.truth, scores.argmax(axis=1), shares)


def _empty(part: Labelled, classes: int) -> Floats:
    n = part.truth.size
    return np.empty(n) if part.value is not None else np.empty((n, classes))
