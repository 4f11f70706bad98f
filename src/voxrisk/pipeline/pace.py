"""The pace of a stage on this machine or cluster, measured on a sample of the corpus.

What was timed on a busy machine says little of a quiet one, and the other way round. So every try
also asks the system how long its process was ready and had to wait for a core. Time without this
waiting is what the stage takes undisturbed, time with it what it takes beside all that runs now.
"""

import functools
import logging
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from voxrisk import shards
from voxrisk.corpus import Utterance
from voxrisk.corpus.columns import numbers, take
from voxrisk.progress import log
from voxrisk.types import InputError

BATCHES = 6  # tries of a worker; the first one loads what is needed
EACH = 2  # utterances of a try
CONFIDENCE = 0.9

Batch = list[Utterance]
Job = Callable[[Batch, Path], float]  # does some utterances in a folder; the speech it heard


class Try(NamedTuple):
    """One batch: seconds of speech, seconds it took, those in which it waited for a core, bytes."""

    speech: float
    seconds: float
    waited: float
    bytes: float


class Trial(NamedTuple):
    """What one worker found: the try that loads what is needed, the others, and its memory."""

    first: Try
    tries: list[Try]
    gigabytes: float


@dataclass(frozen=True, slots=True)
class Pace:
    """A stage on one worker, as it was measured.

    Attributes:
        start: Seconds before the first utterance.
        each: Seconds for a second of speech, beside all that runs on the machine now.
        error: Half the width of the interval of ``each``.
        alone: Seconds for a second of speech, were nothing else running.
        gigabytes: Memory of a worker at most; the longest utterance was tried.
        disk: Bytes for a second of speech.
        disk_error: Half the width of the interval of ``disk``.
        tries: How many tries stand behind it.
    """

    start: float
    each: float
    error: float
    alone: float
    gigabytes: float
    disk: float
    disk_error: float
    tries: int


def measure_stage(
    job: Job, rows: Sequence[Utterance], folder: Path, *, workers: int, seed: int = 0
) -> Pace:
    """The pace of a stage, from a sample of the corpus, on all workers at once."""
    parts = [
        (part, folder / str(k))
        for k, part in enumerate(sample_of(rows, workers=workers, seed=seed))
    ]
    return pace_of(list(shards.run(functools.partial(_try_out, job), parts, workers=workers)))


def pace_of(found: Sequence[Trial]) -> Pace:
    """What the tries of all workers say, with intervals: ratios to the speech that was heard."""
    tries = [one for trial in found for one in trial.tries]
    speech, seconds, waited, size = (np.array(column) for column in zip(*tries, strict=True))
    each, error = _ratio(seconds, speech)
    disk, disk_error = _ratio(size, speech)
    # Not below a hundredth: a clock of the system that counts waiting twice must not promise all.
    alone = max(float((seconds - waited).sum() / speech.sum()), 0.01 * each)
    starts = [trial.first.seconds - each * trial.first.speech for trial in found]
    return Pace(
        max(0.0, float(np.median(starts))), each, error, alone,
        max(trial.gigabytes for trial in found), disk, disk_error, len(tries),
    )  # fmt: skip


def _ratio(amount: np.ndarray, speech: np.ndarray) -> tuple[float, float]:
    """Amount for a second of speech, and half the width of its interval (ratio estimator)."""
    from scipy import stats

    n, ratio = len(speech), float(amount.sum() / speech.sum())
    freedom = max(n - 1, 1)
    error = math.sqrt(float(((amount - ratio * speech) ** 2).sum()) / (n * freedom))
    return ratio, error * float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) / float(speech.mean())


def sample_of(rows: Sequence[Utterance], *, workers: int = 1, seed: int = 0) -> list[list[Batch]]:
    """For each worker some batches of random utterances, no utterance twice if there are enough.

    The first batch of each, which counts for the memory alone, holds the longest utterance.
    """
    if len(rows) < 2:
        raise InputError("a plan needs at least two utterances")
    places = random_places(len(rows), workers * BATCHES * EACH, seed=seed)
    chosen = list(take(rows, places))
    batches = [
        [chosen[k % len(chosen)] for k in range(start, start + EACH)]
        for start in range(0, workers * BATCHES * EACH, EACH)
    ]
    seconds = np.nan_to_num(numbers(rows, "duration"))
    longest = list(take(rows, np.array([int(seconds.argmax())])))
    for first in batches[::BATCHES]:
        first[:1] = longest
    # A batch that repeats an utterance, in a tiny corpus, hears it once.
    batches = [list({row.utterance: row for row in batch}.values()) for batch in batches]
    return [batches[k * BATCHES : (k + 1) * BATCHES] for k in range(workers)]


def random_places(count: int, wanted: int, *, seed: int) -> np.ndarray:
    """Some of ``range(count)``, in random order."""
    return np.random.default_rng(seed).permutation(count)[:wanted]


def _try_out(job: Job, part: tuple[list[Batch], Path]) -> Trial:
    """In a worker: the first batch with all that must be loaded, the others for the pace."""
    batches, folder = part
    tries: list[Try] = []
    level = log.level
    log.setLevel(logging.WARNING)  # nobody wants the progress of two utterances
    try:
        for k, batch in enumerate(batches):
            place = folder / str(k)
            place.mkdir(parents=True)
            began, waited = time.perf_counter(), _waited()
            heard = job(batch, place)
            took = time.perf_counter() - began
            size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            tries.append(Try(heard, took, min(_waited() - waited, took), size))
    finally:
        log.setLevel(level)
    return Trial(tries[0], tries[1:], _peak())


def _waited() -> float:
    """Seconds that this process was ready and no core was free; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _peak() -> float:
    """Gigabytes this process held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
