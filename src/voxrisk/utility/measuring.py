"""What the speech is still good for, before and after protection, in one call."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance
from voxrisk.results import UtilityResult
from voxrisk.types import Estimate, InputError, MissingExtraError, require
from voxrisk.utility import duration, pitch, quality, wer
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.text import normalise

FIGURES = ("wer", "pitch_correlation", "dnsmos", "duration_change")
COMPATS = (pitch.COMPAT, quality.COMPAT)
SHOWN = 10

Sides = dict[str, Estimate]
Cells = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Utility:
    """The figures, why some are missing, and what was found for each utterance.

    Attributes:
        figures: Figure to side (``"original"``, ``"anonymized"``) to estimate.
        missing: Figure to the reason why it could not be had.
        rows: One dictionary for each utterance, the columns of ``utterances.csv``.
    """

    figures: Mapping[str, Sides]
    missing: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]

    def result(self) -> UtilityResult:
        """The figures without the utterances, as results hold them."""
        untrusted = {}
        for name, sides in self.figures.items():
            for estimate in sides.values():
                if not estimate.parameters.get("trusted", True):
                    untrusted[name] = str(estimate.parameters["reason"])
        return UtilityResult(figures=self.figures, missing=self.missing, untrusted=untrusted)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Original and anonymized utterances side by side, and how to estimate and to work."""

    original: Sequence[Utterance]
    anonymized: Sequence[Utterance]
    texts: Sequence[str | None]
    asr: str
    language: str | None
    compat: str | None
    draw: Mapping[str, Any]  # resamples, seed, confidence
    work: Mapping[str, Any]  # journal, workers

    @property
    def speakers(self) -> list[str]:
        return [row.speaker for row in self.original]

    @property
    def sides(self) -> dict[str, Sequence[Utterance]]:
        return {"original": self.original, "anonymized": self.anonymized}


