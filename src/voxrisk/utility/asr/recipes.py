"""How a recogniser is trained: rows of data."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides how a recogniser is trained.

    Attributes:
        frames: What it hears, a row of :data:`voxrisk.utility.asr.frames.KINDS`.
        width: Channels.
        blocks: Convolutions above the first.
        kernel: Frames that each of them sees.
        stride: Frames that the first one takes for one.
        dropout: Share of channels that are silent in training.
        batch_seconds: Speech in a step.
        steps: How many.
        rate: The highest learning rate.
    """

    frames: str = "whisper"
    width: int = 128
    blocks: int = 1
    kernel: int = 3
    stride: int = 1
    dropout: float = 0.15
    batch_seconds: float = 30.0
    steps: int = 600
    rate: float = 6e-3


RECIPES: Mapping[str, Recipe] = {
    # Above a ready encoder little is left to learn: minutes on one core.
    "whisper": Recipe(),
    # From filter banks everything is: for a GPU, and for a hundred hours of speech and more.
    "fbank": Recipe(
        frames="fbank",
        width=512,
        blocks=12,
        kernel=11,
        stride=2,
        dropout=0.1,
        batch_seconds=480.0,
        steps=20_000,
        rate=1e-3,
    ),
}
