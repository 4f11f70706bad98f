"""lhotse manifests: ``recordings.jsonl[.gz]`` and ``supervisions.jsonl[.gz]``.

Given may be a folder with one such pair (``librispeech_recordings_test-clean.jsonl.gz`` and the
file of the same name with ``supervisions``), or the supervisions file itself. A supervision is an
utterance: its start and duration cut it out of its recording. A recording whose source is a shell
command, a URL or bytes in memory is refused and named; commands are never run. Relative paths are
looked for from the manifest's folder, then from each folder above it.
The word alignments in supervisions are read by :mod:`voxrisk.protect.alignment`.
"""

import gzip
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from voxrisk.corpus.forms.kaldi import resolve
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.numbers import read_number
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
        try:
            utterance, recording, speaker = row["id"], row["recording_id"], row.get("speaker")
            start, duration = (read_number(str(row[k]), k, where) for k in ("start", "duration"))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: not a supervision ({error!r})") from error
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
                utterance=str(utterance),
                path=source,
                speaker=str(speaker),
                gender=read_gender(str(row.get("gender") or ""), where),
                text=row.get("text") or None,
                language=row.get("language") or None,
                duration=duration,
                start=start if cut else None,
                end=round(start + duration, 6) if cut else None,
            ),
        )


def _audio(file: Path) -> dict[str, tuple[Path, float | None]]:
    """Recording → audio file, duration."""
    audio = {}
    for where, row in json_lines(file):
        sources = row.get("sources") or [{}]
        kind, source = sources[0].get("type"), sources[0].get("source")
        if kind != "file" or not isinstance(source, str):
            raise InputError(
                f"{where}: recording {row.get('id')!r} comes from {kind or 'nothing'}; only "
                "files are read, and commands are never run. Write the audio to files first"
            )
        audio[str(row["id"])] = resolve(Path(source), file.parent), row.get("duration")
    return audio


def json_lines(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Where and what: each line of a JSONL file, gzipped or not."""
    line = 0
    try:
        with _open(file) as stream:
            for line, text in enumerate(stream, start=1):
                if text.strip():
                    row = json.loads(text)
                    if not isinstance(row, dict):
                        raise InputError(f"{file} line {line}: not a JSON object")
                    yield f"{file} line {line}", row
    except (json.JSONDecodeError, UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{file} line {line or 1}: {error}") from error


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return cast(TextIO, gzip.open(file, "rt", encoding="utf-8-sig"))
    return file.open(encoding="utf-8-sig")
