"""Profiles of uncertainty as results hold them: one axis of beliefs for every run."""

import numpy as np

from voxrisk.measure import Roc, ece_profile, zero_evidence
from voxrisk.results import Profile

LOG_ODDS = np.linspace(-10.0, 10.0, 201)


def profile_of(curve: Roc) -> Profile:
    """What scores leave uncertain, whatever was believed before."""
    bits = ece_profile(curve, log_odds=LOG_ODDS)
    return Profile(log_odds=tuple(LOG_ODDS.tolist()), bits=tuple(bits.tolist()))


def zero_profile() -> Profile:
    """The profile of speech that tells nothing."""
    return Profile(log_odds=tuple(LOG_ODDS.tolist()), bits=tuple(zero_evidence(LOG_ODDS).tolist()))
