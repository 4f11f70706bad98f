"""Matrix products on one core, where a second thread would only wait or get in the way."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Inside, NumPy and SciPy multiply matrices in the thread that asks for it."""
    limited: AbstractContextManager[Any] = _libraries("scipy.linalg" in sys.modules).limit(
        limits=1, user_api="blas"
    )
    return limited


@cache
def _libraries(with_scipy: bool) -> Any:
    """The libraries that are loaded, SciPy's own among them or not; asking takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def lowest(cost: Callable[[Floats], tuple[float, Floats]], start: Floats, **how: Any) -> Floats:
    """Where ``cost``, which gives its value and its slope, is lowest; ``how`` as SciPy's minimize.

    L-BFGS-B multiplies a few small matrices in each step. A second thread would make that hundreds
    of times slower where the other cores are busy, and could change the last bits of a sum.
    """
    from scipy.optimize import minimize

    with one_blas_thread():
        found: Floats = minimize(cost, start, jac=True, method="L-BFGS-B", **how).x
    return found
