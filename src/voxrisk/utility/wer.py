"""Word and character error rate: is the speech still understood, by a machine at least?

What is counted is what a ready recogniser (:mod:`voxrisk.hearing`) hears against what was said.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from voxrisk.types import Estimate, InputError, require
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import BySide, Cells, Measured, MissingFigureError, Pairs
from voxrisk.utility.text import normalise
from voxrisk.utility.transcripts import Heard, hear

# Where more than this is wrong before protection, recogniser or transcripts are wrong. Letters of
# two unrelated texts agree more often than words do.
UNTRUSTED, UNTRUSTED_CHARACTERS = 0.6, 0.5
UNITS = {"wer": ("word", "words"), "cer": ("character", "characters")}
SOURCE = "(substitutions + deletions + insertions) / {units}, NIST sclite"


@dataclass(frozen=True, slots=True)
class WordErrors:
    """How the words of one utterance fared, or its characters, where these are counted."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def words(self) -> int:
        """Words of the reference (or characters)."""
        return self.hits + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        """Everything that went wrong; can exceed what was said."""
        return self.substitutions + self.deletions + self.insertions


def word_errors(reference: str, recognised: str, *, language: str = "en") -> WordErrors:
    """Align two texts word by word after :func:`~voxrisk.utility.text.normalise`.

    Without a word in the reference every recognised word is an insertion; without a recognised word
    every word of the reference is a deletion; two texts without words have nothing to count.

    >>> word_errors("MISTER BROWN WAS LATE", "Mr. Brown is late, late.")
    WordErrors(hits=3, substitutions=1, deletions=0, insertions=1)
    """
    left, right = (normalise(text, language=language) for text in (reference, recognised))
    return _aligned(left, right, left.split(), right.split(), "process_words")


def character_errors(reference: str, recognised: str, *, language: str = "en") -> WordErrors:
    """Align two texts character by character after :func:`~voxrisk.utility.text.normalise`.

    Spaces do not count: where a word ends is a matter of spelling (``any one``, ``anyone``), and
    some languages are written without them.

    >>> character_errors("今天天气很好", "今天天汽好", language="zh")
    WordErrors(hits=4, substitutions=1, deletions=1, insertions=0)
    """
    left, right = (
        normalise(text, language=language).replace(" ", "") for text in (reference, recognised)
    )
    return _aligned(left, right, left, right, "process_characters")


def _aligned(
    left: str, right: str, said: Sequence[str], heard: Sequence[str], how: str
) -> WordErrors:
    jiwer: Any = require("jiwer", extra="utility")
    if not said:
        return WordErrors(0, 0, 0, len(heard))
    found = getattr(jiwer, how)(left, right)
    return WordErrors(found.hits, found.substitutions, found.deletions, found.insertions)


