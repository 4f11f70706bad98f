"""Rows of tables: read from CSV, TSV, Kaldi text, gzip or Parquet, written as CSV."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from voxrisk.files.atomic import atomic
from voxrisk.types import InputError, require

Names = Mapping[str, Sequence[str]]


def read_rows(
    path: Path, names: Names, *, optional: Sequence[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line, cells)``, the cells in the order of ``names``.

    ``names`` maps each column to the headers it may have elsewhere. A file without a header must
    hold the columns that are not ``optional``, in their order (as Kaldi's files do). Columns in
    ``optional`` that the file lacks come as empty cells.

    Raises:
        InputError: If the file is missing, is not text, lacks a column, or has a row with more or
            fewer cells than the header; file and line are named.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, names, optional)
        return
    try:
        with _open_text(path) as stream:
            yield from _text_rows(path, stream, names, optional)
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
        raise InputError(f"{path}: is not a readable table ({error})") from error


def write_table(path: Path | str, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV table whole or not at all, row by row."""
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _open_text(path: Path) -> TextIO:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if packed:
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _text_rows(
    path: Path, stream: TextIO, names: Names, optional: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    empty, first = next(((i, line) for i, line in enumerate(stream) if line.strip()), (0, None))
    if first is None:
        raise InputError(f"{path}: is empty")
    separator = "\t" if "\t" in first else "," if "," in first else None
    rows = _cells(chain((first,), stream), separator)
    line, cells = next(rows)
    header = [cell.strip().lower() for cell in cells]
    places = _places(header, names)
    required = [name for name in names if name not in optional]
    if sum(places[name] is not None for name in required) >= min(2, len(required)):
        _require(path, header, places, required)
        width = len(header)
    else:
        rows = chain([(line, cells)], rows)
        known: dict[str, int | None] = {name: i for i, name in enumerate(required)}
        places = {name: known.get(name) for name in names}
        header, width = required, len(required)
    wanted = list(places.values())
    for line, row in rows:
        if not any(map(str.strip, row)):
            continue
        if len(row) != width:
            raise _wrong_width(f"{path} line {line + empty}", row, header, separator)
        yield line + empty, [row[i].strip() if i is not None else "" for i in wanted]


def _cells(lines: Iterable[str], separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and its cells, split at white space where there is no separator."""
    if separator is None:
        yield from ((i, line.split()) for i, line in enumerate(lines, start=1))
        return
    reader = csv.reader(lines, delimiter=separator)
    yield from ((reader.line_num, row) for row in reader)


def _wrong_width(
    where: str, row: Sequence[str], header: Sequence[str], separator: str | None
) -> InputError:
    hint = ""
    if separator == "," and len(row) > len(header):
        hint = "; write decimal commas as points, and quote cells that hold a comma"
    return InputError(
        f"{where}: {len(row)} columns where {', '.join(header)} {'are' if header[1:] else 'is'} "
        f"needed{hint}"
    )


def _places(header: Sequence[str], names: Names) -> dict[str, int | None]:
    places: dict[str, int | None] = {}
    for name, others in names.items():
        found = [header.index(alias) for alias in (name, *others) if alias in header]
        places[name] = found[0] if found else None
    return places


def _require(
    path: Path, header: Sequence[str], places: Mapping[str, int | None], required: Sequence[str]
) -> None:
    if missing := [name for name in required if places[name] is None]:
        raise InputError(
            f"{path} line 1: no column {', '.join(missing)}; the header is {', '.join(header)}"
        )


def _parquet_rows(
    path: Path, names: Names, optional: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    parquet: Any = require("pyarrow.parquet", extra="parquet")
    try:
        source = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a Parquet file ({error})") from error
    header = [name.lower() for name in source.schema_arrow.names]
    places = _places(header, names)
    _require(path, header, places, [name for name in names if name not in optional])
    line = 0
    for batch in source.iter_batches():
        columns = [
            [""] * batch.num_rows if place is None else batch.column(place).to_pylist()
            for place in places.values()
        ]
        for cells in zip(*columns, strict=True):
            line += 1
            yield line, ["" if cell is None else str(cell) for cell in cells]
