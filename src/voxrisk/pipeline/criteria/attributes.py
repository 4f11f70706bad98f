"""Inference: whether further facts about a person can be deduced from the voice."""

from collections.abc import Sequence

from voxrisk.results import AttackResult, Criterion


def inference(attacks: Sequence[AttackResult]) -> Criterion:
    """No attack of this run deduces facts, so nothing is said about it."""
    return Criterion(
        name="inference",
        level="not assessed",
        sentence="Whether attributes such as age, health or origin can be inferred from the voice "
        "was not assessed.",
    )
