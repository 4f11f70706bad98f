"""Is the memory of a stage flat, however long the corpus? One process does all utterances.

    python benchmarks/memory.py [FOLDER for memory.svg]

10,000 utterances of half a second (noise that wanders: what is in them changes no amount of memory)
through ``anonymize`` (McAdams) and ``embed`` (the light encoder ``longterm``), and 2,000 of them
through ECAPA where its weights are at hand. A thread looks at the memory of the process ten times a
second. Each stage has a process of its own, so that no other one's memory counts.
"""

import json
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from voxrisk.corpus import Utterance, read_corpus, write_audio, write_corpus
from voxrisk.report import style
from voxrisk.report.figure import Entry, Figure, arrange
from voxrisk.report.svg import Axis, Plot, round_ticks

MANY, RATE, SECONDS = 10_000, 16_000, 0.5
LIMIT = 1.1  # memory late in the run / early in it
EARLY, LATE = (0.1, 0.3), (0.8, 1.0)  # shares of the utterances


class Stage(NamedTuple):
    """A stage, with what, and on how many utterances."""

    what: str
    name: str
    count: int


STAGES = (
    Stage("anonymize", "mcadams", MANY),
    Stage("embed", "longterm", MANY),
    Stage("embed", "ecapa-voxceleb", MANY // 5),
)
Curve = list[tuple[float, float]]  # (utterances done, megabytes)


def make_corpus(folder: Path) -> None:
    rng, rows = np.random.default_rng(0), []
    for k in range(MANY):
        path = folder / "speech" / f"{k:05d}.wav"
        noise = rng.standard_normal(round(RATE * SECONDS)).cumsum() * 0.001
        write_audio(path, np.clip(noise, -0.9, 0.9).astype(np.float32), rate=RATE, sync=False)
        rows.append(Utterance(f"u{k:05d}", path, f"s{k % 100}", duration=SECONDS))
    write_corpus(folder / "manifest.csv", rows)


def watch(stage: Stage, folder: Path) -> Curve:
    """In a process of its own: do the stage, and look at its journal and memory meanwhile."""
    from voxrisk.attack.embed import SHARD_SECONDS, embed_corpus
    from voxrisk.protect.run import JOURNAL, anonymize

    rows, out = read_corpus(folder)[: stage.count], folder / f"{stage.name}.npz"
    journal, each = out / JOURNAL, 1.0  # utterances that a line of the journal stands for
    if stage.what == "embed":
        journal = out.with_name(out.name + ".parts") / "journal.jsonl"
        each = SHARD_SECONDS / SECONDS
    seen: Curve = []
    ended = threading.Event()

    def look() -> None:
        done = read = 0
        while not ended.wait(0.1):
            if journal.is_file():
                with journal.open("rb") as stream:  # what is new: a whole journal would be memory
                    stream.seek(read)
                    new = stream.read()
                done, read = done + new.count(b"\n"), read + len(new)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            megabytes = pages * resource.getpagesize() / 2**20
            seen.append((min(done * each, stage.count), megabytes))

    watcher = threading.Thread(target=look)
    watcher.start()
    if stage.what == "embed":
        embed_corpus(rows, stage.name, out, workers=1)
    else:
        anonymize(rows, out, stage.name, workers=1)
    ended.set()
    watcher.join()
    return seen


def level(curve: Curve, stage: Stage, part: tuple[float, float]) -> float:
    """Median memory while some part of the utterances was done."""
    low, high = (share * stage.count for share in part)
    return float(np.median([m for done, m in curve if low < done <= high]))


def draw(curves: dict[Stage, Curve]) -> Figure:
    highest = 1.1 * max(m for curve in curves.values() for _, m in curve)
    across = Axis(0, MANY, [(t, f"{t:,.0f}") for t in round_ticks(0, MANY)], "utterances done")
    ticks = [(t, f"{t:g} MB") for t in round_ticks(0, highest)]
    plot = Plot(across, Axis(0, highest, ticks, ""), "", width=620, height=280)
    legend = []
    for i, (stage, curve) in enumerate(curves.items()):
        plot.line(curve, style.colour(i))
        ratio = level(curve, stage, LATE) / level(curve, stage, EARLY)
        words = f"{stage.what} {stage.name}, {stage.count:,} utterances: late / early {ratio:.2f}"
        legend.append(Entry(words=words, colour=style.colour(i)))
    return arrange(
        "Memory of one process while it works through a corpus",
        "Resident memory against utterances done: " + "; ".join(e.words for e in legend) + ".",
        [[("", plot)]],
        legend=legend,
    )


def main(folder: Path | None) -> bool:
    curves = {}
    with tempfile.TemporaryDirectory() as work:
        make_corpus(Path(work))
        for stage in STAGES:
            command = [sys.executable, __file__, "--watch", work, *map(str, stage)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                print(f"{stage.what} {stage.name}: could not run, see above", flush=True)
                continue
            curves[stage] = [(a, b) for a, b in json.loads(done.stdout)]
            early, late = (level(curves[stage], stage, part) for part in (EARLY, LATE))
            print(
                f"{stage.what} {stage.name}, {stage.count:,} utterances: {early:.0f} MB early, "
                f"{late:.0f} MB late, {late / early:.3f} times (limit {LIMIT:g})", flush=True,
            )  # fmt: skip
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.svg").write_text(draw(curves).svg(), encoding="utf-8")
    ratios = [level(c, s, LATE) / level(c, s, EARLY) for s, c in curves.items()]
    return len(ratios) >= 2 and max(ratios) <= LIMIT


if __name__ == "__main__":
    if sys.argv[1:2] == ["--watch"]:
        place, what, name, count = sys.argv[2:]
        print(json.dumps(watch(Stage(what, name, int(count)), Path(place))))
    else:
        sys.exit(0 if main(Path(sys.argv[1]) if len(sys.argv) > 1 else None) else 1)
