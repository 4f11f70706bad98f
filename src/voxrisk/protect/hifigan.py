"""HiFi-GAN V1: from frames (mel spectra or WavLM features) to a waveform, in plain torch.

Parameters carry the names of the official checkpoints. Weight normalisation is folded into the
weights when they are read.

Source: J. Kong et al., "HiFi-GAN", NeurIPS 2020; with a linear layer in front, M. Baas et al.,
"Voice conversion with just nearest neighbors", Interspeech 2023.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.types import InputError

KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)


class _Residual(nn.Module):
    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=d, padding=d * (kernel - 1) // 2)
            for d in DILATIONS
        )
        self.convs2 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, padding=(kernel - 1) // 2) for _ in DILATIONS
        )

    def forward(self, x: Tensor) -> Tensor:
        for first, second in zip(self.convs1, self.convs2, strict=True):
            x = x + second(functional.leaky_relu(first(functional.leaky_relu(x, 0.1)), 0.1))
        return x


class Generator(nn.Module):
    """Frames ``(b, t, n_inputs)`` to samples ``(b, t · hop)``; hop = product of ``rates``."""

    def __init__(
        self,
        *,
        n_inputs: int = 80,
        rates: Sequence[int] = (8, 8, 2, 2),
        kernels: Sequence[int] = (16, 16, 4, 4),
        channels: int = 512,
        n_linear: int | None = None,
    ) -> None:
        super().__init__()
        if n_linear is not None:
            self.lin_pre = nn.Linear(n_inputs, n_linear)
        self.conv_pre = nn.Conv1d(n_linear or n_inputs, channels, 7, padding=3)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(
                channels >> i, channels >> (i + 1), kernel, rate, padding=(kernel - rate) // 2
            )
            for i, (rate, kernel) in enumerate(zip(rates, kernels, strict=True))
        )
        self.resblocks = nn.ModuleList(
            _Residual(channels >> (i + 1), kernel) for i in range(len(rates)) for kernel in KERNELS
        )
        self.conv_post = nn.Conv1d(channels >> len(rates), 1, 7, padding=3)

    def forward(self, frames: Tensor) -> Tensor:
        """Frames ``(b, t, n_inputs)`` to samples ``(b, n)``."""
        if hasattr(self, "lin_pre"):
            frames = self.lin_pre(frames)
        x = self.conv_pre(frames.transpose(1, 2))
        for i, up in enumerate(self.ups):
            x = up(functional.leaky_relu(x, 0.1))
            blocks = self.resblocks[i * len(KERNELS) : (i + 1) * len(KERNELS)]
            x = torch.stack([block(x) for block in blocks]).mean(dim=0)
        return torch.tanh(self.conv_post(functional.leaky_relu(x))).squeeze(1)


def fold_weight_norm(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace each pair ``weight_g``, ``weight_v`` by the one weight g · v / ‖v‖."""
    folded = {}
    for name, value in state.items():
        if name.endswith("weight_v"):
            gain = state[name.removesuffix("_v") + "_g"]
            axes = [i for i in range(value.dim()) if gain.shape[i] == 1]
            norm = value.square().sum(dim=axes, keepdim=True).sqrt()
            folded[name.removesuffix("_v")] = gain * value / norm
        elif not name.endswith("weight_g"):
            folded[name] = value
    return folded


def load_generator(path: Path) -> Generator:
    """Read an official checkpoint; its shapes tell which generator it is (mel or WavLM input)."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)["generator"]
        if "lin_pre.weight" in state:
            n_linear, n_inputs = state["lin_pre.weight"].shape
            model = Generator(
                n_inputs=n_inputs,
                n_linear=n_linear,
                rates=(10, 8, 2, 2),
                kernels=(20, 16, 4, 4),
                channels=len(state["conv_pre.bias"]),
            )
        else:
            model = Generator(channels=len(state["conv_pre.bias"]))
        model.load_state_dict(fold_weight_norm(state))
    except (OSError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(f"{path}: not a HiFi-GAN V1 generator ({error})") from error
    return model.eval()
