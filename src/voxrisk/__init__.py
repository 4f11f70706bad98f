"""Voxrisk: how well can a speaker still be recognised after anonymization, and what is left to use?

The rooms follow the data: corpus → protect → attack → measure → report. Each is imported when it is
first touched, so ``import voxrisk`` costs nothing.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

ROOMS = ("attack", "corpus", "files", "measure", "protect", "report", "types", "utility")
__all__ = ["__version__"]


def __getattr__(name: str) -> ModuleType:
    if name in ROOMS:
        try:
            return importlib.import_module(f"voxrisk.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"voxrisk.{name}":
                raise
    raise AttributeError(f"module 'voxrisk' has no attribute {name!r}")
