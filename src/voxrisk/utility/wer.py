"""Word error rate with a ready recogniser: is the speech still understood, by a machine at least?

The recogniser is Whisper through faster-whisper (CTranslate2, int8, one thread, greedy, no
sampling), so the same audio always gives the same words.
"""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import hear, open_whisper
from voxrisk.journal import hash_of, resumable
from voxrisk.models import MODELS, model_path
from voxrisk.types import Estimate, InputError, require
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import BySide, Cells, Measured, MissingFigureError, Pairs, by_side
from voxrisk.utility.text import normalise

RECOGNISERS = tuple(
    name.removesuffix("-ct2")
    for name in MODELS
    if name.startswith("whisper-") and name.endswith("-ct2")
)
# Where more words than this are wrong before protection, recogniser or transcripts are wrong.
UNTRUSTED = 0.6
SOURCE = "(substitutions + deletions + insertions) / words, NIST sclite"


@dataclass(frozen=True, slots=True)
class WordErrors:
    """How the words of one utterance fared."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def words(self) -> int:
        """Words of the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        """Everything that went wrong; can exceed ``words``."""
        return self.substitutions + self.deletions + self.insertions


def word_errors(reference: str, recognised: str, *, language: str = "en") -> WordErrors:
    """Align two texts after :func:`~voxrisk.utility.text.normalise`.

    Without a word in the reference every recognised word is an insertion; without a recognised word
    every word of the reference is a deletion; two texts without words have nothing to count.

    >>> word_errors("MISTER BROWN WAS LATE", "Mr. Brown is late, late.")
    WordErrors(hits=3, substitutions=1, deletions=0, insertions=1)
    """
    jiwer: Any = require("jiwer", extra="utility")
    left, right = (normalise(text, language=language) for text in (reference, recognised))
    if not left:
        return WordErrors(0, 0, 0, len(right.split()))
    found = jiwer.process_words(left, right)
    return WordErrors(found.hits, found.substitutions, found.deletions, found.insertions)


