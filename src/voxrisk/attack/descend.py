"""The gradient training of a map on vectors, between a source head and a target head.

Both heads are those of :mod:`voxrisk.attack.heads`. By default the target head only measures what
the map leaves of the targets. With ``reverse`` the map also moves against it: the attacker of
paper 3, above a ready encoder that stays as it is.

Two things differ from the training of a whole encoder, because here a target head is perfect from
the first step on and its gradient dies out. The head begins anew with the class means of the mapped
vectors in each epoch, so that it never chases a map that has only turned away from it. And what
the map receives is, by default, the gradient towards a head that knows nothing (all targets equally
likely: Tzeng et al., ICCV 2015) in place of the reversed one, which is strong where the head is
right, not where it is wrong; ``against="reversed"`` is the paper's own.
"""

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from voxrisk.attack.adam import Adam
from voxrisk.attack.epochs import Epoch
from voxrisk.attack.heads import CosineHead, aam_loss, reverse_gradient
from voxrisk.attack.recipes import AdapterRecipe, target_weight

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def descend(
    x: Floats,
    labels: Sequence[Rows],
    train: Rows,
    held: Rows,
    recipe: AdapterRecipe,
    *,
    reverse: bool = False,
    begin: Floats | None = None,
    seed: int = 0,
) -> tuple[Floats, list[Epoch]]:
    """Train a matrix ``(d, e)``, which begins as the identity or as ``begin``.

    Args:
        x: Vectors ``(n, d)`` of length one.
        labels: Source class ``(n,)`` of each vector, and its target class where targets are known.
        train: Rows to learn from.
        held: Rows to measure both heads on.
        recipe: Constants.
        reverse: Whether the map moves against the target head.
        begin: ``(d, e)`` what the map begins as, if not as the identity.
        seed: Of the order and the noise.

    Returns:
        The matrix, and the curve of every epoch.
    """
    random = np.random.default_rng([seed, 1])
    vectors = torch.from_numpy(x).float()
    truth = [torch.from_numpy(label) for label in labels]
    start = torch.eye(vectors.shape[1]) if begin is None else torch.from_numpy(begin).float()
    matrix = torch.nn.Parameter(start)
    mapped = vectors[train] if begin is None else functional.normalize(vectors[train] @ start)
    heads = [_begun(mapped, label[train], int(label.max()) + 1) for label in truth]
    rows = torch.from_numpy(train)
    optimizer = Adam([matrix, heads[0].weight], rate=recipe.rate)
    chasing = _chaser(heads, recipe, reverse=reverse)
    epochs = recipe.reverse_epochs if reverse else recipe.epochs
    zero = recipe.zero_epochs if reverse else epochs
    done = []
    for epoch in range(1, epochs + 1):
        began = time.monotonic()
        weight = target_weight(epoch, epochs=epochs, zero_epochs=zero)
        if weight > 0:
            with torch.no_grad():
                mapped = functional.normalize(vectors[rows] @ matrix)
            heads[1] = _begun(mapped - mapped.mean(dim=0), truth[1][rows], len(heads[1].weight))
            chasing = _chaser(heads, recipe, reverse=reverse)
        sums, steps = np.zeros(2), 0
        order = random.permutation(train)
        for first in range(0, len(order), recipe.batch):
            chosen = torch.from_numpy(order[first : first + recipe.batch])
            noise = random.normal(0, recipe.noise, (len(chosen), vectors.shape[1]))
            noisy = vectors[chosen] + torch.from_numpy(noise).float() / vectors.shape[1] ** 0.5
            wanted = [label[chosen] for label in truth]
            total, losses = _losses(heads, noisy @ matrix, wanted, recipe, weight)
            for each in (optimizer, *chasing):
                each.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            for each in (optimizer, *chasing):
                each.step()
            sums[: len(losses)] += losses
            steps += 1
        wrong = _errors(heads, vectors[held] @ matrix, [label[held] for label in truth])
        known = len(heads) > 1
        done.append(
            Epoch(
                epoch=epoch,
                rate=recipe.rate,
                w_target=weight,
                loss_source=float(sums[0] / steps),
                loss_target=float(sums[1] / steps) if known else None,
                ver_source=wrong[0],
                ver_target=wrong[1] if known else None,
                seconds=time.monotonic() - began,
            )
        )
    return matrix.detach().double().numpy(), done


def _losses(
    heads: Sequence[CosineHead],
    mapped: Tensor,
    labels: Sequence[Tensor],
    recipe: AdapterRecipe,
    weight: float,
) -> tuple[Tensor, list[float]]:
    """What a batch minimises, and the losses of the heads in it."""
    losses = [_loss(heads[0], mapped, labels[0], recipe)]
    total = losses[0]
    if len(heads) > 1:
        losses.append(_loss(heads[1], mapped.detach(), labels[1], recipe))
        total = total + losses[1]
    if weight > 0:
        total = total + _against(heads[1], mapped, labels[1], recipe, weight)
    return total, [float(loss.detach()) for loss in losses]


@torch.no_grad()
def _errors(heads: Sequence[CosineHead], mapped: Tensor, labels: Sequence[Tensor]) -> list[float]:
    """How often each head is wrong."""
    return [
        float((head(mapped).argmax(dim=1) != label).double().mean())
        for head, label in zip(heads, labels, strict=True)
    ]


def _begun(vectors: Tensor, label: Tensor, classes: int) -> CosineHead:
    """A head whose classes have the directions of their mean vectors."""
    head = CosineHead(vectors.shape[1], classes)
    with torch.no_grad():
        sums = torch.zeros_like(head.weight).index_add_(0, label, vectors)
        head.weight.copy_(functional.normalize(sums + 1e-6))
    return head


def _chaser(heads: Sequence[CosineHead], recipe: AdapterRecipe, *, reverse: bool) -> list[Adam]:
    """What moves the target head: faster than the map where the map flees from it."""
    rate = recipe.head_rate if reverse else recipe.rate
    return [Adam(head.parameters(), rate=rate) for head in heads[1:]]


def _loss(head: CosineHead, vectors: Tensor, label: Tensor, recipe: AdapterRecipe) -> Tensor:
    return aam_loss(head(vectors), label, margin=recipe.margin, scale=recipe.scale)


def _against(
    head: CosineHead, mapped: Tensor, label: Tensor, recipe: AdapterRecipe, weight: float
) -> Tensor:
    """What moves the map against the target head, and leaves the head alone."""
    direction = functional.normalize(head.weight.detach())
    if recipe.against == "reversed":
        fled = functional.normalize(reverse_gradient(mapped, weight * recipe.strength))
        cosine = functional.linear(fled, direction)
        return aam_loss(cosine, label, margin=recipe.margin, scale=recipe.scale)
    logit = recipe.scale * functional.linear(functional.normalize(mapped), direction)
    return -weight * recipe.strength * functional.log_softmax(logit, dim=1).mean()
