"""Models of text: who puts slices in order needs them, and who recognises speech.

A room of its own because ``attack`` (which slice follows?) and ``utility`` (which words were said?)
decode with the same model and must not import each other.
"""

from voxrisk.language.model import START, LanguageModel

__all__ = ["START", "LanguageModel"]
