"""The criteria of Opinion 05/2014, each a function of what was found, in reading order."""

from collections.abc import Callable, Sequence

from voxrisk.pipeline.criteria.attributes import inference
from voxrisk.pipeline.criteria.crowd import linkability, singling_out
from voxrisk.results import AttackResult, Criterion, InferenceResult

CRITERIA: tuple[Callable[[Sequence[AttackResult], InferenceResult | None], Criterion], ...] = (
    singling_out,
    linkability,
    inference,
)