def error_rate(
    name: str,
    errors: Sequence[WordErrors],
    speakers: Sequence[str],
    *,
    n: Mapping[str, int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Of 100 words (or characters) spoken, how many does the recogniser get wrong.

    WER = Σ errors / Σ words over all utterances, NIST's definition; CER the same of characters.
    From 0 (nothing wrong) to 1 (as if nothing had been recognised: an empty transcript) and beyond,
    when words are made up.

    Args:
        name: ``"wer"`` or ``"cer"``.
        errors: Of each utterance.
        speakers: Who speaks in each.
        n: Sizes to report besides.
        parameters: What was chosen.
        resamples: Draws of speakers behind the interval.
        seed: Of the draws.
        confidence: Of the interval.

    Raises:
        InputError: If there are no words, or not one speaker for each utterance.
    """
    if len(errors) != len(speakers):
        raise InputError(
            f"{name}: {len(errors)} utterances but {len(speakers)} speakers; give one for each"
        )
    unit, units = UNITS[name]
    said = [e.words for e in errors]
    if not any(said):
        raise InputError(
            f"{name}: the transcripts hold no {units}, so no share of them can be wrong"
        )
    kinds = ("substitutions", "deletions", "insertions")
    counts = {kind: sum(getattr(e, kind) for e in errors) for kind in kinds}
    return ratio_estimate(
        name,
        [e.errors for e in errors],
        speakers,
        denominator=said,
        chance=1.0,
        source=SOURCE.format(units=units),
        n={unit: sum(said), **counts, **(n or {})},
        parameters=parameters,
        rate=True,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )


def word_error_rate(
    errors: Sequence[WordErrors], speakers: Sequence[str], **options: Any
) -> Estimate:
    """Of 100 words spoken, how many does the recogniser get wrong; see :func:`error_rate`."""
    return error_rate("wer", errors, speakers, **options)


def trust(original: float, *, name: str = "wer", declared: bool = True) -> dict[str, Any]:
    """Whether error rates can be compared, by that of the original speech.

    A recogniser for the language, with the right transcripts, gets most words of clear speech
    right. At 60 % errors and more before any protection (50 % of the characters, where words are
    not counted) it is the wrong recogniser (another language: 145 %) or the transcripts are of
    other utterances (99 %): what protection costs cannot be seen then.

    Returns:
        ``{"trusted": True}``, or ``{"trusted": False, "reason": …}``.

    >>> trust(0.04)
    {'trusted': True}
    """
    if original < (UNTRUSTED if name == "wer" else UNTRUSTED_CHARACTERS):
        return {"trusted": True}
    spoken = "" if declared else "nobody said which language it is, and English was assumed; "
    return {
        "trusted": False,
        "reason": f"the recogniser gets {100 * original:.0f}\u00a0% of the {UNITS[name][1]} of the "
        "original speech wrong: it does not know this speech, or the transcripts belong to other "
        f"utterances; {spoken}check the texts, name the language (--language), or take another "
        "recogniser (--asr)",
    }


def measure_wer(pairs: Pairs) -> Measured:
    """Word error rates before and after, and whether they can be compared."""
    heard = hear(pairs)
    spaced = heard.spaced(wanted=True)
    if not spaced:
        raise MissingFigureError(
            "the language is written without spaces, so what a word is depends on who cuts the "
            "text; the character error rate takes its place"
        )
    cells: Cells = {"text": list(pairs.texts)}
    found = _measure("wer", pairs, heard, spaced, word_errors, cells)
    for side, words in heard.sides.items():
        cells[f"heard_{side}"] = _spread(words, heard.places, len(pairs.texts))
    return {"wer": _trusted(found, found["original"].value, "wer", heard)}, cells


def measure_cer(pairs: Pairs) -> Measured:
    """Character error rates before and after; believed where the word error rate is."""
    heard = hear(pairs)
    everything = list(range(len(heard.places)))
    cells: Cells = {}
    found = _measure("cer", pairs, heard, everything, character_errors, cells)
    words = _errors(heard, heard.spaced(wanted=True), "original", word_errors)
    if said := sum(e.words for e in words):
        wrong = sum(e.errors for e in words) / said
        return {"cer": _trusted(found, wrong, "wer", heard)}, cells
    return {"cer": _trusted(found, found["original"].value, "cer", heard)}, cells


def _measure(
    name: str,
    pairs: Pairs,
    heard: Heard,
    chosen: Sequence[int],
    count: Callable[..., WordErrors],
    cells: Cells,
) -> BySide:
    """Both sides of a figure; ``cells`` is filled with what each utterance adds to it."""
    places = [heard.places[i] for i in chosen]
    estimates: BySide = {}
    for side in heard.sides:
        errors = _errors(heard, chosen, side, count)
        left_out = len(pairs.texts) - len(chosen)
        estimates[side] = error_rate(
            name,
            errors,
            [pairs.speakers[i] for i in places],
            n={"left_out": left_out} if left_out else None,
            parameters=heard.parameters,
            **pairs.draw,
        )
        units = UNITS[name][1]
        wrong = "errors" if name == "wer" else f"{units}_wrong"
        cells[units] = _spread([e.words for e in errors], places, len(pairs.texts))
        cells[f"{wrong}_{side}"] = _spread([e.errors for e in errors], places, len(pairs.texts))
    return estimates


def _errors(
    heard: Heard, chosen: Sequence[int], side: str, count: Callable[..., WordErrors]
) -> list[WordErrors]:
    heard_here = heard.sides[side]
    return [count(heard.said[i], heard_here[i], language=heard.languages[i]) for i in chosen]


def _trusted(found: BySide, original: float, judge: str, heard: Heard) -> BySide:
    said = trust(original, name=judge, declared=heard.declared)
    return {
        side: replace(estimate, parameters={**estimate.parameters, **said})
        for side, estimate in found.items()
    }


def _spread(values: Sequence[Any], places: Sequence[int], length: int) -> list[Any]:
    whole: list[Any] = [None] * length
    for place, value in zip(places, values, strict=True):
        whole[place] = value
    return whole
