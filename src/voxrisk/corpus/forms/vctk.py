"""VCTK (Yamagishi et al., 2019): 110 English speakers with many accents, read sentences, CC BY 4.0.

Version 0.80 (``wav48/p225/p225_001.wav``) and 0.92 (``wav48_silence_trimmed/p225/
p225_001_mic1.flac``), ``txt/p225/p225_001.txt`` and ``speaker-info.txt`` (id, age, gender, accent).
Of the two microphones only ``mic1`` is read: ``mic2`` is the same speech again. p315 has no
transcripts. The accent is kept as an extra column. Each speaker was recorded in one session, so a
split by session is not possible, and all read some of the same texts.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.forms.folder import audio_below
from voxrisk.corpus.forms.librispeech import gender_of
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.text import open_text, read_words
from voxrisk.types import InputError

FOLDERS = ("wav48_silence_trimmed", "wav48", "wav16", "wav")


def recognise(path: Path) -> bool:
    """A folder with ``speaker-info.txt`` (or ``txt``) beside one of the audio folders."""
    return any((path / name).is_dir() for name in FOLDERS) and (
        (path / "speaker-info.txt").is_file() or (path / "txt").is_dir()
    )


def read(path: Path) -> Iterator[Located]:
    """Each audio file of the first microphone."""
    people = _speakers(path / "speaker-info.txt")
    genders = {speaker: gender for speaker, (_, gender, _) in people.items()}
    root = next(path / name for name in FOLDERS if (path / name).is_dir())
    for file in audio_below(root):
        stem, _, microphone = file.stem.partition("_mic")
        if microphone not in ("", "1"):
            continue
        speaker = file.parent.name
        text = path / "txt" / speaker / f"{stem}.txt"
        age, _, accent = people.get(speaker, (None, None, ""))
        row = Utterance(
            utterance=stem,
            path=file,
            speaker=speaker,
            gender=gender_of(speaker, genders, str(file)),
            text=read_words(text) if text.is_file() else None,
            language="en",
            age=age,
            extra={"accent": accent},
        )
        yield str(file), row


def _speakers(file: Path) -> dict[str, tuple[str | None, str | None, str]]:
    """Speaker → age, gender, accent."""
    people: dict[str, tuple[str | None, str | None, str]] = {}
    if not file.is_file():
        return people
    with open_text(file) as stream:
        for line, text in enumerate(stream, start=1):
            cells = text.split("(")[0].split()
            if not cells or cells[0].upper() == "ID":
                continue
            where = f"{file} line {line}"
            if len(cells) < 3 or not re.fullmatch("[0-9]+", cells[1]):
                raise InputError(f"{where}: expected 'id age gender accent'")
            # Version 0.80 leaves out the "p" of most speakers, their folders have it.
            name = f"p{cells[0]}" if re.fullmatch("[0-9]+", cells[0]) else cells[0]
            if name in people:
                raise InputError(f"{where}: speaker {name!r} is there twice; keep one")
            accent = cells[3] if len(cells) > 3 else ""
            people[name] = cells[1], read_gender(cells[2], where), accent
    if not people:
        raise InputError(f"{file}: names no speaker; mend it or take it away")
    return people
