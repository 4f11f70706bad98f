"""What an engine costs: the same job on one process, on two (``local``), on two workers of Ray.

    python benchmarks/engine.py [--rounds 2] [--encoder ecapa-voxceleb] [--corpus FOLDER…]
        [--minutes 88]

The job is real: ``embed`` of 88 minutes of speech (by default ``librispeech_eval`` of the shared
data and what is missing of ``train_opus``), two minutes on two quiet cores. The three take turns,
each in a process of its own, so that a machine that changes its pace does so for all; the best of
each counts. Ray is started anew each time, and its start is counted. Beside the clock stands the
work of all processes, Ray's own ones too, which other users of the machine change little.

``--wait`` has items that wait for the clock instead, half a second each: nobody else counts.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from voxrisk import shards
from voxrisk.attack.embed import embed_corpus
from voxrisk.corpus import Utterance, read_corpus

ITEMS, SECONDS = 480, 0.5  # two minutes on two workers
SHARED = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TURNS = (("local", 2), ("ray", 2), ("local", 1))
OVERHEAD, GAIN = 1.15, 1.8


def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def cpu_of_all() -> float:
    """Seconds of work of this process and all below it: workers, and what Ray runs beside them."""
    facts = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        facts[int(stat.parent.name)] = int(cells[1]), sum(map(int, cells[11:15]))
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in facts.items() if parent in family} - family:
        family |= more
    return sum(facts[pid][1] for pid in family if pid in facts) / os.sysconf("SC_CLK_TCK")


def speech(corpora: list[str], minutes: float) -> list[Utterance]:
    """The first rows of these corpora, so many minutes of them."""
    rows = [row for corpus in corpora for row in read_corpus(corpus)]
    ends = itertools.accumulate(row.duration or 5.0 for row in rows)
    return [row for row, end in zip(rows, ends, strict=True) if end <= 60 * minutes]


def turn(engine: str, workers: int, rows: list[Utterance], encoder: str) -> dict[str, float]:
    """One run, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with shards.engine(engine):
            if rows:
                embed_corpus(rows, encoder, Path(folder) / "v.npz", workers=workers, device="cpu")
            else:
                list(shards.run(wait, [SECONDS] * ITEMS, workers=workers))
            took, work = time.perf_counter() - began, cpu_of_all()
    return {"seconds": took, "work": work}


def main() -> bool:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--encoder", default="ecapa-voxceleb")
    known = [str(SHARED / "data" / name) for name in ("librispeech_eval", "train_opus")]
    parser.add_argument("--corpus", nargs="+", default=known)
    parser.add_argument("--minutes", type=float, default=88.0)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("--turn", nargs=2)
    chosen = parser.parse_args()
    if chosen.turn:
        name, workers = chosen.turn
        rows = [] if chosen.wait else speech(chosen.corpus, chosen.minutes)
        print(json.dumps(turn(name, int(workers), rows, chosen.encoder)))
        return True
    best: dict[tuple[str, int], dict[str, float]] = {}
    for _ in range(chosen.rounds):
        for name, workers in TURNS:
            words = [sys.executable, __file__, *sys.argv[1:], "--turn", name, str(workers)]
            told = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
            found = json.loads(told.splitlines()[-1])
            print(
                f"{name} {workers}: {found['seconds']:.1f} s, work {found['work']:.1f} s",
                flush=True,
            )
            kept = best.setdefault((name, workers), found)
            best[name, workers] = {key: min(kept[key], found[key]) for key in found}
    two, ray, one = (best[key] for key in TURNS)
    over, gain = ray["seconds"] / two["seconds"], one["seconds"] / two["seconds"]
    print(f"ray 2 / local 2: {over:.3f} (limit {OVERHEAD}); work {ray['work'] / two['work']:.3f}")
    print(f"1 process / local 2: {gain:.2f} (at least {GAIN})")
    return over <= OVERHEAD and gain >= GAIN


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
