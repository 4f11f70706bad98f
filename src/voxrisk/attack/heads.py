"""The two classifiers of paper 3 on one recogniser, and the reversed gradient between them.

The source head learns whose voice was anonymized. The target head learns which target speaker the
anonymizer chose; it always learns with full strength, but what reaches the recogniser is its
gradient times −w_T. With w_T = 0 the head only measures what the recogniser knows about targets.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.attack.ecapa import Ecapa
from voxrisk.attack.sizes import EcapaSize


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.weight * gradients[0], None


def reverse_gradient(x: Tensor, weight: float) -> Tensor:
    """Return ``x`` unchanged; its gradient comes back times ``-weight`` (Ganin et al. 2015)."""
    return _Reverse.apply(x, weight)  # type: ignore[no-untyped-call, no-any-return]


class CosineHead(nn.Module):
    """Cosine ``(n, classes)`` between vectors ``(n, d)`` and one direction for each class."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dimension))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, vectors: Tensor) -> Tensor:
        """Compare each vector with each class."""
        unit = functional.normalize(vectors.to(self.weight.dtype))
        return functional.linear(unit, functional.normalize(self.weight))


def aam_loss(cosine: Tensor, label: Tensor, *, margin: float, scale: float) -> Tensor:
    """Additive angular margin softmax (ArcFace), the mean over the batch.

    The angle to the right class is made larger by ``margin`` before the softmax:
    ``cos(θ + m) = cos θ cos m − sin θ sin m``. Where θ + m would pass π, the straight line
    ``cos θ − m sin m`` continues it, so that the loss still falls with the angle.

    Args:
        cosine: ``(n, classes)``.
        label: ``(n,)`` class numbers.
        margin: In radians.
        scale: Of the logits.
    """
    place = label[:, None]
    right = cosine.gather(1, place).clamp(-1 + 1e-7, 1 - 1e-7)
    wider = right * math.cos(margin) - (1.0 - right.square()).sqrt() * math.sin(margin)
    line = right - margin * math.sin(margin)
    moved = torch.where(right > math.cos(math.pi - margin), wider, line)
    return functional.cross_entropy(scale * cosine.scatter(1, place, moved), label)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch gives: losses to learn from, and how many crops each head got wrong."""

    loss_source: Tensor
    loss_target: Tensor | None
    wrong_source: Tensor
    wrong_target: Tensor | None

    @property
    def loss(self) -> Tensor:
        """Sum of both heads' losses."""
        if self.loss_target is None:
            return self.loss_source
        return self.loss_source + self.loss_target


class TwoHeads(nn.Module):
    """A recogniser with a source head and, where targets are known, a target head."""

    def __init__(
        self,
        size: EcapaSize,
        *,
        sources: int,
        targets: int | None = None,
        margin: float = 0.2,
        scale: float = 30.0,
    ) -> None:
        super().__init__()
        self.encoder = Ecapa(size)
        self.source = CosineHead(size.embedding, sources)
        self.target = CosineHead(size.embedding, targets) if targets else None
        self.margin = margin
        self.scale = scale

    def forward(
        self,
        features: Tensor,
        frames: Tensor | None,
        source: Tensor,
        target: Tensor | None,
        weight: float,
    ) -> Outcome:
        """Classify a batch; ``weight`` is w_T of the reversed gradient."""
        vectors = self.encoder(features, frames)
        cosine = self.source(vectors)
        loss = aam_loss(cosine, source, margin=self.margin, scale=self.scale)
        wrong = (cosine.argmax(dim=1) != source).sum()
        if self.target is None or target is None:
            return Outcome(loss, None, wrong, None)
        cosine = self.target(reverse_gradient(vectors, weight))
        loss_target = aam_loss(cosine, target, margin=self.margin, scale=self.scale)
        return Outcome(loss, loss_target, wrong, (cosine.argmax(dim=1) != target).sum())
