"""The ECAPA-TDNN as matrix products over frames: the same vectors, in half the time on a CPU.

torch's convolution reaches a third of what the processor can do on these shapes. Here all
utterances of a batch stand one below the other in a matrix ``(frames, channels)``, each between
margins of a few rows. A convolution of one frame is one product; one of three or five frames is a
sum of products of the matrix shifted up and down, after the margins were filled with the mirrored
ends. Nothing is padded to the longest utterance, so nothing has to be masked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from voxrisk.attack.ecapa import EPSILON, SCALE, Ecapa, SeRes2Net, Tdnn
from voxrisk.types import InputError

MARGIN = 4  # rows before and after an utterance: the widest convolution looks as far


@dataclass(frozen=True, slots=True)
class _Layer:
    """Taps ``(kernel, inputs, outputs)``, their distance, and what follows: bias, scale, shift."""

    taps: Tensor
    dilation: int
    bias: Tensor
    scale: Tensor
    shift: Tensor


@dataclass(frozen=True, slots=True)
class _Block:
    first: _Layer
    groups: tuple[_Layer, ...]
    last: _Layer
    squeeze: tuple[Tensor, Tensor]
    excite: tuple[Tensor, Tensor]


class FrameEcapa:
    """An :class:`~voxrisk.attack.ecapa.Ecapa` in evaluation mode, for the CPU."""

    def __init__(self, model: Ecapa) -> None:
        self.first = _layer(model.blocks[0])
        self.blocks = tuple(_block(block) for block in model.blocks[1:])
        self.mfa = _layer(model.mfa)
        width = model.mfa.conv.conv.out_channels
        weight, bias = _plain(model.asp.tdnn.conv.conv)
        self.attend = weight[:width].contiguous(), weight[width:].contiguous(), bias
        self.attended = _affine(model.asp.tdnn.norm.norm)
        self.score = _plain(model.asp.conv.conv)
        self.pooled = _affine(model.asp_bn.norm)
        self.fc = _plain(model.fc.conv)

    @torch.inference_mode()
    def embed(self, features: Sequence[Tensor]) -> Tensor:
        """Vectors ``(n, embedding)`` of features ``(80, T)`` of each utterance, of any lengths."""
        return torch.addmm(self.fc[1], self.pool(features), self.fc[0])

    @torch.inference_mode()
    def pool(self, features: Sequence[Tensor]) -> Tensor:
        """What the last layer sees of each utterance, ``(n, 6 · channels)``."""
        spans, mirrors, rows = _places([f.shape[1] for f in features])
        x = torch.zeros(rows, features[0].shape[0])
        for span, feature in zip(spans, features, strict=True):
            x[span] = feature.T
        x = _convolved(self.first, x, mirrors)
        width = len(self.first.bias)
        results = torch.empty(rows, 3 * width)
        for i, block in enumerate(self.blocks):
            out = results[:, i * width : (i + 1) * width]
            x = _res2net(block, x, out, spans, mirrors)
        x = _convolved(self.mfa, results, mirrors)
        pooled = torch.stack([self._pooled(x[span]) for span in spans])
        scale, shift = self.pooled
        return torch.addcmul(shift, pooled, scale)

    def _pooled(self, x: Tensor) -> Tensor:
        """Mean and deviation ``(2 · channels,)`` of frames ``(T, channels)`` under attention."""
        mean = x.mean(0)
        apart = x - mean
        variance = apart.square().mean(0)
        context = torch.cat([mean, variance.clamp(min=EPSILON).sqrt()])
        of_frame, of_context, bias = self.attend
        hidden = torch.addmm(bias + context @ of_context, x, of_frame).relu_()
        scale, shift = self.attended
        hidden = torch.addcmul(shift, hidden, scale).tanh_()
        attention = torch.softmax(torch.addmm(self.score[1], hidden, self.score[0]), dim=0)
        weighed = attention.mul_(apart)
        moved = weighed.sum(0)
        spread = weighed.mul_(apart).sum(0) - moved.square()
        return torch.cat([mean + moved, spread.clamp(min=EPSILON).sqrt()])


def _layer(tdnn: object) -> _Layer:
    assert isinstance(tdnn, Tdnn)
    conv = tdnn.conv.conv
    assert conv.bias is not None
    taps = conv.weight.detach().permute(2, 1, 0).contiguous()
    return _Layer(taps, conv.dilation[0], conv.bias.detach(), *_affine(tdnn.norm.norm))


def _block(block: object) -> _Block:
    assert isinstance(block, SeRes2Net)
    return _Block(
        _layer(block.tdnn1),
        tuple(_layer(group) for group in block.res2net_block.blocks),
        _layer(block.tdnn2),
        _plain(block.se_block.conv1.conv),
        _plain(block.se_block.conv2.conv),
    )


def _plain(conv: torch.nn.Conv1d) -> tuple[Tensor, Tensor]:
    """Weights ``(inputs, outputs)`` and bias of a convolution of one frame."""
    assert conv.bias is not None
    return conv.weight.detach()[:, :, 0].T.contiguous(), conv.bias.detach()


def _affine(norm: torch.nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """A normalisation with fixed statistics as ``scale · x + shift``."""
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).detach()
    return scale, (norm.bias - norm.running_mean * scale).detach()


def _places(lengths: Sequence[int]) -> tuple[list[slice], tuple[Tensor, Tensor], int]:
    """Rows of each utterance, which margins mirror which frames, and how many rows there are."""
    if min(lengths) <= MARGIN:
        raise InputError(f"an utterance of {min(lengths)} frames; {MARGIN + 1} are needed")
    spans, margins, sources = [], [], []
    row = 0
    for length in lengths:
        first, last = row + MARGIN, row + MARGIN + length - 1
        spans.append(slice(first, last + 1))
        for distance in range(1, MARGIN + 1):
            margins += [first - distance, last + distance]
            sources += [first + distance, last - distance]
        row = last + 1 + MARGIN
    return spans, (torch.tensor(margins), torch.tensor(sources)), row


def _convolved(
    layer: _Layer, x: Tensor, mirrors: tuple[Tensor, Tensor], out: Tensor | None = None
) -> Tensor:
    """Convolution, rectifier, normalisation; what comes out in the margins means nothing."""
    kernel = len(layer.taps)
    if kernel == 1:
        y = torch.addmm(layer.bias, x, layer.taps[0])
    else:
        x[mirrors[0]] = x[mirrors[1]]
        reach = (kernel - 1) // 2 * layer.dilation
        middle = len(x) - 2 * reach
        y = torch.empty(len(x), len(layer.bias))
        inner = y[reach : reach + middle]
        torch.addmm(layer.bias, x[:middle], layer.taps[0], out=inner)
        for tap in range(1, kernel):
            start = tap * layer.dilation
            inner.addmm_(x[start : start + middle], layer.taps[tap])
        y[:reach] = 0.0
        y[reach + middle :] = 0.0
    y.relu_()
    return torch.addcmul(layer.shift, y, layer.scale, out=y if out is None else out)


def _res2net(
    block: _Block, x: Tensor, out: Tensor, spans: Sequence[slice], mirrors: tuple[Tensor, Tensor]
) -> Tensor:
    """A block of ECAPA, into ``out (rows, channels)``."""
    y = _convolved(block.first, x, mirrors)
    width = y.shape[1] // SCALE
    before: Tensor | None = None
    for i, group in enumerate(block.groups, start=1):
        part = y[:, i * width : (i + 1) * width]
        one = part.contiguous() if before is None else part + before
        before = _convolved(group, one, mirrors)
        part.copy_(before)
    y = _convolved(block.last, y, mirrors)
    means = torch.stack([y[span].mean(0) for span in spans])
    hidden = torch.addmm(block.squeeze[1], means, block.squeeze[0]).relu_()
    gates = torch.addmm(block.excite[1], hidden, block.excite[0]).sigmoid_()
    for span, gate in zip(spans, gates, strict=True):
        around = slice(span.start - MARGIN, span.stop + MARGIN)
        torch.addcmul(x[around], y[around], gate, out=out[around])
    return out
