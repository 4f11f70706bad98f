"""Time and memory of the text attack on 15,000 slices: 225 million pairs on one core.

Slices are three words each of the shared corpora's texts, filled up with words drawn from the
language model. Time is that of the processor, so that other work beside it does not count. The
bare alternative, one pair at a time, is timed on 200 slices and scaled up.
"""

import os
import resource
import time
from pathlib import Path

import numpy as np

from voxrisk.attack.successors import Slices, rank_estimates, successor_ranks
from voxrisk.attack.trigram_scorer import TrigramScorer
from voxrisk.corpus import read_corpus
from voxrisk.language.ngram import NGram, embedded_model

SLICES, WORDS, SECONDS, MEGABYTES = 15_000, 3, 60.0, 2000.0
SHARED = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared")) / "data"


def sentences() -> list[tuple[str, list[str]]]:
    """Who says it, and the words."""
    found = []
    for name in ("librispeech_eval", "train_opus"):
        if (SHARED / name).is_dir():
            found += [(r.speaker, (r.text or "").split()) for r in read_corpus(SHARED / name)]
    return found


def slices(model: NGram) -> Slices:
    rng = np.random.default_rng(0)
    likely = np.exp(model.one)
    likely[[model.words[w] for w in ("<s>", "</s>")]] = 0.0
    vocabulary, likely = np.array(list(model.words)), likely / likely.sum()
    said = sentences()
    rows: list[tuple[str, str, int, tuple[str, ...]]] = []
    while len(rows) < SLICES:
        who, words = (
            said.pop() if said
            else (f"drawn{len(rows) % 20}", rng.choice(vocabulary, 15, p=likely).tolist())
        )  # fmt: skip
        source = f"u{len(rows)}"
        parts = [tuple(words[i : i + WORDS]) for i in range(0, len(words) - WORDS + 1, WORDS)]
        rows += [(who, source, place, part) for place, part in enumerate(parts)]
    return Slices(*(tuple(column) for column in zip(*rows[:SLICES], strict=True)))


def one_by_one(all_slices: Slices, model: NGram, count: int = 200) -> float:
    """Processor seconds for each pair when the model is asked for one probability at a time."""
    texts = [[word.lower() for word in words] for words in all_slices.words[:count]]
    start = time.process_time()
    for w in texts:
        for v in texts[:5]:
            model.log_prob(v[0], w[-2:])
            model.log_prob(v[1], [w[-1], v[0]])
    return (time.process_time() - start) / (5 * count)


def main() -> None:
    start = time.process_time()
    model = embedded_model()
    print(f"reading the language model: {time.process_time() - start:.1f} s")
    table = slices(model)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    slow = one_by_one(table, model)
    good = True
    for lift in (False, True):
        start = time.process_time()
        ranks = successor_ranks(TrigramScorer(table.words, model, lift=lift), table.successor)
        took = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        figures = rank_estimates(ranks, table.speaker)
        print(
            f"{'lift' if lift else 'trigram'}: {len(table):,} slices, {took:.1f} s (limit "
            f"{SECONDS:g}), peak {peak:.0f} MB, {before:.0f} before (limit {MEGABYTES:g}); "
            f"{slow * len(table) ** 2 / took:.0f} times as fast as one pair at a time; mean rank "
            f"{figures['mean_rank'].value:.1%}"
        )
        good &= took < SECONDS and peak < MEGABYTES
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
