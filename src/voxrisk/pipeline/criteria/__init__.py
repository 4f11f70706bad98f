"""The criteria of Opinion 05/2014, each a function from attacks to a finding, in reading order."""

from collections.abc import Callable, Sequence

from voxrisk.pipeline.criteria.attributes import inference
from voxrisk.pipeline.criteria.crowd import linkability, singling_out
from voxrisk.results import AttackResult, Criterion

CRITERIA: tuple[Callable[[Sequence[AttackResult]], Criterion], ...] = (
    singling_out,
    linkability,
    inference,
)
