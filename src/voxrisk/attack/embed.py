"""Embed a whole corpus: shards of like length, on all cores, each kept until all are done.

A shard's file is named after the hash of everything its vectors depend on, so a second run goes on
where the first was killed, and never takes up vectors of other audio or of another encoder.
"""

import itertools
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from voxrisk.attack.encoder import Encoder, check_speech, reads
from voxrisk.attack.encoders import encoder_identity, load_encoder
from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.files.embeddings import read_embeddings, write_embeddings
from voxrisk.files.places import place_exists
from voxrisk.journal import hash_of, resumable
from voxrisk.types import Embeddings, InputError

SHARD_SECONDS = 240.0  # the longest
LEAST_SECONDS, EVEN = 30.0, 8  # the shortest; a multiple of so many, so that no core waits


@dataclass(frozen=True, slots=True)
class _Shard:
    rows: tuple[Utterance, ...]
    path: Path
    encoder: str
    device: str


def embed_corpus(
    rows: Sequence[Utterance],
    encoder: str,
    output: Path | str,
    *,
    device: str = "auto",
    workers: int | None = None,
) -> Embeddings:
    """Embed every utterance, write the NPZ file ``output``, and return what it holds.

    The vectors do not depend on ``workers``. What is finished stays in ``output.parts`` if the run
    is killed, and is used by the next one.

    Raises:
        InputError: If an utterance is silent, too short or not finite; the message names it.
    """
    if not rows:
        raise InputError("the corpus holds no utterance")
    output = Path(output)
    parts = output.with_name(output.name + ".parts")
    first = _encoder(encoder, encoder_identity(encoder), device)
    shards = [
        _Shard(group, parts / f"{_digest(group, first)}.npz", encoder, device)
        for group in _groups(rows)
    ]
    resumable(
        _embed_shard,
        shards,
        key=lambda shard: shard.path.stem,
        journal=parts / "journal.jsonl",
        files=_files,
        batch=1,
        workers=workers,
        label="embed",
        device=str(getattr(first, "device", "cpu")),
    )
    found = [read_embeddings(shard.path) for shard in shards]
    row = {name: i for i, name in enumerate(np.concatenate([f.utterance for f in found]).tolist())}
    order = [row[r.utterance] for r in rows]
    result = Embeddings(
        np.array([r.utterance for r in rows]),
        np.array([r.speaker for r in rows]),
        np.concatenate([f.vectors for f in found])[order],
        str(output),
    )
    write_embeddings(output, result)
    shutil.rmtree(parts, ignore_errors=True)
    return result


def shard_count(seconds: float) -> int:
    """Into how many shards so much speech is cut; the number of workers plays no part in it.

    >>> [shard_count(seconds) for seconds in (20, 100, 300, 3600)]
    [1, 3, 8, 16]
    """
    even = EVEN * math.ceil(seconds / SHARD_SECONDS / EVEN)
    return max(1, min(even, int(seconds / LEAST_SECONDS)))


def _groups(rows: Sequence[Utterance]) -> list[tuple[Utterance, ...]]:
    """Cut the corpus, sorted by duration, into shards; the longest come first, so none is late."""
    ordered = sorted(rows, key=lambda r: (-(r.duration or 0.0), r.utterance))
    ends = np.cumsum([row.duration or 8.0 for row in ordered])
    count = shard_count(float(ends[-1]))
    # Each utterance belongs to the shard that its middle lies in, of shards of equal length.
    middle = ends - np.diff(ends, prepend=0.0) / 2
    shard = np.minimum(middle * count / ends[-1], count - 1).astype(int)
    cuts = np.flatnonzero(np.diff(shard)) + 1
    edges = [0, *cuts.tolist(), len(ordered)]
    return [tuple(ordered[a:b]) for a, b in itertools.pairwise(edges)]


def _digest(rows: Sequence[Utterance], encoder: Encoder) -> str:
    for row in rows:
        if not place_exists(row.path):
            raise InputError(f"utterance {row.utterance}: {row.path} cannot be read")
    texts = _texts(rows) if reads(encoder) else None
    return hash_of(
        encoder.identity, [(row.utterance, row.speaker, row) for row in rows],
        *([texts] if texts is not None else []),
    )  # fmt: skip


def _texts(rows: Sequence[Utterance]) -> list[str]:
    return [row.text or "" for row in rows]


def _files(shard: _Shard, _: None) -> list[Path]:
    return [shard.path]


@lru_cache(maxsize=4)  # those of a suite, which take turns
def _encoder(name: str, identity: str, device: str) -> Encoder:
    """An encoder, loaded once in a process; again where the files behind its name are others now.

    One thread in each process: it is faster than threads inside one, and always the same bytes.
    """
    return load_encoder(name, device=device, threads=1)


def _embed_shard(shard: _Shard) -> None:
    encoder = _encoder(shard.encoder, encoder_identity(shard.encoder), shard.device)
    waves = []
    for row in shard.rows:
        try:
            wave = read_audio(row, rate=RATE)
            check_speech(wave)
        except InputError as error:
            raise InputError(f"utterance {row.utterance}: {error}") from error
        waves.append(wave)
    vectors = encoder.embed(waves, _texts(shard.rows)) if reads(encoder) else encoder.embed(waves)
    names = np.array([row.utterance for row in shard.rows])
    speakers = np.array([row.speaker for row in shard.rows])
    write_embeddings(shard.path, Embeddings(names, speakers, vectors))