def measure_utility(
    original: Sequence[Utterance],
    anonymized: Sequence[Utterance],
    *,
    transcripts: Mapping[str, str] | None = None,
    asr: str = "whisper-tiny.en",
    language: str | None = None,
    figures: Sequence[str] = FIGURES,
    compat: str | None = None,
    journal: Path | str | None = None,
    workers: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Utility:
    """Every utility figure of a corpus and its anonymized version, with intervals by speakers.

    A figure that cannot be had (no transcripts, a package not installed) is named in ``missing``
    with the reason; the others are still measured. Word error rates carry ``trusted`` among their
    parameters: where it is False the recogniser fails on the original speech already, ``reason``
    says so, and no loss may be computed from them.

    Args:
        original: Utterances before anonymization; speakers and texts are taken from here.
        anonymized: The same utterances after it, in any order.
        transcripts: Utterance id to text; None takes the ``text`` of the tables.
        asr: Recogniser, see :func:`voxrisk.utility.wer.transcribe`.
        language: Language tag; None takes that of the table, else English.
        figures: Which of FIGURES to measure.
        compat: ``"voiceprivacy2022"`` for that challenge's code of the pitch correlation,
            ``"speechmos"`` for DNSMOS with a window at every second.
        journal: File that keeps what is done for each utterance.
        workers: Processes; None takes all cores.
        resamples: Draws of speakers behind the intervals; 0 gives none.
        seed: Seed of the draws.
        confidence: Coverage of the intervals.

    Raises:
        InputError: If the two do not hold the same ids (the message names them), a file cannot be
            read, or an option is unknown.
    """
    if unknown := [name for name in figures if name not in FIGURES]:
        raise InputError(f"no utility figure {unknown[0]!r}; known are {', '.join(FIGURES)}")
    if compat not in (None, *COMPATS):
        raise InputError(f"utility knows compat={' and '.join(map(repr, COMPATS))}, not {compat!r}")
    other = pair(original, anonymized)
    known = {row.utterance: row.text for row in anonymized}
    if transcripts is not None and not known.keys() & transcripts.keys():
        raise InputError(
            f"none of the {len(transcripts)} transcripts has the id of an utterance; "
            f"ids are like {original[0].utterance!r}"
        )
    texts = [
        transcripts.get(row.utterance)
        if transcripts is not None
        else row.text or known[row.utterance]
        for row in original
    ]
    pairs = _Pairs(
        original,
        other,
        texts,
        asr,
        language,
        compat,
        {"resamples": resamples, "seed": seed, "confidence": confidence},
        {"journal": journal, "workers": workers},
    )
    found: dict[str, Sides] = {}
    missing: dict[str, str] = {}
    cells: Cells = {}
    for name in figures:
        try:
            estimates, columns = _MEASURES[name](pairs)
        except (_MissingFigureError, MissingExtraError) as error:
            missing[name] = str(error)
            continue
        found |= estimates
        cells |= columns
    rows = [
        {"utterance": row.utterance, "speaker": row.speaker}
        | {column: values[i] for column, values in cells.items()}
        for i, row in enumerate(original)
    ]
    return Utility(found, missing, rows)


def pair(original: Sequence[Utterance], anonymized: Sequence[Utterance]) -> list[Utterance]:
    """The anonymized version of each original utterance, by id.

    Raises:
        InputError: If there are none, an id stands twice, or an id is on one side only.
    """
    if not original:
        raise InputError("no original utterances to measure utility on")
    sides = []
    for side, rows in (("original", original), ("anonymized", anonymized)):
        by_id = {row.utterance: row for row in rows}
        counts = Counter(row.utterance for row in rows)
        if doubled := [name for name, count in counts.items() if count > 1]:
            raise InputError(f"{side} speech: utterance ids that stand twice: {_named(doubled)}")
        sides.append(by_id)
    left, right = sides
    problems = []
    if absent := [name for name in left if name not in right]:
        problems.append(f"original utterances without an anonymized version: {_named(absent)}")
    if absent := [name for name in right if name not in left]:
        problems.append(f"anonymized utterances without an original: {_named(absent)}")
    if problems:
        raise InputError("; ".join(problems) + ". Both sides need the same utterance ids")
    return [right[name] for name in left]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} ({', '.join(names[:SHOWN])}{more})"


class _MissingFigureError(Exception):
    """The input does not hold what this figure needs; the others are measured all the same."""


def _language(rows: Sequence[Utterance]) -> str:
    languages = sorted({row.language for row in rows if row.language})
    if len(languages) > 1:
        raise InputError(
            f"utterances are in several languages ({', '.join(languages)}); measure each by "
            "itself, or name the one to recognise with `voxrisk utility … --language`"
        )
    return languages[0] if languages else "en"


def _wer(pairs: _Pairs) -> tuple[dict[str, Sides], Cells]:
    kept = [i for i, text in enumerate(pairs.texts) if text and text.strip()]
    if not kept:
        raise _MissingFigureError("no transcripts; add the column text to manifest.csv")
    try:
        language = pairs.language or _language(pairs.original)
        wer.check_language(pairs.asr, language)
    except InputError as error:
        raise _MissingFigureError(str(error)) from error
    if not any(normalise(str(pairs.texts[i]), language=language) for i in kept):
        raise _MissingFigureError("the transcripts hold no words")
    require("jiwer", extra="utility")  # before the long work, not after it
    cells: Cells = {"text": list(pairs.texts)}
    estimates: Sides = {}
    left_out = len(pairs.texts) - len(kept)
    # Both sides in one go: the workers load the recogniser once.
    said = wer.transcribe(
        [rows[i] for rows in pairs.sides.values() for i in kept],
        asr=pairs.asr,
        language=language,
        **pairs.work,
    )
    for side, heard in _by_side(pairs, said).items():
        errors = [
            wer.word_errors(str(pairs.texts[i]), words, language=language)
            for i, words in zip(kept, heard, strict=True)
        ]
        estimates[side] = wer.word_error_rate(
            errors,
            [pairs.speakers[i] for i in kept],
            n={"left_out": left_out} if left_out else None,
            parameters={"asr": pairs.asr, "language": language},
            **pairs.draw,
        )
        cells["words"] = _spread([e.words for e in errors], kept, len(pairs.texts))
        cells[f"errors_{side}"] = _spread([e.errors for e in errors], kept, len(pairs.texts))
        cells[f"heard_{side}"] = _spread(heard, kept, len(pairs.texts))
    trust = wer.trust(estimates["original"].value)
    trusted = {
        side: replace(estimate, parameters={**estimate.parameters, **trust})
        for side, estimate in estimates.items()
    }
    return {"wer": trusted}, cells


