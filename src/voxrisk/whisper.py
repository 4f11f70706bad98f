"""The encoder of Whisper as a content encoder, in plain torch, with the official parameter names.

Source: A. Radford et al., "Robust speech recognition via large-scale weak supervision", 2022.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.corpus.audio import RATE
from voxrisk.mel import whisper_mel
from voxrisk.types import InputError

FRAMES_PER_SECOND = 50
CHUNK = 30 * RATE  # what the positions of Whisper reach


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        shape = (batch, time, self.heads, width // self.heads)
        parts = [f(x).view(shape).transpose(1, 2) for f in (self.query, self.key, self.value)]
        mixed = functional.scaled_dot_product_attention(*parts)
        attended: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        return attended


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attn = _Attention(width, heads)
        self.attn_ln = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.mlp_ln = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.attn_ln(x))
        out: Tensor = x + self.mlp(self.mlp_ln(x))
        return out


class Encoder(nn.Module):
    """Log mel ``(b, t, 80)`` to the hidden state after ``layer`` blocks ``(b, t / 2, width)``."""

    positional_embedding: Tensor

    def __init__(self, *, width: int, heads: int, layers: int, n_mels: int = 80) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(n_mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("positional_embedding", torch.zeros(1500, width))
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.ln_post = nn.LayerNorm(width)

    def forward(self, mel: Tensor, layer: int | None = None, place: int = 0) -> Tensor:
        """Encode; ``layer`` None is the normalised output of the last block.

        ``place`` is the position that the first frame is told to stand at.
        """
        x = functional.gelu(self.conv1(mel.transpose(1, 2)))
        x = functional.gelu(self.conv2(x)).transpose(1, 2)
        x = x + self.positional_embedding[place : place + x.shape[1]]
        for block in self.blocks[:layer]:
            x = block(x)
        out: Tensor = x if layer is not None else self.ln_post(x)
        return out


def load_encoder(path: Path) -> Encoder:
    """Read the encoder out of an official Whisper checkpoint (``.pt``)."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        dims = checkpoint["dims"]
        encoder = Encoder(
            width=dims["n_audio_state"], heads=dims["n_audio_head"], layers=dims["n_audio_layer"]
        )
        state = checkpoint["model_state_dict"]
        own = {k.removeprefix("encoder."): v.float() for k, v in state.items() if "encoder." in k}
        encoder.load_state_dict(own)
    except (OSError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(f"{path}: not a Whisper checkpoint ({error})") from error
    return encoder.eval()


def encode(
    encoder: Encoder, samples: NDArray[np.float32], *, layer: int | None = None, place: int = 0
) -> NDArray[np.float32]:
    """Features ``(t, width)`` of samples at 16 kHz, a frame each 20 ms.

    Only as many positions as the utterance needs are computed, not always 30 s. Speech may begin at
    a later ``place`` of the 1500, if it ends before the last.
    """
    parts = []
    for start in range(0, max(len(samples), 1), CHUNK):
        piece = samples[start : start + CHUNK]
        piece = np.pad(piece, (0, max(0, 4 * 320 - len(piece))))
        piece = np.pad(piece, (0, -len(piece) % 320))
        with torch.inference_mode():
            parts.append(
                encoder(torch.from_numpy(whisper_mel(piece))[None], layer, place)[0].numpy()
            )
    return np.concatenate(parts)
