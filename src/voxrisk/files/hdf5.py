"""HDF5 files, read without trust: plain data of the file itself, and no more than it may hold.

An HDF5 file can point at other files (external links, external storage, virtual data) and claim any
size. Such pointers are refused, and a claim is held against the size of the file first.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.files.limits import claimed_bytes, refuse_bomb
from voxrisk.types import InputError, require


def read_datasets(path: Path) -> dict[str, NDArray[Any]]:
    """Every dataset of a file by its name; text comes as text.

    Raises:
        InputError: If the file is damaged, points elsewhere, or claims more than it may.
    """
    h5py: Any = require("h5py", extra="hdf5")
    found: dict[str, Any] = {}
    with reading(path, "HDF5"), h5py.File(path, "r") as file:

        def visit(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = item

        file.visititems(visit)
        _refuse_pointers(file, path, h5py)
        size = path.stat().st_size
        claims = [claimed_bytes(d.shape or (), d.dtype.itemsize) for d in found.values()]
        refuse_bomb(path, size, sum(claims))
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
