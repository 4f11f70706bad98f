"""Ready speech recognisers: rows of a table, each opened by the module that runs it.

All are greedy and use one thread, so the same audio always gives the same words.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
from numpy.typing import NDArray

from voxrisk.hearing.languages import NAMES, WHISPER, language_code, language_name
from voxrisk.models import MODELS, model_path
from voxrisk.types import InputError

# Samples at 16 kHz of some utterances, their language → what was said in each.
Hear = Callable[[Sequence[NDArray[np.float32]], str], list[str]]


@dataclass(frozen=True, slots=True)
class Recogniser:
    """One ready recogniser.

    Attributes:
        label: Name for people.
        models: Its rows of ``models.toml``.
        opener: ``"module:function"`` inside voxrisk, of the paths of the models: gives a
            :data:`Hear`.
        languages: Codes of what it knows.
        package: What must be installed to run it.
        together: So many utterances are best heard at once.
    """

    label: str
    models: tuple[str, ...]
    opener: str
    languages: frozenset[str]
    package: str = "faster-whisper"
    together: int = 1

    @property
    def digest(self) -> str:
        """Hash of its weights."""
        return " ".join(f.sha256 for m in self.models for f in MODELS[m].files if _weights(f.name))


def _weights(name: str) -> bool:
    return not name.endswith((".json", ".txt"))


ENGLISH = frozenset({"en"})
_CT2 = "hearing.faster:open_whisper"
RECOGNISERS = {
    "whisper-tiny.en": Recogniser("Whisper tiny.en", ("whisper-tiny.en-ct2",), _CT2, ENGLISH),
    "moonshine-base": Recogniser(
        "Moonshine base",
        ("moonshine-base", "moonshine-base-decoder"),
        "hearing.moonshine:open_moonshine",
        ENGLISH,
        package="onnxruntime",
        together=16,
    ),
    "whisper-base": Recogniser("Whisper base", ("whisper-base-ct2",), _CT2, WHISPER),
    "whisper-small": Recogniser(
        "Whisper small", ("whisper-small-onnx",), "hearing.small:open_whisper", WHISPER
    ),
}
OWN = "recogniser of the user"


def check_recogniser(asr: str) -> None:
    """Refuse what is neither a ready recogniser nor a folder with one."""
    if asr not in RECOGNISERS and not (Path(asr) / "model.bin").is_file():
        raise InputError(
            f"no recogniser {asr!r}; known are {', '.join(RECOGNISERS)}, "
            "or give a folder with a CTranslate2 Whisper (model.bin, config.json, tokenizer.json)"
        )


def shown_recogniser(asr: str) -> str:
    """What a recogniser is called in a file that is shared: the name of ours, else its role."""
    return RECOGNISERS[asr].label if asr in RECOGNISERS else OWN


def knows(asr: str, language: str) -> bool:
    """Whether a recogniser was trained on a language; of the user's own folder, Whisper's are."""
    known = RECOGNISERS[asr].languages if asr in RECOGNISERS else frozenset(NAMES)
    return language_code(language) in known


def check_language(asr: str, language: str) -> str:
    """The code of a language, e.g. ``"de"`` of ``"de-AT"``.

    Raises:
        InputError: If the recogniser does not know it.
    """
    check_recogniser(asr)
    code = language_code(language)
    if knows(asr, code):
        return code
    spoken = f"{language_name(code)}" if code in NAMES else f"{language!r}"
    others = [name for name, row in RECOGNISERS.items() if code in row.languages]
    if not others:
        raise InputError(f"no speech recogniser here knows the language {spoken}")
    only = "knows English only" if RECOGNISERS[asr].languages == ENGLISH else "does not know it"
    raise InputError(
        f"the speech is {spoken}, and the recogniser {asr} {only}; take --asr {' or '.join(others)}"
    )


def recogniser_digest(asr: str) -> str:
    """Hash of the weights of a recogniser: what is heard depends on nothing else of it."""
    check_recogniser(asr)
    if asr in RECOGNISERS:
        return RECOGNISERS[asr].digest
    with (Path(asr) / "model.bin").open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def recogniser_paths(asr: str) -> tuple[str, ...]:
    """Where a recogniser lies; fetched on first use."""
    check_recogniser(asr)
    if asr in RECOGNISERS:
        return tuple(str(model_path(name)) for name in RECOGNISERS[asr].models)
    return (asr,)


@functools.lru_cache(maxsize=2)
def open_recogniser(asr: str, paths: tuple[str, ...]) -> Hear:
    """A recogniser that is ready to hear; opened once in a process."""
    opener = RECOGNISERS[asr].opener if asr in RECOGNISERS else _CT2
    opened: Hear = resolve_name(f"voxrisk.{opener}")(*map(Path, paths))
    return opened
