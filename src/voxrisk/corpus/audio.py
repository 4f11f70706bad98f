"""Audio in and out through libsndfile: WAV, FLAC, Ogg Opus, MP3, at any rate."""

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic, naming_a_full_disk
from voxrisk.types import InputError, require

RATE = 16_000  # samples a second: what every part works at, unless it says otherwise
# Kaldi segments and rounded durations may reach a little past the end of a recording.
SLACK_SECONDS = 0.1
EMPTY = "holds no samples"
HEARD, HEARD_RATE = ".heard", 16_000  # ending and rate of decoded copies


def read_audio(source: Utterance | Path | str, *, rate: int = RATE) -> NDArray[np.float32]:
    """Read one utterance as mono samples ``(n,)`` at ``rate``, resampled where it must be.

    Channels are averaged; resampling is soxr's high quality. A decoded copy of the utterance gives
    the same samples and leaves the file closed.

    Raises:
        InputError: If the file is missing, unreadable, cut short, empty or not finite; the message
            names it.
    """
    if rate == HEARD_RATE and isinstance(source, Utterance) and source.copy is not None:
        try:
            return read_heard(source.copy.path)
        except (OSError, ValueError, EOFError):
            pass  # the copy is gone or damaged; the recording is not
    samples, native, _ = decode(source)
    return to_mono(samples, native, rate=rate)


def to_mono(samples: NDArray[np.float32], native: int, *, rate: int) -> NDArray[np.float32]:
    """Samples ``(n, channels)`` at the rate ``native`` as mono ``(n,)`` at ``rate``."""
    mono = samples.mean(axis=1)
    if native != rate:
        mono = require("soxr", extra="audio").resample(mono, native, rate, quality="HQ")
    return np.ascontiguousarray(mono, dtype=np.float32)


def decode(source: Utterance | Path | str) -> tuple[NDArray[np.float32], int, float]:
    """Read one utterance as it is stored: samples ``(n, channels)``, their rate, its seconds.

    The file is opened once. Seconds are those of :func:`audio_seconds`.
    """
    soundfile: Any = require("soundfile", extra="audio")
    row = source if isinstance(source, Utterance) else None
    path = row.path if row else Path(source)  # type: ignore[arg-type]
    if not path.is_file():
        raise InputError(f"{path}: no such audio file")
    start, end = (row.start or 0.0, row.end) if row else (0.0, None)
    try:
        with path.open("rb") as file, soundfile.SoundFile(file) as stream:
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
            cut = cut_short(file, kind, missing=min(wanted, total - first) - len(samples))
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        reason = getattr(error, "error_string", error)
        raise InputError(f"{path}: cannot be read as audio ({reason})") from error
    if cut:
        raise InputError(f"{path}: is cut short; copy or download it again")
    if not samples.size:
        raise InputError(f"{path}: {EMPTY}")
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: holds samples that are not finite")
    return samples, native, _seconds(row, total / native)


def _seconds(row: Utterance | None, total: float) -> float:
    """How long an utterance lasts in a recording of ``total`` seconds."""
    return total if row is None else float(min(total, row.end or total) - (row.start or 0.0))


def write_heard(path: Path, samples: NDArray[np.float32]) -> None:
    """Keep samples ``(n,)`` so that :func:`read_heard` gives the same: 16 bits where they do."""
    pcm = to_pcm(samples)
    exact = bool((_as_float(pcm) == samples).all())
    with naming_a_full_disk(path), path.open("wb") as stream:
        np.save(stream, pcm if exact else samples, allow_pickle=False)


def read_heard(path: Path) -> NDArray[np.float32]:
    """The samples ``(n,)`` of a decoded copy, at 16 kHz."""
    kept = np.load(path, allow_pickle=False)
    return _as_float(kept) if kept.dtype == np.int16 else np.asarray(kept, dtype=np.float32)


def to_pcm(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Samples in ±1 as the nearest 16-bit numbers; what is beyond is cut off."""
    return np.asarray(np.clip(np.rint(samples * 32768.0), -32768, 32767), dtype=np.int16)


def _as_float(pcm: NDArray[np.int16]) -> NDArray[np.float32]:
    return pcm.astype(np.float32) / np.float32(32768.0)


def audio_seconds(row: Utterance) -> float:
    """How long an utterance lasts, by the header of its file and not by what a table says."""
    if row.copy is not None:
        return row.copy.seconds
    soundfile: Any = require("soundfile", extra="audio")
    try:
        info = soundfile.info(row.path)
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"{row.path}: cannot be read as audio ({error})") from error
    length = _seconds(row, info.frames / info.samplerate)
    if length <= 0:
        raise InputError(f"{row.path}: utterance {row.utterance} holds no samples")
    return length


def cut_short(file: BinaryIO, kind: str, *, missing: int) -> bool:
    """Whether an open file ends before its own header says.

    libsndfile reads what is left of a cut WAV or Ogg file without a word, so their last bytes are
    looked at here; FLAC and MP3 tell how many samples they should have.
    """
    if kind == "WAV":
        return _wav_is_cut(file)
    if kind == "OGG":
        return _ogg_is_cut(file)
    if kind == "MP3":
        file.seek(0)
        head = file.read(8192)
        # Without this tag the length is only an estimate.
        return missing > 0 and (b"Xing" in head or b"Info" in head)
    return missing > 0


def _wav_is_cut(file: BinaryIO) -> bool:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(4) != b"RIFF":
        return False
    file.seek(12)
    while len(head := file.read(8)) == 8:
        name, length = struct.unpack("<4sI", head)
        if name == b"data":
            # 0 and 0xFFFFFFFF are what a program writes that did not know the length.
            return length not in (0, 0xFFFFFFFF) and file.tell() + length > size
        file.seek(length + length % 2, os.SEEK_CUR)
    return True


def _ogg_is_cut(file: BinaryIO) -> bool:
    """The last Ogg page must be whole and marked as the end of the stream."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 70_000))  # a page is at most 65,307 bytes long
    tail = file.read()
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
