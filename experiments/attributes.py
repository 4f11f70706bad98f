"""Attackers on attributes: at chance on shuffled ones, and beside plain logistic regression.

How often chance lies in the interval when an attribute is shuffled among speakers (made-up vectors:
a voice for each speaker, noise for each utterance; three kinds of features with ``--kinds 3``):

    python experiments/attributes.py shuffles [--rounds 100] [--kinds 1]

What the attacker of voxrisk, and scikit-learn's logistic regression, tell from vectors of original
speech, all speakers apart, and what is left when the labels are shuffled. ``--tested`` names the
utterances under test, when fewer are tested than learned from:

    voxrisk embed ravdess --encoder moonshine-base -o vectors.npz
    python experiments/attributes.py attack vectors.npz ravdess emotion [--tested some.csv]
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.attributes import Labelled, guess_by_folds
from voxrisk.corpus import read_corpus
from voxrisk.corpus.attributes import band_edges, band_of, read_attribute
from voxrisk.files.embeddings import read_embeddings
from voxrisk.measure.attributes import balanced_accuracy, measure_attribute
from voxrisk.measure.posteriors import believe, speaker_folds, speaker_shares
from voxrisk.types import Estimate

SIZES = (40, 20, 2)  # dimensions of the kinds of features
FIGURES = ("uar", "attribute_auc", "attribute_bits", "correlation")


def figures(known: Labelled, tested: Labelled, classes: int, seed: int) -> dict[str, Estimate]:
    """Every figure of the attacker who learns from the other speakers."""
    (scores,), _ = guess_by_folds(known, [tested], classes=classes, seed=seed)
    found = believe(
        scores, tested.truth, tested.speaker, classes=classes, value=tested.value, seed=seed
    )
    return {e.name: e for e in measure_attribute(found, resamples=300, seed=seed)}


def heard(speakers: int, utterances: int, kinds: int, rng: np.random.Generator) -> Labelled:
    """Voices that know nothing of any attribute."""
    who = np.repeat(np.arange(speakers), utterances)
    vectors = {
        f"kind {d}": rng.standard_normal((speakers, d))[who] + rng.standard_normal((who.size, d))
        for d in (SIZES[:kinds] if kinds > 1 else (12,))
    }
    names = np.array([f"s{i:03d}" for i in who])
    return Labelled(names, np.zeros(who.size, dtype=np.int64), vectors)


def two_classes(speakers: int) -> Callable[[Labelled, np.random.Generator], Labelled]:
    """Half of the speakers are of each class."""

    def shuffled(known: Labelled, rng: np.random.Generator) -> Labelled:
        each = known.truth.size // speakers
        truth = np.repeat(rng.permutation(np.arange(speakers) % 2), each)
        return Labelled(known.speaker, truth, known.vectors)

    return shuffled


def drawn_classes(known: Labelled, rng: np.random.Generator) -> Labelled:
    """A class drawn for each speaker."""
    _, who = np.unique(known.speaker, return_inverse=True)
    return Labelled(known.speaker, rng.integers(0, 2, who.max() + 1)[who], known.vectors)


def four_of_utterances(known: Labelled, rng: np.random.Generator) -> Labelled:
    """Four classes, shuffled among all utterances."""
    truth = rng.permutation(np.arange(known.truth.size) % 4)
    return Labelled(known.speaker, truth, known.vectors)


def numbers(known: Labelled, rng: np.random.Generator) -> Labelled:
    """A number for each speaker, in four groups."""
    _, who = np.unique(known.speaker, return_inverse=True)
    value = rng.uniform(10.0, 70.0, who.max() + 1)
    edges = band_edges(sorted(value.tolist()), 4)
    truth = np.array([band_of(v, edges) for v in value])[who]
    return Labelled(known.speaker, truth.astype(np.int64), known.vectors, value[who])


def shuffles(rounds: int, kinds: int) -> None:
    """Print how often chance lies in the interval, and how often the interval lies above it."""
    cases = (
        ("two classes of speakers", 24, 8, 2, two_classes(24)),
        ("two classes, drawn for each speaker", 40, 8, 2, drawn_classes),
        ("four classes of utterances", 12, 16, 4, four_of_utterances),
        ("a number, in four groups", 24, 8, 4, numbers),
    )
    for label, speakers, utterances, classes, shuffle in cases:
        held, above = dict.fromkeys(FIGURES, 0), dict.fromkeys(FIGURES, 0)
        for seed in range(rounds):
            rng = np.random.default_rng([seed, speakers, classes])
            known = shuffle(heard(speakers, utterances, kinds, rng), rng)
            for name, e in figures(known, known, classes, seed).items():
                if name in FIGURES and e.interval:
                    held[name] += e.interval.low <= e.chance <= e.interval.high
                    above[name] += e.interval.low > e.chance
        told = [
            f"{name} {held[name] / rounds:.1%} {above[name] / rounds:.1%}"
            for name in FIGURES
            if held[name] or above[name]
        ]
        print(f"{label}, {speakers} speakers (in, above): {'; '.join(told)}", flush=True)


def plain(known: Labelled, tested: NDArray[np.bool_], seed: int) -> float:
    """Balanced accuracy of scikit-learn's logistic regression on the same folds of speakers."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (vectors,) = known.vectors.values()
    fold = speaker_folds(known.speaker, known.truth, folds=6, seed=seed)
    said = np.empty_like(known.truth)
    for f in np.unique(fold):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
        said[fold == f] = model.fit(vectors[fold != f], known.truth[fold != f]).predict(
            vectors[fold == f]
        )
    shares = speaker_shares(known.speaker[tested])
    return balanced_accuracy(known.truth[tested], said[tested], shares)


