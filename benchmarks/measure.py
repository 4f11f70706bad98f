"""Speed and memory of the score metrics, each as a ratio within this run.

Machines are noisy, so every figure is the best of a few rounds and stands beside its limit:

1. PAV, ROCCH-EER, Cllr, D_ECE, log10 l and D_sys of 10 million scores against one ``np.sort``.
2. Peak memory of that against the size of the scores.
3. DeID and G_VD of 20 speakers × 30 segments, in seconds.
4. 1,000 bootstrap resamples of 10⁵ trials against one evaluation of them.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from voxrisk import measure


def best(job: Callable[[], object], rounds: int = 5) -> float:
    """Least wall time of a few rounds, in seconds; the first call is not counted."""
    job()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def show(name: str, found: float, limit: float, unit: str = "times") -> bool:
    print(f"{name:66s} {found:8.2f} {unit} (limit {limit:g})", flush=True)
    return found <= limit


def figures(target: np.ndarray, nontarget: np.ndarray) -> tuple[float, ...]:
    curve = measure.roc(target, nontarget)
    return (
        measure.rocch_eer(curve),
        measure.min_cllr(curve),
        measure.expected_disclosure(curve),
        measure.worst_case_disclosure(curve),
        measure.cllr(target, nontarget),
        measure.d_sys(target, nontarget),
    )


def ten_million(share: float) -> bool:
    rng = np.random.default_rng(0)
    n_target = int(share * 10_000_000)
    target, nontarget = rng.normal(2, 1, n_target), rng.normal(size=10_000_000 - n_target)
    scores = np.concatenate((target, nontarget))
    sort, job = best(lambda: np.sort(scores), 7), best(lambda: figures(target, nontarget), 7)
    name = f"10 million scores, {share:.0%} targets: all figures / np.sort"
    return show(name, job / sort, 4)


def memory() -> bool:
    """A process of its own: highest resident size less what it held before the scores were made."""
    code = (
        "import numpy as np, sys; sys.path.insert(0, 'benchmarks')\n"
        "from pathlib import Path\n"
        "from measure import figures\n"
        "def kib(key): return int(Path('/proc/self/status').read_text().split(key)[1].split()[0])\n"
        "rng = np.random.default_rng(0)\n"
        "figures(rng.normal(2, 1, 10), rng.normal(size=10))\n"
        "Path('/proc/self/clear_refs').write_text('5')\n"
        "base = kib('VmRSS:')\n"
        "figures(rng.normal(2, 1, 5_000_000), rng.normal(size=5_000_000))\n"
        "print((kib('VmHWM:') - base) * 1024 / 80e6)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return show("10 million scores: peak memory, scores included / scores", float(out.stdout), 6)


def similarity() -> bool:
    rng = np.random.default_rng(0)
    speaker = np.repeat(np.arange(20), 30)
    left, right = np.divmod(np.arange(600 * 600), 600)
    keep = left != right
    left, right = speaker[left[keep]], speaker[right[keep]]
    same = left == right
    oo, op, pp = (rng.normal(size=left.size) + pull * same for pull in (3.0, 0.3, 1.5))

    def job() -> None:
        a, b, c = (measure.similarity_matrix(measure.Trials(s, left, right)) for s in (oo, op, pp))
        measure.de_identification(a, b)
        measure.distinctiveness_gain(a, c)

    name = "DeID and G_VD, 20 speakers x 30 segments (VoicePrivacy script: 28 s)"
    return show(name, best(job), 0.2, "s")


def resampling() -> bool:
    rng = np.random.default_rng(0)
    n, speakers = 100_000, 40
    enroll = rng.integers(0, speakers, n)
    trial = np.where(rng.random(n) < 0.05, enroll, rng.integers(0, speakers, n))
    scored = measure.Trials(rng.normal(size=n) + 2.0 * (enroll == trial), enroll, trial)
    weights = measure.speaker_weights(speakers, resamples=1000, seed=0)
    once = best(lambda: measure.score_metrics(scored.target, scored.nontarget), 20)
    draws = best(lambda: measure.bootstrap(scored, weights), 5)
    return show("1,000 resamples of 100,000 trials, all figures / one evaluation", draws / once, 60)


def start() -> bool:
    good = True
    for name, code in (("import voxrisk", "import voxrisk"), ("voxrisk --help", "")):
        command = [sys.executable, *(["-c", code] if code else ["-m", "voxrisk", "--help"])]
        took = best(lambda c=command: subprocess.run(c, capture_output=True, check=True))  # type: ignore[misc]
        good &= show(name, took, 0.3, "s")
    return good


if __name__ == "__main__":
    held = [ten_million(0.5), ten_million(0.01), memory(), similarity(), resampling(), start()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the whole benchmark: {peak:.2f} GiB")
    sys.exit(0 if all(held) else 1)
