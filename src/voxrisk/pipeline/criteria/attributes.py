"""Inference: whether further facts about a person can be deduced from the voice."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from voxrisk.pipeline.criteria.crowd import compared
from voxrisk.results import (
    AttackResult,
    AttributeAttack,
    AttributeResult,
    Criterion,
    InferenceResult,
)
from voxrisk.types import Estimate


class Told(NamedTuple):
    """How well the strongest attacker tells one attribute, and how well from original speech."""

    attribute: AttributeResult
    attack: AttributeAttack
    value: Estimate
    before: AttributeAttack | None
    original: Estimate | None

    @property
    def excess(self) -> float:
        """From 0 (guessing) to 1 (certainty)."""
        return (self.value.value - self.value.chance) / (1.0 - self.value.chance)

    @property
    def level(self) -> str:
        """As of a criterion; unknown where not even original speech tells it."""
        found = _level(self.attack, self.value, self.original)
        before = "at chance"
        if self.before and self.original:
            before = _level(self.before, self.original, None)
        return "not assessed" if found == before == "at chance" else found


def _level(attack: AttributeAttack, value: Estimate, original: Estimate | None) -> str:
    """At chance only where neither the classes named nor the order of beliefs beat guessing."""
    found = compared(value, original)
    order = attack.get("attribute_auc", value.length)
    if found == "at chance" and order and order.interval and order.interval.low > order.chance:
        return "above chance"
    return found


def inference(
    attacks: Sequence[AttackResult], inferred: InferenceResult | None = None
) -> Criterion:
    """The hidden attribute that can be told best, and a word on each of the others."""
    hidden = inferred.of("hide") if inferred else []
    found = sorted((t for a in hidden if (t := told(a))), key=lambda t: -t.excess)
    known = [t for t in found if t.level != "not assessed"]
    if not known:
        return Criterion(name="inference", level="not assessed", sentence=_nothing(hidden))
    worst, *others = known
    text = f"From {_speech(worst.value)}, an attacker tells {_told(worst)}."
    if others:
        text += f" Then: {'; '.join(map(_told, others))}."
    if unsure := [t.attribute.name for t in found if t.level == "not assessed"]:
        text += f" Not told even from original speech, so nothing is shown: {', '.join(unsure)}."
    if refused := [a.name for a in hidden if a.refused]:
        text += f" Not assessed: {', '.join(refused)}."
    return Criterion(
        name="inference",
        level=worst.level,
        sentence=f"{text} Nothing is said about other attributes.",
        attacker=worst.attack.attacker,
        value=replace(
            worst.value, parameters={**worst.value.parameters, "attribute": worst.attribute.name}
        ),
        original=worst.original,
    )


def told(attribute: AttributeResult) -> Told | None:
    """The strongest attack on anonymized speech, at the L that tells most; None if there is none.

    Attacks are held against one another by balanced accuracy at the same L; original speech stands
    beside it with its own strongest attack.
    """
    after = attribute.best("anonymized")
    if after is None:
        return None
    attack, value = after
    before = attribute.best("original", value.length)
    return Told(attribute, attack, value, *(before or (None, None)))


def _told(t: Told) -> str:
    said = f"{t.attribute.name} rightly in {_percent(t.value.value)} of cases"
    if t.level == "at chance":
        said += ", not shown to beat guessing"
    beside = f"guessing: {_percent(t.value.chance)}"
    if t.original:
        beside += f"; on original speech: {_percent(t.original.value)}"
    bits = t.attack.get("attribute_bits", t.value.length)
    if bits:
        most = float(bits.parameters["entropy"])
        beside += f"; {bits.value:.2f} of {most:.2f} bits"
    return f"{said} ({beside})"


def _speech(e: Estimate) -> str:
    spoken = "one utterance" if e.length == 1 else f"{e.length} utterances"
    return f"{spoken} of anonymized speech"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def _nothing(hidden: Sequence[AttributeResult]) -> str:
    if not hidden:
        return (
            "Whether attributes such as age, health or origin can be inferred from the voice was "
            "not assessed: the manifest names none of gender and age, and no other column was "
            "named with --hide."
        )
    reasons = [f"{a.name} ({a.refused})" for a in hidden if a.refused]
    unsure = [a.name for a in hidden if not a.refused]
    said = "Whether attributes can be inferred from the voice was not assessed: "
    if unsure:
        reasons.append(f"{' and '.join(unsure)} cannot be told even from original speech")
    return f"{said}{'; '.join(reasons)}."
