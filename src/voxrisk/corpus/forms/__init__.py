"""The forms a corpus can have on disk: one file for each, its docstring is the dataset card.

A form is a module with two functions: ``recognise(path)`` says whether a folder or file looks like
it (cheaply), ``read(path)`` yields its utterances and where each was found.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

from voxrisk.corpus.forms import (
    common_voice,
    folder,
    kaldi,
    lhotse,
    librispeech,
    libritts,
    manifest,
    parquet,
    tars,
    vctk,
    voiceprivacy,
)
from voxrisk.corpus.table import Located
from voxrisk.types import InputError


class Form(Protocol):
    """What each module of this folder offers."""

    __name__: str

    def recognise(self, path: Path) -> bool:
        """Whether ``path`` has this form."""

    def read(self, path: Path) -> Iterator[Located]:
        """The utterances and where each was found."""


# The order matters where one form contains another: the more particular one comes first.
FORMS = tuple(
    cast(Form, module)
    for module in (
        common_voice,
        manifest,
        parquet,
        voiceprivacy,
        kaldi,
        lhotse,
        tars,
        vctk,
        libritts,
        librispeech,
        folder,
    )
)


def recognise(path: Path) -> Form:
    """The form of the corpus at ``path``."""
    for form in FORMS:
        if form.recognise(path):
            return form
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(f"{path}: the folder is empty; give a folder of audio or a manifest.csv")
    raise InputError(
        f"{path}: not a corpus; known are a folder with one sub-folder of audio for each speaker, "
        "a manifest (CSV, TSV or Parquet with the columns utterance, path, speaker), a Kaldi or "
        "VoicePrivacy data directory, LibriSpeech, LibriTTS, VCTK, Common Voice, lhotse manifests, "
        "tars of WebDataset or lhotse Shar"
    )
