"""Numbers in text files, read strictly: what Python's ``float`` takes besides is refused."""

from voxrisk.types import InputError


def read_number(text: str, what: str, where: str) -> float:
    """A decimal number as any program writes it; ``nan`` and ``inf`` are for the caller to judge.

    ``1_0`` and digits of other scripts are refused, for no program writes scores or seconds so: it
    is an id or a damaged file. A decimal comma is refused too, with the way out.

    Raises:
        InputError: If ``text`` is no number; the message names ``what`` and ``where``.

    >>> read_number("-1.5e3", "score", "scores.txt line 2")
    -1500.0
    >>> read_number("0,5", "score", "scores.txt line 2")
    Traceback (most recent call last):
        ...
    voxrisk.types.InputError: scores.txt line 2: score is '0,5', not a number; write a decimal point
    """
    value = plain_number(text)
    if value is None:
        hint = "; write a decimal point" if "," in text else ""
        raise InputError(f"{where}: {what} is {text!r}, not a number{hint}")
    return value


def plain_number(text: str) -> float | None:
    """The number, or None where ``text`` is none; for millions of cells whose place costs time."""
    if text.isascii() and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    return None


def read_whole(text: str, what: str, where: str) -> int:
    """A whole number, under the same rules.

    >>> read_whole("30", "L", "eer_results.csv line 2")
    30
    """
    value = read_number(text, what, where)
    if not value.is_integer() or abs(value) > 2**53:
        raise InputError(f"{where}: {what} is {text!r}, not a whole number")
    return int(value)
