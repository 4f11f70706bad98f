"""Train the network that says whether one slice follows another, and go on after a kill."""

import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

from voxrisk.attack.successor_net import Frames, SuccessorNet, joined
from voxrisk.attack.successors import LAST
from voxrisk.files.atomic import atomic
from voxrisk.progress import Progress
from voxrisk.types import InputError

EPOCHS = 8
PAIRS = 6000  # successive pairs in an epoch at most, and as many that are not
BATCH = 64
RATE = 2e-3
FEWEST = 50  # successive pairs that teach anything
WEIGHTS, CHECKPOINT = "successor.pt", "checkpoint.pt"
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Slices to learn from.

    Attributes:
        frames: Of each slice.
        speaker: ``(n,)`` who said it.
        kind: ``(n,)`` slices of one kind (one length) are joined with each other only.
        successor: ``(n,)`` which slice comes right after it, -1 for none.
    """

    frames: Sequence[Frames]
    speaker: NDArray[np.str_]
    kind: NDArray[np.float64]
    successor: Indices


def draw_pairs(lessons: Lessons, *, seed: Sequence[int], most: int = PAIRS) -> tuple[Indices, ...]:
    """Pairs of one epoch: first, second, and 1 where they are successive.

    Half of the pairs are successive, a quarter of the same speaker and not, a quarter of different
    speakers; all of a pair are of one kind.
    """
    rng = np.random.default_rng(list(seed))
    rows = np.flatnonzero(lessons.successor != LAST)
    if rows.size < FEWEST:
        raise InputError(
            f"{rows.size} slices of the training speech have a next one; {FEWEST} are needed to "
            "learn what follows what: give more speech, or longer utterances, with --train"
        )
    rows = rng.permutation(rows)[:most]
    half = rows.size // 2
    groups: dict[tuple[str, float], Indices] = _groups(lessons)
    kinds = {kind: np.flatnonzero(lessons.kind == kind) for kind in np.unique(lessons.kind)}
    same = [_other(groups[_group(lessons, i)], i, lessons, rng, alike=True) for i in rows[:half]]
    apart = [_other(kinds[lessons.kind[i]], i, lessons, rng, alike=False) for i in rows[half:]]
    first = np.concatenate([rows, rows])
    second = np.concatenate([lessons.successor[rows], np.array([*same, *apart], np.int64)])
    label = np.concatenate([np.ones(rows.size, np.int64), np.zeros(rows.size, np.int64)])
    kept = second >= 0  # a person with two slices of a length has no third one
    return first[kept], second[kept], label[kept]


def _group(lessons: Lessons, i: int) -> tuple[str, float]:
    return str(lessons.speaker[i]), float(lessons.kind[i])


def _groups(lessons: Lessons) -> dict[tuple[str, float], Indices]:
    found: dict[tuple[str, float], list[int]] = {}
    for i in range(len(lessons.frames)):
        found.setdefault(_group(lessons, i), []).append(i)
    return {key: np.array(value) for key, value in found.items()}


def _other(
    pool: Indices, i: int, lessons: Lessons, rng: np.random.Generator, *, alike: bool
) -> int:
    """A slice that does not follow slice i, of the same speaker or of another one; -1: none."""
    for _ in range(20):
        j = int(pool[rng.integers(pool.size)])
        same = lessons.speaker[j] == lessons.speaker[i]
        if j != i and j != lessons.successor[i] and same == alike:
            return j
    return -1


def train_successor(
    lessons: Lessons, folder: Path, *, seed: int = 0, epochs: int = EPOCHS
) -> SuccessorNet:
    """Train a network; every epoch is kept in ``folder`` until all are done."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net = SuccessorNet()
    frames = np.concatenate([f[::4] for f in lessons.frames])
    net.mean.copy_(torch.from_numpy(frames.mean(0)))
    net.scale.copy_(torch.from_numpy(frames.std(0) + 1e-3))
    adam = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    done = _resume(net, adam, folder)
    with Progress("train on slices", epochs) as progress:
        for epoch in range(done, epochs):
            for group in adam.param_groups:
                group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
            _epoch(net, adam, lessons, seed=(seed, epoch))
            with atomic(folder / CHECKPOINT) as part:
                state = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch + 1}
                torch.save(state, part)
            progress.at(epoch + 1)
    with atomic(folder / WEIGHTS) as part:
        torch.save(net.state_dict(), part)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return net.eval()


def _epoch(
    net: SuccessorNet, adam: torch.optim.Optimizer, lessons: Lessons, *, seed: tuple[int, int]
) -> None:
    net.train()
    first, second, label = draw_pairs(lessons, seed=seed)
    size = np.array([len(f) for f in lessons.frames])
    # Pairs of like length stand together, so that little is computed on what is not there.
    rng = np.random.default_rng([*seed, 1])
    order = np.argsort(size[first] + size[second] + rng.random(first.size) * 40)
    batches = [order[at : at + BATCH] for at in range(0, order.size, BATCH)]
    for k in rng.permutation(len(batches)):
        at = batches[k]
        if at.size < 2:
            continue
        pairs = joined(
            [lessons.frames[i] for i in first[at]], [lessons.frames[i] for i in second[at]]
        )
        loss = binary_cross_entropy_with_logits(net(*pairs), torch.from_numpy(label[at]).float())
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()


def _resume(net: SuccessorNet, adam: torch.optim.Optimizer, folder: Path) -> int:
    path = folder / CHECKPOINT
    if not path.is_file():
        return 0
    try:
        state = torch.load(path, weights_only=True)
        net.load_state_dict(state["net"])
        adam.load_state_dict(state["adam"])
    except (OSError, RuntimeError, LookupError, ValueError, EOFError, pickle.UnpicklingError):
        return 0  # torn by a kill: begin again
    return int(state["epoch"])


def load_successor(folder: Path) -> SuccessorNet:
    """The network that :func:`train_successor` left in a folder."""
    net = SuccessorNet()
    state: Mapping[str, torch.Tensor] = torch.load(folder / WEIGHTS, weights_only=True)
    net.load_state_dict(state)
    return net.eval()
