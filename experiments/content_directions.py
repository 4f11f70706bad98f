"""Learn which directions of Whisper's second layer tell parts of phones apart.

The file that this writes is part of the package: ``knn`` compares frames of two speakers in these
directions. Learned from LibriSpeech train-clean-5 (CC BY 4.0): the first 1.9 hours of 28 speakers,
none of whom is in dev-clean or test-clean. Utterances with a word out of the dictionary are left
out.

    python experiments/content_directions.py CORPUS -o src/voxrisk/protect/content_directions.npy
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.files.atomic import atomic
from voxrisk.protect.parts import whisper_layer
from voxrisk.protect.phones import SILENCE, label, runs
from voxrisk.types import require

THIRDS = 3
Features = NDArray[np.float32]


def spoken_phones(decoder: Any, samples: Features, text: str) -> list[tuple[str, float]]:
    """The phones of a known text in order, each with its end in seconds; none if it fails."""
    words = text.lower().split()
    if not words or any(decoder.lookup_word(word) is None for word in words):
        return []
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    decoder.set_align_text(" ".join(words))
    _listen(decoder, pcm)
    if decoder.hyp() is None:
        return []
    decoder.set_alignment()  # the second pass finds the phones within the words
    _listen(decoder, pcm)
    return [
        (phone.name, (phone.start + phone.duration) / 100)
        for word in decoder.get_alignment()
        for phone in word
    ]


def _listen(decoder: Any, pcm: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()


def thirds(names: list[str]) -> list[str]:
    """The first, middle or last third of its phone for every frame.

    A sound changes while it lasts: frames of its beginning are no match for those of its end.
    """
    parts: list[str] = []
    for name, start, stop in runs(names):
        n = stop - start
        third = [int((i + 0.5) * THIRDS / n) for i in range(n)]
        parts += [name if name == SILENCE else f"{name}{i}" for i in third]
    return parts


def discriminants(
    content: Features, names: NDArray[np.str_], *, n: int, shrink: float = 0.1
) -> Features:
    """Linear discriminant analysis: the ``n`` directions that tell classes apart best ``(d, n)``.

    The spread within a class is shrunk towards a sphere.
    """
    within = np.zeros((content.shape[1],) * 2)
    means = []
    for name in np.unique(names):
        rows = content[names == name].astype(np.float64)
        means.append(rows.mean(axis=0))
        within += (rows - means[-1]).T @ (rows - means[-1])
    within /= len(content)
    within += shrink * np.trace(within) / len(within) * np.eye(len(within))
    power, axes = np.linalg.eigh(within)
    whiten = axes / np.sqrt(power)
    between = (np.stack(means) - np.mean(means, axis=0)) @ whiten
    directions = np.linalg.svd(between, full_matrices=False)[2][:n]
    found: Features = (whiten @ directions.T).astype(np.float32)
    return found


def main() -> None:
    """Learn the directions from a corpus and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="speech with its text")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--directions", type=int, default=60)
    given = parser.parse_args()
    decoder = require("pocketsphinx", extra="align").Decoder(
        loglevel="FATAL", lm=None, bestpath=False, cmn="batch"
    )
    encode = whisper_layer()
    content, names = [], []
    rows = [row for row in read_corpus(given.corpus) if row.text]
    for row in rows:
        samples = read_audio(row)
        phones = spoken_phones(decoder, samples, row.text or "")
        if phones:
            features = encode(samples)
            content.append(features - features.mean(axis=0))
            names += thirds(label(phones, len(features), 50))
    print(f"{len(content)} of {len(rows)} utterances, {len(names) / 3000:.0f} minutes")
    directions = discriminants(np.concatenate(content), np.array(names), n=given.directions)
    with atomic(given.output) as part, part.open("wb") as stream:
        np.save(stream, directions.astype(np.float16))


if __name__ == "__main__":
    main()
