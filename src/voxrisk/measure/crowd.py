"""How the risk changes with the crowd: every metric for every conversation length and population.

One call compares what the attacker holds (``enrolled``) with what was published (``tested``) and
gives Singling Out, Linkability, ROCCH-EER, D_ECE and log10 l for each conversation length L and
each population size N, with intervals, chance levels and the speakers who are most exposed.

The paper's sets A and B change roles between its two attacks; :func:`crowd_of_sets` knows how.
Everything else says ``enrolled`` and ``tested``.

Reference: Vauquier et al., "Legally validated evaluation framework for voice anonymization",
Interspeech 2025.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.conversations import (
    Names,
    check_sides,
    conversations,
    halves,
    naming,
    of_speakers,
    speaker_means,
    with_at_least,
)
from voxrisk.measure.isolation import singling_out
from voxrisk.measure.population import Collector, Population, Protocol
from voxrisk.measure.scorers import Scorer, Spread, cosine, here, pairs, ready
from voxrisk.types import Embeddings, InputError


class Roles(NamedTuple):
    """The two sides of an attack: the voices the attacker holds, and the published speech."""

    enrolled: Embeddings
    tested: Embeddings


def measure_crowd(
    *,
    enrolled: Embeddings,
    tested: Embeddings,
    attacker: str = "attacker",
    scorer: Scorer = cosine,
    protocol: Protocol | None = None,
    spread: Spread = here,
) -> Population:
    """Measure how well speakers can be singled out and linked, for every L and N at once.

    The roles are the same in every figure. Swapped, they answer another question: with baseline B1
    of VoicePrivacy 2020, original voices isolate somebody among anonymized ones in 37 % of the
    attempts (chance 35 %), anonymized voices somebody among original ones in 50 %.

    Args:
        enrolled: What the attacker knows. Linkability, EER and ZEBRA: the mean of all utterances
            of a speaker. Singling Out: the predicates, each the mean of 30 utterances.
        tested: The speech that was published, in conversations of L utterances. Linkability: each
            is linked to one of N enrolled speakers. Singling Out: the N people among whom one is
            isolated; each needs 2·L utterances.
        attacker: Name.
        scorer: How two voices are compared.
        protocol: Lengths, population sizes and everything else that is chosen.
        spread: Who does the work; by default the cores of this machine.

    Raises:
        InputError: If a tested speaker is not enrolled, an utterance is on both sides, the
            dimensions differ, an N is larger than the population, or no speaker has enough
            utterances for an L.
    """
    p = protocol or Protocol()
    enrolled = with_at_least(enrolled, p.min_utterances)
    if p.min_utterances > 1:
        tested = of_speakers(tested, enrolled.speaker)
    check_sides(enrolled, tested)
    sides = Roles(enrolled, tested)
    return _curves(sides, sides, attacker, scorer, p, spread)


def crowd_of_sets(
    a: Embeddings,
    b: Embeddings | None = None,
    *,
    attacker: str = "attacker",
    scorer: Scorer = cosine,
    protocol: Protocol | None = None,
    spread: Spread = here,
) -> Population:
    """The study of the paper: set A of many speakers, set B of those to be looked for.

    Linkability, EER and ZEBRA: A is enrolled, B is tested. Singling Out, the other way round: B is
    enrolled (gives the predicates), A is tested. So A and B must be the same kind of speech, both
    original or both anonymized; where they are not, call :func:`measure_crowd`.

    Args:
        a: Many speakers.
        b: Other utterances of some of them. Without it, half of each speaker's utterances.
        attacker: Name.
        scorer: How two voices are compared.
        protocol: Lengths, population sizes and everything else that is chosen.
        spread: Who does the work; by default the cores of this machine.

    Raises:
        InputError: As :func:`measure_crowd`, with A enrolled and B tested.
    """
    p = protocol or Protocol()
    a = with_at_least(a, p.min_utterances)
    if b is None:
        a, b = halves(a, seed=p.seed)
    elif p.min_utterances > 1:
        b = of_speakers(b, a.speaker)
    check_sides(a, b)
    return _curves(
        Roles(enrolled=a, tested=b), Roles(enrolled=b, tested=a), attacker, scorer, p, spread
    )  # fmt: skip


def _curves(
    link: Roles, isolate: Roles, attacker: str, scorer: Scorer, p: Protocol, spread: Spread
) -> Population:
    """Every L: who links with what, and who isolates whom."""
    names, models = speaker_means(link.enrolled)
    voices, predicates = speaker_means(isolate.enrolled, at_most=p.enroll_utterances, seed=p.seed)
    p.check_sizes(names.size, link.enrolled.source)
    found = Collector(p, spread)
    for length in p.lengths:
        spoken = conversations(link.tested, length, at_most=p.trials, seed=p.seed)
        own = np.searchsorted(names, np.repeat(spoken.speaker, spoken.count))
        found.link(
            pairs(spoken.vectors, models, enroll_rows=False, scorer=scorer), own, names, length
        )
        crowd = conversations(isolate.tested, length, at_least=2, at_most=p.folds, seed=p.seed)
        eligible = np.flatnonzero(np.isin(voices, crowd.speaker))
        if not eligible.size:
            raise InputError(
                f"{isolate.tested.source}: none of the speakers of {isolate.enrolled.source} has "
                f"the {2 * length} utterances that Singling Out needs at L = {length}; lower L"
            )
        if crowd.speaker.size < 2:
            raise InputError(
                f"{isolate.tested.source}: only speaker {crowd.speaker[0]} has the {2 * length} "
                f"utterances that Singling Out needs at L = {length}; lower L"
            )
        rng = np.random.default_rng([p.seed, 0x53, length])
        chosen = np.sort(rng.permutation(eligible)[: p.predicates])
        isolation = singling_out(
            predicates[chosen], np.searchsorted(crowd.speaker, voices[chosen]), crowd,
            p.sizes_up_to(crowd.speaker.size).tolist(), folds=p.folds, draws=p.draws, seed=p.seed,
            scorer=scorer, threads=p.threads, spread=spread,
        )  # fmt: skip
        found.isolate(isolation, crowd.speaker, length)
        found.exclude(length, linkability=spoken.excluded, singling_out=crowd.excluded)
    return found.population(attacker)


def crowd_of_scores(
    scores: NDArray[np.floating],
    enroll: Names,
    trial: Names,
    *,
    length: int = 1,
    attacker: str = "attacker",
    protocol: Protocol | None = None,
    spread: Spread = here,
) -> Population:
    """As :func:`measure_crowd` from a ready score matrix; without Singling Out, which needs more.

    Args:
        scores: ``(n_enroll, n_trial)``, higher for the same speaker.
        enroll: ``(n_enroll,)`` speaker of each row, all different.
        trial: ``(n_trial,)`` speaker of each column.
        length: The L of the trials, to be recorded.
        attacker: Name.
        protocol: Only sizes, estimator, seed, intervals and threads are used.
        spread: Who does the work; by default the cores of this machine.
    """
    p = protocol or Protocol()
    scores, enroll, trial = np.asarray(scores), np.asarray(enroll), np.asarray(trial)
    if scores.shape != (enroll.size, trial.size):
        raise InputError(
            f"the score matrix has shape {scores.shape} for {enroll.size} enrolled speakers and "
            f"{trial.size} trials; it must be (enrolled, trials)"
        )
    names, order = np.unique(enroll, return_index=True)
    if names.size != enroll.size:
        twice = names[np.unique(enroll, return_counts=True)[1] > 1]
        raise InputError(f"{naming(twice, 'speaker')} enrolled twice; keep one row for each")
    if (strangers := np.setdiff1d(trial, enroll)).size:
        raise InputError(
            f"{naming(strangers, 'trial speaker')} not enrolled: whoever has no row cannot be "
            "found; add the row or leave out the trial"
        )
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(
            f"the score of {enroll[row]} against trial {column} ({trial[column]}) is "
            f"{scores[row, column]}; score it again"
        )
    p.check_sizes(names.size, "the score matrix")
    found = Collector(p, spread)
    own = np.searchsorted(names, trial)
    found.link(ready(scores[order].T), own, names, length)
    return found.population(attacker)
