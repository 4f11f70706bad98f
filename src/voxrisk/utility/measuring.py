"""What the speech is still good for, before and after protection, in one call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from voxrisk.corpus import Utterance
from voxrisk.hearing import check_recogniser
from voxrisk.measure import FIGURES
from voxrisk.results import UtilityResult
from voxrisk.shards import kept_workers
from voxrisk.types import InputError, MissingExtraError
from voxrisk.utility.pairs import BySide, Cells, Measured, MissingFigureError, Pairs, pair

# Whose way of computing a figure can be repeated: of the pitch correlation, and of DNSMOS.
COMPATS = ("voiceprivacy2022", "speechmos")


@dataclass(frozen=True, slots=True)
class Utility:
    """The figures, why some are missing, and what was found for each utterance.

    Attributes:
        figures: Figure to side (``"original"``, ``"anonymized"``) to estimate.
        missing: Figure to the reason why it could not be had.
        rows: One dictionary for each utterance, the columns of ``utterances.csv``.
    """

    figures: Mapping[str, BySide]
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


@kept_workers()
def measure_utility(
    original: Sequence[Utterance],
    anonymized: Sequence[Utterance],
    *,
    transcripts: Mapping[str, str] | None = None,
    asr: str | None = None,
    language: str | None = None,
    figures: Sequence[str] = (),
    marked: Collection[str] | None = None,
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
        asr: Recogniser, see :func:`voxrisk.utility.transcripts.transcribe`; None takes one that
            knows the language.
        language: Language tag of all utterances; None takes that of the table, else English.
        figures: Which to measure, of :func:`figures_of_speech`; none named means all.
        marked: Ids of the utterances that networks mark (DistillMOS and DNSMOS take longer than all
            other figures together); None marks all.
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
    known = figures_of_speech()
    if unknown := [name for name in figures if name not in known]:
        raise InputError(f"no utility figure {unknown[0]!r}; known are {', '.join(known)}")
    if compat not in (None, *COMPATS):
        raise InputError(f"utility knows compat={' and '.join(map(repr, COMPATS))}, not {compat!r}")
    if asr is not None:
        check_recogniser(asr)
    other = pair(original, anonymized)
    pairs = Pairs(
        original,
        other,
        _texts(original, other, transcripts),
        asr,
        language,
        compat,
        {"resamples": resamples, "seed": seed, "confidence": confidence},
        {"journal": journal, "workers": workers},
        None if marked is None else frozenset(marked),
    )
    found: dict[str, BySide] = {}
    missing: dict[str, str] = {}
    cells: Cells = {}
    for name in figures or known:
        try:
            estimates, columns = _measure(name, pairs)
        except (MissingFigureError, MissingExtraError) as error:
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


def figures_of_speech() -> tuple[str, ...]:
    """The figures that are measured by themselves; some bring others along (DNSMOS three)."""
    return tuple(name for name, figure in FIGURES.items() if figure.of_speech)


def _measure(name: str, pairs: Pairs) -> Measured:
    measured: Measured = resolve_name(f"voxrisk.{FIGURES[name].of_speech}")(pairs)
    return measured


def _texts(
    original: Sequence[Utterance],
    anonymized: Sequence[Utterance],
    transcripts: Mapping[str, str] | None,
) -> list[str | None]:
    """What was said in each utterance: from the transcripts, else from the tables."""
    if transcripts is None:
        return [
            before.text or after.text for before, after in zip(original, anonymized, strict=True)
        ]
    if not {row.utterance for row in original} & transcripts.keys():
        raise InputError(
            f"none of the {len(transcripts)} transcripts has the id of an utterance; "
            f"ids are like {original[0].utterance!r}"
        )
    return [transcripts.get(row.utterance) for row in original]
