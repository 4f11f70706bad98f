"""What may stand in a shared file: words that voxrisk knows, and numbers.

A user names speakers, files, columns, programs and options, and any of these names may name a
person or a place. So nothing of it is copied into what is shared. What a reader needs to know of it
(which anonymizer, with which options, which language) is shown where it is one of the words that
voxrisk knows, or has a form in which nobody is named; else it is called by its role.
"""

import re
from collections.abc import Mapping
from typing import Any

GIVEN = "given audio"
FUNCTION = "function of the user"
COMMAND = "COMMAND {input} {output}"
PLACES = ("encoder", "vocoder", "run")  # options that are files or programs of the user
WORD = re.compile(r"[a-z][a-z0-9-]{0,11}")
FORMS = {
    "gender": re.compile(r"[fm]"),
    "age": re.compile(r"[0-9]{1,3}( ?[-–] ?[0-9]{1,3})?|[a-z]+ties|[a-z]*teens", re.IGNORECASE),
    "language": re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,4}){0,2}"),
}


def shown_tool(name: str) -> str:
    """What an anonymizer may be called.

    >>> shown_tool("mcadams"), shown_tool("anna_meier.secret:protect"), shown_tool("anna's")
    ('mcadams', 'function of the user', 'given audio')
    """
    if _is_ours(name):
        return name
    return FUNCTION if ":" in name else GIVEN


def shown_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an anonymizer of ours without the files among them; none of another's.

    >>> shown_options("knn", {"part": "wavlm", "k": 4, "encoder": "/home/anna/WavLM.pt"})
    {'part': 'wavlm', 'k': 4, 'encoder': 'ENCODER'}
    """
    if not _is_ours(name) or name == "command":
        return {}
    return {
        key: key.upper() if key in PLACES or not _plain(value) else value
        for key, value in options.items()
    }


def _is_ours(name: str) -> bool:
    # Here and not above: `measure` shares results too, and knows no anonymizer.
    from voxrisk.protect.anonymizers import ANONYMIZERS

    return name in ANONYMIZERS


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float) or bool(WORD.fullmatch(str(value)))


def shown_choice(name: str) -> str:
    """An anonymizer as it was asked for: a program or a function of the user by its role."""
    if "{input}" in name:
        return COMMAND
    return name if _is_ours(name) else "PACKAGE:FUNCTION"


def shown_maker(text: str | None) -> str | None:
    """What made synthetic voices, where voxrisk made them."""
    from voxrisk.corpus.demo import ENGINES

    return text if not text or text in {e.synthetic for e in ENGINES.values()} else "a program"


def is_shown(group: str, value: str) -> bool:
    """Whether a kind of speakers has a form in which nobody is named.

    >>> is_shown("language", "de-AT"), is_shown("age", "20-29"), is_shown("age", "Anna's age")
    (True, True, False)
    """
    return group in FORMS and bool(FORMS[group].fullmatch(value))


# What voxrisk itself quotes: a package that is missing, and the extra that brings it.
OURS = re.compile(r"(the package '[A-Za-z0-9_.-]+', which the light core|'voxrisk\[[a-z,]+\]')")


def shown_reason(text: str) -> str:
    """Why a figure is missing, without what is quoted from the user's own tables.

    >>> shown_reason("no gender 'Anna'; needs pip install 'voxrisk[utility]'")
    "no gender '…'; needs pip install 'voxrisk[utility]'"
    """

    def hidden(part: str) -> str:
        return re.sub(
            r"'([^']*)'", lambda m: m[0] if FORMS["language"].fullmatch(m[1]) else "'…'", part
        )

    return "".join(p if OURS.fullmatch(p) else hidden(p) for p in OURS.split(text))
