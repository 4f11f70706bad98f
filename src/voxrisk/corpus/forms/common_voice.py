"""Mozilla Common Voice (Ardila et al., LREC 2020): volunteers in 100+ languages, MP3, CC0.

The folder of one language (``validated.tsv``, ``clips/``), or one of its tables (``dev.tsv``,
``other.tsv`` …); a folder means ``validated.tsv``. The speaker is ``client_id``: a browser account,
so one person may have several, and now and then one account several people. Sessions are not known.
Gender is what the volunteer chose to say; ``text`` is the sentence shown. Votes and accents are
kept as extra columns.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.forms.manifest import number
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.tables import read_rows
from voxrisk.files.text import open_text
from voxrisk.types import InputError

MOST_HEADER = 65_536  # characters
NEEDED = ("client_id", "path", "sentence")


def _file(path: Path) -> Path | None:
    file = path / "validated.tsv" if path.is_dir() else path
    if file.suffix != ".tsv" or not file.is_file() or not (file.parent / "clips").is_dir():
        return None
    # No other form has these two names together; a header that is wrong is said where it is read.
    return file if path.is_dir() or set(NEEDED) <= set(_header(file)) else None


def _header(file: Path) -> list[str]:
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        return stream.readline(MOST_HEADER).strip().split("\t")


def recognise(path: Path) -> bool:
    """``validated.tsv`` (or the table given) with ``client_id``, beside ``clips/``."""
    return _file(path) is not None


def read(path: Path) -> Iterator[Located]:
    """Each line of the table."""
    file = _file(path) or path
    durations = _durations(file.parent / "clip_durations.tsv")
    with open_text(file, newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = list(rows.fieldnames or ())
        if missing := [name for name in NEEDED if name not in names]:
            raise InputError(
                f"{file} line 1: no column {', '.join(missing)}; Common Voice's tables have them"
            )
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"{file} line 1: the column {', '.join(twice)} is there twice")
        for row in rows:
            where = f"{file} line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{where}: not as many cells as the header has columns")
            if not row["client_id"] or not row["path"]:
                raise InputError(f"{where}: client_id or path is empty")
            name = row["path"] if row["path"].endswith(".mp3") else row["path"] + ".mp3"
            utterance = Utterance(
                utterance=Path(name).stem,
                path=file.parent / "clips" / Path(name).name,
                speaker=row["client_id"],
                gender=read_gender(row.get("gender", ""), where),
                text=row["sentence"].strip() or None,
                language=row.get("locale") or file.parent.name,
                age=row.get("age") or None,
                duration=durations.get(name),
                extra={
                    key: row[key] for key in ("accents", "up_votes", "down_votes") if key in row
                },
            )
            yield where, utterance


def _durations(file: Path) -> dict[str, float]:
    """Clip → seconds; the file gives milliseconds."""
    if not file.is_file():
        return {}
    found: dict[str, float] = {}
    for line, (clip, length) in read_rows(file, {"clip": (), "duration[ms]": ("duration",)}):
        where = f"{file} line {line}"
        if clip in found:
            raise InputError(f"{where}: the clip {clip!r} is there twice; keep one")
        found[clip] = number(length, "duration", where) / 1000
    return found
