"""Small language models of the Llama kind (SmolLM2), read from GGUF and run in plain torch.

RMS normalisation, rotary positions on neighbouring pairs (as GGUF stores the heads), grouped keys
and values, a gated SiLU layer, and an output that shares the input's embedding. Everything is
computed in single precision from the quantised weights.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.files.gguf import Gguf, read_gguf
from voxrisk.models import model_path
from voxrisk.types import InputError, require

if TYPE_CHECKING:
    import torch

BEGIN = 0  # <|endoftext|> stands between two texts, so before the first one too
Past = list[tuple["torch.Tensor", "torch.Tensor"]]


class Llama:
    """A language model over pieces of words.

    Attributes:
        vocabulary: How many pieces there are.
    """

    def __init__(self, content: Gguf, *, threads: int | None = None) -> None:
        torch: Any = require("torch", extra="language")
        if threads:
            torch.set_num_threads(threads)
        facts = content.facts
        if facts.get("general.architecture") != "llama":
            raise InputError(f"the model is of kind {facts.get('general.architecture')!r}")
        self.layers = int(facts["llama.block_count"])
        self.heads = int(facts["llama.attention.head_count"])
        self.groups = int(facts["llama.attention.head_count_kv"])
        self.epsilon = float(facts["llama.attention.layer_norm_rms_epsilon"])
        self.base = float(facts.get("llama.rope.freq_base", 10_000.0))
        self.weights = {name: torch.from_numpy(value) for name, value in content.tensors.items()}
        self.vocabulary, self.width = self.weights["token_embd.weight"].shape
        self.output = self.weights.get("output.weight", self.weights["token_embd.weight"])

    def __call__(
        self, pieces: "torch.Tensor", past: Past | None = None
    ) -> tuple["torch.Tensor", Past]:
        """Hidden states ``(b, t, width)`` of pieces ``(b, t)`` that follow the past, and all past.

        A piece sees itself and what stands before it, so padding at the end changes nothing.
        """
        import torch

        w = self.weights
        x = w["token_embd.weight"][pieces]
        before = past[0][0].shape[2] if past else 0
        turn = self._rotation(before, pieces.shape[1])
        seen = torch.ones(pieces.shape[1], before + pieces.shape[1], dtype=torch.bool)
        seen = seen.tril(diagonal=before)
        now: Past = []
        for n in range(self.layers):
            layer = {k: w[f"blk.{n}.{k}.weight"] for k in _LAYER}
            h = self._normed(x, layer["attn_norm"])
            q = self._turned(self._split(h @ layer["attn_q"].T, self.heads), turn)
            k = self._turned(self._split(h @ layer["attn_k"].T, self.groups), turn)
            v = self._split(h @ layer["attn_v"].T, self.groups)
            if past:
                old = [p.expand(pieces.shape[0], -1, -1, -1) for p in past[n]]
                k, v = torch.cat([old[0], k], dim=2), torch.cat([old[1], v], dim=2)
            now.append((k, v))
            share = self.heads // self.groups
            mixed = torch.nn.functional.scaled_dot_product_attention(
                q, k.repeat_interleave(share, 1), v.repeat_interleave(share, 1), attn_mask=seen
            )
            x = x + mixed.transpose(1, 2).flatten(2) @ layer["attn_output"].T
            h = self._normed(x, layer["ffn_norm"])
            gate = torch.nn.functional.silu(h @ layer["ffn_gate"].T)
            x = x + (gate * (h @ layer["ffn_up"].T)) @ layer["ffn_down"].T
        return self._normed(x, w["output_norm.weight"]), now

    def log_probs(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """Logarithms of the probabilities of all pieces after hidden states ``(..., width)``."""
        import torch

        return torch.log_softmax(hidden @ self.output.T, dim=-1)

    def _normed(self, x: "torch.Tensor", weight: "torch.Tensor") -> "torch.Tensor":
        import torch

        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * weight

    def _split(self, x: "torch.Tensor", heads: int) -> "torch.Tensor":
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)

    def _rotation(self, start: int, count: int) -> tuple["torch.Tensor", "torch.Tensor"]:
        import torch

        size = self.width // self.heads
        speed = self.base ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angle = torch.arange(start, start + count, dtype=torch.float32)[:, None] * speed
        return angle.cos(), angle.sin()

    def _turned(
        self, x: "torch.Tensor", turn: tuple["torch.Tensor", "torch.Tensor"]
    ) -> "torch.Tensor":
        import torch

        cos, sin = turn
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


_LAYER = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output",
          "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")  # fmt: skip


class Pieces:
    """Text as the numbers of its pieces: byte-level BPE, every digit by itself, as in SmolLM2."""

    def __init__(self, content: Gguf) -> None:
        tokenizers: Any = require("tokenizers", extra="language")
        facts = content.facts
        vocabulary = {piece: i for i, piece in enumerate(facts["tokenizer.ggml.tokens"])}
        merges = [tuple(pair.split(" ", 1)) for pair in facts["tokenizer.ggml.merges"]]
        self._tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
        before = tokenizers.pre_tokenizers
        self._tokenizer.pre_tokenizer = before.Sequence(
            [before.Digits(individual_digits=True), before.ByteLevel(add_prefix_space=False)]
        )

    def __call__(self, words: Sequence[str]) -> list[int]:
        """The pieces of words that stand in the middle of a text: a space is before each."""
        found: list[int] = self._tokenizer.encode("".join(f" {word}" for word in words)).ids
        return found


def load_smollm(*, threads: int | None = None) -> tuple[Llama, Pieces]:
    """SmolLM2-135M-Instruct, fetched on first use (98 MB)."""
    return load_llama(model_path("smollm2-135m"), threads=threads)


def load_llama(path: Path, *, threads: int | None = None) -> tuple[Llama, Pieces]:
    """A model of the Llama kind and its pieces, from a GGUF file."""
    content = read_gguf(path)
    with reading(path, "a language model of the Llama kind"):
        return Llama(content, threads=threads), Pieces(content)


def padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Rows of different lengths as one array, filled up at the end."""
    found = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for line, row in zip(found, rows, strict=True):
        line[: len(row)] = row
    return found
