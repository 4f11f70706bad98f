"""How the risk changes with the crowd: every metric for every conversation length and population.

One call compares the voices of set A (many speakers) with those of set B (speakers to be looked
for, each also in A with other utterances) and gives Singling Out, Linkability, ROCCH-EER, D_ECE and
log10 l for each conversation length L and each population size N, with intervals, chance levels and
the speakers who are most exposed.

Reference: Vauquier et al., "Legally validated evaluation framework for voice anonymization",
Interspeech 2025.
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure.conversations import (
    Names,
    conversations,
    naming,
    roles,
    speaker_means,
    with_at_least,
)
from voxrisk.measure.curves import Collector, Population, Protocol
from voxrisk.measure.scoring import Scorer, cosine, pairs, ready
from voxrisk.measure.singling_out import singling_out
from voxrisk.types import Embeddings, InputError


def population(
    a: Embeddings,
    b: Embeddings | None = None,
    *,
    attacker: str = "attacker",
    scorer: Scorer = cosine,
    protocol: Protocol | None = None,
) -> Population:
    """Measure how well speakers can be singled out and linked, for every L and N at once.

    Linkability and EER: A enrols (mean of all utterances), B is tested. Singling Out: B gives the
    predicates (mean of 30 utterances), A is tested. With A alone each speaker's utterances are
    split in two halves.

    Raises:
        InputError: If the sets do not fit together (see :func:`roles`), an N is larger than the
            population, or no speaker has enough utterances for an L.
    """
    p = protocol or Protocol()
    a = with_at_least(a, p.min_utterances)
    if b is not None and p.min_utterances > 1:
        keep = np.isin(b.speaker, a.speaker)
        b = Embeddings(b.utterance[keep], b.speaker[keep], b.vectors[keep], b.source)
    a, b = roles(a, b, seed=p.seed)
    names, enrolled = speaker_means(a)
    voices, vectors = speaker_means(b, at_most=p.enroll_utterances, seed=p.seed)
    p.check_sizes(names.size, a.source)
    found = Collector(p)
    for length in p.lengths:
        tested = conversations(b, length, at_most=p.trials, seed=p.seed)
        own = np.searchsorted(names, np.repeat(tested.speaker, tested.count))
        found.link(
            pairs(tested.vectors, enrolled, enroll_rows=False, scorer=scorer), own, names, length
        )
        crowd = conversations(a, length, at_least=2, at_most=p.folds, seed=p.seed)
        eligible = np.flatnonzero(np.isin(voices, crowd.speaker))
        if not eligible.size:
            raise InputError(
                f"{a.source}: none of the speakers of {b.source} has the {2 * length} utterances "
                f"that Singling Out needs at L = {length}; lower L"
            )
        if crowd.speaker.size < 2:
            raise InputError(
                f"{a.source}: only speaker {crowd.speaker[0]} has the {2 * length} utterances that "
                f"Singling Out needs at L = {length}; lower L"
            )
        rng = np.random.default_rng([p.seed, 0x53, length])
        chosen = np.sort(rng.permutation(eligible)[: p.predicates])
        isolation = singling_out(
            vectors[chosen], np.searchsorted(crowd.speaker, voices[chosen]), crowd,
            p.sizes_up_to(crowd.speaker.size).tolist(), folds=p.folds, draws=p.draws, seed=p.seed,
            scorer=scorer, threads=p.threads,
        )  # fmt: skip
        found.isolate(isolation, crowd.speaker, length)
        found.exclude(length, linkability=tested.excluded, singling_out=crowd.excluded)
    return found.population(attacker)


def population_of_scores(
    scores: NDArray[np.floating],
    enroll: Names,
    trial: Names,
    *,
    length: int = 1,
    attacker: str = "attacker",
    protocol: Protocol | None = None,
) -> Population:
    """As :func:`population` from a ready score matrix; without Singling Out, which needs more.

    Args:
        scores: ``(n_enroll, n_trial)``, higher for the same speaker.
        enroll: ``(n_enroll,)`` speaker of each row, all different.
        trial: ``(n_trial,)`` speaker of each column.
        length: The L of the trials, to be recorded.
        attacker: Name.
        protocol: Only sizes, estimator, seed, intervals and threads are used.
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
    found = Collector(p)
    own = np.searchsorted(names, trial)
    found.link(ready(scores[order].T), own, names, length)
    return found.population(attacker)
