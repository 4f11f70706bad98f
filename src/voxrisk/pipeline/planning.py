"""What an evaluation will take, here and on more workers: measured on a sample.

The steps are those of :mod:`voxrisk.pipeline.estimate`. Every stage that hears speech is tried on a
random sample, on all workers at once, as the run itself would: its start (a model is loaded), its
pace, its memory and what it leaves on the disk. What is not tried (training, figures) has the cost
of the table in :mod:`voxrisk.pipeline.course`, at the pace that was found here.
"""

import functools
import json
import logging
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from voxrisk import shards
from voxrisk.corpus import Utterance
from voxrisk.corpus.columns import take
from voxrisk.pipeline.course import COSTS, Step
from voxrisk.pipeline.estimate import expected_steps
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.stages import Stages, say
from voxrisk.progress import duration, log
from voxrisk.protect.anonymizers import named_tool
from voxrisk.types import InputError

BATCHES = 6  # tries of a worker; the first one loads what is needed
EACH = 2  # utterances of a try
CONFIDENCE = 0.9
DRIFT = 0.25  # a machine's own pace changes by so much between a sample and a run
UNKNOWN = 2.0  # what was not tried may take so many times as much, or as little
MANY = (8, 64)  # workers to think of

Batch = list[Utterance]


class Trial(NamedTuple):
    """What one worker found: seconds before it was at work, and (speech, seconds) of each try."""

    start: float
    tries: list[tuple[float, float]]
    gigabytes: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Pace:
    """A stage on one worker, as it was measured.

    Attributes:
        start: Seconds before the first utterance.
        each: Seconds for a second of speech.
        error: Half the width of the interval of ``each``.
        gigabytes: Memory of a worker at most.
        disk: Bytes for a second of speech.
        tries: How many tries stand behind it.
    """

    start: float
    each: float
    error: float
    gigabytes: float
    disk: float
    tries: int


