"""Ready word alignments from other tools, read into one form: utterance → words with times.

Known are TextGrid (Montreal Forced Aligner), CTM (Kaldi), Gentle's JSON, the LibriSpeech alignments
of Lugosch et al. (``.alignment.txt``), lhotse supervisions with a word alignment, and our own plain
table (``utterance,word,start,end``; empty times mean: not found). One file, or a folder of them. In
forms with one file for each utterance (TextGrid, JSON) the name of the file is the utterance.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from voxrisk.corpus.forms.lhotse import json_lines
from voxrisk.corpus.forms.manifest import number
from voxrisk.files.errors import reading
from voxrisk.files.tables import write_table
from voxrisk.files.text import open_text, read_text, refuse_unwritable
from voxrisk.protect.slicing import Word
from voxrisk.protect.textgrid import read_textgrid
from voxrisk.types import InputError

Aligned = tuple[str, list[Word]]
TIMED = {"utterance", "word", "start", "end"}


def read_alignment(path: Path | str) -> dict[str, list[Word]]:
    """Read a file or every known file below a folder.

    Raises:
        InputError: If nothing known is there, a file is malformed, or an utterance is aligned
            twice; the message names file and line.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such alignment")
    files = sorted(f for f in path.rglob("*") if _reader(f)) if path.is_dir() else [path]
    aligned: dict[str, list[Word]] = {}
    source: dict[str, Path] = {}
    for file in files:
        reader = _reader(file)
        if reader is None:
            raise InputError(f"{file}: not a known alignment; known are {', '.join(READERS)}")
        with reading(file, "an alignment"):
            found = list(reader(file))
        for utterance, words in found:
            if utterance in aligned:
                raise InputError(f"{file}: {utterance!r} is already aligned in {source[utterance]}")
            aligned[utterance], source[utterance] = words, file
            _refuse_impossible(file, utterance, words)
    if not aligned:
        raise InputError(f"{path}: holds no alignment; known are {', '.join(READERS)}")
    return aligned


def _refuse_impossible(file: Path, utterance: str, words: Sequence[Word]) -> None:
    """A word has an utterance, and ends after it begins."""
    if not utterance.strip():
        raise InputError(f"{file}: words without an utterance; name it")
    for word in words:
        refuse_unwritable(f"{utterance} {word.text}", str(file))
        if word.start is not None and word.end is not None and word.end < word.start:
            raise InputError(
                f"{file}: {word.text!r} of {utterance!r} ends at {word.end} s, before it begins at "
                f"{word.start} s"
            )


def write_alignment(path: Path | str, aligned: Mapping[str, Sequence[Word]]) -> None:
    """Write the plain table ``utterance,word,start,end``."""
    rows = (
        (utterance, word.text, word.start, word.end)
        for utterance, words in aligned.items()
        for word in words
    )
    write_table(path, ("utterance", "word", "start", "end"), rows)


def _reader(file: Path) -> Callable[[Path], Iterator[Aligned]] | None:
    if file.name.startswith("."):
        return None
    return next((read for end, read in READERS.items() if file.name.lower().endswith(end)), None)


def _seconds(text: object, where: str) -> float:
    return number(str(text), "the time", where)


def _textgrid(file: Path) -> Iterator[Aligned]:
    yield file.stem, read_textgrid(file)


def _table(file: Path) -> Iterator[Aligned]:
    aligned: dict[str, list[Word]] = {}
    with open_text(file, newline="") as stream:
        rows = csv.DictReader(stream, strict=True)
        names = list(rows.fieldnames or ())
        if sorted({*names} & TIMED) != sorted(TIMED) or len({*names}) < len(names):
            raise InputError(f"{file} line 1: the columns must be utterance,word,start,end")
        for row in rows:
            where = f"{file} line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{where}: not as many cells as the header has columns")
            times = [_seconds(row[name], where) if row[name] else None for name in ("start", "end")]
            aligned.setdefault(row["utterance"], []).append(Word(row["word"], *times))
    yield from aligned.items()


def _ctm(file: Path) -> Iterator[Aligned]:
    """``utterance channel start duration word [confidence]``; ``;;`` begins a comment."""
    aligned: dict[str, list[Word]] = {}
    with open_text(file) as stream:
        for line, text in enumerate(stream, start=1):
            cells = text.split()
            if not cells or text.startswith(";;"):
                continue
            where = f"{file} line {line}"
            if len(cells) not in (5, 6):
                raise InputError(f"{where}: expected 'utterance channel start duration word'")
            start, length = _seconds(cells[2], where), _seconds(cells[3], where)
            word = Word(cells[4], start, round(start + length, 6))
            if word.text not in ("<eps>", "<sil>", "SIL"):
                aligned.setdefault(cells[0], []).append(word)
    for utterance, words in aligned.items():
        yield utterance, sorted(words, key=lambda word: word.start or 0.0)


def _gentle(file: Path) -> Iterator[Aligned]:
    """A word Gentle did not find in the audio has no times."""
    try:
        content = json.loads(read_text(file))
        rows = content["words"]
        words = [
            Word(
                str(row["word"]),
                _seconds(row["start"], str(file)) if row["case"] == "success" else None,
                _seconds(row["end"], str(file)) if row["case"] == "success" else None,
            )
            for row in rows
            if row["case"] != "not-found-in-transcript"
        ]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: is not an alignment by Gentle ({error!r})") from error
    yield file.stem, words


def _librispeech(file: Path) -> Iterator[Aligned]:
    """``utterance ",WORD,,WORD," "0.1,0.5,0.6,0.9,1.2"``: words (silence is empty), their ends."""
    with open_text(file) as stream:
        for line, text in enumerate(stream, start=1):
            if not text.strip():
                continue
            where = f"{file} line {line}"
            match = re.fullmatch(r'([^\s"]+)\s+"([^"]*)"\s+"([^"]*)"', text.strip())
            if not match:
                raise InputError(f'{where}: expected \'utterance "words" "times"\'')
            words, ends = [word.strip() for word in match[2].split(",")], match[3].split(",")
            if len(words) != len(ends):
                raise InputError(f"{where}: {len(words)} words but {len(ends)} times")
            times = [0.0, *(_seconds(end, where) for end in ends)]
            if sorted(times) != times:
                raise InputError(f"{where}: the times go back")
            yield (
                match[1],
                [Word(w, times[i], times[i + 1]) for i, w in enumerate(words) if w],
            )


def _lhotse(file: Path) -> Iterator[Aligned]:
    """Times in a supervision count from the beginning of the recording, ours from the utterance."""
    for where, row in json_lines(file):
        items = (row.get("alignment") or {}).get("word")
        if items is None:
            continue
        if not isinstance(name := row.get("id"), str):
            raise InputError(f"{where}: no id")
        words = []
        for item in items:
            if isinstance(item, Mapping):
                item = [item.get("symbol"), item.get("start"), item.get("duration")]
            if not isinstance(item, list) or len(item) < 3 or not isinstance(item[0], str):
                raise InputError(f"{where}: {item!r} is not [word, start, duration]")
            start = _seconds(item[1], where) - _seconds(row.get("start"), where)
            end = start + _seconds(item[2], where)
            if item[0]:
                words.append(Word(item[0], round(start, 6), round(end, 6)))
        yield name, words


READERS: dict[str, Callable[[Path], Iterator[Aligned]]] = {
    ".textgrid": _textgrid,
    ".ctm": _ctm,
    ".alignment.txt": _librispeech,
    ".json": _gentle,
    ".jsonl": _lhotse,
    ".jsonl.gz": _lhotse,
    ".csv": _table,
}
