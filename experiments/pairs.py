"""How often the check of pairs finds files under wrong ids, and how often it is mistaken.

    python experiments/pairs.py librispeech_eval

Sixty utterances are protected by McAdams (α = 0.6) and WORLD, spoken anew by espeak-ng, and given
to the ids of others; each is looked for among all originals. Once more with 1 s of each utterance,
so that lengths tell nothing. The table is in docs/corpora.md.
"""

import argparse
import hashlib
from collections.abc import Mapping

import numpy as np
import soxr
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.corpus.pairs import Sound, envelope, judge_pairs
from voxrisk.protect.mcadams import mcadams
from voxrisk.protect.world import Statistics, analyse, statistics, world

Samples = NDArray[np.float32]
SECOND = slice(RATE // 2, 3 * RATE // 2)


def heard(samples: Samples) -> Sound:
    """What the check keeps of an utterance."""
    digest = hashlib.blake2b(samples.tobytes(), digest_size=16).digest()
    return Sound(len(samples) / RATE, digest, envelope(samples))


def row(label: str, originals: Mapping[str, Sound], protected: Mapping[str, Sound]) -> str:
    """One line of the table: with right ids, then each file under the id of the one before."""
    right = judge_pairs(originals, protected)
    wrong = judge_pairs(
        originals, dict(zip(protected, np.roll(list(protected.values()), 1), strict=True))
    )
    return (
        f"| {label} | {right.own_best:.0%} | {right.other_best:.0%} | {wrong.other_best:.0%} | "
        f"{right.verdict}, {wrong.verdict}"
    )


def protect(
    speech: Mapping[str, Samples], texts: Mapping[str, str], targets: list[Statistics]
) -> dict[str, dict[str, Samples]]:
    """The same utterances in every way."""
    random = np.random.default_rng(1)
    bent = {name: mcadams(samples, alpha=0.6) for name, samples in speech.items()}
    moved = {n: world(x, targets[i % len(targets)]) for i, (n, x) in enumerate(speech.items())}
    said = speak_all([Line(texts[name].lower(), "en-us+f2") for name in speech])
    return {
        "`mcadams`, α = 0.6": bent,
        "the same at half its length": {n: soxr.resample(x, 2, 1) for n, x in bent.items()},
        "`world`": moved,
        "`world` in noise": {
            n: x + random.normal(0, 0.02, len(x)).astype(np.float32) for n, x in moved.items()
        },
        "read anew by espeak-ng": {
            name: soxr.resample(s.samples, s.rate, RATE)
            for name, s in zip(speech, said, strict=True)
        },
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--utterances", type=int, default=60)
    # The limits in voxrisk.corpus.pairs were chosen on the first 120 of this order.
    parser.add_argument("--skip", type=int, default=120)
    options = parser.parse_args()
    rows = read_corpus(options.corpus)
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    speech = {rows[i].utterance: read_audio(rows[i]) for i in order}
    end = options.skip + options.utterances
    chosen = dict(list(speech.items())[options.skip : end])
    others = list(speech.values())[end : end + 10]
    targets = [s for x in others if (s := statistics([analyse(x)])) is not None]
    texts = {r.utterance: r.text or "" for r in rows}
    ways = protect(chosen, texts, targets)
    whole = {name: heard(samples) for name, samples in speech.items()}
    for label, sounds in ways.items():
        print(row(label, whole, {name: heard(samples) for name, samples in sounds.items()}))
    cut = {name: heard(x[SECOND]) for name, x in speech.items() if len(x) >= SECOND.stop}
    for label, sounds in ways.items():
        part = {
            n: heard(x[SECOND]) for n, x in sounds.items() if n in cut and len(x) >= SECOND.stop
        }
        if "half" not in label:
            print(row(f"{label}, 1 s of each", cut, part))


if __name__ == "__main__":
    main()
