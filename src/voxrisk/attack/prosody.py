"""Who speaks, from how it is said: pauses, rhythm, loudness and melody, and nothing of the timbre.

Voice conversion gives an utterance another timbre and keeps its timing; many anonymizers keep its
melody and its loudness too. Each row of :data:`PROSODY` is one such number. It is brought to about
±1 by a centre and a spread typical of read English, so that no unit drowns the others; attackers
with training speech find better weights (:mod:`voxrisk.attack.maps`). Of a whole corpus:
``embed_corpus(rows, "prosody", "prosody.npz")``.

The level is that of frames of 25 ms every 10 ms, in decibels. A frame is speech if it lies above
the middle between the quiet (10 %) and the loud (95 %) frames of the utterance, at most 25 dB below
the loud ones. How loud the recording is, its floor and the silence around the speech tell how it
was recorded and cut, not how somebody speaks: they are left to :mod:`voxrisk.attack.longterm`. A
syllable is a peak of the smoothed level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_all
from voxrisk.corpus.audio import RATE
from voxrisk.vocoder import track_pitch

Floats: TypeAlias = NDArray[np.float64]

HOP, WINDOW = 160, 400
FRAME = HOP / RATE  # seconds
PAUSE = 0.12  # seconds of silence that count as a pause
VERSION = 2  # raised when the numbers change


@dataclass(frozen=True, slots=True)
class Measure:
    """One number: what it says, and its centre and spread over utterances of read English."""

    meaning: str
    centre: float
    spread: float


# In the order of the vector. Durations and rates are natural logarithms, pitch is in octaves.
PROSODY = {
    "pause_share": Measure("share of frames in pauses", 0.15, 0.14),
    "pause_rate": Measure("pauses a second", 0.48, 0.39),
    "pause_length": Measure("log of the mean pause in seconds", -1.3, 0.48),
    "pause_spread": Measure("deviation of the log of pauses", 0.53, 0.26),
    "run_length": Measure("log of the mean stretch of speech between pauses", 0.12, 0.56),
    "short_gaps": Measure("gaps shorter than a pause, a second", 1.1, 0.76),
    "syllable_rate": Measure("log of syllables a second of speech", 1.5, 0.2),
    "syllable_spread": Measure("deviation of the log of syllable lengths", 0.38, 0.09),
    "rhythm": Measure("normalised pairwise variability of syllable lengths", 0.45, 0.14),
    "final_length": Measure("log of the last against the mean syllable of a stretch", -0.06, 0.31),
    "loudness_spread": Measure("deviation of the level within speech, dB", 6.0, 0.96),
    "loudness_crest": Measure("level of the loudest 5 % above the median, dB", 7.2, 2.0),
    "loudness_skew": Measure("skewness of the level within speech", -0.46, 0.35),
    "loudness_drift": Measure("change of the level over the utterance, dB", -3.6, 4.0),
    "loudness_step": Measure("mean change of the level from frame to frame, dB", 1.6, 0.37),
    "beat_2": Measure("log share of the level's movement at 1 to 3 Hz", -0.94, 0.42),
    "beat_4": Measure("log share of the level's movement at 3 to 6 Hz", -1.6, 0.72),
    "beat_8": Measure("log share of the level's movement at 6 to 12 Hz", -2.6, 0.73),
    "attack_decay": Measure("steepest rise against steepest fall of the level, log", 0.26, 0.22),
    "voiced_share": Measure("share of speech frames that are voiced", 0.79, 0.11),
    "voiced_length": Measure("log of the mean voiced stretch in seconds", -1.6, 0.37),
    "pitch": Measure("median pitch in octaves above 100 Hz", 0.88, 0.43),
    "pitch_spread": Measure("80 % range of pitch in octaves", 0.58, 0.29),
    "pitch_high": Measure("highest 10 % above the median, octaves", 0.28, 0.15),
    "pitch_skew": Measure("skewness of the pitch", -0.15, 1.2),
    "pitch_drift": Measure("change of pitch over the utterance, octaves", -0.18, 0.25),
    "pitch_speed": Measure("log of the mean movement in octaves a second", 1.3, 0.29),
    "pitch_rises": Measure("share of voiced frames in which the pitch rises", 0.44, 0.05),
    "pitch_end": Measure("last voiced 0.2 s below the median, octaves", -0.14, 0.26),
    "pitch_loudness": Measure("correlation of pitch and level", 0.29, 0.33),
    "jitter": Measure("log of the bend of pitch from frame to frame, octaves", -3.9, 0.44),
}


class ProsodyEncoder:
    """See :class:`voxrisk.attack.Encoder`; ``names`` says what each value is."""

    names = tuple(PROSODY)

    def __init__(self, name: str = "prosody") -> None:
        self.name = name
        self.identity = f"{name} {VERSION}"
        # One value more, always 1: vectors are compared by direction, and beside a constant the
        # direction keeps how far an utterance is from the ordinary.
        self.dimension = len(PROSODY) + 1

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        return np.stack([prosody(wave) for wave in waveforms]).astype(np.float32)


def prosody(samples: NDArray[np.float32]) -> Floats:
    """The numbers of :data:`PROSODY` of ``samples (n,)`` at 16 kHz, scaled, and a constant 1.

    What an utterance does not have (no pause, no voiced frame) takes the centre of its row: it
    says nothing, and so it moves the vector in no direction. Values beyond 4 spreads are cut.
    """
    raw = {**_timing_and_level(level := levels(samples)), **_melody(samples, level)}
    scaled = [
        np.clip((raw.get(name, row.centre) - row.centre) / row.spread, -4.0, 4.0)
        for name, row in PROSODY.items()
    ]
    return np.array([*scaled, 1.0])


def pitch_alone(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """How high a voice is and how far it moves, ``(n, 2)``, from vectors of this encoder.

    Beside thirty other numbers and few speakers to learn from, the one that tells women from men
    best is hard to find; alone it is not.
    """
    columns = [list(PROSODY).index(name) for name in ("pitch", "pitch_spread")]
    return vectors[:, columns]


def levels(samples: NDArray[np.float32]) -> Floats:
    """Level in decibels of frames of 25 ms every 10 ms, ``(t,)``; digital silence is -100 dB."""
    padded = np.pad(samples.astype(np.float64), (WINDOW // 2, WINDOW))
    power = np.concatenate([[0.0], np.cumsum(padded**2)])
    start = np.arange(0, len(samples), HOP)
    return np.asarray(10.0 * np.log10(np.maximum(power[start + WINDOW] - power[start], 0) / WINDOW
                                      + 1e-10))  # fmt: skip


def speech_frames(level: Floats) -> NDArray[np.bool_]:
    """Which frames ``(t,)`` are speech: see the module. Holes of one or two frames are closed."""
    quiet, loud = np.quantile(level, [0.10, 0.95])
    spoken = level > max(0.5 * (quiet + loud), loud - 25.0)
    if not spoken.any():
        return np.ones(level.size, dtype=bool)
    for begin, end in _runs(~spoken):
        if end - begin <= 2:
            spoken[begin:end] = True
    return np.asarray(spoken)


def _timing_and_level(level: Floats) -> dict[str, float]:
    spoken = speech_frames(level)
    first, last = np.flatnonzero(spoken)[[0, -1]]
    inner = spoken[first : last + 1]
    gaps = np.array([end - begin for begin, end in _runs(~inner)]) * FRAME
    pauses = gaps[gaps >= PAUSE]
    seconds = inner.size * FRAME
    stretches = _stretches(spoken)
    loud = level[spoken]
    found = {
        "pause_share": float(pauses.sum()) / seconds,
        "pause_rate": pauses.size / seconds,
        "run_length": float(np.log(np.mean([(e - b) * FRAME for b, e in stretches]))),
        "short_gaps": (gaps.size - pauses.size) / seconds,
        "loudness_spread": float(loud.std()),
        "loudness_crest": float(np.quantile(loud, 0.95) - np.median(loud)),
        "loudness_step": float(np.abs(np.diff(level)[spoken[1:]]).mean()) if level.size > 1 else 0,
    }
    if pauses.size:
        found["pause_length"] = float(np.log(pauses).mean())
    if pauses.size > 1:
        found["pause_spread"] = float(np.log(pauses).std())
    if loud.std() > 0:
        found["loudness_skew"] = _skewness(loud)
        found["loudness_drift"] = _drift(np.flatnonzero(spoken).astype(float), loud)
    return found | _rhythm(level, stretches) | _beat(level[first : last + 1])


def _rhythm(level: Floats, stretches: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Syllables: peaks of the level smoothed over 70 ms, 80 ms apart and 1 dB high."""
    from scipy.signal import find_peaks

    smooth = np.convolve(np.pad(level, 3, mode="edge"), np.hanning(9)[1:-1] / 4.0, mode="valid")
    peaks, _ = find_peaks(smooth, distance=8, prominence=1.0)
    steps, ends, spoken, count = [], [], 0.0, 0
    for begin, end in stretches:
        mine = peaks[(peaks >= begin) & (peaks < end)]
        spoken += (end - begin) * FRAME
        count += mine.size
        if mine.size > 2:
            own = np.diff(mine) * FRAME
            steps.append(own)
            ends.append(float(np.log(own[-1] / own.mean())))
    found = {"syllable_rate": float(np.log(count / spoken))} if count else {}
    if steps:
        every = np.log(np.concatenate(steps))
        pairs = np.concatenate([np.abs(np.diff(s)) / (0.5 * (s[1:] + s[:-1])) for s in steps])
        found |= {
            "syllable_spread": float(every.std()),
            "rhythm": float(pairs.mean()),
            "final_length": float(np.mean(ends)),
        }
    return found


