"""A corpus of millions of rows, by column: filtered and split without making a row of it.

A :class:`Columns` is a sequence of utterances like any other; a row is made when it is asked for.
What works on whole corpora asks :func:`codes` and :func:`numbers` for columns instead, which are
quick for both, and :func:`take` for some of the rows.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.forms import manifest
from voxrisk.corpus.forms.parquet import column_names, parquet_files
from voxrisk.corpus.reading import read_corpus
from voxrisk.corpus.table import COLUMNS, NUMBERS, REQUIRED, Utterance, read_gender
from voxrisk.files.atomic import atomic
from voxrisk.files.errors import reading
from voxrisk.files.places import place_at, place_exists, place_name
from voxrisk.files.tables import open_parquet
from voxrisk.types import InputError, require

Ints = NDArray[np.int64]
# What filters and splits look at; text is the largest column, and they need none of it.
LIGHT = tuple(name for name in COLUMNS if name != "text")
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "=": operator.eq,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Sequence[Utterance]):
    """Some rows of a table of Parquet files.

    Attributes:
        files: The shards, in order.
        table: Arrow table of the columns that were read, of all rows.
        rows: ``(n,)`` which rows of the table these are.
    """

    files: tuple[Path, ...]
    table: Any
    rows: Ints

    def __len__(self) -> int:
        return int(self.rows.size)

    @overload
    def __getitem__(self, place: int) -> Utterance: ...
    @overload
    def __getitem__(self, place: slice) -> "Columns": ...
    def __getitem__(self, place: int | slice) -> "Utterance | Columns":
        if isinstance(place, slice):
            return self.take(self.rows[place], chosen=True)
        row = self.table.slice(int(self.rows[place]), 1).to_pylist()[0]
        return self._utterance(row, f"row {self.rows[place] + 1}")

    def __iter__(self) -> Iterator[Utterance]:
        for start in range(0, len(self), 10_000):
            rows = self.rows[start : start + 10_000]
            for number, row in zip(rows, self.table.take(rows).to_pylist(), strict=True):
                yield self._utterance(row, f"row {number + 1}")

    def _utterance(self, row: dict[str, Any], where: str) -> Utterance:
        cells = {name: "" if value is None else str(value) for name, value in row.items()}
        base = self.files[0].parent
        return manifest.utterance(cells, f"{self.files[0]} {where}", base)

    def take(self, places: Ints, *, chosen: bool = False) -> "Columns":
        """Some of these rows, in the order of ``places``."""
        return Columns(self.files, self.table, places if chosen else self.rows[places])

    def column(self, name: str) -> Any:
        """One column of these rows as an Arrow array of one piece; None where there is none."""
        if name not in self.table.column_names:
            return None
        column = self.table.column(name)
        whole = np.array_equal(self.rows, np.arange(len(column)))
        return (column if whole else column.take(self.rows)).combine_chunks()

    def write(self, path: Path) -> None:
        """Write these rows with all columns of the files, shard by shard, in the order of the file.

        Paths of audio stay right wherever ``path`` is.
        """
        arrow: Any = require("pyarrow", extra="parquet")
        parquet: Any = require("pyarrow.parquet", extra="parquet")
        kept = np.zeros(len(self.table), dtype=bool)
        kept[self.rows] = True
        base, home = self.files[0].parent.absolute(), path.parent.absolute()
        first, writer = 0, None
        with atomic(path) as part:
            for file in self.files:
                for batch in open_parquet(file).iter_batches(use_threads=False):
                    some = batch.filter(arrow.array(kept[first : first + batch.num_rows]))
                    first += batch.num_rows
                    place = some.schema.names.index(_as_written("path", some.schema.names, file))
                    names = some.column(place).to_pylist()
                    full = [place_name(place_at(base, name), home) for name in names]
                    some = some.set_column(place, "path", arrow.array(full, arrow.string()))
                    writer = writer or parquet.ParquetWriter(part, some.schema, compression="zstd")
                    writer.write_batch(some)
            if writer is not None:
                writer.close()


def _as_written(name: str, header: list[str], file: Path) -> str:
    return header[manifest.column_names(header, file).index(name)]


def read_columns(
    path: Path | str, *, columns: Iterable[str] = LIGHT, audio: bool = False
) -> Columns:
    """Read some columns of a Parquet manifest; every row is checked as :func:`read_corpus` does.

    Args:
        path: A Parquet file, or a folder of shards.
        columns: Which columns; those that a manifest must have are always among them.
        audio: Whether every audio file must be there; takes seconds for a million.

    Raises:
        InputError: If a needed cell is empty, an id is used twice, or a number is none.
    """
    arrow: Any = require("pyarrow", extra="parquet")
    files = parquet_files(Path(path))
    if not files:
        raise InputError(f"{path}: no Parquet manifest; `voxrisk corpus import` writes one")
    wanted = {*columns, *REQUIRED}
    tables = []
    for file in files:
        with reading(file, "a Parquet table"):
            source = open_parquet(file)
            header, names = source.schema_arrow.names, column_names(source, file)
            chosen = [old for old, new in zip(header, names, strict=True) if new in wanted]
            table = source.read(chosen, use_threads=False)
            table = table.rename_columns([n for n in names if n in wanted])
            tables.append(_typed(table, file))
    table = arrow.concat_tables(tables, promote_options="default")
    found = Columns(tuple(files), table, np.arange(len(table), dtype=np.int64))
    _check(found, audio=audio)
    return found


def _typed(table: Any, file: Path) -> Any:
    """Text as text, times as numbers, and what repeats kept once."""
    arrow: Any = require("pyarrow", extra="parquet")
    compute: Any = require("pyarrow.compute", extra="parquet")
    columns = {}
    for name in table.column_names:
        kind = arrow.float64() if name in NUMBERS else arrow.string()
        column = table.column(name)
        text = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
        if name in NUMBERS and text:
            column = compute.if_else(compute.equal(column, ""), None, column)
        try:
            column = column.cast(kind)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            wanted = "numbers" if name in NUMBERS else "text"
            raise InputError(f"{file}: the column {name} is no {wanted} ({error})") from error
        if name not in NUMBERS and name not in ("utterance", "path"):
            column = column.dictionary_encode()
        columns[name] = column
    return arrow.table(columns)


def _check(rows: Columns, *, audio: bool) -> None:
    compute: Any = require("pyarrow.compute", extra="parquet")
    name = rows.files[0].parent if len(rows.files) > 1 else rows.files[0]
    if not len(rows):
        raise InputError(f"{name}: the corpus holds no utterances")
    for needed in REQUIRED:
        column = rows.table.column(needed)
        text = column.cast("string") if needed == "speaker" else column
        empty = compute.fill_null(compute.equal(compute.utf8_trim_whitespace(text), ""), True)
        if compute.any(empty).as_py():
            row = compute.index(empty, True).as_py() + 1
            raise InputError(f"{name} row {row}: {needed} is empty")
    counted = compute.value_counts(rows.table.column("utterance"))
    if len(counted) < len(rows):
        twice = next(pair["values"].as_py() for pair in counted if pair["counts"].as_py() > 1)
        raise InputError(f"{name}: the id {twice!r} is used twice; ids must be unique")
    for number in NUMBERS:
        if number in rows.table.column_names:
            values = rows.table.column(number)
            bad = compute.or_(compute.invert(compute.is_finite(values)), compute.less(values, 0.0))
            if compute.any(bad).as_py():
                place = compute.index(bad, True).as_py()
                raise InputError(
                    f"{name} row {place + 1}: {number} is {values[place].as_py()}; it must be "
                    "finite and not negative"
                )
    if audio:
        base = rows.files[0].parent
        for place, path in enumerate(rows.table.column("path").to_pylist()):
            if not place_exists(place_at(base, path)):
                raise InputError(f"{name} row {place + 1}: no audio file {place_at(base, path)}")


def open_corpus(path: Path | str, conditions: Sequence[str] = ()) -> Sequence[Utterance]:
    """A corpus of any form, filtered: by column where it is Parquet, otherwise row by row."""
    if not parquet_files(Path(path)):
        return where(read_corpus(path), conditions)
    named = [text[: re.search(r"[!<>=]|$", text).start()].strip() for text in conditions]  # type: ignore[union-attr]
    return where(read_columns(path, columns=(*LIGHT, *named), audio=True), conditions)


def write_columns(path: Path | str, rows: Sequence[Utterance]) -> None:
    """Write a manifest as Parquet: what repeats is kept once, so it is small and quick to read."""
    arrow: Any = require("pyarrow", extra="parquet")
    parquet: Any = require("pyarrow.parquet", extra="parquet")
    if isinstance(rows, Columns):
        rows.write(Path(path))
        return
    home = Path(path).parent.absolute()
    names = [n for n in COLUMNS if n in REQUIRED or any(getattr(r, n) is not None for r in rows)]
    table: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in names}
    table["path"] = [place_name(row.path, home) for row in rows]
    for name in sorted({key for row in rows for key in row.extra}):
        table[name] = [row.extra.get(name) for row in rows]
    with atomic(path) as part:
        parquet.write_table(arrow.table(table), part, compression="zstd")


def labels(rows: Sequence[Utterance], name: str) -> Ints:
    """A column as numbers ``(n,)``: the same where cells are the same; -1 where one is empty."""
    return _numbered(rows, name)[0]


def codes(rows: Sequence[Utterance], name: str) -> tuple[Ints, list[str]]:
    """A column as numbers ``(n,)`` into its sorted values; -1 where a cell is empty."""
    label, value_of = _numbered(rows, name)
    used, place = np.unique(label, return_inverse=True)
    values = value_of(used[used >= 0])
    if name == "gender" and isinstance(rows, Columns):
        values = [read_gender(value, str(rows.files[0])) or "" for value in values]
    kept = sorted({value for value in values if value})
    rank = {value: k for k, value in enumerate(kept)}
    empty = [-1] if used.size > len(values) else []
    table = np.array([*empty, *(rank.get(value, -1) for value in values)], dtype=np.int64)
    return table[place], kept


def _numbered(rows: Sequence[Utterance], name: str) -> tuple[Ints, Callable[[Ints], list[str]]]:
    """Labels of the cells of a column, and what gives the texts of some labels."""
    if not isinstance(rows, Columns):
        known: dict[str, int] = {}
        cells = (_cell(row, name) for row in rows)
        label = [-1 if c is None else known.setdefault(str(c), len(known)) for c in cells]
        texts = list(known)
        return np.array(label, dtype=np.int64), lambda some: [texts[k] for k in some.tolist()]
    column = rows.column(name)
    if column is None:
        return np.full(len(rows), -1, dtype=np.int64), lambda some: []
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    place = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return place, lambda some: [str(v or "") for v in coded.dictionary.take(some).to_pylist()]


def _cell(row: Utterance, name: str) -> object:
    return getattr(row, name) if name in COLUMNS else row.extra.get(name)


def numbers(rows: Sequence[Utterance], name: str) -> NDArray[np.float64]:
    """A column of times ``(n,)``; NaN where a cell is empty."""
    if isinstance(rows, Columns):
        column = rows.column(name)
        if column is None:
            return np.full(len(rows), np.nan)
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    cells = (_cell(row, name) for row in rows)
    return np.array([np.nan if cell is None else float(str(cell)) for cell in cells])


def take(rows: Sequence[Utterance], places: Ints) -> Sequence[Utterance]:
    """Some rows, in the order of ``places``."""
    if isinstance(rows, Columns):
        return rows.take(places)
    return [rows[place] for place in places.tolist()]


def where(rows: Sequence[Utterance], conditions: Iterable[str]) -> Sequence[Utterance]:
    """The rows for which every condition holds, such as ``gender=f`` or ``duration>=2``."""
    kept = np.ones(len(rows), dtype=bool)
    for text in conditions:
        parts = re.fullmatch(r"\s*(\w+)\s*(>=|<=|!=|=)\s*(.*?)\s*", text)
        if parts is None:
            raise InputError(f"--where {text}: write column=value, !=, >= or <=")
        name, sign, value = parts.groups()
        if sign in (">=", "<="):
            try:
                limit = float(value)
            except ValueError:
                raise InputError(f"--where {text}: {value!r} is no number") from None
            with np.errstate(invalid="ignore"):
                kept &= _TESTS[sign](numbers(rows, name), limit)
        else:
            code, values = codes(rows, name)
            if not values:
                raise InputError(f"--where {text}: the corpus has no column {name}")
            kept &= _TESTS[sign](code, values.index(value) if value in values else -2)
    if not kept.any():
        raise InputError(f"no row has {' and '.join(conditions)}")
    return take(rows, np.flatnonzero(kept))
