"""The strongest attacker wins: many recognisers, chosen without a look at the people under test.

A member of the suite is a way to hear speech (an encoder, perhaps on speech whose anonymization was
undone) and a back end (:mod:`voxrisk.attack.maps`). Which members count, and how much, is decided
on training speakers alone: they are dealt into folds, every map learns from the other folds, and
the held-out scores of all members are compared on one list of trials.

Fusion is a weighted sum of cosines, with weights of a logistic regression that are never negative.
Vectors of length √w side by side have that sum for their cosine (where the enrolment is one
utterance; the mean of several favours members whose vectors agree with each other), so the fused
attacker is vectors again.

Members join one by one, the one first that lowers the cross-validated loss most, until none lowers
it by :data:`GAIN`. A suite thus may well be a single member.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import Adapter, direction
from voxrisk.attack.maps import BACKENDS, fit_map
from voxrisk.attack.soundness import Fit, Map, Rows, cross_validated, speaker_folds
from voxrisk.files.atomic import atomic, write_text
from voxrisk.measure.all_figures import measure_scores
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.measure.scored_trials import Trials
from voxrisk.types import Embeddings, Estimate, InputError

Floats: TypeAlias = NDArray[np.float64]
FOLDS = 5
GAIN = 0.005  # of the loss: a member that gains less is left out
NOTHING = 0.98  # bits of loss from which on a member tells as good as nothing; guessing gives 1
RIDGE = 1e-3  # on the weights, in units of the spread of scores
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


@dataclass(frozen=True, slots=True)
class Judged:
    """A member with its EER on held-out training speakers, and its share in the choice (0: none).

    ``eer`` is None where the back end could not be fitted; ``why`` says the reason.
    """

    member: Member
    eer: Estimate | None
    weight: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors of several encoders side by side, each of length one, and where each stands."""

    embeddings: Embeddings
    blocks: Mapping[str, tuple[int, int]]

    def block(self, name: str, rows: Rows | None = None) -> Embeddings:
        """The vectors of one encoder, of all utterances or of some."""
        begin, end = self.blocks[name]
        kept = slice(None) if rows is None else rows
        held = self.embeddings
        return Embeddings(
            held.utterance[kept], held.speaker[kept], held.vectors[kept, begin:end], held.source
        )

    def first(self, names: Sequence[str]) -> Embeddings:
        """The leading blocks, which must be these: what a map that uses no other block needs."""
        leading = list(self.blocks)[: len(names)]
        if leading != list(names):
            raise InputError(f"the first encoders are {', '.join(leading)}, not {', '.join(names)}")
        end = self.blocks[names[-1]][1]
        return replace(self.embeddings, vectors=self.embeddings.vectors[:, :end])


def join(heard: Mapping[str, Embeddings]) -> Joined:
    """Vectors of the same utterances by several encoders, side by side.

    Raises:
        InputError: If they are not of the same utterances in the same order.
    """
    first = next(iter(heard.values()))
    blocks, at = {}, 0
    for name, held in heard.items():
        if held.utterance.tolist() != first.utterance.tolist():
            raise InputError(f"{name}: not the same utterances as the other encoders; embed again")
        blocks[name] = (at, at + held.vectors.shape[1])
        at += held.vectors.shape[1]
    side_by_side = np.hstack([direction(held.vectors) for held in heard.values()])
    return Joined(replace(first, vectors=side_by_side.astype(np.float32)), blocks)


