"""Which slice came next, by what stands at either side of a cut, and by the voice.

Two neighbours were one recording: level, pitch and spectrum go on across the cut, and where
Algorithm 1 leaves the pause between two words in both slices, they even share samples. Each cue
gives a score for every ordered pair of some slices: the higher, the likelier that the second came
right after the first. ``clean`` says that the slices were set apart, faded and levelled
(``voxrisk slice --cut clean``): the attacker knows how they were made and divides the fade away.

The scores of all pairs are one matrix, so these attacks are for a few thousand slices.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE, to_pcm

Array = NDArray[np.float64]
Wave = NDArray[np.float32]
FADE = 0.01  # seconds of the fade of a clean slice, as voxrisk.protect.edges makes it
GAP = 0.02  # seconds between two clean slices at least, as voxrisk.protect.slicing leaves out
ORDER = 32  # of linear prediction
FITTED = int(0.04 * RATE)
COMPARED = int(0.004 * RATE)
EDGE = int(0.05 * RATE)
BAND = int(0.025 * RATE)
BANDS = 24
SHARED = 24  # equal samples in a row that are no chance
PITCH_FRAME, PITCH_HOP = int(0.04 * RATE), int(0.01 * RATE)
PITCH_REACH = int(0.3 * RATE)  # samples beside a cut in which a pitch is looked for
LOWEST, HIGHEST = 60.0, 400.0  # hertz
VOICED = 0.5  # least correlation of a voiced frame with itself one period later
SHORTEST = FITTED + ORDER  # samples; a shorter slice is repeated until it is as long


def by_equal_samples(waves: Sequence[Wave], *, clean: bool = False) -> Array:
    """1 where the first samples of a slice lie inside another one, else 0.

    >>> sound = np.random.default_rng(0).standard_normal(3000).astype(np.float32) / 9
    >>> by_equal_samples([sound[:2000], sound[1500:]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    found = np.zeros((len(waves), len(waves)))
    sounds = [to_pcm(wave) for wave in waves]
    heads: dict[int, list[int]] = {}
    for j, sound in enumerate(sounds):
        if sound.size >= SHARED and np.unique(sound[:SHARED]).size >= 4:
            heads.setdefault(int(_hashes(sound[:SHARED])[0]), []).append(j)
    known = np.array(sorted(heads), np.uint64)
    for i, sound in enumerate(sounds):
        hashes = _hashes(sound)
        if not known.size or not hashes.size:
            continue
        at = np.minimum(np.searchsorted(known, hashes), known.size - 1)
        for place in np.flatnonzero(known[at] == hashes):
            piece = sound[place : place + SHARED]
            for j in heads[int(hashes[place])]:
                found[i, j] = i != j and bool((piece == sounds[j][:SHARED]).all())
    return found


def _hashes(sound: NDArray[np.int16]) -> NDArray[np.uint64]:
    """A number for each run of ``SHARED`` samples; equal runs have equal numbers."""
    values = sound.astype(np.int64).astype(np.uint64)
    total = np.zeros(max(values.size - SHARED + 1, 0), np.uint64)
    for k in range(SHARED):
        total = total * np.uint64(6364136223846793005) + values[k : k + total.size]
    return total


def by_prediction(waves: Sequence[Wave], *, clean: bool = False) -> Array:
    """How little the sound after the cut surprises one who heard what is before it, and back.

    Where slices touch, sample by sample; over a gap the sound is foretold and its place searched.
    """
    sounds = [_long(wave) for wave in waves]
    return _across_a_gap(sounds) if clean else _across_a_seam(sounds)


def _across_a_seam(sounds: Sequence[Array]) -> Array:
    ways = []
    for turn in (1, -1):
        turned = [sound[::turn] for sound in sounds]
        weights = [_predictor(sound[-FITTED:]) for sound in turned]
        tails = np.array([sound[-ORDER:] for sound in turned])
        heads = np.array([sound[:ORDER] for sound in turned])
        ways.append(_unsurprised(tails, heads, weights))
    return np.asarray(ways[0] + ways[1].T)


def _unsurprised(tails: Array, heads: Array, weights: Sequence[Array]) -> Array:
    """For each tail and head, less the logarithm of the share of energy that is not foretold."""
    found = np.empty((len(tails), len(heads)))
    power = (heads**2).sum(axis=1)
    for i, (tail, weight) in enumerate(zip(tails, weights, strict=True)):
        # Sample k of a head is foretold from the last samples of the tail and the k before it.
        known = np.array([weight[: ORDER - k] @ tail[k:] for k in range(ORDER)])
        own = np.zeros((ORDER, ORDER))
        for k in range(1, ORDER):
            own[:k, k] = weight[ORDER - k :]
        error = ((heads @ own + known - heads) ** 2).sum(axis=1)
        found[i] = -np.log((error + 1e-8) / (power + (tail**2).sum() + 1e-8))
    return found


def _across_a_gap(sounds: Sequence[Array]) -> Array:
    opened = [_unfaded(sound) for sound in sounds]
    gap, reach = round(GAP * RATE) + 2 * 15, 60
    ahead = np.array([_foretold(sound, gap + reach + COMPARED) for sound in opened])
    back = np.array([_foretold(sound[::-1], gap + reach + COMPARED) for sound in opened])
    starts = np.array([sound[:COMPARED] for sound in opened])
    ends = np.array([sound[::-1][:COMPARED] for sound in opened])
    best = np.full((len(sounds),) * 2, -np.inf)
    for at in range(max(gap - reach, 0), gap + reach + 1):
        there = slice(at, at + COMPARED)
        fits = _alike(ahead[:, there], starts) + _alike(back[:, there], ends).T
        best = np.maximum(best, fits)
    return best


def _unfaded(sound: Array) -> Array:
    """The samples with their fades divided away, as far as 16 bits let them."""
    edge = round(FADE * RATE)
    rise = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    keep = int(np.argmax(rise > 0.02))
    opened = sound.copy()
    opened[:edge] /= np.maximum(rise, 1e-9)
    opened[-edge:] /= np.maximum(rise[::-1], 1e-9)
    return opened[keep : len(opened) - keep]


def _predictor(past: Array) -> Array:
    """Linear prediction by least squares with a little noise."""
    rows = np.lib.stride_tricks.sliding_window_view(past[:-1], ORDER)
    ridge = 1e-4 * float(np.mean(past**2)) * len(rows) + 1e-12
    gram = rows.T @ rows + ridge * np.eye(ORDER)
    return np.asarray(np.linalg.solve(gram, rows.T @ past[ORDER:]))


def _foretold(sound: Array, count: int) -> Array:
    """How the samples go on, as their last 40 ms say."""
    known = np.concatenate([sound[-FITTED:], np.zeros(count)])
    weights = _predictor(sound[-FITTED:])
    for k in range(count):
        at = min(len(sound), FITTED) + k
        known[at] = np.clip(weights @ known[at - ORDER : at], -1, 1)
    return known[len(known) - count :]


def _alike(ones: Array, others: Array) -> Array:
    """How well each of ``ones (n, t)`` fits each of ``others (m, t)``: 1 is the same."""
    energy = (ones**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None]
    return np.asarray(2 * (ones @ others.T) / (energy + 1e-12))


def by_spectrum(waves: Sequence[Wave], *, clean: bool = False) -> Array:
    """Log power in 24 bands over 25 ms beside the cut; within the fade in the clean cut."""
    skip = round(FADE * RATE) // 2 if clean else 0
    sounds = [_long(wave) for wave in waves]
    ends = [_bands(sound[len(sound) - skip - BAND : len(sound) - skip]) for sound in sounds]
    return _nearness(ends, [_bands(sound[skip : skip + BAND]) for sound in sounds])


def _bands(edge: Array) -> Array:
    power = np.abs(np.fft.rfft(edge * np.hanning(len(edge)))) ** 2
    return np.log([part.mean() + 1e-9 for part in np.array_split(power, BANDS)])


def by_level(waves: Sequence[Wave], *, clean: bool = False) -> Array:
    """Level of 50 ms beside the cut, in decibels."""
    ends = [_level(_long(wave)[-EDGE:]) for wave in waves]
    return _nearness(ends, [_level(_long(wave)[:EDGE]) for wave in waves])


def _level(sound: Array) -> Array:
    return np.array([10 * np.log10(np.mean(sound**2) + 1e-9)])


def by_pitch(waves: Sequence[Wave], *, clean: bool = False) -> Array:
    """Pitch of the last voiced frames of one and the first of another, in octaves.

    A slice without any voiced frame beside the cut stands at the mean of all.
    """
    ends = np.array([_pitch(_long(wave)[-PITCH_REACH:]) for wave in waves])
    starts = np.array([_pitch(_long(wave)[:PITCH_REACH]) for wave in waves])
    both = np.concatenate([ends, starts])
    mean = float(np.nanmean(both)) if np.isfinite(both).any() else 0.0
    return _nearness(
        np.nan_to_num(ends, nan=mean)[:, None], np.nan_to_num(starts, nan=mean)[:, None]
    )


def _pitch(sound: Array) -> float:
    """Median pitch of the voiced frames, log2 of hertz; NaN without any."""
    if len(sound) < PITCH_FRAME:
        return float("nan")
    frames = np.lib.stride_tricks.sliding_window_view(sound, PITCH_FRAME)[::PITCH_HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(frames, 2 * PITCH_FRAME)) ** 2
    own = np.fft.irfft(power)[:, :PITCH_FRAME]
    # A frame holds fewer pairs of samples the farther they are apart.
    own /= np.maximum(own[:, :1], 1e-9) * (1.0 - np.arange(PITCH_FRAME) / PITCH_FRAME)
    low, high = round(RATE / HIGHEST), round(RATE / LOWEST)
    # Two and three periods are as alike as one: the first hill that is nearly the highest counts.
    hills = np.where(own >= 0.9 * own[:, low:high].max(axis=1, keepdims=True), own, -1.0)
    first = low + (hills[:, low:high] > 0).argmax(axis=1)
    lags = np.arange(PITCH_FRAME)
    near = (lags >= first[:, None]) & (lags < 1.25 * first[:, None]) & (lags < high)
    lag = np.where(near, own, -1.0).argmax(axis=1)
    sure = own[np.arange(len(own)), lag] > VOICED
    return float(np.median(np.log2(RATE / lag[sure]))) if sure.any() else float("nan")


def by_voice(vectors: NDArray[np.floating]) -> Array:
    """Cosine of speaker vectors ``(n, d)``, their mean taken off: whoever spoke, speaks on."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    return np.asarray(centred @ centred.T)


def _nearness(ends: Sequence[Array] | Array, starts: Sequence[Array] | Array) -> Array:
    """Less the distance between the end of each and the start of each."""
    one, other = np.asarray(ends), np.asarray(starts)
    square = (one**2).sum(1)[:, None] + (other**2).sum(1)[None] - 2 * one @ other.T
    return np.asarray(-np.sqrt(np.maximum(square, 0.0)))


def _long(wave: Wave) -> Array:
    """A slice as 64-bit samples, repeated where it is too short for the longest look at it."""
    sound = wave.astype(np.float64)
    return np.resize(sound, SHORTEST) if sound.size < SHORTEST else sound


CUES: dict[str, Callable[..., Array]] = {
    "equal samples": by_equal_samples,
    "prediction across the cut": by_prediction,
    "spectrum beside the cut": by_spectrum,
    "level beside the cut": by_level,
    "pitch beside the cut": by_pitch,
}
