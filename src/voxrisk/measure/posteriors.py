"""Beliefs about an attribute: what scores are worth as evidence, learned on other speakers.

A classifier's scores are not beliefs: one that was trained on other speech is far too sure, or
leans to one class. So, in the spirit of ZEBRA, scores are first calibrated: turned to likelihoods
of each class, by a map with few parameters that was fitted on other speakers than those it is
applied to. A belief is then prior times likelihood. What is learned is the same whatever the
classifier's own calibration, and a classifier that knows nothing ends at the prior.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.logistic import Floats, Integers, fit_weighing, log_softmax
from voxrisk.types import InputError

FOLDS = 10
CAUTION = 1e-3  # penalty on how far the scores are trusted
EQUAL = 1e-9  # likelihoods that differ by less are the same


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What an attacker believes about one attribute after hearing some speech.

    Attributes:
        posterior: ``(n, k)`` belief in each class, calibrated; rows add up to one.
        truth: ``(n,)`` the true class.
        speaker: ``(n,)`` who speaks.
        prior: ``(k,)`` share of each class among the speakers: what is believed without hearing.
        key: ``(n,)`` which speech it was, to join beliefs about several attributes.
        value: ``(n,)`` true number, where the attribute is one.
        guess: ``(n,)`` predicted number.
    """

    posterior: Floats
    truth: Integers
    speaker: NDArray[np.str_]
    prior: Floats
    key: NDArray[np.str_]
    value: Floats | None = None
    guess: Floats | None = None

    @property
    def likelihood(self) -> Floats:
        """``(n, k)`` how much likelier each class has become: posterior over prior."""
        return self.posterior / self.prior

    @property
    def named(self) -> Floats:
        """``(n, k)`` how often each class is named: the one that the speech speaks for most.

        Whatever its prior; among equals one is drawn.
        """
        likelihood = self.likelihood
        best = likelihood >= likelihood.max(axis=1, keepdims=True) * (1.0 - EQUAL)
        return np.asarray(best / best.sum(axis=1, keepdims=True))

    @property
    def decided(self) -> NDArray[np.bool_]:
        """``(n,)`` whether the speech speaks for one class more than for every other."""
        return np.asarray(self.named.max(axis=1) == 1.0)

    @property
    def right(self) -> Floats:
        """``(n,)`` how often the true class is named."""
        return np.asarray(self.named[np.arange(self.truth.size), self.truth])

    @property
    def gain(self) -> Floats:
        """``(n,)`` bits by which belief in the truth rose."""
        own = self.posterior[np.arange(self.truth.size), self.truth]
        return np.asarray(np.log2(own / self.prior[self.truth]))


def speaker_shares(speaker: NDArray[np.str_]) -> Floats:
    """Weights ``(n,)`` by which every speaker counts the same, however much of them there is.

    >>> speaker_shares(np.array(["a", "a", "b"])).tolist()
    [0.25, 0.25, 0.5]
    """
    _, who, count = np.unique(speaker, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[who] / count.size)


def prior_of(truth: Integers, speaker: NDArray[np.str_], classes: int) -> Floats:
    """Share of each class, every speaker counting the same."""
    return np.asarray(np.bincount(truth, speaker_shares(speaker), minlength=classes))


def balanced(truth: Integers, speaker: NDArray[np.str_], classes: int) -> Floats:
    """Weights by which classes count the same, and speakers the same within each class."""
    weights = np.zeros(truth.size)
    for c in range(classes):
        mine = truth == c
        if mine.any():
            weights[mine] = speaker_shares(speaker[mine])
    return np.asarray(weights / weights.sum())


