"""Person by person over all attackers: it is enough to be found by one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from voxrisk.measure.intervals import exact_interval
from voxrisk.results import AttackResult, Exposed, Exposure
from voxrisk.types import Estimate

SOURCE = "share of speakers whom some attacker links at least so often"


def exposure(
    attacks: Sequence[AttackResult], *, risk: float, confidence: float = 0.95
) -> Exposure | None:
    """For each speaker the attacker who links them most often, and how many stand above ``risk``.

    Attackers who failed a control, and the reference on original speech, do not count. None where
    nothing was measured person by person. With more attackers more people are found by accident
    too: the figure of a single attacker says what one of them finds.
    """
    worst: dict[str, Exposed] = {}
    for attack in attacks:
        if attack.reference or not attack.ranked:
            continue
        for person in attack.speakers:
            if person.linkability is None:
                continue
            found = Exposed(person.speaker, person.linkability, attack.name)
            before = worst.get(person.speaker)
            if before is None or found.linkability > before.linkability:
                worst[person.speaker] = found
    if not worst:
        return None
    above = sum(found.linkability >= risk for found in worst.values())
    share = Estimate(
        "people_at_risk",
        above / len(worst),
        0.0,
        {"speaker": len(worst), "above": above},
        SOURCE,
        exact_interval(above, len(worst), confidence=confidence),
        {"risk": risk},
    )
    return Exposure(risk, share, _ordered(worst.values()))


def renamed(found: Exposure | None, alias: Mapping[str, str]) -> Exposure | None:
    """The same with speakers under other names, in an order that tells nothing of their ids."""
    if found is None:
        return None
    people = [replace(person, speaker=alias[person.speaker]) for person in found.people]
    return replace(found, people=_ordered(people))


def _ordered(people: Iterable[Exposed]) -> tuple[Exposed, ...]:
    return tuple(sorted(people, key=lambda p: (-p.linkability, p.speaker)))
