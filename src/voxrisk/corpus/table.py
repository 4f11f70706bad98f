"""The table of utterances that every stage reads and writes: one row, one utterance."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from voxrisk.files.atomic import write_text
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True)
class Utterance:
    """One utterance of one speaker.

    Attributes:
        utterance: Unique id.
        path: Audio file.
        speaker: Who speaks.
        gender: ``"f"`` or ``"m"`` where known.
        text: What is said, where known.
        session: Recording session (a LibriSpeech chapter, a Common Voice clip's client session …).
        language: Language tag.
        age: As the corpus gives it.
        duration: Seconds.
        start: Where the utterance begins in ``path``, in seconds (Kaldi ``segments``).
        end: Where it ends.
        extra: Every other column of the table, e.g. the ``target`` an anonymizer chose.
    """

    utterance: str
    path: Path
    speaker: str
    gender: str | None = None
    text: str | None = None
    session: str | None = None
    language: str | None = None
    age: str | None = None
    duration: float | None = None
    start: float | None = None
    end: float | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


COLUMNS = tuple(f.name for f in fields(Utterance) if f.name != "extra")
REQUIRED = ("utterance", "path", "speaker")
NUMBERS = ("duration", "start", "end")


def read_corpus(path: Path | str) -> list[Utterance]:
    """Read ``manifest.csv`` (or the folder that holds one); paths in it are relative to it."""
    path = Path(path)
    manifest = path / "manifest.csv" if path.is_dir() else path
    if not manifest.is_file():
        raise InputError(f"{path}: no such corpus; give a folder of audio or a manifest.csv")
    with manifest.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{manifest} line 1: no column {', '.join(missing)}")
        return [_row(row, manifest, reader.line_num) for row in reader]


def _row(row: Mapping[str, str], manifest: Path, line: int) -> Utterance:
    values: dict[str, object] = {}
    for name in COLUMNS:
        if not (text := (row.get(name) or "").strip()):
            if name in REQUIRED:
                raise InputError(f"{manifest} line {line}: {name} is empty")
            continue
        try:
            values[name] = float(text) if name in NUMBERS else text
        except ValueError:
            raise InputError(f"{manifest} line {line}: {name} is {text!r}, not a number") from None
    values["path"] = manifest.parent / str(values["path"])
    extra = {key: value for key, value in row.items() if key not in COLUMNS}
    return Utterance(**values, extra=extra)  # type: ignore[arg-type]


def write_corpus(path: Path | str, utterances: Iterable[Utterance]) -> None:
    """Write ``manifest.csv``; audio paths below its folder are written relative to it."""
    path = Path(path)
    rows = list(utterances)
    extra = sorted({key for row in rows for key in row.extra})
    used = [c for c in COLUMNS if c in REQUIRED or any(getattr(r, c) is not None for r in rows)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*used, *extra])
    for row in rows:
        cells = {name: getattr(row, name) for name in used}
        if row.path.is_relative_to(path.parent):
            cells["path"] = row.path.relative_to(path.parent)
        writer.writerow([*cells.values(), *(row.extra.get(key, "") for key in extra)])
    write_text(path, text.getvalue())
