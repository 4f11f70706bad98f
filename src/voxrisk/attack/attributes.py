"""Infer an attribute of a speaker, or of what was said, from vectors: classifiers and their choice.

An attacker learns from speech whose attribute is known, of people who are not those under attack,
and chooses what to listen to (speaker vectors, Moonshine's frames, melody and timing, or all of
them) by what works on people kept out of the training. The people under attack have no say in it.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.attributes import area_under_curve, balanced_accuracy, correlation
from voxrisk.measure.logistic import (
    Floats,
    Integers,
    Linear,
    fit_logistic,
    fit_ridge,
    fit_weighing,
    log_softmax,
)
from voxrisk.measure.posteriors import balanced, speaker_folds, speaker_shares
from voxrisk.types import InputError

FOLDS = 6  # parts of the speakers, where there is no training speech
INNER = 3  # parts of the training speakers, to choose features and caution
PENALTIES = (1e-2, 1e-1, 1.0)
CAUTION = 1e-2  # of the weights by which several kinds of features are joined
ALL = "all features together"


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

    def joined(self, other: "Labelled") -> "Labelled":
        """These utterances and others, with the same kinds of features."""
        both = {name: np.concatenate([v, other.vectors[name]]) for name, v in self.vectors.items()}
        value = None
        if self.value is not None and other.value is not None:
            value = np.concatenate([self.value, other.value])
        return Labelled(
            np.concatenate([self.speaker, other.speaker]),
            np.concatenate([self.truth, other.truth]),
            both,
            value,
        )


# Opinions ``(m, n, k)`` or ``(m, n)`` of m kinds of features → one, ``(n, k)`` or ``(n,)``.
Join = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Guesser:
    """What an attacker guesses an attribute with.

    Attributes:
        features: What it listens to.
        models: The map behind each kind of features.
        join: What makes one opinion of several.
    """

    features: str
    models: Mapping[str, Linear]
    join: Join

    def __call__(self, tested: Labelled) -> Floats:
        """Log-shares of the classes ``(n, k)``, or guessed numbers ``(n,)``."""
        number = tested.value is not None
        found = [_scores(m, tested.vectors[name], number=number) for name, m in self.models.items()]
        return self.join(np.stack(found))


def train_guesser(known: Labelled, *, classes: int, seed: int) -> Guesser:
    """The classifier (or, for a number, the regression) that does best on held-out speakers.

    For each kind of features the caution that does best; then the kind that does best, or all of
    them, joined by weights that the held-out speakers teach. One model on all features side by side
    does worse: where speakers are few, many dimensions of one kind drown the few of another.

    Args:
        known: Speech to learn from.
        classes: How many there are.
        seed: Of the held-out speakers.
    """
    number = known.value is not None
    fold = speaker_folds(known.speaker, known.truth, folds=INNER, seed=seed)
    parts = [(known.rows(fold != f), known.rows(fold == f)) for f in np.unique(fold)]
    held = [part for _, part in parts]
    best: dict[str, tuple[float, float, list[Floats]]] = {}
    for name, penalty in product(known.vectors, PENALTIES):
        guessed = [
            _scores(_fit(learned, name, penalty, classes), h.vectors[name], number=number)
            for learned, h in parts
        ]
        worth = _success(guessed, held)
        if name not in best or worth > best[name][0]:
            best[name] = worth, penalty, guessed
    success = {name: found[0] for name, found in best.items()}
    opinions = [np.stack(same) for same in zip(*(f[2] for f in best.values()), strict=True)]
    if len(best) > 1 and len(held) > 1:
        # Weights are judged on speakers who did not teach them, as everything else is.
        joined = [
            _fit_join([o for j, o in enumerate(opinions) if j != i],
                      [h for j, h in enumerate(held) if j != i], classes)(mine)
            for i, mine in enumerate(opinions)
        ]  # fmt: skip
        success[ALL] = _success(joined, held)
    chosen = max(success, key=lambda name: success[name])
    used = list(best) if chosen == ALL else [chosen]
    models = {name: _fit(known, name, best[name][1], classes) for name in used}
    return Guesser(chosen, models, _fit_join(opinions, held, classes) if chosen == ALL else _only)


def _only(opinions: Floats) -> Floats:
    return np.asarray(opinions[0])


def _fit_join(opinions: Sequence[Floats], held: Sequence[Labelled], classes: int) -> Join:
    """Weights of several opinions, from what each said of held-out speakers."""
    scores = np.concatenate(opinions, axis=1)
    speaker = np.concatenate([h.speaker for h in held])
    if scores.ndim == 3:
        truth = np.concatenate([h.truth for h in held])
        return fit_weighing(scores, truth, share=balanced(truth, speaker, classes), caution=CAUTION)
    value = np.concatenate([h.value for h in held if h.value is not None])
    line = fit_ridge(scores.T, value, weights=speaker_shares(speaker), penalty=CAUTION)
    return lambda found: np.asarray(line(found.T)[:, 0])


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


def _fit(known: Labelled, name: str, penalty: float, classes: int) -> Linear:
    vectors = known.vectors[name]
    if known.value is not None:
        shares = speaker_shares(known.speaker)
        ridge = 10.0 * penalty  # least squares needs more caution for the same effect
        return fit_ridge(vectors, known.value, weights=shares, penalty=ridge)
    weights = balanced(known.truth, known.speaker, classes)
    return fit_logistic(vectors, known.truth, classes=classes, weights=weights, penalty=penalty)


def _scores(model: Linear, vectors: NDArray[np.floating], *, number: bool) -> Floats:
    found = model(vectors)
    return found[:, 0] if number else log_softmax(found)


def _success(guessed: Sequence[Floats], held: Sequence[Labelled]) -> float:
    """Order of the classes (AUC), or correlation of numbers, over the held-out parts."""
    found = []
    for scores, part in zip(guessed, held, strict=True):
        shares = speaker_shares(part.speaker)
        if part.value is not None:
            found.append(correlation(part.value, scores, shares))
        elif np.unique(part.truth).size == scores.shape[1]:
            found.append(area_under_curve(part.truth, scores, shares))
        else:  # a class was not held out
            found.append(balanced_accuracy(part.truth, scores.argmax(axis=1), shares))
    return float(np.mean(found))


def _empty(part: Labelled, classes: int) -> Floats:
    n = part.truth.size
    return np.empty(n) if part.value is not None else np.empty((n, classes))
