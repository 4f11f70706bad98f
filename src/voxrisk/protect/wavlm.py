"""WavLM up to its sixth layer, the content encoder of kNN-VC, in plain torch.

Parameters carry the names of Microsoft's checkpoint (``WavLM-Large.pt``: ``cfg`` and ``model``);
``cfg`` gives the sizes. Only the layers that kNN-VC needs are built and read.

Source: S. Chen et al., "WavLM", IEEE JSTSP 2022.
"""

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.protect.hifigan import fold_weight_norm
from voxrisk.types import InputError

FRAMES_PER_SECOND = 50
HOP = 320
LAYER = 6


class _ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of ``(b, c, t)``."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class _Waveform(nn.Module):
    """Seven convolutions from 16 kHz samples to 50 frames a second."""

    def __init__(self, layers: list[tuple[int, int, int]], mode: str, bias: bool) -> None:
        super().__init__()
        self.conv_layers = nn.ModuleList()
        before = 1
        for i, (width, kernel, stride) in enumerate(layers):
            conv = nn.Conv1d(before, width, kernel, stride, bias=bias)
            norm: nn.Module = nn.Identity()
            if mode == "layer_norm":  # the checkpoint counts a transpose, the norm, a transpose
                norm = nn.Sequential(nn.Identity(), _ChannelNorm(width), nn.Identity())
            elif i == 0:
                norm = nn.GroupNorm(width, width)
            self.conv_layers.append(nn.Sequential(conv, nn.Identity(), norm, nn.GELU()))
            before = width

    def forward(self, samples: Tensor) -> Tensor:
        x = samples[:, None]
        for layer in self.conv_layers:
            x = layer(x)
        return x.transpose(1, 2)


class _Attention(nn.Module):
    """Self-attention with a relative position bias that the query opens and closes (gates)."""

    def __init__(self, width: int, heads: int, buckets: int, *, has_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.grep_linear = nn.Linear(width // heads, 8)
        self.grep_a = nn.Parameter(torch.ones(1, heads, 1, 1))
        if has_bias:
            self.relative_attention_bias = nn.Embedding(buckets, heads)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        batch, time, width = x.shape
        shape = (batch, time, self.heads, width // self.heads)
        queries, keys, values = (
            f(x).view(shape).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        # The gate looks at the layer's input, cut into heads, before the query projection.
        gates = self.grep_linear(x.view(shape).transpose(1, 2))
        gates = torch.sigmoid(gates.view(batch, self.heads, time, 2, 4).sum(-1))
        gate = gates[..., :1] * (gates[..., 1:] * self.grep_a - 1) + 2
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=gate * bias
        )
        out: Tensor = self.out_proj(mixed.transpose(1, 2).reshape(batch, time, width))
        return out


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any], *, has_bias: bool) -> None:
        super().__init__()
        width, inner = config["encoder_embed_dim"], config["encoder_ffn_embed_dim"]
        heads = config["encoder_attention_heads"]
        self.first = bool(config["layer_norm_first"])
        self.self_attn = _Attention(width, heads, config["num_buckets"], has_bias=has_bias)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        if self.first:
            x = x + self.self_attn(self.self_attn_layer_norm(x), bias)
            inner: Tensor = self.fc2(functional.gelu(self.fc1(self.final_layer_norm(x))))
            return x + inner
        x = self.self_attn_layer_norm(x + self.self_attn(x, bias))
        out: Tensor = self.final_layer_norm(x + self.fc2(functional.gelu(self.fc1(x))))
        return out


class _Transformer(nn.Module):
    def __init__(self, config: Mapping[str, Any], layers: int) -> None:
        super().__init__()
        width, kernel = config["encoder_embed_dim"], config["conv_pos"]
        groups = config["conv_pos_groups"]
        conv = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=groups)
        self.pos_conv = nn.Sequential(conv)
        self.layers = nn.ModuleList(_Layer(config, has_bias=i == 0) for i in range(layers))
        self.layer_norm = nn.LayerNorm(width)
        self.norm_input = not config["layer_norm_first"]
        self.buckets, self.reach = config["num_buckets"], config["max_distance"]

    def forward(self, x: Tensor) -> Tensor:
        time = x.shape[1]
        place = self.pos_conv(x.transpose(1, 2))[:, :, :time]
        x = x + functional.gelu(place).transpose(1, 2)
        if self.norm_input:
            x = self.layer_norm(x)
        first: Any = self.layers[0]
        table = first.self_attn.relative_attention_bias
        bias = table(position_buckets(time, self.buckets, self.reach)).permute(2, 0, 1)[None]
        for layer in self.layers:
            x = layer(x, bias)
        return x


def position_buckets(time: int, buckets: int, reach: int) -> Tensor:
    """The bucket of each distance key − query ``(time, time)``.

    Half of the buckets are for each sign; of these, half are exact and half grow logarithmically.
    """
    places = torch.arange(time)
    distance = places[None, :] - places[:, None]
    half = buckets // 2
    exact = half // 2
    far = distance.abs().clamp(min=1).float()
    grown = exact + (far / exact).log() / math.log(reach / exact) * (half - exact)
    bucket = torch.where(distance.abs() < exact, distance.abs(), grown.long().clamp(max=half - 1))
    return bucket + (distance > 0).long() * half


class WavLM(nn.Module):
    """Samples ``(b, n)`` at 16 kHz to the state after ``layers`` layers ``(b, t, width)``."""

    def __init__(self, config: Mapping[str, Any], *, layers: int = LAYER) -> None:
        super().__init__()
        convs = config["conv_feature_layers"]
        shapes = _conv_shapes(convs) if isinstance(convs, str) else list(convs)
        self.feature_extractor = _Waveform(shapes, config["extractor_mode"], config["conv_bias"])
        self.layer_norm = nn.LayerNorm(shapes[-1][0])
        self.post_extract_proj = nn.Linear(shapes[-1][0], config["encoder_embed_dim"])
        self.encoder = _Transformer(config, layers)
        self.normalize = bool(config.get("normalize", False))

    def forward(self, samples: Tensor) -> Tensor:
        """Encode; see the class."""
        # Published kNN-VC does not normalise the waveform although WavLM-Large's cfg asks for it,
        # and its vocoder was trained that way: so neither do we.
        x = self.layer_norm(self.feature_extractor(samples))
        out: Tensor = self.encoder(self.post_extract_proj(x))
        return out


def _conv_shapes(text: str) -> list[tuple[int, int, int]]:
    """Read ``[(512,10,5)] + [(512,3,2)] * 4 + …`` without ever evaluating it as code."""

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return value(node.left) + value(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return value(node.left) * value(node.right)
        return ast.literal_eval(node)

    return [tuple(shape) for shape in value(ast.parse(text, mode="eval").body)]


def load_wavlm(path: Path, *, layers: int = LAYER) -> WavLM:
    """Read the first ``layers`` layers of a WavLM checkpoint."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        model = WavLM(checkpoint["cfg"], layers=layers)
        state = fold_weight_norm(checkpoint["model"])
        wanted = model.state_dict()
        model.load_state_dict({name: state[name] for name in wanted})
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a WavLM checkpoint with cfg and model, as kNN-VC publishes it ({error})"
        ) from error
    return model.eval()


def encode(model: WavLM, samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features ``(t, width)`` of samples at 16 kHz, a frame each 20 ms."""
    padded = np.pad(samples, (0, max(0, 2 * HOP - len(samples))))
    with torch.inference_mode():
        features: NDArray[np.float32] = model(torch.from_numpy(padded)[None])[0].numpy()
    return features
