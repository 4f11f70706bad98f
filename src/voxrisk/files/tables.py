"""Rows of tables: read from CSV, TSV, Kaldi text, gzip or Parquet, written as CSV."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from voxrisk.files.atomic import atomic
from voxrisk.files.errors import reading
from voxrisk.files.limits import refuse_bomb, refuse_rows
from voxrisk.files.text import open_text
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
        InputError: If the file is missing, is not text, lacks a column, has no rows, or a row with
            more or fewer cells than the header; file and line are named.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, names, optional)
        return
    with open_text(path, newline="") as stream:
        yield from _text_rows(path, stream, names, optional)


def write_table(path: Path | str, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV table whole or not at all, row by row."""
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


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
    known_names = sum(places[name] is not None for name in required)
    # Two columns of ids cannot tell a header by what stands below it: one known name is enough.
    headed = known_names >= min(2, len(required)) or (known_names > 0 and len(required) == 2)
    if headed:
        _require(path, header, places, required)
        width = len(header)
    else:
        rows = chain([(line, cells)], rows)
        known: dict[str, int | None] = {name: i for i, name in enumerate(required)}
        places = {name: known.get(name) for name in names}
        header, width = required, len(required)
    wanted = list(places.values())
    # Cells that were split at white space, in the order that is asked for, are ready as they are.
    ready = separator is None and wanted == list(range(width))
    before, found = line if headed else 0, False
    for line, row in rows:
        if len(row) in (0, 1, width) and not any(map(str.strip, row)):
            before = line
            continue
        if len(row) != width:
            raise _wrong_width(f"{path} line {line + empty}", row, header, separator)
        if line > before + 1:
            raise InputError(
                f"{path} line {before + 1 + empty}: a quoted cell runs over the end of the line; "
                "is a quotation mark missing?"
            )
        before = line
        found = True
        yield (
            line + empty,
            row if ready else [row[i].strip() if i is not None else "" for i in wanted],
        )
    if not found:
        raise InputError(f"{path}: holds no rows")


def _cells(lines: Iterable[str], separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """The number of each line and its cells, split at white space where there is no separator."""
    if separator is None:
        yield from ((i, line.split()) for i, line in enumerate(lines, start=1))
        return
    reader = csv.reader(lines, delimiter=separator, strict=True)
    yield from ((reader.line_num, row) for row in reader)


def _wrong_width(
    where: str, row: Sequence[str], header: Sequence[str], separator: str | None
) -> InputError:
    hint = ""
    if separator == "," and len(row) > len(header):
        hint = "; write decimal commas as points, and quote cells that hold a comma"
    elif separator is None and len(row) < len(header) and any(";" in cell for cell in row):
        hint = "; put commas between columns, not semicolons"
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


def _doubled(header: Sequence[str], places: Mapping[str, int | None]) -> list[str]:
    """The columns that are wanted and stand there twice."""
    wanted = {header[place] for place in places.values() if place is not None}
    return sorted(name for name in wanted if header.count(name) > 1)


def _require(
    path: Path, header: Sequence[str], places: Mapping[str, int | None], required: Sequence[str]
) -> None:
    if missing := [name for name in required if places[name] is None]:
        raise InputError(
            f"{path} line 1: no column {', '.join(missing)}; the header is {', '.join(header)}"
        )
    if twice := _doubled(header, places):
        raise InputError(f"{path} line 1: the column {', '.join(twice)} is there twice")


def _parquet_rows(
    path: Path, names: Names, optional: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    with reading(path, "a Parquet table"):
        source = open_parquet(path)
        yield from _parquet_cells(path, source, names, optional)


def open_parquet(path: Path) -> Any:
    """Open a Parquet file that unpacks to no more than it may."""
    parquet: Any = require("pyarrow.parquet", extra="parquet")
    source = parquet.ParquetFile(path)
    claims = source.metadata
    refuse_rows(path, claims.num_rows)
    groups = [claims.row_group(i) for i in range(claims.num_row_groups)]
    refuse_bomb(path, path.stat().st_size, sum(group.total_byte_size for group in groups))
    return source


def _parquet_cells(
    path: Path, source: Any, names: Names, optional: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    header = [name.lower() for name in source.schema_arrow.names]
    places = _places(header, names)
    _require(path, header, places, [name for name in names if name not in optional])
    line = 0
    for batch in source.iter_batches(use_threads=False):
        columns = [
            [""] * batch.num_rows if place is None else batch.column(place).to_pylist()
            for place in places.values()
        ]
        for cells in zip(*columns, strict=True):
            line += 1
            yield line, [parquet_cell(cell, f"{path} row {line}") for cell in cells]
    if not line:
        raise InputError(f"{path}: holds no rows")


def parquet_cell(value: object, where: str) -> str:
    """A cell as the text it would be in a CSV file."""
    if isinstance(value, bytes):
        with reading(where):
            return value.decode()
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"{where}: a cell holds {type(value).__name__}, not text or a number")
    return "" if value is None else str(value)
