"""Voices made on the spot, so that a first look needs no data.

Forty speakers are points in a space of voices; protection moves every utterance towards a random
pseudo-voice, a weaker protection less far. Embeddings are these points, scores their cosine
similarity. The numbers show what voxrisk prints, nothing about any real system.
"""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.atomic import atomic
from voxrisk.files.embeddings import write_embeddings
from voxrisk.types import Embeddings

SPEAKERS, DIMENSIONS = 40, 24
SIDES = {"A": 10, "B": 12}  # utterances of each speaker: A enrols, B is tried
KEPT = {"strong": 0.25, "weak": 0.7}  # how much of a voice a protection leaves
Floats = NDArray[np.float64]


def simulate(folder: Path, *, seed: int = 0) -> dict[str, Path]:
    """Write embeddings, trials and scores of original speech and of two protections.

    Returns:
        Paths by name: ``trials``; scores ``original`` (OO), ``strong`` and ``weak`` (PP),
        ``strong-cross`` and ``weak-cross`` (OP); embeddings ``original-A``, ``strong-B`` …
    """
    rng = np.random.default_rng(seed)
    voice = rng.normal(size=(SPEAKERS, DIMENSIONS))
    speech = {("original", side): _spoken(voice, n, rng) for side, n in SIDES.items()}
    for name, kept in KEPT.items():
        for side in SIDES:
            speech[name, side] = _protect(speech["original", side], kept, rng)
    paths = {}
    for (name, side), vectors in speech.items():
        paths[f"{name}-{side}"] = folder / f"{name}-{side}.npz"
        _write_embeddings(paths[f"{name}-{side}"], side, vectors)
    pairs = {"original": ("original", "original")}
    for name in KEPT:
        pairs |= {name: (name, name), f"{name}-cross": ("original", name)}
    for label, (enrolled, tried) in pairs.items():
        matrix = _cosine(speech[enrolled, "A"].mean(axis=1), speech[tried, "B"])
        paths[label] = folder / f"scores-{label}.csv"
        _write(paths[label], "score", [f"{x:.6f}" for x in matrix.ravel()])
    paths["trials"] = folder / "trials.csv"
    same = np.repeat(np.eye(SPEAKERS, dtype=bool), SIDES["B"], axis=1).ravel()
    _write(paths["trials"], "label", ["target" if x else "nontarget" for x in same])
    return paths


def _names(side: str) -> tuple[list[str], list[str]]:
    speakers = [f"speaker{i:02d}" for i in range(SPEAKERS)]
    return speakers, [f"{s}-{side}{u:02d}" for s in speakers for u in range(SIDES[side])]


def _write_embeddings(path: Path, side: str, vectors: Floats) -> None:
    speakers, utterances = _names(side)
    who = np.repeat(speakers, SIDES[side])
    flat = vectors.reshape(-1, DIMENSIONS).astype(np.float32)
    write_embeddings(path, Embeddings(np.array(utterances), who, flat, str(path)))


def _spoken(voice: Floats, utterances: int, rng: np.random.Generator) -> Floats:
    shape = (len(voice), utterances, voice.shape[1])
    return voice[:, None] + 1.1 * rng.normal(size=shape)


def _protect(speech: Floats, kept: float, rng: np.random.Generator) -> Floats:
    pseudo = rng.normal(size=speech.shape)
    return kept * speech + (1.0 - kept) * pseudo


def _cosine(models: Floats, tests: Floats) -> Floats:
    a = models / np.linalg.norm(models, axis=1, keepdims=True)
    b = tests.reshape(-1, tests.shape[-1])
    cosine: Floats = a @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T
    return cosine


def _write(path: Path, column: str, cells: list[str]) -> None:
    speakers, segments = _names("B")
    pairs = ((name, segment) for name in speakers for segment in segments)
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("enroll", "trial", column))
        writer.writerows((*pair, cell) for pair, cell in zip(pairs, cells, strict=True))
