"""The compiled functions of the WORLD vocoder, without the Python package around them.

The package ``pyworld`` (0.3.5, its newest) does one thing when it is imported: it asks
``pkg_resources`` for its own version. ``setuptools`` 82 no longer has that module, so a fresh
environment could not import it. What is needed is the compiled module beside it.
"""

import functools
import importlib.util
from importlib.machinery import PathFinder
from typing import Any

from voxrisk.types import require


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
