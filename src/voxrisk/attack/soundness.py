"""Is a trained attacker sound? Controls that a broken training cannot pass.

An attacker that learned nothing makes any anonymizer look safe. Two questions are asked of the
training speech alone, before the attacker is believed:

* :func:`training_control`: does it recognise people it was *not* trained on at least as well as the
  encoder it began with, and better than chance? Wrong speaker labels, too little speech or a rate
  that is too high fail here.
* :func:`target_control`: can the target speakers be told from the vectors at all? If not, there is
  nothing to unlearn, or the column of targets is wrong: an attacker that "unlearned" them has
  unlearned something else.

Both resample speakers, never trials.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.backends import cosine
from voxrisk.measure.all_figures import measure_scores
from voxrisk.measure.intervals import percentile_interval
from voxrisk.measure.resampling import (
    MIN_SPEAKERS,
    bootstrap,
    speaker_weights,
)
from voxrisk.measure.scored_trials import Trials
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, Estimate, InputError, Interval

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.int64]
# A map of vectors (n, d) → (n, e): one for both sides of a trial, or as enrolled and as tried.
Map: TypeAlias = Callable[[NDArray[Any]], NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]]
# Trains on the given rows of the embeddings and returns a map.
Fit: TypeAlias = Callable[[Embeddings, Rows], Map]

ALPHA = 0.01  # probability that a training with meaningless labels passes for better than chance
WELL_BELOW = 0.9  # of chance: targets that are told less often are hardly told
SOURCE = "speaker-disjoint cross-validation over the training speakers; ROCCH-EER"


@dataclass(frozen=True, slots=True)
class TrainingControl:
    """What a training gives on speakers it has not seen.

    Attributes:
        trained: EER of the trained attacker.
        untrained: EER of the vectors as they were, on the same trials.
        difference: Trained minus untrained, paired by speaker; positive: training did harm.
        weaker: Whether the whole interval of the difference lies above 0.
        at_chance: Whether the trained attacker may be guessing: ``p_chance`` is above 0.01.
        p_chance: Probability of scores that tell speakers at least so well if names and voices had
            nothing to do with each other. A permutation test: the names of the enrolled speakers
            of a fold change places. (An interval of the ROCCH-EER cannot say it: that figure
            never exceeds 50 %, and lies below by accident.)
    """

    trained: Estimate
    untrained: Estimate
    difference: Estimate
    weaker: bool
    at_chance: bool
    p_chance: float

    @property
    def failed(self) -> bool:
        """Whether this attacker must not be believed."""
        return self.weaker or self.at_chance


@dataclass(frozen=True, slots=True)
class TargetControl:
    """Whether the targets can be told from the training vectors.

    Attributes:
        ver_target: Share of held-out utterances whose target a linear classifier gets wrong; chance
            is the error of always naming the most frequent target.
        told: Whether the whole interval lies below 0.9 times chance.
    """

    ver_target: Estimate
    told: bool

    @property
    def failed(self) -> bool:
        """Whether an attacker that unlearns these targets must not be believed."""
        return not self.told


def cross_validated(
    embeddings: Embeddings, fit: Fit, *, folds: int = 2, seed: int = 0
) -> tuple[Trials, Trials]:
    """Trials of held-out speakers: with what ``fit`` learned from the others, and without it.

    Speakers are dealt into ``folds``. A fold's map learns from the speakers of all other folds.
    Each held-out speaker enrols with the mean of the first half of the own utterances, and the
    second halves of all held-out speakers of the fold are tried, scored by cosine.

    Args:
        embeddings: Vectors ``(n, d)`` of the training set and their (source) speakers. Speakers
            with one utterance train, but are not tried.
        fit: Trains on rows of the embeddings and returns a map of vectors.
        folds: 2 or more.
        seed: Deals the speakers.

    Returns:
        The same trials twice: mapped vectors, and the vectors as they are.

    Raises:
        InputError: If a fold would have under two speakers to try, or a map gives vectors that are
            not finite.
    """
    names, code = np.unique(embeddings.speaker, return_inverse=True)
    enough = np.flatnonzero(np.bincount(code) > 1)
    fold = speaker_folds(embeddings, folds=folds, seed=seed)
    parts: list[tuple[Floats, Floats, NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    for number in range(folds):
        apply = fit(embeddings, np.flatnonzero(fold[code] != number))
        held = enough[fold[enough] == number]
        vectors = embeddings.vectors
        found = apply(vectors)
        sides = found if isinstance(found, tuple) else (found, found)
        for mapped in sides:
            if mapped.shape[:1] != vectors.shape[:1] or not np.isfinite(mapped).all():
                raise InputError(
                    f"{embeddings.source}: the trained map gives {mapped.shape} values for "
                    f"{len(vectors)} vectors, or some are not finite; train with a lower rate"
                )
        parts.append(_halves(names, code, held, sides, vectors))
    trained, plain, enroll, trial, segment = map(np.concatenate, zip(*parts, strict=True))
    return (
        Trials(trained, enroll, trial, segment=segment),
        Trials(plain, enroll, trial, segment=segment),
    )


def speaker_folds(embeddings: Embeddings, *, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each speaker, in the order of their names; those with one utterance count too.

    Raises:
        InputError: If a fold would have under two speakers to try.
    """
    names, code = np.unique(embeddings.speaker, return_inverse=True)
    enough = np.flatnonzero(np.bincount(code) > 1)
    if folds < 2 or enough.size < 2 * folds:
        raise InputError(
            f"{embeddings.source}: {enough.size} speakers with two utterances or more cannot be "
            f"dealt into {folds} folds of two speakers; add training speakers"
        )
    fold = np.random.default_rng([seed, 2]).permutation(names.size) % folds
    # Deal those who can be tried evenly; the others only train.
    fold[enough] = np.random.default_rng([seed, 3]).permutation(enough.size) % folds
    return fold


