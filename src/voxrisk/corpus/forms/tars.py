"""Tars of speech: WebDataset shards, and lhotse Shar.

**WebDataset**: a tar, or a folder of them; the files of one utterance share their name up to the
first dot: ``p225-001.flac`` with ``p225-001.json``. The JSON object has the columns of a manifest
(``speaker`` is needed; ``speaker_id``, ``spk`` … are understood); ``.txt`` is the text and ``.spk``
the speaker where there is no JSON. The name is the id unless the JSON has one.

**Shar**: a folder of ``cuts.000000.jsonl[.gz]`` and ``recording.000000.tar``. Every supervision of
a cut is an utterance; the audio of a cut is its own, so times count from the beginning of the cut.

Utterances come in the order of the tars. The audio stays inside: see :mod:`voxrisk.files.places`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from voxrisk.corpus.forms import manifest
from voxrisk.corpus.forms.lhotse import json_lines
from voxrisk.corpus.table import Located
from voxrisk.files.errors import reading
from voxrisk.files.places import open_place, remote_address, tar_members
from voxrisk.types import InputError

AUDIO = (".flac", ".wav", ".mp3", ".ogg", ".opus", ".m4a")
WHOLE = 0.01  # seconds by which a supervision may differ from its cut and still be all of it


def _tars(path: Path) -> list[Path]:
    if path.suffix == ".tar":
        return [path] if remote_address(path) or path.is_file() else []
    return sorted(path.glob("*.tar")) if path.is_dir() else []


def _cuts(path: Path) -> list[Path]:
    return sorted(path.glob("cuts.*.jsonl*")) if path.is_dir() else []


def recognise(path: Path) -> bool:
    """A tar, or a folder that holds tars."""
    return bool(_tars(path))


def read(path: Path) -> Iterator[Located]:
    """Each utterance, tar by tar."""
    if cuts := _cuts(path):
        for file in cuts:
            yield from _shar(file)
        return
    for tar in _tars(path):
        yield from _webdataset(tar)


def _webdataset(tar: Path) -> Iterator[Located]:
    groups: dict[str, dict[str, str]] = {}
    for name in tar_members(tar):
        folder, _, file = name.rpartition("/")
        stem, _, ending = file.partition(".")
        key = f"{folder}/{stem}" if folder else stem
        groups.setdefault(key, {})[f".{ending.lower()}"] = name
    for key, files in groups.items():
        sounds = [name for ending, name in files.items() if ending in AUDIO]
        if not sounds:
            continue  # pictures, features: nothing that can be heard
        where, sound = f"{tar} {key}", sounds[0]
        if len(sounds) > 1:
            raise InputError(f"{where}: {' and '.join(sounds)} have one name; keep one of them")
        row: dict[str, str] = {}
        if ".json" in files:
            row = _known(_object(tar / files[".json"], where))
        for ending, column in ((".txt", "text"), (".spk", "speaker")):
            if ending in files and column not in row:
                row[column] = _text(tar / files[ending])
        if not row.get("speaker"):
            raise InputError(
                f"{where}: nobody is said to speak; put a .json with a speaker beside {sound}"
            )
        row = {**row, "utterance": row.get("utterance") or key, "path": sound}
        yield where, manifest.utterance(row, where, tar)


def _known(found: Mapping[str, Any]) -> dict[str, str]:
    """The plain cells of a JSON object, under the names of our columns."""
    plain = {k: v for k, v in found.items() if isinstance(v, str | int | float) and k != "path"}
    names = manifest.our_names(list(plain))
    return {new: str(value) for new, value in zip(names, plain.values(), strict=True)}


def _object(path: Path, where: str) -> Mapping[str, Any]:
    with reading(where, "JSON"):
        found = json.loads(_text(path))
    if not isinstance(found, dict):
        raise InputError(f"{where}: its .json is no object with columns")
    return found


def _text(path: Path) -> str:
    with reading(path), open_place(path) as stream:
        return stream.read().decode("utf-8").strip()


def _shar(cuts: Path) -> Iterator[Located]:
    number = cuts.name.split(".")[1]
    tar = cuts.with_name(f"recording.{number}.tar")
    if not tar.is_file():
        raise InputError(f"{cuts}: no {tar.name} beside it, which holds its audio")
    audio = {str(Path(name).with_suffix("")): name for name in tar_members(tar)
             if Path(name).suffix in AUDIO}  # fmt: skip
    for where, cut in json_lines(cuts):
        name = str(cut.get("id", ""))
        if name not in audio:
            raise InputError(f"{where}: {tar.name} holds no audio of the cut {name!r}")
        spoken = cut.get("supervisions") or []
        for said in spoken:
            row = {key: str(said[key]) for key in ("speaker", "gender", "text", "language")
                   if said.get(key) is not None}  # fmt: skip
            begin, length = float(said.get("start", 0.0)), float(said.get("duration", 0.0))
            if abs(begin) > WHOLE or abs(length - float(cut.get("duration", length))) > WHOLE:
                row |= {"start": str(max(begin, 0.0)), "end": str(begin + length)}
            row |= {"utterance": str(said.get("id") or name), "path": audio[name],
                    "duration": str(length)}  # fmt: skip
            if not row.get("speaker"):
                raise InputError(f"{where}: the supervision {row['utterance']!r} names no speaker")
            yield where, manifest.utterance(row, where, tar)
