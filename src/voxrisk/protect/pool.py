"""Pseudo-speakers from a pool (the idea of VoicePrivacy's baseline B1, used by papers 1 and 4).

A pseudo-speaker is a few speakers of the pool, converted to together. How they are chosen:

- ``random``: any of the allowed speakers.
- ``far``: a random subset of the speakers farthest from the source.
- ``dense``: a random half of one cluster of speakers, clusters with many members first.

B1 averages x-vectors; here each chosen speaker gives nearest frames and the frames are averaged, so
that the mixed voice needs no x-vector synthesiser. B1 finds dense regions by affinity propagation,
here it is k-means.

Source: B. M. L. Srivastava et al., "Privacy and utility of x-vector based speaker anonymization",
IEEE/ACM TASLP 2022.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.protect.private_knn import kmeans
from voxrisk.protect.targets import (
    Vectors,
    candidates,
    distances,
    speakers_of,
    unit_generator,
    unit_of,
)
from voxrisk.types import InputError

STRATEGIES = ("random", "far", "dense")
GENDERS = ("same", "opposite", "random")


def pool_targets(
    rows: Sequence[Utterance],
    pool: Mapping[str, Sequence[Utterance]],
    *,
    strategy: str,
    gender: str,
    size: int,
    farthest: int,
    per: str,
    seed: int,
    vectors: Callable[[], Vectors],
) -> list[tuple[str, ...]]:
    """The speakers that make the pseudo-speaker of every row.

    Args:
        rows: Source utterances.
        pool: Speakers of the pool and their utterances.
        strategy: ``random``, ``far`` or ``dense``.
        gender: ``same``, ``opposite`` or ``random`` (either).
        size: How many speakers make a pseudo-speaker.
        farthest: ``far`` draws them out of so many farthest speakers (B1: 100 out of 200).
        per: Draw anew per utterance, speaker or session.
        seed: Seed of every draw.
        vectors: Gives a vector for each speaker; not asked for ``random``.
    """
    if strategy not in STRATEGIES or gender not in GENDERS:
        raise InputError(
            f"strategy is {strategy!r} and gender is {gender!r}; "
            f"choose {', '.join(STRATEGIES)} and {', '.join(GENDERS)}"
        )
    known = vectors() if strategy != "random" else {}
    allowed = {
        name: _allowed(name, candidates(own, pool, gender), strategy, size, farthest, known)
        for name, own in speakers_of(rows).items()
    }
    chosen = []
    for row in rows:
        generator = unit_generator(seed, "pool", unit_of(row, per))
        groups = allowed[row.speaker]
        group = groups[int(generator.integers(len(groups)))]
        n = min(size, len(group)) if strategy != "dense" else min(size, -(-len(group) // 2))
        picked = generator.choice(len(group), size=n, replace=False)
        chosen.append(tuple(sorted(group[int(i)] for i in picked)))
    return chosen


def _allowed(
    source: str, others: list[str], strategy: str, size: int, farthest: int, vectors: Vectors
) -> list[list[str]]:
    """Groups of speakers, one of which the pseudo-speaker is drawn from."""
    if strategy == "random":
        return [others]
    if strategy == "far":
        far = np.argsort(-distances(source, others, vectors), kind="stable")[: max(farthest, size)]
        return [[others[int(i)] for i in sorted(far)]]
    points = np.stack([vectors[name] for name in others]).astype(np.float32)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    centers = kmeans(points, max(2, round(np.sqrt(len(others)))))
    member = np.argmax(points @ centers.T - 0.5 * np.sum(centers**2, axis=1), axis=1)
    clusters = [[others[int(i)] for i in np.flatnonzero(member == c)] for c in range(len(centers))]
    clusters = sorted(filter(None, clusters), key=len, reverse=True)
    # The denser half of the clusters: a region with many speakers hides one voice best.
    return clusters[: max(1, (len(clusters) + 1) // 2)]
