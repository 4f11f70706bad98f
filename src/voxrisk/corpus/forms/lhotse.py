"""lhotse manifests: ``recordings.jsonl[.gz]`` and ``supervisions.jsonl[.gz]``.

Given may be a folder with one such pair (``librispeech_recordings_test-clean.jsonl.gz`` and the
file of the same name with ``supervisions``), or the supervisions file itself. A supervision is an
utterance: its start and duration cut it out of its recording. A recording whose source is a shell
command, a URL or bytes in memory is refused and named; commands are never run. Relative paths are
looked for from the manifest's folder, then from each folder above it.
The word alignments in supervisions are read by :mod:`voxrisk.protect.alignment`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from voxrisk.corpus.forms.kaldi import resolve
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.errors import reading
from voxrisk.files.numbers import read_number
from voxrisk.files.text import open_text
from voxrisk.types import InputError

ENDINGS = (".jsonl", ".jsonl.gz")


def supervisions_file(path: Path) -> Path | None:
    """The supervisions file at ``path``, if its recordings are there too."""
    if path.is_dir():
        found = [f for end in ENDINGS for f in sorted(path.glob(f"*supervisions*{end}"))]
    else:
        found = [path] if "supervisions" in path.name and path.name.endswith(ENDINGS) else []
    found = [file for file in found if _recordings_file(file).is_file()]
    if len(found) > 1:
        raise InputError(
            f"{path}: holds several lhotse manifests ({', '.join(f.name for f in found)}); "
            "give one of them"
        )
    return found[0] if found else None


def _recordings_file(supervisions: Path) -> Path:
    return supervisions.with_name(supervisions.name.replace("supervisions", "recordings"))


def recognise(path: Path) -> bool:
    """A supervisions file and its recordings file."""
    return supervisions_file(path) is not None


def read(path: Path) -> Iterator[Located]:
    """Each supervision."""
    file = supervisions_file(path)
    assert file is not None
    audio = _audio(_recordings_file(file))
    for where, row in json_lines(file):
        utterance, recording = _needed(row, "id", where), _needed(row, "recording_id", where)
        start, duration = (_number(row, key, where) for key in ("start", "duration"))
        speaker, gender, text, language = (
            _text(row, key, where) for key in ("speaker", "gender", "text", "language")
        )
        if recording not in audio:
            raise InputError(f"{where}: recording {recording!r} is not in {_recordings_file(file)}")
        if not speaker:
            raise InputError(f"{where}: {utterance!r} has no speaker")
        if not (math.isfinite(start) and start >= 0 and 0 < duration < math.inf):
            raise InputError(f"{where}: start {start}, duration {duration}")
        source, whole = audio[recording]
        cut = start > 0 or (whole is not None and duration < whole - 0.01)
        yield (
            where,
            Utterance(
                utterance=utterance,
                path=source,
                speaker=speaker,
                gender=read_gender(gender or "", where),
                text=text,
                language=language,
                duration=duration,
                start=start if cut else None,
                end=round(start + duration, 6) if cut else None,
            ),
        )


def _audio(file: Path) -> dict[str, tuple[Path, float | None]]:
    """Recording → audio file, duration."""
    audio: dict[str, tuple[Path, float | None]] = {}
    for where, row in json_lines(file):
        name, sources = _needed(row, "id", where), row.get("sources")
        first = sources[0] if isinstance(sources, list) and sources else None
        kind, source = (
            (first.get("type"), first.get("source")) if isinstance(first, dict) else (None, None)
        )
        if kind != "file" or not isinstance(source, str):
            raise InputError(
                f"{where}: recording {name!r} comes from {kind or 'nothing'}; only "
                "files are read, and commands are never run. Write the audio to files first"
            )
        if name in audio:
            raise InputError(f"{where}: recording {name!r} is there twice; keep one")
        seconds = None if row.get("duration") is None else _number(row, "duration", where)
        audio[name] = resolve(Path(source), file.parent), seconds
    return audio


def _text(row: Mapping[str, Any], key: str, where: str) -> str | None:
    """A field that is text, if it is there at all."""
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: {key} is {value!r}, not text")
    return value or None


def _needed(row: Mapping[str, Any], key: str, where: str) -> str:
    if (value := _text(row, key, where)) is None:
        raise InputError(f"{where}: no {key}")
    return value


def _number(row: Mapping[str, Any], key: str, where: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{where}: {key} is {value!r}, not a number")
    return read_number(str(value), key, where)


def json_lines(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Where and what: each line of a JSONL file, gzipped or not."""
    with open_text(file) as stream:
        for line, text in enumerate(stream, start=1):
            if text.strip():
                where = f"{file} line {line}"
                with reading(where, "JSON"):
                    row = json.loads(text)
                if not isinstance(row, dict):
                    raise InputError(f"{where}: not a JSON object")
                yield where, row
