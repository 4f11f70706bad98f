"""What is wrong with a corpus before hours are spent on it: every file is read once, all is told.

A file can be ``missing``, ``unreadable`` (also: cut short, not finite), ``empty``, ``short``,
``silent`` (no 30 ms of it reach −60 dBFS, a constant offset taken out), ``clipped`` (at full scale
for three samples in a row, in more than 0.1 % of its samples), ``doubled`` (the same samples under
another id, whatever the file format) or at another ``rate`` than the rest of the corpus.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import EMPTY, HEARD, HEARD_RATE, decode, to_mono, write_heard
from voxrisk.corpus.table import Utterance, file_name
from voxrisk.files.places import place_exists
from voxrisk.shards import run
from voxrisk.types import InputError

KINDS = ("missing", "unreadable", "empty", "short", "silent", "clipped", "doubled", "rate")
SILENCE_DB = -60.0
FULL_SCALE = 0.999
CLIPPED_SHARE = 0.001
FRAME_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one utterance; ``kind`` is one of :data:`KINDS`."""

    utterance: str
    path: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Health:
    """What one look at one file found."""

    problems: tuple[Problem, ...]
    seconds: float = 0.0
    rate: int = 0
    digest: bytes = b""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a whole corpus check found.

    Attributes:
        problems: All problems, in the order of the corpus.
        utterances: How many utterances were looked at.
        speakers: How many speakers they have.
        seconds: Readable speech in all.
        rates: Sample rate → number of utterances.
        durations: Utterance → seconds, where it can be read.
        sounds: Utterance → hash of its samples, where it can be read.
    """

    problems: tuple[Problem, ...]
    utterances: int
    speakers: int
    seconds: float
    rates: dict[int, int]
    durations: dict[str, float]
    sounds: dict[str, str]


@dataclass(frozen=True, slots=True)
class Cause:
    """Everything wrong of one kind, said once.

    Attributes:
        kind: One of :data:`KINDS`.
        count: How many utterances have it.
        examples: The first few.
    """

    kind: str
    count: int
    examples: tuple[Problem, ...]


def causes(problems: Sequence[Problem], *, shown: int = 3) -> list[Cause]:
    """The problems by their kind, the commonest first, with a few examples of each."""
    own: dict[str, list[Problem]] = {}
    for problem in problems:
        own.setdefault(problem.kind, []).append(problem)
    ordered = sorted(own.items(), key=lambda item: (-len(item[1]), KINDS.index(item[0])))
    return [Cause(kind, len(found), tuple(found[:shown])) for kind, found in ordered]


def check_corpus(
    utterances: Sequence[Utterance],
    *,
    rate: int | None = None,
    shortest: float = 0.5,
    workers: int | None = None,
    keep: Path | None = None,
) -> Findings:
    """Read every utterance once, in parallel, and say all that is wrong.

    Args:
        utterances: The corpus; read it with ``read_corpus(path, audio=False)`` so that a missing
            file is found here, with all others.
        rate: The sample rate every file should have; None: the most common one.
        shortest: Utterances under so many seconds are a problem.
        workers: Processes; None: one for each core.
        keep: Folder for a decoded copy of every utterance that is long enough, named by
            :func:`copy_name`; None keeps none.
    """
    if keep is not None:
        # Copies of voices that are to be protected: for the owner alone.
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    stage = partial(look, shortest=shortest, keep=keep)
    looked = run(stage, utterances, workers=workers, label="check")
    health = list(looked)
    rates = Counter(h.rate for h in health if h.rate)
    expected = rate or (rates.most_common(1)[0][0] if rates else 0)
    problems = _across(utterances, health, expected)
    return Findings(
        problems=tuple(problems),
        utterances=len(utterances),
        speakers=len({row.speaker for row in utterances}),
        seconds=sum(h.seconds for h in health),
        rates=dict(sorted(rates.items())),
        durations={
            row.utterance: h.seconds for row, h in zip(utterances, health, strict=True) if h.digest
        },
        sounds={
            row.utterance: h.digest.hex()
            for row, h in zip(utterances, health, strict=True)
            if h.digest
        },
    )


def copy_name(row: Utterance) -> str:
    """File name of the decoded copy of an utterance."""
    return file_name(row.utterance, HEARD)


def look(row: Utterance, *, shortest: float, keep: Path | None = None) -> Health:
    """What one file shows by itself; a decoded copy goes to the folder ``keep``."""

    def problem(kind: str, detail: str) -> Problem:
        return Problem(row.utterance, str(row.path), kind, detail)

    if not place_exists(row.path):
        return Health((problem("missing", "no such file"),))
    try:
        samples, rate, seconds = decode(row)
    except InputError as error:
        reason = str(error).removeprefix(f"{row.path}: ")
        return Health((problem("empty" if reason == EMPTY else "unreadable", reason),))
    found = []
    if seconds < shortest:
        found.append(problem("short", f"{seconds:.3f} s"))
    if (level := loudest(samples, rate)) < SILENCE_DB:
        found.append(problem("silent", f"never above {level:.0f} dBFS"))
    if (share := clipped(samples)) > CLIPPED_SHARE:
        found.append(problem("clipped", f"{share:.1%} of the samples at full scale"))
    if keep is not None and seconds >= shortest:
        write_heard(keep / copy_name(row), to_mono(samples, rate, rate=HEARD_RATE))
    digest = hashlib.blake2b(samples.tobytes(), digest_size=16).digest()
    return Health(tuple(found), seconds, rate, digest)


def loudest(samples: NDArray[np.float32], rate: int) -> float:
    """Level of the loudest 30 ms in dB re full scale; −200 for digital silence.

    A constant offset is no sound: the mean of each 30 ms is taken out first.
    """
    mono = samples.mean(axis=1)
    frame = max(1, min(len(mono), round(FRAME_SECONDS * rate)))
    frames = mono[: len(mono) // frame * frame].reshape(-1, frame)
    power = float(frames.var(axis=1, dtype=np.float64).max())
    return float(10 * np.log10(max(power, 1e-20)))


def clipped(samples: NDArray[np.float32]) -> float:
    """Share of the samples that stand at full scale with a neighbour on either side there too."""
    full = np.abs(samples) >= FULL_SCALE
    return float((full[:-2] & full[1:-1] & full[2:]).mean()) if len(full) > 2 else 0.0


def _across(
    utterances: Iterable[Utterance], health: Iterable[Health], expected: int
) -> Iterator[Problem]:
    """The problems of each file, and those that only the whole corpus shows."""
    first: dict[bytes, str] = {}
    for row, found in zip(utterances, health, strict=True):
        yield from found.problems
        if not found.digest:
            continue
        if found.rate != expected:
            detail = f"{found.rate} Hz where {expected} Hz is expected"
            yield Problem(row.utterance, str(row.path), "rate", detail)
        if (other := first.setdefault(found.digest, row.utterance)) != row.utterance:
            yield Problem(row.utterance, str(row.path), "doubled", f"the same sound as {other}")