@dataclass(frozen=True, slots=True, eq=False)
class Suite:
    """The chosen attacker, and all that it was chosen from.

    Attributes:
        blocks: Where the vectors of each encoder stand in what :meth:`apply` takes.
        judged: All members, the best first, as training speakers judged them; the weights of those
            that were chosen sum to one.
        maps: The back end of each member that could be fitted, fitted on all training speech.
        eer: Of the choice on held-out training speakers; weights of a fold come from the others.
    """

    blocks: Mapping[str, tuple[int, int]]
    judged: tuple[Judged, ...]
    maps: Mapping[Member, Adapter]
    eer: Estimate

    @property
    def chosen(self) -> tuple[Judged, ...]:
        """The members that count, the heaviest first."""
        used = [judged for judged in self.judged if judged.weight > 0]
        return tuple(sorted(used, key=lambda judged: -judged.weight))

    def apply(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Vectors ``(n, d)`` side by side → the fused attacker's ``(n, e)``."""
        parts = [np.sqrt(j.weight) * self.alone(j.member, vectors) for j in self.chosen]
        return np.hstack(parts).astype(np.float32)

    def alone(self, member: Member, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Vectors ``(n, d)`` side by side → those of one member."""
        return self.maps[member].apply(vectors[:, slice(*self.blocks[member.hears])])


def members(hears: Sequence[str], backends: Sequence[str], *, targets: bool) -> list[Member]:
    """Every member: each block with each back end that these data allow."""
    return [
        Member(name, backend)
        for name in hears
        for backend in backends
        if targets or not BACKENDS[backend].needs_targets
    ]


def choose_suite(
    joined: Joined,
    *,
    targets: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    aside: Sequence[str] = (),
    manner: Sequence[str] = (),
    backends: Sequence[str] = tuple(BACKENDS),
    seed: int = 0,
    resamples: int = 1000,
    confidence: float = 0.95,
) -> Suite:
    """Judge every member on held-out training speakers, choose, and fit the choice on all of them.

    Args:
        joined: Vectors of the training speech by every encoder.
        targets: Target voice of each utterance, where known.
        kinds: Speaker → gender; then only speakers of one gender are compared, as in the test.
        aside: Blocks that are judged and shown, and never chosen.
        manner: Blocks that hear the manner of speaking and no voice. One session flatters them, so
            together they weigh no more than the voices, unless voices tell nothing.
        backends: Rows of :data:`voxrisk.attack.maps.BACKENDS` to try.
        seed: Deals the speakers.
        resamples: Draws behind the intervals.
        confidence: Of the intervals.

    Raises:
        InputError: If there are too few speakers for two folds, or no member can be fitted.
    """
    each = np.unique(joined.embeddings.speaker, return_counts=True)[1]
    folds = max(2, min(FOLDS, int((each > 1).sum()) // 2))
    scored: dict[Member, Trials] = {}
    failed: list[Judged] = []
    for member in members(tuple(joined.blocks), backends, targets=targets is not None):
        try:
            trained, _ = cross_validated(
                joined.embeddings, _Training(joined, member, targets, seed), folds=folds, seed=seed
            )
            scored[member] = _alike(trained, kinds)
        except InputError as error:
            failed.append(Judged(member, None, why=str(error)))
    able = [m for m in scored if m.hears not in aside]
    if not able:
        raise InputError(failed[0].why if failed else "the suite has no member to choose from")
    some = scored[able[0]]
    fold = _fold_of_trials(joined.embeddings, some, folds=folds, seed=seed)
    table = np.stack([scored[m].score for m in able])
    light = np.array([m.hears in manner for m in able])
    order = _forward(table, some.is_target, fold, light)
    weights = fusion_weights(table[order], some.is_target, light[order])

    def eer(trials: Trials) -> Estimate:
        few = len(trials.speakers) < MIN_SPEAKERS
        draws = 0 if few else resamples
        found = measure_scores(trials, resamples=draws, seed=seed, confidence=confidence)
        facts = {"folds": folds, "seed": seed, "resamples": draws}
        return replace(found["rocch_eer"], source=SOURCE, parameters=facts)

    shares = dict(zip([able[i] for i in order], weights.tolist(), strict=True))
    judged = [Judged(m, eer(t), shares.get(m, 0.0)) for m, t in scored.items()]
    judged.sort(key=lambda j: j.eer.value if j.eer else 1.0)
    fused = _crossed(table[order], some.is_target, fold, light[order])
    everybody = np.arange(len(joined.embeddings.speaker))
    return Suite(
        joined.blocks,
        (*judged, *failed),
        {m: _Training(joined, m, targets, seed).adapter(everybody) for m in scored},
        eer(_some(some, np.ones(fused.size, bool), fused)),
    )


def suite_fit(
    suite: Suite, joined: Joined, *, targets: Sequence[str] | None = None, seed: int = 0
) -> Fit:
    """The training of this choice, as :func:`voxrisk.attack.soundness.training_control` asks."""

    def fit(embeddings: Embeddings, rows: Rows) -> Map:
        again = {
            j.member: _Training(joined, j.member, targets, seed).adapter(rows) for j in suite.chosen
        }
        return replace(suite, maps=again).apply

    return fit


def write_suite(folder: Path, suite: Suite) -> None:
    """Write ``suite.json`` and ``suite.npz``; :func:`read_suite` gives the same suite back."""
    plain = {
        "blocks": suite.blocks,
        "eer": suite.eer.to_json(),
        "judged": [
            {**asdict(j.member), "eer": j.eer and j.eer.to_json(), "weight": j.weight, "why": j.why}
            for j in suite.judged
        ],
    }
    write_text(folder / "suite.json", json.dumps(plain, indent=1, default=str) + "\n")
    arrays: dict[str, Any] = {}
    for i, judged in enumerate(suite.judged):
        if (adapter := suite.maps.get(judged.member)) is not None:
            arrays |= {f"mean{i}": adapter.mean, f"matrix{i}": adapter.matrix}
    with atomic(folder / "suite.npz") as part, part.open("wb") as stream:
        np.savez(stream, **arrays)


def read_suite(folder: Path) -> Suite:
    """Read what :func:`write_suite` wrote; nothing in it is executed."""
    plain = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
    judged = tuple(
        Judged(
            Member(row["hears"], row["backend"]),
            Estimate.from_json(row["eer"]) if row["eer"] else None,
            row["weight"],
            row["why"],
        )
        for row in plain["judged"]
    )
    with np.load(folder / "suite.npz", allow_pickle=False) as held:
        maps = {
            j.member: Adapter("", "", held[f"mean{i}"], held[f"matrix{i}"])
            for i, j in enumerate(judged)
            if f"mean{i}" in held
        }
    blocks = {name: (begin, end) for name, (begin, end) in plain["blocks"].items()}
    return Suite(blocks, judged, maps, Estimate.from_json(plain["eer"]))


@dataclass(frozen=True, slots=True, eq=False)
class _Training:
    """The training of one member, on some rows of the joined vectors."""

    joined: Joined
    member: Member
    targets: Sequence[str] | None
    seed: int

    def adapter(self, rows: Rows) -> Adapter:
        own = None if self.targets is None else [self.targets[i] for i in rows.tolist()]
        part = self.joined.block(self.member.hears, rows)
        return fit_map(self.member.backend, part, targets=own, seed=self.seed)

    def __call__(self, embeddings: Embeddings, rows: Rows) -> Map:
        adapter, place = self.adapter(rows), slice(*self.joined.blocks[self.member.hears])
        return lambda vectors: adapter.apply(vectors[:, place])


def _alike(trials: Trials, kinds: Mapping[str, str] | None) -> Trials:
    """Only the trials between speakers of one kind, where every kind is known."""
    if not kinds or not all(kinds.get(s) for s in trials.speakers):
        return trials
    code = np.unique([kinds[s] for s in trials.speakers], return_inverse=True)[1]
    same = code[trials.enroll_speaker] == code[trials.trial_speaker]
    return _some(trials, same) if (same & ~trials.is_target).any() else trials


def _some(trials: Trials, keep: NDArray[np.bool_], score: Floats | None = None) -> Trials:
    """Some of the trials, of the same speakers, perhaps with other scores."""
    return Trials.coded(
        (trials.score if score is None else score)[keep],
        trials.is_target[keep],
        trials.enroll_speaker[keep],
        trials.trial_speaker[keep],
        trials.query[keep],
        trials.speakers,
    )


def _fold_of_trials(
    embeddings: Embeddings, trials: Trials, *, folds: int, seed: int
) -> NDArray[np.int64]:
    names = np.unique(embeddings.speaker)
    fold = dict(
        zip(names.tolist(), speaker_folds(embeddings, folds=folds, seed=seed).tolist(), strict=True)
    )
    return np.array([fold[s] for s in trials.speakers])[trials.enroll_speaker]


def fusion_weights(
    scores: Floats, target: NDArray[np.bool_], light: NDArray[np.bool_] | None = None
) -> Floats:
    """Weights ``(k,)`` of the scores ``(k, n)`` of several members; none is negative, sum one.

    Logistic regression in which target and nontarget trials count the same in total. Where no
    member tells anything, all count the same. ``light (k,)`` marks members that together get half
    of the weight at most, beside others.

    >>> fusion_weights(np.array([[2.0, 1.0, 0.1, 0.0], [0.1, 0.0, 0.1, 0.0]]),
    ...                np.array([True, True, False, False])).round(1)
    array([1., 0.])
    """
    weight, _ = _weights(scores, target, light)
    whole = weight.sum()
    return weight / whole if whole > 0 else np.full(len(scores), 1.0 / len(scores))


def _weights(
    scores: Floats, target: NDArray[np.bool_], light: NDArray[np.bool_] | None
) -> tuple[Floats, float]:
    """Weights on the scores as they are, and the offset of the log-odds."""
    weight, offset, spread = _regression(scores, target)
    weight = weight / spread
    if light is None or not light.any() or light.all():
        return weight, offset
    much, rest = float(weight[light].sum()), float(weight[~light].sum())
    if 0 < rest < much:
        weight = np.where(light, weight * rest / much, weight)
        again, offset, spread = _regression((weight @ scores)[None], target)
        weight = weight * again[0] / spread[0]
    return weight, offset


def _regression(scores: Floats, target: NDArray[np.bool_]) -> tuple[Floats, float, Floats]:
    """Weights on the scores divided by their spread, the offset, and the spread."""
    from scipy.optimize import minimize

    spread = np.maximum(scores.std(axis=1), 1e-12)
    x = scores / spread[:, None]
    sign = np.where(target, 1.0, -1.0)
    share = np.where(target, 0.5 / target.sum(), 0.5 / (~target).sum())

    def loss(free: Floats) -> tuple[float, Floats]:
        margin = sign * (free[:-1] @ x + free[-1])
        slope = -share * sign * np.exp(-np.logaddexp(0.0, margin))
        value = share @ np.logaddexp(0.0, -margin) + RIDGE * free[:-1] @ free[:-1]
        gradient = np.append(x @ slope + 2 * RIDGE * free[:-1], slope.sum())
        return float(value), gradient

    begin = np.append(np.full(len(x), 1.0 / len(x)), 0.0)
    bounds = [(0.0, None)] * len(x) + [(None, None)]
    free = minimize(loss, begin, jac=True, bounds=bounds, method="L-BFGS-B").x
    return free[:-1], float(free[-1]), spread


def _crossed(
    scores: Floats,
    target: NDArray[np.bool_],
    fold: NDArray[np.int64],
    light: NDArray[np.bool_],
) -> Floats:
    """Fused log-odds ``(n,)``, those of a fold with weights from the other folds."""
    fused = np.empty(target.size)
    for number in np.unique(fold):
        held = fold == number
        weight, offset = _weights(scores[:, ~held], target[~held], light)
        fused[held] = weight @ scores[:, held] + offset
    return fused


def _loss(fused: Floats, target: NDArray[np.bool_]) -> float:
    """Log loss in bits, both kinds of trials counting the same: 1 says nothing."""
    wrong = np.logaddexp(0.0, np.where(target, -fused, fused)) / np.log(2.0)
    return float(0.5 * wrong[target].mean() + 0.5 * wrong[~target].mean())


def _forward(
    scores: Floats,
    target: NDArray[np.bool_],
    fold: NDArray[np.int64],
    light: NDArray[np.bool_],
) -> list[int]:
    """Members in the order in which they join, while each still lowers the loss.

    The first is one that hears voices, wherever voices tell anything at all.
    """
    alone = [_loss(_crossed(s[None], target, fold, light[:1] & False), target) for s in scores]
    heard = [i for i in range(len(scores)) if not light[i] and alone[i] < NOTHING]
    chosen = [min(heard or range(len(scores)), key=lambda i: alone[i])]
    best = alone[chosen[0]]
    while len(chosen) < len(scores):
        losses = {
            i: _loss(_crossed(scores[[*chosen, i]], target, fold, light[[*chosen, i]]), target)
            for i in range(len(scores))
            if i not in chosen
        }
        first = min(losses, key=lambda i: losses[i])
        if losses[first] > (1.0 - GAIN) * best:
            break
        chosen.append(first)
        best = losses[first]
    return chosen
