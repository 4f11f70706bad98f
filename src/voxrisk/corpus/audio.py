"""Audio in and out through libsndfile: WAV, FLAC, Ogg Opus, MP3, at any rate."""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.containers import FORMATS, cut_short
from voxrisk.corpus.table import Utterance
from voxrisk.files.atomic import atomic
from voxrisk.files.errors import reading, writing
from voxrisk.files.places import on_disk, open_place, place_exists
from voxrisk.types import InputError, require

RATE = 16_000  # samples a second: what every part works at, unless it says otherwise
# Kaldi segments and rounded durations may reach a little past the end of a recording.
SLACK_SECONDS = 0.1
EMPTY = "holds no samples"
RATES = (4_000, 384_000)  # samples a second of a recording
MOST_CHANNELS = 64
MOST_SAMPLES = 2**28  # of one utterance, all channels together: 4.6 hours of mono at 16 kHz
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
    if not place_exists(path):
        raise InputError(f"{path}: no such audio file")
    start, end = (row.start or 0.0, row.end) if row else (0.0, None)
    with (
        reading(path, "audio"),
        open_place(path) as file,
        soundfile.SoundFile(_by_number(path, file), closefd=False) as stream,
    ):
        native, total, kind = int(stream.samplerate), int(stream.frames), stream.format
        _refuse_header(path, native, int(stream.channels), kind)
        first = round(start * native)
        wanted = total - first if end is None else round((end - start) * native)
        if wanted < 0 or first + wanted > total + SLACK_SECONDS * native:
            raise InputError(
                f"{path}: lasts {total / native:.3f} s, but {row.utterance if row else 'it'!r} "
                f"is said to lie at {start:.3f}–{end if end is not None else start:.3f} s"
            )
        if wanted * stream.channels > MOST_SAMPLES:
            raise InputError(
                f"{path}: {wanted / native / 3600:.1f} hours of {stream.channels} channels in one "
                f"utterance, by its header; cut it into segments"
            )
        stream.seek(first)
        samples = stream.read(wanted, dtype="float32", always_2d=True)
        if cut_short(file, kind, missing=min(wanted, total - first) - len(samples)):
            raise InputError(f"{path}: is cut short; copy or download it again")
    if not samples.size:
        raise InputError(f"{path}: {EMPTY}")
    if not np.isfinite(samples).all():
        raise InputError(f"{path}: holds samples that are not finite")
    return samples, native, _seconds(row, total / native)


def _by_number(path: Path, file: BinaryIO) -> Any:
    """A file by its number: libsndfile reads it by itself, and no interrupt is lost in a callback.

    What has none, from inside a tar or from elsewhere, is in memory already.
    """
    return file.fileno() if on_disk(path) else file


def _refuse_header(path: Path, rate: int, channels: int, kind: str) -> None:
    """Refuse what no recording of speech has, before anything is computed from it."""
    if kind not in FORMATS:
        raise InputError(f"{path}: is of the format {kind}; convert it to WAV or FLAC")
    if not RATES[0] <= rate <= RATES[1] or not 1 <= channels <= MOST_CHANNELS:
        raise InputError(
            f"{path}: its header says {rate} Hz and {channels} channels; speech has "
            f"{RATES[0]:,} to {RATES[1]:,} Hz and at most {MOST_CHANNELS} channels"
        )


def _seconds(row: Utterance | None, total: float) -> float:
    """How long an utterance lasts in a recording of ``total`` seconds."""
    return total if row is None else float(min(total, row.end or total) - (row.start or 0.0))


def write_heard(path: Path, samples: NDArray[np.float32]) -> None:
    """Keep samples ``(n,)`` so that :func:`read_heard` gives the same: 16 bits where they do."""
    pcm = to_pcm(samples)
    exact = bool((_as_float(pcm) == samples).all())
    with writing(path), path.open("wb") as stream:
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
    with reading(row.path, "audio"):
        with open_place(row.path) as file:
            info = soundfile.info(row.path if on_disk(row.path) else file)
        _refuse_header(row.path, int(info.samplerate), int(info.channels), info.format)
    length = _seconds(row, info.frames / info.samplerate)
    if length <= 0:
        raise InputError(f"{row.path}: utterance {row.utterance} holds no samples")
    return length


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
