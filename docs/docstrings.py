"""An extension of griffe: docstrings as Python reads them become Markdown for the API page.

Doctests get a frame of their own, and cross-references of Sphinx lose their role.
"""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|meth|mod|data):`~?([^`]+)`")
DOCTEST = re.compile(r"(?m)^>>> .*(?:\n(?!\s*$).*)*")


class PlainDocstrings(griffe.Extension):
    """Rewrite each docstring before it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = DOCTEST.sub(lambda m: f"```pycon\n{m[0]}\n```", text)
