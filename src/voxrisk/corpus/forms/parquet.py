"""A plain table as Parquet: one file, or shards ``manifest-00000.parquet`` … in a folder.

The columns are those of the CSV manifest (:mod:`voxrisk.corpus.forms.manifest`), numbers as numbers
or as text. This is the form for millions of rows: :func:`voxrisk.corpus.columns.read_columns` reads
single columns of it, and splits and filters without making a row.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voxrisk.corpus.forms import manifest
from voxrisk.corpus.table import Located
from voxrisk.files.errors import reading
from voxrisk.files.tables import open_parquet, parquet_cell

PATTERN = "manifest*.parquet"


def parquet_files(path: Path) -> list[Path]:
    """The file, or the shards in a folder in the order of their names; empty where there are none.

    One that is still being written, or was when a kill came, is hidden and does not count.
    """
    if path.is_dir():
        return sorted(file for file in path.glob(PATTERN) if not file.name.startswith("."))
    return [path] if path.suffix.lower() == ".parquet" else []


def column_names(source: Any, file: Path) -> list[str]:
    """The columns of an open file under our names, in their order."""
    return manifest.column_names(list(source.schema_arrow.names), file)


def recognise(path: Path) -> bool:
    """A Parquet file, or a folder with ``manifest.parquet`` or shards of it."""
    return bool(parquet_files(path))


def read(path: Path) -> Iterator[Located]:
    """Each row, shard by shard."""
    for file in parquet_files(path):
        with reading(file, "a Parquet table"):
            yield from _rows(file)


def _rows(file: Path) -> Iterator[Located]:
    source = open_parquet(file)
    names, row = column_names(source, file), 0
    for batch in source.iter_batches(use_threads=False):
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            row += 1
            where = f"{file} row {row}"
            cells = [parquet_cell(value, where) for value in values]
            yield (
                where,
                manifest.utterance(dict(zip(names, cells, strict=True)), where, file.parent),
            )
