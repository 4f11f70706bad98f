"""What a standard evaluation reads, hashes and costs, here and in another version of the code.

python benchmarks/evaluate.py --before ../before --rounds 2

Both versions evaluate the same synthetic voices, in turn, each as a program of its own in a fresh
folder. Opens and hashes are counted by a ``sitecustomize`` that only this program puts in the way,
in worker processes too; it counts the reading of audio that the user gave and of audio that the
anonymizer made, and not of copies that a version keeps for itself.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
COUNTER = """
import hashlib, json, os, sys

AUDIO = (".wav", ".flac", ".ogg", ".opus", ".mp3")
out = os.open(os.environ["COUNTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def said(what, path, amount):
    os.write(out, (json.dumps([what, str(path), amount]) + "\\n").encode())

def is_audio(path):
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).endswith(AUDIO)

def opened(event, args):
    # Writing, and opening to wait for the disk, read nothing.
    if event == "open" and args[1] in ("r", "rb") and is_audio(args[0]):
        said("open", args[0], 1)

sys.addaudithook(opened)
import soundfile
start, read, digest = soundfile.SoundFile.__init__, soundfile.SoundFile.read, hashlib.file_digest

def counted_start(self, file, mode="r", *args, **options):
    start(self, file, mode, *args, **options)
    if mode == "r" and is_audio(file):  # libsndfile opens a path by itself, unseen by Python
        said("open", file, 1)

def counted_read(self, *args, **options):
    samples = read(self, *args, **options)
    said("decoded", self.name, len(samples) / self.samplerate)
    return samples

def counted_digest(stream, *args, **options):
    name = getattr(stream, "name", "")
    if is_audio(name) or str(name).endswith(".heard"):
        said("hashed", name, os.fstat(stream.fileno()).st_size)
    return digest(stream, *args, **options)

soundfile.SoundFile.__init__, soundfile.SoundFile.read = counted_start, counted_read
hashlib.file_digest = counted_digest
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one run read: opens of each file by kind, seconds decoded, bytes hashed.

    ``copies`` are the bytes of decoded copies that were hashed, ``hashed`` those of audio files.
    """

    opens: dict[str, Counter[str]]
    decoded: float
    hashed: int
    copies: int


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation: what it read, and what it took."""

    counts: Counts
    seconds: float
    cpu: float
    stages: dict[str, float]


def counted(log: Path, original: Path) -> Counts:
    opens: dict[str, Counter[str]] = {"original": Counter(), "anonymized": Counter()}
    decoded, hashed, copies = 0.0, 0, 0
    for line in log.read_text().splitlines():
        what, path, amount = json.loads(line)
        if what == "decoded":
            decoded += amount
        elif what == "hashed" and path.endswith(".heard"):
            copies += amount
        elif what == "hashed":
            hashed += amount
        elif Path(path).is_relative_to(original):
            opens["original"][path] += 1
        elif "anonymize-" in path:
            opens["anonymized"][path] += 1
    return Counts(opens, decoded, hashed, copies)


def evaluate(source: Path, original: Path, scratch: Path, more: list[str]) -> Run:
    """One evaluation by the code in ``source``."""
    scratch.mkdir()
    (scratch / "sitecustomize.py").write_text(COUNTER)
    log = scratch / "counted.jsonl"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(scratch), str(source / "src"))),
        "COUNTED": str(log),
    }
    words = ["evaluate", "--original", str(original), "--anonymizer", "mcadams"]
    words += ["--effort", "quick", "-o", str(scratch / "run"), *more]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "voxrisk", *words],
        env=environment,
        cwd=scratch,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    facts = json.loads((scratch / "run" / "run.json").read_text())
    return Run(
        counted(log, original),
        seconds,
        cpu,
        {f"{t['stage']} {t['label']}": t["seconds"] for t in facts["stages"] if not t["reused"]},
    )


def show(runs: dict[str, list[Run]], files: int) -> None:
    """Counts of the last round; of times the best of all rounds."""
    names = list(runs)
    last = {name: runs[name][-1] for name in names}
    rows: dict[str, list[str]] = {}
    for kind in ("original", "anonymized"):
        opens = {name: last[name].counts.opens[kind] for name in names}
        rows[f"opens of a file, {kind}: mean"] = [f"{opens[n].total() / files:.2f}" for n in names]
        rows[f"opens of a file, {kind}: most"] = [str(max(opens[n].values())) for n in names]
    rows["decoded seconds"] = [f"{last[n].counts.decoded:.0f}" for n in names]
    rows["audio bytes hashed, MB"] = [f"{last[n].counts.hashed / 1e6:.2f}" for n in names]
    rows["copies hashed, MB"] = [f"{last[n].counts.copies / 1e6:.2f}" for n in names]
    rows["seconds, best"] = [f"{min(r.seconds for r in runs[n]):.1f}" for n in names]
    rows["CPU seconds, best"] = [f"{min(r.cpu for r in runs[n]):.1f}" for n in names]
    for stage in dict.fromkeys(s for n in names for s in last[n].stages):
        cells = (
            min((r.stages[stage] for r in runs[n] if stage in r.stages), default=None)
            for n in names
        )
        rows[f"  {stage}"] = ["" if cell is None else f"{cell:.1f}" for cell in cells]
    width = max(map(len, rows))
    print(" " * width, *(f"{name:>9}" for name in names))
    for label, figures in rows.items():
        print(f"{label:{width}}", *(f"{cell:>9}" for cell in figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="A checkout of another version.")
    parser.add_argument("--voices", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("more", nargs="*", help="Options of `voxrisk evaluate`, after --.")
    choice = parser.parse_args()
    from voxrisk.corpus.demo import make_demo

    versions = {"before": choice.before.resolve()} if choice.before else {}
    versions["now"] = HERE
    runs: dict[str, list[Run]] = {name: [] for name in versions}
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder).resolve() / "speech"
        rows = make_demo(original, voices=choice.voices, sentences=choice.sentences)
        for turn in range(choice.rounds):
            for name, source in versions.items():
                scratch = Path(folder) / f"{name}-{turn}"
                runs[name].append(evaluate(source, original, scratch, choice.more))
        seconds = sum(row.duration or 0.0 for row in rows)
        print(f"{len(rows)} utterances, {seconds:.0f} s of speech, {os.cpu_count()} cores")
        show(runs, len(rows))


if __name__ == "__main__":
    main()
