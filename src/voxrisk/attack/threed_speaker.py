"""CAM++ and ERes2Net in plain torch, with the parameter names of 3D-Speaker's checkpoints.

References: Wang et al., "CAM++: A fast and efficient network for speaker verification using
context-aware masking", Interspeech 2023; Chen et al., "An enhanced Res2Net with local and global
feature fusion for speaker verification", Interspeech 2023. Both read the filter banks of
:mod:`voxrisk.attack.onnx` as 3D-Speaker makes them, one utterance at a time, for they
know no padding.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.attack.ecapa_encoder import cpu_threads, pick_device, read_tensors
from voxrisk.attack.encoder import check_all, file_identity
from voxrisk.attack.onnx import FEATURES, kaldi_filter_banks
from voxrisk.types import InputError

SEGMENT = 100  # frames of a local context of CAM++
CEILING = 20.0  # of ERes2Net's activations


class TorchEncoder:
    """See :class:`voxrisk.attack.Encoder`; the network is found by the names of the weights."""

    def __init__(
        self, name: str, path: Path, *, device: str = "auto", threads: int | None = None
    ) -> None:
        state = dict(read_tensors(path))
        self.name, self.threads = name, threads
        self.recipe = FEATURES["3d-speaker"]
        self.identity = f"{file_identity(path)} {self.recipe}"
        self.device = pick_device(device)
        model: nn.Module = CamPlus() if "head.conv1.weight" in state else ERes2Net()
        try:
            model.load_state_dict(state)
        except RuntimeError as error:
            raise InputError(f"{path}: the weights fit neither CAM++ nor ERes2Net") from error
        self.model = model.to(self.device).eval()
        self.dimension = 192

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        check_all(waveforms)
        vectors = np.empty((len(waveforms), self.dimension), dtype=np.float32)
        with cpu_threads(self.threads), torch.inference_mode():
            for i, wave in enumerate(waveforms):
                features = torch.from_numpy(kaldi_filter_banks(wave, self.recipe)).to(self.device)
                vectors[i] = self.model(features.T[None]).float().cpu().numpy()
                if not np.isfinite(vectors[i]).all():
                    raise InputError(
                        f"waveform {i}: the encoder {self.name} gives no finite vector"
                    )
        return vectors


class _Normal(nn.Sequential):
    """Batch normalisation, and what follows it under 3D-Speaker's names."""

    def __init__(self, channels: int, *, relu: bool = True, affine: bool = True) -> None:
        super().__init__()
        self.add_module("batchnorm", nn.BatchNorm1d(channels, affine=affine))
        if relu:
            self.add_module("relu", nn.ReLU())


class _Dense(nn.Module):
    """A context-aware mask over a small convolution; its output joins its input."""

    def __init__(self, given: int, dilation: int) -> None:
        super().__init__()
        self.nonlinear1 = _Normal(given)
        self.linear1 = nn.Conv1d(given, 128, 1, bias=False)
        self.nonlinear2 = _Normal(128)
        self.cam_layer = _Mask(dilation)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.linear1(self.nonlinear1(x))
        return torch.cat([x, self.cam_layer(self.nonlinear2(inner))], dim=1)


class _Mask(nn.Module):
    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.linear_local = nn.Conv1d(128, 32, 3, padding=dilation, dilation=dilation, bias=False)
        self.linear1 = nn.Conv1d(128, 64, 1)
        self.linear2 = nn.Conv1d(64, 32, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = functional.avg_pool1d(x, SEGMENT, SEGMENT, ceil_mode=True)
        near = parts.repeat_interleave(SEGMENT, dim=2)[..., : x.shape[2]]
        context = torch.relu(self.linear1(x.mean(dim=2, keepdim=True) + near))
        masked: Tensor = self.linear_local(x) * torch.sigmoid(self.linear2(context))
        return masked


class _Transit(nn.Module):
    def __init__(self, given: int) -> None:
        super().__init__()
        self.nonlinear = _Normal(given)
        self.linear = nn.Conv1d(given, given // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        halved: Tensor = self.linear(self.nonlinear(x))
        return halved


class _Residual(nn.Module):
    """Two convolutions over frequency and time; ``stride`` is along frequency."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(32, 32, 3, (stride, 1), 1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(32, 32, 1, (stride, 1), bias=False), nn.BatchNorm2d(32)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + self.shortcut(x))


class _Head(nn.Module):
    """80 bands → 32 channels of 10 bands, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.layer1 = nn.Sequential(_Residual(2), _Residual(1))
        self.layer2 = nn.Sequential(_Residual(2), _Residual(1))
        self.conv2 = nn.Conv2d(32, 32, 3, (2, 1), 1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)

    def forward(self, x: Tensor) -> Tensor:
        out = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x[:, None])))))
        return torch.relu(self.bn2(self.conv2(out))).flatten(1, 2)


