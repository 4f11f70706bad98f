"""HDF5 files, read without trust: plain data of the file itself, and no more than it may hold.

An HDF5 file can point at other files (external links, external storage, virtual data) and claim any
size. Such pointers are refused, and a claim is held against the size of the file first. A damaged
one can make the HDF5 library run in circles or crash, where nothing in the same process can stop
it: so it is read by a process of its own, which has a time limit.
"""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import DAMAGED, reading
from voxrisk.files.limits import claimed_bytes, refuse_bomb
from voxrisk.types import InputError, require

SECONDS = 20.0  # for the smallest file,
BYTES_A_SECOND = 4e6  # and more for larger ones
BAD = 2  # exit code of the reading process: its words are on stderr


def read_datasets(path: Path) -> dict[str, NDArray[Any]]:
    """Every dataset of a file by its name; text comes as text.

    Raises:
        InputError: If the file is damaged, points elsewhere, or claims more than it may.
    """
    require("h5py", extra="hdf5")
    command = [sys.executable, "-P", "-c", f"from {__name__} import _tell; _tell()", str(path)]
    seconds = SECONDS + path.stat().st_size / BYTES_A_SECOND
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{path}: cannot be read as HDF5 (no end after {seconds:.0f} s); {DAMAGED}"
        ) from None
    if done.returncode == BAD:
        raise InputError(done.stderr.decode(errors="replace").strip())
    if done.returncode:
        raise InputError(f"{path}: cannot be read as HDF5 (the library failed); {DAMAGED}")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as told:  # our own words
        names = told["names"].tolist()
        return {name: told[f"array_{i}"] for i, name in enumerate(names)}


def _tell() -> None:
    """What the reading process does: the datasets to stdout, or the reason why not to stderr."""
    try:
        found = _datasets(Path(sys.argv[1]))
    except InputError as error:
        sys.stderr.buffer.write(str(error).encode("utf-8", "backslashreplace"))
        sys.exit(BAD)
    arrays = {f"array_{i}": array for i, array in enumerate(found.values())}
    packed = io.BytesIO()
    np.savez(packed, names=np.array(list(found), dtype=str), **arrays)  # type: ignore[arg-type]
    sys.stdout.buffer.write(packed.getbuffer())


def _datasets(path: Path) -> dict[str, NDArray[Any]]:
    h5py: Any = require("h5py", extra="hdf5")
    found: dict[str, Any] = {}
    with reading(path, "HDF5"), h5py.File(path, "r") as file:

        def visit(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = item

        file.visititems(visit)
        _refuse_pointers(file, path, h5py)
        claims = [claimed_bytes(d.shape or (), d.dtype.itemsize) for d in found.values()]
        refuse_bomb(path, path.stat().st_size, sum(claims))
        return {name: _array(item, f"{path} dataset {name}", h5py) for name, item in found.items()}


def _refuse_pointers(group: Any, path: Path, h5py: Any) -> None:
    for name in group:
        kind = group.get(name, getlink=True)
        if not isinstance(kind, h5py.HardLink):
            raise InputError(
                f"{path}: {name} is a link, not data; write the data into the file itself"
            )


def _array(item: Any, where: str, h5py: Any) -> NDArray[Any]:
    if item.external or item.is_virtual:
        raise InputError(f"{where}: its data lie in another file; write them into this one")
    if item.shape is None:
        raise InputError(f"{where}: is empty")
    if h5py.check_string_dtype(item.dtype) is not None:
        text: Any = item.asstr()[()]
        return np.asarray(text, dtype=str)
    if item.dtype.kind not in "fiuS":
        raise InputError(f"{where}: holds {item.dtype}, no numbers or text")
    array: NDArray[Any] = item[()]
    return np.asarray(array)
