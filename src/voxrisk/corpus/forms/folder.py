"""A folder tree of audio: the first folder is the speaker, a second one (if any) the session.

``ROOT/SPEAKER/file.wav`` or ``ROOT/SPEAKER/SESSION/…/file.wav``, as VoxCeleb has it. The id is the
path with hyphens for slashes; a folder whose name already begins the next part is left out, so
``61/61-70968-0001.flac`` is ``61-70968-0001``. A text file of the same name beside the audio
(``.txt``, ``.lab``) is the transcript. Symbolic links to folders are not followed.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from voxrisk.corpus.table import Located, Utterance
from voxrisk.files.text import read_words
from voxrisk.progress import log
from voxrisk.types import InputError

ENDINGS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".oga", ".aiff", ".aif", ".au", ".sph", ".w64")
TRANSCRIPTS = (".txt", ".lab")


def recognise(path: Path) -> bool:
    """A folder with at least one audio file in it or below."""
    return path.is_dir() and next(audio_below(path), None) is not None


def audio_below(root: Path) -> Iterator[Path]:
    """Every audio file below ``root``, in the order of its path; hidden ones are left out."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(ENDINGS) and not name.startswith("."):
                yield Path(folder, name)


def holds(path: Path, ending: str, *, depth: int = 4) -> bool:
    """Whether a file with this ending lies in the first few folders, down to ``depth``.

    A look, not a search: in a tree of a million files it must stay cheap.
    """
    entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    if any(entry.name.endswith(ending) for entry in entries):
        return True
    folders = [entry.path for entry in entries if entry.is_dir() and entry.name[0] != "."]
    return depth > 0 and any(holds(Path(one), ending, depth=depth - 1) for one in folders[:8])


def read(path: Path) -> Iterator[Located]:
    """Each audio file."""
    files = list(audio_below(path))
    if doubt := _doubt(path, files):
        log.warning("%s", doubt)
    for file in files:
        parts = file.relative_to(path).with_suffix("").parts
        if len(parts) == 1:
            raise InputError(
                f"{file}: lies outside any speaker's folder; put it in a folder named after its "
                "speaker, or write a manifest.csv"
            )
        utterance = Utterance(
            utterance=_identifier(parts),
            path=file,
            speaker=parts[0],
            session="-".join(parts[1:-1]) or None,
            text=_transcript(file),
        )
        yield str(file), utterance


def _doubt(path: Path, files: Sequence[Path]) -> str:
    """The question whether one speaker with many folders is not a folder of many speakers."""
    folders = {file.relative_to(path).parent.parts for file in files}
    if len({parts[:1] for parts in folders}) != 1 or len(folders) == 1 or () in folders:
        return ""
    shared = next(i for i, names in enumerate(zip(*folders, strict=False)) if len({*names}) > 1)
    at = path.joinpath(*min(folders)[:shared])
    known = sorted(f.parent for f in path.glob("*/*wav.scp")) + sorted(path.glob("*/manifest.csv"))
    lists = f", or its list {known[0]}" if known else ""
    return (
        f"{path}: all {len(files)} audio files lie below the folder {min(folders)[0]!r}, so this "
        f"is read as one speaker with {len(folders)} sessions. If the folders in {at} are the "
        f"speakers, give {at}{lists}"
    )


def _identifier(parts: tuple[str, ...]) -> str:
    """Path parts to an id.

    >>> _identifier(("61", "61-70968-0001")), _identifier(("p1", "video", "00001"))
    ('61-70968-0001', 'p1-video-00001')
    """
    name = parts[-1]
    for part in reversed(parts[:-1]):
        if not (name.startswith((f"{part}-", f"{part}_")) or name == part):
            name = f"{part}-{name}"
    return name


def _transcript(file: Path) -> str | None:
    for ending in TRANSCRIPTS:
        if (text := file.with_suffix(ending)).is_file():
            return read_words(text)
    return None
