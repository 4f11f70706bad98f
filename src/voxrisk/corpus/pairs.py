"""Is each anonymized file really the protected version of the original with its id?

A list read in another order, a folder copied instead of converted, samples at 8 kHz called 16 kHz:
each gives an evaluation that runs to its end with figures that mean nothing. Three things tell them
apart. Samples under the wrong id, or unchanged under the right one, are found by a hash of the
decoded sound, so that a FLAC copy of a WAV is the same sound. Lengths show a wrong sample rate. And
nearly every anonymizer keeps the timing of the speech: its loudness over time (the *envelope*) fits
its own original far better than any other. Where it does not (speech that was spoken anew), nothing
can be said, and nothing is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE, audio_seconds, read_audio
from voxrisk.corpus.table import Utterance
from voxrisk.types import InputError

POINTS = 100  # of an envelope
FLOOR_DB = 60.0  # below the loudest point everything is silence
FITS = 0.7  # a correlation under this is no fit
ABOVE_OWN = 0.2  # by how much a fit with another original must beat that with the own one
CLEAR = 0.3  # and, in Fisher's z, that with every third one
FEW = 3  # fits of fewer files, or among fewer originals, prove nothing
RATES = (8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
EXTRA = 600  # originals read besides the sample where a sampled utterance does not fit its own


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    """What is kept of one utterance.

    Attributes:
        seconds: How long it lasts.
        digest: Hash of its samples, mono at 16 kHz and 16 bits; empty where they do not move.
        envelope: ``(100,)`` log energy over the utterance, with mean 0 and norm 1; zeros where the
            loudness does not change.
    """

    seconds: float
    digest: bytes
    envelope: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairCheck:
    """What a look at some pairs found.

    Attributes:
        verdict: ``"paired"``: each fits its own original. ``"permuted"``: at least a quarter are
            clearly the versions of others. ``"identical"``: at least half are not changed at all.
            ``"unknown"``: the loudness does not follow the original, so nothing can be said.
        reason: The figures behind the verdict, in a sentence.
        shared: Ids that both sides have.
        compared: How many of them were listened to.
        identical: Ids whose samples are those of the original.
        moved: ``(anonymized id, original id)`` with the same samples under another id.
        misfits: ``(anonymized id, original id)`` whose envelope clearly fits another original.
        duration_ratio_median: Length after anonymization by length before; 1: the same.
        duration_mismatch: Share of the pairs whose ratio is more than 5 % (and 50 ms) off the
            median; near 0 where lengths are kept.
        rate_ratio: Where nearly all lengths changed by one ratio of common sample rates (0.5: 8 kHz
            samples called 16 kHz), that ratio; else None.
        own_best: Share of the compared that fit their own original best. Chance is 1 by the number
            of originals compared with.
        other_best: Share of the compared in ``misfits``.
        seed: Of the sample.
    """

    verdict: str
    reason: str
    shared: int
    compared: int
    identical: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    misfits: tuple[tuple[str, str], ...]
    duration_ratio_median: float
    duration_mismatch: float
    rate_ratio: float | None
    own_best: float
    other_best: float
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; pairs are lists of two."""
        plain = asdict(self)
        return plain | {
            "identical": list(self.identical),
            "moved": [list(pair) for pair in self.moved],
            "misfits": [list(pair) for pair in self.misfits],
        }


@dataclass(frozen=True, slots=True)
class SpeechRate:
    """How fast a corpus is spoken: ``words`` of ``utterances`` in ``seconds``."""

    words: int
    seconds: float
    words_per_second: float
    utterances: int
    limit: float


def check_pairs(
    original: Sequence[Utterance],
    anonymized: Sequence[Utterance],
    *,
    sample: int = 120,
    seed: int = 0,
) -> PairCheck:
    """Compare the two sides by id.

    At most ``sample`` ids are listened to, drawn with ``seed``. Where some of these do not fit,
    their true originals are looked for among 600 more, those of the same length first.

    Raises:
        InputError: If no id is on both sides, or a file cannot be read.
    """
    if sample < 1:
        raise InputError(f"the sample is {sample}; at least one pair must be compared")
    before = {row.utterance: row for row in original}
    after = {row.utterance: row for row in anonymized}
    names = sorted(before.keys() & after.keys())
    if not names:
        raise InputError(
            "original and anonymized speech have no utterance id in common; "
            "give the protected version of each utterance the id of its original"
        )
    random = np.random.default_rng(seed)
    chosen = [names[i] for i in sorted(random.permutation(len(names))[:sample].tolist())]
    heard = {name: listen(after[name]) for name in chosen}
    known = {name: listen(before[name]) for name in chosen}
    for name in _candidates(_lost(heard, known), heard, known, before):
        known[name] = listen(before[name])
    return judge_pairs(known, heard, shared=len(names), seed=seed)


