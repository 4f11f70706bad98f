"""Read a corpus of any form: the table of its utterances, checked."""

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from voxrisk.corpus.forms import recognise
from voxrisk.corpus.table import Located, Utterance
from voxrisk.files.errors import reading
from voxrisk.files.places import open_place, place_exists, remote_address
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
    if remote_address(path) is not None and path.suffix != ".tar":
        return _read_remote(path, audio=audio)
    if remote_address(path) is None and not path.exists() and not any(path.parent.glob(path.name)):
        raise InputError(f"{path}: no such corpus; give a folder of audio or a manifest.csv")
    with reading(path, "a corpus"):
        located = list(recognise(path).read(path))
    if not located:
        raise InputError(f"{path}: the corpus holds no utterances")
    _refuse_nameless(located)
    _refuse_doubled(located)
    if audio:
        _refuse_missing(located, path)
    return [row for _, row in located]


def _read_remote(path: Path, *, audio: bool) -> list[Utterance]:
    """A manifest elsewhere is fetched; its audio stays there, beside it."""
    with tempfile.TemporaryDirectory(prefix="voxrisk-") as folder:
        copy = Path(folder).resolve() / path.name
        with reading(path, "a manifest"), open_place(path) as stream:
            copy.write_bytes(stream.read())
        rows = read_corpus(copy, audio=False)
        near = [row.path.is_relative_to(copy.parent) for row in rows]
        rows = [
            replace(row, path=path.parent / row.path.relative_to(copy.parent)) if inside else row
            for row, inside in zip(rows, near, strict=True)
        ]
    if audio:
        _refuse_missing(((str(path), row) for row in rows), path)
    return rows


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


def where_else(missing: Path, corpus: Path) -> str:
    """Where a missing audio file lies instead, if the paths of a list begin elsewhere.

    The list of a corpus is often written for another folder. A file that ends alike is told of and
    never taken: it may be another version of the same speech.
    """
    corpus = corpus.absolute()
    bases = [corpus, *corpus.parents]
    inside = missing.relative_to(corpus) if missing.is_relative_to(corpus) else missing
    parts = inside.parts[1:] if inside.is_absolute() else inside.parts
    for start in range(len(parts) - 1):
        for base in bases[: -1 if start > len(parts) - 3 else None]:
            place = base.joinpath(*parts[start:])
            if place != missing and place_exists(place):
                lead = "/".join(parts[:start])
                way = f"take {lead!r} off the paths of the list" if lead else "move the list there"
                return f"a file of that name lies at {place}: {way}, if it is this speech"
    return ""


def _refuse_missing(located: Iterable[Located], corpus: Path) -> None:
    exists: dict[Path, bool] = {}
    missing = []
    for where, row in located:
        if row.path not in exists:
            exists[row.path] = place_exists(row.path)
        if not exists[row.path]:
            missing.append((where, row))
    if missing:
        where, row = missing[0]
        more = f" (and {len(missing) - 1} more are missing)" if len(missing) > 1 else ""
        hint = where_else(row.path, corpus) or "`voxrisk corpus check --json` lists all of them"
        raise InputError(f"{where}: no audio file {row.path} for {row.utterance!r}{more}; {hint}")
