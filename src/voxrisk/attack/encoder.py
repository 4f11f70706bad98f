"""What a speaker encoder is, and what speech it takes; who loads one is :mod:`encoders`."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError

SHORTEST = 0.1  # seconds: ECAPA mirrors 4 frames of 10 ms at each end
LONGEST = 600.0  # seconds: beyond it the activations of one utterance no longer fit a usual memory
SILENCE = 1e-5  # standard deviation; a third of the smallest step of 16-bit audio
CHECKPOINT = "embedding_model.ckpt"
ADAPTER = "adapter.npz"
CENTRE = "centre.npy"  # mean training vector of an attacker, subtracted from every vector


class Encoder(Protocol):
    """Waveforms in, one vector for each out.

    Attributes:
        name: What the user called it.
        identity: Hash of the weights: the same identity gives the same vectors.
        dimension: Length of a vector.
    """

    name: str
    identity: str
    dimension: int

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in the same order.

        Raises:
            InputError: If a waveform is silent, not finite, too short or too long.
        """
        ...


class Reader(Encoder, Protocol):
    """An encoder that hears speech beside its text."""

    reads: bool

    def embed(
        self, waveforms: Sequence[NDArray[np.float32]], texts: Sequence[str] = ()
    ) -> NDArray[np.float32]:
        """As :meth:`Encoder.embed`, with the words of each waveform."""
        ...


def reads(encoder: Encoder) -> TypeGuard[Reader]:
    """Whether an encoder also wants the words."""
    return bool(getattr(encoder, "reads", False))


def check_speech(waveform: NDArray[np.float32]) -> None:
    """Refuse what no speaker can be recognised from.

    Raises:
        InputError: With the reason; the caller knows the utterance and adds its name.
    """
    if waveform.ndim != 1:
        raise InputError(f"not one channel of samples but an array of shape {waveform.shape}")
    seconds = len(waveform) / RATE
    if seconds < SHORTEST:
        raise InputError(
            f"{1000 * seconds:.0f} ms of speech; an encoder needs at least {1000 * SHORTEST:.0f} ms"
        )
    if seconds > LONGEST:
        raise InputError(f"{seconds:.0f} s long; cut it into segments of at most {LONGEST:.0f} s")
    if not np.isfinite(waveform).all():
        raise InputError("the samples are not all finite")
    if float(waveform.std()) < SILENCE:
        raise InputError("the recording is silent")


def check_all(waveforms: Sequence[NDArray[np.float32]]) -> None:
    """Check each waveform; the error says which one is wrong."""
    for i, waveform in enumerate(waveforms):
        try:
            check_speech(waveform)
        except InputError as error:
            raise InputError(f"waveform {i}: {error}") from None


def file_identity(path: Path) -> str:
    """SHA-256 of a file of weights."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
