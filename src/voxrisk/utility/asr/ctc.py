"""A small recogniser that learns from frames: convolutions and the CTC loss, in plain torch.

A. Graves et al., "Connectionist temporal classification", ICML 2006. The network hears a third of a
second at a time above a ready encoder, and more above filter banks, where it has all the work to
do. It trains for a number of steps, not of epochs, and every step takes the same seconds of speech:
two recognisers of the same recipe have heard equally much, however their speech was cut.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from voxrisk.files.atomic import atomic
from voxrisk.progress import Progress
from voxrisk.types import InputError
from voxrisk.utility.asr.beam import BLANK
from voxrisk.utility.asr.recipes import Recipe

Frames = NDArray[np.float16]
POOL = 20  # batches whose pieces are sorted by length together, so that little is padding


class Network(nn.Module):
    """Frames ``(b, t, d)`` to log probabilities of characters ``(b, t / stride, v)``."""

    def __init__(self, recipe: Recipe, dimension: int, characters: int) -> None:
        super().__init__()
        self.stride = recipe.stride
        width, kernel = recipe.width, recipe.kernel
        self.norm = nn.LayerNorm(dimension)
        self.first = nn.Conv1d(
            dimension, width, 2 * recipe.stride + 1, recipe.stride, recipe.stride
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(recipe.blocks))
        self.blocks = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=kernel // 2) for _ in range(recipe.blocks)
        )
        self.dropout = nn.Dropout(recipe.dropout)
        self.last = nn.Linear(width, characters)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        """``mask`` ``(b, t / stride, 1)`` is 1 where there is speech: padding stays silent."""
        x = self.dropout(self.norm(frames))
        x = functional.gelu(self.first(x.transpose(1, 2))).transpose(1, 2) * mask
        for norm, block in zip(self.norms, self.blocks, strict=True):
            heard = block(norm(x).mul(mask).transpose(1, 2)).transpose(1, 2)
            x = (x + self.dropout(functional.gelu(heard))) * mask
        return functional.log_softmax(self.last(x), dim=2)

    def lengths(self, frames: Tensor) -> Tensor:
        """Steps of the output for as many frames."""
        return (frames - 1) // self.stride + 1


def train(
    frames: Sequence[Frames],
    targets: Sequence[Sequence[int]],
    recipe: Recipe,
    *,
    characters: int,
    rate: float,
    seed: int = 0,
    device: str = "cpu",
    label: str = "",
) -> tuple[Network, list[float]]:
    """Train a recogniser.

    Args:
        frames: ``(t, d)`` of each piece of speech.
        targets: Characters of each, as places in the alphabet; none is the blank.
        recipe: How.
        characters: Size of the alphabet, with the blank.
        rate: Frames a second.
        seed: Of the weights and the order.
        device: Where to compute.
        label: What the progress is called.

    Returns:
        The network, and the loss of each step (nats for a character).

    Raises:
        InputError: If there is nothing to learn from, or the loss is not finite.
    """
    if not frames or not any(len(target) for target in targets):
        raise InputError("a recogniser learns from speech with transcripts, and there is none")
    torch.manual_seed(seed)
    network = Network(recipe, frames[0].shape[1], characters).to(device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=1e-2)
    order = batches([len(f) / rate for f in frames], recipe.batch_seconds, seed=seed)
    losses = []
    with Progress(label, recipe.steps) as progress:
        for step in range(recipe.steps):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * warm_and_cool(step, recipe.steps)
            chosen = next(order)
            loss = ctc_loss(network, [frames[i] for i in chosen], [targets[i] for i in chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            losses.append(float(loss.detach()))
            progress.at(step + 1)
    if not np.isfinite(losses).all():
        raise InputError(
            f"the loss is not finite; train again with a lower rate than {recipe.rate:g}"
        )
    return network.eval(), losses


def ctc_loss(
    network: Network, frames: Sequence[Frames], targets: Sequence[Sequence[int]]
) -> Tensor:
    """−ln P(text | frames) of a batch, for each character of it."""
    device = network.last.weight.device
    x, mask, lengths = _padded(network, frames, device)
    log_probs = network(x, mask).transpose(0, 1)
    wanted = torch.tensor([c for target in targets for c in target], dtype=torch.long)
    sizes = torch.tensor([len(target) for target in targets])
    # A piece with more characters than frames cannot be spelt; it teaches nothing.
    total = functional.ctc_loss(
        log_probs, wanted, lengths, sizes, blank=BLANK, reduction="sum", zero_infinity=True
    )
    return total / max(1, int(sizes.sum()))


@torch.inference_mode()
def log_probs(network: Network, frames: Frames) -> NDArray[np.float32]:
    """``(t, v)`` natural logarithms for one utterance."""
    x, mask, _ = _padded(network, [frames], network.last.weight.device)
    found: NDArray[np.float32] = network(x, mask)[0].cpu().numpy()
    return found


def save(path: Path, network: Network) -> None:
    """Write the weights, whole or not at all."""
    with atomic(path) as part, part.open("wb") as stream:
        torch.save(network.state_dict(), stream)  # by its name torch would write that into it


def load(path: Path, recipe: Recipe, dimension: int, characters: int) -> Network:
    """The recogniser whose weights :func:`save` wrote."""
    network = Network(recipe, dimension, characters)
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network.eval()


def batches(seconds: Sequence[float], batch_seconds: float, *, seed: int) -> Iterator[list[int]]:
    """Places of pieces without end, each batch about ``batch_seconds`` long.

    Every piece comes once before any comes again. Pieces of a batch are of similar length.
    """
    random = np.random.default_rng([seed, 2])
    length = np.asarray(seconds)
    while True:
        order = random.permutation(len(length))
        pools = np.cumsum(length[order]) // (POOL * batch_seconds)
        for pool in np.unique(pools):
            inside = order[pools == pool]
            inside = inside[np.argsort(length[inside], kind="stable")]
            starts = np.cumsum(length[inside]) - length[inside]
            numbers = (starts // batch_seconds).astype(int)
            for number in random.permutation(np.unique(numbers)):
                yield inside[numbers == number].tolist()


def warm_and_cool(step: int, steps: int) -> float:
    """Share of the highest learning rate: a tenth of the steps up, then down along a cosine."""
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def _padded(
    network: Network, frames: Sequence[Frames], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Frames side by side, where there is speech, and how long each is at the output."""
    lengths = network.lengths(torch.tensor([len(f) for f in frames]))
    parts = [torch.from_numpy(np.asarray(f, np.float32)) for f in frames]
    x = nn.utils.rnn.pad_sequence(parts, batch_first=True).to(device)
    steps = torch.arange(int(lengths.max()))
    mask = (steps < lengths[:, None]).float()[..., None].to(device)
    return x, mask, lengths
