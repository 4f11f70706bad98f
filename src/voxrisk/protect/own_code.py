"""The user's own code behind an anonymizer: found, known by what it holds, and never stale.

Finished speech is kept under a key. For the anonymizers of voxrisk the key holds the version; for a
function or a program of the user it holds the code, so that what was edited is run again.
"""

import hashlib
import importlib
import inspect
import itertools
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from voxrisk.types import InputError

SIGNATURE = "{}(samples, *, rate, target, seed)"
LOADED: dict[str, str] = {}  # the user's code as it was when this process loaded it


def own_code(name: str, options: Mapping[str, Any] | None = None) -> str:
    """Hash of the user's code behind an anonymizer: its module, or the files its command names.

    Empty for the anonymizers of voxrisk, whose code goes with the version. What the code imports,
    or a program reads by itself, is not seen.
    """
    if name == "command":
        return _digest(_named_files(shlex.split(str((options or {}).get("run", "")))))
    return _digest(_sources(name, own_function(name))) if ":" in name else ""


def _named_files(words: Sequence[str]) -> list[Path]:
    """The program of a command, and every file or module (``-m``) that it names."""
    named = [Path(place) for word in words[:1] if (place := shutil.which(word))]
    for before, word in itertools.pairwise(words):
        if before == "-m":
            module = Path(*word.split("."))
            named += [module.with_suffix(".py"), module / "__init__.py", module / "__main__.py"]
        named.append(Path(word))
    return named


def _sources(name: str, function: Callable[..., Any]) -> list[Path]:
    """Files of the module that was named, and of the one that the function comes from."""
    modules = dict.fromkeys((name.partition(":")[0], _home(function)))
    files = [getattr(sys.modules.get(module), "__file__", None) for module in modules]
    return [Path(file) for file in files if file]


def _home(function: Callable[..., Any]) -> str:
    return str(getattr(inspect.unwrap(function), "__module__", ""))


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def own_function(name: str) -> Callable[..., Any]:
    """The user's function as its file has it now: who works in a notebook edits and runs again."""
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
        code = _digest(_sources(name, function))
        if LOADED.setdefault(name, code) != code:
            for edited in dict.fromkeys((_home(function), module)):
                importlib.reload(sys.modules[edited])
            function = getattr(sys.modules[module], attribute)
            LOADED[name] = code
    except Exception as error:  # somebody else's code may raise anything
        raise InputError(
            f"cannot import the anonymizer {name} ({type(error).__name__}: {error}); it is given "
            "as package.module:function, and Python must find the package"
        ) from error
    if not callable(function):
        raise InputError(f"{name} is no function; it must be {SIGNATURE.format(attribute)}")
    return cast("Callable[..., Any]", function)
