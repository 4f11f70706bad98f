"""Curves that others published, to be laid under one's own."""

import math
from dataclasses import dataclass
from pathlib import Path

from voxrisk.files.numbers import read_number, read_whole
from voxrisk.files.tables import read_rows
from voxrisk.types import InputError

FILES = {
    "singling_out": "singling_out_results.csv",
    "linkability": "linkability_results.csv",
    "rocch_eer": "eer_results.csv",
}
_COLUMNS = {
    "attacker": (),
    "L": ("l",),
    "N": ("enrollment_speakers", "n"),
    "mean": ("singling_out_mean", "linkability_mean", "eer_mean", "value"),
}


@dataclass(frozen=True, slots=True)
class PublishedCurve:
    """One curve: ``value[i]`` at population size ``size[i]``."""

    metric: str
    attacker: str
    length: int
    size: tuple[int, ...]
    value: tuple[float, ...]


def read_published(folder: Path) -> list[PublishedCurve]:
    """Read the tables behind the paper's Figure 1, as its authors give them.

    The folder holds some of singling_out_results.csv, linkability_results.csv and eer_results.csv
    with columns attacker, L, enrollment_speakers and …_mean.
    """
    points: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
    for metric, name in FILES.items():
        path = folder / name
        if not path.is_file():
            continue
        for line, (attacker, length, size, mean) in read_rows(path, _COLUMNS):
            where = f"{path} line {line}"
            key = (metric, attacker.lower(), read_whole(length, "L", where))
            point = read_whole(size, "N", where), read_number(mean, "the mean", where)
            if not math.isfinite(point[1]):
                raise InputError(f"{where}: the mean is {mean}; take the row out")
            points.setdefault(key, []).append(point)
    if not points:
        raise InputError(f"{folder}: no published curves; looked for {', '.join(FILES.values())}")
    return [
        PublishedCurve(*key, *(tuple(column) for column in zip(*sorted(found), strict=True)))
        for key, found in points.items()
    ]
