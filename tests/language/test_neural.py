"""Small neural language models: the file, the laws of a causal model, the pieces of words."""

import struct
from pathlib import Path

import numpy as np
import pytest

from voxrisk.files.gguf import Gguf, read_gguf
from voxrisk.language.llama import BEGIN, Llama, Pieces, load_smollm
from voxrisk.language.sentences import sentence_vectors
from voxrisk.models import is_cached
from voxrisk.types import InputError

WIDTH, HEADS, GROUPS, INNER, PIECES = 24, 6, 2, 40, 31


def tiny(seed: int = 0) -> Gguf:
    """A model of two layers with weights drawn at random."""
    rng = np.random.default_rng(seed)
    head = WIDTH // HEADS
    shapes = {
        "attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (GROUPS * head, WIDTH),
        "attn_v": (GROUPS * head, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_norm": (WIDTH,),
        "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
    }  # fmt: skip
    tensors = {"token_embd.weight": (PIECES, WIDTH), "output_norm.weight": (WIDTH,)}
    tensors |= {f"blk.{n}.{k}.weight": shape for n in range(2) for k, shape in shapes.items()}
    facts = {
        "general.architecture": "llama", "llama.block_count": 2,
        "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": GROUPS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 10_000.0,
        "tokenizer.ggml.tokens": ["<|endoftext|>", "Ġ", *"abcdefghijklmnopqrstuvwxyz", "Ġt", "Ġth",
                                  "Ġthe"],
        "tokenizer.ggml.merges": ["Ġ t", "Ġt h", "Ġth e"],
    }  # fmt: skip
    return Gguf(facts, {k: 0.4 * rng.normal(size=s).astype(np.float32) for k, s in tensors.items()})


def by_hand(content: Gguf, pieces: list[int]) -> np.ndarray:
    """The same model in NumPy, one head and one position at a time, with complex rotations."""
    w = {k: v.astype(np.float64) for k, v in content.tensors.items()}
    x = w["token_embd.weight"][pieces]
    size, t = WIDTH // HEADS, len(pieces)
    speed = 10_000.0 ** (-np.arange(0, size, 2) / size)
    turn = np.exp(1j * np.arange(t)[:, None] * speed)

    def normed(v: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return v / np.sqrt((v**2).mean(axis=1, keepdims=True) + 1e-5) * weight

    def turned(v: np.ndarray) -> np.ndarray:
        both = (v[:, ::2] + 1j * v[:, 1::2]) * turn
        return np.stack([both.real, both.imag], axis=2).reshape(v.shape)

    for n in range(2):
        layer = {k.split(".")[2]: v for k, v in w.items() if k.startswith(f"blk.{n}.")}
        h = normed(x, layer["attn_norm"])
        heads = []
        for i in range(HEADS):
            own = slice(i * size, (i + 1) * size)
            shared = slice(i // (HEADS // GROUPS) * size, (i // (HEADS // GROUPS) + 1) * size)
            q, k = (
                turned((h @ layer["attn_q"].T)[:, own]),
                turned((h @ layer["attn_k"].T)[:, shared]),
            )
            scores = np.where(np.tri(t, dtype=bool), q @ k.T / np.sqrt(size), -np.inf)
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(scores / scores.sum(axis=1, keepdims=True)
                         @ (h @ layer["attn_v"].T)[:, shared])  # fmt: skip
        x = x + np.concatenate(heads, axis=1) @ layer["attn_output"].T
        h = normed(x, layer["ffn_norm"])
        gate = h @ layer["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ layer["ffn_up"].T)) @ layer["ffn_down"].T
    logits = normed(x, w["output_norm.weight"]) @ w["token_embd.weight"].T
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


def test_the_model_is_the_one_computed_by_hand() -> None:
    import torch

    model = Llama(tiny(), threads=1)
    hidden, _ = model(torch.tensor([[3, 1, 4, 1, 5]]))
    assert model.log_probs(hidden)[0].numpy() == pytest.approx(
        by_hand(tiny(), [3, 1, 4, 1, 5]), abs=1e-4
    )


def test_what_comes_later_changes_nothing_and_the_past_can_be_kept() -> None:
    import torch

    model = Llama(tiny(), threads=1)
    whole, _ = model(torch.tensor([[3, 1, 4, 1, 5], [3, 1, 9, 2, 6]]))
    start, past = model(torch.tensor([[3, 1]]))
    assert start[0].numpy() == pytest.approx(whole[0, :2].numpy(), abs=1e-5)
    rest, _ = model(torch.tensor([[4, 1, 5], [9, 2, 6]]), past)
    assert rest.numpy() == pytest.approx(whole[:, 2:].numpy(), abs=1e-5)


def test_words_become_pieces_by_the_merges_of_the_file() -> None:
    pieces = Pieces(tiny())
    assert pieces(["the", "a"]) == [30, 1, 2]  # "Ġthe", "Ġ", "a"


def block_file(path: Path, kind: int, raw: bytes, shape: tuple[int, ...]) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += text("general.name") + struct.pack("<I", 8) + text("test")
    head += text("x") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, 0)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + raw)
    return path


def test_quantised_blocks_are_unpacked_as_their_definition_says(tmp_path: Path) -> None:
    scale, least = np.float16(0.5), np.float16(-3.0)
    halves = np.arange(32, dtype=np.uint8) % 16
    packed = halves[:16] | halves[16:] << 4
    raw = scale.tobytes() + least.tobytes() + packed.astype(np.uint8).tobytes()
    found = read_gguf(block_file(tmp_path / "a.gguf", 3, raw, (1, 32)))
    assert found.facts == {"general.name": "test"}
    assert found.tensors["x"].tolist() == [(0.5 * halves - 3.0).tolist()]
    eight = np.arange(-16, 16, dtype=np.int8)
    found = read_gguf(block_file(tmp_path / "b.gguf", 8, scale.tobytes() + eight.tobytes(), (32,)))
    assert found.tensors["x"].tolist() == (0.5 * eight).tolist()


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of kind 14; F32, F16"):
        read_gguf(block_file(tmp_path / "a.gguf", 14, b"\0" * 64, (32,)))
    with pytest.raises(InputError, match="cannot be read as a GGUF model"):
        read_gguf(block_file(tmp_path / "b.gguf", 8, b"\0" * 8, (32,)))
    (tmp_path / "c.gguf").write_bytes(b"GGML")
    with pytest.raises(InputError, match="is no GGUF file"):
        read_gguf(tmp_path / "c.gguf")
    with pytest.raises(InputError, match="of kind 'gpt2'"):
        Llama(Gguf({"general.architecture": "gpt2"}, {}))


def test_smollm_has_read_a_little() -> None:
    import torch

    if not is_cached("smollm2-135m"):
        pytest.skip("SmolLM2 is not in the store; voxrisk models fetch smollm2-135m")
    model, pieces = load_smollm(threads=1)
    with torch.inference_mode():
        hidden, _ = model(torch.tensor([[BEGIN, *pieces(["once", "upon", "a"])]]))
        (time,) = pieces(["time"])
        assert float(model.log_probs(hidden[0, -1])[time].exp()) > 0.5


def test_sentences_about_the_same_thing_point_the_same_way() -> None:
    if not is_cached("minilm-l6"):
        pytest.skip("MiniLM is not in the store; voxrisk models fetch minilm-l6")
    texts = ["a cat sleeps on the sofa", "the kitten naps upon a couch", "interest rates rose"]
    a, b, c = sentence_vectors(texts, threads=1)
    assert a @ a == pytest.approx(1.0, abs=1e-5)
    assert a @ b > 0.5 > a @ c
