"""ONNX speaker encoders of WeSpeaker and 3D-Speaker, on the filter banks they were trained on.

Both read 80 Kaldi filter banks (25 ms every 10 ms, no dither, 20 Hz to 8 kHz) less their mean over
time. They differ in two ways, and both change the vectors:

=========== ======= ===========================================
            window  scale of the samples
=========== ======= ===========================================
wespeaker   Hamming 16-bit integers (±32768)
3d-speaker  Povey   ±1, so quiet frames meet Kaldi's floor
=========== ======= ===========================================

Such models know no padding, so each utterance is computed alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_all, file_identity
from voxrisk.corpus.audio import RATE
from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_DIMENSIONS
from voxrisk.types import InputError, require


@dataclass(frozen=True, slots=True)
class KaldiFeatures:
    """Which Kaldi filter banks a model expects."""

    window: str
    scale: float
    mels: int = 80


FEATURES = {
    "wespeaker": KaldiFeatures("hamming", 32768.0),
    "3d-speaker": KaldiFeatures("povey", 1.0),
}
# Words in the names of published files, for models without metadata.
HINTS = {
    "wespeaker": ("wespeaker", "voxceleb_resnet", "cnceleb_resnet"),
    "3d-speaker": ("3dspeaker", "3d-speaker", "campplus", "cam++", "eres2net"),
}


def kaldi_filter_banks(waveform: NDArray[np.float32], recipe: KaldiFeatures) -> NDArray[np.float32]:
    """Filter banks ``(frames, mels)`` of one utterance, less their mean over time."""
    kaldi: Any = require("kaldi_native_fbank", extra="attack")
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = recipe.window
    options.mel_opts.num_bins = recipe.mels
    options.energy_floor = 0.0
    stream = kaldi.OnlineFbank(options)
    stream.accept_waveform(RATE, (waveform * np.float32(recipe.scale)).tolist())
    stream.input_finished()
    frames = np.stack([stream.get_frame(i) for i in range(stream.num_frames_ready)])
    return np.asarray(frames - frames.mean(axis=0), dtype=np.float32)


def open_session(path: Path, *, device: str, threads: int | None) -> Any:
    """A model of ONNX Runtime, ready to run.

    Raises:
        InputError: If the file is none, or a GPU was asked for that is not there.
    """
    runtime: Any = require("onnxruntime", extra="attack")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    with reading(path, "an ONNX model"):
        return runtime.InferenceSession(str(path), options, providers=_providers(runtime, device))


class OnnxEncoder:
    """See :class:`voxrisk.attack.Encoder`."""

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        features: str | None = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.session = open_session(path, device=device, threads=threads)
        self.name = name
        with reading(path, "an ONNX model"):
            self.recipe = FEATURES[features or _guess(path, self.session)]
        self.identity = f"{file_identity(path)} {self.recipe}"
        with reading(path, "an ONNX model"):
            inputs, outputs = self.session.get_inputs(), self.session.get_outputs()
            shapes = [list(given.shape or ()) for given in inputs]
            self.input, self.output = inputs[0].name, outputs[-1].name
        if len(shapes) != 1 or len(shapes[0]) != 3:
            raise InputError(
                f"{path}: takes inputs of shape {shapes}, not one of (batch, frames, "
                f"{self.recipe.mels})"
            )
        if shapes[0][2] != self.recipe.mels:
            raise InputError(
                f"{path}: takes input of shape {shapes[0]}, not (batch, frames, "
                f"{self.recipe.mels}); only encoders on {self.recipe.mels} filter banks are known"
            )
        with reading(path, "a speaker encoder"):
            self.dimension = self._one(np.zeros((200, self.recipe.mels), dtype=np.float32)).size
        if not 1 <= self.dimension <= MOST_DIMENSIONS:
            raise InputError(f"{path}: gives vectors of {self.dimension} values; not an encoder")

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        vectors = np.empty((len(waveforms), self.dimension), dtype=np.float32)
        for i, wave in enumerate(waveforms):
            vectors[i] = self._one(kaldi_filter_banks(wave, self.recipe))
            if not np.isfinite(vectors[i]).all():
                raise InputError(f"waveform {i}: the encoder {self.name} gives no finite vector")
        return vectors

    def _one(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        (vector,) = self.session.run([self.output], {self.input: features[None]})
        return np.asarray(vector, dtype=np.float32).ravel()


def _providers(runtime: Any, device: str) -> list[str]:
    cuda = "CUDAExecutionProvider" in runtime.get_available_providers()
    if device.startswith("cuda") and not cuda:
        raise InputError(f"device {device!r} was asked for, but this ONNX Runtime sees no GPU")
    return [
        *(["CUDAExecutionProvider"] if cuda and device != "cpu" else []),
        "CPUExecutionProvider",
    ]


def _guess(path: Path, session: Any) -> str:
    """Which features: the file's own metadata (as sherpa-onnx writes it), else its name."""
    framework: str = session.get_modelmeta().custom_metadata_map.get("framework", "").lower()
    if framework in FEATURES:
        return framework
    found = [
        key for key, words in HINTS.items() if any(word in path.name.lower() for word in words)
    ]
    if len(found) != 1:
        raise InputError(
            f"{path}: cannot tell on which features it was trained; let the file's name contain "
            f"one of {', '.join(FEATURES)}"
        )
    return found[0]
