"""A plain table: ``manifest.csv`` or ``.tsv``, one line for each utterance. Our own form.

Needed columns: ``utterance``, ``path``, ``speaker``. Known ones: ``gender``, ``text``,
``session``, ``language``, ``age``, ``duration``, ``start``, ``end``. Any other column is kept as it
is. Paths are relative to the manifest. A few other names for the columns are understood too, as
other toolkits write them (``id``, ``wav``, ``spk_id``, ``transcript`` …).
"""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from voxrisk.corpus.table import COLUMNS, NUMBERS, REQUIRED, Located, Utterance, read_gender
from voxrisk.files.numbers import read_number
from voxrisk.files.places import place_at
from voxrisk.files.text import open_text
from voxrisk.types import InputError

NAMES = ("manifest.csv", "manifest.tsv")
ALIASES = {
    "utterance": ("utterance_id", "utt_id", "utt", "id"),
    "path": ("wav", "wav_path", "audio", "audio_path", "audio_filepath", "file", "filename"),
    "speaker": ("speaker_id", "spk_id", "spk"),
    "gender": ("sex",),
    "text": ("transcript", "transcription", "sentence", "wrd"),
    "session": ("session_id",),
    "language": ("lang", "locale"),
}


def _file(path: Path) -> Path | None:
    if path.is_dir():
        return next((path / name for name in NAMES if (path / name).is_file()), None)
    return path if path.suffix.lower() in (".csv", ".tsv") else None


def recognise(path: Path) -> bool:
    """A CSV or TSV file, or a folder that holds ``manifest.csv``."""
    return _file(path) is not None


def read(path: Path) -> Iterator[Located]:
    """Each line of the manifest."""
    file = _file(path) or path
    tabs = file.suffix.lower() == ".tsv"
    with open_text(file, newline="") as stream:
        rows = (
            csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            if tabs
            else csv.reader(stream, strict=True)
        )
        names = column_names(next(rows, []), file)
        for cells in rows:
            if not any(cells):
                continue
            where = f"{file} line {rows.line_num}"
            if len(cells) != len(names):
                raise InputError(
                    f"{where}: {len(cells)} cells where the header has {len(names)}; "
                    "quote cells that contain the delimiter"
                )
            yield where, utterance(dict(zip(names, cells, strict=True)), where, file.parent)


def column_names(header: list[str], file: Path) -> list[str]:
    """The columns of a header under our names, in their order."""
    names = our_names(header)
    if missing := [name for name in REQUIRED if name not in names]:
        raise InputError(
            f"{file} line 1: no column {', '.join(missing)} (there is {', '.join(names) or 'none'})"
        )
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"{file} line 1: the column {', '.join(sorted(twice))} is there twice")
    return names


def our_names(names: list[str]) -> list[str]:
    """Names of columns as we call them; those that say nothing to us stay as they are."""
    names = [name.strip() for name in names]
    for standard, others in ALIASES.items():
        if standard not in names:
            names = [
                standard if name.lower() in others and standard not in names[:i] else name
                for i, name in enumerate(names)
            ]
    return names


def utterance(row: Mapping[str, str], where: str, base: Path) -> Utterance:
    """One row of text cells by column; paths are relative to ``base``."""
    values: dict[str, object] = {}
    for name in COLUMNS:
        if not (text := row.get(name, "").strip()):
            if name in REQUIRED:
                raise InputError(f"{where}: {name} is empty")
        elif name in REQUIRED and len(text.splitlines()) > 1:
            raise InputError(
                f"{where}: {name} runs over the end of the line; is a quotation mark missing?"
            )
        elif name in NUMBERS:
            values[name] = number(text, name, where)
        else:
            values[name] = read_gender(text, where) if name == "gender" else text
    values["path"] = place_at(base, str(values["path"]))
    start, end = values.get("start"), values.get("end")
    if isinstance(end, float) and end <= (start if isinstance(start, float) else 0.0):
        raise InputError(f"{where}: end {end} is not after start {start or 0.0}")
    extra = {key: value for key, value in row.items() if key not in COLUMNS}
    return Utterance(**values, extra=extra)  # type: ignore[arg-type]


def number(text: str, name: str, where: str) -> float:
    """A time in seconds: finite and not negative."""
    value = read_number(text, name, where)
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{where}: {name} is {text}; it must be finite and not negative")
    return value
