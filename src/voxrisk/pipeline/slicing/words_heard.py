"""What slices cost: word errors of a ready recogniser that hears them, and of one they trained."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from voxrisk.corpus import Utterance
from voxrisk.hearing import language_code
from voxrisk.language.ngram import embedded_model
from voxrisk.pipeline.slicing.lessons import training_slices, training_speech
from voxrisk.pipeline.slicing.material import Found, Material
from voxrisk.pipeline.speech import limited
from voxrisk.slicing_results import UtilityRow
from voxrisk.types import InputError, MissingExtraError
from voxrisk.utility.asr.ready import ready_utility
from voxrisk.utility.asr.recipes import RECIPES, Recipe
from voxrisk.utility.asr.trained import slice_utility
from voxrisk.utility.transcripts import choose_recogniser

# A ready recogniser hears as many pieces of each length as hold so many words: the intervals are
# then of like width, and no wider than those of 45 speakers must be.
WORDS = 300
WORD_SECONDS = 0.4  # that a word takes, about
MOST_MINUTES = 10.0  # of whole utterances that a trained recogniser is tested on
Key = tuple[str, float | None]


def hear(material: Material, found: Found) -> None:
    """Word error rates of both recognisers; what cannot be had is said with its reason."""
    if material.words["clear"] is None:
        found.missing["utility"] = "nobody knows which words a slice holds"
        return
    speech = training_speech(material)  # what is wrong with it ends the run: the user can mend it
    taught = functools.partial(_trained, speech=speech)
    parts: dict[str, tuple[Callable[[Material], list[UtilityRow]], tuple[str, float]]] = {
        "a ready recogniser on slices": (_ready, hearing(material)),
        "recognisers that learn from slices": (taught, teaching(material)),
    }
    for label, (part, (what, seconds)) in parts.items():
        try:
            with material.stages.work("utility", label, what=what, speech=seconds):
                found.utility += part(material)
        except (InputError, MissingExtraError) as error:
            said = found.missing.get("utility", "")
            found.missing["utility"] = f"{said} {error}".strip()


def hearing(material: Material) -> tuple[str, float]:
    """What the ready recogniser is called where costs are listed, and the speech that it hears."""
    kinds = len(material.conditions) * (1 + len(material.chosen.durations))
    return "slices heard", kinds * WORDS * WORD_SECONDS


def teaching(material: Material) -> tuple[str, float]:
    """The same of the recognisers that learn, and all that they hear while they do."""
    recipe = _recipe(material)
    kinds = len(material.conditions) * (1 + len(material.chosen.durations))
    return "slices learned from", kinds * recipe.steps * recipe.batch_seconds


def _recipe(material: Material) -> Recipe:
    recipe, steps = RECIPES["whisper"], material.chosen.steps
    return replace(recipe, steps=steps) if steps else recipe


def _ready(material: Material) -> list[UtilityRow]:
    chosen = material.chosen
    pieces: dict[Key, Sequence[Utterance]] = {}
    for condition in material.conditions:
        pieces[condition, None] = material.rows(condition)[0]
        for duration in chosen.durations:
            if held := material.sliced.get((condition, duration)):
                pieces[condition, duration] = held.rows
    language = _language(material)
    asr = choose_recogniser(
        [language], chosen.asr, english=chosen.limits.asr, others=chosen.limits.asr_others
    )
    cells = ready_utility(
        pieces,
        asr=asr,
        language=language,
        words=WORDS,
        journal=material.stages.folder / "utility.jsonl",
        seed=chosen.seed,
        resamples=chosen.limits.resamples,
        confidence=chosen.confidence,
    )
    return [
        UtilityRow(
            recogniser="ready",
            train="",
            test=c.tested,
            duration=c.duration,
            wer=c.wer,
            loss=c.loss,
            pieces=c.pieces,
        )
        for c in cells
    ]


def _trained(material: Material, *, speech: Mapping[str, Sequence[Utterance]]) -> list[UtilityRow]:
    chosen = material.chosen
    if not speech or not chosen.trained:
        return []
    training: dict[Key, Sequence[Utterance]] = {}
    for condition, rows in speech.items():
        training[condition, None] = rows
        for pieces in training_slices(material, condition, speech, chosen.durations):
            training[condition, pieces.duration] = pieces.rows
    heard = limited(material.speech.original, min(chosen.limits.asr_minutes, MOST_MINUTES))
    names = {row.utterance for row in heard}
    testing = {
        condition: [row for row in material.rows(condition)[0] if row.utterance in names]
        for condition in material.conditions
    }
    cells = slice_utility(
        training,
        testing,
        material.stages,
        recipe=_recipe(material),
        load_model=functools.partial(embedded_model),
        language=_language(material),
        seed=chosen.seed,
        resamples=chosen.limits.resamples,
        confidence=chosen.confidence,
    )
    return [
        UtilityRow(
            recogniser="trained",
            train=c.trained,
            test=c.tested,
            duration=c.duration,
            wer=c.wer,
            loss=c.loss,
            mismatch=c.mismatch,
            pieces=c.pieces,
            hours=c.hours,
            steps=c.steps,
        )
        for c in cells
    ]


def _language(material: Material) -> str:
    spoken = (row.language for row in material.speech.original if row.language)
    return language_code(next(spoken, "en"))
