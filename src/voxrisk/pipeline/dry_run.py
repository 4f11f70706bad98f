"""What an evaluation would do: every check of the real run up to the first stage that is missing.

It is the run itself that is asked, with a store that makes nothing, so that what counts as finished
here is what the run will find finished.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from voxrisk.pipeline.course import Step
from voxrisk.pipeline.estimate import expected_steps
from voxrisk.pipeline.evaluate import attack_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.given import with_enrolment
from voxrisk.pipeline.inference import check_asked, infer_attributes
from voxrisk.pipeline.speech import prepare_speech
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.usefulness import measure_usefulness
from voxrisk.progress import duration
from voxrisk.store import Took
from voxrisk.types import cores


class _NotMadeError(Exception):
    """A stage is not finished."""


class _Looking(Stages):
    """A store that finds and makes nothing."""

    def entry(
        self,
        kind: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], None],
        *,
        label: str,
        version: int = 1,
        fresh: bool = False,
    ) -> Path:
        folder, _ = self.place(kind, inputs, version)
        if self._found(folder, kind, label, fresh=fresh):
            return folder
        raise _NotMadeError

    def timed(self, kind: str, label: str) -> NoReturn:
        """Work that is not kept is never finished."""
        raise _NotMadeError


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is finished, and the steps that are left."""

    finished: tuple[Took, ...]
    left: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """What is left, on the cores of this machine."""
        return sum(step.seconds for step in self.left)

    def text(self) -> str:
        """For people."""
        lines = [f"  finished  {t.stage} {t.label}" for t in self.finished]
        lines += [f"  {duration(step.seconds):>8}  {step.stage} {step.label}" for step in self.left]
        count = f"{cores()} core{'s' if cores() > 1 else ''}"
        lines.append(
            f"About {duration(self.seconds)} on {count}, by what the stages cost on the machine "
            "they were measured on; a run tells more as it goes."
        )
        return "\n".join(lines)


def look_ahead(
    chosen: Evaluation, folder: Path, *, stages: Path | None = None, fresh: bool = False
) -> Outlook:
    """What the evaluation would use again, and what it would do; nothing is made.

    Raises:
        InputError: As the run itself would, as far as that can be known.
    """
    home = stages or folder / "stages"
    if not home.is_dir():
        with tempfile.TemporaryDirectory() as nowhere:
            return Outlook((), tuple(expected_steps(chosen, Stages(Path(nowhere)))))
    kept = _Looking(home, fresh=fresh)
    steps = expected_steps(chosen, kept)
    check_asked(chosen, kept)
    with tempfile.TemporaryDirectory() as aside:
        _look(chosen, kept, Path(aside))
    finished = tuple(t for t in kept.took if t.reused)
    return Outlook(finished, tuple(_without(steps, finished)))


def _look(chosen: Evaluation, kept: _Looking, aside: Path) -> None:
    try:
        speech = with_enrolment(chosen, prepare_speech(chosen, kept), kept)
    except _NotMadeError:
        return
    for part in (
        lambda: attack_speech(chosen, speech, kept, aside),
        lambda: measure_usefulness(chosen, speech, kept),
        lambda: infer_attributes(chosen, speech, kept),
    ):
        try:
            part()
        except _NotMadeError:
            continue


def _without(steps: Sequence[Step], finished: Sequence[Took]) -> list[Step]:
    """The steps that are left; of several alike the first are finished first."""
    known = Counter((t.stage, t.what) for t in finished)
    left = []
    for step in steps:
        if known[step.stage, step.what] > 0:
            known[step.stage, step.what] -= 1
        else:
            left.append(step)
    return left
