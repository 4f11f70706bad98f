"""Neural attackers on text."""

from collections.abc import Callable, Sequence

from voxrisk.attack.successors import Scorer

NEURAL: dict[str, Callable[[Sequence[Sequence[str]]], Scorer]] = {}