def word_error_rate(
    errors: Sequence[WordErrors],
    speakers: Sequence[str],
    *,
    n: Mapping[str, int] | None = None,
    parameters: Mapping[str, Any] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Of 100 words spoken, how many does the recogniser get wrong.

    WER = Σ errors / Σ words over all utterances, NIST's definition. From 0 (nothing wrong) to 1
    (as if nothing had been recognised: an empty transcript) and beyond, when words are made up.

    Raises:
        InputError: If there are no words, or not one speaker for each utterance.
    """
    if len(errors) != len(speakers):
        raise InputError(
            f"wer: {len(errors)} utterances but {len(speakers)} speakers; give one for each"
        )
    words = [e.words for e in errors]
    if not any(words):
        raise InputError("wer: the transcripts hold no words, so no share of them can be wrong")
    kinds = ("substitutions", "deletions", "insertions")
    counts = {kind: sum(getattr(e, kind) for e in errors) for kind in kinds}
    return ratio_estimate(
        "wer",
        [e.errors for e in errors],
        speakers,
        denominator=words,
        chance=1.0,
        source=SOURCE,
        n={"word": sum(words), **counts, **(n or {})},
        parameters=parameters,
        rate=True,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )


def trust(original: float) -> dict[str, Any]:
    """Whether word error rates can be compared, by that of the original speech.

    A recogniser for the language, with the right transcripts, gets most words of clear speech
    right. At 60 % errors and more before any protection it is the wrong recogniser (another
    language: 145 %) or the transcripts are of other utterances (99 %): what protection costs cannot
    be seen then.

    Returns:
        ``{"trusted": True}``, or ``{"trusted": False, "reason": …}``.

    >>> trust(0.04)
    {'trusted': True}
    """
    if original < UNTRUSTED:
        return {"trusted": True}
    return {
        "trusted": False,
        "reason": f"the recogniser gets {100 * original:.0f}\u00a0% of the words of the original "
        "speech wrong: it does not know this speech, or the transcripts belong to other "
        "utterances; check the texts and the language, or take another recogniser "
        "(voxrisk utility … --asr)",
    }


def transcribe(
    utterances: Sequence[Utterance],
    *,
    asr: str = "whisper-tiny.en",
    language: str = "en",
    journal: Path | str | None = None,
    workers: int | None = None,
) -> list[str]:
    """What a recogniser hears in each utterance, as it writes it.

    Args:
        utterances: What to recognise.
        asr: ``"whisper-tiny.en"``, ``"whisper-base"``, or a folder with a CTranslate2 Whisper.
        language: Language tag; the English recognisers know ``"en"`` only.
        journal: File that keeps what is done, see :mod:`voxrisk.journal`.
        workers: Processes of one thread each.

    Raises:
        InputError: If the recogniser is unknown or does not know the language.
    """
    folder, digest = _recogniser(asr)
    code = check_language(asr, language)
    require("faster_whisper", extra="utility")
    settings = {
        "what": "transcript 1",
        "model": digest,
        "language": code,
        "versions": [version("faster-whisper"), version("ctranslate2")],
    }
    return resumable(
        functools.partial(_transcribe, str(folder), code),
        utterances,
        key=functools.partial(hash_of, settings),
        journal=journal,
        workers=workers,
        label=f"recognising with {asr}",
    )


def check_language(asr: str, language: str) -> str:
    """Whisper's code of a language, e.g. ``"de"`` of ``"de-AT"``.

    Raises:
        InputError: If the recogniser does not know it.
    """
    code = language.split("-")[0].split("_")[0].lower()
    if asr.endswith(".en") and code != "en":
        raise InputError(
            f"the recogniser {asr} knows English only, and the speech is {language!r}; "
            "measure it with `voxrisk utility … --asr whisper-base`"
        )
    return code


def _recogniser(asr: str) -> tuple[Path, str]:
    """The folder of a recogniser and the hash of its weights."""
    name = f"{asr}-ct2"
    if name in MODELS:
        digest = next(file.sha256 for file in MODELS[name].files if file.name == "model.bin")
        return model_path(name), digest
    weights = Path(asr) / "model.bin"
    if not weights.is_file():
        raise InputError(
            f"no recogniser {asr!r}; known are {', '.join(RECOGNISERS)}, "
            "or give a folder with a CTranslate2 Whisper (model.bin, config.json, tokenizer.json)"
        )
    with weights.open("rb") as stream:
        return Path(asr), hashlib.file_digest(stream, "sha256").hexdigest()


def _transcribe(folder: str, language: str, row: Utterance) -> str:
    return hear(open_whisper(folder), read_audio(row, rate=RATE), language=language)


def measure_wer(pairs: Pairs) -> Measured:
    """Word error rates before and after, and whether they can be compared."""
    kept = [i for i, text in enumerate(pairs.texts) if text and text.strip()]
    if not kept:
        raise MissingFigureError("no transcripts; add the column text to manifest.csv")
    try:
        language = pairs.language or _language(pairs.original)
        check_language(pairs.asr, language)
    except InputError as error:
        raise MissingFigureError(str(error)) from error
    if not any(normalise(str(pairs.texts[i]), language=language) for i in kept):
        raise MissingFigureError("the transcripts hold no words")
    require("jiwer", extra="utility")  # before the long work, not after it
    cells: Cells = {"text": list(pairs.texts)}
    estimates: BySide = {}
    left_out = len(pairs.texts) - len(kept)
    # Both sides in one go: the workers load the recogniser once.
    said = transcribe(
        [rows[i] for rows in (pairs.original, pairs.anonymized) for i in kept],
        asr=pairs.asr,
        language=language,
        **pairs.work,
    )
    for side, heard in by_side(said).items():
        errors = [
            word_errors(str(pairs.texts[i]), words, language=language)
            for i, words in zip(kept, heard, strict=True)
        ]
        estimates[side] = word_error_rate(
            errors,
            [pairs.speakers[i] for i in kept],
            n={"left_out": left_out} if left_out else None,
            parameters={"asr": pairs.asr, "language": language},
            **pairs.draw,
        )
        cells["words"] = _spread([e.words for e in errors], kept, len(pairs.texts))
        cells[f"errors_{side}"] = _spread([e.errors for e in errors], kept, len(pairs.texts))
        cells[f"heard_{side}"] = _spread(heard, kept, len(pairs.texts))
    trusted = trust(estimates["original"].value)
    compared = {
        side: replace(estimate, parameters={**estimate.parameters, **trusted})
        for side, estimate in estimates.items()
    }
    return {"wer": compared}, cells


def _language(rows: Sequence[Utterance]) -> str:
    languages = sorted({row.language for row in rows if row.language})
    if len(languages) > 1:
        raise InputError(
            f"utterances are in several languages ({', '.join(languages)}); measure each by "
            "itself, or name the one to recognise with `voxrisk utility … --language`"
        )
    return languages[0] if languages else "en"


def _spread(values: Sequence[Any], places: Sequence[int], length: int) -> list[Any]:
    whole: list[Any] = [None] * length
    for place, value in zip(places, values, strict=True):
        whole[place] = value
    return whole
