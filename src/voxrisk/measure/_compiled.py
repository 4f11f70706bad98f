"""One decorator for the loops that must run at the speed of C, and where their code is kept."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

F = TypeVar("F", bound=Callable[..., object])
# Versions of numba whose kept code was tried without what only its compiler needs.
TRIED = ("0.68.",)


class OwnFiles(IndexDataCacheFile):
    """A file for each key, under a name that belongs to this key alone.

    Numba numbers the files of a function, and keeps the numbers in an index. Processes that compile
    at the same time, each with types of its own, take the same number for both: then one is given
    the loop of the other, and reads every second score as if it were the next.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the code, and nothing that was compiled from other sources."""
        name = self._name(key)
        self._save_data(name, data)
        sources, _, _ = name.rpartition("-")
        function, _, _ = self._data_name_pattern.partition("{number:d}")
        with os.scandir(self._cache_path) as folder:
            kept = [file for file in folder if file.name.startswith(function)]
        for file in kept:
            if file.name.endswith(".nbc") and not file.name.startswith(sources):
                with suppress(OSError):  # another process was quicker
                    os.unlink(file)  # noqa: PTH108

    def load(self, key: Any) -> Any:
        """The code, or None."""
        try:
            return self._load_data(self._name(key))
        except OSError:
            return None

    def _name(self, key: Any) -> str:
        made_of = f"{all_loops()} {self._source_stamp} {self._version}"
        sources = sha256(made_of.encode()).hexdigest()[:16]
        types = sha256(repr(key).encode()).hexdigest()[:16]
        return self._data_name_pattern.replace("{number:d}", f"{sources}-{types}")


class KeptCode(FunctionCache):
    """Compiled code on disk, as numba keeps it, with three differences.

    Numba asks whether the file of a function has changed, not whether those of the functions inside
    it have: after an update, figures could come from loops of the version before. Here all files
    with loops are part of the key.

    And numba loads all it could ever compile before it looks whether there is something to compile:
    a quarter of a second. What is not on disk is compiled as ever, and then that is loaded.

    The third: :class:`OwnFiles`.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        if numba.__version__.startswith(TRIED):
            base = self._impl.filename_base
            stamp = self._impl.locator.get_source_stamp()
            self._cache_file = OwnFiles(self._cache_path, base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code for these types, or None."""
        if not numba.__version__.startswith(TRIED):
            found = super().load_overload(sig, target_context)
            own = found is None or tuple(found.signature.args) == tuple(sig)
            return found if own else None  # see OwnFiles
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), all_loops())


@cache
def all_loops() -> str:
    """A digest of every file of this room that has a compiled function."""
    room = sorted(files(__package__ or "").iterdir(), key=lambda file: file.name)
    texts = [file.read_bytes() for file in room if file.name.endswith(".py")]
    return sha256(b"\0".join(text for text in texts if b"\n@compiled" in text)).hexdigest()


def compiled(function: F) -> F:
    """Compile with numba, once for each machine, releasing the GIL so that threads can share it."""
    return _kept(numba.njit(nogil=True), function)


def compiled_in_any_order(function: F) -> F:
    """As :func:`compiled`, for sums whose last bits may depend on the machine."""
    return _kept(numba.njit(nogil=True, fastmath={"reassoc"}), function)


def _kept(compiler: Callable[[F], Any], function: F) -> F:
    dispatcher = compiler(function)
    dispatcher._cache = KeptCode(function)
    return cast(F, dispatcher)
