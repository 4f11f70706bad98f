"""What a recogniser hears: frames of a ready encoder, or filter banks.

A slice is encoded as a slice, never cut out of the frames of its utterance. The encoder's attention
reaches over all it is given: frames of the whole utterance would carry to each slice what was said
before and after it, which nobody who receives slices can know.

Whisper adds to its frames where they stand in the utterance. A recogniser that learned from slices
would know the first places only and be lost in the middle of an utterance, for a reason that has
nothing to do with slices. So training speech, sliced or whole, begins at a place drawn at random.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.journal import hash_of
from voxrisk.models import MODELS, model_path
from voxrisk.shards import one_thread
from voxrisk.types import InputError, require

Samples = NDArray[np.float32]
Frames = NDArray[np.float16]
ENCODER = "whisper-tiny.en"
PLACES = 1500  # that Whisper knows, one each 20 ms


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of frames.

    Attributes:
        rate: Frames a second.
        dimension: Numbers in a frame.
        identity: Hash or version of what makes them.
        make: From samples at 16 kHz and a number in [0, 1), where in the encoder they begin.
        languages: Those it is made for; none: any.
    """

    rate: int
    dimension: int
    identity: str
    make: Callable[[Samples, float], Frames]
    languages: tuple[str, ...] = ()


def _whisper(samples: Samples, place: float) -> Frames:
    from voxrisk.whisper import encode

    needed = -(-len(samples) // (RATE // 50))
    begin = int(place * max(1, PLACES - needed + 1)) if needed <= PLACES else 0
    with one_thread():
        return encode(_encoder(), samples, place=begin).astype(np.float16)


def _banks(samples: Samples, _: float) -> Frames:
    from voxrisk.mel import whisper_mel

    return whisper_mel(np.pad(samples, (0, max(0, RATE // 50 - len(samples))))).astype(np.float16)


@functools.lru_cache(maxsize=1)
def _encoder() -> Any:
    require("torch", extra="attack")
    from voxrisk.whisper import load_encoder

    return load_encoder(model_path(ENCODER))


KINDS: Mapping[str, Kind] = {
    "whisper": Kind(50, 384, MODELS[ENCODER].files[0].sha256, _whisper, ("en",)),
    "fbank": Kind(100, 80, "80 log mel bands 1", _banks),
}


def kind_of(name: str) -> Kind:
    """One kind of frames by its name."""
    if name not in KINDS:
        raise InputError(f"no frames {name!r}; known are {', '.join(KINDS)}")
    return KINDS[name]


def encode_rows(
    rows: Sequence[Utterance], kind: str, *, scatter: int | None = None
) -> Iterator[Frames]:
    """Frames ``(t, d)`` of each utterance or slice.

    ``scatter`` is the seed of the places at which they begin, by id; None: at the first.
    """
    make = kind_of(kind).make
    for row in rows:
        place = 0.0
        if scatter is not None:
            place = int(hash_of(scatter, row.utterance)[:8], 16) / 2**32
        yield make(samples_of(row), place)


def samples_of(row: Utterance) -> Samples:
    """The samples of an utterance at 16 kHz; of the slices of one recording, it is read once."""
    if row.start is None and row.end is None:
        return read_audio(row)
    whole = _recording(row.path)
    end = len(whole) if row.end is None else round(row.end * RATE)
    return whole[round((row.start or 0.0) * RATE) : end]


@functools.lru_cache(maxsize=1)
def _recording(path: Path) -> Samples:
    return read_audio(path)


def write_frames(path: Path, frames: Iterable[Frames]) -> None:
    """Write frames one after another into ``path``, and how many each piece has beside it."""
    lengths = []
    with path.open("wb") as stream:
        for part in frames:
            stream.write(np.ascontiguousarray(part, np.float16).tobytes())
            lengths.append(len(part))
    np.save(_lengths(path), np.array(lengths, np.int64))


def read_frames(path: Path, kind: str) -> list[Frames]:
    """What :func:`write_frames` wrote, as views of one file that is not read into memory."""
    dimension = kind_of(kind).dimension
    lengths = np.load(_lengths(path), allow_pickle=False)
    whole = np.memmap(path, np.float16, "r", shape=(int(lengths.sum()), dimension))
    return np.split(whole, np.cumsum(lengths)[:-1])


def has_frames(path: Path) -> bool:
    """Whether all frames were written: their lengths come last."""
    return path.is_file() and _lengths(path).is_file()


def remove_frames(path: Path) -> None:
    """Remove both files."""
    _lengths(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _lengths(path: Path) -> Path:
    return path.with_suffix(".lengths.npy")
