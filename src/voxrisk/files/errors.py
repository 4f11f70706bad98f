"""What a library or the system raises, in words a person can use: the one place for it.

What damaged bytes raise is no closed list: NumPy alone knows ``SyntaxError``, ``zlib.error`` and
``struct.error``. So :func:`reading` takes all of it, and stands around the reading of one file and
nothing else. The cause stays attached; ``voxrisk --debug`` prints it.
"""

import contextlib
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from voxrisk.types import InputError, MissingExtraError

DAMAGED = "it is damaged or of another kind; write, copy or download it again"
LONGEST_REASON = 200  # characters of what a library says
_SYSTEM = {
    errno.ENOSPC: "the disk is full; make room and run the same command again",
    errno.EDQUOT: "your share of the disk is full; make room and run the same command again",
    errno.EACCES: "permission denied; change its permissions or choose another place",
    errno.EPERM: "permission denied; change its permissions or choose another place",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EISDIR: "is a folder where a file is needed",
    errno.ENOTDIR: "a file is in the way where a folder is needed",
    errno.ENOENT: "no such file or folder",
    errno.EEXIST: "is already there; choose another name",
    errno.ENAMETOOLONG: "the name is too long for this disk; choose a shorter one",
    errno.ELOOP: "symbolic links lead round in a circle",
    errno.EMFILE: "too many files are open; allow more (ulimit -n 4096) and run it again",
    errno.ENFILE: "too many files are open; close other programs and run it again",
    errno.EIO: "the disk reports a fault; copy the file from elsewhere",
    errno.ENOTEMPTY: "the folder is not empty; choose another",
    errno.EXDEV: "lies on another disk; choose a place on the same one",
}


@contextlib.contextmanager
def reading(path: Path | str, what: str = "", *, way_out: str = DAMAGED) -> Iterator[None]:
    """Turn whatever the block raises while it reads ``path`` into an InputError that names it.

    Args:
        path: The file (or file and entry) that is read.
        what: What it is read as, e.g. ``"a Parquet table"``.
        way_out: What to do about it.

    Raises:
        InputError: For everything but errors of ours, which pass as they are.
    """
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except UnicodeDecodeError as error:
        raise InputError(_not_utf8(path, error)) from error
    except MemoryError as error:
        raise InputError(f"{path}: does not fit into memory; {way_out}") from error
    except OSError as error:
        if error.errno in _SYSTEM:
            raise InputError(system_words(error, path)) from error
        raise InputError(_cannot(path, what, error, way_out)) from error
    except Exception as error:
        raise InputError(_cannot(path, what, error, way_out)) from error


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn what the system refuses while ``path`` is written into an InputError with a way out."""
    try:
        yield
    except OSError as error:
        if error.errno in _SYSTEM:
            raise InputError(system_words(error, path)) from error
        raise


def system_words(error: OSError, path: Path | str = "") -> str:
    """An error of the system in one line: the file it is about, and the way out.

    >>> system_words(OSError(errno.ENOSPC, "No space left on device"), "run/results.json")
    'run/results.json: the disk is full; make room and run the same command again'
    """
    where = error.filename if isinstance(error.filename, str) else path
    words = _SYSTEM.get(error.errno or 0, error.strerror or reason(error))
    return f"{where}: {words}" if str(where) else words


def reason(error: BaseException) -> str:
    """What an error says, in one short line, and its kind where it says nothing."""
    text = " ".join(str(getattr(error, "error_string", None) or error).split())
    if isinstance(error, KeyError | StopIteration) or not text:
        text = f"{type(error).__name__} {text}".strip()
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"


def _cannot(path: Path | str, what: str, error: BaseException, way_out: str) -> str:
    said = reason(error).replace(f"{path}", Path(path).name)
    return f"{path}: cannot be read{f' as {what}' if what else ''} ({said}); {way_out}"


def _not_utf8(path: Path | str, error: UnicodeDecodeError) -> str:
    line = _bad_line(Path(path))
    where = f"{path} line {line}" if line else f"{path}"
    byte = f" (byte 0x{error.object[error.start]:02x})" if error.start < len(error.object) else ""
    return f"{where}: is not UTF-8 text{byte}; save the file as UTF-8"


def _bad_line(path: Path) -> int | None:
    """The first line of a plain file that is not UTF-8."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    # Old Mac files end their lines with a carriage return alone.
                    return number if not re.search(rb"\r(?!\n)", line) else None
    except OSError:
        pass
    return None
