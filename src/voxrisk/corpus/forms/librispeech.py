"""LibriSpeech (Panayotov et al., ICASSP 2015): read English, 2,484 speakers, 982 h, CC BY 4.0.

``SUBSET/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac`` with one ``.trans.txt`` for each chapter, and
``SPEAKERS.TXT`` with the gender of each reader. Given may be the root, one subset (``test-clean``)
or one speaker's folder above which ``SPEAKERS.TXT`` stands. The session is the chapter; a chapter
was recorded in one sitting or a few, so two chapters differ in room and day more than two lines do.
The subset is kept as an extra column.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from voxrisk.corpus.forms.folder import holds
from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.files.text import open_text
from voxrisk.types import InputError

ENDING = ".trans.txt"


def recognise(path: Path) -> bool:
    """A folder with chapter transcripts (``*.trans.txt``) up to four levels down."""
    return path.is_dir() and holds(path, ENDING)


def _transcripts(path: Path) -> Iterator[Path]:
    for depth in ("*", "*/*", "*/*/*", "*/*/*/*"):
        yield from sorted(path.glob(f"{depth}/*{ENDING}"))


def read(path: Path) -> Iterator[Located]:
    """Each line of each chapter's transcript."""
    lists: dict[Path, dict[str, str | None]] = {}
    for file in _transcripts(path):
        subset = file.absolute().parents[2]
        if subset not in lists:
            lists[subset] = read_genders(subset)
        said = 0
        with open_text(file) as stream:
            for line, text in enumerate(stream, start=1):
                if not text.strip():
                    continue
                said += 1
                where = f"{file} line {line}"
                utterance, _, words = text.strip().partition(" ")
                parts = utterance.split("-")
                if len(parts) < 3 or not all(parts[:2]) or "/" in utterance:
                    raise InputError(f"{where}: {utterance!r} is not SPEAKER-CHAPTER-NUMBER")
                speaker, session = parts[:2]
                row = Utterance(
                    utterance=utterance,
                    path=file.with_name(utterance + ".flac"),
                    speaker=speaker,
                    gender=gender_of(speaker, lists[subset], where),
                    text=words or None,
                    session=session,
                    language="en",
                    extra={"subset": subset.name},
                )
                yield where, row
        if not said:
            raise InputError(f"{file}: lists no utterance of its chapter; mend it, or remove it")


def read_genders(subset: Path) -> dict[str, str | None]:
    """Speaker → gender from ``SPEAKERS.TXT`` (``id | F | subset | minutes | name``), if any."""
    names = ("SPEAKERS.TXT", "SPEAKERS.txt")
    places = [folder / name for folder in (subset.parent, subset) for name in names]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return {}
    with open_text(file) as stream:
        rows = ((line, text) for line, text in enumerate(stream, start=1) if text[0] != ";")
        return listed_genders(file, rows, "|")


def listed_genders(
    file: Path, lines: Iterable[tuple[int, str]], separator: str
) -> dict[str, str | None]:
    """Speaker → gender: the first two cells of each numbered line."""
    genders: dict[str, str | None] = {}
    for line, text in lines:
        if not text.strip():
            continue
        where = f"{file} line {line}"
        cells = [cell.strip() for cell in text.split(separator)]
        if len(cells) < 2:
            raise InputError(f"{where}: expected 'id {separator} gender {separator} …'")
        if cells[0] in genders:
            raise InputError(f"{where}: speaker {cells[0]!r} is there twice; keep one")
        genders[cells[0]] = read_gender(cells[1], where)
    if not genders:
        raise InputError(f"{file}: names no speaker; mend it or take it away")
    return genders


def gender_of(speaker: str, genders: dict[str, str | None], where: str) -> str | None:
    """The gender a speaker list gives; a speaker missing from a list is an error."""
    if genders and speaker not in genders:
        raise InputError(f"{where}: speaker {speaker!r} is not in the corpus's list of speakers")
    return genders.get(speaker)