def _beat(level: Floats) -> dict[str, float]:
    """How fast the level moves: shares of its power at the rates of phrases and syllables."""
    if level.size < 64 or level.std() == 0:
        return {}
    held = np.maximum(level, np.quantile(level, 0.95) - 40.0)
    power = np.abs(np.fft.rfft((held - held.mean()) * np.hanning(held.size))) ** 2
    rate = np.fft.rfftfreq(held.size, FRAME)
    whole = power[(rate > 0.5) & (rate < 25.0)].sum()
    if whole <= 0:
        return {}
    bands = {"beat_2": (1.0, 3.0), "beat_4": (3.0, 6.0), "beat_8": (6.0, 12.0)}
    found = {
        name: float(np.log(power[(rate >= low) & (rate < high)].sum() / whole + 1e-4))
        for name, (low, high) in bands.items()
    }
    slope = np.diff(np.convolve(held, np.ones(5) / 5, mode="valid"))
    rise, fall = np.quantile(slope, 0.98), -np.quantile(slope, 0.02)
    if rise > 0 and fall > 0:
        found["attack_decay"] = float(np.log(rise / fall))
    return found


def _melody(samples: NDArray[np.float32], level: Floats) -> dict[str, float]:
    hertz = track_pitch(samples, extra="attack")
    size = min(hertz.size, level.size)
    hertz, level = hertz[:size], level[:size]
    voiced = hertz > 0
    spoken = speech_frames(level)
    found = {"voiced_share": float((voiced & spoken).sum() / spoken.sum())}
    stretches = [(b, e) for b, e in _runs(voiced) if e - b >= 4]
    if not stretches:
        return found
    found["voiced_length"] = float(np.log(np.mean([(e - b) * FRAME for b, e in stretches])))
    frames = np.concatenate([np.arange(b, e) for b, e in stretches])
    octaves = np.log2(hertz[frames] / 100.0)
    low, middle, high = np.quantile(octaves, [0.1, 0.5, 0.9])
    steps = np.concatenate([np.diff(np.log2(hertz[b:e])) for b, e in stretches])
    bends = np.concatenate([np.diff(np.log2(hertz[b:e]), n=2) for b, e in stretches])
    found |= {
        "pitch": float(middle),
        "pitch_spread": float(high - low),
        "pitch_high": float(high - middle),
        "pitch_speed": float(np.log(np.abs(steps).mean() / FRAME + 1e-3)),
        "pitch_rises": float((steps > 0).mean()),
        "pitch_end": float(octaves[-20:].mean() - middle),
        "jitter": float(np.log(np.median(np.abs(bends)) + 1e-4)),
    }
    if octaves.std() > 0:
        found["pitch_skew"] = _skewness(octaves)
        found["pitch_drift"] = _drift(frames.astype(float), octaves)
        if level[frames].std() > 0:
            found["pitch_loudness"] = float(np.corrcoef(octaves, level[frames])[0, 1])
    return found


def _stretches(spoken: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of speech between pauses, as ``(begin, end)``; shorter gaps belong to them."""
    joined = spoken.copy()
    for begin, end in _runs(~spoken):
        if (end - begin) * FRAME < PAUSE:
            joined[begin:end] = True
    return _runs(joined)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where ``mask (t,)`` is True, as ``(begin, end)``."""
    edge = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edge > 0).tolist(), np.flatnonzero(edge < 0).tolist(),
                    strict=True))  # fmt: skip


def _skewness(values: Floats) -> float:
    return float((((values - values.mean()) / values.std()) ** 3).mean())


def _drift(place: Floats, values: Floats) -> float:
    """Change of a fitted line from the first place to the last."""
    return float(np.polyfit(place, values, 1)[0] * (place[-1] - place[0]))
