"""What a recogniser hears in both versions of the speech, for every figure that counts errors."""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import (
    RECOGNISERS,
    UNSPACED,
    check_language,
    knows,
    language_code,
    open_recogniser,
    recogniser_digest,
    recogniser_paths,
    shown_recogniser,
)
from voxrisk.journal import hash_of, resumable
from voxrisk.types import InputError, require
from voxrisk.utility.pairs import MissingFigureError, Pairs, by_side
from voxrisk.utility.text import normalise

ENGLISH = "whisper-tiny.en"  # what hears English where nobody says otherwise
OTHERS = "whisper-base"  # and any other language
UNDECLARED = "en"
TOGETHER_SECONDS = 160.0  # of padded speech that is heard at once: bounds the memory


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said and what was heard.

    Attributes:
        asr: Recogniser.
        places: Which utterances were heard: those with words in a language it knows.
        languages: Code of the language of each of these.
        said: The words of each.
        sides: Side → what was heard in each.
        left_out: How many utterances were not heard.
        declared: Whether the table or the user named the language.
    """

    asr: str
    places: Sequence[int]
    languages: Sequence[str]
    said: Sequence[str]
    sides: Mapping[str, Sequence[str]]
    left_out: int
    declared: bool

    def spaced(self, wanted: bool) -> list[int]:
        """Which of the heard utterances are in a language written with spaces, or without."""
        return [i for i, code in enumerate(self.languages) if (code not in UNSPACED) == wanted]

    @property
    def parameters(self) -> dict[str, Any]:
        """What was chosen, for the results."""
        return {
            "asr": shown_recogniser(self.asr),
            "language": "+".join(sorted(set(self.languages))),
            "declared": self.declared,
        }


def spoken_languages(rows: Sequence[Utterance], language: str | None) -> list[str]:
    """The code of each utterance's language: the one that is named, else the table's, else English.

    Raises:
        InputError: If it is empty.
    """
    return [language_code(language or row.language or UNDECLARED) for row in rows]


def choose_recogniser(
    languages: Sequence[str],
    asr: str | None = None,
    *,
    english: str = ENGLISH,
    others: str = OTHERS,
) -> str:
    """The recogniser that is asked for; else that of English if nothing else is spoken.

    >>> choose_recogniser(["en", "en"]), choose_recogniser(["en", "de"])
    ('whisper-tiny.en', 'whisper-base')
    """
    return asr or (english if set(languages) <= {"en"} else others)


def unheard(texts: Sequence[str | None], asr: str, languages: Sequence[str]) -> str:
    """Why no word of these texts can be counted; empty if some can.

    It is said before anything is run: nobody should wait for a figure that cannot come.
    """
    spoken = [code for text, code in zip(texts, languages, strict=True) if text and text.strip()]
    if not spoken:
        return "no transcripts; add the column text to manifest.csv"
    if not any(knows(asr, code) for code in spoken):
        try:
            check_language(asr, Counter(spoken).most_common(1)[0][0])
        except InputError as error:
            return str(error)
    return ""


def transcribe(
    utterances: Sequence[Utterance],
    *,
    asr: str = ENGLISH,
    language: str | Sequence[str] = "en",
    journal: Path | str | None = None,
    workers: int | None = None,
) -> list[str]:
    """What a recogniser hears in each utterance, as it writes it.

    Args:
        utterances: What to recognise.
        asr: One of :data:`voxrisk.hearing.RECOGNISERS`, or a folder with a CTranslate2 Whisper.
        language: Language tag, of all or of each.
        journal: File that keeps what is done, see :mod:`voxrisk.journal`.
        workers: Processes of one thread each.

    Raises:
        InputError: If the recogniser is unknown or does not know a language.
    """
    each = [language] * len(utterances) if isinstance(language, str) else list(language)
    codes = {name: check_language(asr, name) for name in sorted(set(each))}
    package = RECOGNISERS[asr].package if asr in RECOGNISERS else "faster-whisper"
    require(package.replace("-", "_"), extra="utility")
    settings = {
        "what": "transcript 3",
        "model": recogniser_digest(asr),
        "versions": [version(package)],
    }
    spoken = [codes[name] for name in each]
    together = RECOGNISERS[asr].together if asr in RECOGNISERS else 1
    groups = list(_groups(utterances, spoken, together))
    heard = resumable(
        functools.partial(_transcribe, asr, recogniser_paths(asr)),
        [([utterances[i] for i in group], spoken[group[0]]) for group in groups],
        key=functools.partial(_key, settings),
        journal=journal,
        workers=workers,
        label=f"recognising with {shown_recogniser(asr)}",
    )
    texts = [""] * len(utterances)
    for group, found in zip(groups, heard, strict=True):
        for i, text in zip(group, found, strict=True):
            texts[i] = text
    return texts


def _groups(
    utterances: Sequence[Utterance], spoken: Sequence[str], together: int
) -> Iterator[list[int]]:
    """Places of utterances to hear at once: of one language and like length, the longest first.

    They depend on the speech alone, neither on workers nor on what was heard before: whom an
    utterance is heard with may change the last bits of its scores.
    """
    if together == 1:
        yield from ([i] for i in range(len(utterances)))
        return
    seconds = [row.duration or 0.0 for row in utterances]
    order = sorted(range(len(utterances)), key=lambda i: (spoken[i], -seconds[i], i))
    group: list[int] = []
    for i in order:
        if group and (
            len(group) == together
            or spoken[i] != spoken[group[0]]
            or (len(group) + 1) * seconds[group[0]] > TOGETHER_SECONDS
        ):
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def _key(settings: Mapping[str, Any], task: tuple[list[Utterance], str]) -> str:
    rows, language = task
    return hash_of({**settings, "language": language}, rows)


def _transcribe(asr: str, paths: tuple[str, ...], task: tuple[list[Utterance], str]) -> list[str]:
    rows, language = task
    return open_recogniser(asr, paths)([read_audio(row, rate=RATE) for row in rows], language)


def hear(pairs: Pairs) -> Heard:
    """What is heard before and after, once for all figures that need it."""
    if "heard" not in pairs.memo:
        pairs.memo["heard"] = _hear(pairs)
    found: Heard = pairs.memo["heard"]
    return found


def _hear(pairs: Pairs) -> Heard:
    languages = spoken_languages(pairs.original, pairs.language)
    asr = choose_recogniser(languages, pairs.asr)
    if why := unheard(pairs.texts, asr, languages):
        raise MissingFigureError(why)
    places = [
        i
        for i, text in enumerate(pairs.texts)
        if text and text.strip() and knows(asr, languages[i])
    ]
    codes = [languages[i] for i in places]
    said = [str(pairs.texts[i]) for i in places]
    if not any(normalise(text, language=code) for text, code in zip(said, codes, strict=True)):
        raise MissingFigureError("the transcripts hold no words")
    require("jiwer", extra="utility")  # before the long work, not after it
    # One side after the other: original speech is then heard once for every anonymizer.
    heard = [
        text
        for side in (pairs.original, pairs.anonymized)
        for text in transcribe([side[i] for i in places], asr=asr, language=codes, **pairs.work)
    ]
    declared = pairs.language is not None or all(row.language for row in pairs.original)
    left_out = len(languages) - len(places)
    return Heard(asr, places, codes, said, by_side(heard), left_out, declared)
