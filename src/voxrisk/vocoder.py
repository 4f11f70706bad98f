"""The compiled functions of the WORLD vocoder, without the Python package around them.

The package ``pyworld`` (0.3.5, its newest) does one thing when it is imported: it asks
``pkg_resources`` for its own version. ``setuptools`` 82 no longer has that module, so a fresh
environment could not import it. What is needed is the compiled module beside it.
"""

import functools
import importlib.util
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from voxrisk.types import require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000  # of the samples whose pitch is tracked
PERIOD = 10.0  # milliseconds between frames
LOWEST, HIGHEST = 75.0, 500.0  # hertz


@functools.cache
def pyworld(extra: str) -> Any:
    """The module with ``dio``, ``stonemask``, ``cheaptrick`` and the others.

    Raises:
        MissingExtraError: If it is not installed; the message names the ``extra`` that brings it.
    """
    package = importlib.util.find_spec("pyworld")
    places = package.submodule_search_locations if package else None
    inner = PathFinder.find_spec("pyworld.pyworld", places) if places else None
    if inner is None or inner.loader is None:
        return require("pyworld", extra=extra)
    module = importlib.util.module_from_spec(inner)
    inner.loader.exec_module(module)
    return module


def track_pitch(samples: "NDArray[np.float32]", *, extra: str) -> "NDArray[np.float64]":
    """F0 in hertz at each 10 ms ``(t,)``, 0 where unvoiced; ``samples (n,)`` at 16 kHz.

    WORLD's DIO, refined by StoneMask; 75 to 500 Hz as in the VoicePrivacy challenges. ``extra`` is
    the one that brings WORLD to the caller.
    """
    import numpy as np

    world = pyworld(extra)
    # WORLD reads past the end of anything shorter than about 0.1 s.
    x = np.pad(samples.astype(np.float64), (0, max(0, RATE // 10 - len(samples))))
    coarse, times = world.dio(x, RATE, f0_floor=LOWEST, f0_ceil=HIGHEST, frame_period=PERIOD)
    f0 = world.stonemask(x, coarse, times, RATE)
    return np.where((f0 >= LOWEST) & (f0 <= HIGHEST), f0, 0.0)
