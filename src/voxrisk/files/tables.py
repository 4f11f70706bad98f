"""Read the rows of any table a user may bring: CSV, TSV, Kaldi text, gzip, Parquet."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

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
        InputError: If the file is missing, is not text, or lacks a column; file and line are named.
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


def _open_text(path: Path) -> TextIO:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if packed:
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _text_rows(
    path: Path, stream: TextIO, names: Names, optional: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    first = next((line for line in stream if line.strip()), None)
    if first is None:
        raise InputError(f"{path}: is empty")
    lines: Iterable[str] = chain((first,), stream)
    separator = "\t" if "\t" in first else "," if "," in first else None
    rows = (line.split() for line in lines) if separator is None else _csv(lines, separator)
    header = [cell.strip().lower() for cell in next(iter(_csv([first], separator)))]
    places = _places(header, names)
    required = [name for name in names if name not in optional]
    start = 1
    if sum(places[name] is not None for name in required) >= min(2, len(required)):
        next(rows)
        start = 2
        _require(path, header, places, required)
    else:
        places = {name: i if i < len(required) else None for i, name in enumerate(required)}
        places |= dict.fromkeys(optional)
        places = {name: places[name] for name in names}
    wanted = list(places.values())
    width = max(place for place in wanted if place is not None) + 1
    for line, row in enumerate(rows, start=start):
        if len(row) >= width:
            yield line, [row[place].strip() if place is not None else "" for place in wanted]
        elif row:
            raise InputError(
                f"{path} line {line}: {len(row)} columns where {', '.join(required)} are needed"
            )


def _csv(lines: Iterable[str], separator: str | None) -> Iterator[list[str]]:
    return (
        (line.split() for line in lines)
        if separator is None
        else csv.reader(lines, delimiter=separator)
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
