"""McAdams anonymization (VoicePrivacy baseline B2): move the formants by bending the pole angles.

Linear prediction splits each short frame into a residual and an all-pole filter. The angle φ of
each complex pole (its frequency in radians) becomes φ^α; the residual stays. α < 1 pulls formants
towards 1 rad (2.5 kHz at 16 kHz), α > 1 pushes them away from it. No training, no target speaker.

Source: J. Patino et al., "Speaker anonymisation using the McAdams coefficient", Interspeech 2021.
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE

BLOCK = 4096  # frames worked on at once: about 40 s of speech, so that memory stays small


def mcadams(
    samples: NDArray[np.float32],
    *,
    alpha: float = 0.8,
    rate: int = RATE,
    order: int = 20,
    window: float = 0.020,
) -> NDArray[np.float32]:
    """Bend the pole angles of ``samples (n,)`` with exponent ``alpha``; same length, same RMS.

    Frames overlap by half under a square-root Hann window at analysis and synthesis. Both windows
    multiply to a sum of exactly one and fade to zero at each frame border, so that α = 1 gives the
    input back and no α can click.

    Raises:
        ValueError: If ``alpha`` is not positive.

    >>> tone = np.sin(np.arange(3200) * 0.3).astype(np.float32)
    >>> bool(np.abs(mcadams(tone, alpha=1.0) - tone).max() < 1e-4)
    True
    """
    if not alpha > 0:
        raise ValueError(f"alpha is {alpha}; the exponent of the pole angles must be positive")
    half = round(window * rate / 2)
    length = 2 * half
    n_frames = -(-len(samples) // half) + 1
    padded = np.zeros((n_frames + 1) * half)
    padded[half : half + len(samples)] = samples
    fade = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length))
    frames = np.lib.stride_tricks.sliding_window_view(padded, length)[::half]
    out = np.zeros_like(padded)
    for start in range(0, n_frames, BLOCK):
        bent = _bend(frames[start : start + BLOCK] * fade, alpha, order) * fade
        stop = start + len(bent)
        out[start * half : stop * half] += bent[:, :half].ravel()
        out[(start + 1) * half : (stop + 1) * half] += bent[:, half:].ravel()
    out = out[half : half + len(samples)]
    power = float(np.sum(out**2))
    if power > 0:
        out *= np.sqrt(float(np.sum(samples.astype(np.float64) ** 2)) / power)
    return out.astype(np.float32)


def _bend(frames: NDArray[np.float64], alpha: float, order: int) -> NDArray[np.float64]:
    """Filter each frame ``(f, n)`` by its own inverse filter, then by the one with bent poles."""
    spoken = np.sum(frames**2, axis=1) > 1e-12
    out = frames.copy()
    if not spoken.any():
        return out
    frames = frames[spoken]
    lpc = _linear_prediction(frames, order)
    companion = np.zeros((len(lpc), order, order))
    companion[:, 0] = -lpc[:, 1:]
    companion[:, np.arange(1, order), np.arange(order - 1)] = 1
    poles = np.linalg.eigvals(companion)
    angle = np.angle(poles)
    bent = np.sign(angle) * np.minimum(np.abs(angle) ** alpha, np.pi)
    is_complex = np.abs(poles.imag) > 1e-9  # a real pole has no frequency to move
    poles = np.where(is_complex, np.abs(poles) * np.exp(1j * bent), poles)
    polynomial = np.zeros((len(poles), order + 1), dtype=complex)
    polynomial[:, 0] = 1
    for k in range(order):
        polynomial[:, 1 : k + 2] -= poles[:, k, None] * polynomial[:, : k + 1]
    out[spoken] = _all_pole(_inverse(frames, lpc), polynomial.real)
    return out


def _linear_prediction(frames: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Autocorrelation method for all frames at once: ``(f, order + 1)``, first column 1."""
    size = 1 << (2 * frames.shape[1] - 1).bit_length()
    power = np.abs(np.fft.rfft(frames, size)) ** 2
    r = np.fft.irfft(power, size)[:, : order + 1]
    r[:, 0] *= 1 + 1e-9  # keeps a pure tone (a singular autocorrelation) solvable
    lpc = np.zeros_like(r)
    lpc[:, 0] = 1
    error = r[:, 0].copy()
    for k in range(1, order + 1):  # Levinson-Durbin, the same step in every frame
        reflection = -np.sum(lpc[:, :k] * r[:, k:0:-1], axis=1) / error
        lpc[:, 1 : k + 1] += reflection[:, None] * lpc[:, k - 1 :: -1][:, :k]
        error *= np.maximum(1 - reflection**2, 1e-12)
    return lpc


def _inverse(frames: NDArray[np.float64], lpc: NDArray[np.float64]) -> NDArray[np.float64]:
    residual = frames.copy()
    for k in range(1, lpc.shape[1]):
        residual[:, k:] += lpc[:, k, None] * frames[:, :-k]
    return residual


def _all_pole(residual: NDArray[np.float64], lpc: NDArray[np.float64]) -> NDArray[np.float64]:
    """The recursive filter 1 / A(z) of every frame, sample by sample for all frames together."""
    order = lpc.shape[1] - 1
    past = np.zeros((residual.shape[1] + order, len(residual)))
    reverse = np.ascontiguousarray(lpc[:, :0:-1].T)
    for t in range(residual.shape[1]):
        past[t + order] = residual[:, t] - np.einsum("kf,kf->f", past[t : t + order], reverse)
    return past[order:].T