def _halves(
    names: NDArray[Any],
    code: NDArray[np.int64],
    held: NDArray[np.int64],
    mapped: tuple[NDArray[Any], NDArray[Any]],
    vectors: NDArray[Any],
) -> tuple[Floats, Floats, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Each held speaker's first half against all second halves, mapped and as they are."""
    halves = [np.array_split(np.flatnonzero(code == who), 2) for who in held]
    tried = np.concatenate([second for _, second in halves])
    shape = (held.size, tried.size)
    scores = [
        cosine(
            np.stack([enroll[first].mean(axis=0, dtype=np.float64) for first, _ in halves]),
            trial[tried].astype(np.float64),
        )
        for enroll, trial in (mapped, (vectors, vectors))
    ]
    return (
        scores[0].ravel(),
        scores[1].ravel(),
        np.broadcast_to(names[held][:, None], shape).ravel(),
        np.broadcast_to(names[code[tried]], shape).ravel(),
        np.broadcast_to(tried, shape).ravel(),
    )


def training_control(
    embeddings: Embeddings,
    fit: Fit,
    *,
    folds: int = 2,
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> TrainingControl:
    """Whether training made an attacker that recognises people it was not trained on.

    Fails where the trained attacker is weaker than the untrained vectors beyond accident, or is
    not better than chance beyond accident (1 %). Both EERs are drawn with the same speakers, so
    their difference is paired. See :func:`cross_validated` for the trials and the arguments.

    Args:
        embeddings: Vectors of the training set.
        fit: The training.
        folds: Of speakers.
        seed: Deals the speakers, and draws them.
        resamples: Draws of speakers.
        confidence: Of the intervals.

    Raises:
        InputError: If there are too few speakers for folds or for intervals.
    """
    mapped, plain = cross_validated(embeddings, fit, folds=folds, seed=seed)
    return _compared(mapped, plain, folds, seed, resamples, confidence)


def held_out_control(
    trained: Embeddings,
    untrained: Embeddings,
    *,
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> TrainingControl:
    """The same for a recogniser trained as a whole, on speakers that were kept out of its training.

    Args:
        trained: Vectors of the held-out speakers' utterances by the trained recogniser.
        untrained: Vectors of the same utterances, in the same order, by a ready encoder.
        seed: Draws the speakers.
        resamples: Draws of speakers.
        confidence: Of the intervals.

    Raises:
        InputError: If there are too few speakers, or the two are not of the same utterances.
    """
    if trained.utterance.tolist() != untrained.utterance.tolist():
        raise InputError("the two recognisers were not given the same held-out utterances")
    names, code = np.unique(trained.speaker, return_inverse=True)
    enough = np.flatnonzero(np.bincount(code) > 1)
    if enough.size < MIN_SPEAKERS:
        raise InputError(
            f"{enough.size} held-out speakers with two utterances or more; {MIN_SPEAKERS} are "
            "needed to say whether a training made sense"
        )
    ours, plain, enroll, trial, segment = _halves(
        names, code, enough, (trained.vectors, trained.vectors), untrained.vectors
    )
    return _compared(
        Trials(ours, enroll, trial, segment=segment),
        Trials(plain, enroll, trial, segment=segment),
        1,
        seed,
        resamples,
        confidence,
    )


def _compared(
    mapped: Trials, plain: Trials, folds: int, seed: int, resamples: int, confidence: float
) -> TrainingControl:
    weights = speaker_weights(len(mapped.speakers), resamples=resamples, seed=seed)
    drawn = [bootstrap(t, weights) for t in (mapped, plain)]
    facts = {"folds": folds, "seed": seed, "resamples": resamples}

    def estimate(name: str, value: float, chance: float, span: Interval) -> Estimate:
        return Estimate(name, value, chance, mapped.sizes, SOURCE, span, facts)

    trained, untrained = (
        replace(
            measure_scores(t, resamples=resamples, seed=seed, confidence=confidence)["rocch_eer"],
            source=SOURCE,
            parameters=facts,
        )
        for t in (mapped, plain)
    )
    apart = drawn[0]["rocch_eer"] - drawn[1]["rocch_eer"]
    between = percentile_interval(apart, confidence=confidence)
    guess = _p_chance(mapped, resamples, seed)
    return TrainingControl(
        trained,
        untrained,
        estimate("eer_difference", trained.value - untrained.value, 0.0, between),
        weaker=between.low > 0.0,
        at_chance=guess > ALPHA,
        p_chance=guess,
    )


def _p_chance(scored: Trials, permutations: int, seed: int) -> float:
    """Permutation test of the mean rank of target scores; names change places within a fold."""
    from scipy.stats import rankdata

    speakers, queries = len(scored.speakers), int(scored.query.max()) + 1
    table = np.full((speakers, queries), np.nan)
    table[scored.enroll_speaker, scored.query] = rankdata(scored.score)
    who = np.empty(queries, np.int64)
    who[scored.query] = scored.trial_speaker
    first = np.argmax(np.isfinite(table), axis=1)  # speakers of one fold meet the same queries
    folds = [np.flatnonzero(first == start) for start in np.unique(first)]
    random = np.random.default_rng([seed, 5])
    place, column = np.arange(speakers), np.arange(queries)
    seen = table[who, column].mean()
    hits = 1  # the order in hand is one of all
    for _ in range(permutations):
        for fold in folds:
            place[fold] = random.permutation(fold)
        hits += bool(table[place[who], column].mean() >= seen)
    return hits / (permutations + 1)


def target_control(
    embeddings: Embeddings,
    targets: Sequence[str],
    *,
    folds: int = 5,
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> TargetControl:
    """Whether a linear classifier tells the targets of training utterances it has not seen (VER_T).

    Utterances are dealt into ``folds``; the classifier of a fold learns from the others. It names
    the nearest class mean, distances in the within-class covariance shrunk towards a sphere by a
    tenth. The interval draws source speakers.

    Args:
        embeddings: Vectors ``(n, d)`` of the training set.
        targets: ``(n,)`` target speaker of each utterance.
        folds: Of utterances.
        seed: Deals the utterances and draws the speakers.
        resamples: Draws of speakers.
        confidence: Of the interval.

    Returns:
        The error; 0: every target is told. A shuffled column gives chance, and fails.

    Raises:
        InputError: If there is one target only, or there are fewer utterances than folds or fewer
            than five speakers.
    """
    names, label = np.unique(np.array(targets), return_inverse=True)
    if label.shape != embeddings.speaker.shape:
        raise InputError(
            f"{embeddings.source}: {label.size} targets for {embeddings.speaker.size} utterances; "
            "there must be one for each"
        )
    if names.size < 2 or not 2 <= folds <= label.size:
        raise InputError(
            f"{embeddings.source}: {label.size} utterances with {names.size} different targets: "
            f"nothing to tell apart in {folds} folds; anonymize with two targets or more"
        )
    x = unit_length(embeddings.vectors)
    fold = np.random.default_rng([seed, 4]).permutation(label.size) % folds
    wrong = np.empty(label.size)
    for number in range(folds):
        held = fold == number
        wrong[held] = _nearest_class(x[~held], label[~held], x[held]) != label[held]
    people, speaker = np.unique(embeddings.speaker, return_inverse=True)
    if people.size < MIN_SPEAKERS:
        raise InputError(
            f"{embeddings.source}: {people.size} speakers; the control of targets needs "
            f"{MIN_SPEAKERS} to draw from"
        )
    weights = speaker_weights(people.size, resamples=resamples, seed=seed)
    draws = weights @ np.bincount(speaker, wrong) / (weights @ np.bincount(speaker))
    chance = 1.0 - float(np.bincount(label).max()) / label.size
    span = percentile_interval(draws, confidence=confidence)
    found = Estimate(
        "ver_target",
        float(wrong.mean()),
        chance,
        {"utterance": label.size, "speaker": people.size, "target": names.size},
        "validation error of a target head (paper 3), here a linear discriminant on the vectors",
        span,
        {"folds": folds, "seed": seed, "resamples": resamples},
    )
    return TargetControl(found, told=span.high < WELL_BELOW * chance)


def _nearest_class(x: Floats, label: Rows, tried: Floats) -> Rows:
    """Linear discriminant analysis: the class of each row of ``tried (m, d)``."""
    count = np.bincount(label)
    seen = np.flatnonzero(count)
    centre = np.zeros((count.size, x.shape[1]))
    np.add.at(centre, label, x)
    centre = centre[seen] / count[seen][:, None]
    within = x - centre[np.searchsorted(seen, label)]
    covariance = within.T @ within / len(x)
    sphere = max(float(np.trace(covariance)) / len(covariance), 1e-12) * np.eye(len(covariance))
    weight = np.linalg.solve(0.9 * covariance + 0.1 * sphere, centre.T)
    logit = tried @ weight - 0.5 * np.einsum("kd,dk->k", centre, weight)
    return np.asarray(seen[np.argmax(logit, axis=1)])
