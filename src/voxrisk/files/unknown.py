"""Fields of a JSON file that nothing reads: a misspelt one would count as not said."""

from typing import Any

from voxrisk.types import InputError


def refuse_unknown(said: Any, read: Any, where: str, place: str = "$") -> None:
    """Refuse fields of ``said`` that ``read`` (what was made of it, as plain values) has not.

    Raises:
        InputError: With the place of the first one.

    >>> refuse_unknown({"seed": 1, "sed": 2}, {"seed": 1}, "results.json")
    Traceback (most recent call last):
        ...
    voxrisk.types.InputError: results.json: unknown field `$.sed`; it is damaged or of another \
version, run the command again
    """
    if isinstance(said, dict) and isinstance(read, dict):
        for key, value in said.items():
            if key not in read:
                raise InputError(
                    f"{where}: unknown field `{place}.{key:.40}`; it is damaged or of another "
                    "version, run the command again"
                )
            refuse_unknown(value, read[key], where, f"{place}.{key}")
    elif isinstance(said, list) and isinstance(read, list | tuple):
        for i, (one, other) in enumerate(zip(said, read, strict=False)):
            refuse_unknown(one, other, where, f"{place}[{i}]")
