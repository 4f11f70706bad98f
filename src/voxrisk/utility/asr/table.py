"""Table 1: word error rates by training and test, and what slicing and mismatch cost in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.measure.paired import paired_difference
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.types import Estimate
from voxrisk.utility.wer import UNTRUSTED, WordErrors, word_error_rate, word_errors

CellKey = tuple[str, float | None, str]  # trained, δ, tested


@dataclass(frozen=True, slots=True)
class Heard:
    """What one recogniser heard in one test, and what it had learned from.

    Attributes:
        duration: δ of the training speech; None: whole utterances.
        trained: Condition of the training speech.
        tested: Condition of the test speech.
        texts: Utterance → what was heard.
        pieces: Pieces of training speech.
        hours: Their length.
        steps: Of the training.
        seconds: How long the training took, with the encoding.
    """

    duration: float | None
    trained: str
    tested: str
    texts: Mapping[str, str]
    pieces: int
    hours: float
    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of Table 1.

    Attributes:
        duration: δ of the training speech; None: whole utterances.
        trained: Condition of the training speech.
        tested: Condition of the test speech.
        wer: Word error rate on whole utterances.
        loss: By how much it is higher than without slicing, in the same condition of training and
            test: the mean over speakers. None without slicing, or with fewer than 5 speakers.
        mismatch: By how much it is higher than after training on the condition that is tested, at
            the same δ: the mean over speakers. None where that is this cell.
        pieces: Pieces of training speech.
        hours: Their length.
        steps: Of the training.
        seconds: How long the training took, with the encoding.
    """

    duration: float | None
    trained: str
    tested: str
    wer: Estimate
    loss: Estimate | None
    mismatch: Estimate | None
    pieces: int
    hours: float
    steps: int
    seconds: float


def cells_of(
    heard: Sequence[Heard],
    tested: Mapping[str, Sequence[Utterance]],
    *,
    language: str,
    draw: Mapping[str, Any],
) -> tuple[Cell, ...]:
    """Count the errors of every recogniser and compare those that differ in one thing."""
    errors = {
        (one.trained, one.duration, one.tested): [
            word_errors(str(row.text), one.texts[row.utterance], language=language)
            for row in tested[one.tested]
        ]
        for one in heard
    }
    rates = {key: rates_by_speaker(found, tested[key[2]]) for key, found in errors.items()}

    def against(name: str, key: CellKey, other: CellKey) -> Estimate | None:
        return (
            None
            if key == other or other not in rates
            else difference(name, rates[key], rates[other], draw)
        )

    cells = []
    for one in heard:
        key = (one.trained, one.duration, one.tested)
        wer = word_error_rate(
            errors[key],
            [row.speaker for row in tested[one.tested]],
            parameters={"language": language, **trust(errors, key)},
            **draw,
        )
        whole, matched = (one.trained, None, one.tested), (one.tested, one.duration, one.tested)
        cells.append(
            Cell(
                one.duration, one.trained, one.tested, wer,
                against("wer_loss", key, whole),
                against("wer_mismatch", key, matched),
                one.pieces, one.hours, one.steps, one.seconds,
            )
        )  # fmt: skip
    return tuple(cells)


def trust(errors: Mapping[CellKey, Sequence[WordErrors]], key: CellKey) -> dict[str, Any]:
    """Whether the recipe works at all: by the matched recogniser that learned from whole speech."""
    base = errors.get((key[2], None, key[2]))
    words = sum(e.words for e in base) if base else 0
    if not base or not words or (rate := sum(e.errors for e in base) / words) < UNTRUSTED:
        return {"trusted": True}
    return {
        "trusted": False,
        "reason": f"trained on whole {key[2]} speech the recogniser gets {100 * rate:.0f} % of the "
        "words wrong: it has too little speech or too few steps to learn from, or the transcripts "
        "belong to other utterances; give more hours or steps, and check the texts",
    }


def rates_by_speaker(errors: Sequence[WordErrors], rows: Sequence[Utterance]) -> dict[str, float]:
    """Word error rate of each speaker that says a word."""
    names, index = np.unique([row.speaker for row in rows], return_inverse=True)
    wrong = np.bincount(index, [e.errors for e in errors], len(names))
    words = np.bincount(index, [e.words for e in errors], len(names))
    return {str(n): w / of for n, w, of in zip(names, wrong, words, strict=True) if of > 0}


def difference(
    name: str, first: Mapping[str, float], second: Mapping[str, float], draw: Mapping[str, Any]
) -> Estimate | None:
    """The first minus the second, each speaker against him- or herself; None for under 5."""
    both = sorted(first.keys() & second.keys())
    if len(both) < MIN_SPEAKERS:
        return None
    found = paired_difference([first[s] for s in both], [second[s] for s in both], **draw)
    return replace(
        found.difference,
        name=name,
        parameters={**found.difference.parameters, "p_value": found.p_value},
    )
