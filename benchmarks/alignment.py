"""Are the word times right, and do slices hold the words they claim?

Five checks. Pauses in LibriSpeech that the level of the signal shows by itself. Known words hidden
from the dictionary: how far do the others move? Synthetic speech, where espeak-ng says when each
word begins: the truth. LibriSpeech, against Whisper's cross-attention alignment of the same text;
its words begin where the one before ended, so only word ends, and starts without a pause before
them, can be compared, and its times are late by a constant that the synthetic speech shows. And
Whisper as a recogniser of the slices. A better second opinion is second_aligner.py. Whisper tiny.en
comes from the model store:

    python benchmarks/alignment.py CORPUS --every 4
"""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer

from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.models import model_path
from voxrisk.protect.aligner import align, align_utterance
from voxrisk.protect.slice_corpus import Plan, slice_corpus
from voxrisk.protect.slicing import Word

PAUSE = 0.02
Aligned = dict[str, list[Word]]


def plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w' ]+", " ", text.lower()).split())


def whisper_times(model: WhisperModel, tokenizer: Tokenizer, row: Utterance) -> list[Word]:
    features = model.feature_extractor(read_audio(row))
    encoded = model.encode(pad_or_trim(features[:, :3000]))
    tokens = [t for t in tokenizer.encode(" " + plain(row.text or "")) if t < tokenizer.eot]
    found: list[dict[str, Any]] = model.find_alignment(
        tokenizer, [tokens], encoded, min(features.shape[-1], 3000)
    )[0]
    words: list[Word] = []
    for item in found:
        text, start, end = item["word"], float(item["start"]), float(item["end"])
        if words and not text.startswith(" "):  # the end of a word that was split
            words[-1] = Word(words[-1].text + text, words[-1].start, end)
        else:
            words.append(Word(text.strip(), start, end))
    return words


def compare(ours: list[Word], theirs: list[Word]) -> tuple[list[float], list[float]]:
    """Differences of word ends, and of word starts without a pause before them, in seconds."""
    ends, starts = [], []
    for k, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        if one.start is None or one.end is None or two.start is None or two.end is None:
            continue
        ends.append(one.end - two.end)
        before = ours[k - 1].end if k else None
        if before is not None and one.start - before < PAUSE:
            starts.append(one.start - two.start)
    return ends, starts


def known_times(model: WhisperModel, tokenizer: Tokenizer) -> float:
    """Both aligners on speech with known word starts; returns by how much Whisper is late."""
    voices = ("f2", "m3", "Andy", "linda", "Diogo", "Annie", "m7", "steph")
    lines = [
        Line(SENTENCES[(7 * i + k) % len(SENTENCES)], f"en-us+{voice}")
        for i, voice in enumerate(voices)
        for k in range(7)
    ]
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for line, said in zip(lines, speak_all(lines), strict=True):
            path = Path(folder, "said.wav")
            write_audio(path, said.samples, rate=said.rate)
            row = Utterance("said", path, line.voice, text=line.text)
            for found, words in (
                (ours, align_utterance(row)),
                (theirs, whisper_times(model, tokenizer, row)),
            ):
                # espeak-ng counts some pairs of short words ("of the") as one
                if len(words) == len(said.word_starts):
                    pairs = list(zip(words, said.word_starts, strict=True))[1:]
                    found += [w.start - t for w, t in pairs if w.start is not None]
    report("known times, embedded aligner", ours)
    report("known times, Whisper", theirs)
    late = float(np.median(theirs))
    report(f"known times, Whisper less {late * 1000:.0f} ms", [d - late for d in theirs])
    return late


def report(name: str, differences: list[float]) -> None:
    d = np.array(differences)
    near = {ms: int((np.abs(d) <= ms / 1000 + 1e-9).sum()) for ms in (50, 100)}
    print(
        f"{name}: {near[50]} of {d.size} within 50 ms ({near[50] / d.size:.1%}), "
        f"{near[100] / d.size:.1%} within 100 ms; median {np.median(d) * 1000:+.0f} ms, "
        f"median distance {np.median(np.abs(d)) * 1000:.0f} ms",
        flush=True,
    )


def error_rate(model: WhisperModel, rows: list[Utterance]) -> float:
    texts, heard = [], []
    for row in rows:
        segments, _ = model.transcribe(
            read_audio(row), language="en", beam_size=1, condition_on_previous_text=False
        )
        texts.append(plain(row.text or ""))
        heard.append(plain(" ".join(segment.text for segment in segments)))
    return float(jiwer.wer(texts, heard))


def unknown_words(rows: list[Utterance]) -> None:
    """Hide one known word of each utterance from the dictionary: how far do the others move?"""
    random = np.random.default_rng(0)
    beside: list[float] = []
    others: list[float] = []
    for row in rows:
        words = (row.text or "").split()
        known = align_utterance(row)
        able = [k for k, word in enumerate(known) if word.start is not None and len(word.text) > 4]
        if not able or any(word.start is None for word in known):
            continue
        hidden = int(random.choice(able))
        words[hidden] = "XQZVKW"
        for k, (one, two) in enumerate(
            zip(known, align(read_audio(row), " ".join(words)), strict=True)
        ):
            if None not in (one.start, one.end, two.start, two.end):
                moved = max((one.start - two.start, one.end - two.end), key=abs)  # type: ignore[operator]
                (beside if abs(k - hidden) == 1 else others).append(moved)
    report("beside a word out of the dictionary", beside)
    report("other words of the utterance", others)


