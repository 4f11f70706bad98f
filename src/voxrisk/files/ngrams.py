r"""Tables of n-grams: ARPA files of any origin, and the binary form that pocketsphinx ships.

An ARPA file lists, for each order, ``log10 P(w | h)``, the words ``h w``, and the back-off weight
of ``h w`` where longer n-grams begin with it::

    \data\
    ngram 1=3
    ngram 2=1

    \1-grams:
    -0.5  <s>  -0.3
    -0.5  the
    -0.5  </s>

    \2-grams:
    -0.1  <s> the

    \end\
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.atomic import atomic
from voxrisk.files.errors import reading
from voxrisk.files.limits import refuse_rows
from voxrisk.files.numbers import plain_number, read_whole
from voxrisk.files.text import open_text
from voxrisk.types import InputError

HIGHEST = 3  # orders that are read; longer n-grams are left out
NEVER = -99.0  # log10 of the probability that ARPA writes for "never": that of <s>
LN10 = float(np.log(10.0))


@dataclass(frozen=True, slots=True, eq=False)
class NgramTable:
    """What a file says, in natural logarithms.

    Attributes:
        words: The vocabulary.
        grams: For each order m its n-grams ``(k, m)`` as places in the vocabulary.
        log_prob: For each order ``(k,)`` ln P(last word | words before it).
        backoff: For each order ``(k,)`` ln of the back-off weight; 0 where the file has none.
    """

    words: tuple[str, ...]
    grams: tuple[NDArray[np.int32], ...]
    log_prob: tuple[NDArray[np.float64], ...]
    backoff: tuple[NDArray[np.float64], ...]


def read_arpa(path: Path) -> NgramTable:
    """A language model in ARPA form, gzipped or not; n-grams of more than three words are left out.

    Raises:
        InputError: With file and line, if it is no such file, is not whole, or holds a word that is
            no word of its vocabulary, a probability above one, or a line twice.
    """
    with open_text(path) as stream, reading(path, "an ARPA language model"):
        lines = _Lines(path, stream)
        sizes = _header(lines)
        words: dict[str, int] = {}
        orders = range(1, min(len(sizes), HIGHEST) + 1)
        grams, log_prob, backoff = zip(
            *(_section(lines, order, sizes, words) for order in orders), strict=True
        )
        if len(sizes) <= HIGHEST:
            lines.expect("\\end\\")
        else:
            while lines.next("\\end\\") != "\\end\\":
                pass
        for _ in stream:  # a gzip archive tells only at its end that it is damaged
            pass
    return NgramTable(tuple(words), grams, log_prob, backoff)


class _Lines:
    """Lines that are not empty, and where they stand."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self.path, self.number = path, 0
        self._lines = self._numbered(stream)

    def _numbered(self, stream: TextIO) -> Iterator[str]:
        for line in stream:
            self.number += 1
            if text := line.strip():
                yield text

    @property
    def where(self) -> str:
        return f"{self.path} line {self.number}"

    def next(self, wanted: str) -> str:
        for text in self._lines:
            return text
        raise InputError(f"{self.path}: ends before {wanted}; download or write it again")

    def expect(self, wanted: str) -> None:
        if (text := self.next(wanted)) != wanted:
            raise InputError(f"{self.where}: says {text[:40]!r} where {wanted} must stand")


def _header(lines: _Lines) -> list[int]:
    """How many n-grams of each order the file claims to hold."""
    while lines.next("\\data\\") != "\\data\\":
        pass
    sizes: list[int] = []
    while True:
        text = lines.next("\\1-grams:")
        if text == "\\1-grams:":
            break
        said = re.fullmatch(r"ngram\s+(\d+)\s*=\s*(\d+)", text, re.ASCII)
        if said is None or int(said[1]) != len(sizes) + 1:
            raise InputError(
                f"{lines.where}: says {text[:40]!r} where the number of "
                f"{len(sizes) + 1}-grams must stand"
            )
        sizes.append(read_whole(said[2], "a number of n-grams", lines.where))
        refuse_rows(lines.path, sizes[-1])
    if not sizes or not sizes[0]:
        raise InputError(f"{lines.where}: the model holds no word")
    return sizes


def _section(
    lines: _Lines, order: int, sizes: list[int], words: dict[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    if order > 1:
        lines.expect(f"\\{order}-grams:")
    grams: list[int] = []
    values: list[float] = []
    weights: list[float] = []
    seen: set[tuple[int, ...]] = set()
    for _ in range(sizes[order - 1]):
        cells = lines.next(f"all {sizes[order - 1]} {order}-grams that it claims").split()
        if order == 1 and len(cells) > 1:
            if cells[1] in words:
                raise InputError(f"{lines.where}: the word {cells[1]!r} stands there twice")
            words[cells[1]] = len(words)
        gram = _gram(lines, cells, order, words)
        if gram in seen:
            raise InputError(f"{lines.where}: the n-gram {' '.join(cells[1 : order + 1])!r} twice")
        seen.add(gram)
        grams.extend(gram)
        values.append(_log(lines, cells[0], most=0.0))
        last = len(cells) == order + 2
        weights.append(_log(lines, cells[-1], most=np.inf) if last else 0.0)
    return (
        np.array(grams, np.int32).reshape(-1, order),
        np.array(values, np.float64),
        np.array(weights, np.float64),
    )


def _gram(lines: _Lines, cells: list[str], order: int, words: dict[str, int]) -> tuple[int, ...]:
    if len(cells) not in (order + 1, order + 2):
        raise InputError(
            f"{lines.where}: {len(cells)} columns; a {order}-gram has its probability, "
            f"{order} words, and perhaps a back-off weight"
        )
    try:
        return tuple(words[word] for word in cells[1 : order + 1])
    except KeyError as error:
        raise InputError(f"{lines.where}: {error.args[0]!r} is not among the 1-grams") from None


def _log(lines: _Lines, text: str, *, most: float) -> float:
    """A logarithm to the base ten as a natural one."""
    value = plain_number(text)
    if value is None or not -np.inf <= value <= most or value == np.inf:
        what = "the logarithm of a probability" if most == 0.0 else "a back-off weight"
        raise InputError(f"{lines.where}: {text!r} is not {what}")
    return max(value, NEVER) * LN10


def write_arpa(path: Path, table: NgramTable) -> None:
    """Write a model as an ARPA file, with seven digits."""
    with atomic(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.write("\\data\\\n")
        for order, grams in enumerate(table.grams, start=1):
            stream.write(f"ngram {order}={len(grams)}\n")
        for order, (grams, value, weight) in enumerate(
            zip(table.grams, table.log_prob, table.backoff, strict=True), start=1
        ):
            stream.write(f"\n\\{order}-grams:\n")
            highest = order == len(table.grams)
            for gram, p, b in zip(grams.tolist(), value / LN10, weight / LN10, strict=True):
                text = " ".join(table.words[i] for i in gram)
                stream.write(f"{p:.7g}\t{text}" + ("\n" if highest else f"\t{b:.7g}\n"))
        stream.write("\n\\end\\\n")
