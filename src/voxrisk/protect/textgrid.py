"""Praat TextGrids as the Montreal Forced Aligner writes them, in the long and the short form."""

import re
from collections.abc import Iterator
from pathlib import Path

from voxrisk.files.limits import MOST_TEXT, refuse_size
from voxrisk.files.numbers import read_number, read_whole
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError

# A quoted text (quotes inside are doubled) or a number; labels like "xmin =" and "[3]" are noise.
TOKEN = re.compile(r'("(?:[^"]|"")*")|(?<![\w\[.-])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]])')
# What is no token: the words of the long form, and nothing that could have been a value.
NOISE = re.compile(
    r"(?:\s|=|:|\?|<exists>|\[\d*\]|File type|Object class|tiers|size|item|intervals|points|class"
    r"|name|xmin|xmax|text|number|time|mark)*",
    re.ASCII,
)


def read_textgrid(path: Path) -> list[Word]:
    """Words of the tier ``words`` (or of every tier ``SPEAKER - words``), in order of time.

    Empty intervals are silence. The aligner's mark for a word it did not know (``<unk>``) is kept.

    Raises:
        InputError: If something in the file is neither a value nor a label that Praat writes, or
            the counts in it do not fit: words must not be lost without a word.
    """
    tokens = _tokens(path)
    try:
        if [_text(tokens, path), _text(tokens, path)] != ["ooTextFile", "TextGrid"]:
            raise InputError(f"{path}: is not a TextGrid")
        _number(tokens, path), _number(tokens, path)
        tiers = [_tier(tokens, path) for _ in range(_count(tokens, path))]
    except StopIteration as error:
        raise InputError(f"{path}: is not a whole TextGrid; write it again") from error
    if (more := next(tokens, None)) is not None:
        raise InputError(f"{path}: {more[:40]} stands behind its last tier; write it again")
    found = [words for name, words in tiers if name == "words" or name.endswith("- words")]
    if not found:
        names = ", ".join(repr(name) for name, _ in tiers)
        raise InputError(f"{path}: has no tier 'words' (there is {names or 'none'})")
    return sorted((word for words in found for word in words), key=lambda word: word.start or 0.0)


def _tokens(path: Path) -> Iterator[str]:
    refuse_size(path, MOST_TEXT)
    raw = path.read_bytes()
    wide = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is neither UTF-8 nor UTF-16 ({error})") from error
    end = 0
    for match in TOKEN.finditer(text):
        _refuse_noise(text[end : match.start()].rstrip().removesuffix("="), path)
        end = match.end()
        yield match[0]
    _refuse_noise(text[end:], path)


def _refuse_noise(text: str, path: Path) -> None:
    """Stop at what Praat does not write, and at a sign of equality with no value behind it."""
    if not NOISE.fullmatch(text) or "=" in text:
        raise InputError(f"{path}: {text.strip()[:40]!r} is no part of a TextGrid; write it again")


def _text(tokens: Iterator[str], path: Path) -> str:
    if not (token := next(tokens)).startswith('"'):
        raise InputError(f"{path}: {token} where a text is needed; write it again")
    return token[1:-1].replace('""', '"')


def _number(tokens: Iterator[str], path: Path) -> float:
    return read_number(next(tokens), "a time", str(path))


def _count(tokens: Iterator[str], path: Path) -> int:
    return read_whole(next(tokens), "a count", str(path))


def _tier(tokens: Iterator[str], path: Path) -> tuple[str, list[Word]]:
    kind, name = _text(tokens, path), _text(tokens, path)
    if kind not in ("IntervalTier", "TextTier"):
        raise InputError(f"{path}: a tier of the kind {kind[:40]!r}; Praat knows none")
    _number(tokens, path), _number(tokens, path)
    words = []
    for _ in range(_count(tokens, path)):
        start = _number(tokens, path)
        end = _number(tokens, path) if kind == "IntervalTier" else start
        text = _text(tokens, path).strip()
        if len(text.splitlines()) > 1:
            raise InputError(f"{path}: {text!r} runs over the end of the line; write it again")
        if start < 0:
            raise InputError(f"{path}: {text!r} begins at {start} s; write it again")
        if text and kind == "IntervalTier":
            words.append(Word(text, start, end))
    return name, words
