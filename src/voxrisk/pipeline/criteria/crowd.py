"""Singling out and linkability: what the strongest attacker reaches in the largest crowd.

In a large crowd even a strong attacker may come down to guessing, above all in singling out. Such a
crowd is no answer where a smaller one has another: then the largest crowd is told in which
guessing is beaten.
"""

from collections.abc import Sequence
from functools import partial

from voxrisk.results import AttackResult, Criterion, InferenceResult
from voxrisk.types import Estimate


def _finding(
    attacks: Sequence[AttackResult],
    inferred: InferenceResult | None = None,
    *,
    name: str,
    metric: str,
    words: str,
) -> Criterion:
    ranked = [
        (e, attack)
        for attack in attacks
        if not attack.reference and attack.ranked
        for e in largest(attack, metric)
    ]
    if not ranked:
        return Criterion(
            name=name,
            level="not assessed",
            sentence=f"There is too little speech to assess {name}.",
        )
    e, worst = max(ranked, key=_excess)
    beaten = [
        (smaller, attack)
        for attack in attacks
        if not attack.reference and attack.ranked
        for smaller in _beaten(attack, metric)
    ]
    crowded = ""
    if compared(e, None) == "at chance" and beaten:
        crowded = f" Among {e.size} people it is not shown to beat guessing ({_percent(e.value)})."
        e, worst = max(beaten, key=lambda row: (row[0].size, _excess(row)))
    reference = next((a for a in attacks if a.reference), None)
    original = reference.at(metric, e.length, e.size) if reference else None
    spoken = "one utterance" if e.length == 1 else f"{e.length} utterances"
    said = words.format(N=e.size, value=f"in {_percent(e.value)} of the tries")
    text = f"From {spoken} of anonymized speech, {said} (by guessing: {_percent(e.chance)}"
    text += f"; in original speech: {_percent(original.value)})." if original else ")."
    return Criterion(
        name=name,
        level=compared(e, original),
        sentence=text + crowded,
        attacker=worst.name,
        value=e,
        original=original,
    )


singling_out = partial(
    _finding,
    name="singling out",
    metric="singling_out",
    words="the strongest attacker isolates exactly one of {N} people {value}",
)
linkability = partial(
    _finding,
    name="linkability",
    metric="linkability",
    words="the strongest attacker finds the right one of {N} people {value}",
)


def _excess(found: tuple[Estimate, AttackResult]) -> float:
    """How far an estimate is above guessing."""
    return found[0].value - found[0].chance


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def largest(attack: AttackResult, metric: str) -> list[Estimate]:
    """For each L, the estimate with the largest crowd."""
    lengths = sorted({e.length for e in attack.crowd if e.name == metric})
    return [attack.curve(metric, length)[-1] for length in lengths]


def _beaten(attack: AttackResult, metric: str) -> list[Estimate]:
    """For each L, the largest crowd in which guessing is beaten, if it is in two or more.

    One of several crowds is above guessing by luck in a sixth of tests in which voices tell nothing
    (61 of 400 simulated ones, four crowds, two L); two of one L are in one of a hundred.
    """
    found = []
    for length in sorted({e.length for e in attack.crowd if e.name == metric}):
        curve = attack.curve(metric, length)
        above = [e for e in curve if e.interval and compared(e, None) != "at chance"]
        found += above[-1:] if len(above) > 1 else []
    return found


def compared(e: Estimate, original: Estimate | None) -> str:
    """Hold an estimate against chance and against original speech."""
    low = e.interval.low if e.interval else e.value
    if low <= e.chance or e.value <= e.chance:
        return "at chance"
    high = e.interval.high if e.interval else e.value
    if original and high >= original.value:
        return "as original"
    return "above chance"
