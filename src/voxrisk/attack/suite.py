"""The strongest attacker wins: many recognisers, chosen without a look at the people under test.

A member of the suite is a way to hear speech (an encoder, perhaps on speech whose anonymization was
undone) and a back end (:mod:`voxrisk.attack.maps`). Which members count, and how much, is decided
on training speakers alone: they are dealt into folds, every map learns from the other folds, and
the held-out scores of all members are compared on one list of trials
(:mod:`voxrisk.attack.weighing`). A suite may well be a single member.

Vectors of length √w side by side have the weighted sum of cosines for their cosine (where the
enrolment is one utterance; the mean of several favours members whose vectors agree with each
other), so the fused attacker is vectors again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.joined import (
    ORIGINAL,
    Joined,
    alike_trials,
    collected_trials,
    fold_of_trials,
    large_collections,
    original_of,
    some_trials,
)
from voxrisk.attack.maps import BACKENDS, Lesson, fit_map
from voxrisk.attack.sided import Side, SideMap
from voxrisk.attack.soundness import Fit, Map, Rows, cross_validated
from voxrisk.attack.weighing import Tried, crossed, forward, fusion_weights, shares
from voxrisk.files.atomic import atomic, write_text
from voxrisk.measure.all_figures import measure_scores
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.measure.scored_trials import Trials
from voxrisk.shards import run
from voxrisk.types import Embeddings, Estimate, InputError

# What a block of vectors hears. Voices decide; the manner of speaking gets half of the shares at
# most, because one session flatters it; recordings and words are judged and shown, never chosen.
Sort: TypeAlias = Literal["voice", "pooled", "manner", "recording", "words"]
ASIDE = ("recording", "words")
FOLDS = 5
SOURCE = "cross-validation over the training speakers; ROCCH-EER"


@dataclass(frozen=True, slots=True)
class Member:
    """One recogniser: what it hears speech with (the name of a block), and its back end."""

    hears: str
    backend: str

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.hears}, {self.backend}"

    def block(self, side: Side) -> str:
        """The block that it reads on one side of a trial."""
        return original_of(self.hears) if side == "enroll" and self.crosses else self.hears

    @property
    def crosses(self) -> bool:
        """Whether it enrols speech as it was."""
        return "originals" in BACKENDS[self.backend].needs


@dataclass(frozen=True, slots=True)
class Judged:
    """A member with its EER on held-out training speakers, and its share in the choice (0: none).

    ``eer`` is None where the back end could not be fitted; ``why`` says the reason. ``aside``: it
    could not be chosen.
    """

    member: Member
    eer: Estimate | None
    weight: float = 0.0
    why: str = ""
    aside: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Suite:
    """The chosen attacker, and all that it was chosen from.

    Attributes:
        blocks: Where the vectors of each encoder stand in what :meth:`apply` takes.
        judged: All members, the best first, as training speakers judged them; the shares of those
            that were chosen sum to one.
        weights: Of the cosines of the chosen ones; they sum to one too.
        maps: The back end of each member that could be fitted, fitted on all training speech.
        eer: Of the choice on held-out training speakers; weights of a fold come from the others.
    """

    blocks: Mapping[str, tuple[int, int]]
    judged: tuple[Judged, ...]
    weights: Mapping[Member, float]
    maps: Mapping[Member, SideMap]
    eer: Estimate

    @property
    def chosen(self) -> tuple[Judged, ...]:
        """The members that count, the one with the largest share first."""
        used = [judged for judged in self.judged if judged.weight > 0]
        return tuple(sorted(used, key=lambda judged: -judged.weight))

    def apply(
        self, vectors: NDArray[np.floating[Any]], side: Side = "trial"
    ) -> NDArray[np.float32]:
        """Vectors ``(n, d)`` side by side of one side of trials → the fused attacker's."""
        parts = [
            np.sqrt(self.weights[j.member]) * self.alone(j.member, vectors, side)
            for j in self.chosen
        ]
        return np.hstack(parts).astype(np.float32)

    def alone(
        self, member: Member, vectors: NDArray[np.floating[Any]], side: Side = "trial"
    ) -> NDArray[np.float32]:
        """Vectors ``(n, d)`` side by side → those of one member."""
        return self.maps[member].apply(vectors[:, slice(*self.blocks[member.block(side)])], side)


def members(
    blocks: Sequence[str], sorts: Mapping[str, Sort], backends: Sequence[str], have: Sequence[str]
) -> list[Member]:
    """Every member: each block with each back end that suits it and has what it needs.

    Args:
        blocks: Names.
        sorts: Block → what it hears; those that are not named hear voices.
        backends: Rows of :data:`voxrisk.attack.maps.BACKENDS`.
        have: What is known of the training speech, see :class:`voxrisk.attack.maps.Lesson`.
    """
    found = [
        Member(name, backend)
        for name in blocks
        if not name.startswith(ORIGINAL)
        for backend in backends
        if sorts.get(name, "voice") in BACKENDS[backend].hears
        and all(need in have for need in BACKENDS[backend].needs if need != "originals")
    ]
    return [m for m in found if m.block("enroll") in blocks]


