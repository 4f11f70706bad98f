"""ECAPA-TDNN (Desplanques et al. 2020) in plain torch, with the parameter names of SpeechBrain.

A state dict of SpeechBrain's ``ECAPA_TDNN`` therefore loads here and the other way round. Two
things differ from that class. Padding is fully masked: each utterance is mirrored at its own end
before a convolution and padded frames stay out of every mean, so that a vector is the same alone or
in a batch. And the global context of the attention is multiplied once for an utterance instead of
once for each frame.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.attack.features import MELS, frame_mask
from voxrisk.attack.sizes import EcapaSize

SCALE = 8  # groups of channels in a Res2Net block
EPSILON = 1e-12


class Convolution(nn.Module):
    """A convolution over time that keeps the number of frames by mirroring the ends."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)
        self.pad = (kernel - 1) * dilation // 2

    def forward(self, x: Tensor, frames: Tensor | None = None) -> Tensor:
        """Map ``(n, inputs, T)`` to ``(n, outputs, T)``."""
        return self.conv(_mirror(x, self.pad, frames) if self.pad else x)  # type: ignore[no-any-return]


def _mirror(x: Tensor, pad: int, frames: Tensor | None) -> Tensor:
    padded = functional.pad(x, (pad, pad), mode="reflect")
    if frames is None:
        return padded
    beyond = frames[:, None] + torch.arange(pad, device=x.device)
    inside = 2 * (frames[:, None] - 1) - beyond
    shape = (-1, x.shape[1], -1)
    reflected = x.gather(2, inside[:, None].expand(shape))
    return padded.scatter(2, (beyond + pad)[:, None].expand(shape), reflected)


class Normalisation(nn.Module):
    """Batch normalisation whose statistics leave padded frames out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise ``(n, channels, T)``."""
        if mask is None or not self.training:
            return self.norm(x)  # type: ignore[no-any-return]
        rows = x.transpose(1, 2)
        real = self.norm(rows[mask[:, 0]])
        return torch.zeros_like(rows).masked_scatter(mask.transpose(1, 2), real).transpose(1, 2)


class Tdnn(nn.Module):
    """Convolution, rectifier, normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = Convolution(inputs, outputs, kernel, dilation)
        self.norm = Normalisation(outputs)

    def forward(
        self, x: Tensor, frames: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Map ``(n, inputs, T)`` to ``(n, outputs, T)``."""
        return self.norm(functional.relu(self.conv(x, frames), inplace=True), mask)  # type: ignore[no-any-return]


class Res2Net(nn.Module):
    """Groups of channels, each convolved after the result of the one before was added."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        width = channels // SCALE
        self.blocks = nn.ModuleList(Tdnn(width, width, kernel, dilation) for _ in range(SCALE - 1))

    def forward(
        self, x: Tensor, frames: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Map ``(n, channels, T)`` to the same shape."""
        first, *others = x.chunk(SCALE, dim=1)
        results = [first]
        for i, (block, group) in enumerate(zip(self.blocks, others, strict=True)):
            results.append(block(group if i == 0 else group + results[-1], frames, mask))
        return torch.cat(results, dim=1)


