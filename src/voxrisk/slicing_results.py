"""What ``voxrisk slicing`` found: for each slice length what it buys, costs, and who undoes it.

Plain rows, one for each figure that a table or a curve shows. The report, the tables and users read
them with attributes; ``results.json`` is these classes as they stand.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from voxrisk import __version__
from voxrisk.files.atomic import write_text
from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_RESULTS, refuse_size
from voxrisk.files.unknown import refuse_unknown
from voxrisk.notices import Notice
from voxrisk.results import FILE, Anonymizer, Corpus, Encoder, Methods
from voxrisk.types import Estimate, InputError

KIND = "slicing"
SCHEMA = 1
CLEAR, ANONYMIZED = "clear", "anonymized"  # the two conditions of speech
WHOLE, SHORTENED, SLICED = "whole", "shortened", "sliced"  # what was tried
PRIVACY = ("d_sys", "linkability", "rocch_eer", "d_ece")  # the figures of privacy, in this order


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyRow:
    """How well an attacker recognises speakers in pieces of one length.

    Attributes:
        condition: ``"clear"`` or ``"anonymized"``.
        attacker: Who tries.
        cut: ``"whole"`` (utterances as they are), ``"shortened"`` (one piece of each, cut at a
            fixed time) or ``"sliced"`` (all slices of each).
        duration: The length that was asked for, in seconds; None for whole utterances.
        seconds: Mean length of what was tried.
        spread: Standard deviation of these lengths.
        pieces: How many were tried.
        figures: ``d_sys``, ``linkability``, ``rocch_eer`` and ``d_ece``, where defined.
        colour: Of the attacker in every figure.
        mark: The same.
    """

    condition: str
    attacker: str
    cut: str
    duration: float | None
    seconds: float
    spread: float
    pieces: int
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    colour: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityRow:
    """Word error rate of one recogniser.

    Attributes:
        recogniser: ``"ready"`` (heard slices) or ``"trained"`` (learned from slices, heard whole
            utterances).
        train: Condition of the speech it learned from; empty for a ready one.
        test: Condition of the speech it heard.
        duration: δ; None: not sliced.
        wer: Word error rate.
        loss: By how much it is worse than without slicing, on the same speakers; None for that.
        mismatch: By how much it is worse than one that learned from the kind of speech that is
            tested, at the same length; None for that, and for a ready one.
        pieces: How many it learned from; of a ready one, how many it heard.
        hours: Speech it learned from.
        steps: Of its training.
    """

    recogniser: str
    train: str
    test: str
    duration: float | None
    wer: Estimate
    loss: Estimate | None = None
    mismatch: Estimate | None = None
    pieces: int | None = None
    hours: float | None = None
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorRow:
    """How well an attacker finds the slice that came next.

    Attributes:
        condition: Speech that was attacked; empty where only its words were.
        attacker: Its name.
        uses: What it goes by: ``"text"``, ``"voice"``, ``"cut"``, ``"speech"`` or ``"all"``.
        duration: δ.
        cut: ``"pause"`` or ``"clean"``.
        slices: How many there were to choose from (the mean, over several draws).
        draws: Draws of utterances that the figures are the mean of; 0: all utterances at once.
        figures: Of the rank of the right slice.
        spread: Standard deviation of these over the draws.
        accuracy: Of a yes-or-no classifier: by class of pair, and over both.
    """

    condition: str
    attacker: str
    uses: str
    duration: float
    cut: str
    slices: float
    draws: int = 0
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    accuracy: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredRow:
    """How much of the utterances a search over all slices puts together again.

    Attributes:
        condition: Speech that was attacked; empty where only its words were.
        attacker: Whose scores were searched.
        duration: δ.
        pool: What lay on the table: ``"all"`` slices, or those of one ``"speaker"`` at a time.
        figures: What was restored, each against chance.
    """

    condition: str
    attacker: str
    duration: float
    pool: str
    figures: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The length to slice at, and why.

    Attributes:
        duration: δ; None where none can be recommended.
        reason: In a few sentences.
        attacker: Who undoes slices of this length best, where any was tried.
    """

    duration: float | None
    reason: str
    attacker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicingResults:
    """Everything a study of slicing found; what could not be had is in ``missing`` with why."""

    kind: str = KIND
    schema: int = SCHEMA
    voxrisk: str = __version__
    title: str = ""
    corpus: Corpus
    anonymizer: Anonymizer | None = None
    encoder: Encoder
    durations: tuple[float, ...]
    cut: str
    fixed: bool = False  # cut at fixed times, because nobody knows when the words are said
    privacy: tuple[PrivacyRow, ...] = ()
    utility: tuple[UtilityRow, ...] = ()
    successors: tuple[SuccessorRow, ...] = ()
    restored: tuple[RestoredRow, ...] = ()
    recommendation: Recommendation
    missing: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    methods: Methods = field(default_factory=Methods)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The kinds of speech there were, clear first."""
        there = {row.condition for row in self.privacy}
        there |= {row.condition for row in self.successors} | {row.test for row in self.utility}
        return tuple(kind for kind in (CLEAR, ANONYMIZED) if kind in there)

    def row(
        self, condition: str, attacker: str, cut: str, duration: float | None = None
    ) -> PrivacyRow | None:
        """One row of privacy, or None."""
        wanted = (condition, attacker, cut, duration)
        return next(
            (r for r in self.privacy if (r.condition, r.attacker, r.cut, r.duration) == wanted),
            None,
        )

    def strongest(self, condition: str, cut: str, duration: float | None) -> PrivacyRow | None:
        """The row of the attacker who recognises most in this speech, by D_sys, else by EER."""
        rows = [
            r
            for r in self.privacy
            if (r.condition, r.cut, r.duration) == (condition, cut, duration)
        ]
        return max(rows, key=_recognised, default=None)

    def costs(self) -> list[UtilityRow]:
        """What slices of every length cost those who use them, by rising length.

        Where a recogniser was trained on slices, it is the user that the paper has in mind, and its
        training and test are of the published kind of speech. Else a ready recogniser heard slices.
        One that knows too few words of whole utterances tells nothing: it cannot get worse.
        """
        published = self.conditions[-1] if self.conditions else CLEAR
        sliced = [r for r in self.utility if r.duration is not None and r.test == published]
        known = [r for r in sliced if r.wer.parameters.get("trusted", True)]
        trained = [r for r in known if r.recogniser == "trained" and r.train == published]
        ready = [r for r in known if r.recogniser == "ready"]
        chosen = trained if any(r.loss for r in trained) or not ready else ready
        return sorted(chosen, key=lambda r: r.duration or 0.0)

    def undoer(self, duration: float) -> SuccessorRow | None:
        """Who puts slices of this length together best: the lowest mean rank of the right one.

        Attacks on the speech that would be published count: anonymized speech where there is any,
        and its words.
        """
        published = self.conditions[-1] if self.conditions else CLEAR
        rows = [
            r
            for r in self.successors
            if r.duration == duration
            and r.condition in ("", published)
            and "mean_rank" in r.figures
        ]
        return min(rows, key=lambda r: r.figures["mean_rank"].value, default=None)

    def to_json(self) -> str:
        """The text of ``results.json``."""
        import msgspec

        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    def write(self, folder: Path) -> None:
        """Write ``results.json`` whole or not at all."""
        write_text(folder / FILE, self.to_json())

    @classmethod
    def read(cls, run: Path | str) -> "SlicingResults":
        """Read the results of a run, from its folder or from the file itself."""
        import msgspec

        path = Path(run)
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            raise InputError(f"{path} is not there; give the folder that voxrisk slicing wrote")
        refuse_size(path, MOST_RESULTS)
        with reading(path, "results", way_out="run the command again"):
            try:
                plain = msgspec.json.decode(path.read_bytes())
                if not isinstance(plain, dict) or plain.get("kind") != KIND:
                    raise InputError(f"{path}: not the results of voxrisk slicing")
                if plain.get("schema") != SCHEMA:
                    raise InputError(
                        f"{path}: schema {plain.get('schema')!r}, and this voxrisk reads {SCHEMA}; "
                        "run the command again: finished stages are used again"
                    )
                found = msgspec.convert(plain, cls)
            except msgspec.MsgspecError as error:
                raise InputError(f"{path}: {error}; run the command again") from error
            refuse_unknown(plain, msgspec.to_builtins(found), str(path))
            return found


def is_slicing(run: Path) -> bool:
    """Whether a folder, or a file, holds results of ``voxrisk slicing``."""
    import msgspec

    path = run / FILE if run.is_dir() else run
    try:
        refuse_size(path, MOST_RESULTS)
        plain = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(plain, dict) and plain.get("kind") == KIND


def _recognised(row: PrivacyRow) -> float:
    if "d_sys" in row.figures:
        return row.figures["d_sys"].value
    return 0.5 - row.figures["rocch_eer"].value


def durations_of(
    rows: Iterable[PrivacyRow | UtilityRow | SuccessorRow | RestoredRow],
) -> list[float]:
    """The lengths that some rows have, ascending."""
    return sorted({row.duration for row in rows if row.duration is not None})
