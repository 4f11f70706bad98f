"""Speed and memory of the population metrics at the paper's full scale, each beside its limit.

Machines are noisy, so ratios are taken within this run, against rivals measured in it:

1. Singling Out with the whole protocol of the paper (22,024 test speakers × 10 conversations of 192
   dimensions, 495 predicates, 10 folds, 5 draws, N = 30 … 22,024), in seconds, and against the
   authors' package. The package would take about an hour, so it is timed on three predicates and
   one fold and scaled up; building its conversations is not counted against it.
2. Linkability, EER and D_ECE of 22,024 × 4,949 from embeddings against the bare float32 matrix
   product of the same sizes, for an attack that works (EER 17 %) and for one that knows nothing.
3. The whole call with intervals, from utterance embeddings to all curves of one L: seconds and
   peak memory.
4. The command on real embeddings of LibriSpeech test-clean, if the shared data are there.
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

from voxrisk.measure.conversations import Conversations
from voxrisk.measure.crowd import crowd_of_sets
from voxrisk.measure.eer import rocch_eer
from voxrisk.measure.isolation import singling_out
from voxrisk.measure.linking import linkability, rank_trials
from voxrisk.measure.population import Protocol
from voxrisk.measure.scorers import pairs
from voxrisk.measure.zebra import expected_disclosure
from voxrisk.types import Embeddings

A, B, PREDICATES, DIMENSIONS = 22_024, 4_949, 495, 192
SIZES = [30, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, A]
SHARED = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared")) / "data"


def best(job: Callable[[], object], rounds: int = 3) -> float:
    """Least wall time of a few rounds, in seconds; the first call is not counted."""
    job()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def show(name: str, found: float, limit: float, unit: str, *, least: bool = False) -> bool:
    word = "at least" if least else "limit"
    print(f"{name:66s} {found:9.2f} {unit} ({word} {limit:g})", flush=True)
    return found >= limit if least else found <= limit


def unit(vectors: np.ndarray) -> np.ndarray:
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def full_singling_out() -> bool:
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((A, DIMENSIONS))
    vectors = unit(0.4 * np.repeat(centre, 10, 0) + rng.standard_normal((10 * A, DIMENSIONS)))
    own = np.sort(rng.choice(A, PREDICATES, replace=False))
    noise = rng.standard_normal((PREDICATES, DIMENSIONS)) / np.sqrt(30)
    predicates = unit(0.4 * centre[own] + noise)
    names = np.array([f"s{i:05d}" for i in range(A)])
    tested = Conversations(names, 10 * np.arange(A + 1), vectors, np.array([], str))
    ours = best(lambda: singling_out(predicates, own, tested, SIZES))
    theirs = package_time(tested, predicates[:3], own[:3])
    good = show("Singling Out, whole protocol of the paper", ours, 15, "s")
    print(f"{'  the package, 3 predicates and 1 fold scaled up':66s} {theirs:9.0f} s")
    return show("  the package / ours", theirs / ours, 200, "times", least=True) and good


def package_time(tested: Conversations, predicates: np.ndarray, own: np.ndarray) -> float:
    """Seconds the package needs for everything, from a part of it."""
    from legal_eval.embeddings import SpeakerConversations
    from legal_eval.metrics import score_conversations
    from legal_eval.metrics import singling_out as theirs

    spoken = {
        name: SpeakerConversations(name, block[0], list(block[1:]))
        for name, block in zip(tested.speaker, tested.vectors.reshape(A, 10, -1), strict=True)
    }
    enrolled = dict(zip(tested.speaker[own], predicates, strict=True))
    start = time.perf_counter()
    scores = score_conversations(enrolled, spoken)
    scored = time.perf_counter()
    for size in SIZES:
        theirs(scores, size, n_runs=5)
    counted = time.perf_counter()
    # Scoring costs about the same for three predicates as for all; counting grows with them.
    return 10 * ((scored - start) + (counted - scored) * PREDICATES / len(predicates))


def linking(strength: float) -> bool:
    rng = np.random.default_rng(1)
    centre = rng.standard_normal((A, DIMENSIONS))
    enroll = unit(strength * centre + rng.standard_normal((A, DIMENSIONS)))
    own = np.sort(rng.choice(A, B, replace=False))
    trial = unit(strength * centre[own] + rng.standard_normal((B, DIMENSIONS)))
    enroll32, trial32 = enroll.astype(np.float32), trial.astype(np.float32)

    def ours() -> tuple[float, float, float]:
        ranking = rank_trials(pairs(trial, enroll, enroll_rows=False), own)
        linked = float(linkability(ranking.higher, A, SIZES).mean())
        return linked, rocch_eer(ranking.roc), expected_disclosure(ranking.roc)

    # In turn, so that a busy neighbour slows both.
    bare, ready, whole = [], [], []
    eer = ours()[1]
    room = np.ones((A, B), np.float32)
    for _ in range(7):
        bare.append(once(lambda: enroll32 @ trial32.T))
        ready.append(once(lambda: np.matmul(enroll32, trial32.T, out=room)))
        whole.append(once(ours))
    name = f"Linkability + EER + D_ECE / bare matrix product, EER {eer:.0%}"
    print(f"{'  bare product, ours':66s} {min(bare):9.2f} s, {min(whole):.2f} s")
    print(
        f"{'  ours / product into memory that is ready':66s} {min(whole) / min(ready):9.2f} times"
    )
    return show(name, min(whole) / min(bare), 2, "times")


def once(job: Callable[[], object]) -> float:
    """Seconds of one call, begun when the threads of the product before have come to rest.

    They go on waiting for work for a tenth of what is measured here, and hold up a core.
    """
    time.sleep(0.1)
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def corpus(n: int, utterances: int, tag: str, keep: np.ndarray) -> Embeddings:
    """Made-up embeddings of the kept speakers, in float32 as an extractor leaves them."""
    rng = np.random.default_rng(2)
    centre = 0.4 * rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    rng = np.random.default_rng([3, ord(tag)])
    vectors = np.repeat(centre[keep], utterances, 0)
    for start in range(0, len(vectors), 10_000):
        part = vectors[start : start + 10_000]
        part += rng.standard_normal(part.shape, dtype=np.float32)
    speaker = np.repeat([f"s{i:05d}" for i in keep], utterances)
    names = np.array([f"{s}-{tag}{k}" for k, s in enumerate(speaker)])
    return Embeddings(names, speaker, vectors, tag)


def whole_call() -> None:
    """Runs in a process of its own, so that its peak memory is its own."""
    a = corpus(A, 10, "a", np.arange(A))
    b = corpus(A, 30, "b", np.arange(0, A, 4)[:B])
    protocol = Protocol(lengths=(1,), sizes=SIZES)
    start = time.perf_counter()
    crowd_of_sets(a, b, protocol=protocol)
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def memory() -> bool:
    command = [sys.executable, __file__, "whole"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, gigabytes = (float(cell) for cell in out.split())
    print(f"{'All metrics of L = 1 with 1,000 resamples, from utterances':66s} {seconds:9.2f} s")
    return show("  peak memory of the process", gigabytes, 2, "GB")


def real_voices() -> bool:
    source = SHARED / "golden" / "librispeech_testclean_ecapa"
    if not source.is_dir():
        print("LibriSpeech test-clean: skipped, no shared data")
        return True
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "voxrisk", "population", str(source), "-L", "1,3,10",
                   "-N", "5,10,20", "-o", folder, "--force"]  # fmt: skip
        seconds = best(lambda: subprocess.run(command, check=True, capture_output=True))
    return show("voxrisk population on LibriSpeech test-clean, L = 1, 3, 10", seconds, 5, "s")


if __name__ == "__main__":
    if sys.argv[1:] == ["whole"]:
        whole_call()
    elif sys.argv[1:] == ["linking"]:  # this part alone, a minute
        sys.exit(0 if all([linking(0.4), linking(0.0)]) else 1)
    else:
        results = [full_singling_out(), linking(0.4), linking(0.0), memory(), real_voices()]
        sys.exit(0 if all(results) else 1)
