"""The speech of a study: both conditions, when their words are said, and all slices of them."""

from dataclasses import dataclass, field

from voxrisk.attack.successors import Slices
from voxrisk.corpus import Utterance
from voxrisk.corpus.pairs import PairCheck
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.slicing import cuts
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.cuts import Pieces, Words
from voxrisk.pipeline.speech import Speech, described, prepare_speech, usable_rows
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.slicing_results import (
    ANONYMIZED,
    CLEAR,
    PrivacyRow,
    RestoredRow,
    SuccessorRow,
    UtilityRow,
)


@dataclass(slots=True)
class Found:
    """What the parts of a study add to, each in its turn."""

    privacy: list[PrivacyRow] = field(default_factory=list)
    utility: list[UtilityRow] = field(default_factory=list)
    successors: list[SuccessorRow] = field(default_factory=list)
    restored: list[RestoredRow] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)

    def note(self, *more: Notice) -> None:
        """Say something once."""
        for one in more:
            if one not in self.notices:
                self.notices.append(one)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What every part of a study works on.

    Attributes:
        chosen: What was asked for.
        evaluation: The same as ``voxrisk evaluate`` has it.
        speech: Clear and anonymized utterances.
        words: Condition → when each word is said; None where nobody knows.
        sliced: Condition and δ → all slices.
        stages: Where finished work is kept.
    """

    chosen: Slicing
    evaluation: Evaluation
    speech: Speech
    words: dict[str, Words | None]
    sliced: dict[tuple[str, float], Pieces]
    stages: Stages

    def rows(self, condition: str) -> tuple[tuple[Utterance, ...], str]:
        """The utterances of a condition and their digest."""
        if condition == CLEAR:
            return self.speech.original, self.speech.digest
        return self.speech.anonymized, self.speech.anonymized_digest

    @property
    def conditions(self) -> tuple[str, ...]:
        """What kinds of speech there are."""
        return (CLEAR, ANONYMIZED) if self.chosen.protected else (CLEAR,)


def prepare(chosen: Slicing, stages: Stages, found: Found) -> Material:
    """Read the speech, find the times of its words, and cut it at every length."""
    evaluation = chosen.evaluation()
    speech = _speech(chosen, evaluation, stages)
    found.note(*speech.notices)
    clear, anonymized, said = cuts.word_times(chosen, speech, stages)
    found.note(*said)
    words = {CLEAR: clear, ANONYMIZED: anonymized}
    material = Material(chosen, evaluation, speech, words, {}, stages)
    for duration in chosen.durations:
        for condition in material.conditions:
            rows, digest = material.rows(condition)
            pieces, silent = cuts.sliced(
                rows, digest, condition, duration,
                words=words[condition], cut=chosen.cut, stages=stages,
            )  # fmt: skip
            if silent:
                found.note(notice("slicing_silent", count=silent, seconds=duration, kind=condition))
            if pieces is None:
                found.note(notice("slicing_too_long", seconds=duration, cut="sliced"))
            else:
                material.sliced[condition, duration] = pieces
    return material


def _speech(chosen: Slicing, evaluation: Evaluation, stages: Stages) -> Speech:
    """Both kinds of speech; where nothing was anonymized, the clear speech stands for both."""
    if chosen.protected:
        return prepare_speech(evaluation, stages)
    notices: list[Notice] = []
    hashes = stages.folder / "hashes.json"
    rows, sounds = usable_rows(stages.read(chosen.corpus), "clear", stages, hashes, notices)
    digest = digest_corpus(rows, hashes)
    alone = PairCheck(
        "identical", "there is one kind of speech", len(rows), 0, (), (), (), 1.0, 0.0, None, 1.0,
        0.0, chosen.seed,
    )  # fmt: skip
    both = tuple(rows)
    return Speech(both, both, digest, digest, described(rows), alone, sounds, tuple(notices))


def slices_of(pieces: Pieces) -> Slices:
    """What is known of slices: who said what, and where it stood."""
    rows = pieces.rows
    return Slices(
        tuple(row.speaker for row in rows),
        tuple(cuts.source_of(row) for row in rows),
        tuple(int(row.extra["place"]) for row in rows),
        tuple(tuple((row.text or "").split()) for row in rows),
    )
