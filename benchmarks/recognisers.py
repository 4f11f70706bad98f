"""Word and character errors and speed of the ready recognisers on LibriSpeech.

python -m benchmarks.recognisers [utterances] [recogniser …]
"""

import os
import sys
import time
from pathlib import Path

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import RECOGNISERS, open_recogniser, recogniser_paths
from voxrisk.utility.text import normalise

SHARED = Path(os.environ.get("VOXRISK_SHARED", "../shared"))


def main(count: int, names: list[str]) -> None:
    import jiwer

    rows = read_corpus(SHARED / "data" / "librispeech_eval")
    rows = rows[:: max(len(rows) // count, 1)][:count]
    rows.sort(key=lambda row: row.duration or 0.0)  # like lengths together
    speech = [read_audio(row, rate=RATE) for row in rows]
    texts = [normalise(row.text or "") for row in rows]
    seconds = sum(map(len, speech)) / RATE
    words = sum(len(text.split()) for text in texts)
    print(f"{len(rows)} utterances, {seconds / 60:.1f} min, {words} words, one thread")
    for name in names:
        hear = open_recogniser(name, recogniser_paths(name))
        hear(speech[:1], "en")  # what is done once
        start, used = time.perf_counter(), time.process_time()
        many = RECOGNISERS[name].together
        heard = []
        for at in range(0, len(speech), many):
            heard += [normalise(text) for text in hear(speech[at : at + many], "en")]
        took, used = time.perf_counter() - start, time.process_time() - used
        print(
            f"{name:16}  WER {jiwer.wer(texts, heard):.1%}  CER {jiwer.cer(texts, heard):.1%}  "
            f"CPU seconds / seconds of speech {used / seconds:.2f} (by the clock "
            f"{took / seconds:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    main(many, sys.argv[2:] or list(RECOGNISERS))
