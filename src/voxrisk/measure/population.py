"""The protocol of a population study, its curves and its people, and how they are gathered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voxrisk.measure import linking
from voxrisk.measure.conversations import Floats, Ints, Names
from voxrisk.measure.eer import rocch_eer
from voxrisk.measure.figures import FIGURES, score_intervals
from voxrisk.measure.intervals import rate_interval
from voxrisk.measure.isolation import PAPER_CHANCE, Isolation
from voxrisk.measure.resampling import MIN_SPEAKERS, few_speakers, speaker_weights
from voxrisk.measure.scorers import Pairs, Spread, here
from voxrisk.measure.zebra import (
    expected_disclosure,
    worst_case_ceiling,
    worst_case_disclosure,
)
from voxrisk.types import Estimate, InputError, Interval

CROWD = ("singling_out", "linkability", "rocch_eer", "d_ece", "log10_l")


@dataclass(frozen=True, slots=True)
class Protocol:
    """Everything that is chosen. The defaults are those of the paper.

    Attributes:
        lengths: Conversation lengths L.
        sizes: Population sizes N; None means 20, 100, 200, 400 … The whole population of each L is
            always the last point.
        predicates: How many enrolled speakers lend their voice to Singling Out.
        enroll_utterances: How many utterances make a predicate.
        folds: Conversations of each speaker that take turns in being tested.
        draws: Random populations for each predicate.
        trials: Conversations of each tested speaker that are linked; the paper has one.
        estimator: ``"exact"`` (closed form) or ``"draws"`` (the paper's) for Linkability.
        min_utterances: Leave out speakers that have fewer in the enrolled set (the paper's A).
        seed: Of everything random.
        resamples: Draws of the speakers for the intervals; 0 gives none.
        confidence: Coverage of the intervals.
        threads: Default: all processors. The result does not depend on it.
    """

    lengths: Sequence[int] = (1, 3, 30)
    sizes: Sequence[int] | None = None
    predicates: int = 495
    enroll_utterances: int = 30
    folds: int = 10
    draws: int = 5
    trials: int = 1
    estimator: str = "exact"
    min_utterances: int = 1
    seed: int = 0
    resamples: int = 1000
    confidence: float = 0.95
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("predicates", "enroll_utterances", "draws", "trials", "min_utterances"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.folds < 2:
            raise InputError(f"folds is {self.folds}; one tests, at least one calibrates")
        if self.estimator not in ("exact", "draws"):
            raise InputError(f"estimator is {self.estimator!r}; choose 'exact' or 'draws'")
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence is {self.confidence}; it lies between 0 and 1")
        if not self.lengths:
            raise InputError("no conversation length; give at least one L")

    def sizes_up_to(self, whole: int) -> Ints:
        """The population sizes to measure where there are ``whole`` speakers, that one included."""
        wanted = default_sizes(whole) if self.sizes is None else self.sizes
        return np.unique(np.asarray([*(n for n in wanted if n <= whole), whole], dtype=np.int64))

    def check_sizes(self, speakers: int, source: str) -> None:
        """Refuse an N that no L can reach."""
        for n in self.sizes or ():
            if n < 2:
                raise InputError(f"N is {n}; a population has at least 2 speakers")
            if n > speakers:
                raise InputError(
                    f"N = {n} is larger than the population: {source} has {speakers} speakers; "
                    "leave it out (the whole population is always measured) or add speakers"
                )


def default_sizes(whole: int) -> list[int]:
    """20, 100, 200, 400 … as far as the population goes.

    >>> default_sizes(1000)
    [20, 100, 200, 400, 800]
    """
    return [n for n in (20, *(100 * 2**k for k in range(40))) if n <= whole]


@dataclass(frozen=True, slots=True)
class SpeakerRisk:
    """One figure of one person.

    Attributes:
        metric: ``"linkability"`` (chance of being linked), ``"singling_out"`` (how often this voice
            isolates somebody), ``"singling_out_self"`` (and that somebody is this person),
            ``"isolated"`` (share of all attempts that isolate this person).
        speaker: Who.
        length: L.
        size: N.
        value: The figure; higher is more exposed.
    """

    metric: str
    speaker: str
    length: int
    size: int
    value: float


@dataclass(frozen=True, slots=True)
class Population:
    """All curves of one attacker.

    Attributes:
        attacker: Name.
        estimates: One for each metric, L and N; ``parameters`` holds ``L``, ``N`` and, where the
            paper's chance level is another, ``chance_paper``.
        speakers: Person by person, the most exposed first.
        excluded: For each L, speakers without enough utterances, by metric.
        parameters: The protocol.
    """

    attacker: str
    estimates: tuple[Estimate, ...]
    speakers: tuple[SpeakerRisk, ...]
    excluded: Mapping[str, Mapping[str, Sequence[str]]]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def linkability(self) -> dict[tuple[int, int], Estimate]:
        """Linkability by (L, N)."""
        return self._by_setting("linkability")

    @property
    def singling_out(self) -> dict[tuple[int, int], Estimate]:
        """Singling Out by (L, N)."""
        return self._by_setting("singling_out")

    @property
    def eer(self) -> dict[tuple[int, int], Estimate]:
        """Equal error rate by (L, N)."""
        return self._by_setting("rocch_eer")

    def _by_setting(self, metric: str) -> dict[tuple[int, int], Estimate]:
        return {(e.length, e.size): e for e in self.estimates if e.name == metric}

    def curve(self, metric: str, length: int) -> list[Estimate]:
        """The estimates of one metric and L, by rising N."""
        chosen = [e for e in self.estimates if e.name == metric and e.parameters["L"] == length]
        return sorted(chosen, key=lambda e: int(e.parameters["N"]))


class Collector:
    """Gathers estimates and speakers while the lengths are worked through."""

    def __init__(self, protocol: Protocol, spread: Spread = here) -> None:
        self.p = protocol
        self.spread = spread
        self.estimates: list[Estimate] = []
        self.risks: list[SpeakerRisk] = []
        self.excluded: dict[str, dict[str, list[str]]] = {}

    def link(self, scores: Pairs, own: Ints, names: Names, length: int) -> None:
        """Linkability and the score metrics of one L."""
        p, n = self.p, names.size
        sizes = p.sizes_up_to(n)
        ranking = linking.rank_trials(
            scores, own, seed=p.seed, threads=p.threads, spread=self.spread
        )
        if p.estimator == "exact":
            linked = linking.linkability(ranking.higher, n, sizes.tolist())
        else:
            linked = linking.linkability_by_draws(
                ranking.higher, n, sizes.tolist(), draws=p.draws, seed=p.seed
            )
        speaker, of, trials = np.unique(own, return_inverse=True, return_counts=True)
        rate = np.zeros((speaker.size, sizes.size))
        np.add.at(rate, of, linked)
        rate /= trials[:, None]
        draws = {}
        if p.resamples:
            others = np.setdiff1d(np.arange(n), speaker)
            redrawn = linking.Redrawn(
                speaker_weights(speaker.size, resamples=p.resamples, seed=p.seed), speaker, n,
                others if others.size >= MIN_SPEAKERS else others[:0], p.seed,
            )  # fmt: skip
            draws = ranking.resample(redrawn, sizes, threads=p.threads, spread=self.spread)
        counts = {"trial": own.size, "speaker": speaker.size, "enrolled": n}
        eer, d_ece = rocch_eer(ranking.roc), expected_disclosure(ranking.roc)
        for s, size in enumerate(sizes.tolist()):
            at = {"L": length, "N": size}
            span = self._rate(rate[:, s], own.size)
            self._add("linkability", float(rate[:, s].mean()), 1.0 / size, counts, at, 1.0 / size,
                      span)  # fmt: skip
            worst = worst_case_disclosure(ranking.roc_among(size))
            values = {"rocch_eer": eer, "d_ece": d_ece, "log10_l": worst}
            spans: Mapping[str, Interval] = {}
            ceiling = worst_case_ceiling(own.size, own.size * (size - 1))
            if draws:
                spans = score_intervals(
                    values, {**draws, "log10_l": draws["log10_l"][:, s]},
                    speakers=speaker.size, ceiling=ceiling, confidence=p.confidence,
                )  # fmt: skip
            for name, value in values.items():
                chance = FIGURES[name].chance
                self._add(name, value, chance, counts, at, chance, spans.get(name))
        self._people("linkability", names[speaker], rate, sizes, length)

    def isolate(self, isolation: Isolation, crowd: Names, length: int) -> None:
        """Singling Out of one L."""
        rate, sizes = isolation.rate, isolation.sizes
        attempts = isolation.who[..., 0].size
        counts = {"predicate": len(rate), "speaker": len(rate), "tested": crowd.size}
        for s, size in enumerate(sizes.tolist()):
            at = {"L": length, "N": size}
            self._add(
                "singling_out", float(rate[:, s].mean()), float(isolation.chance[s]), counts, at,
                PAPER_CHANCE, self._rate(rate[:, s], attempts),
            )  # fmt: skip
        voices = crowd[isolation.own]
        self._people("singling_out", voices, rate, sizes, length)
        self._people("singling_out_self", voices, isolation.own_rate, sizes, length)
        times = isolation.times_isolated(crowd.size)[-1]
        hit = np.flatnonzero(times)
        self._people("isolated", crowd[hit], times[hit, None] / attempts, sizes[-1:], length)

    def exclude(self, length: int, **names: Names) -> None:
        """Name the speakers that one L leaves out."""
        self.excluded[str(length)] = {metric: who.tolist() for metric, who in names.items()}

    def population(self, attacker: str) -> Population:
        """What was gathered."""
        order = sorted(self.estimates, key=lambda e: CROWD.index(e.name))
        chosen = {name: getattr(self.p, name) for name in self.p.__slots__ if name != "threads"}
        chosen["lengths"] = list(self.p.lengths)
        chosen["sizes"] = None if self.p.sizes is None else list(self.p.sizes)
        return Population(attacker, tuple(order), tuple(self.risks), self.excluded, chosen)

    def _rate(self, rate: Floats, trials: int) -> Interval | None:
        """The interval of a mean rate; each speaker counts the same."""
        if not self.p.resamples:
            return None
        if rate.size < MIN_SPEAKERS:
            raise few_speakers(rate.size)
        once = np.ones_like(rate)
        return rate_interval(rate, once, most=float(trials), confidence=self.p.confidence)

    def _add(
        self,
        name: str,
        value: float,
        chance: float,
        counts: Mapping[str, int],
        at: Mapping[str, int],
        chance_paper: float,
        interval: Interval | None,
    ) -> None:
        parameters = {**at, "chance_paper": chance_paper}
        self.estimates.append(
            Estimate(name, value, chance, counts, FIGURES[name].source, interval, parameters)
        )

    def _people(self, metric: str, who: Names, rate: Floats, sizes: Ints, length: int) -> None:
        """Rows of one metric, the most exposed in the largest population first."""
        order = np.lexsort((who, *(-rate[:, s] for s in range(sizes.size))))
        for s in reversed(range(sizes.size)):
            self.risks += [
                SpeakerRisk(metric, name, length, size, value)
                for name, size, value in zip(
                    who[order].tolist(),
                    [int(sizes[s])] * who.size,
                    rate[order, s].tolist(),
                    strict=True,
                )
            ]
