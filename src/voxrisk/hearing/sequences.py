"""Greedy decoding of a network that turns one sequence into another, from two ONNX files.

The files are what Hugging Face's exporter writes: an encoder, and a decoder "merged" from one
without and one with a memory of what it attended to before.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.types import require

Tensor = NDArray[np.float32]
QUIET = 0.1  # seconds over which loudness is looked at to find a pause


def open_session(path: Path) -> Any:
    """An ONNX network on one thread: processes share the cores, and results stay the same."""
    runtime: Any = require("onnxruntime", extra="utility")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Decoder:
    """A merged decoder with its memory."""

    def __init__(self, path: Path) -> None:
        self.session = open_session(path)
        self.empty = {
            given.name: np.zeros((1, given.shape[1], 0, given.shape[3]), np.float32)
            for given in self.session.get_inputs()
            if given.name.startswith("past_key_values")
        }
        named = [given.name for given in self.session.get_outputs()]
        self.memory = [name for name in named if name.startswith("present")]

    def greedy(
        self,
        states: Tensor,
        prompt: Sequence[int],
        *,
        end: int,
        most: int,
        never: Sequence[int] = (),
        not_first: Sequence[int] = (),
    ) -> list[int]:
        """The likeliest token after ``prompt``, and so on until ``end`` or ``most`` of them.

        Args:
            states: ``(1, frames, size)`` of the encoder.
            prompt: Tokens to begin with.
            end: Token that ends.
            most: Tokens after which it is stopped.
            never: Tokens that are not allowed.
            not_first: Tokens that are not allowed at the beginning besides.
        """
        past: Mapping[str, Any] = self.empty
        said: list[int] = []
        tokens = list(prompt)
        wanted = ["logits", *self.memory]
        while len(said) < most:
            given = {
                "input_ids": np.array([tokens], np.int64),
                "encoder_hidden_states": states,
                "use_cache_branch": np.array([bool(said)]),
                **past,
            }
            found = dict(zip(wanted, self.session.run(wanted, given), strict=True))
            scores = found.pop("logits")[0, -1]
            scores[list(never)] = -np.inf
            if not said:
                scores[list(not_first)] = -np.inf
            token = int(scores.argmax())
            if token == end:
                break
            said.append(token)
            tokens = [token]
            # What is remembered of the sound is computed once, in the first step.
            new = {name.replace("present", "past_key_values"): v for name, v in found.items()}
            past = {**past, **new}
            wanted = ["logits", *(name for name in self.memory if ".decoder." in name)]
        return said


def pieces(samples: Tensor, longest: float) -> list[Tensor]:
    """Speech in parts of at most ``longest`` seconds, cut where it is quietest.

    A cut lies in the last third of what could be one part.
    """
    most, step = round(longest * RATE), round(QUIET * RATE)
    parts = []
    while len(samples) > most:
        late = samples[most * 2 // 3 : most]
        power = np.square(late[: len(late) // step * step]).reshape(-1, step).mean(axis=1)
        cut = most * 2 // 3 + int(power.argmin()) * step + step // 2
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]
