"""Table 1 of the slicing paper: what slices are worth as training material, clear and anonymized.

    voxrisk align TRAIN -o words.csv
    python experiments/slicing_utility.py TRAIN TEST --words words.csv \
        --train-anonymized TRAIN-ANONYMIZED --test-anonymized TEST-ANONYMIZED --store work

One recogniser for each length and condition of training speech, each tested on whole utterances in
both conditions. Anonymized speech must keep the times of the clear speech. Killed, it goes on where
it was. ``--ready 45`` and ``--test-words`` let a ready recogniser hear 45 slices of each length
instead. ``--shuffle`` is a control: texts of other pieces, from which nothing can be learned.
``voxrisk slicing`` makes the same table from a corpus in one go (docs/slicing/utility.md).
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.language.ngram import embedded_model
from voxrisk.progress import talk
from voxrisk.protect.alignment import read_alignment
from voxrisk.protect.slicing import Word, slice_words
from voxrisk.store import Store
from voxrisk.types import Estimate
from voxrisk.utility.asr import RECIPES, Cell, Search, ready_utility, slice_utility

DURATIONS = (0.5, 1.0, 2.0, 1.5, 3.0, 4.0)
CLEAR, ANONYMIZED = "clear", "anonymized"


def slices(
    rows: Sequence[Utterance], words: Mapping[str, list[Word]], duration: float
) -> list[Utterance]:
    """Slices as parts of their recordings; no audio is written."""
    made = []
    for row in rows:
        signal = row.duration or 0.0
        times = [
            Word(w.text, min(w.start, signal), min(w.end, signal))
            if w.start is not None and w.end is not None
            else w
            for w in words.get(row.utterance, [])
        ]
        for place, piece in enumerate(slice_words(times, signal=signal, duration=duration)):
            made.append(
                replace(
                    row,
                    utterance=f"{row.utterance}-s{place:03d}",
                    text=" ".join(piece.words),
                    start=piece.start,
                    end=piece.end,
                    duration=piece.end - piece.start,
                )
            )
    return made


def some(rows: Sequence[Utterance], per_speaker: int) -> list[Utterance]:
    """The first utterances of every speaker; 0: all."""
    by_speaker = groupby(sorted(rows, key=lambda r: r.speaker), key=lambda r: r.speaker)
    return [row for _, mine in by_speaker for row in list(mine)[: per_speaker or None]]


def percent(estimate: Estimate | None, *, sign: bool = False) -> str:
    """A figure and its interval, as the page prints it."""
    if estimate is None:
        return "–"
    form = "+.1f" if sign else ".1f"
    span = estimate.interval
    ends = f" ({100 * span.low:{form}} to {100 * span.high:{form}})" if span else ""
    return f"{100 * estimate.value:{form}}{ends}"


def show(cells: Sequence[Cell]) -> None:
    """The table, in Markdown."""
    print("| trained on | δ | tested on | WER % | against whole | against matched | pieces | s |")
    print("|---|---|---|---|---|---|---|---|")
    for c in sorted(cells, key=lambda c: (c.trained != CLEAR, -(c.duration or 99), c.tested)):
        length = "none" if c.duration is None else f"{c.duration:g} s"
        print(
            f"| {c.trained} | {length} | {c.tested} | {percent(c.wer)} | "
            f"{percent(c.loss, sign=True)} | {percent(c.mismatch, sign=True)} | "
            f"{c.pieces:,} | {c.seconds:.0f} |"
        )
    print(f"{cells[0].hours} hours, {cells[0].steps} steps, {cells[0].wer.n}")


def hear(testing: Mapping[str, Sequence[Utterance]], given: argparse.Namespace) -> None:
    """What a ready recogniser makes of slices of the test speech, in Markdown."""
    words = read_alignment(given.test_words)
    pieces: dict[tuple[str, float | None], Sequence[Utterance]] = {
        (condition, duration): rows if duration is None else slices(rows, words, duration)
        for condition, rows in testing.items()
        for duration in (None, *sorted(given.durations, reverse=True))
    }
    found = ready_utility(
        pieces, most=given.ready, journal=given.store / "heard.jsonl", workers=given.workers
    )
    print("| δ | speech | WER % | against whole | pieces | words |")
    print("|---|---|---|---|---|---|")
    for c in found:
        length = "none" if c.duration is None else f"{c.duration:g} s"
        print(
            f"| {length} | {c.tested} | {percent(c.wer)} | {percent(c.loss, sign=True)} | "
            f"{c.pieces} | {c.wer.n['word']} |"
        )


def main() -> None:
    """Read the speech, cut it, train, test, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--train-anonymized", type=Path, help="Else clear speech alone.")
    parser.add_argument("--test-anonymized", type=Path)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--recipe", default="whisper", choices=list(RECIPES))
    for name, kind in (("steps", int), ("width", int), ("blocks", int), ("rate", float)):
        parser.add_argument(f"--{name}", type=kind, help="Instead of that of the recipe.")
    parser.add_argument("--hours", type=float, help="Else as many as all kinds of pieces have.")
    parser.add_argument("--per-speaker", type=int, default=0, help="Test utterances; 0: all.")
    parser.add_argument("--shuffle", action="store_true", help="Control: texts of other pieces.")
    parser.add_argument("--durations", type=float, nargs="*", default=list(DURATIONS))
    parser.add_argument("--beam", type=int, default=Search().beam)
    parser.add_argument("--ready", type=int, help="Pieces of each kind for a ready recogniser.")
    parser.add_argument("--test-words", type=Path, help="Word times of TEST, for --ready.")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    talk()
    given.store.mkdir(parents=True, exist_ok=True)
    kinds = {CLEAR: given.test, ANONYMIZED: given.test_anonymized}
    testing = {k: some(read_corpus(path), given.per_speaker) for k, path in kinds.items() if path}
    if given.ready:
        hear(testing, given)
        return
    words = read_alignment(given.words)
    training: dict[tuple[str, float | None], Sequence[Utterance]] = {}
    kinds = {CLEAR: given.train, ANONYMIZED: given.train_anonymized}
    whole = {kind: read_corpus(path) for kind, path in kinds.items() if path}
    for duration in (None, *given.durations):
        for condition, rows in whole.items():
            pieces = rows if duration is None else slices(rows, words, duration)
            training[condition, duration] = pieces
    if given.shuffle:
        for key, rows in training.items():
            texts = [row.text for row in rows]
            training[key] = [
                replace(r, text=texts[(i + len(rows) // 2) % len(rows)]) for i, r in enumerate(rows)
            ]
    changed = {name: getattr(given, name) for name in ("steps", "width", "blocks", "rate")}
    changed = {name: value for name, value in changed.items() if value is not None}
    show(
        slice_utility(
            training,
            testing,
            Store(given.store),
            hours=given.hours,
            recipe=replace(RECIPES[given.recipe], **changed),
            load_model=embedded_model,
            search=Search(beam=given.beam),
            workers=given.workers,
        )
    )


if __name__ == "__main__":
    main()
