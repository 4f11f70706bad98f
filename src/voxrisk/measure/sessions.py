"""Multi-session linkage: N recordings, a pseudo-voice for each; how many are put together?

Nobody is enrolled. Somebody published recordings of people who were recorded on several days, each
recording under another pseudo-voice, and the attacker asks which of them are of one person (the
open question of Noé et al., Interspeech 2020: their pseudonyms hold for a session). A recording is
held against every recording of other sessions, and put together with the one that it is most like.

Sessions count because one session is one room and one mood: within it recordings are put together
by what is no voice.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.figures import FIGURES
from voxrisk.measure.intervals import exact_interval, percentile_interval
from voxrisk.measure.resampling import MIN_SPEAKERS, speaker_weights
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, Estimate, InputError, Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def session_linkage(
    embeddings: Embeddings,
    session: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """How many recordings of one person are found among those of everybody, across sessions.

    A recording is all utterances of a speaker in a session; its vector is the mean of theirs, and
    two are compared by their cosine. ``recordings_linked`` is the share of recordings whose most
    similar one of another session is of the same person; where k are most similar alike, the right
    ones among them count by their share. ``people_linked`` is the share of people all of whose
    recordings are linked so: their whole trace is put together.

    Both go from 0 to 1. By guessing, a recording meets its own person in m of M candidates of other
    sessions: chance is the mean of m / M, and for people the mean of the product over their
    recordings. People with one session are candidates and are not counted.

    Args:
        embeddings: Vectors ``(n, d)`` of utterances, with their speakers.
        session: ``(n,)`` the session of each.
        resamples: Draws of speakers behind the intervals; 0: none.
        seed: Of the draws.
        confidence: Of the intervals.

    Raises:
        InputError: If nobody has two sessions, or there is one person only.

    >>> two = Embeddings(np.array(list("abcd")), np.array(["x", "x", "y", "y"]),
    ...                  np.array([[1.0, 0], [1, .1], [0, 1], [.1, 1]], np.float32))
    >>> found = session_linkage(two, ["mon", "tue", "mon", "tue"], resamples=0)
    >>> found["recordings_linked"].value, found["recordings_linked"].chance
    (1.0, 0.5)
    """
    if len(session) != len(embeddings.speaker):
        raise InputError(
            f"{len(session)} sessions for {len(embeddings.speaker)} utterances; give one for each"
        )
    vectors, speaker, day = _recordings(embeddings, np.asarray(session))
    people = np.unique(speaker)
    mine = speaker[:, None] == speaker[None]
    apart = day[:, None] != day[None]
    own = (mine & apart).sum(axis=1)
    if people.size < 2 or not own.any():
        raise InputError(
            f"{embeddings.source or 'embeddings'}: {people.size} speakers, and "
            f"{np.unique(speaker[own > 0]).size} of them in two sessions or more; linkage needs "
            "two speakers, and one with two sessions"
        )
    score = np.where(apart, vectors @ vectors.T, -np.inf)
    best = apart & (score == score.max(axis=1, keepdims=True))
    hit = (best & mine).sum(axis=1) / np.maximum(best.sum(axis=1), 1)
    guess = own / np.maximum(apart.sum(axis=1), 1)
    counted = own > 0
    code = np.unique(speaker[counted], return_inverse=True)[1]
    sums = _Sums(code, hit[counted], guess[counted], resamples, seed, confidence)
    facts = {
        "recording": int(counted.sum()),
        "speaker": int(code.max()) + 1,
        "candidate": int(apart.sum(axis=1)[counted].min()),
    }
    return {"recordings_linked": sums.recordings(facts), "people_linked": sums.people(facts)}


def _recordings(embeddings: Embeddings, session: NDArray[np.str_]) -> tuple[Floats, Ints, Ints]:
    """Mean vectors ``(r, d)`` of length one of each speaker's sessions, both as numbers."""
    speaker = np.unique(embeddings.speaker, return_inverse=True)[1]
    day = np.unique(session, return_inverse=True)[1]
    pair, place = np.unique(np.stack([speaker, day], axis=1), axis=0, return_inverse=True)
    sums = np.zeros((len(pair), embeddings.vectors.shape[1]))
    np.add.at(sums, place.ravel(), unit_length(embeddings.vectors))
    return unit_length(sums), pair[:, 0], pair[:, 1]


class _Sums:
    """What each person contributes, and the estimates that follow from drawing people."""

    def __init__(
        self, code: Ints, hit: Floats, guess: Floats, resamples: int, seed: int, confidence: float
    ) -> None:
        self.count = np.bincount(code).astype(np.float64)
        self.hits = np.bincount(code, hit).astype(np.float64)
        self.guesses = np.bincount(code, guess).astype(np.float64)
        self.whole = np.array([hit[code == who].prod() for who in range(self.count.size)])
        self.luck = np.array([guess[code == who].prod() for who in range(self.count.size)])
        self.confidence = confidence
        self.draw = {"resamples": resamples, "seed": seed}
        self.weights = (
            speaker_weights(self.count.size, resamples=resamples, seed=seed)
            if resamples and self.count.size >= MIN_SPEAKERS
            else None
        )

    def recordings(self, facts: dict[str, int]) -> Estimate:
        value = float(self.hits.sum() / self.count.sum())
        chance = float(self.guesses.sum() / self.count.sum())
        return self._estimate("recordings_linked", value, chance, facts, self.hits, self.count)

    def people(self, facts: dict[str, int]) -> Estimate:
        each = np.ones_like(self.whole)
        value, chance = float(self.whole.mean()), float(self.luck.mean())
        return self._estimate("people_linked", value, chance, facts, self.whole, each)

    def _estimate(
        self,
        name: str,
        value: float,
        chance: float,
        facts: dict[str, int],
        top: Floats,
        bottom: Floats,
    ) -> Estimate:
        span: Interval | None = None
        if self.weights is not None and value in (0.0, 1.0):
            # No draw of speakers can differ: the bound of none, or of all, of so many people.
            span = exact_interval(round(value * top.size), top.size, confidence=self.confidence)
        elif self.weights is not None:
            draws = (self.weights @ top) / (self.weights @ bottom)
            span = percentile_interval(draws, confidence=self.confidence)
        source = FIGURES[name].source
        return Estimate(name, value, chance, facts, source, span, self.draw)
