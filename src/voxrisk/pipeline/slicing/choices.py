"""What a study of slicing is asked to do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxrisk.corpus.trials import Lists
from voxrisk.pipeline.evaluation import EFFORTS, Effort, Evaluation
from voxrisk.protect.slice_corpus import CUTS
from voxrisk.types import InputError

DURATIONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # δ of the paper, in seconds
LONGER = (7.0, 10.0)  # with the effort "paper", utterances are shortened to these too
TRIED = 2
DRAWS, DRAWN = 5, 100  # Section 5.2: five draws of a hundred utterances


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicing:
    """Everything that is chosen; two equal ones on equal speech give equal results.

    Attributes:
        corpus: Clear speech.
        anonymized: The same utterances, anonymized; or
        anonymizer: a name, or a command with {input} and {output}; or neither.
        options: Options of the anonymizer.
        train: Other people's clear speech, which trains attackers and recognisers.
        train_anonymized: The same speech, anonymized as the published speech was.
        durations: δ, in seconds.
        alignment: Ready word times of the clear speech; None: the embedded aligner.
        cut: ``"pause"`` (Algorithm 1) or ``"clean"`` (slices share nothing).
        encoder: Ready speaker encoder.
        asr: Ready recogniser that hears slices; None: by the language and the effort.
        effort: ``quick``, ``standard`` or ``paper``.
        sets: Lists of enrolments and trials, where not those that come with the speech.
        split: ``official`` or ``own``.
        language_model: Of the attack on text: an ARPA file; None: the embedded one.
        neural: Neural models that are asked about the order of words too.
        privacy: Whether to measure how well speakers are recognised.
        text: Whether to attack the order of the words.
        speech: Whether to attack the order of the sound.
        utility: Whether to measure word error rates.
        trained: Whether recognisers learn from slices for it; else a ready one hears them.
        utterances: Of each speaker so many that enrol and so many that are tried, drawn at random;
            0: all.
        tried: Slices of each trial utterance that are tried, drawn at random; 0: all. All that
            enrol do enrol: an attacker uses what there is.
        steps: Of the training of each recogniser; 0: as the recipe says.
        draws: Draws of utterances that the attacks on speech are measured on.
        drawn: Utterances in each.
        seed: Of everything random.
        confidence: Of the intervals.
        title: Of the report.
        reveal: Name the corpus in what may be shared.
    """

    corpus: Path
    anonymized: Path | None = None
    anonymizer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    train: Path | None = None
    train_anonymized: Path | None = None
    durations: tuple[float, ...] = DURATIONS
    alignment: Path | None = None
    cut: str = "pause"
    encoder: str = "ecapa-voxceleb"
    asr: str | None = None
    effort: str = "standard"
    sets: tuple[Lists, ...] = ()
    split: str = "official"
    language_model: Path | None = None
    neural: tuple[str, ...] = ()
    privacy: bool = True
    text: bool = True
    speech: bool = True
    utility: bool = True
    trained: bool = True
    utterances: int = 0
    tried: int = TRIED
    steps: int = 0
    draws: int = DRAWS
    drawn: int = DRAWN
    seed: int = 0
    confidence: float = 0.95
    title: str = ""
    reveal: bool = False

    def __post_init__(self) -> None:
        if self.anonymized and self.anonymizer:
            raise InputError("give either anonymized speech or an anonymizer, and not both")
        if not self.durations:
            raise InputError("no slice length is asked for; give --duration")
        for seconds in self.durations:
            if not (math.isfinite(seconds) and 0.2 <= seconds <= 60):
                raise InputError(f"a slice of {seconds} s; give 0.2 to 60 seconds")
        if len(set(self.durations)) < len(self.durations):
            raise InputError(f"a slice length is asked for twice: {self.durations}")
        if self.cut not in CUTS:
            raise InputError(f"cut is {self.cut!r}; it must be {' or '.join(CUTS)}")
        if self.effort not in EFFORTS:
            raise InputError(f"effort is {self.effort!r}; it must be {', '.join(EFFORTS)}")
        if self.draws < 1 or self.drawn < 2:
            raise InputError(f"{self.draws} draws of {self.drawn} utterances are too few")

    @property
    def shortened(self) -> tuple[float, ...]:
        """To how many seconds utterances are shortened, for the curve of Figure 3."""
        longer = LONGER if self.effort == "paper" else ()
        return tuple(sorted({*self.durations, *longer}))

    @property
    def limits(self) -> Effort:
        """Sizes that go with the effort."""
        return EFFORTS[self.effort]

    @property
    def protected(self) -> bool:
        """Whether there is anonymized speech beside the clear."""
        return bool(self.anonymized or self.anonymizer)

    def evaluation(self) -> Evaluation:
        """The same choices as ``voxrisk evaluate`` has them, for the parts that both share.

        Without any protection the speech stands for its own anonymized version, and nothing but
        the attack on clear speech is run.
        """
        informed = bool(self.anonymizer or self.train_anonymized) and self.protected
        return Evaluation(
            self.corpus,
            anonymized=self.anonymized if self.protected else self.corpus,
            anonymizer=self.anonymizer,
            options=self.options,
            train=self.train if informed else None,
            train_anonymized=self.train_anonymized if self.protected else None,
            encoder=self.encoder,
            effort=self.effort,
            sets=self.sets,
            split=self.split,
            seed=self.seed,
            confidence=self.confidence,
            utility=False,
            reveal=self.reveal,
        )
