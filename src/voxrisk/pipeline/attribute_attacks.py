"""Attackers on attributes: who learned from what, and what each infers.

Attackers know as much as those who recognise people: one learned from original speech, one from a
similar anonymizer's, one from this anonymizer's. Each learns from training speech where that knows
the attribute, and also from the other speakers of the speech under test, part by part; nothing of a
speaker is ever on both sides. The people under attack have no say in what an attacker listens to.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk import shards
from voxrisk.attack.attributes import Labelled, guess_by_folds, join_utterances, train_guesser
from voxrisk.corpus import Utterance
from voxrisk.corpus.attributes import FEWEST, Attribute, labels_like
from voxrisk.measure.attributes import confusion, measure_attribute, reliability
from voxrisk.measure.logistic import Floats
from voxrisk.measure.narrowing import beliefs_in_people, measure_narrowing, true_beliefs
from voxrisk.measure.posteriors import Beliefs, believe
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.results import AttributeAttack, AttributeResult, InferenceResult, Narrowing
from voxrisk.types import Estimate, InputError

# Speech to learn from → the attacker who has it.
ATTACKERS = {"original": "ignorant", "similar": "semi-informed", "anonymized": "informed"}
OTHERS, TRAINING, BOTH = "other speakers", "training speech", "both"


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Utterances and what each kind of features makes of them."""

    rows: tuple[Utterance, ...]
    vectors: Mapping[str, NDArray[np.floating]]


@dataclass(frozen=True, slots=True, eq=False)
class _Inferred:
    """One attack on one attribute, and the beliefs behind its figures, by L."""

    attack: AttributeAttack
    beliefs: Mapping[int, Beliefs]

    @property
    def strength(self) -> float:
        """Bits at the longest L: what ranks attackers."""
        top = self.attack.get("attribute_bits", max(self.beliefs))
        return float(top.parameters["uncut"]) if top else float("-inf")


def infer(
    chosen: Evaluation,
    wanted: Sequence[tuple[Attribute, str]],
    heard: Mapping[str, Features],
    learned: Mapping[str, Features],
) -> InferenceResult:
    """Every attacker on every attribute, and what they narrow the crowd to.

    Args:
        chosen: Seed, lengths, resamples and confidence.
        wanted: Attributes, each with ``"hide"`` or ``"keep"``.
        heard: The speech under test, ``"original"`` and ``"anonymized"``.
        learned: Training speech, ``"original"``, ``"similar"`` and ``"anonymized"``, as far as
            there is any.
    """
    results, best = [], []
    work = functools.partial(_attacks, chosen, heard, learned)
    found = shards.run(work, [attribute for attribute, _ in wanted], label="attributes")
    for (attribute, use), attacks in zip(wanted, found, strict=True):
        attacks.sort(key=lambda i: (i.attack.reference, -i.strength))
        results.append(
            AttributeResult(
                name=attribute.name,
                use=use,
                kind=attribute.kind,
                per=attribute.per,
                classes=attribute.classes,
                speakers=attribute.speakers,
                attacks=tuple(i.attack for i in attacks),
            )
        )
        if use == "hide" and attribute.per == "speaker":
            best.append((attribute, attacks))
    return InferenceResult(attributes=tuple(results), together=_together(chosen, best))


def enough_speakers(rows: Sequence[Utterance], attribute: Attribute) -> bool:
    """Whether every class of an attribute has speakers enough in some speech to be learned."""
    label, _ = labels_like(rows, attribute)
    people: dict[int, set[str]] = {c: set() for c in range(len(attribute.classes))}
    for row in rows:
        if row.utterance in label:
            people[label[row.utterance]].add(row.speaker)
    return min(map(len, people.values())) >= FEWEST


def _labelled(
    heard: Features, label: Mapping[str, int], value: Mapping[str, float]
) -> tuple[Labelled, NDArray[np.str_]]:
    """The utterances whose attribute is known, and their ids."""
    kept = np.array([row.utterance in label for row in heard.rows])
    rows = [row for row in heard.rows if row.utterance in label]
    return Labelled(
        np.array([row.speaker for row in rows]),
        np.array([label[row.utterance] for row in rows], dtype=np.int64),
        {name: vectors[kept] for name, vectors in heard.vectors.items()},
        np.array([value[row.utterance] for row in rows]) if value else None,
    ), np.array([row.utterance for row in rows])