def speaker_folds(
    speaker: NDArray[np.str_], truth: Integers | None = None, *, folds: int, seed: int
) -> Integers:
    """A fold for each row ``(n,)``; all rows of a speaker are in one, classes spread evenly.

    Never more folds than speakers. Speakers who have the same class (of several, the rarest) are
    dealt out in turn, so that every class is spread over the folds.
    """
    names, who = np.unique(speaker, return_inverse=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(names.size)
    if truth is not None:
        people = np.bincount(np.unique(np.stack([truth, who]), axis=1)[0])
        rarest = np.array(
            [min(set(truth[who == i].tolist()), key=lambda c: (people[c], c))
             for i in range(names.size)]
        )  # fmt: skip
        order = order[np.argsort(rarest[order], kind="stable")]
    fold = np.empty(names.size, dtype=np.int64)
    fold[order] = np.arange(names.size) % min(folds, names.size)
    return fold[who]


def believe(
    scores: Floats,
    truth: Integers,
    speaker: NDArray[np.str_],
    *,
    classes: int,
    key: NDArray[np.str_] | None = None,
    value: Floats | None = None,
    seed: int = 0,
) -> Beliefs:
    """Calibrated beliefs from raw scores, each row calibrated on other speakers' rows.

    Laplace's rule: with n speakers behind the calibration, a belief is mixed with 1/(n + 1) of the
    prior, so that no finite test makes anybody certain.

    Args:
        scores: ``(n, classes)`` log-scores of the classes; or ``(n,)`` predicted numbers, whose
            ``truth`` is the group the number falls in.
        truth: ``(n,)`` true class.
        speaker: ``(n,)`` who speaks; three of them at least.
        classes: How many there are.
        key: ``(n,)`` names of the rows.
        value: ``(n,)`` true numbers.
        seed: Of the folds.

    Raises:
        InputError: If there are too few speakers to calibrate on, or scores are not finite.
    """
    people = np.unique(speaker).size
    if people < 3:
        raise InputError(f"{people} speakers: beliefs are calibrated on other speakers; give three")
    if not np.isfinite(scores).all():
        raise InputError(f"{int((~np.isfinite(scores)).sum())} scores are not finite")
    if scores.ndim == 2:  # what all classes of a row share says nothing
        scores = scores - scores.mean(axis=1, keepdims=True)
    prior = prior_of(truth, speaker, classes)
    fold = speaker_folds(speaker, truth, folds=FOLDS, seed=seed)
    likelihood = np.empty((truth.size, classes))
    for f in np.unique(fold):
        out, rest = fold == f, fold != f
        fit = _numbers if scores.ndim == 1 else _categories
        likelihood[out] = fit(scores[rest], truth[rest], speaker[rest], classes, scores[out])
    posterior = np.exp(log_softmax(likelihood + np.log(np.maximum(prior, 1e-12))))
    posterior = (people * posterior + prior) / (people + 1.0)
    posterior[np.ptp(likelihood, axis=1) < EQUAL] = prior  # to the last digit: nothing was told
    return Beliefs(
        posterior,
        truth,
        speaker,
        prior,
        np.arange(truth.size).astype(str) if key is None else key,
        value,
        scores if scores.ndim == 1 else None,
    )


def _categories(
    scores: Floats, truth: Integers, speaker: NDArray[np.str_], classes: int, unseen: Floats
) -> Floats:
    """Log-likelihoods a·score + b of each class, a ≥ 0: one scale, one shift for each class."""
    share = balanced(truth, speaker, classes)
    return fit_weighing(scores[None], truth, share=share, caution=CAUTION)(unseen[None])


def _numbers(
    guess: Floats, truth: Integers, speaker: NDArray[np.str_], classes: int, unseen: Floats
) -> Floats:
    """Log-likelihoods of each group: guesses lie normally about a line that rises with the group.

    One slope, 0 or more, instead of a mean for each group: with few speakers free means lean away
    from whoever was left out, and a guess that knows nothing would look worse than chance.
    """
    share = balanced(truth, speaker, classes)
    place = truth - float(share @ truth)
    centre = float(share @ guess)
    slope = max(float(share @ (place * guess)) / max(float(share @ place**2), 1e-12), 0.0)
    mean = centre + slope * (np.arange(classes) - float(share @ truth))
    spread = max(float(share @ np.square(guess - mean[truth])), 1e-12)
    return log_softmax(-0.5 * np.square(unseen[:, None] - mean) / spread)
