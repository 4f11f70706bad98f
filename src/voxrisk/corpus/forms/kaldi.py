"""A Kaldi data directory: ``wav.scp``, ``utt2spk`` and, where there, the rest.

Read are ``segments`` (an utterance is a part of a recording), ``spk2gender``, ``text``,
``utt2dur``, ``utt2lang`` and ``utt2sess``; any other ``spk2…`` or ``utt2…`` (``spk2age``,
``utt2accent``) becomes a column of that name. All names may have one prefix (``test_wav.scp``,
``test_utt2spk``). A line of ``wav.scp`` that is a shell pipe
(``sph2pipe … |``) or an archive with an offset (``a.ark:123``) is refused and named. **Nothing in
it is ever run.** Write the audio to files first. Paths that are not absolute are looked for from
the data directory, then from each folder above it, since recipes write them relative to the folder
they were started in.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.forms.manifest import number
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.numbers import read_number
from voxrisk.files.text import open_text
from voxrisk.types import InputError

FIELDS = ("text", "language", "session", "age")  # columns that a row has a place for
COLUMNS = {"lang": "language", "sess": "session"}
# Read by themselves, or what Kaldi computes: no facts of people.
TAKEN = {"spk", "utt", "gender", "dur", "num_frames", "uniq", "warp", "path", "speaker"}
Columns = dict[str, dict[str, tuple[int, str]]]


def recognise(path: Path) -> bool:
    """A folder that holds ``wav.scp``, or the like with a prefix."""
    return (path / "wav.scp").is_file() or (path.is_dir() and bool(_prefixes(path)))


def _prefixes(path: Path) -> list[str]:
    """What stands before ``wav.scp`` where ``utt2spk`` has it too, such as ``test_``."""
    found = sorted(file.name.removesuffix("wav.scp") for file in path.glob("*[_.-]wav.scp"))
    return [prefix for prefix in found if (path / f"{prefix}utt2spk").is_file()]


def _prefix(path: Path) -> str:
    if (path / "wav.scp").is_file():
        return ""
    found = _prefixes(path)
    if len(found) > 1:
        raise InputError(
            f"{path}: holds several lists ({', '.join(f'{p}wav.scp' for p in found)}); put the "
            "files of each into a folder of its own"
        )
    return found[0] if found else ""


def read(path: Path) -> Iterator[Located]:
    """Each utterance of ``segments``, or of ``wav.scp`` where there are no segments."""
    prefix = _prefix(path)
    audio = _audio(path, path / f"{prefix}wav.scp")
    listed = path / f"{prefix}utt2spk"
    speakers = table(listed)
    gendered = path / f"{prefix}spk2gender"
    genders = {
        speaker: read_gender(gender, f"{gendered} line {line}")
        for speaker, (line, gender) in table(gendered, needed=False).items()
    }
    known = set(genders)
    of_utterance, of_speaker = _columns(path, prefix)
    timed = path / f"{prefix}utt2dur"
    durations = table(timed, needed=False)
    for where, utterance, recording, start, end in _parts(path, prefix, audio):
        if utterance not in speakers:
            raise InputError(f"{where}: {utterance!r} has no speaker in {listed}")
        line, speaker = speakers[utterance]
        if len(speaker.split()) > 1:
            raise InputError(f"{listed} line {line}: expected 'utterance speaker'")
        if known and speaker not in known:
            raise InputError(f"{where}: speaker {speaker!r} is not in {gendered}")
        duration = durations.get(utterance)
        told = {name: rows.get(speaker, (0, ""))[1] for name, rows in of_speaker.items()}
        for name, rows in of_utterance.items():
            told[name] = rows.get(utterance, (0, ""))[1] or told.get(name, "")
        row = Utterance(
            utterance=utterance,
            path=audio[recording][1],
            speaker=speaker,
            gender=genders.get(speaker),
            **{name: told.pop(name, "") or None for name in FIELDS},  # type: ignore[arg-type]
            duration=number(duration[1], "duration", f"{timed} line {duration[0]}")
            if duration
            else None,
            start=start,
            end=end,
            extra=told,
        )
        yield where, row


def _columns(path: Path, prefix: str) -> tuple[Columns, Columns]:
    """What is told of utterances and of speakers: column → key → (line, value)."""
    of_utterance: Columns = {}
    if (path / f"{prefix}text").is_file():
        of_utterance["text"] = table(path / f"{prefix}text", bare=True)
    of_speaker: Columns = {}
    for file in sorted(path.glob(f"{prefix}*2*")):
        kind, _, name = file.name.removeprefix(prefix).partition("2")
        if kind not in ("utt", "spk") or not re.fullmatch("[A-Za-z_]+", name) or name in TAKEN:
            continue
        column = COLUMNS.get(name, name)
        (of_utterance if kind == "utt" else of_speaker)[column] = table(file, bare=True)
    return of_utterance, of_speaker


def _parts(
    path: Path, prefix: str, audio: dict[str, tuple[int, Path]]
) -> Iterator[tuple[str, str, str, float | None, float | None]]:
    """Where, utterance, recording, start, end."""
    file, scp = path / f"{prefix}segments", path / f"{prefix}wav.scp"
    if not file.is_file():
        for name, (line, _) in audio.items():
            yield f"{scp} line {line}", name, name, None, None
        return
    for utterance, (line, value) in table(file).items():
        where = f"{file} line {line}"
        cells = value.split()
        if len(cells) not in (3, 4):
            raise InputError(f"{where}: expected 'utterance recording start end'")
        if cells[0] not in audio:
            raise InputError(f"{where}: recording {cells[0]!r} is not in {scp}")
        start = number(cells[1], "start", where)
        # Kaldi writes -1 for "to the end of the recording".
        to_the_end = read_number(cells[2], "end", where) == -1
        end = None if to_the_end else number(cells[2], "end", where)
        if end is not None and end <= start:
            raise InputError(f"{where}: end {end} is not after start {start}")
        yield where, utterance, cells[0], start, end


def _audio(path: Path, file: Path) -> dict[str, tuple[int, Path]]:
    audio = {}
    for recording, (line, value) in table(file).items():
        where = f"{file} line {line}"
        if value.endswith("|") or value.startswith("|"):
            raise InputError(
                f"{where}: {recording!r} is a shell command ({value[:60]}); voxrisk never runs "
                "commands found in data. Write the audio to files and list those"
            )
        if re.search(r":\d+(\[.*\])?$", value):
            raise InputError(
                f"{where}: {recording!r} lies in an archive ({value[:60]}); write it to a file"
            )
        audio[recording] = line, resolve(Path(value), path)
    return audio


def resolve(audio: Path, folder: Path) -> Path:
    """A path as a manifest gives it: absolute, or below ``folder`` or any folder above it."""
    if audio.is_absolute():
        return audio
    bases = [folder, *folder.absolute().parents]
    return next((base / audio for base in bases if (base / audio).is_file()), folder / audio)


def table(file: Path, *, needed: bool = True, bare: bool = False) -> dict[str, tuple[int, str]]:
    """A Kaldi text table: key → (line, rest of the line). A doubled key is an error.

    ``bare`` allows a key alone on its line: an empty transcript, or a list of ids.
    """
    if not file.is_file():
        if needed:
            raise InputError(f"{file}: missing; a Kaldi data directory needs it")
        return {}
    rows: dict[str, tuple[int, str]] = {}
    with open_text(file) as stream:
        for line, text in enumerate(stream, start=1):
            key, _, value = text.strip().partition(" ")
            if "\t" in key:
                key, _, value = text.strip().partition("\t")
            if not key:
                continue
            if key in rows:
                raise InputError(
                    f"{file} line {line}: the id {key!r} is already in line {rows[key][0]}"
                )
            if not bare and not value.strip():
                raise InputError(f"{file} line {line}: nothing stands behind {key!r}")
            rows[key] = (line, value.strip())
    if not rows and not bare:
        raise InputError(f"{file}: is empty; fill it or take it away")
    return rows
