"""How far a run is, and how long it should take: what stages cost, and what they took so far.

Costs are rows of data, measured once (:data:`COSTS`): another machine is faster or slower, so what
is left is told by the pace of the run itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

from voxrisk.progress import duration
from voxrisk.store import Took
from voxrisk.types import cores

EVEN = 60.0  # seconds of work after which the pace of a run says more than the table


class Cost(NamedTuple):
    """Seconds of one core: for a stage at all, and for each second of speech in it.

    ``spread`` says that all cores share the work.
    """

    start: float
    each: float
    spread: bool = True


# (stage, tool) → cost. Of a stage whose tool is not listed: that of "". CPU seconds of run.json of
# `voxrisk evaluate` on one core of a server (2.5 GHz); another machine has another pace.
COSTS: dict[tuple[str, str], Cost] = {
    ("check", ""): Cost(0.2, 0.001),
    ("anonymize", ""): Cost(5.0, 0.2),
    ("anonymize", "mcadams"): Cost(1.0, 0.012),
    ("anonymize", "world"): Cost(1.0, 0.1),
    ("anonymize", "knn"): Cost(10.0, 0.15),
    ("anonymize", "private-knn"): Cost(10.0, 0.4),
    ("anonymize", "pool"): Cost(10.0, 0.2),
    ("embed", ""): Cost(2.0, 0.042),
    ("embed", "wespeaker-resnet34"): Cost(2.0, 0.044),
    ("embed", "prosody"): Cost(0.5, 0.01),
    ("embed", "durations"): Cost(0.5, 0.042),
    ("embed", "longterm"): Cost(0.1, 0.0015),
    ("embed", "moonshine-base"): Cost(2.0, 0.1),
    ("undo", ""): Cost(0.2, 0.011),
    ("train", ""): Cost(1.0, 0.005, spread=False),
    ("suite", ""): Cost(1.0, 0.01, spread=False),
    ("utility", ""): Cost(5.0, 0.2),
    ("utility", "moonshine-base"): Cost(5.0, 0.18),
    ("utility", "whisper-base"): Cost(5.0, 0.48),
    ("utility", "whisper-small"): Cost(5.0, 1.3),
    ("infer", ""): Cost(0.5, 0.002, spread=False),
    ("align", ""): Cost(0.5, 0.02),
    ("slice", ""): Cost(1.0, 0.01),
    ("recognise", ""): Cost(1.0, 0.0, spread=False),
    ("read", ""): Cost(0.5, 0.003, spread=False),
    ("learn", ""): Cost(20.0, 0.005, spread=False),
    ("follow", ""): Cost(0.5, 0.02, spread=False),
    ("utility", "slices heard"): Cost(5.0, 0.1),
    ("utility", "slices learned from"): Cost(10.0, 0.014),
    ("measure", ""): Cost(8.0, 0.0, spread=False),
    ("control", ""): Cost(8.0, 0.0, spread=False),
}


class Step(NamedTuple):
    """A stage that a run will go through: its kind, its tool, and how much speech it hears."""

    stage: str
    what: str = ""
    speech: float = 0.0
    label: str = ""

    @property
    def seconds(self) -> float:
        """What it should take on the cores of this machine."""
        known = COSTS.get((self.stage, self.what)) or COSTS.get((self.stage, ""))
        if known is None:
            return 0.0
        shared_by = cores() if known.spread else 1
        return known.start + known.each * self.speech / shared_by


class Course:
    """The stages that a run should go through, and where it is."""

    def __init__(self, expected: Sequence[Step] = ()) -> None:
        self.total = sum(step.seconds for step in expected)
        self.reused = self.done = self.took = 0.0

    def passed(self, took: Took) -> str:
        """Go past a stage; what to say of it: its time, the share of the run, and what is left."""
        cost = Step(took.stage, took.what, took.speech_seconds).seconds
        if took.reused:
            self.reused += cost
            return "finished before"
        self.done += cost
        self.took += took.seconds
        said = f"done in {duration(took.seconds)}"
        whole = self.beforehand
        if self.total <= 0 or whole <= 0:  # nobody said what is to come
            return said
        share = min(self.done / whole, 0.99)
        return f"{said}; {100 * share:.0f} % of the run, about {duration(self.left)} left"

    @property
    def beforehand(self) -> float:
        """Seconds that the whole run should take, without what was finished before."""
        return max(self.total - self.reused, self.done)

    @property
    def left(self) -> float:
        """Seconds left at the pace of this run, as far as it is known."""
        pace = (self.took + EVEN) / (self.done + EVEN)
        return max(self.beforehand - self.done, 0.0) * pace
