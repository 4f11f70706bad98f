"""Whisper small (99 languages) from ONNX files with weights of 8 bits: half the errors of base."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.files.errors import reading
from voxrisk.hearing.faster import WINDOW, most_tokens
from voxrisk.hearing.recognisers import Hear
from voxrisk.hearing.sequences import Decoder, open_session, pieces
from voxrisk.types import require

FRAMES = 3000  # of 10 ms in a window


def open_whisper(folder: Path) -> Hear:
    """From a folder with encoder, decoder, tokenizer and settings."""
    tokenizers: Any = require("tokenizers", extra="utility")
    mel: Any = require("faster_whisper.feature_extractor", extra="utility")
    settings = folder / "generation_config.json"
    with reading(settings, "settings of Whisper"):
        chosen = json.loads(settings.read_text(encoding="utf-8"))
    return functools.partial(
        _hear,
        mel.FeatureExtractor(feature_size=80),
        open_session(folder / "encoder_model_quantized.onnx"),
        Decoder(folder / "decoder_model_merged_quantized.onnx"),
        tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")),
        (chosen["suppress_tokens"], chosen["begin_suppress_tokens"]),
    )


def _hear(
    mel: Any,
    encoder: Any,
    decoder: Decoder,
    tokenizer: Any,
    never: tuple[list[int], list[int]],
    speech: Sequence[NDArray[np.float32]],
    language: str,
) -> list[str]:
    named = ("<|startoftranscript|>", f"<|{language}|>", "<|transcribe|>", "<|notimestamps|>")
    prompt = [tokenizer.token_to_id(name) for name in named]
    end = tokenizer.token_to_id("<|endoftext|>")
    times = list(range(prompt[-1], tokenizer.get_vocab_size()))  # no times are asked for

    def hear(piece: NDArray[np.float32]) -> str:
        whole = np.pad(piece, (0, round(WINDOW * RATE) - len(piece)))
        features = mel(whole, padding=0)[:, :FRAMES]
        (states,) = encoder.run(["last_hidden_state"], {"input_features": features[None]})
        said = decoder.greedy(
            states,
            prompt,
            end=end,
            most=most_tokens(len(piece) / RATE),
            never=[*never[0], *times],
            not_first=never[1],
        )
        return str(tokenizer.decode(said).strip())

    return [" ".join(filter(None, map(hear, pieces(samples, WINDOW)))) for samples in speech]
