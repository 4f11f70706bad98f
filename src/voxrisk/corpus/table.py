"""The table of utterances that every stage reads and writes: one row, one utterance."""

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from voxrisk.files.atomic import write_text
from voxrisk.files.places import place_name
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True)
class Heard:
    """A decoded copy of one utterance, so that later stages need not decode it again.

    Attributes:
        path: File of the samples in NumPy's format, mono at 16 kHz.
        of: Path, start and end of the speech it was made of; it stands for no other.
        seconds: How long the utterance lasts, by the recording itself.
    """

    path: Path
    of: tuple[Path, float | None, float | None]
    seconds: float


@dataclass(frozen=True, slots=True)
class Utterance:
    """One utterance of one speaker.

    Attributes:
        utterance: Unique id.
        path: Audio file.
        speaker: Who speaks.
        gender: ``"f"`` or ``"m"`` where known.
        text: What is said, where known.
        session: Recording session (a LibriSpeech chapter, a VoxCeleb video …).
        language: Language tag.
        age: As the corpus gives it.
        duration: Seconds.
        start: Where the utterance begins in ``path``, in seconds (Kaldi ``segments``).
        end: Where it ends.
        extra: Every other column of the table, e.g. the ``target`` an anonymizer chose.
        heard: A decoded copy, where a stage has kept one; never part of a table.
    """

    utterance: str
    path: Path
    speaker: str
    gender: str | None = None
    text: str | None = None
    session: str | None = None
    language: str | None = None
    age: str | None = None
    duration: float | None = None
    start: float | None = None
    end: float | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    heard: Heard | None = field(default=None, compare=False, repr=False)

    @property
    def copy(self) -> Heard | None:
        """The decoded copy, if it is of this very speech and not of what the row once named."""
        place = (self.path, self.start, self.end)
        return self.heard if self.heard is not None and self.heard.of == place else None


# A row and where it was read (a file and a line), so that an error can name the place.
Located = tuple[str, Utterance]

COLUMNS = tuple(f.name for f in fields(Utterance) if f.name not in ("extra", "heard"))
REQUIRED = ("utterance", "path", "speaker")
NUMBERS = ("duration", "start", "end")
GENDERS = {"f": "f", "female": "f", "female_feminine": "f", "woman": "f"} | {
    "m": "m", "male": "m", "male_masculine": "m", "man": "m",
}  # fmt: skip
NO_GENDER = {"", "-", "u", "o", "n/a", "none", "unknown", "other", "do_not_wish_to_say"} | {
    "non-binary", "transgender", "intersex",
}  # fmt: skip


def read_gender(text: str, where: str) -> str | None:
    """``"f"``, ``"m"``, or None where the corpus does not say or says something else.

    >>> read_gender("Female", "speakers.txt line 1"), read_gender("other", "speakers.txt line 2")
    ('f', None)
    """
    word = text.strip().lower()
    if word in NO_GENDER:
        return None
    if word not in GENDERS:
        raise InputError(f"{where}: gender is {text!r}; write f or m, or leave it empty")
    return GENDERS[word]


def file_name(identifier: str, ending: str) -> str:
    """A file name for an id from a manifest: one plain name, whatever the id holds.

    Letters, digits, dots, hyphens and underscores stay as they are; anything else, a leading dot
    and every slash are percent-coded, so no id can reach another folder, and two ids never share a
    name. A very long id keeps its beginning and a hash of the whole.

    >>> file_name("61-70968-0001", ".flac"), file_name("../../etc/passwd", ".flac")
    ('61-70968-0001.flac', '%2E.%2F..%2Fetc%2Fpasswd.flac')
    """
    name = re.sub(
        rb"[^A-Za-z0-9._-]",
        lambda m: b"%%%02X" % m[0][0],
        identifier.encode("utf-8", "surrogatepass"),
    ).decode("ascii")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > 180:
        digest = hashlib.blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=16)
        name = f"{name[:140]}%{digest.hexdigest()}"
    return name + ending


def write_corpus(path: Path | str, utterances: Iterable[Utterance]) -> None:
    """Write ``manifest.csv``; audio below its folder gets a relative path, other a full one."""
    path = Path(path)
    folder = path.parent.absolute()
    rows = list(utterances)
    extra = sorted({key for row in rows for key in row.extra})
    used = [c for c in COLUMNS if c in REQUIRED or any(getattr(r, c) is not None for r in rows)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*used, *extra])
    for row in rows:
        cells = {name: getattr(row, name) for name in used}
        cells["path"] = place_name(row.path, folder)
        writer.writerow([*cells.values(), *(row.extra.get(key, "") for key in extra)])
    write_text(path, text.getvalue())
