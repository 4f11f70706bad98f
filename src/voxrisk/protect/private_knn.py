"""Private kNN-VC (paper 3): also hide how long the phones are and how they vary.

Two leaks of kNN-VC are closed by degrees. Durations: each phone lasts w · predicted + (1 − w) ·
actual. Variation: each phone of the target speaker is reduced to a few candidate frames (k-means),
and source frames become candidates. "7-8" is w = 0.7 with 8 candidates, "3-16" is w = 0.3 with 16.

What differs from the paper: phones come from pocketsphinx instead of a decoder trained on WavLM
features, and the predicted duration of a phone is the target speaker's mean duration of it instead
of the output of a network trained for text-to-speech. Because this recogniser errs more often, a
source frame becomes the mean of the 4 nearest candidates of all phones, not the nearest one of the
phone that was recognised; and the result is smoothed over 25 ms.

Source: C. Franzreb et al., "Private kNN-VC: Interpretable anonymization of converted speech",
Interspeech 2025.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.protect.knn import (
    Array,
    Frames,
    Part,
    join,
    keys,
    pitch_statistics,
)
from voxrisk.protect.nearest import nearest
from voxrisk.protect.phones import label, phones, runs
from voxrisk.protect.world import convert_pitch
from voxrisk.types import InputError

CONFIGURATIONS = {"7-8": (0.7, 8), "3-16": (0.3, 16)}
AVERAGED = 4  # frames of a cluster make its candidate, and candidates make a frame
SMOOTHED = 0.025  # seconds


@dataclass(frozen=True, slots=True)
class PhoneVoice:
    """A target speaker as candidate frames for each phone.

    Attributes:
        keys: Candidates for matching, by phone ``(c, d)``.
        values: The same candidates for the vocoder, by phone ``(c, m)``.
        durations: Mean duration of each phone in frames.
        log_f0: Mean and spread of log F0.
    """

    keys: dict[str, Array]
    values: dict[str, Array]
    durations: dict[str, float]
    log_f0: tuple[float, float]


def configuration(name: str) -> tuple[float, int]:
    """Weight of the predicted durations and number of candidates: ``"7-8"`` is (0.7, 8)."""
    if name in CONFIGURATIONS:
        return CONFIGURATIONS[name]
    weight, _, candidates = name.partition("-")
    if not (weight.isdigit() and candidates.isdigit() and int(weight) <= 10 and int(candidates)):
        raise InputError(
            f"configuration is {name!r}; write tenths of w and candidates, like 7-8 or 3-16"
        )
    return int(weight) / 10, int(candidates)


def learn_phones(utterances: Sequence[Array], part: Part, *, candidates: int) -> PhoneVoice:
    """Cluster the frames of each phone of a target speaker, and measure its durations."""
    encoded = part.target_frames(utterances)
    frames = join(encoded)
    names = frame_phones(utterances, encoded, part)
    own = keys(frames, part)
    lengths: dict[str, list[int]] = {}
    for name, start, stop in runs(names.tolist()):
        lengths.setdefault(name, []).append(stop - start)
    found = {name: _candidates(own, frames.values, names == name, candidates) for name in lengths}
    return PhoneVoice(
        {name: pair[0] for name, pair in found.items()},
        {name: pair[1] for name, pair in found.items()},
        {name: float(np.mean(some)) for name, some in lengths.items()},
        pitch_statistics(frames.f0),
    )


def frame_phones(
    utterances: Sequence[Array], encoded: Sequence[Frames], part: Part
) -> NDArray[np.str_]:
    """The phone of every frame, one utterance after another."""
    return np.array(
        [
            name
            for samples, frames in zip(utterances, encoded, strict=True)
            for name in label(phones(samples), len(frames.f0), part.rate)
        ]
    )


def private_knn(samples: Array, voice: PhoneVoice, part: Part, *, weight: float) -> Array:
    """Convert ``samples (n,)`` at 16 kHz; durations move to the target's by ``weight``."""
    source = part.encode(samples)
    labels = label(phones(samples), len(source.f0), part.rate)
    order, _ = stretch(labels, voice.durations, weight)
    own = keys(source, part)[order]
    pool = np.concatenate(list(voice.keys.values()))
    chosen = np.concatenate(list(voice.values.values()))[nearest(own, pool, AVERAGED)]
    values = _smooth(chosen.mean(axis=1), max(1, round(SMOOTHED * part.rate)))
    values[:, part.kept] = source.values[order][:, part.kept]
    f0 = convert_pitch(source.f0, pitch_statistics(source.f0), voice.log_f0)[order]
    return part.vocode(values, f0, round(len(order) / part.rate * RATE))


def stretch(
    labels: Sequence[str], durations: dict[str, float], weight: float
) -> tuple[NDArray[np.intp], list[str]]:
    """Which source frame stands at each place after the durations were moved, and its phone.

    A phone of a frames becomes round(w · predicted + (1 − w) · a) frames long, at least one.
    """
    order: list[NDArray[np.intp]] = []
    names: list[str] = []
    for name, start, stop in runs(labels):
        actual = stop - start
        wanted = weight * durations.get(name, actual) + (1 - weight) * actual
        n = max(1, round(wanted))
        order.append(start + np.floor((np.arange(n) + 0.5) * actual / n).astype(np.intp))
        names += [name] * n
    return np.concatenate(order), names


def _smooth(values: Array, width: int) -> Array:
    """Moving mean over ``width`` frames."""
    padded = np.pad(values, (((width - 1) // 2, width // 2), (0, 0)), mode="edge")
    total = np.cumsum(np.pad(padded, ((1, 0), (0, 0))), axis=0, dtype=np.float64)
    return ((total[width:] - total[:-width]) / width).astype(np.float32)


def _candidates(own: Array, values: Array, rows: NDArray[np.bool_], n: int) -> tuple[Array, Array]:
    """``n`` candidates out of the frames of one phone: cluster centres and the frames at them."""
    points, frames = own[rows], values[rows]
    centers = kmeans(points, n)
    at = nearest(centers, points, min(AVERAGED, max(1, len(points) // n)))
    return centers, frames[at].mean(axis=1)


def kmeans(points: Array, n: int, *, rounds: int = 12) -> Array:
    """At most ``n`` cluster centres of ``points (t, d)``, from a start that needs no random number.

    The first centre is the point nearest to the mean; each further one is the point farthest from
    those before.
    """
    n = min(n, len(points))
    distance = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    chosen = [int(np.argmin(distance))]
    distance = np.full(len(points), np.inf)
    for _ in range(n - 1):
        distance = np.minimum(distance, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
        chosen.append(int(np.argmax(distance)))
    centers = points[chosen].astype(np.float64)
    for _ in range(rounds):
        squares = np.sum(centers**2, axis=1)[None] - 2 * points @ centers.T
        member = np.argmin(squares, axis=1)
        for i in range(n):
            if np.any(member == i):
                centers[i] = points[member == i].mean(axis=0)
    return centers.astype(np.float32)