class CamPlus(nn.Module):
    """CAM++: features ``(n, 80, frames)`` → vectors ``(n, 192)``."""

    def __init__(self) -> None:
        super().__init__()
        self.head = _Head()
        first = nn.Module()
        first.linear = nn.Conv1d(320, 128, 5, 2, 2, bias=False)
        first.nonlinear = _Normal(128)
        parts: dict[str, nn.Module] = {"tdnn": first}
        channels = 128
        for number, (layers, dilation) in enumerate(((12, 1), (24, 2), (16, 2)), start=1):
            block = nn.Sequential()
            for layer in range(layers):
                block.add_module(f"tdnnd{layer + 1}", _Dense(channels + 32 * layer, dilation))
            parts[f"block{number}"] = block
            channels += 32 * layers
            parts[f"transit{number}"] = _Transit(channels)
            channels //= 2
        parts["out_nonlinear"] = _Normal(channels)
        last = nn.Module()
        last.linear = nn.Conv1d(2 * channels, 192, 1, bias=False)
        last.nonlinear = _Normal(192, relu=False, affine=False)
        parts["dense"] = last
        self.xvector = nn.ModuleDict(parts)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors of features that are not padded."""
        part: Any = self.xvector
        out = part["tdnn"].nonlinear(part["tdnn"].linear(self.head(x)))
        for number in (1, 2, 3):
            out = part[f"transit{number}"](part[f"block{number}"](out))
        out = part["out_nonlinear"](out)
        pooled = torch.cat([out.mean(dim=2), out.std(dim=2)], dim=1)
        vectors: Tensor = part["dense"].nonlinear(part["dense"].linear(pooled[..., None])[..., 0])
        return vectors


def _clipped(x: Tensor) -> Tensor:
    return torch.clamp(x, 0.0, CEILING)


class _Fuse(nn.Module):
    """Attentional fusion of two maps of the same shape."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 4
        self.local_att = nn.Sequential(
            nn.Conv2d(2 * channels, inner, 1),
            nn.BatchNorm2d(inner),
            nn.SiLU(),
            nn.Conv2d(inner, channels, 1),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        share = 1.0 + torch.tanh(self.local_att(torch.cat([x, y], dim=1)))
        return x * share + y * (2.0 - share)


class _Scales(nn.Module):
    """A Res2Net block of two scales; ``fused`` joins them by attention instead of a sum."""

    def __init__(self, given: int, planes: int, stride: int, *, fused: bool) -> None:
        super().__init__()
        width = planes // 2
        self.conv1 = nn.Conv2d(given, 2 * width, 1, stride, bias=False)
        self.bn1 = nn.BatchNorm2d(2 * width)
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1, bias=False) for _ in range(2))
        self.bns = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.fuse_models = nn.ModuleList([_Fuse(width)] if fused else [])
        self.conv3 = nn.Conv2d(2 * width, 2 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(2 * planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or given != 2 * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(given, 2 * planes, 1, stride, bias=False), nn.BatchNorm2d(2 * planes)
            )

    def forward(self, x: Tensor) -> Tensor:
        first, second = torch.chunk(_clipped(self.bn1(self.conv1(x))), 2, dim=1)
        first = _clipped(self.bns[0](self.convs[0](first)))
        joined = self.fuse_models[0](first, second) if len(self.fuse_models) else first + second
        second = _clipped(self.bns[1](self.convs[1](joined)))
        out = self.bn3(self.conv3(torch.cat([first, second], dim=1)))
        return _clipped(out + self.shortcut(x))


class ERes2Net(nn.Module):
    """ERes2Net: features ``(n, 80, frames)`` → vectors ``(n, 192)``."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        given = 32
        sizes = ((32, 3, 1, False), (64, 4, 2, False), (128, 6, 2, True), (256, 3, 2, True))
        for number, (planes, blocks, stride, fused) in enumerate(sizes, start=1):
            layer = nn.Sequential()
            for i in range(blocks):
                block = _Scales(given, planes, stride if i == 0 else 1, fused=fused)
                layer.append(block)
                given = 2 * planes
            self.add_module(f"layer{number}", layer)
        for number, channels in ((1, 64), (2, 128), (3, 256)):
            down = nn.Conv2d(channels, 2 * channels, 3, 2, 1, bias=False)
            self.add_module(f"layer{number}_downsample", down)
            self.add_module(f"fuse_mode{'1234'[: number + 1]}", _Fuse(2 * channels))
        self.seg_1 = nn.Linear(10240, 192)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors of features that are not padded."""
        part: Any = self
        out = _clipped(self.bn1(self.conv1(x[:, None])))
        out = fused = part.layer1(out)
        for number in (1, 2, 3):
            out = getattr(self, f"layer{number + 1}")(out)
            below = getattr(self, f"layer{number}_downsample")(fused)
            fused = getattr(self, f"fuse_mode{'1234'[: number + 1]}")(out, below)
        spread = torch.sqrt(fused.var(dim=-1) + 1e-8)
        pooled = torch.cat([fused.mean(dim=-1).flatten(1), spread.flatten(1)], dim=1)
        vectors: Tensor = self.seg_1(pooled)
        return vectors
