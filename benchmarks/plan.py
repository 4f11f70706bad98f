"""Is a plan right? Plan a stage, do it, and look whether it took what the interval says.

    python benchmarks/plan.py [TIMES]

McAdams on 240 random utterances of ``librispeech_eval`` (shared data), again and again. Let other
work run beside it and change: this is what plans are wrong about.
"""

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from voxrisk import shards
from voxrisk.corpus import read_corpus
from voxrisk.pipeline.course import Step
from voxrisk.pipeline.pace import Batch, measure_stage
from voxrisk.pipeline.planning import Plan
from voxrisk.protect.run import anonymize

SHARED = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
UTTERANCES, WORKERS = 240, 2
STAGE = ("anonymize", "mcadams")


def protect(batch: Batch, folder: Path) -> float:
    anonymize(batch, folder / "out", STAGE[1], workers=1)
    return sum(row.duration or 0.0 for row in batch)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main(times: int) -> None:
    rows = read_corpus(SHARED / "data" / "librispeech_eval")
    held = kept = 0
    for k in range(times):
        some = random.Random(k).sample(rows, UTTERANCES)
        with tempfile.TemporaryDirectory() as folder, shards.kept_workers():
            tried, out = Path(folder, "tried"), Path(folder, "out")
            pace = measure_stage(protect, some, tried, workers=WORKERS, seed=k)
            speech = sum(row.duration or 0.0 for row in some)
            plan = Plan((Step(*STAGE, speech),), {STAGE: pace}, WORKERS)
            began = time.monotonic()
            anonymize(some, out, STAGE[1], workers=WORKERS)
            took, size = time.monotonic() - began, size_of(out)
        span, (_, least, most) = plan.total(WORKERS), plan.disk
        held += span.low <= took <= span.high
        kept += least <= size <= most
        print(
            f"{k}: {span.low:.1f} to {span.high:.1f} s, took {took:.1f}; waiting for a core "
            f"{1 - 1 / plan.crowding:.0%}; disk {least / 1e6:.2f} to {most / 1e6:.2f} MB, is "
            f"{size / 1e6:.2f}", flush=True,
        )  # fmt: skip
    print(f"time inside {held} of {times}, disk inside {kept} of {times}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
