"""What a ready recogniser hears in slices: their worth to a user with ready tools.

A slice takes Whisper as long as 30 s of speech, its window. So a number of slices is drawn, equally
many of every speaker; or as many as hold a number of words, so that short slices, which hold few,
have intervals as narrow as long ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.hearing import check_language, shown_recogniser
from voxrisk.types import Estimate, InputError
from voxrisk.utility.asr.table import difference, rates_by_speaker
from voxrisk.utility.text import normalise
from voxrisk.utility.transcripts import transcribe
from voxrisk.utility.wer import trust, word_error_rate, word_errors

Key = tuple[str, float | None]  # condition and δ; None: whole utterances


@dataclass(frozen=True, slots=True)
class ReadyCell:
    """What a ready recogniser got wrong in one kind of pieces.

    Attributes:
        duration: δ; None: whole utterances.
        tested: Condition of the speech.
        wer: Word error rate.
        loss: By how much it is higher than on whole utterances of the same condition: the mean over
            speakers. None on those, or with fewer than 5 speakers in common.
        pieces: How many were heard.
    """

    duration: float | None
    tested: str
    wer: Estimate
    loss: Estimate | None
    pieces: int


def ready_utility(
    pieces: Mapping[Key, Sequence[Utterance]],
    *,
    asr: str = "whisper-tiny.en",
    language: str = "en",
    most: int | None = None,
    words: int | None = None,
    journal: Path | None = None,
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
    workers: int | None = None,
) -> tuple[ReadyCell, ...]:
    """Word error rates of a ready recogniser on slices and on whole utterances.

    Args:
        pieces: (condition, δ) → pieces with their texts; δ is None for whole utterances. The clear
            condition comes first.
        asr: Recogniser, see :func:`voxrisk.utility.transcripts.transcribe`.
        language: Of the speech.
        most: At most so many pieces of every kind, speakers in turn; None: all.
        words: As many pieces as hold so many words, speakers in turn, and one of each at least.
        journal: File that keeps what was heard; a run that was killed goes on.
        seed: Of the pieces that are drawn and of the intervals.
        resamples: Of the intervals, which draw speakers.
        confidence: Of the intervals.
        workers: Processes of one thread each.

    Raises:
        InputError: If there are no transcripts, or the recogniser does not know the language.
    """
    check_language(asr, language)
    drawn = {
        key: in_turn(_spoken(rows, key, language), most, words=words, seed=seed)
        for key, rows in pieces.items()
    }
    everything = [row for rows in drawn.values() for row in rows]
    # In one go: the workers load the recogniser once.
    heard = iter(
        transcribe(everything, asr=asr, language=language, journal=journal, workers=workers)
    )
    errors = {
        key: [word_errors(str(row.text), next(heard), language=language) for row in rows]
        for key, rows in drawn.items()
    }
    draw: dict[str, Any] = {"resamples": resamples, "seed": seed, "confidence": confidence}
    rates = {key: rates_by_speaker(found, drawn[key]) for key, found in errors.items()}
    # The first kind of speech is the least protected: there a recogniser must know most words.
    base = errors.get((next(iter(drawn))[0], None), next(iter(errors.values())))
    believed = trust(sum(e.errors for e in base) / sum(e.words for e in base))
    cells = []
    for key, rows in drawn.items():
        condition, duration = key
        wer = word_error_rate(
            errors[key],
            [row.speaker for row in rows],
            parameters={"asr": shown_recogniser(asr), "language": language, **believed},
            **draw,
        )
        whole = rates.get((condition, None))
        loss = (
            difference("wer_loss", rates[key], whole, draw)
            if whole is not None and duration is not None
            else None
        )
        cells.append(ReadyCell(duration, condition, wer, loss, len(rows)))
    return tuple(cells)


def in_turn(
    rows: Sequence[Utterance], most: int | None, *, words: int | None = None, seed: int = 0
) -> list[Utterance]:
    """At most so many pieces, speakers in turn, drawn at random among those of each.

    With ``words`` no more than it takes to hold that many words, but one of every speaker.
    """
    if words is None and (most is None or len(rows) <= most):
        return list(rows)
    order = np.random.default_rng([seed, 3]).permutation(len(rows))
    turn: dict[str, int] = {}
    ranked = []
    for i in order.tolist():
        speaker = rows[i].speaker
        turn[speaker] = turn.get(speaker, 0) + 1
        ranked.append((turn[speaker], i))
    drawn = sorted(ranked)[:most]
    if words is not None:
        held = np.cumsum([len((rows[i].text or "").split()) for _, i in drawn])
        drawn = drawn[: max(len(turn), int(np.searchsorted(held, words)) + 1)]
    return [rows[i] for i in sorted(i for _, i in drawn)]


def _spoken(rows: Sequence[Utterance], key: Key, language: str) -> list[Utterance]:
    kept = [row for row in rows if row.text and normalise(row.text, language=language)]
    if not kept:
        length = "whole" if key[1] is None else f"{key[1]:g} s"
        raise InputError(
            f"{key[0]} speech, {length}: none of {len(rows)} pieces has a transcript; add the "
            "column text to manifest.csv"
        )
    return kept
