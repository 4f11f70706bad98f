r"""Can slices be put in order by their words? The tables of docs/slicing/text.md.

    voxrisk align librispeech_eval -o words.csv
    python experiments/text_order.py librispeech_eval --alignment words.csv
    python experiments/text_order.py librispeech_eval --words 3
    python experiments/text_order.py librispeech_eval --alignment words.csv --duration 1 \
        --neural smollm2 --neural minilm

All slices of all utterances lie on one table. Each attacker sorts, for each slice that has a next,
all others; then a search puts whole utterances together. ``--draw 100`` takes as many utterances
only; ``--shuffle`` gives every slice the words of another, as a control: chance is all that may
come of it.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from voxrisk.attack.neural_text import NEURAL
from voxrisk.attack.successors import Slices
from voxrisk.attack.text_attack import LIFT, text_attack, whole_utterances
from voxrisk.corpus import read_corpus
from voxrisk.corpus.audio import audio_seconds
from voxrisk.language.ngram import load_arpa
from voxrisk.protect.alignment import read_alignment
from voxrisk.protect.slicing import slice_words
from voxrisk.types import Estimate

Row = tuple[str, str, int, tuple[str, ...]]


def in_time(corpus: str, alignment: Path, duration: float) -> list[Row]:
    """Slices of Algorithm 1."""
    words = read_alignment(alignment)
    return [
        (row.speaker, row.utterance, place, piece.words)
        for row in read_corpus(corpus)
        for place, piece in enumerate(
            slice_words(words[row.utterance], signal=audio_seconds(row), duration=duration)
        )
    ]


def by_words(corpus: str, count: int) -> list[Row]:
    """So many words in each slice; a shorter rest is dropped."""
    found: list[Row] = []
    for row in read_corpus(corpus):
        said = (row.text or "").split()
        for place in range(len(said) // count):
            part = tuple(said[place * count : (place + 1) * count])
            found.append((row.speaker, row.utterance, place, part))
    return found


def show(name: str, figures: Mapping[str, Estimate]) -> None:
    """One line: value, interval, chance, in percent."""
    parts = []
    for figure, e in figures.items():
        span = f" [{e.interval.low:.2%}, {e.interval.high:.2%}]" if e.interval else ""
        parts.append(f"{figure} {e.value:.2%}{span} chance {e.chance:.2%}")
    print(f"{name:22s} {'  '.join(parts)}", flush=True)


def study(rows: list[Row], chosen: argparse.Namespace) -> None:
    """All attackers on one set of slices."""
    rng = np.random.default_rng(0)
    if chosen.draw:
        every = sorted({row[1] for row in rows})
        kept = {every[i] for i in rng.choice(len(every), chosen.draw, replace=False)}
        rows = [row for row in rows if row[1] in kept]
    speaker, source, place, words = (tuple(column) for column in zip(*rows, strict=True))
    if chosen.shuffle:
        words = tuple(words[i] for i in rng.permutation(len(words)))
    slices = Slices(speaker, source, place, words)
    began = time.process_time()
    model = load_arpa(chosen.model) if chosen.model else None
    found = text_attack(slices, language_model=model, neural=chosen.neural)
    print(
        f"{len(slices)} slices, {np.mean([len(w) for w in words]):.2f} words each, "
        f"{(slices.successor >= 0).sum()} successive pairs; {found.unknown:.1%} of words unknown; "
        f"{time.process_time() - began:.0f} s"
    )
    for name, figures in found.figures.items():
        show(name, figures)
    searched = {LIFT: found.scorers[LIFT]} | ({"together": found.scorer} if chosen.neural else {})
    for name, scorer in searched.items():
        for pool, figures in whole_utterances(scorer, slices).items():
            show(f"{name}: {pool}", figures)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--alignment", type=Path, help="word times, from voxrisk align")
    parser.add_argument("--duration", type=float, action="append", help="of a slice, in seconds")
    parser.add_argument("--words", type=int, help="words of a slice, instead of a duration")
    parser.add_argument("--model", type=Path, help="an ARPA language model")
    parser.add_argument("--neural", action="append", default=[], choices=list(NEURAL))
    parser.add_argument("--draw", type=int, help="utterances, drawn at random")
    parser.add_argument("--shuffle", action="store_true", help="control: words of other slices")
    chosen = parser.parse_args()
    if chosen.words:
        print(f"\n{chosen.words} words")
        study(by_words(chosen.corpus, chosen.words), chosen)
        return
    for duration in chosen.duration or (0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
        print(f"\nδ = {duration:g} s")
        study(in_time(chosen.corpus, chosen.alignment, duration), chosen)


if __name__ == "__main__":
    main()
