"""Where a smooth function of few numbers is lowest: SciPy's L-BFGS-B, on one core."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def lowest(cost: Callable[[Floats], tuple[float, Floats]], start: Floats, **how: Any) -> Floats:
    """Where ``cost``, which gives its value and its slope, is lowest; ``how`` as SciPy's minimize.

    Each step multiplies a few small matrices. A second thread would make them hundreds of times
    slower where the other cores are busy, and could change the last bits of a sum.
    """
    from scipy.optimize import minimize

    with _libraries().limit(limits=1, user_api="blas"):
        found: Floats = minimize(cost, start, jac=True, method="L-BFGS-B", **how).x
    return found


@cache
def _libraries() -> Any:
    """The libraries of matrix products that are loaded; asking takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
