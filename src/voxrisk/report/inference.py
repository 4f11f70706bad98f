"""What the pages show about attributes: those to be hidden, and those that should survive."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from voxrisk.report import words
from voxrisk.results import AttributeAttack, AttributeResult, InferenceResult, Results
from voxrisk.types import Estimate

MOST_CLASSES = 12  # of a table of confusions
SHOWN = ("uar", "attribute_auc", "mean_error", "correlation", "attribute_bits", "attribute_worst")
ATTACKERS = {
    "ignorant": "from original speech",
    "semi-informed": "from speech of a similar anonymizer",
    "informed": "from speech of this anonymizer",
    "original": "from original speech, tried on original speech",
}
USES = {
    "hide": "to be hidden",
    "keep": "to survive",
    "either": "hidden in some runs, to survive in others",
}
SOURCES = {
    "anonymized": "inferred from anonymized speech",
    "original": "inferred from original speech",
    "true": "true attributes",
}


class Kept(NamedTuple):
    """One attribute that should survive, before and after."""

    attribute: AttributeResult
    before: Estimate
    after: Estimate
    attack: AttributeAttack
    reference: AttributeAttack

    @property
    def classes(self) -> list[tuple[str, float, float]]:
        """Each class: how often it is recognised in one original and one anonymized utterance."""
        own = zip(self.attribute.classes, self.reference.confusion, self.attack.confusion,
                  strict=True)  # fmt: skip
        return [(name, old[i], new[i]) for i, (name, old, new) in enumerate(own)]


@dataclass(frozen=True, slots=True)
class AttributeTable:
    """One attribute as it stands in the report."""

    attribute: AttributeResult

    @property
    def lengths(self) -> list[int]:
        """The shortest and the longest L."""
        every = sorted({e.length for a in self.attribute.attacks for e in a.figures})
        return sorted({every[0], every[-1]}) if every else []

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Name and label of the figures that there are."""
        have = {e.name for a in self.attribute.attacks for e in a.figures}
        return [(name, words.LABELS[name]) for name in SHOWN if name in have]

    @property
    def entropy(self) -> float:
        """Bits there are to learn."""
        figures = (e for a in self.attribute.attacks for e in a.figures)
        return next(float(e.parameters["entropy"]) for e in figures if e.name == "attribute_bits")

    @property
    def closer(self) -> list[AttributeAttack]:
        """The strongest attack on either speech, for confusions and calibration."""
        found = (self.attribute.best(tests) for tests in ("anonymized", "original"))
        return [row[0] for row in found if row]

    @property
    def confused(self) -> bool:
        """Whether confusions fit a page."""
        return len(self.attribute.classes) <= MOST_CLASSES


def inference_context(inferred: InferenceResult | None) -> dict[str, object]:
    """What the template of the report needs."""
    found = inferred or InferenceResult()
    used = {k.attacker for a in found.attributes for k in a.attacks}
    return {
        "learners": {name: words for name, words in ATTACKERS.items() if name in used},
        "attributes": [AttributeTable(a) for a in found.of("hide") if a.attacks],
        "refused": [a for a in found.of("hide") if a.refused],
        "kept": [row for a in found.of("keep") if (row := _kept(a))],
        "together": found.together,
        "sources": SOURCES,
    }


def _kept(attribute: AttributeResult) -> Kept | None:
    after = attribute.best("anonymized")
    before = attribute.best("original", after[1].length) if after else None
    if before is None or after is None:
        return None
    return Kept(attribute, before[1], after[1], after[0], before[0])


@dataclass(frozen=True, slots=True)
class AttributeColumn:
    """One attribute in a comparison: the strongest attack that every run has, at one L.

    ``use`` is ``"hide"``, ``"keep"``, or ``"either"`` where runs disagree.
    """

    name: str
    use: str
    length: int
    cells: tuple[tuple[Estimate, AttributeAttack], ...]
    original: Estimate | None


def compared_attributes(runs: Sequence[Results]) -> list[AttributeColumn]:
    """Attributes that every run assessed, under the attackers and at the longest L all have.

    Only where the classes are the same: to guess one of six is another task than one of eight.
    """
    have = [{a.name: a for a in _assessed(run)} for run in runs]
    shared = [name for name in have[0] if all(name in mine for mine in have)]
    own = ([mine[name] for mine in have] for name in shared)
    columns = (_column(same) for same in own if len({a.classes for a in same}) == 1)
    return [column for column in columns if column]


def not_compared(runs: Sequence[Results]) -> list[str]:
    """Attributes of some runs that cannot be held against the others."""
    compared = {column.name for column in compared_attributes(runs)}
    return sorted({a.name for run in runs for a in _assessed(run)} - compared)


def _assessed(run: Results) -> list[AttributeResult]:
    return [a for a in run.inference.attributes if a.attacks] if run.inference else []


def _column(own: Sequence[AttributeResult]) -> AttributeColumn | None:
    attackers = set.intersection(
        *({(k.attacker, k.learned_from) for k in a.attacks if not k.reference} for a in own)
    )
    lengths = set.intersection(*({e.length for k in a.attacks for e in k.figures} for a in own))
    if not attackers or not lengths:
        return None
    length = max(lengths)
    cells = [
        max(
            (
                (e, k)
                for k in a.attacks
                if (k.attacker, k.learned_from) in attackers and (e := k.get("uar", length))
            ),
            key=lambda row: row[0].value,
        )
        for a in own
    ]
    before = own[0].best("original", length)
    uses = {a.use for a in own}
    use = uses.pop() if len(uses) == 1 else "either"
    return AttributeColumn(own[0].name, use, length, tuple(cells), before[1] if before else None)
