"""From utterances to conversations: who enrols, who is tested, with how much speech.

A conversation of length L is the plain mean of L utterance embeddings, scaled to length one.
Conversations of one speaker never share an utterance. Everything random depends on the seed and on
the ids, not on the order of the rows of a file.

Reference: Vauquier et al., "Legally validated evaluation framework for voice anonymization",
Interspeech 2025, Section 3.4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import Embeddings, InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Names = NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Conversations:
    """Conversations grouped by speaker: those of speaker i are rows first[i] to first[i + 1].

    Attributes:
        speaker: ``(n,)`` speakers that have at least one conversation, sorted.
        first: ``(n + 1,)`` where the conversations of each begin.
        vectors: ``(first[-1], d)`` of length one.
        excluded: Speakers that have too few utterances.
    """

    speaker: Names
    first: Ints
    vectors: Floats
    excluded: Names

    @property
    def count(self) -> Ints:
        """``(n,)`` number of conversations of each speaker."""
        return np.diff(self.first)


def check_sides(enrolled: Embeddings, tested: Embeddings) -> None:
    """Make sure that two sets can be the two sides of an attack.

    Raises:
        InputError: If a tested speaker is not enrolled, an utterance is on both sides, the
            dimensions differ, or there are fewer than two speakers.
    """
    if enrolled.vectors.shape[1] != tested.vectors.shape[1]:
        raise InputError(
            f"{enrolled.source} has {enrolled.vectors.shape[1]} dimensions and {tested.source} has "
            f"{tested.vectors.shape[1]}; embed both with the same extractor"
        )
    if (strangers := np.setdiff1d(tested.speaker, enrolled.speaker)).size:
        raise InputError(
            f"{tested.source}: {naming(strangers, 'speaker')} not in {enrolled.source}; whoever is "
            "not enrolled cannot be found: enrol them in the first set or take them out of the "
            "second"
        )
    if (shared := np.intersect1d(enrolled.utterance, tested.utterance)).size:
        raise InputError(
            f"{naming(shared, 'utterance')} both in {enrolled.source} and in {tested.source}; a "
            "recording cannot be enrolment and test at once: keep it in one of them"
        )
    _at_least_two(enrolled)


def halves(whole: Embeddings, *, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    """Deal each speaker's utterances out to two sets, the first never the smaller.

    Raises:
        InputError: If there are fewer than two speakers, or one has a single utterance.
    """
    _at_least_two(whole)
    speaker, group, rank = shuffled(whole, seed, 0)
    size = np.bincount(group)
    if (single := speaker[size < 2]).size:
        raise InputError(
            f"{whole.source}: {naming(single, 'speaker', 'has', 'have')} one utterance; nothing is "
            "left to test once it is enrolled: add utterances, leave out speakers with few "
            "(min_utterances=2, --min-utterances 2), or give a second set"
        )
    second = rank < (size // 2)[group]
    return _rows(whole, ~second, "enrolled half"), _rows(whole, second, "tested half")


def _rows(embeddings: Embeddings, keep: NDArray[np.bool_], part: str = "") -> Embeddings:
    e = embeddings
    source = f"{e.source} ({part})" if part else e.source
    return Embeddings(e.utterance[keep], e.speaker[keep], e.vectors[keep], source)


def of_speakers(embeddings: Embeddings, speakers: Names) -> Embeddings:
    """Only the utterances of these speakers.

    Raises:
        InputError: If none of them is there.
    """
    keep = np.isin(embeddings.speaker, speakers)
    if not keep.any():
        raise InputError(
            f"{embeddings.source}: none of its speakers is among those that have enough utterances "
            "in the other set; lower min_utterances, or give sets of the same speakers"
        )
    return _rows(embeddings, keep)


def with_at_least(embeddings: Embeddings, utterances: int) -> Embeddings:
    """Leave out the speakers that have fewer than this many utterances."""
    if utterances <= 1:
        return embeddings
    _, group, size = np.unique(embeddings.speaker, return_inverse=True, return_counts=True)
    keep = size[group] >= utterances
    if not keep.any():
        raise InputError(
            f"{embeddings.source}: no speaker has {utterances} utterances, the most is {size.max()}"
        )
    return _rows(embeddings, keep)


def conversations(
    embeddings: Embeddings, length: int, *, at_least: int = 1, at_most: int = 10, seed: int = 0
) -> Conversations:
    """Make up to ``at_most`` disjoint conversations of ``length`` utterances for each speaker.

    A speaker with fewer than ``at_least · length`` utterances is excluded and named.

    Raises:
        InputError: If no speaker has enough utterances.
    """
    if length < 1:
        raise InputError(f"L is {length}; a conversation has at least one utterance")
    speaker, group, rank = shuffled(embeddings, seed, length)
    size = np.bincount(group)
    count = np.minimum(size // length, at_most)
    count[count < at_least] = 0
    if not count.any():
        raise InputError(
            f"{embeddings.source}: no speaker has the {at_least * length} utterances that L = "
            f"{length} needs; the most is {size.max()} ({speaker[size.argmax()]}): lower L"
        )
    chosen = np.flatnonzero(rank < (count * length)[group])
    chosen = chosen[np.lexsort((rank[chosen], group[chosen]))]
    kept = count > 0
    vectors = _means(embeddings.vectors, chosen.reshape(-1, length))
    first = np.concatenate(([0], np.cumsum(count[kept])))
    return Conversations(speaker[kept], first, vectors, speaker[~kept])


def speaker_means(
    embeddings: Embeddings, *, at_most: int | None = None, seed: int = 0
) -> tuple[Names, Floats]:
    """One vector for each speaker: the mean of all utterances, or of ``at_most`` drawn ones."""
    speaker, group, rank = shuffled(embeddings, seed, 0)
    chosen = np.arange(group.size) if at_most is None else np.flatnonzero(rank < at_most)
    # Sorted by utterance id within a speaker, so the sum does not depend on the order of the file.
    chosen = chosen[np.lexsort((embeddings.utterance[chosen], group[chosen]))]
    first = np.searchsorted(group[chosen], np.arange(speaker.size + 1))
    total = np.empty((speaker.size, embeddings.vectors.shape[1]))
    for part in _chunks(speaker.size, 256):
        here, end = first[part.start], first[part.stop]
        rows = embeddings.vectors[chosen[here:end]].astype(np.float64)
        total[part] = np.add.reduceat(rows, first[part] - here, axis=0)
    return speaker, _scaled(total)


def shuffled(embeddings: Embeddings, seed: int, stream: int) -> tuple[Names, Ints, Ints]:
    """Speakers, the speaker of each row, and its place in the random order of that speaker."""
    speaker, group = np.unique(embeddings.speaker, return_inverse=True)
    by_name = np.argsort(embeddings.utterance, kind="stable")
    key = np.empty(group.size)
    key[by_name] = np.random.default_rng([seed, stream]).random(group.size)
    order = np.lexsort((key, group))
    size = np.bincount(group)
    rank = np.empty(group.size, dtype=np.int64)
    rank[order] = np.arange(group.size) - np.repeat(np.cumsum(size) - size, size)
    return speaker, group.astype(np.int64), rank


def _means(vectors: NDArray[np.floating], rows: Ints) -> Floats:
    """Mean of each row of indices, in float64, a few thousand at a time to spare memory."""
    out = np.empty((len(rows), vectors.shape[1]))
    for part in _chunks(len(rows), 4096):
        out[part] = vectors[rows[part]].mean(axis=1, dtype=np.float64)
    return _scaled(out)


def _chunks(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _scaled(vectors: Floats) -> Floats:
    """Length one, in place and without a table of squares: there are millions of means."""
    norm = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not norm.all():
        raise InputError(
            "a mean of embeddings is zero: utterances of one speaker cancel out, which no real "
            "extractor does; embed again"
        )
    vectors /= norm[:, np.newaxis]
    return vectors


def _at_least_two(a: Embeddings) -> None:
    if (n := np.unique(a.speaker).size) < 2:
        raise InputError(
            f"{a.source} has {n} speaker; nobody can be singled out or linked among fewer than two"
        )


def naming(names: Names, what: str, one: str = "is", several: str = "are") -> str:
    """A few of the culprits by name, how many they are, and a verb that agrees.

    >>> naming(np.array(["p1", "p2"]), "speaker", "has", "have")
    '2 speakers (p1, p2) have'
    """
    shown = ", ".join(names[:3]) + (", …" if names.size > 3 else "")
    if names.size == 1:
        return f"{what} {shown} {one}"
    return f"{names.size} {what}s ({shown}) {several}"