class SqueezeExcite(nn.Module):
    """Weigh each channel by what the whole utterance says."""

    def __init__(self, channels: int, squeeze: int) -> None:
        super().__init__()
        self.conv1 = Convolution(channels, squeeze)
        self.conv2 = Convolution(squeeze, channels)

    def forward(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Map ``(n, channels, T)`` to the same shape."""
        hidden = functional.relu(self.conv1(_mean(x, weight)))
        return x * torch.sigmoid(self.conv2(hidden))


class SeRes2Net(nn.Module):
    """The block of ECAPA: Tdnn, Res2Net, Tdnn, squeeze-and-excitation, around a shortcut."""

    def __init__(self, channels: int, squeeze: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.tdnn1 = Tdnn(channels, channels)
        self.res2net_block = Res2Net(channels, kernel, dilation)
        self.tdnn2 = Tdnn(channels, channels)
        self.se_block = SqueezeExcite(channels, squeeze)

    def forward(
        self, x: Tensor, frames: Tensor | None, mask: Tensor | None, weight: Tensor | None
    ) -> Tensor:
        """Map ``(n, channels, T)`` to the same shape."""
        y = self.tdnn1(x, frames, mask)
        y = self.res2net_block(y, frames, mask)
        y = self.tdnn2(y, frames, mask)
        return x + self.se_block(y, weight)  # type: ignore[no-any-return]


class AttentivePooling(nn.Module):
    """Mean and standard deviation over time, weighted by an attention of each channel."""

    def __init__(self, channels: int, attention: int) -> None:
        super().__init__()
        self.tdnn = Tdnn(3 * channels, attention)
        self.conv = Convolution(attention, channels)

    def forward(self, x: Tensor, mask: Tensor | None, weight: Tensor | None) -> Tensor:
        """Map ``(n, channels, T)`` to ``(n, 2 · channels, 1)``."""
        mean = _mean(x, weight)
        apart = x - mean
        variance = _mean(apart.square(), weight)
        context = torch.cat([mean, variance.clamp(min=EPSILON).sqrt()], dim=1)
        # One convolution over [x, mean, deviation] is a sum of two; the second is constant in time.
        layer = self.tdnn.conv.conv
        split = x.shape[1]
        hidden = functional.conv1d(x, layer.weight[:, :split], layer.bias)
        hidden = hidden + functional.conv1d(context, layer.weight[:, split:])
        score = self.conv(torch.tanh(self.tdnn.norm(functional.relu(hidden), mask)))
        if mask is not None:
            score = score.masked_fill(~mask, -torch.inf)
        attention = torch.softmax(score, dim=2)
        # The weights sum to 1, so mean and variance follow from what is left beside the plain mean.
        weighed = attention * apart
        shift = weighed.sum(2, keepdim=True)
        variance = (weighed * apart).sum(2, keepdim=True) - shift.square()
        return torch.cat([mean + shift, variance.clamp(min=EPSILON).sqrt()], dim=1)


def _mean(x: Tensor, weight: Tensor | None) -> Tensor:
    """Mean over time, over real frames only."""
    return x.mean(2, keepdim=True) if weight is None else (x * weight).sum(2, keepdim=True)


class Ecapa(nn.Module):
    """Features ``(n, 80, T)`` in, speaker vectors ``(n, embedding)`` out."""

    def __init__(self, size: EcapaSize) -> None:
        super().__init__()
        self.size = size
        width = size.channels
        self.blocks = nn.ModuleList(
            [
                Tdnn(MELS, width, kernel=5),
                *(SeRes2Net(width, size.squeeze, kernel=3, dilation=d) for d in (2, 3, 4)),
            ]
        )
        self.mfa = Tdnn(3 * width, 3 * width)
        self.asp = AttentivePooling(3 * width, size.attention)
        self.asp_bn = Normalisation(6 * width)
        self.fc = Convolution(6 * width, size.embedding)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Embed a batch; ``frames (n,)`` says where each utterance ends, None means nowhere early.

        An utterance needs at least 5 frames, for the ends to be mirrored.
        """
        vectors: Tensor = self.fc(self.pool(features, frames))[:, :, 0]
        return vectors

    def pool(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """What the last layer sees of each utterance, ``(n, 6 · channels, 1)``."""
        mask = weight = None
        if frames is not None:
            mask = frame_mask(frames, features.shape[2])
            weight = mask / frames[:, None, None]
        x = self.blocks[0](features, frames, mask)
        results = []
        for block in self.blocks[1:]:
            x = block(x, frames, mask, weight)
            results.append(x)
        x = self.mfa(torch.cat(results, dim=1), frames, mask)
        pooled: Tensor = self.asp_bn(self.asp(x, mask, weight))
        return pooled
