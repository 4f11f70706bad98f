"""WORLD: speech as F0, spectral envelope and aperiodicity, and an anonymizer that shifts the two.

``world`` moves the pitch and the spectral envelope of an utterance towards the statistics of a
target speaker: log F0 by mean and spread, the envelope by a frequency warp (vocal tract length) and
then by mean and spread of its cepstrum. Timing stays, and which frames are voiced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError
from voxrisk.vocoder import pyworld

PERIOD = 5.0  # milliseconds between frames
N_FFT = 1024
N_CEPSTRA = 40
WARPS = np.arange(0.80, 1.251, 0.01)


def _world() -> Any:
    return pyworld("protect")


@dataclass(frozen=True, slots=True)
class WorldSpeech:
    """One utterance as WORLD sees it, a frame each 5 ms.

    Attributes:
        f0: Hertz ``(t,)``, 0 where unvoiced.
        cepstra: Mel-cepstrum of the spectral envelope ``(t, 40)``.
        aperiodicity: Coded band aperiodicity ``(t, b)``.
    """

    f0: NDArray[np.float64]
    cepstra: NDArray[np.float64]
    aperiodicity: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What ``world`` must know of a speaker: mean and spread of log F0 and of the cepstrum."""

    log_f0: tuple[float, float]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


def pitch(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """F0 in hertz for each 5 ms ``(t,)``, 0 where unvoiced."""
    vocoder = _world()
    x = _long_enough(samples)
    f0, times = vocoder.dio(x, RATE, frame_period=PERIOD, allowed_range=0.2)
    return np.asarray(vocoder.stonemask(x, f0, times, RATE))


def analyse(samples: NDArray[np.float32]) -> WorldSpeech:
    """Split ``samples (n,)`` at 16 kHz into pitch, envelope and aperiodicity."""
    vocoder = _world()
    speech = analyse_target(samples)
    times = np.arange(len(speech.f0)) * PERIOD / 1000
    noise = vocoder.d4c(_long_enough(samples), speech.f0, times, RATE, fft_size=N_FFT)
    return replace(speech, aperiodicity=vocoder.code_aperiodicity(noise, RATE))


def analyse_target(samples: NDArray[np.float32]) -> WorldSpeech:
    """The same without aperiodicity, zeros in its place: half of the work.

    A protected voice keeps the breath of its source, so that of a target is never used.
    """
    vocoder = _world()
    f0 = pitch(samples)
    times = np.arange(len(f0)) * PERIOD / 1000
    envelope = vocoder.cheaptrick(_long_enough(samples), f0, times, RATE, fft_size=N_FFT)
    cepstra = vocoder.code_spectral_envelope(envelope, RATE, N_CEPSTRA)
    return WorldSpeech(f0, cepstra, np.zeros((len(f0), vocoder.get_num_aperiodicities(RATE))))


def synthesise(speech: WorldSpeech, length: int) -> NDArray[np.float32]:
    """Turn frames back into exactly ``length`` samples at 16 kHz."""
    vocoder = _world()
    envelope = vocoder.decode_spectral_envelope(np.ascontiguousarray(speech.cepstra), RATE, N_FFT)
    noise = vocoder.decode_aperiodicity(np.ascontiguousarray(speech.aperiodicity), RATE, N_FFT)
    samples = vocoder.synthesize(np.ascontiguousarray(speech.f0), envelope, noise, RATE, PERIOD)
    return fit_length(samples.astype(np.float32), length)


def fit_length(samples: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Cut or pad with silence to ``length``; a vocoder rounds up to whole frames."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


def statistics(speech: Sequence[WorldSpeech]) -> Statistics | None:
    """Mean and spread over the voiced frames of one speaker; None if almost nothing is voiced."""
    f0 = np.concatenate([item.f0 for item in speech])
    cepstra = np.concatenate([item.cepstra for item in speech])
    voiced = f0 > 0
    if voiced.sum() < 20:
        return None
    log_f0 = np.log(f0[voiced])
    frames = cepstra[voiced]
    pitch_statistics = (float(log_f0.mean()), float(log_f0.std()))
    return Statistics(pitch_statistics, frames.mean(axis=0), frames.std(axis=0))


def target_statistics(utterances: Sequence[NDArray[np.float32]]) -> Statistics:
    """The statistics of a target speaker, from some of their utterances at 16 kHz."""
    found = statistics([analyse_target(samples) for samples in utterances])
    if found is None:
        raise InputError("the target speaker has almost no voiced speech; choose another target")
    return found


def convert_pitch(
    f0: NDArray[np.float64],
    source: tuple[float, float],
    target: tuple[float, float],
    *,
    strength: float = 1.0,
) -> NDArray[np.float64]:
    """Move log F0 from one mean and spread to another; unvoiced frames stay unvoiced."""
    out = np.zeros_like(f0)
    voiced = f0 > 0
    log_f0 = np.log(f0[voiced])
    moved = (log_f0 - source[0]) / max(source[1], 0.01) * target[1] + target[0]
    # 55–700 Hz: what human voices do; an outlier of the pitch tracker must not become a whistle.
    out[voiced] = np.exp(np.clip(log_f0 + strength * (moved - log_f0), np.log(55), np.log(700)))
    return out


def world(
    samples: NDArray[np.float32], target: Statistics, *, strength: float = 1.0
) -> NDArray[np.float32]:
    """Move pitch and envelope of ``samples (n,)`` at 16 kHz towards ``target``; same length.

    ``strength`` 0 is copy synthesis, 1 the full way. Speech without voice is only resynthesised.
    """
    speech = analyse(samples)
    source = statistics([speech])
    if source is None:
        return synthesise(speech, len(samples))
    ratio = 1 + strength * (_warp_ratio(source.mean, target.mean) - 1)
    cepstra = _warp(speech.cepstra, ratio)
    warped = statistics([WorldSpeech(speech.f0, cepstra, speech.aperiodicity)]) or source
    # The spread of short utterances is badly known: half way between no scaling and full scaling.
    scale = np.clip(np.sqrt(target.spread / np.maximum(warped.spread, 1e-6)), 0.7, 1.4)
    moved = (cepstra - warped.mean) * scale + target.mean
    moved[:, 0] = cepstra[:, 0]  # loudness is not the target's business
    f0 = convert_pitch(speech.f0, source.log_f0, target.log_f0, strength=strength)
    mixed = cepstra + strength * (moved - cepstra)
    return match_level(
        synthesise(WorldSpeech(f0, mixed, speech.aperiodicity), len(samples)), samples
    )


def match_level(samples: NDArray[np.float32], like: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale to the RMS of ``like``; silence stays silence."""
    power = float(np.mean(samples.astype(np.float64) ** 2))
    wanted = float(np.mean(like.astype(np.float64) ** 2))
    return samples * np.float32(np.sqrt(wanted / power)) if power > 0 else samples


def _long_enough(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """WORLD reads past the end of anything shorter than about 0.1 s, so pad to that."""
    x = np.asarray(samples, dtype=np.float64)
    return np.pad(x, (0, max(0, RATE // 10 - len(x))))


def _log_envelope(cepstra: NDArray[np.float64]) -> NDArray[np.float64]:
    frames = np.ascontiguousarray(np.atleast_2d(cepstra))
    envelope: NDArray[np.float64] = _world().decode_spectral_envelope(frames, RATE, N_FFT)
    return np.log(envelope)


def _warp(cepstra: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    """Stretch the frequency axis; ``ratio`` > 1 moves formants up like a shorter vocal tract."""
    envelope = _log_envelope(cepstra)
    bins = envelope.shape[1]
    position = np.minimum(np.arange(bins) / ratio, bins - 1)
    low = np.minimum(position.astype(int), bins - 2)
    part = position - low
    stretched = envelope[:, low] * (1 - part) + envelope[:, low + 1] * part
    envelope = np.ascontiguousarray(np.exp(stretched))
    return np.asarray(_world().code_spectral_envelope(envelope, RATE, N_CEPSTRA))


def _warp_ratio(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """The warp that brings the mean envelope of the source closest to the target's, up to 5 kHz."""
    here, there = _log_envelope(source)[0], _log_envelope(target)[0]
    band = np.arange(8, N_FFT * 5000 // RATE)
    wanted = np.gradient(there)[band]
    slope = np.gradient(here)
    fits = [
        float(np.corrcoef(np.interp(band / ratio, np.arange(len(slope)), slope), wanted)[0, 1])
        for ratio in WARPS
    ]
    return float(WARPS[int(np.argmax(fits))])