class Span(NamedTuple):
    """Seconds, and the ends of their interval."""

    seconds: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{duration(self.seconds)} ({duration(self.low)} to {duration(self.high)})"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a run, and the pace of each stage and tool that was tried.

    ``start`` is how long it took until the workers were there.
    """

    steps: tuple[Step, ...]
    paces: dict[tuple[str, str], Pace]
    workers: int
    start: float = 0.0

    def step(self, step: Step, workers: int) -> Span:
        """What one step takes on so many workers."""
        pace = self.paces.get((step.stage, step.what))
        if pace is not None:
            half = pace.error + DRIFT * pace.each
            low, middle, high = (
                max(each, 0.0) * step.speech / workers
                for each in (pace.each - half, pace.each, pace.each + half)
            )
            return Span(
                pace.start + middle, pace.start / UNKNOWN + low, pace.start * UNKNOWN + high
            )
        cost = COSTS.get((step.stage, step.what)) or COSTS.get((step.stage, ""))
        if cost is None:
            return Span(0.0, 0.0, 0.0)
        seconds = cost.start + cost.each * step.speech / (workers if cost.spread else 1)
        seconds *= self.ratio
        return Span(seconds, seconds / UNKNOWN, seconds * UNKNOWN)

    @property
    def ratio(self) -> float:
        """How much slower this machine is than the one the table was made on."""
        known = [
            pace.each / COSTS[key].each
            for key, pace in self.paces.items()
            if key in COSTS and COSTS[key].each
        ]
        return math.exp(float(np.mean(np.log(known)))) if known else 1.0

    def total(self, workers: int) -> Span:
        """The whole run; a slow machine is slow at everything, so the ends add up."""
        spans = [self.step(step, workers) for step in self.steps]
        spans.append(Span(self.start, self.start / UNKNOWN, self.start * UNKNOWN))
        return Span(*(sum(ends) for ends in zip(*spans, strict=True)))

    @property
    def gigabytes(self) -> float:
        """Memory of one worker at most."""
        return max((pace.gigabytes for pace in self.paces.values()), default=0.0)

    @property
    def disk(self) -> float:
        """Bytes that the stages leave."""
        found = ((self.paces.get((step.stage, step.what)), step.speech) for step in self.steps)
        return sum(pace.disk * speech for pace, speech in found if pace is not None)

    def text(self) -> str:
        """For people."""
        counts = sorted({self.workers, *MANY})
        here = {self.workers: " (here)"}
        head = [f"{n} worker{'s' if n > 1 else ''}{here.get(n, '')}" for n in counts]
        rows = [["", *head]]
        for step in self.steps:
            mark = "" if (step.stage, step.what) in self.paces else " *"
            spans = [duration(self.step(step, count).seconds) for count in counts]
            rows.append([f"{step.stage} {step.label}{mark}", *spans])
        rows.append(["all", *(str(self.total(count)) for count in counts)])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        memory = f"Memory: up to {self.gigabytes:.1f} GB for each worker. "
        return "\n".join(
            [
                *lines,
                f"{memory}Disk: about {self.disk / 1e9:.2g} GB. In brackets: "
                f"{100 * CONFIDENCE:.0f} % intervals of the sample, and {100 * DRIFT:.0f} % for a "
                "machine that changes its pace.",
                "* not tried: by the table of costs at the pace of this machine, within a factor "
                f"of {UNKNOWN:g}.",
            ]
        )

    def to_json(self) -> str:
        """The same for programs."""
        counts = sorted({self.workers, *MANY})
        return json.dumps(
            {
                "workers_here": self.workers,
                "total": {str(count): self.total(count)._asdict() for count in counts},
                "gigabytes_per_worker": round(self.gigabytes, 3),
                "disk_bytes": round(self.disk),
                "steps": [
                    {"stage": s.stage, "what": s.what, "label": s.label, "speech_seconds": s.speech,
                     "tried": (s.stage, s.what) in self.paces,
                     "seconds": {str(n): self.step(s, n)._asdict() for n in counts}}
                    for s in self.steps
                ],
            },
            indent=2,
        )  # fmt: skip


def plan_evaluation(chosen: Evaluation) -> Plan:
    """Try every stage that hears speech on a sample of the corpus.

    Nothing is kept: what the tries make is removed again.
    """
    with tempfile.TemporaryDirectory(prefix="voxrisk-") as folder, shards.kept_workers():
        stages = Stages(Path(folder) / "stages")
        stages.folder.mkdir()
        rows = stages.read(chosen.original)
        steps = expected_steps(chosen, stages)
        workers, began = shards.worker_count(), time.monotonic()
        list(shards.run(_nothing, range(workers), workers=workers))
        start = time.monotonic() - began
        paces = {}
        for place, key in enumerate(dict.fromkeys((s.stage, s.what) for s in steps)):
            if (job := _job(chosen, *key, rows)) is not None:
                say(f"trying {' '.join(key).strip()} on a sample …")
                paces[key] = measure_stage(job, rows, Path(folder) / str(place), workers=workers)
    return Plan(tuple(steps), paces, workers, start)


def _nothing(_: int) -> None:
    """What a worker does to be there, with all of this imported."""


Job = Callable[[Batch, Path], float]  # does some utterances in a folder; the speech it heard


def _job(chosen: Evaluation, stage: str, what: str, rows: Sequence[Utterance]) -> Job | None:
    """What a stage does with a few utterances; None where a sample says nothing."""
    if stage == "check":
        return _check
    if stage == "embed":
        return functools.partial(_embed, what)
    if stage == "utility":
        return functools.partial(_useful, what)
    if stage == "anonymize":
        mine, options = named_tool(chosen.anonymizer or "", chosen.options)
        settings = options if what == mine else {}
        targets = take(rows, _places(len(rows), 40, seed=1))
        return functools.partial(_anonymize, what, settings, list(targets))
    return None


def _check(batch: Batch, folder: Path) -> float:
    from voxrisk.corpus.check import check_corpus

    check_corpus(batch, workers=1, keep=folder / "heard")
    return _seconds(batch)


def _embed(encoder: str, batch: Batch, folder: Path) -> float:
    from voxrisk.attack.embed import embed_corpus

    embed_corpus(batch, encoder, folder / "vectors.npz", workers=1)
    return _seconds(batch)


def _useful(asr: str, batch: Batch, folder: Path) -> float:
    from voxrisk.utility import measure_utility

    measure_utility(batch, batch, asr=asr, workers=1, resamples=0, journal=folder / "j.jsonl")
    return 2 * _seconds(batch)


def _anonymize(
    name: str, options: dict[str, object], targets: Batch, batch: Batch, folder: Path
) -> float:
    from voxrisk.protect.run import anonymize

    anonymize(batch, folder / "out", name, options=options, targets=targets, workers=1)
    return _seconds(batch)


def _seconds(batch: Batch) -> float:
    from voxrisk.corpus.audio import audio_seconds

    return sum(row.duration or audio_seconds(row) for row in batch)


def measure_stage(
    job: Job, rows: Sequence[Utterance], folder: Path, *, workers: int, seed: int = 0
) -> Pace:
    """The pace of a stage, from a sample of the corpus, on all workers at once."""
    from scipy import stats

    parts = [
        (part, folder / str(k))
        for k, part in enumerate(sample_of(rows, workers=workers, seed=seed))
    ]
    found = list(shards.run(functools.partial(_try_out, job), parts, workers=workers))
    tries = np.array([pair for trial in found for pair in trial.tries])
    speech, seconds = tries.T
    each = float(seconds.sum() / speech.sum())
    n = len(tries)
    error = math.sqrt(float(((seconds - each * speech) ** 2).sum()) / (n * max(n - 1, 1)))
    error *= float(stats.t.ppf(0.5 + CONFIDENCE / 2, max(n - 1, 1))) / float(speech.mean())
    heard = float(speech.sum()) * BATCHES / (BATCHES - 1)  # the first tries left files as well
    return Pace(
        max(0.0, float(np.median([trial.start for trial in found]))),
        each,
        error,
        max(trial.gigabytes for trial in found),
        sum(trial.bytes for trial in found) / heard,
        n,
    )


def sample_of(rows: Sequence[Utterance], *, workers: int = 1, seed: int = 0) -> list[list[Batch]]:
    """For each worker some batches of random utterances, no utterance twice if there are enough."""
    if len(rows) < 2:
        raise InputError("a plan needs at least two utterances")
    places = _places(len(rows), workers * BATCHES * EACH, seed=seed)
    chosen = list(take(rows, places))
    batches = [
        [chosen[k % len(chosen)] for k in range(start, start + EACH)]
        for start in range(0, workers * BATCHES * EACH, EACH)
    ]
    # A batch that repeats an utterance, in a tiny corpus, hears it once.
    batches = [list({row.utterance: row for row in batch}.values()) for batch in batches]
    return [batches[k * BATCHES : (k + 1) * BATCHES] for k in range(workers)]


def _places(count: int, wanted: int, *, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(count)[:wanted]


def _try_out(job: Job, part: tuple[list[Batch], Path]) -> Trial:
    """In a worker: the first batch with all that must be loaded, the others for the pace."""
    batches, folder = part
    times: list[tuple[float, float]] = []
    level = log.level
    log.setLevel(logging.WARNING)  # nobody wants the progress of two utterances
    try:
        for k, batch in enumerate(batches):
            place = folder / str(k)
            place.mkdir(parents=True)
            began = time.perf_counter()
            heard = job(batch, place)
            times.append((heard, time.perf_counter() - began))
    finally:
        log.setLevel(level)
    (first_speech, first_seconds), *tries = times
    pace = sum(t for _, t in tries) / sum(s for s, _ in tries)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Trial(first_seconds - pace * first_speech, tries, _peak(), size)


def _peak() -> float:
    """Gigabytes this process held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
