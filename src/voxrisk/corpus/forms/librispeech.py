"""LibriSpeech (Panayotov et al., ICASSP 2015): read English, 2,484 speakers, 982 h, CC BY 4.0.

``SUBSET/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac`` with one ``.trans.txt`` for each chapter, and
``SPEAKERS.TXT`` with the gender of each reader. Given may be the root, one subset (``test-clean``)
or one speaker's folder above which ``SPEAKERS.TXT`` stands. The session is the chapter; a chapter
was recorded in one sitting or a few, so two chapters differ in room and day more than two lines do.
The subset is kept as an extra column.
"""

from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.table import Located, Utterance, read_gender
from voxrisk.types import InputError


def recognise(path: Path) -> bool:
    """A folder with chapter transcripts (``*.trans.txt``) two or three levels down."""
    return path.is_dir() and next(_transcripts(path), None) is not None


def _transcripts(path: Path) -> Iterator[Path]:
    for depth in ("*", "*/*", "*/*/*"):
        yield from sorted(path.glob(f"{depth}/*.trans.txt"))


def read(path: Path) -> Iterator[Located]:
    """Each line of each chapter's transcript."""
    genders = read_speakers(path, "SPEAKERS.TXT")
    for file in _transcripts(path):
        with file.open(encoding="utf-8") as stream:
            for line, text in enumerate(stream, start=1):
                if not text.strip():
                    continue
                where = f"{file} line {line}"
                utterance, _, words = text.strip().partition(" ")
                speaker, session, *rest = utterance.split("-")
                if not rest:
                    raise InputError(f"{where}: {utterance!r} is not SPEAKER-CHAPTER-NUMBER")
                row = Utterance(
                    utterance=utterance,
                    path=file.with_name(utterance + ".flac"),
                    speaker=speaker,
                    gender=gender_of(speaker, genders, where),
                    text=words or None,
                    session=session,
                    language="en",
                    extra={"subset": file.parents[2].name},
                )
                yield where, row


def read_speakers(path: Path, name: str) -> dict[str, str | None]:
    """``id | F | subset | minutes | name``, from the file ``name`` in ``path`` or above it."""
    for folder in (path, *path.absolute().parents[:3]):
        if (file := folder / name).is_file():
            break
    else:
        return {}
    genders = {}
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if text.strip() and not text.startswith(";"):
            cells = [cell.strip() for cell in text.split("|")]
            if len(cells) < 2:
                raise InputError(f"{file} line {line}: expected 'id | gender | …'")
            genders[cells[0]] = read_gender(cells[1], f"{file} line {line}")
    return genders


def gender_of(speaker: str, genders: dict[str, str | None], where: str) -> str | None:
    """The gender a speaker list gives; a speaker missing from a list is an error."""
    if genders and speaker not in genders:
        raise InputError(f"{where}: speaker {speaker!r} is not in the corpus's list of speakers")
    return genders.get(speaker)
