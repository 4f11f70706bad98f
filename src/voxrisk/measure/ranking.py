"""Where the right answer stands when an attacker sorts all candidates by score.

Reference: Maouche et al., "Enhancing Speech Privacy with Slicing", Interspeech 2022, Section 5.1.
Rank 1 is the best score; candidates that tie share the mean of their ranks, so an attacker who
scores all alike is no better than chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure._compiled import compiled
from voxrisk.measure.roc import Floats
from voxrisk.types import InputError


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
    """How often the right candidate is among the best tenth. Chance 0.1 for many candidates."""
    return float((result.normalised <= 0.1).mean())