def listen(row: Utterance) -> Sound:
    """Read one utterance and keep what :func:`judge_pairs` needs."""
    samples = read_audio(row, rate=RATE)
    moves = bool(np.ptp(samples))
    rounded = np.round(samples * 2.0**15).astype("<i4")
    digest = hashlib.blake2b(rounded.tobytes(), digest_size=16).digest() if moves else b""
    return Sound(len(samples) / RATE, digest, envelope(samples))


def envelope(samples: NDArray[np.float32], *, points: int = POINTS) -> NDArray[np.float64]:
    """Log energy ``(points,)`` of equal parts of ``samples (n,)``, with mean 0 and norm 1.

    More than 60 dB under the loudest part is silence, all of it alike. Scaling the samples changes
    nothing, nor does playing them faster. Where the energy does not change it is all zeros.
    """
    power = np.square(samples, dtype=np.float64)
    edges = np.linspace(0, len(power), points + 1)
    total = np.interp(edges, np.arange(len(power) + 1), np.concatenate([[0.0], power.cumsum()]))
    energy = np.maximum(np.diff(total), 0.0)
    loudest = energy.max()
    if loudest <= 0:
        return np.zeros(points)
    level = 10 * np.log10(np.maximum(energy / loudest, 10 ** (-FLOOR_DB / 10)))
    level -= level.mean()
    norm = float(np.linalg.norm(level))
    flat: NDArray[np.float64] = level / norm if norm > 1e-6 else np.zeros(points)
    return flat


def judge_pairs(
    original: Mapping[str, Sound],
    anonymized: Mapping[str, Sound],
    *,
    shared: int | None = None,
    seed: int = 0,
) -> PairCheck:
    """The verdict on sounds that were listened to.

    Args:
        original: By id; at least those of ``anonymized``, and others to look among.
        anonymized: By id.
        shared: How many ids both sides have; None: those given.
        seed: To be kept with the result.
    """
    names, others = list(anonymized), list(original)
    same, moved = _same_samples(original, anonymized)
    after, before = (
        np.stack([side[name].envelope for name in ids])
        for side, ids in ((anonymized, names), (original, others))
    )
    likeness = after @ before.T
    own = np.array([others.index(name) for name in names])
    fits_own, misfit = _fit(likeness, own, [original[name].digest for name in others])
    misfits = tuple((names[i], others[j]) for i, j in misfit)
    ratio = np.array([anonymized[n].seconds / original[n].seconds for n in names])
    lengths = np.array([original[n].seconds for n in names])
    median = float(np.median(ratio))
    off = np.abs(ratio - median)
    wrong = {name for name, _ in (*moved, *misfits)}
    if not moved and len(misfits) < FEW:
        wrong = set()  # two files that resemble each other by chance prove nothing
    verdict, reason = _verdict(len(names), len(same), len(wrong), fits_own, len(others))
    return PairCheck(
        verdict=verdict,
        reason=reason,
        shared=len(names) if shared is None else shared,
        compared=len(names),
        identical=tuple(same),
        moved=tuple(moved),
        misfits=misfits,
        duration_ratio_median=median,
        duration_mismatch=float(((off > 0.05 * median) & (off * lengths > 0.05)).mean()),
        rate_ratio=_rate_ratio(ratio),
        own_best=fits_own,
        other_best=len(misfits) / len(names),
        seed=seed,
    )


def rate_suspicion(
    rows: Sequence[Utterance], *, limit: float = 5.5, sample: int = 500, seed: int = 0
) -> SpeechRate | None:
    """How fast the corpus is spoken, if that is faster than people speak; else None.

    Read English has about 2.7 words a second; the fastest speakers stay under 5. A corpus above
    ``limit`` is played too fast: its samples are called by another rate than they have. Without
    transcripts, or with under 200 words of them, there is nothing to say, and nothing is said.

    Args:
        rows: Utterances; those with a text count.
        limit: Words a second.
        sample: At most so many utterances are looked at, drawn with ``seed``.
        seed: Of the draw.
    """
    spoken = [row for row in rows if row.text and row.text.strip()]
    order = np.random.default_rng(seed).permutation(len(spoken))[:sample].tolist()
    chosen = [spoken[i] for i in sorted(order)]
    words = sum(len(str(row.text).split()) for row in chosen)
    if words < 200:
        return None
    seconds = sum(audio_seconds(row) for row in chosen)
    if words <= limit * seconds:
        return None
    return SpeechRate(words, seconds, words / seconds, len(chosen), limit)


