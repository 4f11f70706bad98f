"""Utility figures of a real corpus and what they cost: the tables of docs/utility.md.

python benchmarks/utility.py librispeech_eval --utterances 100 --with mcadams --cost
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.protect.run import anonymize
from voxrisk.utility import Utility, measure_utility
from voxrisk.utility.pitch import COMPAT, track_pitch
from voxrisk.utility.quality import dnsmos
from voxrisk.utility.transcripts import transcribe

RECOGNISERS = ("whisper-tiny.en", "whisper-base")


def spread_over_speakers(rows: list[Utterance], count: int) -> list[Utterance]:
    """The first utterance of every speaker, then the second of each, and so on."""
    turn: dict[str, int] = {}
    order = []
    for row in rows:
        turn[row.speaker] = turn.get(row.speaker, -1) + 1
        order.append(turn[row.speaker])
    chosen = sorted(range(len(rows)), key=lambda i: (order[i], i))[:count]
    return [rows[i] for i in chosen]


def show(title: str, measured: Utility) -> None:
    for name, sides in measured.figures.items():
        for side, e in sides.items():
            span = f"[{e.interval.low:.4f}, {e.interval.high:.4f}]" if e.interval else ""
            print(f"{title:28} {name:20} {side:11} {e.value:.4f} {span} {dict(e.n)}", flush=True)


def cost(rows: list[Utterance]) -> None:
    """Processor seconds for a second of audio, one thread."""
    seconds = sum(len(read_audio(row)) for row in rows) / 16_000

    def rtf(label: str, work: Callable[[], object]) -> None:
        work()  # loads the model
        started = time.process_time()
        work()
        print(f"RTF {label}: {(time.process_time() - started) / seconds:.3f}", flush=True)

    for asr in RECOGNISERS:
        rtf(asr, lambda asr=asr: transcribe(rows, asr=asr, workers=1))
    rtf("dnsmos", lambda: [dnsmos(read_audio(row)) for row in rows])
    rtf("pitch", lambda: [track_pitch(read_audio(row)) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--utterances", type=int, default=100)
    parser.add_argument("--cost", action="store_true", help="Also measure real-time factors.")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--with", dest="anonymizers", nargs="*", default=["mcadams", "world"])
    choice = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = spread_over_speakers(read_corpus(choice.corpus), choice.utterances)
    print(f"{len(rows)} utterances, {sum(r.duration or 0 for r in rows):.0f} s")
    if choice.cost:
        cost(rows[:6])
    with tempfile.TemporaryDirectory() as scratch:
        journal = Path(scratch) / "journal.jsonl"
        for name in choice.anonymizers:
            other = anonymize(rows, Path(scratch) / name, name, workers=choice.workers)
            options = {"journal": journal, "workers": choice.workers}
            show(f"{name}, {RECOGNISERS[0]}", measure_utility(rows, other, **options))
            both = {"figures": ("pitch_correlation",), "compat": COMPAT}
            show(f"{name}, {COMPAT}", measure_utility(rows, other, **both, **options))
            base = {"figures": ("wer",), "asr": RECOGNISERS[1]}
            show(f"{name}, {RECOGNISERS[1]}", measure_utility(rows, other, **base, **options))


if __name__ == "__main__":
    main()
