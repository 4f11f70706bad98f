"""Word and character errors and speed of the ready recognisers.

    python -m benchmarks.recognisers
    python -m benchmarks.recognisers --utterances 100 whisper-base whisper-small
    python -m benchmarks.recognisers --corpus nemo --language pl whisper-base whisper-small

Without ``--corpus`` it is the shared part of LibriSpeech. Utterances are taken evenly from it all.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import RECOGNISERS, open_recogniser, recogniser_paths
from voxrisk.utility.text import normalise

SHARED = Path(os.environ.get("VOXRISK_SHARED", "../shared"))


def main(corpus: Path, language: str, count: int, names: Sequence[str]) -> None:
    """Hear the same utterances by each recogniser, and count what is wrong."""
    import jiwer

    rows = [row for row in read_corpus(corpus) if row.text]
    rows = rows[:: max(len(rows) // count, 1)][:count]
    rows.sort(key=lambda row: row.duration or 0.0)  # like lengths together
    speech = [read_audio(row, rate=RATE) for row in rows]
    texts = [normalise(row.text or "", language=language) for row in rows]
    seconds = sum(map(len, speech)) / RATE
    words = sum(len(text.split()) for text in texts)
    print(f"{len(rows)} utterances, {seconds / 60:.1f} min, {words} words, one thread", flush=True)
    for name in names:
        hear = open_recogniser(name, recogniser_paths(name))
        hear(speech[:1], language)  # what is done once
        start, used = time.perf_counter(), time.process_time()
        heard = []
        for at in range(0, len(speech), many := RECOGNISERS[name].together):
            texts_of = hear(speech[at : at + many], language)
            heard += [normalise(text, language=language) for text in texts_of]
        took, used = time.perf_counter() - start, time.process_time() - used
        print(
            f"{name:16}  WER {jiwer.wer(texts, heard):.1%}  CER {_characters(texts, heard):.1%}  "
            f"CPU seconds / seconds of speech {used / seconds:.2f} (by the clock "
            f"{took / seconds:.2f})",
            flush=True,
        )


def _characters(texts: Sequence[str], heard: Sequence[str]) -> float:
    """Share of wrong characters, spaces left out, as the package counts them."""
    import jiwer

    return float(
        jiwer.cer([t.replace(" ", "") for t in texts], [h.replace(" ", "") for h in heard])
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recogniser", nargs="*", default=list(RECOGNISERS))
    parser.add_argument("--corpus", type=Path, default=SHARED / "data" / "librispeech_eval")
    parser.add_argument("--language", default="en")
    parser.add_argument("--utterances", type=int, default=100)
    asked = parser.parse_args()
    main(asked.corpus, asked.language, asked.utterances, asked.recogniser)