def _attacks(
    chosen: Evaluation,
    heard: Mapping[str, Features],
    learned: Mapping[str, Features],
    attribute: Attribute,
) -> list[_Inferred]:
    """Every attacker on one attribute."""
    classes, seed = len(attribute.classes), chosen.seed
    tested = {kind: _labelled(h, attribute.label, attribute.value) for kind, h in heard.items()}
    original, anonymized = tested["original"][0], tested["anonymized"][0]
    found: list[_Inferred] = []

    def add(attacker: str, source: str, tests: str, scores: Floats, features: str) -> None:
        found.append(_measured(chosen, attacker, source, tests, features, scores, *tested[tests],
                               classes))  # fmt: skip

    def by_folds(source: str, kind: str, known: Labelled) -> None:
        versions = [original, anonymized] if kind == "original" else [anonymized]
        scores, ears = guess_by_folds(known, versions, classes=classes, seed=seed)
        if kind == "original":
            add("original", source, "original", scores[0], _most(ears))
        add(ATTACKERS[kind], source, "anonymized", scores[-1], _most(ears))

    by_folds(OTHERS, "original", original)
    by_folds(OTHERS, "anonymized", anonymized)
    for kind in ATTACKERS:
        if kind not in learned or not enough_speakers(learned[kind].rows, attribute):
            continue
        train, _ = _labelled(learned[kind], *labels_like(learned[kind].rows, attribute))
        guess = train_guesser(train, classes=classes, seed=seed)
        if kind == "original":
            add("original", TRAINING, "original", guess(original), guess.features)
        add(ATTACKERS[kind], TRAINING, "anonymized", guess(anonymized), guess.features)
        if kind != "similar":
            by_folds(BOTH, kind, tested[kind][0].joined(train))
    return found


def _most(names: Sequence[str]) -> str:
    """What most folds chose."""
    return max(dict.fromkeys(names), key=list(names).count)


def _measured(
    chosen: Evaluation,
    attacker: str,
    source: str,
    tests: str,
    features: str,
    scores: Floats,
    known: Labelled,
    utterance: NDArray[np.str_],
    classes: int,
) -> _Inferred:
    """The figures of one attack for every L that enough speakers have speech for."""
    beliefs: dict[int, Beliefs] = {}
    figures: list[Estimate] = []
    for length in chosen.limits.lengths:
        if not _long_enough(known, length, classes):
            continue
        joined, truth, speaker, key, value = join_utterances(
            scores, known, utterance, length=length, seed=chosen.seed
        )
        beliefs[length] = believe(
            joined, truth, speaker, classes=classes, key=key, value=value, seed=chosen.seed
        )
        figures += measure_attribute(
            beliefs[length],
            length=length,
            resamples=chosen.limits.resamples,
            seed=chosen.seed,
            confidence=chosen.confidence,
        )
    first = beliefs[min(beliefs)]
    attack = AttributeAttack(
        attacker=attacker,
        learned_from=source,
        tests=tests,
        features=features,
        figures=tuple(figures),
        confusion=tuple(map(tuple, np.round(confusion(first), 4).tolist())),
        calibration=tuple(reliability(first)),
    )
    return _Inferred(attack, beliefs)


def _long_enough(known: Labelled, length: int, classes: int) -> bool:
    """Whether each class keeps most of its speakers, and enough, when L utterances are joined."""
    if length == 1:
        return True
    for c in range(classes):
        each = np.unique(known.speaker[known.truth == c], return_counts=True)[1]
        if (each >= length).sum() < max(FEWEST, each.size / 2):
            return False
    return True


def _together(
    chosen: Evaluation, best: Sequence[tuple[Attribute, Sequence[_Inferred]]]
) -> tuple[Narrowing, ...]:
    """How far all hidden attributes of speakers narrow the crowd: true, before and after."""
    if len(best) < 2:
        return ()
    names = tuple(a.name for a, _ in best)
    length = max(set.intersection(*(set(i.beliefs) for _, found in best for i in found)))
    options = {"length": length, "seed": chosen.seed, "confidence": chosen.confidence}
    found = []
    for source in ("anonymized", "original"):
        mine = [
            max((i for i in all_of if i.attack.tests == source), key=lambda i: i.strength)
            for _, all_of in best
        ]
        try:
            belief, heard, people = beliefs_in_people([i.beliefs[length] for i in mine])
        except InputError:
            return ()
        left, share = measure_narrowing(
            belief,
            heard,
            people,
            resamples=chosen.limits.resamples,
            **options,  # type: ignore[arg-type]
        )
        found.append(Narrowing(attributes=names, source=source, left=left, found=share))
    of = [
        dict(zip(b.speaker.tolist(), b.truth.tolist(), strict=True))
        for b in (i.beliefs[length] for i in mine)
    ]
    classes = np.array([[known[s] for known in of] for s in people.tolist()])
    left, share = measure_narrowing(
        true_beliefs(classes),
        np.arange(people.size),
        people,
        resamples=0,
        **options,  # type: ignore[arg-type]
    )
    return (*found, Narrowing(attributes=names, source="true", left=left, found=share))