def _by_side(pairs: _Pairs, values: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Values of the original utterances, then of as many anonymized ones, by side."""
    half = len(values) // 2
    return dict(zip(pairs.sides, (values[:half], values[half:]), strict=True))


def _spread(values: Sequence[Any], places: Sequence[int], length: int) -> list[Any]:
    whole: list[Any] = [None] * length
    for place, value in zip(places, values, strict=True):
        whole[place] = value
    return whole


def _pitch(pairs: _Pairs) -> tuple[dict[str, Sides], Cells]:
    compat = pairs.compat if pairs.compat == pitch.COMPAT else None
    found = pitch.pitch_correlations(pairs.original, pairs.anonymized, compat=compat, **pairs.work)
    kept = [i for i, value in enumerate(found) if not isinstance(value, str)]
    if not kept:
        raise _MissingFigureError(f"no utterance has a pitch to compare ({found[0]})")
    estimate = ratio_estimate(
        "pitch_correlation",
        [found[i] for i in kept],
        [pairs.speakers[i] for i in kept],
        chance=0.0,
        source=pitch.COMPAT_SOURCE if compat else pitch.SOURCE,
        n={"left_out": len(found) - len(kept)},
        parameters={"compat": compat},
        **pairs.draw,
    )
    numbers = [None if isinstance(value, str) else value for value in found]
    return {"pitch_correlation": {"anonymized": estimate}}, {"pitch_correlation": numbers}


def _dnsmos(pairs: _Pairs) -> tuple[dict[str, Sides], Cells]:
    names = {"dnsmos": "overall", "dnsmos_signal": "signal", "dnsmos_background": "background"}
    compat = pairs.compat if pairs.compat == quality.COMPAT else None
    estimates: dict[str, Sides] = {name: {} for name in names}
    cells: Cells = {}
    both = [*pairs.original, *pairs.anonymized]
    marked = quality.rate_quality(both, compat=compat, **pairs.work)
    for side, marks in _by_side(pairs, marked).items():
        for name, mark in names.items():
            values = [getattr(m, mark) for m in marks]
            cells[f"{name}_{side}"] = values
            estimates[name][side] = ratio_estimate(
                name,
                values,
                pairs.speakers,
                chance=quality.LOWEST_MARK,
                source=quality.SOURCE,
                n={"silent": sum(m.silent for m in marks)},
                parameters={"compat": compat},
                **pairs.draw,
            )
    return estimates, cells


def _duration(pairs: _Pairs) -> tuple[dict[str, Sides], Cells]:
    changes = duration.duration_changes(pairs.original, pairs.anonymized)
    estimate = ratio_estimate(
        "duration_change",
        changes,
        pairs.speakers,
        chance=0.0,
        source=duration.SOURCE,
        **pairs.draw,
    )
    return {"duration_change": {"anonymized": estimate}}, {"duration_change": changes}


_MEASURES: dict[str, Callable[[_Pairs], tuple[dict[str, Sides], Cells]]] = {
    "wer": _wer,
    "pitch_correlation": _pitch,
    "dnsmos": _dnsmos,
    "duration_change": _duration,
}
