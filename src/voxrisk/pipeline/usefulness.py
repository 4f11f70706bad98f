"""What the speech of a run is still good for, and which recogniser hears its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voxrisk.corpus import Utterance
from voxrisk.files.atomic import write_text
from voxrisk.hearing import check_recogniser, language_name, recogniser_digest, shown_recogniser
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.speech import Speech, limited
from voxrisk.pipeline.stages import Stages, say
from voxrisk.results import Control, UtilityResult
from voxrisk.types import MissingExtraError
from voxrisk.utility.transcripts import choose_recogniser, spoken_languages, unheard

MANY_WORDS = 0.4  # share of wrong words
HARD = 0.3  # share of words of original speech that are wrong: a recogniser that struggles
NAMES = {"wer": "words", "cer": "characters"}  # also of the notices


@dataclass(frozen=True, slots=True)
class Hearing:
    """Who hears the words of a corpus: the recogniser, the languages, and why nobody can."""

    asr: str
    languages: tuple[str, ...]
    why_not: str = ""


def plan_hearing(chosen: Evaluation, rows: Sequence[Utterance]) -> Hearing:
    """Choose the recogniser by the languages of the speech.

    Raises:
        InputError: If the recogniser that was asked for does not exist.
    """
    if chosen.asr:
        check_recogniser(chosen.asr)
    languages = spoken_languages(rows, chosen.language)
    limits = chosen.limits
    asr = choose_recogniser(languages, chosen.asr, english=limits.asr, others=limits.asr_others)
    why = unheard([row.text for row in rows], asr, languages)
    return Hearing(asr, tuple(sorted(set(languages))), why)


def tell_hearing(chosen: Evaluation, stages: Stages) -> None:
    """Say who will hear the words, or that nobody can, before anything is run."""
    if not chosen.utility:
        return
    rows = stages.read(chosen.original)
    plan = plan_hearing(chosen, rows)
    if plan.why_not:
        say(f"usefulness: {plan.why_not}; only what needs no words will be measured")
        return
    spoken = ", ".join(language_name(code) for code in plan.languages)
    told = chosen.language or any(row.language for row in rows)
    guess = "" if told else " (assumed: no language is declared; --language names it)"
    say(f"usefulness: {shown_recogniser(plan.asr)} hears the words, in {spoken}{guess}")


def measure_usefulness(chosen: Evaluation, speech: Speech, stages: Stages) -> UtilityResult:
    """Every figure of usefulness that can be had, on as much speech as the effort allows."""
    if not chosen.utility:
        return UtilityResult(missing={"all": "not asked for"})
    rows = limited(speech.original, chosen.limits.asr_minutes)
    kept = {row.utterance for row in rows}
    pair = rows, [row for row in speech.anonymized if row.utterance in kept]
    marked = [row.utterance for row in limited(rows, chosen.limits.marks_minutes)]
    asr = plan_hearing(chosen, speech.original).asr
    inputs = {
        "original": speech.digest,
        "anonymized": speech.anonymized_digest,
        "minutes": chosen.limits.asr_minutes,
        "marked": chosen.limits.marks_minutes,
        "asr": recogniser_digest(asr),
        "languages": spoken_languages(rows, chosen.language),
        "declared": chosen.language is not None,
        "seed": chosen.seed,
        "resamples": chosen.limits.resamples,
    }
    fresh: list[UtilityResult] = []

    def make(folder: Path) -> None:
        from voxrisk.utility import measure_utility

        found = measure_utility(
            *pair,
            # Keys are hashes of the audio: runs that share stages share what they heard.
            journal=stages.folder / "utility.jsonl",
            asr=asr,
            language=chosen.language,
            marked=marked,
            seed=chosen.seed,
            resamples=chosen.limits.resamples,
        )
        fresh.append(found.result())
        write_text(folder / "utility.json", fresh[0].to_json())

    try:
        folder = stages.run(
            "utility", inputs, make, label="before and after", speech=(*pair[0], *pair[1]), what=asr
        )
    except MissingExtraError as error:
        return UtilityResult(missing={"all": str(error)})
    return fresh[0] if fresh else UtilityResult.from_json((folder / "utility.json").read_bytes())


def _counted(utility: UtilityResult) -> str:
    """The figure that tells whether speech is understood: words, or characters without them."""
    return "wer" if utility.get("wer", "original") else "cer"


def word_notices(utility: UtilityResult) -> list[Notice]:
    """Speech that nobody understands hides its speaker too; say so where words were lost."""
    name = _counted(utility)
    before, after = utility.get(name, "original"), utility.get(name, "anonymized")
    if before is None or after is None:
        return []
    if name in utility.untrusted:
        return [notice(f"{NAMES[name]}_untrusted", before=before.value)]
    hard = [notice(f"{NAMES[name]}_hard", before=before.value)] if before.value > HARD else []
    if after.value < max(MANY_WORDS, 2 * before.value):
        return hard
    return [notice(f"{NAMES[name]}_lost", before=before.value, after=after.value), *hard]


def transcripts_control(utility: UtilityResult) -> Control | None:
    """Whether the words of the original speech are understood: without that no loss means much."""
    from voxrisk.utility.wer import UNTRUSTED, UNTRUSTED_CHARACTERS

    name = _counted(utility)
    before = utility.get(name, "original")
    if before is None:
        return None
    limit = UNTRUSTED if name == "wer" else UNTRUSTED_CHARACTERS
    return Control(
        code="transcripts",
        question="Does the speech recogniser understand the original speech?",
        expected=f"it gets fewer than {100 * limit:.0f} % of the {NAMES[name]} of the "
        "transcripts wrong",
        found=f"{100 * before.value:.1f} % of the {NAMES[name]} wrong",
        passed=name not in utility.untrusted,
        value=before,
    )
