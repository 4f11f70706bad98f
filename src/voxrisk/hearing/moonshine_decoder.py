"""The decoder of Moonshine as matrix products for several utterances at once.

Its published file keeps weights as 8-bit numbers, and ONNX Runtime turns all of them into floats
again for every token: four fifths of the time. Here they are turned once, and the utterances of a
batch take each step together, so that every weight is read once for all of them. The network is
that of Jeffries et al. (arXiv 2410.15608): eight layers with rotary positions in self-attention,
attention to the sound without positions, and a gated layer of two halves.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from voxrisk.types import require

HEADS = 8
EPSILON = 1e-5
FLOAT32, INT8 = 1, 3  # as ONNX numbers the types of tensors
PROJECTION = re.compile(r"/model/decoder/(layers\.\d+/.*)/MatMul")


@dataclass(frozen=True, slots=True)
class _Attention:
    """Weights ``(size, size)`` of one kind of attention in one layer."""

    query: Tensor
    key: Tensor
    value: Tensor
    out: Tensor


@dataclass(frozen=True, slots=True)
class _Layer:
    before_words: Tensor
    words: _Attention
    before_sound: Tensor
    sound: _Attention
    before_gate: Tensor
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]


class MoonshineDecoder:
    """Says the likeliest tokens of several utterances; from what :func:`read_weights` gives."""

    def __init__(self, found: Mapping[str, Tensor]) -> None:
        count = sum(name.endswith("/mlp/down_proj") for name in found)
        self.layers = tuple(_layer(found, f"layers.{i}") for i in range(count))
        self.tokens = found["embed_tokens"]
        self.scores = self.tokens.T.contiguous()
        self.norm = found["norm"]
        self.turns = found["turns"]

    @torch.inference_mode()
    def greedy(
        self, states: Sequence[NDArray[np.float32]], *, begin: int, end: int, most: Sequence[int]
    ) -> list[list[int]]:
        """The likeliest token after ``begin``, and so on until ``end``, for each utterance.

        Args:
            states: ``(frames, size)`` of the encoder, of each.
            begin: Token that everything begins with.
            end: Token that ends.
            most: Tokens after which an utterance is stopped.
        """
        said: list[list[int]] = [[] for _ in states]
        going = [i for i, limit in enumerate(most) if limit > 0]
        memory = self._memory([states[i] for i in going], max([0, *most]))
        last = torch.full((len(going),), begin)
        for place in range(max([0, *most])):
            if not going:
                break
            last = self._step(last, place, memory)
            for i, token in zip(going, last.tolist(), strict=True):
                if token != end:
                    said[i].append(token)
            stay = [row for row, i in enumerate(going) if place < len(said[i]) < most[i]]
            if len(stay) < len(going):
                kept = torch.tensor(stay, dtype=torch.int64)
                going, last = [going[row] for row in stay], last[kept]
                memory = memory.keep(kept)
        return said

    def _memory(self, states: Sequence[NDArray[np.float32]], most: int) -> "_Memory":
        """What every layer attends to: the sound at once, and room for the words."""
        frames = max((len(s) for s in states), default=0)
        size = self.tokens.shape[1]
        padded = torch.zeros(len(states), frames, size)
        hidden = torch.full((len(states), 1, 1, frames), -torch.inf)
        for row, state in enumerate(states):
            padded[row, : len(state)] = torch.from_numpy(state)
            hidden[row, ..., : len(state)] = 0.0
        sound = [
            (_heads(padded @ layer.sound.key), _heads(padded @ layer.sound.value))
            for layer in self.layers
        ]
        room = len(states), HEADS, most, size // HEADS
        words = [(torch.empty(room), torch.empty(room)) for _ in self.layers]
        return _Memory(sound, words, hidden)

    def _step(self, tokens: Tensor, place: int, memory: "_Memory") -> Tensor:
        """The likeliest token after each of ``tokens (n,)``, which stand at ``place``."""
        x = self.tokens[tokens]
        angle = place * self.turns
        turn = torch.stack([angle.cos(), angle.sin()])
        for layer, sound, words in zip(self.layers, memory.sound, memory.words, strict=True):
            y = _normed(x, layer.before_words)
            words[0][:, :, place] = _turned(_split(y @ layer.words.key), turn)
            words[1][:, :, place] = _split(y @ layer.words.value)
            query = _turned(_split(y @ layer.words.query), turn)
            past = words[0][:, :, : place + 1], words[1][:, :, : place + 1]
            x = torch.addmm(x, _attended(query, *past), layer.words.out)
            query = _split(_normed(x, layer.before_sound) @ layer.sound.query)
            x = torch.addmm(x, _attended(query, *sound, memory.hidden), layer.sound.out)
            up, gate = torch.addmm(
                layer.up[1], _normed(x, layer.before_gate), layer.up[0]
            ).chunk(2, dim=1)  # fmt: skip
            x = x + torch.addmm(layer.down[1], functional.silu(gate) * up, layer.down[0])
        return (_normed(x, self.norm) @ self.scores).argmax(dim=1)


@dataclass(frozen=True, slots=True)
class _Memory:
    """Keys and values of each layer ``(n, heads, places, size of a head)``; padding is hidden."""

    sound: list[tuple[Tensor, Tensor]]
    words: list[tuple[Tensor, Tensor]]
    hidden: Tensor

    def keep(self, rows: Tensor) -> "_Memory":
        return _Memory(
            [(key[rows], value[rows]) for key, value in self.sound],
            [(key[rows], value[rows]) for key, value in self.words],
            self.hidden[rows],
        )


def _normed(x: Tensor, weight: Tensor) -> Tensor:
    return functional.layer_norm(x, weight.shape, weight, eps=EPSILON)


def _heads(x: Tensor) -> Tensor:
    """``(n, places, size)`` as ``(n, heads, places, size of a head)``."""
    return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2).contiguous()


def _split(x: Tensor) -> Tensor:
    return x.view(len(x), HEADS, -1)


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    """Rotary positions: pairs of the first values of each head are turned by angles."""
    cos, sin = turn
    width = 2 * len(cos)
    even, odd = x[..., :width:2], x[..., 1:width:2]
    pairs = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1)
    return torch.cat([pairs.flatten(-2), x[..., width:]], dim=-1)


def _attended(query: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None = None) -> Tensor:
    found = functional.scaled_dot_product_attention(
        query[:, :, None], keys, values, attn_mask=hidden
    )
    return found[:, :, 0].flatten(1)


def _layer(found: Mapping[str, Tensor], name: str) -> _Layer:
    def attention(kind: str) -> _Attention:
        places = ("q_proj", "k_proj", "v_proj", "dense")
        return _Attention(*(found[f"{name}/{kind}/{place}"] for place in places))

    return _Layer(
        found[f"{name}.input_layernorm.weight"],
        attention("self_attn"),
        found[f"{name}.post_attention_layernorm.weight"],
        attention("encoder_attn"),
        found[f"{name}.final_layernorm.weight"],
        (found[f"{name}/mlp/up_proj"], found[f"{name}.mlp.up_proj.bias"]),
        (found[f"{name}/mlp/down_proj"], found[f"{name}.mlp.down_proj.bias"]),
    )


def read_weights(path: Path) -> dict[str, Tensor]:
    """Weights by the names of what they do, from a decoder in the format of ONNX Runtime.

    Tensors have numbers for names; the nodes that multiply by them tell what they are.
    """
    session: Any = require(
        "onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs.InferenceSession",
        extra="utility",
    )
    graph = session.InferenceSession.GetRootAs(path.read_bytes(), 0).Model().Graph()
    tensors = {t.Name().decode(): _array(t) for t in _each(graph, "Initializers")}

    def plain(name: str) -> Tensor:
        whole = tensors[f"{name}_quantized"].astype(np.float32)
        # In the order of the graph, so that the weights are the same to the last bit.
        whole = whole * tensors[f"{name}_scale"] + tensors[f"{name}_zero_point"]
        return torch.from_numpy(whole)

    found = {
        name.removeprefix("model.decoder.").removesuffix("_merged_0"): torch.from_numpy(value)
        for name, value in tensors.items()
        if name.startswith("model.decoder.layers.")
    }
    found["norm"] = torch.from_numpy(tensors["model.decoder.norm.weight_merged_0"])
    found["turns"] = torch.from_numpy(tensors["/model/decoder/rotary_emb/Cast_1_output_0"].ravel())
    found["embed_tokens"] = plain("model.decoder.embed_tokens.weight_merged_0")
    for branch in _branches(graph):
        for node in _each(branch, "Nodes"):
            if place := PROJECTION.fullmatch(node.Name().decode()):
                weight = node.Inputs(1).decode()
                if weight.endswith("_add_tensor"):
                    found[place[1]] = plain(weight.removesuffix("_add_tensor"))
    return found


def _each(table: Any, field: str) -> Iterator[Any]:
    for i in range(getattr(table, f"{field}Length")()):
        yield getattr(table, field)(i)


def _branches(graph: Any) -> Iterator[Any]:
    for node in _each(graph, "Nodes"):
        for attribute in _each(node, "Attributes"):
            if attribute.G():
                yield attribute.G()


def _array(tensor: Any) -> NDArray[Any]:
    kinds: dict[int, Any] = {FLOAT32: np.float32, INT8: np.int8}
    kind = kinds.get(tensor.DataType(), np.uint8)
    shape = tuple(tensor.DimsAsNumpy()) if tensor.DimsLength() else ()
    raw = tensor.RawDataAsNumpy()
    values = np.frombuffer(bytearray(raw), dtype=kind)
    return values.reshape(shape) if values.size == np.prod(shape, dtype=int) else values
