"""Vectors of several encoders side by side, and the trials between speakers that they give."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import direction
from voxrisk.attack.soundness import Rows, speaker_folds
from voxrisk.measure.scored_trials import Trials
from voxrisk.types import Embeddings, InputError

Floats: TypeAlias = NDArray[np.float64]
LARGE = 20  # speakers: a collection that is judged apart from the others
ORIGINAL, UNDONE = "original ", "undone "  # blocks of speech as it was, and run backwards


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors of several encoders side by side, each of length one, and where each stands."""

    embeddings: Embeddings
    blocks: Mapping[str, tuple[int, int]]

    def block(self, name: str, rows: Rows | None = None) -> Embeddings:
        """The vectors of one encoder, of all utterances or of some."""
        begin, end = self.blocks[name]
        kept = slice(None) if rows is None else rows
        held = self.embeddings
        return Embeddings(
            held.utterance[kept], held.speaker[kept], held.vectors[kept, begin:end], held.source
        )

    def only(self, names: Sequence[str]) -> Embeddings:
        """Some blocks side by side."""
        parts = [self.block(name).vectors for name in names]
        return replace(self.embeddings, vectors=np.hstack(parts))


def join(heard: Mapping[str, Embeddings]) -> Joined:
    """Vectors of the same utterances by several encoders, side by side.

    Raises:
        InputError: If they are not of the same utterances in the same order.
    """
    first = next(iter(heard.values()))
    blocks, at = {}, 0
    for name, held in heard.items():
        if held.utterance.tolist() != first.utterance.tolist():
            raise InputError(f"{name}: not the same utterances as the other encoders; embed again")
        blocks[name] = (at, at + held.vectors.shape[1])
        at += held.vectors.shape[1]
    side_by_side = np.hstack([direction(held.vectors) for held in heard.values()])
    return Joined(replace(first, vectors=side_by_side.astype(np.float32)), blocks)


def original_of(block: str) -> str:
    """The block of the same encoder on speech as it was.

    >>> original_of("undone ecapa-voxceleb")
    'original ecapa-voxceleb'
    """
    return ORIGINAL + block.removeprefix(UNDONE)


def alike_trials(trials: Trials, kinds: Mapping[str, str] | None) -> Trials:
    """Only the trials between speakers of one kind, where every kind is known."""
    if not kinds or not all(s in kinds and kinds[s] is not None for s in trials.speakers):
        return trials
    code = np.unique([kinds[s] for s in trials.speakers], return_inverse=True)[1]
    same = code[trials.enroll_speaker] == code[trials.trial_speaker]
    return some_trials(trials, same) if (same & ~trials.is_target).any() else trials


def large_collections(
    embeddings: Embeddings, collections: Mapping[str, str] | None
) -> dict[str, str]:
    """Speaker → collection, of those who are judged: few people say nothing about a recogniser.

    Collections of few speakers are put together; whoever is among few even then is left out. Empty
    where it is not known of everybody, or all are of one collection.
    """
    speakers, each = np.unique(embeddings.speaker, return_counts=True)
    if not collections or not all(collections.get(s) for s in speakers.tolist()):
        return {}
    # Who has one utterance is not tried, so does not make a collection large.
    tried = {s for s, n in zip(speakers.tolist(), each.tolist(), strict=True) if n > 1}
    size = Counter(collections[s] for s in tried)
    found = {s: collections[s] if size[collections[s]] >= LARGE else "" for s in speakers.tolist()}
    if len(set(found.values())) < 2:
        return {}
    together = sum(found[s] == "" for s in tried)
    return {s: name for s, name in found.items() if name or together >= LARGE}


def collected_trials(trials: Trials, collections: Mapping[str, str]) -> Trials:
    """Only the trials within a collection, where they tell something; :func:`large_collections`."""
    if not collections:
        return trials
    member = np.array([s in collections for s in trials.speakers])
    code = np.unique([collections.get(s, "") for s in trials.speakers], return_inverse=True)[1]
    same = code[trials.enroll_speaker] == code[trials.trial_speaker]
    keep = same & member[trials.enroll_speaker]
    both = (keep & trials.is_target).any() and (keep & ~trials.is_target).any()
    return some_trials(trials, keep) if both else trials


def some_trials(trials: Trials, keep: NDArray[np.bool_], score: Floats | None = None) -> Trials:
    """Some of the trials, of the same speakers, perhaps with other scores."""
    return Trials.coded(
        (trials.score if score is None else score)[keep],
        trials.is_target[keep],
        trials.enroll_speaker[keep],
        trials.trial_speaker[keep],
        trials.query[keep],
        trials.speakers,
    )


def fold_of_trials(
    embeddings: Embeddings, trials: Trials, *, folds: int, seed: int
) -> NDArray[np.int64]:
    """The fold ``(n,)`` whose speakers each trial is between."""
    names = np.unique(embeddings.speaker)
    fold = dict(
        zip(names.tolist(), speaker_folds(embeddings, folds=folds, seed=seed).tolist(), strict=True)
    )
    return np.array([fold[s] for s in trials.speakers])[trials.enroll_speaker]
