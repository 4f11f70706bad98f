"""A trained ECAPA-TDNN as an encoder, from a checkpoint of SpeechBrain or of ``voxrisk train``."""

import contextlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from voxrisk.attack.ecapa import Ecapa
from voxrisk.attack.ecapa_frames import FrameEcapa
from voxrisk.attack.encoder import check_all, file_identity
from voxrisk.attack.features import MELS, filter_banks, frame_count
from voxrisk.attack.sizes import EcapaSize
from voxrisk.corpus.audio import RATE
from voxrisk.files.arrays import read_npy
from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_DIMENSIONS, refuse_bomb
from voxrisk.types import InputError

NEGLIGIBLE = 1e-30
BATCH_SECONDS = {"cpu": 60.0, "cuda": 600.0}  # padded audio in one batch: bounds the memory


class EcapaEncoder:
    """See :class:`voxrisk.attack.Encoder`; ``centre`` is a file with what every vector loses.

    With ``pooled`` the vectors are those that the last layer reads, which is left out.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        device: str = "auto",
        threads: int | None = None,
        centre: Path | None = None,
        pooled: bool = False,
    ) -> None:
        self.pooled = pooled
        self.threads = threads
        self.name = name
        self.identity = file_identity(path)
        self.device = pick_device(device)
        self.model = load_ecapa(path).to(self.device).eval()
        drop_denormals(self.model)
        # On a CPU matrix products over frames are faster than torch's convolutions.
        self.frames = FrameEcapa(self.model) if self.device.type == "cpu" else None
        self.dimension = self.model.size.embedding
        if pooled:
            self.identity += " pooled"
            self.dimension = self.model.fc.conv.in_channels
        self.centre = np.zeros(self.dimension)
        if centre is not None:
            self.centre = read_centre(centre, self.dimension)
            self.identity += f"+{file_identity(centre)}"

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        with cpu_threads(self.threads):
            return self._embed(waveforms)

    def _embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        vectors = np.empty((len(waveforms), self.dimension), dtype=np.float32)
        lengths = np.array([len(wave) for wave in waveforms], dtype=np.int64)
        budget = int(BATCH_SECONDS.get(self.device.type, 60.0) * RATE)
        for batch in length_batches(lengths, budget):
            vectors[batch] = self._embed_batch([waveforms[i] for i in batch]) - self.centre
        if not np.isfinite(vectors).all():
            wrong = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise InputError(f"waveform {wrong}: the encoder {self.name} gives no finite vector")
        return vectors

    @torch.inference_mode()
    def _embed_batch(self, waves: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        padded, lengths = pad(waves, self.device)
        frames = None if lengths is None else frame_count(lengths)
        features = filter_banks(padded, lengths)
        if self.frames is not None:
            ends = [features.shape[2]] * len(waves) if frames is None else frames.tolist()
            each = [feature[:, :end] for feature, end in zip(features, ends, strict=True)]
            found = self.frames.pool(each) if self.pooled else self.frames.embed(each)
            return found.numpy()
        vectors: Tensor = (
            self.model.pool(features, frames)[:, :, 0]
            if self.pooled
            else self.model(features, frames)
        )
        return vectors.float().cpu().numpy()


@torch.no_grad()
def drop_denormals(model: torch.nn.Module) -> None:
    """Set weights too small for a normal number to 0: they change no result and cost a third more.

    Weight decay leaves such weights in units that died in training (1 % of a layer of the official
    ECAPA-TDNN), and processors take a hundred times longer to multiply by them.
    """
    for value in (*model.parameters(), *model.buffers()):
        if value.is_floating_point():
            value[value.abs() < NEGLIGIBLE] = 0.0


@contextlib.contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Let torch use so many threads for a while; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def length_batches(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Split indices into batches of like length whose padded size stays within ``budget``.

    Every batch has at least one index; the order depends on the lengths only.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    for stop in range(1, len(order) + 1):
        if stop == len(order) or (stop - start + 1) * lengths[order[stop]] > budget:
            yield order[start:stop]
            start = stop


def pad(waves: Sequence[NDArray[np.float32]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Stack waveforms, padded with zeros; lengths are None when nothing had to be padded."""
    longest = max(len(wave) for wave in waves)
    padded = np.zeros((len(waves), longest), dtype=np.float32)
    for row, wave in zip(padded, waves, strict=True):
        row[: len(wave)] = wave
    batch = torch.from_numpy(padded).to(device)
    if all(len(wave) == longest for wave in waves):
        return batch, None
    return batch, torch.tensor([len(wave) for wave in waves], device=device)


def pick_device(device: str) -> torch.device:
    """The device by name; ``"auto"`` is a GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device!r} was asked for, but this torch sees no GPU")
    try:
        return torch.device(device)
    except RuntimeError:
        raise InputError(f"device {device!r}: write cpu, cuda or cuda:1") from None


def load_ecapa(path: Path) -> Ecapa:
    """Build the ECAPA-TDNN of a checkpoint; its size is read from the weights.

    Raises:
        InputError: If the file is damaged or is no ECAPA-TDNN on 80 mel bands.
    """
    state = read_tensors(path)
    try:
        mels = state["blocks.0.conv.conv.weight"].shape[1]
        size = EcapaSize(
            channels=state["blocks.0.conv.conv.weight"].shape[0],
            attention=state["asp.tdnn.conv.conv.weight"].shape[0],
            squeeze=state["blocks.1.se_block.conv1.conv.weight"].shape[0],
            embedding=state["fc.conv.weight"].shape[0],
        )
    except (KeyError, IndexError) as error:
        raise InputError(f"{path}: holds no ECAPA-TDNN ({error} is missing)") from error
    if mels != MELS:
        raise InputError(f"{path}: was trained on {mels} mel bands; only {MELS} are supported")
    if max(astuple(size)) > MOST_DIMENSIONS:
        raise InputError(f"{path}: claims layers of {max(astuple(size)):,} values; it is damaged")
    with reading(path, "an ECAPA-TDNN", way_out="the weights do not fit; train or fetch it again"):
        model = Ecapa(size)
        model.load_state_dict(state)
    if not all(torch.isfinite(value).all() for value in state.values()):
        raise InputError(f"{path}: some weights are not finite; train the attacker again")
    return model


def read_centre(path: Path, dimension: int) -> NDArray[np.float64]:
    """Read the mean training vector ``(dimension,)`` of an attacker."""
    centre = read_npy(path)
    numbers = centre.dtype.kind == "f"
    if not numbers or centre.shape != (dimension,) or not np.isfinite(centre).all():
        raise InputError(
            f"{path}: a mean vector of shape {centre.shape}, not ({dimension},), or not finite; "
            "train the attacker again"
        )
    return np.asarray(centre, np.float64)


DAMAGED = "it is damaged or not a checkpoint, fetch or train it again"


def read_tensors(path: Path) -> Mapping[str, Tensor]:
    """Read a file of named tensors and nothing else; nothing in it is executed."""
    state = read_checkpoint(path)
    if not all(isinstance(value, Tensor) for value in state.values()):
        raise InputError(f"{path}: holds no named tensors; {DAMAGED}")
    return state


def read_checkpoint(path: Path) -> Mapping[str, Any]:
    """Read a file of named tensors, numbers, texts and tables of them; nothing is executed."""
    with reading(path, "a checkpoint", way_out=DAMAGED):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                sizes = [info.file_size for info in archive.infolist()]
            refuse_bomb(path, path.stat().st_size, sum(sizes))
        state: object = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise InputError(f"{path}: holds no named tensors; {DAMAGED}")
    return state