def level(samples: np.ndarray, rate: int = 16_000) -> np.ndarray:
    """Level in dB of 20 ms around every 5 ms."""
    power = np.convolve(np.square(samples, dtype=np.float64), np.ones(rate // 50), mode="same")
    return 10 * np.log10(power[:: rate // 200] + 1e-9)


def pauses(rows: list[Utterance], aligned: Aligned) -> None:
    """Pauses that the level alone shows: a word must end where one begins, and start at its end.

    A pause is 200 ms or more that stay below a third of the way (in dB) from the 5th percentile of
    the level, the background, to the 95th, loud speech. The nearest word boundary is taken.
    """
    ends: list[float] = []
    starts: list[float] = []
    for row in rows:
        words = [word for word in aligned[row.utterance] if word.start is not None]
        decibel = level(read_audio(row))
        floor, loud = np.percentile(decibel, [5, 95])
        edges = np.flatnonzero(np.diff(np.r_[0, decibel < floor + (loud - floor) / 3, 0])) * 0.005
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            if end - begin < 0.2 or not words:
                continue
            if begin > 0.05:
                ends.append(min((word.end - begin for word in words), key=abs))
            if end < len(decibel) * 0.005 - 0.05:
                starts.append(min((word.start - end for word in words), key=abs))
    report("word ends at pauses the level shows", ends)
    report("word starts after pauses the level shows", starts)


def second_opinion(
    model: WhisperModel, tokenizer: Tokenizer, rows: list[Utterance], aligned: Aligned
) -> None:
    late = known_times(model, tokenizer)
    ends: list[float] = []
    starts: list[float] = []
    skipped = 0
    for row in rows:
        theirs = whisper_times(model, tokenizer, row)
        if len(theirs) != len(aligned[row.utterance]):
            skipped += 1
            continue
        more_ends, more_starts = compare(aligned[row.utterance], theirs)
        ends += more_ends
        starts += more_starts
    print(f"{skipped} utterances left out: Whisper splits their words in another way")
    for name, found in (("word ends", ends), ("word starts without a pause before them", starts)):
        report(f"{name}, against Whisper as it is", found)
        report(f"{name}, against Whisper less {late * 1000:.0f} ms", [d + late for d in found])


def recognised_slices(
    model: WhisperModel, rows: list[Utterance], aligned: Aligned, count: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for duration in (1.0, 2.0, 4.0):
            out = Path(folder, f"{duration}")
            counts = slice_corpus(
                rows, out, plan=Plan(duration=duration), alignment=aligned, workers=1
            )
            slices = read_corpus(out)
            chosen = np.random.default_rng(0).permutation(len(slices))[:count]
            rate = error_rate(model, [slices[i] for i in sorted(chosen)])
            print(f"δ = {duration} s: {counts['slices']} slices, ", end="")
            print(f"{counts['words_kept']} of {counts['words']} words kept, ", end="")
            print(f"WER {rate:.1%} on {len(chosen)} slices", flush=True)
    whole = rows[:: max(1, len(rows) // 60)]
    print(f"whole utterances: WER {error_rate(model, whole):.1%} on {len(whole)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    shared = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared"))
    corpus = shared / "data" / "librispeech_eval"
    parser.add_argument("corpus", type=Path, nargs="?", default=corpus)
    parser.add_argument("--every", type=int, default=4, help="use every n-th utterance")
    parser.add_argument("--slices", type=int, default=150, help="slices to recognise")
    parser.add_argument("--parts", default="pauses,unknown,whisper,slices")
    given = parser.parse_args()
    parts = given.parts.split(",")
    if not given.corpus.exists():
        print(f"skipped: no corpus at {given.corpus}; give one with its text")
        return
    rows = [row for row in read_corpus(given.corpus) if row.text][:: given.every]
    whisper = str(model_path("whisper-tiny.en-ct2"))
    model = WhisperModel(whisper, device="cpu", compute_type="int8", cpu_threads=1)
    tokenizer = Tokenizer(model.hf_tokenizer, False)

    started = time.process_time()
    aligned = {row.utterance: align_utterance(row) for row in rows}
    seconds = sum(row.duration or 0.0 for row in rows)
    words = [word for one in aligned.values() for word in one]
    without = sum(word.start is None for word in words)
    print(f"{len(rows)} utterances, {len(words)} words, {without} without times, ", end="")
    print(f"{(time.process_time() - started) / seconds:.3f} × real time on one core", flush=True)
    if "pauses" in parts:
        pauses(rows, aligned)
    if "unknown" in parts:
        unknown_words(rows)
    if "whisper" in parts:
        second_opinion(model, tokenizer, rows, aligned)
    if "slices" in parts:
        recognised_slices(model, rows, aligned, given.slices)


if __name__ == "__main__":
    main()
