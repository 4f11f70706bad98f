"""Read a corpus of any form: the table of its utterances, checked."""

from collections.abc import Iterable
from pathlib import Path

from voxrisk.corpus.forms import recognise
from voxrisk.corpus.table import Located, Utterance
from voxrisk.files.errors import reading
from voxrisk.files.text import refuse_unwritable
from voxrisk.types import InputError, as_path


def read_corpus(path: Path | str, *, audio: bool = True) -> list[Utterance]:
    """Read a corpus of any known form (see :mod:`voxrisk.corpus.forms`), in a stable order.

    Args:
        path: A folder or a manifest file; or VoicePrivacy directories with a star in their name.
        audio: Whether every audio file must be there. Without it only the table is read.

    Raises:
        InputError: If the form is not recognised, a row is malformed, an id is used twice or
            audio is missing; the message names the file and the line.
    """
    path = as_path(path, "a corpus")
    if not path.exists() and not any(path.parent.glob(path.name)):
        raise InputError(f"{path}: no such corpus; give a folder of audio or a manifest.csv")
    with reading(path, "a corpus"):
        located = list(recognise(path).read(path))
    if not located:
        raise InputError(f"{path}: the corpus holds no utterances")
    _refuse_nameless(located)
    _refuse_doubled(located)
    if audio:
        _refuse_missing(located)
    return [row for _, row in located]


def _refuse_nameless(located: Iterable[Located]) -> None:
    """Every row has an id, a speaker and a path that can be written again."""
    for where, row in located:
        for name, value in (("utterance", row.utterance), ("speaker", row.speaker)):
            if not value.strip():
                raise InputError(f"{where}: the {name} is empty; name it")
        for text in (row.utterance, row.speaker, str(row.path), row.text or ""):
            refuse_unwritable(text, ascii(where)[1:-1])


def _refuse_doubled(located: Iterable[Located]) -> None:
    first: dict[str, str] = {}
    for where, row in located:
        if row.utterance in first:
            raise InputError(
                f"{where}: the id {row.utterance!r} is already used at {first[row.utterance]}; "
                "ids must be unique"
            )
        first[row.utterance] = where


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than any disk allows, a folder without permission
        return False


def _refuse_missing(located: Iterable[Located]) -> None:
    exists: dict[Path, bool] = {}
    missing = []
    for where, row in located:
        if row.path not in exists:
            exists[row.path] = _is_file(row.path)
        if not exists[row.path]:
            missing.append((where, row))
    if missing:
        where, row = missing[0]
        more = f" (and {len(missing) - 1} more are missing)" if len(missing) > 1 else ""
        raise InputError(
            f"{where}: no audio file {row.path} for {row.utterance!r}{more}; "
            "`voxrisk corpus check` lists all of them"
        )
