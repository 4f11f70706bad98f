"""How alike two voices are: cosine, PLDA, or any function of two tables of vectors.

Cosine and PLDA are inner products of suitably mapped vectors. That is what lets a whole population
be compared at the speed of a matrix product. Any callable ``f(enroll (n, d), trial (m, d))`` that
returns ``(n, m)`` scores, higher for the same speaker, may stand in for them.
"""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _pairs
from voxrisk.types import InputError, cores

Floats = NDArray[np.float64]
Scores = NDArray[np.floating]
ROWS, COLUMNS = 1280, 320  # of a tile of scores, 1.6 MB: tall ones are multiplied with less copying


@runtime_checkable
class InnerProduct(Protocol):
    """A similarity that is the inner product of two maps."""

    def maps(self, enroll: Floats, trial: Floats) -> tuple[Floats, Floats]:
        """Map enrolment and trial vectors so that the score is their inner product."""


class Cosine:
    """Cosine of the angle; conversations have length one already, so nothing is to be done."""

    def maps(self, enroll: Floats, trial: Floats) -> tuple[Floats, Floats]:
        """The vectors as they are."""
        return enroll, trial


cosine = Cosine()
Scorer: TypeAlias = InnerProduct | Callable[[Floats, Floats], NDArray[np.floating]]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """All scores of rows against columns, made block by block and never kept.

    Rows are what is searched with (trials or predicates), columns what is searched.

    Attributes:
        shape: Numbers of rows and columns.
        slack: Bound of the error of ``scores``, or -1 where they are exact as they are.
        left: ``(rows, d)`` whose inner products with ``right`` are exact; a stub if slack < 0.
        right: ``(columns, d)``.
        scores: Gives the scores of some rows against all columns; products are written into
            the second argument, if one is given.
    """

    shape: tuple[int, int]
    slack: float
    left: Floats
    right: Floats
    scores: Callable[[slice, Scores | None], Scores]

    def blocks(self, megabytes: int, within: slice | None = None) -> Iterator[tuple[slice, Scores]]:
        """Scores of consecutive rows, all or some, about so many megabytes of them at a time.

        A block is written over by the next: new memory each time costs as much as the product.
        """
        rows, columns = self.shape
        first, last = (within.start, within.stop) if within else (0, rows)
        step = max(1, min(rows, megabytes * 2**18 // columns))
        room = np.empty((step, columns), np.float32) if self.slack >= 0 else None
        for start in range(first, last, step):
            part = slice(start, min(start + step, last))
            yield part, self.scores(part, None if room is None else room[: part.stop - start])

    def tiles(self, within: slice) -> Iterator[tuple[slice, int, Scores]]:
        """Scores of some rows, some columns at a time: rows, first column, and their scores.

        What one tile holds stays in a cache. Ready scores come as they are. Each tile is written
        over by the next; threads may have some each.
        """
        if not isinstance(self.scores, Products):
            for rows, scores in self.blocks(128, within):
                yield rows, 0, scores
            return
        room = np.empty(ROWS * COLUMNS, np.float32)
        for start in range(within.start, within.stop, ROWS):
            rows = slice(start, min(start + ROWS, within.stop))
            for first in range(0, self.shape[1], COLUMNS):
                columns = slice(first, min(first + COLUMNS, self.shape[1]))
                shape = (rows.stop - start, columns.stop - first)
                out = room[: shape[0] * shape[1]].reshape(shape)
                yield rows, first, self.scores(rows, out, columns)

    def at(self, column: NDArray[np.int64]) -> Floats:
        """``(rows,)`` exact score of each row at one column of its own."""
        if self.slack >= 0:
            return _pairs.own_scores(self.right, self.left, column)
        out = np.empty(column.size)
        for part, scores in self.blocks(64):
            out[part] = scores[np.arange(len(scores)), column[part]]
        return out

    def sealed(self) -> "Pairs":
        """The same, with vectors that cannot be written to, see :func:`sealed`."""
        return replace(self, left=sealed(self.left), right=sealed(self.right))

    @property
    def coarse(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Both vectors in single precision, or stubs."""
        if isinstance(self.scores, Products):
            return self.scores.left, self.scores.right
        return _STUB.astype(np.float32), _STUB.astype(np.float32)

    def rows(self, part: slice) -> Floats:
        """The exact vectors of some rows, or the stub."""
        return self.left[part] if self.slack >= 0 else self.left


_STUB: Floats = np.zeros((1, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Scores as inner products, in single precision; a class, so that workers can be sent it."""

    left: NDArray[np.float32]
    right: NDArray[np.float32]

    def __call__(
        self,
        part: slice,
        out: Scores | None,
        columns: slice | NDArray[np.int64] = slice(None),
    ) -> Scores:
        """Of some rows against some columns."""
        return np.matmul(self.left[part], self.right[columns].T, out=out)


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    table: Scores

    def __call__(self, part: slice, out: Scores | None) -> Scores:
        return np.ascontiguousarray(self.table[part])


def pairs(rows: Floats, columns: Floats, *, enroll_rows: bool, scorer: Scorer = cosine) -> Pairs:
    """Compare every row with every column; ``enroll_rows`` says which of the two is enrolled."""
    if not isinstance(scorer, InnerProduct):
        return _called(rows, columns, enroll_rows, scorer)
    if enroll_rows:
        left, right = scorer.maps(rows, columns)
    else:
        right, left = scorer.maps(columns, rows)
    left32, right32 = left.astype(np.float32), right.astype(np.float32)
    # Rounding the vectors and summing d products in single precision: at most d + 2 roundings.
    slack = (left.shape[1] + 2) * 2.0**-24 * _longest(left) * _longest(right)
    shape = (len(rows), len(columns))
    return Pairs(shape, slack, left, right, Products(left32, right32))


def ready(scores: Scores) -> Pairs:
    """Scores that are there already: ``(n_rows, n_columns)``."""
    rows, columns = scores.shape
    return Pairs((rows, columns), -1.0, _STUB, _STUB, _Ready(scores))


def _called(
    rows: Floats, columns: Floats, enroll_rows: bool, function: Callable[[Floats, Floats], Scores]
) -> Pairs:
    def scores(part: slice, _: Scores | None) -> Scores:
        left = rows[part]
        out = function(left, columns) if enroll_rows else np.transpose(function(columns, left))
        out = np.ascontiguousarray(out, dtype=np.float64)
        if out.shape != (len(left), len(columns)):
            raise InputError(
                f"the scorer gave scores of shape {out.shape} for {len(left)} × "
                f"{len(columns)} pairs; it must return (enroll, trial)"
            )
        if not np.isfinite(out).all():
            raise InputError("the scorer gave a score that is not finite")
        return out

    return Pairs((len(rows), len(columns)), -1.0, _STUB, _STUB, scores)


def _longest(vectors: Floats) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max()))


Array = TypeVar("Array", bound=NDArray[Any])
Result = TypeVar("Result")


def sealed(array: Array) -> Array:
    """The same array, not to be written to.

    So it comes to a worker of a cluster anyway, and compiled code is another one for it. With all
    arrays sealed here too, nothing is compiled twice.
    """
    view = array.view()
    view.flags.writeable = False
    return view


class Spread(Protocol):
    """Who does ``work(part, threads)`` on parts that together are ``range(count)``, in order."""

    def __call__(
        self, work: Callable[[slice, int | None], Result], count: int, *, label: str = ""
    ) -> list[Result]:
        """What ``work`` gave for each part."""


def here(
    work: Callable[[slice, int | None], Result], count: int, *, label: str = ""
) -> list[Result]:
    """All at once on this machine, with as many threads as ``work`` likes."""
    return [work(slice(0, count), None)]


def n_threads(threads: int | None) -> int:
    """As many threads as asked for, or as there are processors to run on."""
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; it must be at least 1")
    return cores() if threads is None else threads


def share(n: int, parts: int) -> list[slice]:
    """Cut ``range(n)`` into at most ``parts`` slices of about the same length."""
    edges = np.linspace(0, n, min(parts, n) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def run(pool: ThreadPoolExecutor, work: Callable[[slice], None], n: int, parts: int) -> None:
    """Do ``work`` on every part of ``range(n)`` and pass on the first error."""
    for _ in pool.map(work, share(n, parts)):
        pass
