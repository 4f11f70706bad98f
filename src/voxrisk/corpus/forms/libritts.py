"""LibriTTS and LibriTTS-R (Zen et al., Interspeech 2019): read English, 2,456 speakers, CC BY 4.0.

``SUBSET/SPEAKER/CHAPTER/SPEAKER_CHAPTER_PPPPPP_SSSSSS.wav`` at 24 kHz, with ``.normalized.txt``
beside each, and ``SPEAKERS.txt`` or ``speakers.tsv`` (id, gender). Given may be the root or one
subset. The session is the chapter. The same people and chapters as LibriSpeech: never mix the two
over the two sides of a split.
"""

from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.forms.folder import holds
from voxrisk.corpus.forms.librispeech import gender_of, listed_genders, read_genders
from voxrisk.corpus.table import Located, Utterance
from voxrisk.files.text import open_text, read_words
from voxrisk.types import InputError

ENDING = ".normalized.txt"


def recognise(path: Path) -> bool:
    """A folder with ``*.normalized.txt`` beside the audio."""
    return path.is_dir() and holds(path, ENDING)


def _transcripts(path: Path) -> Iterator[Path]:
    for depth in ("*", "*/*", "*/*/*", "*/*/*/*"):
        for chapter in sorted(path.glob(depth)):
            if chapter.is_dir():
                yield from sorted(chapter.glob(f"*{ENDING}"))


def read(path: Path) -> Iterator[Located]:
    """Each transcript and its audio."""
    lists: dict[Path, dict[str, str | None]] = {}
    for file in _transcripts(path):
        subset = file.absolute().parents[2]
        if subset not in lists:
            lists[subset] = read_genders(subset) or _from_tsv(subset)
        utterance = file.name.removesuffix(ENDING)
        parts = utterance.split("_")
        if len(parts) < 3 or not all(parts[:2]):
            raise InputError(f"{file}: {utterance!r} is not SPEAKER_CHAPTER_PARAGRAPH_SENTENCE")
        speaker, session = parts[:2]
        row = Utterance(
            utterance=utterance,
            path=file.with_name(utterance + ".wav"),
            speaker=speaker,
            gender=gender_of(speaker, lists[subset], str(file)),
            text=read_words(file),
            session=session,
            language="en",
            extra={"subset": subset.name},
        )
        yield str(file), row


def _from_tsv(subset: Path) -> dict[str, str | None]:
    for folder in (subset.parent, subset):
        if (file := folder / "speakers.tsv").is_file():
            with open_text(file) as stream:
                next(stream, None)  # the header
                return listed_genders(file, enumerate(stream, start=2), "\t")
    return {}
