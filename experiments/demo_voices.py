"""Make ``src/voxrisk/corpus/recorded.tar``, the voices of the demo, and say what Opus changes.

    python experiments/demo_voices.py WORK [--check]

Kokoro's 28 voices say three sentences in each of two sessions (about 12 minutes of one core;
weights from the model store); the silence before and after is cut off, and each is packed as Ogg
Opus. ``--check`` compares the packed
corpus with the one that was packed: words (Whisper tiny.en) and speaker vectors
(``ecapa-voxceleb``). The samples are the same each time; the bytes of the file are not, since Ogg
numbers its streams at random.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.corpus.demo import make_demo
from voxrisk.corpus.recorded import FILE, SENTENCES, write_all
from voxrisk.measure import rocch_eer


def trimmed(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Speech, which lies within 45 dB of its loudest part, and a tenth of a second around it."""
    power = np.convolve(samples.astype(np.float64) ** 2, np.ones(400) / 400, "same")
    heard = np.flatnonzero(power > power.max() * 10**-4.5)
    return samples[max(heard[0] - RATE // 10, 0) : heard[-1] + RATE // 10]


def check(clear: Path, packed: Path, work: Path) -> None:
    """Print how the packed corpus differs from the clear one."""
    from voxrisk.attack.embed import embed_corpus
    from voxrisk.utility.measuring import measure_utility

    vectors = []
    for name, folder in (("clear", clear), ("packed", packed)):
        rows = read_corpus(folder)
        made = embed_corpus(rows, "ecapa-voxceleb", work / f"{name}.npz")
        unit = made.vectors / np.linalg.norm(made.vectors, axis=1, keepdims=True)
        vectors.append(unit)
        speaker, session = (np.array([getattr(r, k) for r in rows]) for k in ("speaker", "session"))
        scores = (unit @ unit.T)[np.ix_(session == "1", session == "2")]
        same = speaker[session == "1"][:, None] == speaker[session == "2"][None]
        print(
            f"{name}: cosine of the same voice {scores[same].mean():.3f}, of others "
            f"{scores[~same].mean():.3f}; EER {100 * rocch_eer(scores[same], scores[~same]):.2f} %"
        )
    turned = np.einsum("ij,ij->i", *vectors)
    print(f"an utterance and its packed form: cosine {turned.mean():.3f}, least {turned.min():.3f}")
    found = measure_utility(read_corpus(clear), read_corpus(packed), figures=["wer"])
    for side, figure in found.figures["wer"].items():
        print(f"word errors, {side}: {100 * figure.value:.1f} % {figure.interval}")


def main(work: Path, *, checked: bool) -> None:
    """Make the file, or check it."""
    clear, packed = work / "clear", work / "packed"
    if not (clear / "manifest.csv").is_file():
        make_demo(clear, engine="kokoro", sentences=SENTENCES)
    if not checked:
        write_all([(r.utterance, trimmed(read_audio(r)), RATE) for r in read_corpus(clear)], FILE)
        print(f"{FILE}: {FILE.stat().st_size / 1e6:.2f} MB")
        return
    make_demo(packed, engine="recorded", sentences=SENTENCES)
    check(clear, packed, work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    main(given.work, checked=given.check)
