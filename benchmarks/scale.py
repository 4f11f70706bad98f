"""What holds at a hundred times the size: speed and memory where corpora and crowds are large.

    python benchmarks/scale.py [crowd] [engine] [manifest] [memory]

Machines are noisy, so times are ratios within this run wherever there is something to compare with.

crowd     100,000 enrolled × 10,000 tested, all metrics of L = 1 with 1,000 resamples: peak memory,
          and the time against the bare float32 matrix product of the same sizes.
manifest  A Parquet manifest of a million rows: open, filter, split, sample; CPU time and memory.
memory    10,000 short utterances through anonymize and embed in one process: memory on the way.
engine    The same work on one process, on two (``local``) and on two workers of Ray: items that
          wait for the clock, so that busy neighbours do not count, and real anonymization.
"""

import os
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
MANY = 10_000
ITEMS, SECONDS = 480, 0.5  # two minutes on two workers
SHARED = (
    Path(os.environ.get("VOXRISK_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
)


def show(name: str, found: float, limit: float, unit: str, *, least: bool = False) -> bool:
    word = "at least" if least else "limit"
    print(f"{name:66s} {found:9.2f} {unit} ({word} {limit:g})", flush=True)
    return found >= limit if least else found <= limit


def alone(part: str, *words: str) -> list[float]:
    """Numbers that a part prints in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, __file__, f"--{part}", *words]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(cell) for cell in out.split()]


def peak() -> float:
    """Gigabytes that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def once(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


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
    bare = min(once(lambda: product(left, right)) for _ in range(3))
    whole = once(lambda: measure_crowd(enrolled, tested, L=(1,)))
    print(whole, bare, peak())


def product(left: np.ndarray, right: np.ndarray) -> None:
    for start in range(0, len(right), 100):  # as no crowd metric keeps all scores either
        right[start : start + 100] @ left.T


def crowd() -> bool:
    whole, bare, gigabytes = alone("crowd")
    print(f"crowd, {ENROLLED:,} × {TESTED:,}: all metrics {whole:.1f} s, bare product {bare:.1f} s")
    print(f"{'  all metrics with 1,000 resamples / bare product':66s} {whole / bare:9.2f} times")
    return show("  peak memory", gigabytes, 8, "GB")


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
    from voxrisk.pipeline.planning import sample_of

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


# memory


def memory_part(stage: str, folder: str) -> None:
    """Print (utterances done, megabytes) again and again while one process does them all."""
    import threading

    from voxrisk.attack.embed import embed_corpus
    from voxrisk.corpus import read_corpus
    from voxrisk.protect.run import anonymize

    rows, out = read_corpus(folder), Path(folder, stage)
    seen: list[tuple[int, float]] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            place = out / "audio" if stage == "anonymize" else out.with_name("v.npz.parts")
            seen.append((len(list(place.glob("*.*"))), pages * resource.getpagesize() / 2**20))

    watcher = threading.Thread(target=watch)
    watcher.start()
    if stage == "anonymize":
        anonymize(rows, out, "mcadams", workers=1)
    else:
        embed_corpus(rows, "longterm", Path(folder, "v.npz"), workers=1)
    ended.set()
    watcher.join()
    for done, megabytes in seen:
        print(done, megabytes)


def memory() -> bool:
    from voxrisk.corpus import Utterance, write_audio, write_corpus

    good = True
    with tempfile.TemporaryDirectory() as folder:
        rng, rows = np.random.default_rng(0), []
        for k in range(MANY):
            path = Path(folder, "speech", f"{k:05d}.wav")
            noise = rng.standard_normal(8_000).cumsum() * 0.001
            write_audio(path, np.clip(noise, -0.9, 0.9).astype(np.float32), rate=16_000, sync=False)
            rows.append(Utterance(f"u{k:05d}", path, f"s{k % 100}", duration=0.5))
        write_corpus(Path(folder, "manifest.csv"), rows)
        for stage in ("anonymize", "embed"):
            numbers = np.array(alone("memory", stage, folder)).reshape(-1, 2)
            done, megabytes = numbers.T
            share = done / max(done.max(), 1)
            early, late = (
                np.median(megabytes[(share > low) & (share <= high)])
                for low, high in ((0.1, 0.3), (0.8, 1.0))
            )
            shown = ", ".join(
                f"{np.interp(s, share, megabytes):.0f}" for s in (0.1, 0.25, 0.5, 0.75, 1.0)
            )
            print(f"{stage} of {MANY:,} utterances: {shown} MB at 10, 25, 50, 75 and 100 %")
            good &= show("  late / early", late / early, 1.1, "times")
            np.savetxt(Path(tempfile.gettempdir(), f"voxrisk-memory-{stage}.txt"), numbers)
    return good


# engine


def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def clock_part(engine: str, workers: str) -> None:
    from voxrisk import shards

    items = [SECONDS] * ITEMS
    with shards.engine(engine):
        print(once(lambda: list(shards.run(wait, items, workers=int(workers)))))


def speech_part(engine: str, workers: str) -> None:
    """Two minutes of real anonymization on two cores, from the shared data."""
    from voxrisk import shards
    from voxrisk.corpus import read_corpus
    from voxrisk.protect.run import anonymize

    rows = read_corpus(SHARED / "librispeech_eval")
    with tempfile.TemporaryDirectory() as folder, shards.engine(engine):
        took = once(lambda: anonymize(rows, Path(folder) / "out", "mcadams", workers=int(workers)))
        print(took, cpu_of_all())


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


def engine() -> bool:
    good = True
    jobs = [("items that wait", "clock")]
    if (SHARED / "librispeech_eval").is_dir():
        jobs.append(("mcadams on librispeech_eval", "speech"))
    for name, part in jobs:
        (two, *work), (cluster, *ray_work), (one, *_) = (
            alone(part, "local", "2"), alone(part, "ray", "2"), alone(part, "local", "1"),
        )  # fmt: skip
        print(f"{name}: 1 process {one:.1f} s, local 2 {two:.1f} s, ray 2 {cluster:.1f} s")
        if work:
            print(f"  work of all processes: local 2 {work[0]:.1f} s, ray 2 {ray_work[0]:.1f} s")
            # On busy machines the clock says little; how much work it was does not change.
            good &= show("  work of ray / work of local", ray_work[0] / work[0], 1.15, "times")
        good &= show("  ray with 2 workers / local with 2", cluster / two, 1.15, "times")
        good &= show("  1 process / local with 2", one / two, 1.8, "times", least=True)
    return good


PARTS = {
    "crowd": crowd_part,
    "manifest": manifest_part,
    "memory": memory_part,
    "clock": clock_part,
    "speech": speech_part,
}
SECTIONS = {"manifest": manifest, "memory": memory, "crowd": crowd, "engine": engine}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--"):
        PARTS[sys.argv[1][2:]](*sys.argv[2:])
    else:
        results = [SECTIONS[name]() for name in sys.argv[1:] or SECTIONS]
        sys.exit(0 if all(results) else 1)
