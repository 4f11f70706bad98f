"""Moonshine base (English): the raw waveform in, words out (Jeffries et al., arXiv 2410.15608)."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.files.errors import reading
from voxrisk.hearing.recognisers import Hear
from voxrisk.hearing.sequences import open_session, pieces
from voxrisk.shards import one_thread
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.hearing.moonshine_decoder import MoonshineDecoder

BEGIN, END = 1, 2
LONGEST = 30.0  # seconds of the speech it was trained on
SHORTEST = 0.2
TOKENS = 6.5  # at most in a second, after the authors: more is a repetition without end


def open_moonshine(encoder: Path, decoder: Path) -> Hear:
    """From the encoder's file, and the folder of the decoder and its tokens."""
    from voxrisk.hearing.moonshine_decoder import MoonshineDecoder, read_weights

    file = decoder / "decoder_model_merged.ort"
    with reading(file, "the decoder of Moonshine"):
        weights = read_weights(file)
    return functools.partial(
        _hear,
        open_session(encoder),
        MoonshineDecoder(weights),
        read_tokens(decoder / "tokenizer.bin"),
    )


def _hear(
    encoder: Any,
    decoder: "MoonshineDecoder",
    tokens: list[bytes],
    speech: Sequence[NDArray[np.float32]],
    language: str,
) -> list[str]:
    parts = [pieces(samples, LONGEST) for samples in speech]
    states, most = [], []
    for piece in itertools.chain.from_iterable(parts):
        padded = np.pad(piece, (0, max(round(SHORTEST * RATE) - len(piece), 0)))
        # The encoder knows no padding, so each is encoded alone.
        states.append(encoder.run(None, {"input_values": padded[None].astype(np.float32)})[0][0])
        most.append(int(np.ceil(len(padded) / RATE * TOKENS)))
    with one_thread():
        said = iter(decoder.greedy(states, begin=BEGIN, end=END, most=most))
    heard = [[spell(tokens, next(said)) for _ in part] for part in parts]
    return [" ".join(filter(None, texts)) for texts in heard]


def spell(tokens: list[bytes], said: list[int]) -> str:
    """Tokens as text; SentencePiece writes a space as ``▁``.

    >>> spell([b"<unk>", b"<s>", b"</s>", "▁go".encode(), b"od", b"<0xC3>"], [1, 3, 4])
    'good'
    """
    plain = b"".join(tokens[i] for i in said if i > END)
    return plain.decode("utf-8", "ignore").replace("▁", " ").strip()


def read_tokens(path: Path) -> list[bytes]:
    """The list of tokens: before each its length, in one byte or, from 128 on, in two."""
    with reading(path, "a list of tokens"):
        raw = path.read_bytes()
        tokens, place = [], 0
        while place < len(raw):
            size = raw[place]
            place += 1
            if size >= 128:
                size = raw[place] * 128 + size - 128
                place += 1
            tokens.append(raw[place : place + size])
            place += size
        if place != len(raw):
            raise InputError(f"{path}: the last token is cut short")
    return tokens
