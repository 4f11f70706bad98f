"""Kokoro's voices as a recording that comes with the package: nothing to download, no weights.

``recorded.tar`` holds the sentences of :func:`voxrisk.corpus.demo.make_demo` with the engine
``kokoro``, less the silence around them, as Ogg Opus (16 kHz, 18 kbit/s). It is made by
``python experiments/demo_voices.py``; what Opus changes is in docs/corpora.md. Kokoro-82M, which
spoke them, is under the Apache License 2.0.
"""

import hashlib
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.types import InputError, require

FILE = Path(__file__).with_name("recorded.tar")
SENTENCES = 3  # of a voice in a session; the plan of fewer has other sentences
OPUS = {"format": "OGG", "subtype": "OPUS", "compression_level": 0.95}


def read_all(names: Sequence[str]) -> Iterator[tuple[NDArray[np.float32], int]]:
    """The samples ``(n,)`` and the rate of each utterance, by its name, in order."""
    soundfile: Any = require("soundfile", extra="audio")
    with tarfile.open(FILE) as tar:
        here = {member.name: member for member in tar.getmembers()}
        for name in names:
            member = here.get(f"{name}.opus")
            stream = tar.extractfile(member) if member else None
            if stream is None:
                raise InputError(
                    f"the recorded voices hold no {name}: they say {SENTENCES} sentences in each "
                    "session; others are made by --engine kokoro"
                )
            samples, rate = soundfile.read(io.BytesIO(stream.read()), dtype="float32")
            yield samples, rate


def write_all(said: Sequence[tuple[str, NDArray[np.float32], int]], file: Path) -> None:
    """Make the file: utterances (name, samples, rate) as Opus, in the order of their names."""
    soundfile: Any = require("soundfile", extra="audio")
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, samples, rate in sorted(said, key=lambda one: one[0]):
            packed = io.BytesIO()
            soundfile.write(packed, samples, rate, **OPUS)
            member = tarfile.TarInfo(f"{name}.opus")  # no owner and no time of day
            member.size = packed.tell()
            packed.seek(0)
            tar.addfile(member, packed)


def version() -> str:
    """What the samples depend on."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()[:8]
