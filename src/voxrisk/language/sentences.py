"""Sentence vectors: texts about the same thing point the same way (all-MiniLM-L6-v2)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.models import model_path
from voxrisk.types import InputError, require

BATCH = 64
LONGEST = 128  # pieces of one text that are looked at


def sentence_vectors(
    texts: Sequence[str], *, folder: Path | None = None, threads: int | None = None
) -> NDArray[np.float32]:
    """Vectors ``(n, d)`` of length one: the mean over the pieces of each text.

    Args:
        texts: Any sentences or parts of them.
        folder: Where ``model_quantized.onnx`` and ``tokenizer.json`` lie; None: the model store.
        threads: Cores; None: as ONNX Runtime likes.
    """
    folder = folder or model_path("minilm-l6")
    runtime: Any = require("onnxruntime", extra="language")
    tokenizers: Any = require("tokenizers", extra="language")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    with reading(folder / "model_quantized.onnx", "an ONNX model"):
        session = runtime.InferenceSession(str(folder / "model_quantized.onnx"), options)
        given = {one.name for one in session.get_inputs()}
    with reading(folder / "tokenizer.json", "a tokenizer"):
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    # Texts of one length are computed together: padding costs as much as words.
    order = np.argsort([len(text) for text in texts], kind="stable")
    found: dict[int, NDArray[np.float32]] = {}
    for start in range(0, len(texts), BATCH):
        chosen = order[start : start + BATCH]
        coded = tokenizer.encode_batch([texts[i] for i in chosen])
        ids = np.array([c.ids for c in coded], np.int64)
        mask = np.array([c.attention_mask for c in coded], np.int64)
        fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, {k: v for k, v in fed.items() if k in given})[0]
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        found |= dict(zip(chosen.tolist(), mean, strict=True))
    vectors = np.stack([found[i] for i in range(len(texts))]).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InputError("the model of sentences gives vectors that are not finite")
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
