"""Audio in and out through libsndfile: WAV, FLAC, Ogg Opus, MP3, at any rate."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.types import InputError, require

RATE = 16_000  # samples a second: what every part works at, unless it says otherwise
# Kaldi segments and rounded durations may reach a little past the end of a recording.
SLACK_SECONDS = 0.1
EMPTY = "holds no samples"


def read_audio(source: Utterance | Path | str, *, rate: int = RATE) -> NDArray[np.float32]:
    """Read one utterance as mono samples ``(n,)`` at ``rate``, resampled where it must be.

    Channels are averaged; resampling is soxr's high quality.

    Raises:
        InputError: If the file is missing, unreadable, cut short, empty or not finite; the message
            names it.
    """
    samples, native = read_native(source)
    mono = samples.mean(axis=1)
    if native != rate:
        mono = require("soxr", extra="audio").resample(mono, native, rate, quality="HQ")
    return np.ascontiguousarray(mono, dtype=np.float32)


def read_native(source: Utterance | Path | str) -> tuple[NDArray[np.float32], int]:
    """Read one utterance as it is stored: samples ``(n, channels)`` and the sample rate."""
    soundfile: Any = require("soundfile", extra="audio")
    row = source if isinstance(source, Utterance) else None
    path = row.path if row else Path(source)  # type: ignore[arg-type]
    if not path.is_file():
        raise InputError(f"{path}: no such audio file")
    start, end = (row.start or 0.0, row.end) if row else (0.0, None)
    try:
        with soundfile.SoundFile(path) as stream:
            native, total, kind = int(stream.samplerate), int(stream.frames), stream.format
            first = round(start * native)
            wanted = total - first if end is None else round((end - start) * native)
            if wanted < 0 or first + wanted > total + SLACK_SECONDS * native:
                raise InputError(
                    f"{path}: lasts {total / native:.3f} s, but {row.utterance if row else 'it'!r} "
                    f"is said to lie at {start:.3f}–{end if end is not None else start:.3f} s"
                )
            stream.seek(first)
            samples = stream.read(wanted, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"{path}: cannot be read as audio ({error})") from error
    if cut_short(path, kind, missing=min(wanted, total - first) - len(samples)):
        raise InputError(f"{path}: is cut short; copy or download it again")
    if not samples.size:
        raise InputError(f"{path}: {EMPTY}")
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: holds samples that are not finite")
    return samples, native


def audio_seconds(row: Utterance) -> float:
    """How long an utterance lasts, by the header of its file and not by what a table says."""
    soundfile: Any = require("soundfile", extra="audio")
    try:
        info = soundfile.info(row.path)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"{row.path}: cannot be read as audio ({error})") from error
    total = info.frames / info.samplerate
    length = float(min(total, row.end or total) - (row.start or 0.0))
    if length <= 0:
        raise InputError(f"{row.path}: utterance {row.utterance} holds no samples")
    return length


def cut_short(path: Path, kind: str, *, missing: int) -> bool:
    """Whether a file ends before its own header says.

    libsndfile reads what is left of a cut WAV or Ogg file without a word, so their last bytes are
    looked at here; FLAC and MP3 tell how many samples they should have.
    """
    if kind == "WAV":
        return _wav_is_cut(path)
    if kind == "OGG":
        return _ogg_is_cut(path)
    if kind == "MP3":
        with path.open("rb") as stream:
            head = stream.read(8192)
        # Without this tag the length is only an estimate.
        return missing > 0 and (b"Xing" in head or b"Info" in head)
    return missing > 0


def _wav_is_cut(path: Path) -> bool:
    size = path.stat().st_size
    with path.open("rb") as stream:
        if stream.read(4) != b"RIFF":
            return False
        stream.seek(12)
        while len(head := stream.read(8)) == 8:
            name, length = struct.unpack("<4sI", head)
            if name == b"data":
                # 0 and 0xFFFFFFFF are what a program writes that did not know the length.
                return length not in (0, 0xFFFFFFFF) and stream.tell() + length > size
            stream.seek(length + length % 2, 1)
    return True


def _ogg_is_cut(path: Path) -> bool:
    """The last Ogg page must be whole and marked as the end of the stream."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - 70_000))  # a page is at most 65,307 bytes long
        tail = stream.read()
    at = tail.rfind(b"OggS")
    if at < 0 or len(tail) < at + 27:
        return True
    segments = tail[at + 27 : at + 27 + tail[at + 26]]
    whole = len(tail) >= at + 27 + tail[at + 26] + sum(segments)
    return not (whole and tail[at + 5] & 4)


def write_audio(
    path: Path | str, samples: NDArray[np.float32], *, rate: int, sync: bool = True
) -> None:
    """Write mono samples ``(n,)`` as 16-bit FLAC or WAV (by the ending), whole or not at all.

    ``sync`` waits for the disk, see :func:`voxrisk.files.atomic.atomic`.
    """
    soundfile: Any = require("soundfile", extra="audio")
    path = Path(path)
    if path.suffix.lower() not in (".flac", ".wav"):
        raise InputError(f"{path}: audio is written as .flac or .wav")
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: refusing to write samples that are not finite")
    with atomic(path, sync=sync) as part:
        soundfile.write(part, samples, rate, subtype="PCM_16")
