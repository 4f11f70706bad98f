"""kNN-VC: replace each frame of the source by the mean of the k nearest frames of a target speaker.

Nearest is by cosine between content features; what is averaged and resynthesised are the target's
own frames. Encoder and vocoder are a ``Part`` (see :mod:`voxrisk.protect.parts`), so that the same
matching serves WavLM + HiFi-GAN, Whisper + WORLD or HiFi-GAN, and plain cepstra + WORLD.

Source: M. Baas et al., "Voice conversion with just nearest neighbors", Interspeech 2023.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.protect.nearest import nearest
from voxrisk.protect.world import convert_pitch

Array: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Frames:
    """One utterance (or all speech of a speaker) as frames.

    Attributes:
        content: What is said, for matching ``(t, d)``.
        values: What the vocoder turns into sound ``(t, m)``.
        f0: Hertz ``(t,)``, 0 where unvoiced.
    """

    content: Array
    values: Array
    f0: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """An encoder and the vocoder that belongs to it.

    Attributes:
        name: As in the options of ``knn``.
        encode: Samples at 16 kHz to frames.
        vocode: ``vocode(values, f0, length)`` to ``length`` samples at 16 kHz.
        rate: Frames per second.
        k: How many nearest frames are averaged unless the user says; 4 in kNN-VC, whose frames are
            20 ms apart, and more where frames are closer, since neighbours in time look alike.
        centre: Whether the speaker's mean is taken out of the content before frames are compared;
            kNN-VC compares the features as they are.
        pitch_weight: Weight of pitch and voicing beside the content when frames are compared; 0
            where the content features already carry them.
        kept: Columns of the values that stay those of the source (loudness, breathiness): they
            belong together with its pauses and its voicing.
        encode_target: As ``encode``, for speech of a target speaker, whose kept columns are never
            used; None where that saves nothing.
    """

    name: str
    encode: Callable[[Array], Frames]
    vocode: Callable[[Array, NDArray[np.float64], int], Array]
    rate: float
    k: int = 4
    centre: bool = True
    pitch_weight: float = 0.0
    kept: tuple[int, ...] = ()
    encode_target: Callable[[Array], Frames] | None = None

    def target_frames(self, utterances: Sequence[Array]) -> list[Frames]:
        """Frames of a target speaker, utterance by utterance."""
        encode = self.encode_target or self.encode
        return [encode(samples) for samples in utterances]


@dataclass(frozen=True, slots=True)
class Voice:
    """What ``knn`` knows of a target speaker.

    Attributes:
        keys: Unit vectors for matching ``(n, d)``.
        values: Frames to synthesise from ``(n, m)``.
        log_f0: Mean and spread of log F0.
    """

    keys: Array
    values: Array
    log_f0: tuple[float, float]


def pitch_statistics(f0: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and spread of log F0; a common voice (150 Hz, 0.2) where almost nothing is voiced."""
    voiced = np.log(f0[f0 > 0])
    if len(voiced) < 20:
        return (float(np.log(150.0)), 0.2)
    return (float(voiced.mean()), float(max(voiced.std(), 0.02)))


def keys(frames: Frames, part: Part) -> Array:
    """Unit vectors for matching: content, freed of the speaker's mean and with pitch where wanted.

    Taking the mean out makes frames of different speakers comparable. Pitch enters relative to the
    speaker's own mean and spread, so that a high syllable finds a high one.
    """
    content = _unit_frames(
        frames.content - frames.content.mean(axis=0) if part.centre else frames.content
    )
    if part.pitch_weight:
        mean, spread = pitch_statistics(frames.f0)
        voiced = frames.f0 > 0
        height = np.zeros(len(frames.f0))
        height[voiced] = np.clip((np.log(frames.f0[voiced]) - mean) / spread, -2, 2) / 2
        extra = np.stack([height, np.where(voiced, 0.5, -0.5)], axis=1) * part.pitch_weight
        content = _unit_frames(np.hstack([content, extra]))
    return content.astype(np.float32)


def _unit_frames(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Frames ``(n, d)`` of length one, in their own precision; a silent one stays near zero."""
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    unit: NDArray[np.floating] = vectors / norms
    return unit


def join(frames: Sequence[Frames]) -> Frames:
    """All frames of one speaker, one utterance after another."""
    return Frames(
        np.concatenate([f.content for f in frames]),
        np.concatenate([f.values for f in frames]),
        np.concatenate([f.f0 for f in frames]),
    )


def learn(utterances: Sequence[Array], part: Part) -> Voice:
    """The voice of a target speaker from some of their utterances at 16 kHz."""
    frames = join(part.target_frames(utterances))
    return Voice(keys(frames, part), frames.values, pitch_statistics(frames.f0))


def match(source: Array, voice: Voice, k: int) -> Array:
    """The mean of the ``k`` nearest target frames for each source frame ``(t, m)``."""
    mean: Array = voice.values[nearest(source, voice.keys, k)].mean(axis=1)
    return mean


def knn(samples: Array, voices: Sequence[Voice], part: Part, *, k: int | None = None) -> Array:
    """Convert ``samples (n,)`` at 16 kHz to a target voice; same length.

    With several voices each gives its own nearest frames, and their mean is a pseudo-speaker that
    no single voice, and no likeness to the source, decides.
    """
    source = part.encode(samples)
    own = keys(source, part)
    found = [match(own, voice, part.k if k is None else k) for voice in voices]
    values: Array = np.stack(found).mean(axis=0)
    values[:, part.kept] = source.values[:, part.kept]
    f0 = convert_pitch(source.f0, pitch_statistics(source.f0), _mean_pitch(voices))
    return part.vocode(values, f0, len(samples))


def _mean_pitch(voices: Sequence[Voice]) -> tuple[float, float]:
    means, spreads = zip(*(voice.log_f0 for voice in voices), strict=True)
    return (float(np.mean(means)), float(np.mean(spreads)))
