"""Where the right answer stands when an attacker sorts all candidates by score.

Reference: Maouche et al., "Enhancing Speech Privacy with Slicing", Interspeech 2022, Section 5.1.
Rank 1 is the best score; candidates that tie share the mean of their ranks, so an attacker who
scores all alike is no better than chance.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure._compiled import compiled
from voxrisk.measure.curve import Floats
from voxrisk.measure.intervals import corrected_interval, rate_interval
from voxrisk.measure.rank_disclosure import BOUNDS, disclosed_bits, fit_rank_law
from voxrisk.types import InputError, Interval

CLOSEST = 5  # candidates that an attacker would look at by hand
BITS_DRAWS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The rank of the right candidate for each query.

    Attributes:
        query: ``(q,)`` the queries that have a right candidate, ascending.
        rank: ``(q,)`` its rank, from 1; halves where candidates tie.
        candidates: ``(q,)`` how many candidates the query was scored against.
    """

    query: NDArray[np.int64]
    rank: Floats
    candidates: NDArray[np.int64]

    @property
    def normalised(self) -> Floats:
        """``(q,)`` rank as a share of the highest possible one: above 0, at most 1."""
        return self.rank / self.candidates


def ranks(score: ArrayLike, query: ArrayLike, is_target: ArrayLike) -> Ranks:
    """Rank the right candidate of every query among all candidates scored for that query.

    Args:
        score: ``(n,)`` score of each candidate.
        query: ``(n,)`` whole number of the query it was scored for.
        is_target: ``(n,)`` True for the right candidate.

    Raises:
        InputError: If no query has a right candidate, one has two, or one has nothing to be
            confused with.

    >>> ranks([0.9, 0.5, 0.5, 0.1], [0, 0, 0, 0], [False, True, False, False]).rank
    array([2.5])
    """
    values = np.asarray(score, np.float64)
    queries = np.asarray(query, np.int64)
    hits = np.asarray(is_target, bool)
    if not values.shape == queries.shape == hits.shape:
        raise InputError(
            f"scores {values.shape}, queries {queries.shape} and labels {hits.shape} do not match"
        )
    if not np.isfinite(values).all():
        raise InputError(f"score {int(np.argmin(np.isfinite(values)))} is not finite")
    names, right = np.unique(queries[hits], return_counts=True)
    if not names.size:
        raise InputError("no query has a right candidate, so there is nothing to rank")
    if (right > 1).any():
        raise InputError(f"query {names[np.argmax(right > 1)]} has more than one right candidate")
    own = np.full(int(queries.max()) + 1, np.nan)
    own[queries[hits]] = values[hits]
    above, equal, count = _tally(values, queries, own)
    if (count[names] < 2).any():
        raise InputError(f"query {names[np.argmax(count[names] < 2)]} has only one candidate")
    return Ranks(names, above[names] + (equal[names] + 1.0) / 2.0, count[names].astype(np.int64))


