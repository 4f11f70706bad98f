"""A score set made on the spot, so that a first look needs no data.

Forty speakers are points in a space of voices; protection moves every utterance towards a random
pseudo-voice, a weaker protection less far. Scores are cosine similarities. The numbers show what
voxrisk prints, nothing about any real system.
"""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.atomic import atomic

SPEAKERS, UTTERANCES, DIMENSIONS = 40, 12, 24
Floats = NDArray[np.float64]


def simulate_scores(folder: Path, *, seed: int = 0) -> dict[str, Path]:
    """Write trials and scores of original (OO), crossed (OP) and protected (PP) comparisons.

    Returns:
        Paths by name: ``trials``, ``original``, and for ``strong`` and ``weak`` protection
        ``NAME`` (PP) and ``NAME-cross`` (OP).
    """
    rng = np.random.default_rng(seed)
    voice = rng.normal(size=(SPEAKERS, DIMENSIONS))
    enroll = _spoken(voice, 5, rng)
    trial = _spoken(voice, UTTERANCES, rng)
    models = {"original": enroll.mean(axis=1)}
    tests = {"original": trial}
    for name, kept in (("strong", 0.25), ("weak", 0.7)):
        models[name] = _protect(enroll, kept, rng).mean(axis=1)
        tests[name] = _protect(trial, kept, rng)
    scores = {"original": _cosine(models["original"], tests["original"])}
    for name in ("strong", "weak"):
        scores[name] = _cosine(models[name], tests[name])
        scores[f"{name}-cross"] = _cosine(models["original"], tests[name])
    paths = {name: folder / f"scores-{name}.csv" for name in scores}
    for name, matrix in scores.items():
        _write(paths[name], "score", [f"{x:.6f}" for x in matrix.ravel()])
    paths["trials"] = folder / "trials.csv"
    same = np.repeat(np.eye(SPEAKERS, dtype=bool), UTTERANCES, axis=1).ravel()
    _write(paths["trials"], "label", ["target" if x else "nontarget" for x in same])
    return paths


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
    names = [f"speaker{i:02d}" for i in range(SPEAKERS)]
    segments = [f"{name}-{u:02d}" for name in names for u in range(UTTERANCES)]
    pairs = ((name, segment) for name in names for segment in segments)
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("enroll", "trial", column))
        writer.writerows((*pair, cell) for pair, cell in zip(pairs, cells, strict=True))
