"""What speech is worth as training material: a recogniser learns from it and hears other speech.

Table 1 of Maouche et al., "Enhancing Speech Privacy with Slicing", Interspeech 2022: training on
slices of every length, clear and anonymized, tested on whole utterances, clear and anonymized.
Every recogniser of a table learns from equally many hours of each speaker, in equally many steps of
equally many seconds, with the same seed, and is decoded alike: what differs is the speech alone.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk import shards
from voxrisk.corpus import Utterance
from voxrisk.language import LanguageModel
from voxrisk.store import Store, digest_corpus
from voxrisk.types import InputError, require
from voxrisk.utility.asr.beam import Search
from voxrisk.utility.asr.frames import encode_rows, kind_of, write_frames
from voxrisk.utility.asr.learning import (
    Job,
    Setting,
    alphabet_of,
    describe,
    learn_and_hear,
    seconds_of,
)
from voxrisk.utility.asr.recipes import RECIPES, Recipe
from voxrisk.utility.asr.table import Cell, cells_of
from voxrisk.utility.text import said

Key = tuple[str, float | None]  # condition and δ of training speech; None: whole utterances
HASHES = "hashes.json"
FRAMES_VERSION = 1
BATCH = 16  # utterances that a worker encodes at once


def slice_utility(
    training: Mapping[Key, Sequence[Utterance]],
    testing: Mapping[str, Sequence[Utterance]],
    store: Store,
    *,
    recipe: Recipe | str = "whisper",
    load_model: Callable[[], LanguageModel] | None = None,
    search: Search | None = None,
    language: str = "en",
    hours: float | None = None,
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
    workers: int | None = None,
    device: str = "cpu",
) -> tuple[Cell, ...]:
    """Train a recogniser on each kind of speech, let it hear whole utterances, count its errors.

    Args:
        training: (condition, δ) → pieces with their texts; δ is None for whole utterances.
        testing: Condition → whole utterances with their texts, the same ids in every condition.
        store: Keeps every recogniser and what it heard; a run that was killed goes on.
        recipe: A row of ``RECIPES`` (``"whisper"``, ``"fbank"``), or one of your own.
        load_model: Gives the language model; picklable. None: decode without one.
        search: How to decode.
        language: Of the speech.
        hours: Of training speech for each recogniser; None: as much of every speaker as the set
            that has least of him or her.
        seed: Of the pieces that are drawn, of weights and order.
        resamples: Of the intervals, which draw speakers.
        confidence: Of the intervals.
        workers: Processes of one thread each; they do not change the result.
        device: Where to train.

    Returns:
        A cell for each kind of training speech and each condition of the test, in their order.

    Raises:
        InputError: If there are no transcripts, the frames are for another language, or a set has
            less speech than was asked for.
    """
    for package, extra in (("torch", "attack"), ("jiwer", "utility")):
        require(package, extra=extra)
    chosen = _recipe(recipe)
    _refuse_language(chosen, language)
    learned = {
        key: _spoken(rows, f"{describe(*key)}, for training", language)
        for key, rows in training.items()
    }
    tested = {
        condition: _spoken(rows, f"{condition} speech, to test on", language)
        for condition, rows in testing.items()
    }
    if not learned or not tested:
        raise InputError("a recogniser needs speech to learn from and speech to be tested on")
    drawn = equal_hours(learned, hours=hours, seed=seed)
    setting = Setting(
        store=store.folder,
        recipe=chosen,
        alphabet=alphabet_of((row for rows in drawn.values() for row in rows), language),
        language=language,
        search=search or Search(),
        load_model=load_model,
        tests={
            condition: (
                tuple(row.utterance for row in rows),
                _frames_stage(rows, condition, chosen.frames, store, workers),
            )
            for condition, rows in tested.items()
        },
        seed=seed,
        device=device,
    )
    hashes = store.folder / HASHES
    jobs = [Job(*key, rows, digest_corpus(rows, hashes)) for key, rows in drawn.items()]
    found = shards.run(
        functools.partial(learn_and_hear, setting),
        jobs,
        workers=workers,
        label="recognisers",
        device=device,
        shared=store.folder,
    )
    draw: dict[str, Any] = {"resamples": resamples, "seed": seed, "confidence": confidence}
    heard = [one for parts in found for one in parts]
    return cells_of(heard, tested, language=language, draw=draw)


def equal_hours(
    training: Mapping[Key, Sequence[Utterance]], *, hours: float | None = None, seed: int = 0
) -> dict[Key, tuple[Utterance, ...]]:
    """As much speech of every speaker from every set as the smallest has of him or her.

    Long slices can be cut from long utterances only. If the sets were equally long and no more,
    those of long slices would be made of other people than those of short ones, and a recogniser
    might be better for who taught it. With ``hours`` everybody's share shrinks alike.

    Pieces are drawn at random; those that have the same ids and lengths in two sets (clear and
    anonymized) are drawn alike. What a speaker's pieces do not fill is left to the next one, so
    that no set is longer than the hours, and none is shorter by more than its longest piece.

    Raises:
        InputError: If the speakers have less than ``hours`` in some set, or nobody is in all.
    """
    seconds = {key: [seconds_of(row) for row in rows] for key, rows in training.items()}
    spoken = {key: _by_speaker(rows, seconds[key]) for key, rows in training.items()}
    people = sorted(set.intersection(*(set(own) for own in spoken.values())))
    share = {name: min(own[name] for own in spoken.values()) for name in people}
    have = sum(share.values())
    wanted = have if hours is None else hours * 3600
    if have <= 0 or have < wanted * (1 - 1e-9):
        raise InputError(_too_little(spoken, have, wanted))
    random = np.random.default_rng([seed, 1])
    turn = {people[i]: place for place, i in enumerate(random.permutation(len(people)))}
    due = np.cumsum([share[name] for name in sorted(turn, key=turn.__getitem__)]) * wanted / have
    drawn: dict[Key, tuple[Utterance, ...]] = {}
    for key, rows in training.items():
        order = np.argsort(np.array([row.utterance for row in rows]), kind="stable")
        order = order[np.random.default_rng([seed, 1]).permutation(len(order))]
        mine = [i for i in order.tolist() if rows[i].speaker in turn]
        total, kept = 0.0, []
        for i in sorted(mine, key=lambda i: turn[rows[i].speaker]):
            if total + seconds[key][i] <= due[turn[rows[i].speaker]] * (1 + 1e-9):
                total += seconds[key][i]
                kept.append(i)
        # In the order of the table: slices of one recording lie side by side, and it is read once.
        drawn[key] = tuple(rows[i] for i in sorted(kept))
    return drawn


def _by_speaker(rows: Sequence[Utterance], seconds: Sequence[float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row, lasts in zip(rows, seconds, strict=True):
        found[row.speaker] = found.get(row.speaker, 0.0) + lasts
    return found


def _too_little(spoken: Mapping[Key, Mapping[str, float]], have: float, wanted: float) -> str:
    least = min(spoken, key=lambda key: sum(spoken[key].values()))
    if have <= 0:
        return (
            f"no speaker of the training speech has pieces of every kind; {describe(*least)}, has "
            "least: leave out the longest slices, or give longer utterances"
        )
    return (
        f"the speakers have {have / 3600:.2f} hours for training in every kind of pieces "
        f"({describe(*least)}, has least), and {wanted / 3600:.2f} are asked for; ask for fewer, "
        "or give more speech"
    )


def _recipe(recipe: Recipe | str) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise InputError(f"no recipe {recipe!r}; known are {', '.join(RECIPES)}")
    return RECIPES[recipe]


def _refuse_language(recipe: Recipe, language: str) -> None:
    known = kind_of(recipe.frames).languages
    if known and language.split("-")[0].lower() not in known:
        raise InputError(
            f"the frames {recipe.frames!r} were learned from {', '.join(known)}, and the speech is "
            f"{language!r}; train from filter banks (fbank), with a language model of your own"
        )


def _spoken(rows: Sequence[Utterance], what: str, language: str) -> list[Utterance]:
    """The pieces in which words are said."""
    kept = [row for row in rows if row.text and said(row.text, language=language)]
    if not kept:
        raise InputError(
            f"{what}: none of {len(rows)} pieces has a transcript; add the column text to "
            "manifest.csv"
        )
    return kept


def _frames_stage(
    rows: Sequence[Utterance], condition: str, kind: str, store: Store, workers: int | None
) -> Path:
    """The file of the frames of test speech: every recogniser hears the same."""

    def make(folder: Path) -> None:
        batches = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
        done = shards.run(
            functools.partial(_encode, kind), batches, workers=workers, label="encode"
        )
        write_frames(folder / "frames.f16", (part for parts in done for part in parts))

    digest = digest_corpus(rows, store.folder / HASHES)
    inputs = {"speech": digest, "frames": kind, "identity": kind_of(kind).identity}
    folder = store.entry(
        "frames", inputs, make, label=f"of {condition} speech", version=FRAMES_VERSION
    )
    return folder / "frames.f16"


def _encode(kind: str, rows: Sequence[Utterance]) -> list[Any]:
    return list(encode_rows(rows, kind))
