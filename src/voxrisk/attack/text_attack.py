"""Put slices in order by their words alone: every attacker on text, and what each one finds.

The attacker of the paper (Maouche et al., Interspeech 2022, Section 5.1) stands beside stronger
ones that ask the same language model a better question, and beside neural ones. All of them are
weighed together in one calibrated score.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.fusion import fuse
from voxrisk.attack.reassembly import reassemble
from voxrisk.attack.successors import (
    LAST,
    Indices,
    Scorer,
    Slices,
    rank_estimates,
    successor_ranks,
)
from voxrisk.attack.trigram_scorer import TrigramScorer, unknown_share
from voxrisk.language.ngram import NGram, embedded_model
from voxrisk.measure.restoring import restored_estimates
from voxrisk.types import Estimate, InputError

TRIGRAM, LIFT, TOGETHER = "trigram", "trigram, lift", "all texts together"
MOST_UNKNOWN = 0.3  # share of words that a model may not know and still be one of this language
POOLS = ("all", "speaker", "utterance")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAttack:
    """What attackers on text found.

    Attributes:
        figures: Attacker → figure → estimate, see :func:`voxrisk.attack.successors.rank_estimates`.
        scorers: The attackers, each by itself, to be weighed against others on voice and cut.
        scorer: All of them in one calibrated score, or the only one.
        unknown: Share of the words that the language model does not know.
        model: Hash of the language model.
    """

    figures: Mapping[str, Mapping[str, Estimate]]
    scorers: Mapping[str, Scorer]
    scorer: Scorer
    unknown: float
    model: str


def text_scorers(
    slices: Slices, *, language_model: NGram | None = None, neural: Sequence[str] = ()
) -> dict[str, Scorer]:
    """Every attacker on text by name, see :mod:`voxrisk.attack.successors`.

    Args:
        slices: The slices; only their words are looked at.
        language_model: A trigram model; None: pocketsphinx's own, which is English.
        neural: Names of neural models, see :data:`voxrisk.attack.neural_text.NEURAL`.

    Raises:
        InputError: If there are no words, or they are in a language the model does not know.
    """
    if not any(slices.words):
        raise InputError(
            "the slices have no words, so nothing can be said about their order from text; give "
            "transcripts in the corpus, or an alignment"
        )
    model = language_model or embedded_model()
    if (unknown := unknown_share(slices.words, model)) > MOST_UNKNOWN:
        raise InputError(
            f"the language model does not know {unknown:.0%} of the words: they seem to be of "
            "another language, and an attack that fails for that reason is no privacy; give an "
            "ARPA model of the language"
        )
    scorers: dict[str, Scorer] = {
        TRIGRAM: TrigramScorer(slices.words, model),
        LIFT: TrigramScorer(slices.words, model, lift=True),
    }
    if neural:
        from voxrisk.attack.neural_text import NEURAL

        if strangers := [name for name in neural if name not in NEURAL]:
            raise InputError(f"no neural model {strangers[0]!r}; known are {', '.join(NEURAL)}")
        scorers |= {name: NEURAL[name](slices.words, scorers[LIFT]) for name in neural}
    return scorers


def text_attack(
    slices: Slices,
    *,
    language_model: NGram | None = None,
    neural: Sequence[str] = (),
    confidence: float = 0.95,
    seed: int = 0,
    tell: Callable[[int], None] | None = None,
) -> TextAttack:
    """Every attacker on text, alone and together, on all slices at once.

    Args:
        slices: The slices, in any order.
        language_model: A trigram model; None: pocketsphinx's own, which is English.
        neural: Names of neural models that are asked too.
        confidence: Coverage of the intervals, which resample speakers.
        seed: Of the folds in which the attackers are weighed.
        tell: Called with the number of slices done, once for each attacker.

    Raises:
        InputError: If there are no words, no slice has a successor, or the model does not know the
            language.
    """
    scorers = text_scorers(slices, language_model=language_model, neural=neural)
    successor = slices.successor
    everyone = dict(scorers)
    group = _groups(slices, successor)
    if group is not None:
        everyone[TOGETHER] = fuse(list(scorers.values()), successor, group, seed=seed)
    figures = {
        name: rank_estimates(
            successor_ranks(scorer, successor, tell=tell), slices.speaker, confidence=confidence
        )
        for name, scorer in everyone.items()
    }
    model = language_model or embedded_model()
    return TextAttack(
        figures=figures,
        scorers=scorers,
        scorer=everyone.get(TOGETHER, scorers[LIFT]),
        unknown=unknown_share(slices.words, model),
        model=model.identity,
    )


def _groups(slices: Slices, successor: Indices) -> NDArray[np.str_] | None:
    """Whose slices stay together when attackers are weighed: a speaker's, or an utterance's."""
    pairs = successor != LAST
    for names in (slices.speaker, slices.source):
        if np.unique(np.array(names)[pairs]).size > 1:
            return np.array(names)
    return None


def whole_utterances(
    scorer: Scorer, slices: Slices, *, confidence: float = 0.95, seed: int = 0
) -> dict[str, Mapping[str, Estimate]]:
    """How much of the utterances a search restores, by what lies on one table.

    Returns:
        ``"all"`` slices (the attacker knows nothing), those of one ``"speaker"`` (the voice was
        recognised), those of one ``"utterance"`` → figures of
        :data:`voxrisk.measure.restoring.RESTORED_FIGURES`, each with its chance.
    """
    successor = slices.successor
    speaker = np.unique(slices.speaker, return_inverse=True)[1].astype(np.int64)
    source = np.unique(slices.source, return_inverse=True)[1].astype(np.int64)
    tables = dict(zip(POOLS, (np.zeros_like(speaker), speaker, source), strict=True))
    return {
        pool: restored_estimates(
            reassemble(scorer, len(slices), table, seed=seed), successor, speaker, table,
            confidence=confidence, seed=seed,
        )
        for pool, table in tables.items()
    }  # fmt: skip
