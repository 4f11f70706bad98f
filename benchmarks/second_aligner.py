"""A second forced aligner, trained on the speech itself, as a judge of the embedded one.

Published alignments and other trained aligners need a download. So this does what the Montreal
Forced Aligner does first: hidden Markov models of phones are trained from a flat start on the
speech and its text, and then align it (hmm_aligner.py). They share the pronunciation dictionary
with the embedded aligner (pocketsphinx), and nothing else: not the speech they learnt from, not the
features, not the search.

How good is the judge? It is held against the known word starts of synthetic speech, the pauses that
the level of the signal shows, and itself, learnt from other speakers.

    python benchmarks/second_aligner.py CORPUS --more MORE_LIBRISPEECH
"""

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from alignment import pauses, report
from hmm_aligner import HOP, Times, Way, align, dictionary, features, spoken, train, ways

from voxrisk.corpus import Utterance, read_corpus, write_audio
from voxrisk.corpus.demo import VOICES
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.protect.aligner import align_utterance
from voxrisk.protect.slicing import Word

PAUSE = 0.03  # the shortest silence both aligners can find


def edges(ours: Times, theirs: Times) -> Iterator[tuple[str, str, float, str]]:
    """Every word edge that both know: start or end, where it lies, the difference, its place."""
    for name in ours:
        pairs = list(zip(ours[name], theirs[name], strict=True))
        for k, pair in enumerate(pairs):
            if None in (pair[0].start, pair[1].start):
                continue
            for side, step in (("start", -1), ("end", 1)):
                beside = pairs[k + step] if 0 <= k + step < len(pairs) else None
                one, two = (getattr(word, side) for word in pair)
                text = f"{name} {side} of {pair[0].text} (word {k + 1}): {one:.2f}, not {two:.2f}"
                yield side, surroundings(pair, beside, step), one - two, text


def surroundings(pair: tuple[Word, Word], beside: tuple[Word, Word] | None, step: int) -> str:
    if beside is None:
        return "at the ends of the utterance"
    if None in (beside[0].start, beside[1].start):
        return "beside an unknown word"
    gaps = []
    for word, other in zip(pair, beside, strict=True):
        gap = other.start - word.end if step > 0 else word.start - other.end  # type: ignore[operator]
        gaps.append(gap > PAUSE - 1e-6)
    if all(gaps):
        return "beside a pause"
    return "where only one finds a pause" if any(gaps) else "inside fluent speech"


def agreement(ours: Times, theirs: Times, worst: int = 0) -> None:
    found = list(edges(ours, theirs))
    places = ["everywhere", *dict.fromkeys(place for _, place, _, _ in found)]
    for side in ("start", "end"):
        for place in places:
            d = np.array([x for s, p, x, _ in found if s == side and place in (p, "everywhere")])
            if not d.size:
                continue
            middle = float(np.median(d))
            near = [(np.abs(d) <= ms / 1000 + 1e-6).mean() for ms in (20, 50, 100)]
            moved = (np.abs(d - middle) <= 0.05 + 1e-6).mean()
            print(
                f"word {side}s {place}: {near[1] * d.size:.0f} of {d.size} within 50 ms "
                f"({near[1]:.1%}), {near[0]:.1%} within 20 ms, {near[2]:.1%} within 100 ms; "
                f"median {middle * 1000:+.0f} ms, mean {d.mean() * 1000:+.1f} ms; "
                f"less the median {moved:.1%} within 50 ms",
                flush=True,
            )
    for _, place, _, text in sorted(found, key=lambda edge: -abs(edge[2]))[:worst]:
        print(f"  {text}, {place}")


def synthetic(folder: Path) -> tuple[list[Utterance], list[tuple[float, ...]]]:
    """Speech of espeak-ng, and when its words begin."""
    lines = [
        Line(SENTENCES[(7 * i + k) % len(SENTENCES)], f"en-us+{voice}")
        for i, voice in enumerate(VOICES)
        for k in range(20)
    ]
    rows, starts = [], []
    for number, (line, said) in enumerate(zip(lines, speak_all(lines), strict=True)):
        row = Utterance(f"{number}", folder / f"{number}.wav", line.voice, text=line.text)
        if len(spoken(row)) == len(said.word_starts):  # "of the" may count as one word
            write_audio(row.path, said.samples, rate=said.rate)
            rows.append(row)
            starts.append(said.word_starts)
    return rows, starts


def known_times(known: dict[str, list[Way]]) -> None:
    """The same recipe, trained on synthetic speech, against its known word starts."""
    with tempfile.TemporaryDirectory() as folder:
        rows, starts = synthetic(Path(folder))
        speech = features(rows)
        words = [[ways(word, known) for word in spoken(row)] for row in rows]
        found = align(rows, speech, words, train(speech, words))
        for name, times in (
            ("second aligner", found),
            ("embedded aligner", {row.utterance: align_utterance(row) for row in rows}),
        ):
            lost = sum(all(w.start is None for w in times[row.utterance]) for row in rows)
            report(
                f"known word starts of synthetic speech, {name} ({lost} of {len(rows)} not found)",
                [
                    word.start - begin
                    for row, begins in zip(rows, starts, strict=True)
                    for word, begin in list(zip(times[row.utterance], begins, strict=True))[1:]
                    if word.start is not None
                ],
            )


def main() -> None:
    shared = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?", default=shared / "librispeech_eval")
    parser.add_argument("--more", type=Path, default=shared / "train_opus", help="to learn from")
    parser.add_argument("--parts", default="known,judge,halves")
    given = parser.parse_args()
    if not given.corpus.exists():
        print(f"skipped: no corpus at {given.corpus}; give one with its text")
        return
    known = dictionary()
    if "known" in given.parts:
        known_times(known)
    rows = [row for row in read_corpus(given.corpus) if row.text]
    own = len(rows)
    if given.more.exists():
        more = [row for row in read_corpus(given.more) if row.text]
        rows += [row for row in more if "LibriSpeech" in row.extra.get("source", "LibriSpeech")]
    speech = features(rows)
    words = [[ways(word, known) for word in spoken(row)] for row in rows]
    print(f"{len(rows)} utterances, {sum(map(len, speech)) * HOP / 3600:.2f} h to learn from")
    ours = {row.utterance: align_utterance(row) for row in rows[:own]}

    def judge(chosen: Sequence[int]) -> Times:
        trained = train([speech[k] for k in chosen], [words[k] for k in chosen])
        return align(rows[:own], speech[:own], words[:own], trained)

    if "judge" in given.parts:
        theirs = judge(range(len(rows)))
        print("embedded aligner against the second one")
        agreement(ours, theirs, worst=20)
        for name, times in (("second", theirs), ("embedded", ours)):
            print(f"{name} aligner at the pauses that the level shows")
            pauses(rows[:own], times)
    if "halves" in given.parts:
        speakers = sorted({row.speaker for row in rows})
        first = [k for k, row in enumerate(rows) if speakers.index(row.speaker) % 2]
        second = sorted(set(range(len(rows))) - set(first))
        print("second aligner, learnt from one half of the speakers, against the other half")
        agreement(judge(first), judge(second))


if __name__ == "__main__":
    main()
