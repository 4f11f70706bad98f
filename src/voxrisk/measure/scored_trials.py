"""A set of scored trials with the speakers behind them: what intervals are resampled from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from voxrisk.measure.curve import Floats, Roc, roc
from voxrisk.types import InputError

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Trials:
    """Scored comparisons of an enrolled speaker with a trial segment.

    A trial is a target trial when the two speakers are the same.

    Args:
        score: ``(n,)`` higher means more likely the same speaker.
        enroll_speaker: ``(n,)`` who is enrolled; any names.
        trial_speaker: ``(n,)`` who speaks in the trial segment.
        segment: ``(n,)`` the trial segment (utterance); None: every trial has one of its own.

    Attributes:
        score: ``(n,)``.
        is_target: ``(n,)`` True where both sides are the same person.
        enroll_speaker: ``(n,)`` index into ``speakers`` of the enrolled person.
        trial_speaker: ``(n,)`` index into ``speakers`` of the person in the trial segment.
        query: ``(n,)`` number of the trial segment: trials of one segment share it.
        speakers: Names.

    >>> t = Trials([2.0, 0.5, 0.1], ["ann", "ann", "bob"], ["ann", "bob", "cy"])
    >>> t.speakers, t.target
    (('ann', 'bob', 'cy'), array([2.]))
    """

    score: Floats
    is_target: NDArray[np.bool_]
    enroll_speaker: Codes
    trial_speaker: Codes
    query: Codes
    speakers: tuple[str, ...]

    def __init__(
        self,
        score: ArrayLike,
        enroll_speaker: Sequence[Any] | NDArray[Any],
        trial_speaker: Sequence[Any] | NDArray[Any],
        *,
        segment: Sequence[Any] | NDArray[Any] | None = None,
    ) -> None:
        try:
            values = np.asarray(score, np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"scores must be numbers ({error})") from error
        first, second = np.asarray(enroll_speaker), np.asarray(trial_speaker)
        segments = (
            np.arange(values.size, dtype=np.int32) if segment is None else np.asarray(segment)
        )
        sides = (("enroll_speaker", first), ("trial_speaker", second), ("segment", segments))
        for name, ids in sides:
            if ids.shape != values.shape:
                raise InputError(
                    f"{name} has shape {ids.shape} beside {values.shape} scores: one id for each "
                    "score"
                )
        names, codes = _numbered(np.concatenate((first, second)))
        enroll, trial = np.split(codes, 2)
        query = segments if segment is None else _numbered(segments)[1]
        self._set(values, enroll == trial, enroll, trial, query, tuple(map(str, names)))

    @classmethod
    def coded(
        cls,
        score: Floats,
        is_target: NDArray[np.bool_],
        enroll_speaker: Codes,
        trial_speaker: Codes,
        query: Codes,
        speakers: tuple[str, ...],
    ) -> "Trials":
        """Trials whose speakers and segments are numbers already; see the attributes."""
        made = cls.__new__(cls)
        made._set(score, is_target, enroll_speaker, trial_speaker, query, speakers)
        return made

    def _set(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def among(self, member: NDArray[np.bool_]) -> "Trials":
        """The trials whose two sides are both of some speakers, these numbered anew.

        Args:
            member: ``(speakers,)`` True for those who stay.
        """
        keep = member[self.enroll_speaker] & member[self.trial_speaker]
        number = np.cumsum(member, dtype=np.int32) - np.int32(1)
        return Trials.coded(
            self.score[keep],
            self.is_target[keep],
            number[self.enroll_speaker[keep]],
            number[self.trial_speaker[keep]],
            self.query[keep],
            tuple(name for name, here in zip(self.speakers, member, strict=True) if here),
        )

    @property
    def target(self) -> Floats:
        """Scores of the target trials."""
        return self.score[self.is_target]

    @property
    def nontarget(self) -> Floats:
        """Scores of the nontarget trials."""
        return self.score[~self.is_target]

    @property
    def roc(self) -> Roc:
        """The curve of these scores."""
        return roc(self.target, self.nontarget)

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of target trials, nontarget trials and speakers."""
        n_target = int(self.is_target.sum())
        return {
            "target": n_target,
            "nontarget": self.score.size - n_target,
            "speaker": len(self.speakers),
        }


def _numbered(ids: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Distinct ids, ascending, and the number of each; small whole numbers need no sorting."""
    if ids.dtype.kind in "iu" and ids.size and ids.min() >= 0 and ids.max() < ids.size:
        names = np.flatnonzero(np.bincount(ids))
        number = np.zeros(int(names[-1]) + 1, np.int32)
        number[names] = np.arange(names.size)
        return names, number[ids]
    names, codes = np.unique(ids, return_inverse=True)
    return names, codes.astype(np.int32)
