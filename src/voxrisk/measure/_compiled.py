"""One decorator for the loops that must run at the speed of C."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile with numba, once for each machine, releasing the GIL so that threads can share it."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def compiled_in_any_order(function: F) -> F:
    """As :func:`compiled`, for sums whose last bits may depend on the machine."""
    return cast(F, numba.njit(cache=True, nogil=True, fastmath={"reassoc"})(function))
