"""What to doubt about an attribute: labels, few speakers, and whether it is only a shadow.

An attribute may be the shadow of something else: a language, a session, a text, a recording.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance
from voxrisk.corpus.attributes import FEWEST, Attribute, known_value
from voxrisk.measure.attributes import prior_entropy
from voxrisk.notices import Notice, notice

RECORDING = ("source", "subset", "corpus", "channel", "device", "microphone", "room")
SHUFFLES = 200
SHARE = 0.3  # of what there is to know, beyond what chance explains
EVIDENT = 0.01  # share of shuffles that explain as much
FEW = 10  # speakers of a class, below which the reader is told
MANY = 20  # classes, above which the reader is told


def doubts(
    rows: Sequence[Utterance], attribute: Attribute, *, asked: bool, seed: int
) -> list[Notice]:
    """Everything that limits what can be said about an attribute, or why nothing can be said.

    Args:
        rows: Original speech.
        attribute: One of its columns.
        asked: Whether it was named, or is only assessed where it is known.
        seed: Of the shuffles behind confounds.
    """
    name, found = attribute.name, []
    if attribute.refused:
        code = "attribute_refused" if asked else "attribute_absent"
        return [notice(code, name=name, why=attribute.refused)]
    if attribute.unlabelled:
        total = len({row.speaker for row in rows})
        found.append(
            notice("attribute_unlabelled", name=name, count=attribute.unlabelled, total=total)
        )
    if attribute.unread:
        found.append(notice("attribute_unread", name=name, count=attribute.unread))
    if attribute.rare:
        found.append(
            notice("attribute_rare", name=name, count=attribute.rare, fewest=FEWEST,
                   lost=attribute.rare_speakers)
        )  # fmt: skip
    if min(attribute.speakers) < FEW:
        found.append(notice("attribute_few", name=name, fewest=min(attribute.speakers)))
    if len(attribute.classes) > MANY:
        k = len(attribute.classes)
        found.append(notice("attribute_many", name=name, classes=k, chance=1.0 / k))
    return [*found, *confounds(rows, attribute, seed=seed)]


def confounds(rows: Sequence[Utterance], attribute: Attribute, *, seed: int) -> list[Notice]:
    """A notice for each thing that tells the attribute without any voice."""
    others = {"language": "language", "session": "session", "text": "text",
              **{name: f"the recording ({name})" for name in RECORDING}}  # fmt: skip
    found = []
    for column, words in others.items():
        if column == attribute.name:
            continue
        told = {row.utterance: known_value(row, column).casefold() for row in rows}
        share = explained(rows, attribute, told, seed=seed)
        if share is not None:
            found.append(
                notice("attribute_confounded", name=attribute.name, other=words, share=share)
            )
    suffix = {row.utterance: row.path.suffix.casefold() for row in rows}
    share = explained(rows, attribute, suffix, seed=seed)
    if share is not None:
        words = "the recording (format of the file)"
        found.append(notice("attribute_confounded", name=attribute.name, other=words, share=share))
    return found


def explained(
    rows: Sequence[Utterance], attribute: Attribute, other: Mapping[str, str], *, seed: int
) -> float | None:
    """Share of the attribute's entropy that another column explains, or None if not shown.

    Only values of the other column that at least two speakers share count: what is a speaker's own
    (most sessions) goes with every attribute of this speaker and tells nothing. One pair of speaker
    and value is one case; shuffled attributes say what chance explains.
    """
    whose: dict[str, set[str]] = {}
    for row in rows:
        if other.get(row.utterance) and row.utterance in attribute.label:
            whose.setdefault(other[row.utterance], set()).add(row.speaker)
    shared = {value for value, who in whose.items() if len(who) > 1}
    cases = sorted(
        {
            (row.speaker, other[row.utterance], attribute.label[row.utterance])
            for row in rows
            if row.utterance in attribute.label and other.get(row.utterance) in shared
        }
    )
    labelled = {row.speaker for row in rows if row.utterance in attribute.label}
    if len({who for who, _, _ in cases}) < max(4, len(labelled) / 2) or len(shared) < 2:
        return None
    value = np.unique([v for _, v, _ in cases], return_inverse=True)[1]
    label = np.array([c for _, _, c in cases])
    speakers = np.array([s for s, _, _ in cases])
    seen = _share(value, label)
    rng = np.random.default_rng(seed)
    by_chance = np.array(
        [_share(value, _shuffled(label, speakers, attribute.per, rng)) for _ in range(SHUFFLES)]
    )
    gained = (seen - by_chance.mean()) / max(1.0 - by_chance.mean(), 1e-9)
    return float(seen) if gained > SHARE and (by_chance >= seen).mean() <= EVIDENT else None


def _shuffled(
    label: NDArray[np.int64], speakers: NDArray[np.str_], per: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    if per == "utterance":
        return np.asarray(rng.permutation(label))
    _, first, who = np.unique(speakers, return_index=True, return_inverse=True)
    return np.asarray(rng.permutation(label[first])[who])


def _share(value: NDArray[np.intp], label: NDArray[np.int64]) -> float:
    table = np.zeros((int(value.max()) + 1, int(label.max()) + 1))
    np.add.at(table, (value, label), 1.0 / value.size)
    whole = prior_entropy(table.sum(axis=0))
    rest = sum(row.sum() * prior_entropy(row / row.sum()) for row in table)
    return float(1.0 - rest / whole) if whole > 0.0 else 0.0
