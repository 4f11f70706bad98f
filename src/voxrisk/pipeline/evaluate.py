"""``voxrisk evaluate``: from speech to ``results.json``, in the order in which data flows."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxrisk.corpus.trials import pair_lists
from voxrisk.files.atomic import write_text
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.advice import next_steps
from voxrisk.pipeline.attacks import plan_attacks, run_attacks
from voxrisk.pipeline.controls import failed_attackers, run_controls
from voxrisk.pipeline.entered import evaluate_entry
from voxrisk.pipeline.entry import Entry
from voxrisk.pipeline.estimate import arrived, set_course
from voxrisk.pipeline.evaluation import (
    YAML,
    Evaluation,
    checked,
    is_ready,
    refuse_another_run,
    write_yaml,
)
from voxrisk.pipeline.exposure import exposure
from voxrisk.pipeline.findings import (
    measure_attack,
    measure_similarity,
    share_targets,
    worst_first,
)
from voxrisk.pipeline.given import with_enrolment
from voxrisk.pipeline.inference import check_asked, infer_attributes
from voxrisk.pipeline.listening import audio_pairs
from voxrisk.pipeline.methods import methods_of
from voxrisk.pipeline.official import choose_sides, side_notices
from voxrisk.pipeline.profiles import zero_profile
from voxrisk.pipeline.pseudonyms import write_shared
from voxrisk.pipeline.sides import Sides, write_sides
from voxrisk.pipeline.speech import Speech, prepare_speech
from voxrisk.pipeline.stages import Stages, say
from voxrisk.pipeline.usefulness import (
    measure_usefulness,
    tell_hearing,
    transcripts_control,
    word_notices,
)
from voxrisk.pipeline.verdict import give_verdict
from voxrisk.results import (
    AttackResult,
    Control,
    Corpus,
    Encoder,
    Results,
    SimilarityResult,
)
from voxrisk.shards import kept_workers
from voxrisk.types import InputError, as_path

FEW_SPEAKERS = 20


def evaluate(
    original: Path | str | None = None,
    *,
    out: Path | str,
    anonymized: Path | str | None = None,
    stages: Path | str | None = None,
    force: bool = False,
    fresh: bool = False,
    **choices: Any,
) -> Results:
    """Who can still be recognised after anonymization, by whom, and how surely.

    Args:
        original: Original speech: any corpus. Without it, ``embeddings`` or ``scores`` are needed.
        out: Folder of the run; a run that was stopped goes on there.
        anonymized: The same utterances, anonymized, under the same ids; or
        stages: Where finished stages are kept; by default inside ``out``.
        force: Write over the results of another evaluation.
        fresh: Anonymize again, also where finished speech is there.
        **choices: ``anonymizer="knn"``, ``train="other-people"``, ``effort="quick"``,
            ``enroll="enroll.csv"`` and ``trials=["f=trials_f.csv", "m=trials_m.csv"]``, and every
            other attribute of :class:`voxrisk.pipeline.evaluation.Evaluation`. Without speech:
            ``scores={"informed": "scores.csv"}``, ``embeddings={"informed": "vectors.npz"}`` and
            every other attribute of :class:`voxrisk.pipeline.entry.Entry`.

    Raises:
        InputError: If the inputs cannot give an answer; the message says why and the way out.
    """
    given = {key: value for key, value in choices.items() if value is not None}
    lists = given.pop("enroll", None), given.pop("trials", None)
    if any(part is not None for part in lists):
        given["sets"] = pair_lists(*(_several(part, "a list of trials") for part in lists))
    folder = as_path(out, "the folder of the run (out)")
    if original is None:
        return evaluate_entry(_entry(given), folder, force=force)
    given |= {"original": original, **({"anonymized": anonymized} if anonymized else {})}
    for key in ("attackers", "suite", "hide", "keep", "group_by"):
        if key in given:
            given[key] = _several(given[key], key)
    chosen = checked(given, Evaluation)
    kept = as_path(stages, "the folder of stages") if stages else None
    return evaluate_speech(chosen, folder, stages=kept, force=force, fresh=fresh)


def _entry(given: dict[str, Any]) -> Entry:
    """Where no speech is given: embeddings or scores, as ``{attacker: file}``."""
    for key in ("embeddings", "enroll_embeddings", "scores"):
        if key in given and not isinstance(given[key], Mapping):
            raise InputError(
                f"{key} are given as {{'informed': 'file'}}, and this is {given[key]!r}"
            )
    if "scores" in given:
        named = given["scores"].items()
        given["scores"] = {name: _several(paths, "a file of scores") for name, paths in named}
    if "original_scores" in given:
        given["original_scores"] = _several(given["original_scores"], "a file of scores")
    return checked(given, Entry)


def _several(given: Any, what: str) -> list[Any]:
    """One text or path, or several, as a list."""
    if given is None:
        return []
    if isinstance(given, str | Path):
        return [given]
    if not isinstance(given, Iterable):
        raise InputError(f"{what} cannot be {given!r} ({type(given).__name__})")
    return list(given)


@kept_workers()
def evaluate_speech(
    chosen: Evaluation,
    folder: Path,
    *,
    stages: Path | None = None,
    force: bool = False,
    fresh: bool = False,
) -> Results:
    """Run the whole chain and write everything into ``folder``; returns the results.

    What is finished stays in ``stages`` (by default ``folder/stages``) and is used again; with
    ``fresh`` speech is anonymized again.
    """
    refuse_another_run(write_yaml(chosen, folder), folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    kept = Stages(stages or folder / "stages", fresh=fresh)
    kept.folder.mkdir(parents=True, exist_ok=True)
    set_course(chosen, kept)

    check_asked(chosen, kept)
    tell_hearing(chosen, kept)
    speech = with_enrolment(chosen, prepare_speech(chosen, kept), kept)
    found = attack_speech(chosen, speech, kept, folder)
    useful = measure_usefulness(chosen, speech, kept)
    inferred, doubts = infer_attributes(chosen, speech, kept)
    if (heard := transcripts_control(useful)) is not None:
        found = replace(found, controls=(*found.controls, heard))
    notices = [*_general(chosen, speech, found), *speech.notices, *found.notices, *doubts]
    notices += word_notices(useful)

    results = Results(
        kind="evaluate",
        title=chosen.title or f"Speech {speech.anonymizer.description}",
        corpus=corpus_facts(chosen, speech),
        anonymizer=speech.anonymizer,
        encoder=encoder_facts(chosen.encoder),
        verdict=give_verdict(
            found.attacks,
            found.controls,
            [str(n.facts["attacker"]) for n in found.notices if n.code == "attacker_failed"],
            inferred,
        ),
        controls=found.controls,
        notices=tuple(notices),
        attacks=found.attacks,
        exposure=exposure(found.attacks, risk=chosen.risk, confidence=chosen.confidence),
        zero_evidence=zero_profile(),
        similarity=found.similarity,
        utility=useful,
        inference=inferred,
        audio=tuple(audio_pairs(speech)) if chosen.with_audio else (),
        methods=methods_of(chosen, speech, found.attacks, found.sides),
    )
    results = replace(results, notices=(*results.notices, *next_steps(results)))
    shared = write_shared(results, folder, people=speech.people, reveal=chosen.reveal)
    write_text(folder / YAML, write_yaml(chosen, folder))
    facts = kept.facts()
    say(arrived(kept.course, facts["seconds"]))
    write_text(folder / "run.json", json.dumps(facts, indent=1) + "\n")
    return shared


@dataclass(frozen=True, slots=True)
class Found:
    """What the attacks of a run found, speakers under their own names."""

    sides: Sides | None = None
    attacks: tuple[AttackResult, ...] = ()
    controls: tuple[Control, ...] = ()
    similarity: SimilarityResult | None = None
    notices: tuple[Notice, ...] = ()


def attack_speech(chosen: Evaluation, speech: Speech, stages: Stages, folder: Path) -> Found:
    """Every attack, its figures, and the controls that say whether to believe them."""
    if len(speech.people) < 2:
        return Found(notices=(notice("one_speaker"),))
    sides = choose_sides(chosen, speech, stages)
    write_sides(folder / "scores", sides)
    plan = plan_attacks(chosen, speech, stages)
    attacks, failed = run_attacks(chosen, plan, speech, sides, stages, folder)
    similarity, unlike = measure_similarity(chosen, speech, stages)
    notices = [*plan.notices, *failed, *unlike]
    measured = {}
    with stages.work("measure", "every attack"):
        for attack in attacks:
            result, said = measure_attack(chosen, attack, sides, similarity)
            measured[result.name] = result
            notices += [n for n in said if n not in notices]
    with stages.work("control", "every attack"):
        controls = run_controls(chosen, speech, sides, attacks, measured, stages)
    unsound = failed_attackers(controls)
    ranked = [replace(a, ranked=a.name not in unsound) for a in measured.values()]
    return Found(sides, tuple(worst_first(ranked)), tuple(controls), similarity, tuple(notices))


def _general(chosen: Evaluation, speech: Speech, found: Found) -> list[Notice]:
    """What a reader must know whatever the figures are."""
    notices = []
    if speech.synthetic:
        notices.append(notice("synthetic", by=speech.synthetic))
    if 1 < len(speech.people) < FEW_SPEAKERS:
        notices.append(notice("few_speakers", speakers=len(speech.people)))
    if found.sides is not None:
        notices += side_notices(found.sides, speech.original)
    if share_targets(speech):
        apart = chosen.draws_apart or speech.enrolled
        notices.append(notice("targets_apart" if apart else "targets_alike"))
    if found.attacks and not any(a.training for a in found.attacks):
        way_out = (
            "give --train-anonymized, or --anonymizer and --train, to run them"
            if chosen.anonymized
            else "add --train to run them"
        )
        notices.append(notice("untrained", way_out=way_out))
    return notices


def corpus_facts(chosen: Evaluation, speech: Speech) -> Corpus:
    """How much speech of how many people there was."""
    genders: dict[str, set[str]] = {}
    for row in speech.original:
        genders.setdefault(row.gender or "unknown", set()).add(row.speaker)
    return Corpus(
        name=chosen.original.name if chosen.reveal else "",
        speakers=len(speech.people),
        utterances=len(speech.original),
        hours=round(sum(row.duration or 0.0 for row in speech.original) / 3600, 3),
        genders={key: len(value) for key, value in sorted(genders.items())},
        sessions_known=all(row.session for row in speech.original),
        synthetic=speech.synthetic,
    )


def encoder_facts(name: str) -> Encoder:
    """A ready encoder by name and hash; one of the user by its hash."""
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.models import MODELS

    if is_ready(name):
        row = MODELS.get(name)
        digest = row.files[0].sha256 if row else ""
        return Encoder(name=name, description="ready speaker encoder", sha256=digest)
    return Encoder(
        name="encoder of the user",
        description="speaker encoder brought by the user",
        sha256=encoder_identity(name).rpartition(":")[2],
    )
