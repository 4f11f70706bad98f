"""Made-up speakers with attributes, and vectors that tell as much of them as a test wants."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.attributes import Labelled
from voxrisk.corpus import Utterance


def labelled(
    speakers: int = 24,
    utterances: int = 8,
    classes: int = 2,
    *,
    told: float = 0.0,
    size: int = 12,
    seed: int = 0,
    per: str = "speaker",
) -> Labelled:
    """Vectors with a voice of each speaker in them; ``told`` moves them along the class."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(speakers), utterances)
    if per == "speaker":
        truth = rng.permutation(np.arange(speakers) % classes)[who]
    else:
        truth = np.tile(np.arange(utterances) % classes, speakers)
    place = np.random.default_rng(5).standard_normal((classes, size))
    voices = rng.standard_normal((speakers, size))
    vectors = voices[who] + told * place[truth] + rng.standard_normal((who.size, size))
    names = np.array([f"s{i:02d}" for i in who])
    return Labelled(names, truth.astype(np.int64), {"voice": vectors.astype(np.float32)})


def rows(columns: dict[str, list[str]], utterances: int = 2, **more: Any) -> list[Utterance]:
    """Utterances of as many speakers as a column has values; gender, age and language by name."""
    count = len(next(iter(columns.values())))
    known = ("gender", "age", "language", "text", "session")
    found = []
    for i in range(count):
        mine = {name: values[i] or None for name, values in columns.items()}
        fixed = {name: value for name, value in mine.items() if name in known}
        extra = {name: value or "" for name, value in mine.items() if name not in known}
        for k in range(utterances):
            name = f"s{i:02d}-{k}"
            found.append(
                Utterance(name, Path(f"{name}.wav"), f"s{i:02d}", extra=extra, **fixed, **more)
            )
    return found


def shares(speaker: NDArray[np.str_]) -> NDArray[np.float64]:
    """Weight of each row by which speakers count the same, the slow way."""
    return np.array([1.0 / (speaker == s).sum() for s in speaker.tolist()])