def attack(vectors: str, manifest: str, column: str, tested: str | None, seed: int) -> None:
    """Print what is told from the vectors, by us, by scikit-learn, and of shuffled labels."""
    rows = read_corpus(manifest)
    attribute = read_attribute(rows, column)
    found = read_embeddings(vectors)
    place = {name: i for i, name in enumerate(found.utterance.tolist())}
    rows = [row for row in rows if row.utterance in attribute.label]
    known = Labelled(
        np.array([row.speaker for row in rows]),
        np.array([attribute.label[row.utterance] for row in rows], dtype=np.int64),
        {"vectors": found.vectors[[place[row.utterance] for row in rows]]},
    )
    chosen = {row.utterance for row in read_corpus(tested)} if tested else set(place)
    kept = np.array([row.utterance in chosen for row in rows])
    k = len(attribute.classes)
    print(f"{column}: {k} classes, learned from {kept.size} utterances, {kept.sum()} tested")
    mixed = np.random.default_rng(seed).permutation(known.truth)
    shuffled = Labelled(known.speaker, mixed, known.vectors)
    for label, version in (("as it is", known), ("shuffled", shuffled)):
        measured = figures(version, version.rows(kept), k, seed)
        uar, bits = measured["uar"], measured["attribute_bits"]
        span = uar.interval
        low, high = (span.low, span.high) if span else (uar.value, uar.value)
        print(
            f"{label}: UAR {uar.value:.1%} ({low:.0%} to {high:.0%}), {bits.value:.2f} bits; "
            f"scikit-learn {plain(version, kept, seed):.1%}",
            flush=True,
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    first = parts.add_parser("shuffles")
    first.add_argument("--rounds", type=int, default=100)
    first.add_argument("--kinds", type=int, default=1, choices=(1, 2, 3))
    second = parts.add_parser("attack")
    for name in ("vectors", "manifest", "column"):
        second.add_argument(name)
    second.add_argument("--tested", help="Corpus: only these utterances are tested.")
    second.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.part == "shuffles":
        shuffles(given.rounds, given.kinds)
    else:
        attack(given.vectors, given.manifest, given.column, given.tested, given.seed)


if __name__ == "__main__":
    main()
