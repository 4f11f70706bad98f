"""The speech a training reads: decoded once, split for validation, cut into crops and batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_speech
from voxrisk.attack.recipes import Recipe
from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE, to_pcm
from voxrisk.files.atomic import atomic
from voxrisk.journal import hash_of
from voxrisk.shards import run
from voxrisk.store import Store
from voxrisk.types import InputError, require

SAMPLES, LENGTHS = "samples.i16", "lengths.npy"


@dataclass(frozen=True)
class DecodedSpeech:
    """A decoded corpus: every utterance in one flat file of 16-bit samples.

    Attributes:
        samples: Memory map ``(total,)``.
        start: First sample ``(n,)`` of each utterance.
        length: Samples ``(n,)`` of each utterance.
        source: Class number ``(n,)`` of its source speaker.
        target: Class number ``(n,)`` of its target speaker, or None where targets are unknown.
        sources: Names of the source classes.
        targets: Names of the target classes, if any.
    """

    samples: NDArray[np.int16]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64] | None
    sources: tuple[str, ...]
    targets: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.start)


def decode_corpus(
    rows: Sequence[Utterance],
    folder: Path,
    *,
    speeds: Sequence[float] = (1.0,),
    target_column: str | None = None,
    workers: int | None = None,
) -> DecodedSpeech:
    """Decode every utterance into the store ``folder``, once; a second call finds it there.

    Args:
        rows: The training set.
        folder: Where the samples go (115 MB for an hour, times the number of speeds).
        speeds: Speeds at which each utterance is read; each other speed is a speaker of its own.
        target_column: Column with the target speaker of each utterance.
        workers: Processes.

    Raises:
        InputError: If there is one speaker only, or a target is missing; the message names it.
    """
    if len({row.speaker for row in rows}) < 2:
        raise InputError(
            f"the training set has {len({row.speaker for row in rows})} speaker; "
            "a recogniser needs at least two to tell apart"
        )
    if target_column:
        missing = [row.utterance for row in rows if not row.extra.get(target_column)]
        if missing:
            raise InputError(
                f"utterance {missing[0]} has no {target_column!r} ({len(missing)} of {len(rows)}); "
                "the target head needs the target speaker that the anonymizer chose"
            )
    jobs = [(row, float(speed)) for row in rows for speed in speeds]

    def make(inside: Path) -> None:
        lengths = []
        with atomic(inside / SAMPLES) as part, part.open("wb") as stream:
            for samples in run(_decode, jobs, workers=workers, label="decode"):
                stream.write(samples.tobytes())
                lengths.append(len(samples))
        with atomic(inside / LENGTHS) as part:
            np.save(part, np.array(lengths, dtype=np.int64))

    inputs = {"jobs": hash_of([(row, speed) for row, speed in jobs])}
    entry = Store(folder).entry("decode", inputs, make, label=f"{len(rows)} utterances")
    sound, length = entry / SAMPLES, np.load(entry / LENGTHS)
    sources, source = np.unique([_spoken(row.speaker, s) for row, s in jobs], return_inverse=True)
    targets = target = None
    if target_column:
        names = [_spoken(row.extra[target_column], s) for row, s in jobs]
        targets, target = np.unique(names, return_inverse=True)
    return DecodedSpeech(
        np.memmap(sound, dtype=np.int16, mode="r"),
        np.concatenate([[0], np.cumsum(length)[:-1]]),
        length,
        source.astype(np.int64),
        None if target is None else target.astype(np.int64),
        tuple(sources.tolist()),
        None if targets is None else tuple(targets.tolist()),
    )


def _spoken(speaker: str, speed: float) -> str:
    return speaker if speed == 1.0 else f"{speaker}@{speed:g}"


def _decode(job: tuple[Utterance, float]) -> NDArray[np.int16]:
    row, speed = job
    try:
        samples = read_audio(row, rate=RATE)
        check_speech(samples)
    except InputError as error:
        raise InputError(f"utterance {row.utterance}: {error}") from error
    if speed != 1.0:
        soxr: Any = require("soxr", extra="audio")
        samples = soxr.resample(samples, RATE * speed, RATE)
    return to_pcm(samples)


def split_validation(
    speech: DecodedSpeech, recipe: Recipe, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Utterance numbers for training and for validation.

    Each speaker keeps at least one utterance for training; with ``validation_of="speaker"``, each
    that has two or more also gives at least one for validation.
    """
    random = np.random.default_rng([seed, 0])
    held = np.zeros(len(speech), dtype=bool)
    if recipe.validation_of == "all":
        held[random.permutation(len(speech))[: round(recipe.validation * len(speech))]] = True
    for label in range(len(speech.sources)):
        own = random.permutation(np.flatnonzero(speech.source == label))
        if recipe.validation_of == "speaker" and len(own) > 1:
            held[own[: max(1, round(recipe.validation * len(own)))]] = True
        if held[own].all():
            held[own[0]] = False
    if not held.any():
        raise InputError("no utterance is left for validation: every speaker has only one")
    return np.flatnonzero(~held), np.flatnonzero(held)


@dataclass(frozen=True)
class Crops:
    """Pieces of speech: which utterance ``row (n,)``, from which sample ``start``, ``length``."""

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)


def cut_crops(
    speech: DecodedSpeech,
    rows: NDArray[np.int64],
    recipe: Recipe,
    random: np.random.Generator | None,
) -> Crops:
    """Cut utterances into crops; without ``random``, random crops are cut from the middle.

    Utterances shorter than a crop are taken whole, as long as they last ``tail_seconds``.
    """
    piece, tail = round(recipe.crop_seconds * RATE), round(recipe.tail_seconds * RATE)
    length = speech.length[rows]
    if recipe.crops == "random":
        kept = length >= min(tail, piece)
        rows, length = rows[kept], length[kept]
        room = np.maximum(length - piece, 0)
        place = random.integers(0, room + 1) if random is not None else room // 2
        return Crops(rows, speech.start[rows] + place, np.minimum(length, piece))
    whole = length // piece
    pieces = whole + (length - whole * piece >= tail)
    row = np.repeat(rows, pieces)
    number = np.concatenate([np.arange(n) for n in pieces]) if len(pieces) else pieces
    left = np.repeat(length, pieces) - number * piece
    return Crops(row, speech.start[row] + number * piece, np.minimum(left, piece))


def cut_batch(
    speech: DecodedSpeech, crops: Crops, chosen: NDArray[np.int64]
) -> list[NDArray[np.float32]]:
    """Read some crops as waveforms in ±1."""
    return [
        speech.samples[s : s + n].astype(np.float32) / np.float32(32768.0)
        for s, n in zip(crops.start[chosen], crops.length[chosen], strict=True)
    ]


def batches(
    count: int, size: int, *, random: np.random.Generator | None, rank: int = 0, world: int = 1
) -> Iterator[NDArray[np.int64]]:
    """Index batches of an epoch; process ``rank`` of ``world`` gets its share of each.

    With ``random`` (training) they are shuffled, and a last batch too small for batch
    normalisation in every process is left out.
    """
    order = np.arange(count) if random is None else random.permutation(count)
    for start in range(0, count, size):
        batch = order[start : start + size]
        if random is not None and len(batch) < 2 * world:
            return
        share = batch[rank::world]
        if len(share):
            yield share


def count_batches(count: int, size: int, *, world: int = 1) -> int:
    """How many batches :func:`batches` gives in training.

    >>> count_batches(101, 50), count_batches(102, 50)
    (2, 3)
    """
    return count // size + (count % size >= 2 * world)
