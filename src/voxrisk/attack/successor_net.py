"""Does this slice follow that one? The network of the slicing paper, and all pairs at once.

Maouche et al. (Interspeech 2022, Section 5.2) join two slices and ask an x-vector network (Snyder
et al. 2018: a time-delay network, mean and deviation over time, a classifier) whether they were
successive. Half of the training pairs are, a quarter are of the same speaker and a quarter of
different speakers. This one is small, so that it trains in minutes on one core: its frames see 15
frames (0.15 s) and it hears at most two seconds on either side of the cut. One network serves
slices of all lengths.

A frame sees no further than seven frames. So of two joined slices only fourteen frames depend on
both, and the sums over all others are the same in every pair: all pairs of 600 slices take seconds,
and the scores are those of joining each pair.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from voxrisk.corpus.audio import RATE

Frames = NDArray[np.float32]
MELS = 24
WINDOW, HOP, POINTS = 400, 160, 512  # samples
CHANNELS, POOLED, HIDDEN = 48, 64, 64
SEEN = 7  # frames that a frame sees on either side
REACH = 200  # frames heard on either side of the cut
PAIRS = 1024  # whose joints are computed at once: more of them do not fit the cache


def mel_frames(wave: NDArray[np.float32]) -> Frames:
    """Log-mel frames ``(t, 24)`` of a slice at 16 kHz, at least one; its level stays in them."""
    sound = wave.astype(np.float64)
    if sound.size < WINDOW:
        sound = np.pad(sound, (0, WINDOW - sound.size))
    rows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * np.hamming(WINDOW)
    power = np.abs(np.fft.rfft(rows, POINTS)) ** 2
    return np.asarray(np.log(power @ _filters() + 1e-6), np.float32)


@lru_cache(maxsize=1)
def _filters() -> NDArray[np.float64]:
    """Triangles ``(257, 24)`` between 20 and 7600 Hz, evenly spread on the mel scale."""
    low, high = (1127 * math.log(1 + hertz / 700) for hertz in (20.0, 7600.0))
    mel = np.linspace(low, high, MELS + 2)
    edges = 700 * (np.exp(mel / 1127) - 1)
    hertz = np.linspace(0, RATE / 2, POINTS // 2 + 1)[:, None]
    up = (hertz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - hertz) / (edges[2:] - edges[1:-1])
    return np.asarray(np.maximum(np.minimum(up, down), 0.0))


class SuccessorNet(nn.Module):
    """Log odds that the second of two joined slices came right after the first."""

    mean: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(MELS))
        self.register_buffer("scale", torch.ones(MELS))
        self.frames = nn.Sequential(
            nn.Conv1d(MELS, CHANNELS, 5), nn.ReLU(), nn.BatchNorm1d(CHANNELS),
            nn.Conv1d(CHANNELS, CHANNELS, 3, dilation=2), nn.ReLU(), nn.BatchNorm1d(CHANNELS),
            nn.Conv1d(CHANNELS, CHANNELS, 3, dilation=3), nn.ReLU(), nn.BatchNorm1d(CHANNELS),
            nn.Conv1d(CHANNELS, POOLED, 1), nn.ReLU(), nn.BatchNorm1d(POOLED),
        )  # fmt: skip
        self.judge = nn.Sequential(
            nn.Linear(2 * POOLED, HIDDEN), nn.ReLU(), nn.BatchNorm1d(HIDDEN), nn.Linear(HIDDEN, 1)
        )

    def forward(self, joined: Tensor, lengths: Tensor) -> Tensor:
        """Log odds ``(b,)`` of joined slices ``(b, t, 24)`` of these lengths ``(b,)``.

        Beyond its length the last frame is to be repeated. At both ends the first and the last
        frame stand for what is not there.
        """
        total = joined.shape[1]
        ends = [joined[:, :1].expand(-1, SEEN, -1), joined, joined[:, -1:].expand(-1, SEEN, -1)]
        found = self.see(torch.cat(ends, dim=1))
        mask = (torch.arange(total) < lengths[:, None])[:, None].to(found.dtype)
        sums = (found * mask).sum(2), (found**2 * mask).sum(2)
        return self.pooled(*sums, lengths[:, None].to(found.dtype))

    def see(self, frames: Tensor) -> Tensor:
        """What the network makes of frames ``(b, t, 24)``: ``(b, channels, t - 14)``."""
        scaled = (frames - self.mean) / self.scale
        found: Tensor = self.frames(scaled.transpose(1, 2))
        return found

    def pooled(self, total: Tensor, square: Tensor, count: Tensor) -> Tensor:
        """Log odds from sums ``(b, channels)`` over ``count`` frames."""
        mean = total / count
        deviation = (square / count - mean**2).clamp(min=1e-5).sqrt()
        odds: Tensor = self.judge(torch.cat([mean, deviation], dim=1))
        return odds[:, 0]


def joined(first: Sequence[Frames], second: Sequence[Frames]) -> tuple[Tensor, Tensor]:
    """Pairs of slices joined, ``(b, t, 24)``, each with its last frame repeated, and lengths."""
    pairs = [np.concatenate([_before(a), _after(b)]) for a, b in zip(first, second, strict=True)]
    lengths = np.array([len(pair) for pair in pairs])
    longest = int(lengths.max())
    whole = np.stack([pair[np.minimum(np.arange(longest), len(pair) - 1)] for pair in pairs])
    return torch.from_numpy(whole), torch.from_numpy(lengths)


def _before(frames: Frames) -> Frames:
    """What is heard of a slice before the cut: its end, at least 14 frames of it."""
    short = max(2 * SEEN - len(frames), 0)
    return np.concatenate([np.repeat(frames[:1], short, axis=0), frames[-REACH:]])


def _after(frames: Frames) -> Frames:
    """What is heard of a slice after the cut: its beginning, at least 14 frames of it."""
    short = max(2 * SEEN - len(frames), 0)
    return np.concatenate([frames[:REACH], np.repeat(frames[-1:], short, axis=0)])


@torch.no_grad()
def score_pairs(net: SuccessorNet, slices: Sequence[Frames]) -> NDArray[np.float32]:
    """Log odds ``(n, n)``: column v, row w: that slice v came right after slice w.

    Equal to joining every pair, up to rounding.
    """
    net.eval()
    n = len(slices)
    ends, starts = [_before(f) for f in slices], [_after(f) for f in slices]
    left = [_sums(net, np.concatenate([np.repeat(f[:1], SEEN, axis=0), f])) for f in ends]
    right = [_sums(net, np.concatenate([f, np.repeat(f[-1:], SEEN, axis=0)])) for f in starts]
    tails = torch.from_numpy(np.stack([f[-2 * SEEN :] for f in ends]))
    heads = torch.from_numpy(np.stack([f[: 2 * SEEN] for f in starts]))
    count = torch.tensor([[len(a)] for a in ends]), torch.tensor([[len(b)] for b in starts])
    one, other = (tuple(map(torch.stack, zip(*side, strict=True))) for side in (left, right))
    found = np.empty((n, n), np.float32)
    rows = max(1, PAIRS // n)
    for at in range(0, n, rows):
        block = torch.arange(at, min(at + rows, n))
        w, v = block.repeat_interleave(n), torch.arange(n).repeat(len(block))
        joint = net.see(torch.cat([tails[w], heads[v]], dim=1))
        total = one[0][w] + other[0][v] + joint.sum(2)
        square = one[1][w] + other[1][v] + (joint**2).sum(2)
        odds = net.pooled(total, square, (count[0][w] + count[1][v]).to(total.dtype))
        found[at : at + len(block)] = odds.reshape(len(block), n).numpy()
    return found


def _sums(net: SuccessorNet, frames: Frames) -> tuple[Tensor, Tensor]:
    """Sums and sums of squares over the frames that see nothing of the other slice."""
    if len(frames) <= 2 * SEEN:
        return torch.zeros(POOLED), torch.zeros(POOLED)
    seen = net.see(torch.from_numpy(frames)[None])[0]
    return seen.sum(1), (seen**2).sum(1)
