"""How far several attributes together narrow a crowd: from N people down to those who share them.

Each attribute alone may be harmless; a set of them can describe one person only. After "Voice
Privacy from an Attribute-based Perspective" (arXiv 2603.20301): people are sets of attributes, as
they are, as inferred from original speech, and as inferred from protected speech.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.figures import FIGURES
from voxrisk.measure.intervals import corrected_interval
from voxrisk.measure.logistic import Floats, Integers
from voxrisk.measure.posteriors import Beliefs, speaker_shares
from voxrisk.measure.resampling import MIN_SPEAKERS, speaker_weights
from voxrisk.types import Estimate, InputError, Interval


def beliefs_in_people(beliefs: Sequence[Beliefs]) -> tuple[Floats, Integers, NDArray[np.str_]]:
    """Belief ``(n, N)`` that each of N people was heard, from what was inferred about attributes.

    All people are equally likely beforehand, and attributes are taken as independent given the
    person: belief in somebody is proportional to the product, over attributes, of how much likelier
    that person's class has become. Speech (``key``) and people that not all attributes know are
    left out.

    Args:
        beliefs: One for each attribute; of one speaker the truth is always the same.

    Returns:
        Beliefs, the place of the true person in each row, and the names of the N people.

    Raises:
        InputError: If no speech or fewer than two people are common to all attributes.
    """
    keys = set.intersection(*(set(b.key.tolist()) for b in beliefs))
    of = [dict(zip(b.speaker.tolist(), b.truth.tolist(), strict=True)) for b in beliefs]
    people = np.array(sorted(set.intersection(*(set(known) for known in of))))
    if not keys or people.size < 2:
        raise InputError("no speech of two people whose attributes are all known")
    common = sorted(keys)
    log_belief = np.zeros((len(common), people.size))
    for b, known in zip(beliefs, of, strict=True):
        row = {name: i for i, name in enumerate(b.key.tolist())}
        places = [row[name] for name in common]
        theirs = np.array([known[name] for name in people.tolist()])
        log_belief += np.log(np.maximum(b.likelihood[places][:, theirs], 1e-12))
    first = beliefs[0]
    row = {name: i for i, name in enumerate(first.key.tolist())}
    heard = first.speaker[[row[name] for name in common]]
    kept = np.isin(heard, people)
    log_belief -= log_belief.max(axis=1, keepdims=True)
    belief = np.exp(log_belief[kept])
    belief /= belief.sum(axis=1, keepdims=True)
    return belief, np.searchsorted(people, heard[kept]).astype(np.int64), people


def true_beliefs(classes: Integers) -> Floats:
    """Belief ``(N, N)`` in each person from the true ``classes (N, attributes)`` of each.

    >>> true_beliefs(np.array([[0], [0], [1]]))[0].tolist()
    [0.5, 0.5, 0.0]
    """
    same = (classes[:, None, :] == classes[None, :, :]).all(axis=2).astype(np.float64)
    return np.asarray(same / same.sum(axis=1, keepdims=True))


def measure_narrowing(
    belief: Floats,
    heard: Integers,
    people: NDArray[np.str_],
    *,
    length: int,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[Estimate, Estimate]:
    """How many people are left, and how often the attributes alone find the right one.

    People left: 2 to the mean of -log2 (belief in the right person), all speakers counting the
    same. With true attributes it is the (geometric) mean number of people who share them; N means
    that nothing was learned. Found: how often the person believed in most is the right one; among
    equals one is drawn, so guessing gives 1/N.

    Args:
        belief: ``(n, N)``, rows add up to one.
        heard: ``(n,)`` place of the person who was heard.
        people: ``(N,)`` their names.
        length: Utterances behind each belief, L.
        resamples: Draws of the speakers that are heard; the crowd stays as it is.
        seed: Of the draws.
        confidence: Of the intervals.
    """
    rows, crowd = np.arange(heard.size), people.size
    own = belief[rows, heard]
    surprise = -np.log2(np.maximum(own, 1e-12))
    best = belief >= belief.max(axis=1, keepdims=True) * (1.0 - 1e-9)
    found = best[rows, heard] / best.sum(axis=1)
    names, who = np.unique(people[heard], return_inverse=True)
    base = speaker_shares(people[heard])
    n = {"speaker": names.size, "row": heard.size, "crowd": crowd}
    mean = float(base @ surprise)
    values = {"people_left": 2.0**mean, "found_by_attributes": float(base @ found)}
    spans: dict[str, Interval | None] = dict.fromkeys(values)
    if resamples and names.size >= MIN_SPEAKERS:
        count = speaker_weights(names.size, resamples=resamples, seed=seed) / names.size
        share = base * names.size
        options: dict[str, Any] = {"speakers": names.size, "confidence": confidence, "bias": 0.0}
        # The interval is that of the mean surprise: nobody is left with less than one person.
        bits = corrected_interval(count @ np.bincount(who, share * surprise), mean, **options)
        low, high = (2.0 ** max(end, 0.0) for end in (bits.low, bits.high))
        spans["people_left"] = replace(bits, low=min(low, 2.0**mean), high=high)
        spans["found_by_attributes"] = corrected_interval(
            count @ np.bincount(who, share * found), values["found_by_attributes"],
            scale=(0.0, 1.0), **options,
        )  # fmt: skip
    left, share_found = (
        Estimate(
            name, value, float(crowd) if name == "people_left" else 1.0 / crowd, n,
            FIGURES[name].source, spans[name], {"L": length, "N": crowd, "seed": seed},
        )
        for name, value in values.items()
    )  # fmt: skip
    return left, share_found
