"""Audio in and out through libsndfile: WAV, FLAC, Ogg Opus, MP3, at any rate."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.types import InputError, require


def read_audio(source: Utterance | Path | str, *, rate: int = 16_000) -> NDArray[np.float32]:
    """Read one utterance as mono samples ``(n,)`` at ``rate``, resampled where it must be.

    Raises:
        InputError: If the file is missing, unreadable, empty or not finite; the message names it.
    """
    soundfile: Any = require("soundfile", extra="audio")
    row = source if isinstance(source, Utterance) else None
    path = row.path if row else Path(source)  # type: ignore[arg-type]
    try:
        with soundfile.SoundFile(path) as stream:
            native = int(stream.samplerate)
            if row and row.start is not None:
                stream.seek(round(row.start * native))
            frames = -1
            if row and row.end is not None:
                frames = round((row.end - (row.start or 0.0)) * native)
            samples = stream.read(frames, dtype="float32", always_2d=True).mean(axis=1)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"{path}: cannot be read as audio ({error})") from error
    if not samples.size:
        raise InputError(f"{path}: holds no samples")
    if native != rate:
        samples = require("soxr", extra="audio").resample(samples, native, rate)
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: holds samples that are not finite")
    return np.ascontiguousarray(samples, dtype=np.float32)


def write_audio(path: Path | str, samples: NDArray[np.float32], *, rate: int) -> None:
    """Write mono samples ``(n,)`` as 16-bit FLAC or WAV (by the ending), whole or not at all."""
    soundfile: Any = require("soundfile", extra="audio")
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: refusing to write samples that are not finite")
    with atomic(path) as part:
        soundfile.write(part, samples, rate, subtype="PCM_16")
