"""Private folders for speech that must lie on disk for a moment: beside the work, never left there.

What a program outside of voxrisk is to read has to be a file. Such files lie in ``OUT.scratch``,
beside the output they are for, where only their owner can look, and not in a temporary folder that
all users share. A killed run may leave them; whoever works there next removes them. A folder in use
is locked by its process, and the system frees the lock when that is killed, so nothing that
another run needs is ever removed.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

if sys.platform != "win32":  # there nothing is locked, and nothing that may be in use is removed
    import fcntl

ENDING = ".scratch"
_place: ContextVar[Path | None] = ContextVar("scratch", default=None)


def scratch_of(out: Path) -> Path:
    """Where what is needed for a moment lies while ``out`` is made."""
    return out.with_name(out.name + ENDING)


@contextlib.contextmanager
def working_on(out: Path) -> Iterator[None]:
    """Inside the block, :func:`scratch_folder` makes its folders beside ``out``."""
    token = _place.set(scratch_of(out))
    try:
        yield
    finally:
        _place.reset(token)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder for the owner alone, gone after the block."""
    place = _place.get()
    with contextlib.ExitStack() as held:
        with contextlib.ExitStack() as making:
            if place is not None:
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                making.enter_context(_lock(place))
            folder = Path(tempfile.mkdtemp(prefix="voxrisk-", dir=place))
            held.callback(shutil.rmtree, folder, ignore_errors=True)
            held.enter_context(_lock(folder))
        yield folder


def remove_scratch(place: Path) -> None:
    """Remove what killed runs left in a folder of scratch folders, and it too if nobody is in."""
    if sys.platform == "win32" or not place.is_dir():
        return
    with contextlib.suppress(OSError), _lock(place):
        for folder in place.iterdir():
            with contextlib.suppress(OSError), _lock(folder, wait=False):
                shutil.rmtree(folder, ignore_errors=True)
        place.rmdir()


@contextlib.contextmanager
def _lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
