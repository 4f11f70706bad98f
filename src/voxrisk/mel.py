"""Mel spectrograms as two trained models expect them: Whisper's encoder and HiFi-GAN's vocoder."""

import functools

import numpy as np
from numpy.typing import NDArray

HIFIGAN_RATE, HIFIGAN_FFT, HIFIGAN_HOP = 22_050, 1024, 256
WHISPER_RATE, WHISPER_FFT, WHISPER_HOP = 16_000, 400, 160


@functools.lru_cache(maxsize=8)
def mel_filters(rate: int, n_fft: int, n_mels: int = 80, top: float = 8000) -> NDArray[np.float64]:
    """Triangular filters ``(n_mels, n_fft // 2 + 1)`` of unit area, on Slaney's mel scale.

    The scale is linear below 1 kHz (15 mel) and logarithmic above (27 mel for a factor of 6.4).
    """
    high = 15 + 27 * np.log(top / 1000) / np.log(6.4)
    mel = np.linspace(0, high, n_mels + 2)
    hertz = np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))
    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    rise = (bins - hertz[:-2, None]) / (hertz[1:-1] - hertz[:-2])[:, None]
    fall = (hertz[2:, None] - bins) / (hertz[2:] - hertz[1:-1])[:, None]
    area = 2 / (hertz[2:] - hertz[:-2])
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rise, fall)) * area[:, None]
    return filters


def _spectra(
    samples: NDArray[np.float32], n_fft: int, hop: int, pad: int
) -> NDArray[np.complex128]:
    wide = samples.astype(np.float64)
    padded = np.pad(wide, pad, mode="reflect") if len(wide) > pad else np.pad(wide, pad)
    padded = np.pad(padded, (0, max(0, n_fft - len(padded))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
    return np.fft.rfft(frames * window)


def hifigan_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log mel magnitudes ``(t, 80)`` of samples at 22.05 kHz, a frame each 256 samples."""
    pad = (HIFIGAN_FFT - HIFIGAN_HOP) // 2
    magnitude = np.sqrt(np.abs(_spectra(samples, HIFIGAN_FFT, HIFIGAN_HOP, pad)) ** 2 + 1e-9)
    mel = magnitude @ mel_filters(HIFIGAN_RATE, HIFIGAN_FFT).T
    return np.log(np.maximum(mel, 1e-5)).astype(np.float32)


def whisper_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Whisper's input ``(t, 80)`` for samples at 16 kHz, a frame each 10 ms."""
    power = np.abs(_spectra(samples, WHISPER_FFT, WHISPER_HOP, WHISPER_FFT // 2)[:-1]) ** 2
    log = np.log10(np.maximum(power @ mel_filters(WHISPER_RATE, WHISPER_FFT).T, 1e-10))
    scaled: NDArray[np.float32] = ((np.maximum(log, log.max() - 8) + 4) / 4).astype(np.float32)
    return scaled
