"""Moonshine base (English): the raw waveform in, words out (Jeffries et al., arXiv 2410.15608)."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.files.errors import reading
from voxrisk.hearing.recognisers import Hear
from voxrisk.hearing.sequences import Decoder, open_session, pieces
from voxrisk.types import InputError

BEGIN, END = 1, 2
LONGEST = 30.0  # seconds of the speech it was trained on
SHORTEST = 0.2
TOKENS = 6.5  # at most in a second, after the authors: more is a repetition without end


def open_moonshine(encoder: Path, decoder: Path) -> Hear:
    """From the encoder's file, and the folder of the decoder and its tokens."""
    return functools.partial(
        _hear,
        open_session(encoder),
        Decoder(decoder / "decoder_model_merged.ort"),
        read_tokens(decoder / "tokenizer.bin"),
    )


def _hear(
    encoder: Any,
    decoder: Decoder,
    tokens: list[bytes],
    samples: NDArray[np.float32],
    language: str,
) -> str:
    heard = []
    for piece in pieces(samples, LONGEST):
        padded = np.pad(piece, (0, max(round(SHORTEST * RATE) - len(piece), 0)))
        (states,) = encoder.run(None, {"input_values": padded[None].astype(np.float32)})
        most = int(np.ceil(len(padded) / RATE * TOKENS))
        said = decoder.greedy(states, [BEGIN], end=END, most=most)
        heard.append(spell(tokens, said))
    return " ".join(filter(None, heard))


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
