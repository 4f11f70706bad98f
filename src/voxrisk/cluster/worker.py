"""What runs on the other machines: a process that looks around first, and then does items."""

import contextlib
import dataclasses
import functools
import os
import platform
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from voxrisk.types import require

SHARE = (
    "all machines of a cluster must see the same folders under the same names (NFS, Lustre, a "
    "mounted bucket); see docs/scaling.md"
)


class Worker:
    """A process on some machine of the cluster."""

    def __init__(self, folder: str, search: list[str], settings: dict[str, str]) -> None:
        sys.path += [place for place in search if place not in sys.path]
        os.environ.update(settings)
        self.folder = folder

    def look(self, **known: Any) -> str | None:
        """What keeps this worker from doing the same as its caller would, or None."""
        global _machine
        ray: Any = require("ray", extra="ray")
        _machine = ray.get_runtime_context().get_node_id()[:12]
        wrong = self.sees(**known)
        return wrong and f"machine {ray.util.get_node_ip_address()} of the cluster {wrong}"

    def sees(
        self, files: list[tuple[str, int]], sign: tuple[str, str] | None, versions: dict[str, str]
    ) -> str | None:
        """The same versions, the same folder, the same files."""
        mine = own_versions()
        if other := [f"{k} {mine[k]} (here {v})" for k, v in versions.items() if mine[k] != v]:
            return f"has {', '.join(other)}; install the same everywhere"
        try:
            os.chdir(self.folder)
        except OSError:
            return f"does not see the folder {self.folder}; {SHARE}"
        for path, size in files:
            if not Path(path).is_file() or Path(path).stat().st_size != size:
                return f"does not see the file {path} as it is here; {SHARE}"
        if sign is None:
            return None
        with contextlib.suppress(OSError):
            if Path(sign[0]).read_text() == sign[1]:
                return None
        return f"does not see the folder {Path(sign[0]).parent}; {SHARE}"

    def do(self, stage: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
        """The result of one item, or the error it ended with, as it is."""
        try:
            return True, stage(item)
        except Exception as error:
            error.add_note("In a worker:\n" + traceback.format_exc())
            return False, error


_machine = ""


def machine() -> str:
    """The machine of the cluster that this worker is on; empty where there is no cluster."""
    return _machine


def own_versions() -> dict[str, str]:
    """What must be the same everywhere for the same bytes."""
    import numpy as np

    from voxrisk import __version__

    return {"python": platform.python_version(), "voxrisk": __version__, "numpy": np.__version__}


@contextlib.contextmanager
def probe(folder: Path | None) -> Iterator[tuple[str, str] | None]:
    """A file in ``folder`` that a worker elsewhere must find, with its secret."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(8)
    path = folder.absolute() / f".{secret}.part"
    path.write_text(secret)
    try:
        yield str(path), secret
    finally:
        path.unlink(missing_ok=True)


def files_of(part: Any) -> list[tuple[str, int]]:
    """Absolute name and size of each file that some items name, as far as it exists here."""
    if isinstance(part, Path):
        with contextlib.suppress(OSError):
            if part.is_file():
                return [(str(part.absolute()), part.stat().st_size)]
        return []
    if isinstance(part, functools.partial):
        return files_of([part.func, *part.args, *part.keywords.values()])
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return files_of([getattr(part, f.name) for f in dataclasses.fields(part)])
    if isinstance(part, list | tuple):
        return [found for inner in part for found in files_of(inner)]
    return []
