"""What holds at a hundred times the size: speed and memory where corpora and crowds are large.

    python benchmarks/scale.py [crowd] [manifest]

Machines are noisy, so times are ratios within this run wherever there is something to compare with.
``benchmarks/memory.py`` and ``benchmarks/engine.py`` look at memory and at the engines.

crowd     100,000 enrolled × 10,000 tested, all metrics of L = 1 with 1,000 resamples: peak memory,
          and the time of the processor against the bare float32 product of the same sizes.
manifest  A Parquet manifest of a million rows: open, filter, split, sample; CPU time and memory.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ENROLLED, TESTED, DIMENSIONS = 100_000, 10_000, 192
ROWS, SPEAKERS = 1_000_000, 50_000


def show(name: str, found: float, limit: float, unit: str) -> bool:
    print(f"{name:66s} {found:9.2f} {unit} (limit {limit:g})", flush=True)
    return found <= limit


def alone(part: str, *words: str) -> list[float]:
    """Numbers that a part prints in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, f"--{part}", *words]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(cell) for cell in out.split()]


def peak() -> float:
    """Gigabytes that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def worked(job: Callable[[], object]) -> float:
    """Seconds of all cores: on a machine that does other things too, the clock says little."""
    start = time.process_time()
    job()
    return time.process_time() - start


# crowd


def crowd_part() -> None:
    from voxrisk.api import measure_crowd
    from voxrisk.types import Embeddings

    def side(people: int, each: int, tag: str) -> Embeddings:
        rng = np.random.default_rng(0)
        centre = 0.4 * rng.standard_normal((ENROLLED, DIMENSIONS), dtype=np.float32)[:people]
        vectors = np.repeat(centre, each, 0)
        rng = np.random.default_rng([1, ord(tag)])
        for start in range(0, len(vectors), 10_000):
            part = vectors[start : start + 10_000]
            part += rng.standard_normal(part.shape, dtype=np.float32)
        speaker = np.repeat([f"s{i:06d}" for i in range(people)], each)
        names = np.char.add(speaker, [f"-{tag}{i % each}" for i in range(len(speaker))])
        return Embeddings(names, speaker, vectors, tag)

    few = side(2_000, 2, "a"), side(1_000, 4, "b")
    measure_crowd(*few, L=(1,), resamples=20)  # what is compiled once for all is not counted
    enrolled, tested = side(ENROLLED, 2, "a"), side(TESTED, 4, "b")
    left, right = enrolled.vectors[::2].copy(), tested.vectors[::4].copy()
    bare = min(worked(lambda: product(left, right)) for _ in range(3))
    whole = worked(lambda: measure_crowd(enrolled, tested, L=(1,)))
    print(whole, bare, peak())


def product(left: np.ndarray, right: np.ndarray) -> None:
    for start in range(0, len(right), 100):  # as no crowd metric keeps all scores either
        right[start : start + 100] @ left.T


def crowd() -> bool:
    whole, bare, gigabytes = alone("crowd")
    print(f"crowd, {ENROLLED:,} × {TESTED:,}: all metrics {whole:.1f} s, bare product {bare:.1f} s")
    good = show("  all metrics with 1,000 resamples / bare product", whole / bare, 3, "times")
    return show("  peak memory", gigabytes, 8, "GB") and good


# manifest


def manifest_file(folder: Path) -> Path:
    """A million rows in four shards, of 50,000 speakers with about three sessions each."""
    import pyarrow as arrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    speaker = rng.integers(0, SPEAKERS, ROWS)
    session = rng.integers(0, 3, ROWS)
    for shard, rows in enumerate(np.array_split(np.arange(ROWS), 4)):
        who, when = speaker[rows], session[rows]
        table = {
            "utterance": [f"{a:05d}-{b}-{k:07d}" for a, b, k in zip(who, when, rows, strict=True)],
            "path": [f"clips/{k % 1000:03d}/common_voice_{k:08d}.mp3" for k in rows],
            "speaker": [f"speaker{a:05d}" for a in who],
            "gender": ["fm"[a % 2] for a in who],
            "session": [f"{a:05d}-{b}" for a, b in zip(who, when, strict=True)],
            "duration": rng.uniform(2, 9, rows.size).round(2),
            "text": [f"the sentence number {k} that somebody has read aloud" for k in rows],
        }
        parquet.write_table(arrow.table(table), folder / f"manifest-{shard:05d}.parquet")
    return folder


def manifest_part(folder: str) -> None:
    from voxrisk.corpus.columns import numbers, read_columns, where
    from voxrisk.corpus.splits import by_session

    # One thread does it all, so the time of the processor is the time of a quiet machine.
    times = []
    start = time.process_time()
    rows = read_columns(folder)
    times.append(time.process_time() - start)
    kept = where(rows, ["gender=f", "duration>=3"])
    times.append(time.process_time() - start)
    by_session(rows)
    times.append(time.process_time() - start)
    from voxrisk.pipeline.pace import sample_of

    sample_of(kept)
    float(np.nansum(numbers(rows, "duration")))
    times.append(time.process_time() - start)
    print(*times, peak())


def manifest() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        manifest_file(Path(folder))
        *times, gigabytes = alone("manifest", folder)
    steps = np.diff([0.0, *times])
    words = zip(("open", "filter", "split", "sample for a plan"), steps, strict=True)
    print(f"manifest of {ROWS:,} rows:", ", ".join(f"{name} {t:.2f} s" for name, t in words))
    good = show("  all of it", times[-1], 10, "s")
    return show("  peak memory", gigabytes, 1, "GB") and good


PARTS = {
    "crowd": crowd_part,
    "manifest": manifest_part,
}
SECTIONS = {"manifest": manifest, "crowd": crowd}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--"):
        PARTS[sys.argv[1][2:]](*sys.argv[2:])
    else:
        results = [SECTIONS[name]() for name in sys.argv[1:] or SECTIONS]
        sys.exit(0 if all(results) else 1)