@compiled
def _tally(
    score: NDArray[np.float64], query: NDArray[np.int64], own: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    above = np.zeros(own.size)
    equal = np.zeros(own.size)
    count = np.zeros(own.size)
    for i in range(score.size):
        q = query[i]
        above[q] += score[i] > own[q]
        equal[q] += score[i] == own[q]
        count[q] += 1.0
    return above, equal, count


@compiled
def ranks_in_rows(
    scores: NDArray[np.float32], right: NDArray[np.int64], left_out: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Rank ``(b,)`` of column ``right (b,)`` in each row of ``scores (b, n)``, ties at their mean.

    The column ``left_out (b,)`` of a row, the query itself, is no candidate.
    """
    found = np.empty(right.size)
    for i in range(right.size):
        own = scores[i, right[i]]
        above, equal = 0, 0
        for v in range(scores.shape[1]):
            if v != left_out[i]:
                above += scores[i, v] > own
                equal += scores[i, v] == own
        found[i] = above + (equal + 1) / 2.0
    return found


def mean_normalised_rank(result: Ranks) -> float:
    """How far down the list the right candidate stands on average: small means found.

    Mean rank divided by the highest possible rank. Range above 0 to 1, chance about 0.5.
    """
    return float(result.normalised.mean())


def median_normalised_rank(result: Ranks) -> float:
    """As :func:`mean_normalised_rank`, for the typical query. Chance about 0.5."""
    return float(np.median(result.normalised))


def precision_at_1(result: Ranks) -> float:
    """How often the best score is the right candidate's alone. Chance: mean of 1/candidates."""
    return float((result.rank == 1.0).mean())


def precision_at_10_percent(result: Ranks) -> float:
    """How often the right candidate is among the best tenth. Chance 0.1 for many candidates.

    Raises:
        InputError: If a query has fewer than ten candidates. Nobody is among the best tenth of
            nine, and the 0 that comes of it would look like privacy.
    """
    if (few := result.candidates < 10).any():
        raise InputError(
            f"query {result.query[np.argmax(few)]} has {result.candidates.min()} candidates; the "
            "best tenth needs at least ten"
        )
    return float((result.normalised <= 0.1).mean())


def found_in_5(result: Ranks) -> float:
    """How often the right candidate is among the five best: the cumulative match at rank 5.

    Chance: mean of 5/candidates.

    Raises:
        InputError: If a query has five candidates or fewer: everybody is among the best five then.
    """
    if (few := result.candidates <= CLOSEST).any():
        raise InputError(
            f"query {result.query[np.argmax(few)]} has {result.candidates.min()} candidates; to be "
            f"among the best {CLOSEST} says something from {CLOSEST + 1} on"
        )
    return float((result.rank <= CLOSEST).mean())


def cumulative_match(result: Ranks, most: int | None = None) -> Floats:
    """Share of queries whose right candidate is among the first k, for k = 1, 2, … ``(most,)``.

    The curve ends at 1 where k reaches the number of candidates; chance is k/candidates.

    >>> cumulative_match(Ranks(np.arange(2), np.array([1.0, 3.0]), np.array([3, 3])))
    array([0.5, 0.5, 1. ])
    """
    k = np.arange(1, (most or int(result.candidates.max())) + 1)
    return np.asarray((result.rank[:, None] <= k).mean(axis=0))


def rank_bits(result: Ranks) -> float:
    """How many bits about the speaker the rank gives away on average: 0 nothing, log2 N all.

    See :mod:`voxrisk.measure.rank_disclosure`. Chance 0.
    """
    return float(_bits(result)[0])


def worst_rank_bits(result: Ranks) -> float:
    """Bits that the most telling rank, mostly the first, gives away. Chance 0, at most log2 N."""
    return float(_bits(result)[1])


def _bits(result: Ranks) -> Floats:
    return disclosed_bits(fit_rank_law(result.rank, result.candidates).shapes, result.candidates)


def _bits_interval(place: int) -> Callable[[Ranks, NDArray[np.int64], float], Interval]:
    """From draws of speakers, each of whom moves the law of ranks by all their queries."""

    def interval(result: Ranks, speaker: NDArray[np.int64], confidence: float) -> Interval:
        people = np.unique(speaker, return_inverse=True)[1]
        n = int(people.max()) + 1
        law = fit_rank_law(result.rank, result.candidates)
        pull = np.stack([np.bincount(people, column) for column in law.influence.T], axis=1)
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=BITS_DRAWS)
        low, high = np.array(BOUNDS).T
        shapes = np.clip(law.shapes + (drawn - 1.0) @ pull, low, high)
        value = float(disclosed_bits(law.shapes, result.candidates)[place])
        draws = disclosed_bits(shapes, result.candidates)[:, place]
        span = corrected_interval(draws, value, speakers=n, confidence=confidence)
        top = float(np.log2(result.candidates.max()))
        return replace(
            span, low=min(max(span.low, 0.0), value), high=max(min(span.high, top), value)
        )

    return interval


@dataclass(frozen=True, slots=True)
class RankFigure:
    """One figure of ranks: its value, what chance gives, and its interval over speakers."""

    value: Callable[[Ranks], float]
    chance: Callable[[Ranks], float]
    interval: Callable[[Ranks, NDArray[np.int64], float], Interval]


def _middle(result: Ranks) -> float:
    c = result.candidates
    return float(((c + 1) / (2 * c)).mean())


def _share(
    within: Callable[[Ranks], NDArray[Any]],
) -> Callable[[Ranks, NDArray[np.int64], float], Interval]:
    """The interval of the mean of anything between 0 and 1, speakers being what differs."""

    def interval(result: Ranks, speaker: NDArray[np.int64], confidence: float) -> Interval:
        return _over_speakers(within(result), speaker, confidence)

    return interval


def _mean(result: Ranks, speaker: NDArray[np.int64], confidence: float) -> Interval:
    """From the share of the others who stand before the right one, 0 where it is always first."""
    value, first = mean_normalised_rank(result), float((1.0 / result.candidates).mean())
    before = (result.rank - 1.0) / (result.candidates - 1.0)
    span, centre = _over_speakers(before, speaker, confidence), float(before.mean())
    low, high = (value + (end - centre) * (1.0 - first) for end in (span.low, span.high))
    return replace(span, low=min(low, value), high=max(high, value))


def _median(result: Ranks, speaker: NDArray[np.int64], confidence: float) -> Interval:
    """Woodruff's interval: where the share of lower ranks is no longer surely below one half."""
    value = median_normalised_rank(result)
    below = (result.normalised < value) + 0.5 * (result.normalised == value)
    share = _over_speakers(below, speaker, confidence)
    centre = float(below.mean())
    shifted = np.clip([0.5 + share.low - centre, 0.5 + share.high - centre], 0.0, 1.0)
    low, high = np.quantile(result.normalised, shifted)
    return replace(share, low=min(float(low), value), high=max(float(high), value))


def _over_speakers(within: NDArray[Any], speaker: NDArray[np.int64], confidence: float) -> Interval:
    _, group, queries = np.unique(speaker, return_inverse=True, return_counts=True)
    return rate_interval(np.bincount(group, within), queries, confidence=confidence)


RANK_FIGURES = {
    "mean_rank": RankFigure(mean_normalised_rank, _middle, _mean),
    "median_rank": RankFigure(median_normalised_rank, _middle, _median),
    "precision_at_1": RankFigure(
        precision_at_1,
        lambda r: float((1 / r.candidates).mean()),
        _share(lambda r: r.rank == 1.0),
    ),
    "precision_at_10": RankFigure(
        precision_at_10_percent,
        lambda r: float((np.floor(0.1 * r.candidates) / r.candidates).mean()),
        _share(lambda r: r.normalised <= 0.1),
    ),
    "found_in_5": RankFigure(
        found_in_5,
        lambda r: float((CLOSEST / r.candidates).mean()),
        _share(lambda r: r.rank <= CLOSEST),
    ),
    "rank_bits": RankFigure(rank_bits, lambda r: 0.0, _bits_interval(0)),
    "worst_rank_bits": RankFigure(worst_rank_bits, lambda r: 0.0, _bits_interval(1)),
}
