"""The verdict: what the figures say about the criteria, and whether they may say it at all."""

from collections.abc import Sequence
from dataclasses import replace

from voxrisk.pipeline.criteria import CRITERIA
from voxrisk.results import AttackResult, Control, Criterion, InferenceResult, Verdict

INFERENCE = "inference"
# What a failed control means for the whole test, in words that can stand in a headline.
FATAL = {
    "pairs": "anonymized files are copies of originals",
    "speed": "the original speech does not run at its true speed",
    "positive": "the recogniser does not recognise people even in original speech",
    "negative": "the attack succeeds even when the names of the speakers are exchanged",
}


def give_verdict(
    attacks: Sequence[AttackResult],
    controls: Sequence[Control],
    failed: Sequence[str] = (),
    inferred: InferenceResult | None = None,
) -> Verdict:
    """Every criterion, and one headline that no failed control can stand behind.

    ``failed`` are attackers that should have run and could not; ``inferred`` is what is known about
    attributes.
    """
    criteria = [criterion(attacks, inferred) for criterion in CRITERIA]
    fatal = [FATAL[c.code] for c in controls if c.passed is False and not c.attacker
             and c.code in FATAL]  # fmt: skip
    unsound = sorted({c.attacker for c in controls if c.attacker and c.passed is False})
    shown = [c for c in criteria if c.assessed and c.level != "at chance" and c.name != INFERENCE]
    if fatal:
        why = " and ".join(dict.fromkeys(fatal))
        headline = f"This test failed: {why}. Nothing below shows that speakers are protected."
        criteria = [_void(c) for c in criteria]
    elif unsound and not shown:
        headline = (
            f"This test failed: the {' and '.join(unsound)} attacker did not learn to recognise "
            "anybody. That the others did no better than guessing shows no privacy."
        )
        criteria = [_void(c) for c in criteria]
    else:
        headline = _headline(criteria)
        if unsound:
            what = "failed their controls and are" if unsound[1:] else "failed its control and is"
            headline += f" {_named(unsound)} {what} not counted: the true risk may be higher."
    if not fatal:
        headline += _inferred(criteria)
    if failed and not fatal:
        headline += f" {_named(failed)} could not run: the risk may be higher."
    for control in controls:
        if control.passed is False and control.code in REMARKS:
            headline += f" {REMARKS[control.code]}"
    return Verdict(headline=headline, criteria=tuple(criteria))


REMARKS = {
    "transcripts": "The test of what the speech is still good for failed: the transcripts do not "
    "fit the original speech, or the speech recogniser does not.",
    "words": "Here the words alone give speakers away as well as the voices do.",
}


def _named(attackers: Sequence[str]) -> str:
    """Attackers at the beginning of a sentence.

    >>> _named(["informed"]), _named(["a", "b"])
    ('The informed attacker', 'The attackers a and b')
    """
    if len(attackers) == 1:
        return f"The {attackers[0]} attacker"
    return f"The attackers {' and '.join(attackers)}"


def _void(criterion: Criterion) -> Criterion:
    """A finding that must not be believed."""
    if not criterion.assessed:
        return criterion
    return replace(criterion, level="test failed")


def _inferred(criteria: Sequence[Criterion]) -> str:
    """What the headline adds about attributes: it is another risk than being recognised."""
    for c in criteria:
        if c.name == INFERENCE and c.level == "as original":
            return f" {_attribute(c)} can be told from the voices as well as before."
        if c.name == INFERENCE and c.level == "above chance":
            return f" {_attribute(c)} can still be told from the voices better than by guessing."
    return ""


def _attribute(criterion: Criterion) -> str:
    """What can be told best, at the beginning of a sentence."""
    named = criterion.value.parameters.get("attribute") if criterion.value else None
    return str(named or "attributes of people").capitalize()


# The headline by the worst degree of a finding above chance; 0 where it has none.
ABOVE = {
    0: "People can still be recognised better than by guessing.",
    1: "People are much harder to recognise than in the original speech, but still easier than by "
    "guessing.",
    2: "People are harder to recognise than in the original speech, but still far easier than by "
    "guessing.",
    3: "People can be recognised nearly as well as in the original speech.",
}


def _headline(criteria: Sequence[Criterion]) -> str:
    """One or two sentences that need no other word of the page."""
    found = [c for c in criteria if c.assessed and c.name != INFERENCE]
    as_before = [c.name for c in found if c.level == "as original"]
    if not found:
        return "Whether people can be recognised could not be measured with this speech."
    if len(as_before) == len(found):
        return (
            "No protection was shown: the strongest attacker tried recognises people as well as in "
            "the original speech."
        )
    if as_before:
        return (
            f"People can still be recognised: in {' and '.join(as_before)}, the strongest attacker "
            "tried does as well as on the original speech."
        )
    above = [c.degree for c in found if c.level == "above chance"]
    if above:
        return ABOVE[max(above)]
    return (
        "None of the attackers tried recognised people measurably better than by guessing. That is "
        "no proof of anonymity: a stronger attacker may."
    )
