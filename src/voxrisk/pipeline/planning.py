"""What an evaluation will take, here and on more workers: measured on a sample.

The steps are those of :mod:`voxrisk.pipeline.estimate`. Every stage that hears speech is tried on a
random sample, on all workers at once, as the run itself would: its start (a model is loaded), its
pace, its memory and what it leaves on the disk. What is not tried (training, figures) has the cost
of the table in :mod:`voxrisk.pipeline.course`, at the pace that was found here.
"""

import functools
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from voxrisk import shards
from voxrisk.attack.embed import shard_count
from voxrisk.corpus import Utterance
from voxrisk.corpus.columns import take
from voxrisk.pipeline.course import COSTS, Step
from voxrisk.pipeline.estimate import expected_steps
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.pace import CONFIDENCE, Batch, Job, Pace, measure_stage, random_places
from voxrisk.pipeline.stages import Stages, say
from voxrisk.progress import duration
from voxrisk.protect.anonymizers import named_tool

DRIFT = 0.25  # a machine's own pace changes by so much between a sample and a run
UNKNOWN = 2.0  # what was not tried may take so many times as much, or as little
NOTICED = 0.1  # share of waiting for a core, above which it is said
MANY = (8, 64)  # workers to think of
LUMPS = {"embed": shard_count}  # seconds of speech → lumps that one worker does in one go


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
            unsure = 1.0 + DRIFT + pace.error / pace.each
            speech = _longest_share(step, workers)
            return Span(
                pace.start + pace.each * speech,
                (pace.start + pace.alone * speech) / unsure,
                pace.start * UNKNOWN + pace.each * speech * unsure,
            )
        cost = COSTS.get((step.stage, step.what)) or COSTS.get((step.stage, ""))
        if cost is None:
            return Span(0.0, 0.0, 0.0)
        alone = cost.start + cost.each * step.speech / (workers if cost.spread else 1)
        alone *= self.ratio
        now = alone * self.crowding
        return Span(now, alone / UNKNOWN, now * UNKNOWN)

    @property
    def ratio(self) -> float:
        """How much slower this machine is than the one the table was made on, both undisturbed."""
        known = [
            pace.alone / COSTS[key].each
            for key, pace in self.paces.items()
            if key in COSTS and COSTS[key].each
        ]
        return math.exp(float(np.mean(np.log(known)))) if known else 1.0

    @property
    def crowding(self) -> float:
        """How much longer everything takes because of what else runs here; 1: nothing else does."""
        known = [pace.each / pace.alone for pace in self.paces.values()]
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
    def disk(self) -> tuple[float, float, float]:
        """Bytes that the stages leave, and the ends of their interval."""
        found = [
            (pace.disk * step.speech, pace.disk_error * step.speech)
            for step in self.steps
            if (pace := self.paces.get((step.stage, step.what))) is not None
        ]
        size, error = sum(a for a, _ in found), sum(b for _, b in found)
        return size, max(size - error, 0.0), size + error

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
        return "\n".join([*lines, *self._words(counts)])

    def _words(self, counts: Sequence[int]) -> list[str]:
        """What the table does not say."""
        memory = ", ".join(f"{n * self.gigabytes:.1f} GB for {n}" for n in counts)
        size, least, most = (amount / 1e9 for amount in self.disk)
        busy = 1.0 - 1.0 / self.crowding
        said = [
            f"Memory: up to {self.gigabytes:.1f} GB for each worker ({memory}). "
            f"Disk: {size:.2g} GB ({least:.2g} to {most:.2g}).",
            f"In brackets: {100 * CONFIDENCE:.0f} % intervals of the sample, and {100 * DRIFT:.0f} "
            "% for a machine that changes its pace.",
        ]
        if busy > NOTICED:
            said.append(
                f"The machine is busy: {100 * busy:.0f} % of the time workers waited for a core. "
                "The lower ends are for a machine with nothing else to do; if it gets busier than "
                "now, the upper ends do not hold."
            )
        else:
            said.append("Beside other work it takes longer: the upper ends do not hold then.")
        return [
            *said,
            "* not tried: by the table of costs at the pace of this machine, within a factor of "
            f"{UNKNOWN:g}.",
        ]

    def to_json(self) -> str:
        """The same for programs."""
        counts = sorted({self.workers, *MANY})
        return json.dumps(
            {
                "workers_here": self.workers,
                "total": {str(count): self.total(count)._asdict() for count in counts},
                "gigabytes_per_worker": round(self.gigabytes, 3),
                "disk_bytes": dict(
                    zip(("expected", "low", "high"), map(round, self.disk), strict=True)
                ),
                "waiting_for_a_core": round(1.0 - 1.0 / self.crowding, 3),
                "steps": [
                    {"stage": s.stage, "what": s.what, "label": s.label, "speech_seconds": s.speech,
                     "tried": (s.stage, s.what) in self.paces,
                     "seconds": {str(n): self.step(s, n)._asdict() for n in counts}}
                    for s in self.steps
                ],
            },
            indent=2,
        )  # fmt: skip


def _longest_share(step: Step, workers: int) -> float:
    """Seconds of speech of the worker who has most: some stages are cut into lumps."""
    if step.stage not in LUMPS:
        return step.speech / workers
    lumps = LUMPS[step.stage](step.speech)
    return math.ceil(lumps / workers) * step.speech / lumps


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
        targets = take(rows, random_places(len(rows), 40, seed=1))
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