def _lost(heard: Mapping[str, Sound], known: Mapping[str, Sound]) -> list[str]:
    """Utterances that fit another original of the sample better than their own."""
    names = list(heard)
    after, before = (np.stack([side[n].envelope for n in names]) for side in (heard, known))
    likeness = after @ before.T
    own = likeness.diagonal()
    return [n for n, mine, top in zip(names, own, likeness.max(axis=1), strict=True) if mine < top]


def _candidates(
    lost: Sequence[str],
    heard: Mapping[str, Sound],
    known: Mapping[str, Sound],
    before: Mapping[str, Utterance],
) -> list[str]:
    """Originals to read besides: for each lost utterance in turn the nearest in length."""
    unread = [name for name in before if name not in known]
    if not lost or len(unread) <= EXTRA:
        return unread if lost else []
    scale = float(np.median([heard[name].seconds / known[name].seconds for name in known]))
    lengths = np.array([audio_seconds(before[name]) for name in unread])
    order = [
        np.argsort(np.abs(lengths * scale - heard[name].seconds), kind="stable").tolist()
        for name in lost
    ]
    found: dict[str, None] = {}
    for place in range(len(unread)):
        for places in order:
            if len(found) >= EXTRA:
                return list(found)
            found[unread[places[place]]] = None
    return list(found)


def _same_samples(
    original: Mapping[str, Sound], anonymized: Mapping[str, Sound]
) -> tuple[list[str], list[tuple[str, str]]]:
    owner: dict[bytes, str] = {}
    for name, sound in original.items():
        if sound.digest:
            owner.setdefault(sound.digest, name)
    same, moved = [], []
    for name, sound in anonymized.items():
        if sound.digest and sound.digest == original[name].digest:
            same.append(name)
        elif sound.digest in owner:
            moved.append((name, owner[sound.digest]))
    return same, moved


def _fit(
    likeness: NDArray[np.float64], own: NDArray[np.intp], digests: Sequence[bytes]
) -> tuple[float, list[tuple[int, int]]]:
    """Share of rows that fit their own column best, and rows that clearly fit another one.

    Clearly means: a correlation of 0.7 or more, far above that with the own original and with every
    third one, and no other row fits that original as well. Short utterances of one word resemble
    each other, whoever speaks: such a fit is not clear.
    """
    rows = np.arange(len(likeness))
    mine = likeness[rows, own]
    rest = likeness.copy()
    rest[rows, own] = -1.0
    # An original that is there twice is one sound: its second copy is no rival.
    first: dict[bytes, int] = {}
    copies = [i for i, digest in enumerate(digests) if digest and first.setdefault(digest, i) != i]
    rest[:, copies] = -1.0
    best = rest.argmax(axis=1)
    top = rest[rows, best]
    rest[rows, best] = -1.0
    z_top, z_next = (np.arctanh(np.clip(v, -0.9999, 0.9999)) for v in (top, rest.max(axis=1)))
    mutual = likeness[:, best].argmax(axis=0) == rows
    clear = (top >= FITS) & (top > mine + ABOVE_OWN) & (z_top > z_next + CLEAR) & mutual
    misfits = [(int(i), int(best[i])) for i in np.flatnonzero(clear)]
    return float((mine > top).mean()), misfits


def _rate_ratio(ratio: NDArray[np.float64]) -> float | None:
    """The ratio of two common sample rates by which 19 of 20 lengths changed, to 1 %."""
    for value in sorted({a / b for a in RATES for b in RATES if a != b}):
        if len(ratio) >= 3 and (np.abs(ratio / value - 1) < 0.01).mean() >= 0.95:
            return value
    return None


def _verdict(compared: int, same: int, wrong: int, fits_own: float, others: int) -> tuple[str, str]:
    if 2 * same >= compared:
        return "identical", f"{same} of {compared} files hold the samples of their originals"
    if 4 * wrong >= compared:
        return "permuted", f"{wrong} of {compared} files fit the original of another id"
    known = round(fits_own * compared)
    said = f"the loudness of {known} of {compared} files fits their own original best"
    if fits_own >= max(0.5, FEW / others):  # among few originals many fit best by chance
        return "paired", said
    return "unknown", said
