"""The equal error rate of each person: an average over all trials hides those who are always found.

A speaker's own EER compares the scores of their recordings with the own enrolment to those of
everybody else's recordings with the same enrolment. It is clipped at 50 %: to be mistaken for
others more often than by chance protects nobody better, and must not make up for somebody else.
"""

import numpy as np

from voxrisk.measure.curve import Floats
from voxrisk.measure.eer import interpolated_eer
from voxrisk.measure.intervals import corrected_interval
from voxrisk.measure.scored_trials import Trials
from voxrisk.types import InputError, Interval

DRAWS = 1000


def speaker_eers(scored: Trials) -> dict[str, float]:
    """Speaker → own EER, at most 0.5; those without target or nontarget trials are left out.

    Raises:
        InputError: If no speaker has both.

    >>> speaker_eers(Trials([2.0, 1.0, 0.0], ["ann", "ann", "ann"], ["ann", "bob", "cy"]))
    {'ann': 0.0}
    """
    order = np.argsort(scored.enroll_speaker, kind="stable")
    bounds = np.searchsorted(scored.enroll_speaker[order], np.arange(len(scored.speakers) + 1))
    found = {}
    for number, name in enumerate(scored.speakers):
        rows = order[bounds[number] : bounds[number + 1]]
        same = scored.is_target[rows]
        if same.any() and not same.all():
            own = interpolated_eer(scored.score[rows[same]], scored.score[rows[~same]])
            found[name] = min(own, 0.5)
    if not found:
        raise InputError("no speaker has trials with the own recordings and with those of others")
    return found


def mean_interval(each: Floats, confidence: float) -> Interval:
    """The interval of the mean of values ``(speakers,)``, speakers drawn anew."""
    value = float(each.mean())
    drawn = np.random.default_rng(0).integers(0, each.size, (DRAWS, each.size))
    span = corrected_interval(
        each[drawn].mean(axis=1), value, speakers=each.size, confidence=confidence
    )
    low, high = min(max(span.low, 0.0), value), max(min(span.high, 0.5), value)
    return Interval(low, high, span.confidence, span.method)