def choose_suite(
    joined: Joined,
    *,
    targets: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    sorts: Mapping[str, Sort] | None = None,
    collections: Mapping[str, str] | None = None,
    backends: Sequence[str] = tuple(BACKENDS),
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
    workers: int | None = 1,
) -> Suite:
    """Judge every member on held-out training speakers, choose, and fit the choice on all of them.

    Args:
        joined: Vectors of the training speech by every encoder.
        targets: Target voice of each utterance, where known.
        kinds: Speaker → gender; then only speakers of one gender are compared, as in the test.
        sorts: Block → what it hears; those that are not named hear voices.
        collections: Speaker → the collection it comes from, if the training speech was put
            together from several. Only speakers of one are compared, and each counts the same.
        backends: Rows of :data:`voxrisk.attack.maps.BACKENDS` to try.
        seed: Deals the speakers.
        resamples: Draws behind the intervals.
        confidence: Of the intervals.
        workers: Processes that judge; None takes all cores.

    Raises:
        InputError: If there are too few speakers for two folds, or no member can be fitted.
    """
    sorts = sorts or {}
    found_in = large_collections(joined.embeddings, collections)
    each = np.unique(joined.embeddings.speaker, return_counts=True)[1]
    folds = max(2, min(FOLDS, int((each > 1).sum()) // 2))
    lessons = Lessons(joined, targets, _known(joined.embeddings, kinds))
    found = members(tuple(joined.blocks), sorts, backends, lessons.have)
    judge = _Judge(lessons, kinds, found_in, folds, seed, resamples, confidence)
    opinions = dict(zip(found, run(judge, found, workers=workers), strict=True))
    scored = {m: own.trials for m, own in opinions.items() if own.trials is not None}
    failed = [Judged(m, None, why=own.why) for m, own in opinions.items() if own.trials is None]
    apart = {
        m for m in scored
        if BACKENDS[m.backend].aside or sorts.get(m.hears, "voice") in ASIDE
    }  # fmt: skip
    able = [m for m in scored if m not in apart]
    if not able:
        raise InputError(failed[0].why if failed else "the suite has no member to choose from")
    some = scored[able[0]]
    fold = fold_of_trials(joined.embeddings, some, folds=folds, seed=seed)
    names = np.unique([found_in.get(s, "") for s in some.speakers], return_inverse=True)[1]
    tried = Tried(some.is_target, fold, names[some.enroll_speaker])
    table = np.stack([scored[m].score for m in able])
    light = np.array([sorts.get(m.hears) == "manner" for m in able])
    order = forward(table, tried, light)
    fused = crossed(table[order], tried, light[order], offsets=False)
    eer = judge.eer(some_trials(some, np.ones(fused.size, bool), fused))
    # Weights are found by the loss. Whatever misled it, a sum is never worse than one voice alone.
    voices = {i: own for i, m in enumerate(able) if (own := opinions[m].eer) and not light[i]}
    best = min(voices, key=lambda i: voices[i].value, default=None)
    if best is not None and voices[best].value < eer.value:
        order, eer = [best], voices[best]
    weights = fusion_weights(table[order], tried, light[order])

    chosen = [able[i] for i in order]
    part = dict(zip(chosen, shares(table[order], weights).tolist(), strict=True))
    judged = [
        Judged(m, own.eer, part.get(m, 0.0), aside=m in apart)
        for m, own in opinions.items()
        if own.trials is not None
    ]
    judged.sort(key=lambda j: j.eer.value if j.eer else 1.0)
    return Suite(
        joined.blocks,
        (*judged, *failed),
        dict(zip(chosen, weights.tolist(), strict=True)),
        {m: own.map for m, own in opinions.items() if own.map is not None},
        eer,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Opinion:
    """Of one member: held-out trials, their EER, its map from all speech; or why it has none."""

    trials: Trials | None = None
    eer: Estimate | None = None
    map: SideMap | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """Tries one member, in any process."""

    lessons: "Lessons"
    kinds: Mapping[str, str] | None
    collections: Mapping[str, str]
    folds: int
    seed: int
    resamples: int
    confidence: float

    def __call__(self, member: Member) -> _Opinion:
        """Fit it without some speakers, and try it on them; then fit it on all."""
        heard, seed = self.lessons.joined.embeddings, self.seed
        try:
            fit = self.lessons.fit(member, seed)
            trained, _ = cross_validated(heard, fit, folds=self.folds, seed=seed)
            trials = collected_trials(alike_trials(trained, self.kinds), self.collections)
        except InputError as error:
            return _Opinion(why=str(error))
        everybody = np.arange(len(heard.speaker))
        return _Opinion(trials, self.eer(trials), self.lessons.map(member, everybody, seed))

    def eer(self, trials: Trials) -> Estimate:
        """ROCCH-EER with its interval."""
        draws = 0 if len(trials.speakers) < MIN_SPEAKERS else self.resamples
        found = measure_scores(trials, resamples=draws, seed=self.seed, confidence=self.confidence)[
            "rocch_eer"
        ]
        facts = {"folds": self.folds, "seed": self.seed, "resamples": draws}
        return replace(found, source=SOURCE, parameters=facts)


def suite_fit(suite: Suite, lessons: "Lessons", *, seed: int = 0) -> Fit:
    """The training of this choice, as :func:`voxrisk.attack.soundness.training_control` asks.

    Whatever vectors the control compares it with, the choice hears those of the lessons: they are
    of the same utterances.
    """

    def fit(embeddings: Embeddings, rows: Rows) -> Map:
        again = {j.member: lessons.map(j.member, rows, seed) for j in suite.chosen}
        whole, vectors = replace(suite, maps=again), lessons.joined.embeddings.vectors
        return lambda _: (whole.apply(vectors, "enroll"), whole.apply(vectors, "trial"))

    return fit


def write_suite(folder: Path, suite: Suite) -> None:
    """Write ``suite.json`` and ``suite.npz``; :func:`read_suite` gives the same suite back."""
    plain = {
        "blocks": suite.blocks,
        "eer": suite.eer.to_json(),
        "judged": [
            {
                **asdict(j.member),
                "eer": j.eer and j.eer.to_json(),
                "share": j.weight,
                "weight": suite.weights.get(j.member, 0.0),
                "why": j.why,
                "aside": j.aside,
            }
            for j in suite.judged
        ],
    }
    write_text(folder / "suite.json", json.dumps(plain, indent=1, default=str) + "\n")
    arrays: dict[str, Any] = {}
    for i, judged in enumerate(suite.judged):
        if (fitted := suite.maps.get(judged.member)) is not None:
            arrays |= {f"{i} {name}": array for name, array in fitted.arrays().items()}
    with atomic(folder / "suite.npz") as part, part.open("wb") as stream:
        np.savez(stream, **arrays)


def read_suite(folder: Path) -> Suite:
    """Read what :func:`write_suite` wrote; nothing in it is executed."""
    plain = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
    judged = tuple(
        Judged(
            Member(row["hears"], row["backend"]),
            Estimate.from_json(row["eer"]) if row["eer"] else None,
            row["share"],
            row["why"],
            row["aside"],
        )
        for row in plain["judged"]
    )
    weights = {j.member: row["weight"] for j, row in zip(judged, plain["judged"], strict=True)}
    held: dict[int, dict[str, Any]] = {}
    with np.load(folder / "suite.npz", allow_pickle=False) as arrays:
        for name in arrays.files:
            number, _, own = name.partition(" ")
            held.setdefault(int(number), {})[own] = arrays[name]
    return Suite(
        {name: (begin, end) for name, (begin, end) in plain["blocks"].items()},
        judged,
        {member: weight for member, weight in weights.items() if weight > 0},
        {judged[i].member: SideMap.read(own) for i, own in held.items()},
        Estimate.from_json(plain["eer"]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """What every member learns from: joined vectors, and what is known of each utterance."""

    joined: Joined
    targets: Sequence[str] | None = None
    kinds: Sequence[str] | None = None

    @property
    def have(self) -> list[str]:
        """What is known."""
        return [name for name in ("targets", "kinds") if getattr(self, name) is not None]

    def map(self, member: Member, rows: Rows, seed: int) -> SideMap:
        """Fit one member on some rows."""
        places = rows.tolist()
        crossing = self.joined.block(member.block("enroll"), rows) if member.crosses else None
        lesson = Lesson(
            self.joined.block(member.hears, rows),
            targets=None if self.targets is None else [self.targets[i] for i in places],
            originals=crossing,
            kinds=None if self.kinds is None else [self.kinds[i] for i in places],
        )
        return fit_map(member.backend, lesson, seed=seed)

    def fit(self, member: Member, seed: int) -> Fit:
        """The training of one member, for cross-validation."""

        def fit(embeddings: Embeddings, rows: Rows) -> Map:
            fitted, blocks = self.map(member, rows, seed), self.joined.blocks
            enroll, trial = (slice(*blocks[member.block(s)]) for s in ("enroll", "trial"))
            return lambda vectors: (
                fitted.apply(vectors[:, enroll], "enroll"),
                fitted.apply(vectors[:, trial], "trial"),
            )

        return fit


def _known(embeddings: Embeddings, kinds: Mapping[str, str] | None) -> list[str] | None:
    """The kind of each utterance's speaker, where every one is known."""
    if not kinds or not all(kinds.get(s) for s in embeddings.speaker.tolist()):
        return None
    return [kinds[s] for s in embeddings.speaker.tolist()]
