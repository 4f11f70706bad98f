"""Ready speech recognisers: what was said, and when. For every room that needs words."""

from voxrisk.hearing.languages import UNSPACED, language_code, language_name
from voxrisk.hearing.recognisers import (
    RECOGNISERS,
    check_language,
    check_recogniser,
    knows,
    open_recogniser,
    recogniser_digest,
    recogniser_paths,
    shown_recogniser,
)

__all__ = [
    "RECOGNISERS",
    "UNSPACED",
    "check_language",
    "check_recogniser",
    "knows",
    "language_code",
    "language_name",
    "open_recogniser",
    "recogniser_digest",
    "recogniser_paths",
    "shown_recogniser",
]
