"""The file between ``embed`` and ``score``: one vector for each utterance, with its speaker.

An NPZ file with ``utterance (n,)``, ``speaker (n,)`` and ``embedding (n, d)`` in float32; further
text entries, such as the encoder, describe it.
"""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.atomic import atomic
from voxrisk.types import InputError

NAMES = {
    "utterance": ("utterance", "utt"),
    "speaker": ("speaker", "spk"),
    "embedding": ("embedding", "x"),
}


@dataclass(frozen=True)
class Embeddings:
    """Vectors ``embedding (n, d)`` of the utterances ``utterance (n,)`` of ``speaker (n,)``."""

    utterance: NDArray[np.str_]
    speaker: NDArray[np.str_]
    embedding: NDArray[np.float32]
    about: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.utterance)

    @cached_property
    def row(self) -> dict[str, int]:
        """Utterance → its row."""
        return {name: i for i, name in enumerate(self.utterance.tolist())}

    def of_speakers(self) -> dict[str, list[str]]:
        """Speaker → utterances, in the order of the file."""
        groups: dict[str, list[str]] = {}
        for name, speaker in zip(self.utterance.tolist(), self.speaker.tolist(), strict=True):
            groups.setdefault(speaker, []).append(name)
        return groups


def read_embeddings(path: Path | str) -> Embeddings:
    """Read an NPZ file of embeddings; without a speaker entry the speaker is ``""``.

    Raises:
        InputError: If an entry is missing, the sizes differ, an utterance comes twice, or a vector
            is not finite or zero: a broken vector must never look like privacy.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as stored:
            entries = dict(stored)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path}: not a readable NPZ file of embeddings ({error})") from error
    found = {k: next((n for n in names if n in entries), None) for k, names in NAMES.items()}
    if found["utterance"] is None or found["embedding"] is None:
        raise InputError(f"{path}: needs the entries utterance and embedding, has {list(entries)}")
    utterance = entries[found["utterance"]].astype(str)
    embedding = entries[found["embedding"]].astype(np.float32)
    speaker = (
        entries[found["speaker"]].astype(str) if found["speaker"] else np.full(len(utterance), "")
    )
    if embedding.ndim != 2 or not len(utterance) == len(speaker) == len(embedding):
        raise InputError(
            f"{path}: {len(utterance)} utterances and {len(speaker)} speakers, but embeddings of "
            f"shape {embedding.shape}"
        )
    names, counts = np.unique(utterance, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{path}: utterance {names[counts > 1][0]} comes more than once")
    broken = ~np.isfinite(embedding).all(axis=1) | ~embedding.any(axis=1)
    if broken.any():
        raise InputError(
            f"{path}: the vector of utterance {utterance[broken][0]} is zero or not finite "
            f"({int(broken.sum())} such); embed it again"
        )
    about = {k: str(v) for k, v in entries.items() if v.ndim == 0 and v.dtype.kind == "U"}
    return Embeddings(utterance, speaker, embedding, about)


def write_embeddings(path: Path | str, embeddings: Embeddings) -> None:
    """Write an NPZ file, whole or not at all."""
    with atomic(path) as part:
        entries: dict[str, Any] = {name: np.array(text) for name, text in embeddings.about.items()}
        entries |= {name: getattr(embeddings, name) for name in NAMES}
        np.savez(part, **entries)
