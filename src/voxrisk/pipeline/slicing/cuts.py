"""The pieces of speech that are tried: slices between words, and utterances cut short."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from voxrisk.attack.encoder import check_speech
from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import language_code
from voxrisk.journal import hash_of, resumable
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.speech import Speech
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.protect.alignment import read_alignment, write_alignment
from voxrisk.protect.slice_corpus import OVERSHOOT_SECONDS, Plan, inside, slice_corpus
from voxrisk.protect.slicing import Word, slice_fixed, slice_words
from voxrisk.protect.word_times import TIMED, align_with, check_aligner, hardly_aligned
from voxrisk.types import InputError, MissingExtraError, require

Words = Mapping[str, list[Word]]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces of utterances of one condition, and the utterance each comes from.

    Attributes:
        condition: ``"clear"`` or ``"anonymized"``.
        cut: ``"whole"``, ``"shortened"`` or ``"sliced"``.
        duration: What was asked for; None: nothing.
        rows: The pieces as utterances of their own.
        digest: Hash of all of them.
    """

    condition: str
    cut: str
    duration: float | None
    rows: tuple[Utterance, ...]
    digest: str

    @property
    def sources(self) -> dict[str, list[str]]:
        """Utterance → its pieces, in order."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            found.setdefault(source_of(row), []).append(row.utterance)
        return found

    def lengths(self) -> tuple[float, float]:
        """Mean and standard deviation of the lengths, in seconds."""
        seconds = np.array([row.duration or 0.0 for row in self.rows])
        return float(seconds.mean()), float(seconds.std())


def source_of(row: Utterance) -> str:
    """The utterance that a piece comes from; a whole one comes from itself."""
    return row.extra.get("source", row.utterance)


def word_times(
    chosen: Slicing, speech: Speech, stages: Stages
) -> tuple[Words | None, Words | None, list[Notice]]:
    """When each word is said, in clear and in anonymized speech; None where nobody knows."""
    if chosen.alignment is not None:
        known = read_alignment(chosen.alignment)
        ids = [row.utterance for row in speech.original]
        if not any(name in known for name in ids):
            raise InputError(
                f"{chosen.alignment}: has no words for any utterance of the corpus "
                f"({ids[0]!r} …); name them alike"
            )
        clear: Words = {name: known.get(name, []) for name in ids}
        without = sum(not clear[name] for name in ids)
    else:
        if not any(row.text for row in speech.original):
            return None, None, [notice("slicing_no_text")]
        try:
            clear = align_stage(speech.original, speech.digest, stages, "clear speech")
        except MissingExtraError as error:
            return None, None, [notice("slicing_no_aligner", detail=str(error))]
        except InputError as error:
            return None, None, [notice("slicing_language", detail=str(error))]
        without = sum(not any(w.start is not None for w in words) for words in clear.values())
    notices = [notice("slicing_unaligned", count=without, total=len(clear))] if without else []
    if speech.anonymized is speech.original:
        return clear, clear, notices
    try:
        other, moved = kept_times(clear, speech.original, speech.anonymized, stages)
    except (InputError, MissingExtraError) as error:
        notices.append(notice("slicing_no_aligner", detail=str(error)))
        return clear, None, notices
    if moved:
        notices.append(notice("slicing_moved", count=moved, total=len(speech.anonymized)))
    return clear, other, notices


def kept_times(
    words: Words, before: Sequence[Utterance], after: Sequence[Utterance], stages: Stages
) -> tuple[Words, int]:
    """Word times of anonymized speech, and how many utterances were aligned again for them.

    Anonymizers mostly keep the times of the clear speech; an utterance of another length does not.
    """
    lasts = {row.utterance: row.duration or 0.0 for row in before}
    moved = [
        row
        for row in after
        if abs((row.duration or 0.0) - lasts[row.utterance]) > OVERSHOOT_SECONDS
    ]
    if not moved:
        return words, 0
    digest = digest_corpus(moved, stages.folder / "hashes.json")
    again = align_stage(moved, digest, stages, "anonymized speech of other length")
    return {**words, **again}, len(moved)


def align_stage(rows: Sequence[Utterance], digest: str, stages: Stages, label: str) -> Words:
    """Word times, found once for each corpus: by the embedded aligner, if all of it is English.

    Else by a recogniser that knows many languages. Where hardly a word of an utterance is found,
    none counts: cuts between the few that look alike would say nothing.
    """
    spoken = {language_code(row.language or "en") for row in rows if row.text}
    asr = None if spoken <= {"en"} else TIMED[-1]
    check_aligner(rows, asr, None)
    if asr is None:
        require("pocketsphinx", extra="align")  # said before any worker starts

    def make(folder: Path) -> None:
        found = resumable(
            functools.partial(_timed, asr),
            rows,
            key=lambda row: hash_of(row, row.text, row.language, *([asr] if asr else [])),
            journal=folder / "journal.jsonl",
            label="align",
        )
        words = {row.utterance: [Word(*w) for w in ws] for row, ws in zip(rows, found, strict=True)}
        write_alignment(folder / "words.csv", words)
        (folder / "journal.jsonl").unlink(missing_ok=True)

    inputs = {"corpus": digest} | ({"asr": asr} if asr else {})
    folder = stages.run("align", inputs, make, label=label, speech=rows, what=asr or "")
    found = read_alignment(folder / "words.csv") if any(row.text for row in rows) else {}
    mine = {row.utterance: found.get(row.utterance, []) for row in rows}
    return {name: [] if hardly_aligned(words) else words for name, words in mine.items()}


def _timed(asr: str | None, row: Utterance) -> list[tuple[str, float | None, float | None]]:
    return [(w.text, w.start, w.end) for w in align_with(asr, None, row)]


def whole(rows: Sequence[Utterance], condition: str, digest: str) -> Pieces:
    """The utterances as they are."""
    return Pieces(condition, "whole", None, tuple(rows), digest)


def sliced(
    rows: Sequence[Utterance],
    digest: str,
    condition: str,
    duration: float,
    *,
    words: Words | None,
    cut: str,
    stages: Stages,
) -> tuple[Pieces | None, int]:
    """All slices of an utterance list, without the silent ones, and how many of those there were.

    Without word times the cuts are at fixed times. A slice with its pauses is a part of the
    recording and needs no file of its own; a clean one is faded and levelled, and is written. None:
    not one slice is that long.
    """
    made = (
        _written(rows, digest, duration, words, stages)
        if cut == "clean"
        else [piece for row in rows for piece in _parts(row, duration, words)]
    )
    return _heard(made, condition, "sliced", duration, stages)


def _parts(row: Utterance, duration: float, words: Words | None) -> list[Utterance]:
    """The slices of an utterance as utterances that begin and end inside its recording."""
    seconds = row.duration or 0.0
    try:
        if words is None:
            found = slice_fixed([], signal=seconds, duration=duration)
        else:
            known = [inside(word, seconds) for word in words.get(row.utterance, ())]
            found = slice_words(known, signal=seconds, duration=duration)
    except InputError as error:
        raise InputError(f"{row.utterance}: {error}") from error
    begin = row.start or 0.0
    return [
        replace(
            row,
            utterance=f"{row.utterance}-s{place:03d}",
            text=" ".join(piece.words) or None,
            duration=piece.end - piece.start,
            start=begin + piece.start,
            end=begin + piece.end,
            extra={**row.extra, "source": row.utterance, "place": str(place)},
        )
        for place, piece in enumerate(found)
    ]


def _written(
    rows: Sequence[Utterance], digest: str, duration: float, words: Words | None, stages: Stages
) -> list[Utterance]:
    """Slices that share nothing, as ``voxrisk slice`` writes them."""
    plan = Plan(duration, fixed=words is None, cut="clean")
    times = None if words is None else hash_of({k: [repr(w) for w in v] for k, v in words.items()})

    def make(folder: Path) -> None:
        slice_corpus(rows, folder / "slices", plan=plan, alignment=words)

    inputs = {"corpus": digest, "duration": duration, "words": times}
    folder = stages.run("slice", inputs, make, label=f"to {duration:g} s")
    table = folder / "slices" / "manifest.csv"
    found = table.read_text(encoding="utf-8").count("\n") > 1
    return read_corpus(folder / "slices") if found else []


def shortened(
    rows: Sequence[Utterance], condition: str, duration: float, stages: Stages
) -> tuple[Pieces | None, int]:
    """The middle of every utterance, cut to a length; a shorter utterance stays as it is.

    The middle, because recordings begin and end with silence, in which nobody is recognised.
    """
    made = []
    for row in rows:
        seconds = row.duration or 0.0
        if seconds > duration:
            start = (row.start or 0.0) + (seconds - duration) / 2
            row = replace(row, start=start, end=start + duration, duration=duration)
        made.append(row)
    return _heard(made, condition, "shortened", duration, stages)


def _heard(
    rows: Sequence[Utterance], condition: str, cut: str, duration: float, stages: Stages
) -> tuple[Pieces | None, int]:
    """Leave out pieces that hold no sound: no encoder can say whose silence it is."""
    together: dict[Path, list[Utterance]] = {}
    for row in rows:
        together.setdefault(row.path, []).append(row)
    sounding = resumable(
        _sounds,
        list(together.values()),
        key=functools.partial(hash_of, "sounds"),
        journal=stages.folder / "sounding.jsonl",
        batch=64,
        label="sound of pieces",
    )
    heard = {
        row.utterance
        for group, sounds in zip(together.values(), sounding, strict=True)
        for row, sound in zip(group, sounds, strict=True)
        if sound
    }
    kept = tuple(row for row in rows if row.utterance in heard)
    if not kept:
        return None, len(rows)
    digest = digest_corpus(kept, stages.folder / "hashes.json")
    return Pieces(condition, cut, duration, kept, digest), len(rows) - len(kept)


def _sounds(rows: Sequence[Utterance]) -> list[bool]:
    """Which pieces of one recording hold sound; it is read once for all of them."""
    found = []
    whole = read_audio(rows[0].path)
    for row in rows:
        start = round((row.start or 0.0) * RATE)
        end = len(whole) if row.end is None else round(row.end * RATE)
        try:
            check_speech(whole[start:end])
        except InputError:
            found.append(False)
        else:
            found.append(True)
    return found
