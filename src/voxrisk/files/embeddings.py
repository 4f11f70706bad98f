"""Embeddings on disk: our own NPZ, and the forms in which other tools leave theirs.

===============================  ==================================================================
what                             looks like
===============================  ==================================================================
NPZ                              ``utterance (n,)``, ``speaker (n,)``, ``embedding (n, d)``
NPY and CSV                      ``x.npy`` with ``x.csv`` (columns utterance, speaker) beside it
folder of NPY                    one table, ``speakers.npy``, ``utterances.npy``
Parquet                          columns utterance, speaker, embedding (a list)
HDF5                             the three arrays, or one dataset for each utterance
Kaldi                            ``.ark`` or ``.scp``, text or binary, with utt2spk or spk2utt
folder of Kaldi or HDF5          ``xvector.scp`` or ``xvector.h5`` with utt2spk or spk2utt
===============================  ==================================================================
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.arrays import array_names, as_text, read_npy, read_npz
from voxrisk.files.atomic import atomic
from voxrisk.files.errors import reading
from voxrisk.files.hdf5 import read_datasets
from voxrisk.files.kaldi import read_utt2spk, read_vectors
from voxrisk.files.limits import MOST_DIMENSIONS
from voxrisk.files.tables import open_parquet, read_rows
from voxrisk.types import Embeddings, InputError, as_path, require

_TABLES = ("embeddings.npy", "embedding.npy", "xvectors.npy", "xvector.npy", "vectors.npy")
_FILES = (
    "embeddings.npz", "embeddings.parquet", "embeddings.csv",
    "xvector.scp", "xvectors.scp", "xvector.ark", "xvectors.ark",
    "xvector.h5", "xvectors.h5", "embeddings.h5",
)  # fmt: skip


def read_embeddings(path: Path | str) -> Embeddings:
    """Read embeddings with their utterance and speaker ids, whatever form they are in.

    Raises:
        InputError: If the form is unknown, something is missing beside it, or the content is bad;
            the message says which file and what to do.
    """
    path = as_path(path, "a file of embeddings")
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    readers: dict[str, Callable[[Path], Embeddings]] = {
        ".npz": _read_npz,
        ".npy": _read_npy,
        ".parquet": _read_parquet,
        ".h5": _read_hdf5,
        ".hdf5": _read_hdf5,
        ".ark": _read_kaldi,
        ".scp": _read_kaldi,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: embeddings are read from {', '.join(readers)} or a folder of such files; "
            "convert them, most simply to NPZ with utterance, speaker and embedding"
        )
    with reading(path, "embeddings"):
        return reader(path)


def write_embeddings(path: Path | str, embeddings: Embeddings) -> None:
    """Write our own form, NPZ with ``utterance``, ``speaker`` and ``embedding``."""
    with atomic(path) as part, part.open("wb") as stream:
        np.savez(
            stream,
            utterance=embeddings.utterance,
            speaker=embeddings.speaker,
            embedding=embeddings.vectors,
        )


def _read_folder(path: Path) -> Embeddings:
    for name in _FILES:
        if (path / name).is_file():
            return read_embeddings(path / name)
    for name in _TABLES:
        if (path / name).is_file():
            return _read_npy(path / name)
    raise InputError(
        f"{path}: no embeddings in this folder; looked for {', '.join((*_FILES, *_TABLES))}"
    )


def _read_npz(path: Path) -> Embeddings:
    held = array_names(path)
    if missing := [k for k in ("utterance", "speaker", "embedding") if k not in held]:
        raise InputError(f"{path}: no array {', '.join(missing)}; it holds {', '.join(held)}")
    found = read_npz(path, ("utterance", "speaker", "embedding"))
    return _embeddings(found["utterance"], found["speaker"], found["embedding"], str(path))


def _read_npy(path: Path) -> Embeddings:
    vectors = read_npy(path)
    table = path.with_suffix(".csv")
    if table.is_file():
        return _embeddings(*_read_table(table), vectors, str(path))
    names = [
        next((path.with_name(n) for n in options if path.with_name(n).is_file()), None)
        for options in (("utterances.npy", "utterance.npy"), ("speakers.npy", "speaker.npy"))
    ]
    if names[0] is None or names[1] is None:
        raise InputError(
            f"{path}: who speaks? Put {table.name} with columns utterance and speaker beside it "
            "(one line for each row), or utterances.npy and speakers.npy"
        )
    return _embeddings(read_npy(names[0]), read_npy(names[1]), vectors, str(path))


def _read_table(path: Path) -> tuple[list[str], list[str]]:
    rows = [cells for _, cells in read_rows(path, {"utterance": ("utt",), "speaker": ("spk",)})]
    return [utterance for utterance, _ in rows], [speaker for _, speaker in rows]


def _read_parquet(path: Path) -> Embeddings:
    table = open_parquet(path).read(use_threads=False)
    missing = [k for k in ("utterance", "speaker", "embedding") if k not in table.column_names]
    if missing:
        raise InputError(
            f"{path}: no column {', '.join(missing)}; it has {', '.join(table.column_names)}"
        )
    for name in ("utterance", "speaker", "embedding"):
        if table[name].null_count:
            raise InputError(f"{path}: the column {name} has empty cells; fill them")
    column = table["embedding"].combine_chunks()
    if not len(column):
        raise InputError(f"{path}: there are no embeddings in it")
    names, speakers = (table[name].to_pylist() for name in ("utterance", "speaker"))
    compute: Any = require("pyarrow.compute", extra="parquet")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != lengths[0]).any():
        row = int(np.flatnonzero(lengths != lengths[0])[0])
        raise _ragged(str(path), names[row], int(lengths[row]), int(lengths[0]))
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return _embeddings(
        np.asarray(names), np.asarray(speakers), flat.reshape(len(column), -1), str(path)
    )


def _read_hdf5(path: Path) -> Embeddings:
    found = read_datasets(path)
    if {"utterance", "speaker", "embedding"} <= set(found):
        return _embeddings(found["utterance"], found["speaker"], found["embedding"], str(path))
    return _with_speakers(path, {name: np.ravel(array) for name, array in found.items()})


def _read_kaldi(path: Path) -> Embeddings:
    return _with_speakers(path, read_vectors(path))


def _with_speakers(path: Path, found: dict[str, NDArray[np.generic]]) -> Embeddings:
    """Join vectors by utterance id with utt2spk or spk2utt in the same folder."""
    if not found:
        raise InputError(f"{path}: there are no embeddings in it")
    speaker_of, where = read_utt2spk(path.parent)
    missing = [name for name in found if name not in speaker_of]
    if missing:
        raise InputError(f"{where}: no speaker for utterance {missing[0]} of {path}; add the line")
    lost = [name for name in speaker_of if name not in found]
    if lost:
        raise InputError(
            f"{path}: no embedding for utterance {lost[0]}{_more(lost)} of {where}; "
            "embed it, or take the line out"
        )
    sizes = {name: vector.size for name, vector in found.items()}
    first = next(iter(sizes.values()))
    for name, size in sizes.items():
        if size != first:
            raise _ragged(str(path), name, size, first)
    vectors = np.stack(list(found.values()))
    return _embeddings(list(found), [speaker_of[n] for n in found], vectors, str(path))


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _ragged(source: str, name: str, size: int, usual: int) -> InputError:
    return InputError(
        f"{source}: the embedding of utterance {name} has {size} dimensions, others have {usual}; "
        "embed all with one extractor"
    )


def _embeddings(
    utterance: Sequence[str] | NDArray[Any],
    speaker: Sequence[str] | NDArray[Any],
    vectors: NDArray[Any],
    source: str,
) -> Embeddings:
    if vectors.dtype.kind not in "fiu":
        raise InputError(f"{source}: the embeddings are of type {vectors.dtype}, not numbers")
    if vectors.ndim == 2 and vectors.shape[1] > MOST_DIMENSIONS:
        raise InputError(
            f"{source}: embeddings of {vectors.shape[1]} dimensions; at most {MOST_DIMENSIONS}"
        )
    with np.errstate(over="ignore"):  # what overflows is not finite, and named as such
        floats: NDArray[Any] = vectors.astype(
            np.float64 if vectors.dtype == np.float64 else np.float32, copy=False
        )
    ids = [as_text(np.asarray(column), source) for column in (utterance, speaker)]
    return Embeddings(ids[0], ids[1], floats, source)
