"""Praat TextGrids as the Montreal Forced Aligner writes them, in the long and the short form."""

import re
from collections.abc import Iterator
from pathlib import Path

from voxrisk.protect.slicing import Word
from voxrisk.types import InputError

# A quoted text (quotes inside are doubled) or a number; labels like "xmin =" and "[3]" are noise.
TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<![\w\[.-])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]])')


def read_textgrid(path: Path) -> list[Word]:
    """Words of the tier ``words`` (or of every tier ``SPEAKER - words``), in order of time.

    Empty intervals are silence. The aligner's mark for a word it did not know (``<unk>``) is kept.
    """
    tokens = _tokens(path)
    try:
        if [next(tokens), next(tokens)] != ["ooTextFile", "TextGrid"]:
            raise InputError(f"{path}: is not a TextGrid")
        next(tokens), next(tokens)
        tiers = [_tier(tokens) for _ in range(int(next(tokens)))]
    except (StopIteration, ValueError) as error:
        raise InputError(f"{path}: is not a whole TextGrid; write it again") from error
    found = [words for name, words in tiers if name == "words" or name.endswith("- words")]
    if not found:
        names = ", ".join(repr(name) for name, _ in tiers)
        raise InputError(f"{path}: has no tier 'words' (there is {names or 'none'})")
    return sorted((word for words in found for word in words), key=lambda word: word.start or 0.0)


def _tokens(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is neither UTF-8 nor UTF-16 ({error})") from error
    for match in TOKEN.finditer(text):
        yield match[1].replace('""', '"') if match[1] is not None else match[2]


def _tier(tokens: Iterator[str]) -> tuple[str, list[Word]]:
    kind, name = next(tokens), next(tokens)
    next(tokens), next(tokens)
    words = []
    for _ in range(int(next(tokens))):
        if kind == "IntervalTier":
            start, end, text = float(next(tokens)), float(next(tokens)), next(tokens).strip()
            if text:
                words.append(Word(text, start, end))
        else:
            next(tokens), next(tokens)  # a point: its time and its mark
    return name, words
