"""Names for speakers that tell nothing: S01, S02 … in an order only the owner of the run can make.

Were they numbered in the order of their ids, a list of participants would undo them. So the order
comes from a secret that is drawn once for each user and never leaves the cache folder. The same
user gets the same names for the same speakers, so runs can be compared person by person.
"""

import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from voxrisk.files.atomic import atomic
from voxrisk.models import cache_folder
from voxrisk.notices import Notice

SECRET = "pseudonyms.key"
PRIVATE = "private"


def pseudonyms(speakers: Sequence[str]) -> dict[str, str]:
    """Speaker → S01 …; the numbers say nothing about the ids."""
    key = _secret()
    order = sorted(speakers, key=lambda s: hmac.digest(key, s.encode(), "sha256"))
    width = max(len(str(len(order))), 2)
    return {speaker: f"S{i:0{width}d}" for i, speaker in enumerate(order, start=1)}


def _secret() -> bytes:
    path = cache_folder() / SECRET
    if not path.is_file():
        write_private(path, secrets.token_hex(32))
    return path.read_bytes()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    with atomic(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def write_key(folder: Path, alias: dict[str, str], notices: Sequence[Notice]) -> None:
    """What may not be shared: whose pseudonym is whose, and the notices with ids and details."""
    private = folder / PRIVATE
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows = "".join(f"{alias[s]},{s}\n" for s in sorted(alias, key=alias.__getitem__))
    write_private(private / "speakers.csv", f"pseudonym,speaker\n{rows}")
    said = "".join(f"[{n.severity}] {n.text}\n" for n in notices)
    write_private(private / "notices.txt", said)
