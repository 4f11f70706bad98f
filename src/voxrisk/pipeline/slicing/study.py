"""The whole study, in the order in which data flows; every stage is kept by its content."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from voxrisk.files.atomic import write_text
from voxrisk.pipeline.evaluate import corpus_facts, encoder_facts
from voxrisk.pipeline.evaluation import (
    is_ready,
    plain_sets,
    refuse_another_run,
    yaml_from,
    yaml_hidden,
)
from voxrisk.pipeline.methods import drawn_methods
from voxrisk.pipeline.sharing import shown_choice, shown_options, shown_reason
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.listeners import listen
from voxrisk.pipeline.slicing.material import Found, Material, prepare
from voxrisk.pipeline.slicing.outlook import set_course
from voxrisk.pipeline.slicing.reassembly import reassemble
from voxrisk.pipeline.slicing.recommend import recommend
from voxrisk.pipeline.slicing.tables import write_tables
from voxrisk.pipeline.slicing.text import attack_text
from voxrisk.pipeline.slicing.words_heard import hear
from voxrisk.pipeline.stages import Stages
from voxrisk.report.slicing import write_pictures, write_slicing_report
from voxrisk.report.slicing_tables import write_slicing_tables
from voxrisk.shards import kept_workers
from voxrisk.slicing_results import Recommendation, SlicingResults

YAML = "slicing.yaml"
# Name of a choice, and of what is missing → who does it.
PARTS: dict[str, Callable[[Material, Found], None]] = {
    "privacy": listen,
    "text": attack_text,
    "speech": reassemble,
    "utility": hear,
}


@kept_workers()
def study_slicing(
    chosen: Slicing, folder: Path, *, stages: Path | None = None, force: bool = False
) -> SlicingResults:
    """Run the study and write everything into ``folder``; returns the results.

    What is finished stays in ``stages`` (by default ``folder/stages``) and is used again.
    """
    yaml = yaml_from(_choices(chosen), folder)
    refuse_another_run(yaml, folder, force=force, file=YAML)
    folder.mkdir(parents=True, exist_ok=True)
    kept = Stages(stages or folder / "stages")
    kept.folder.mkdir(parents=True, exist_ok=True)
    found = Found()
    material = prepare(chosen, kept, found)
    set_course(material)
    for name, part in PARTS.items():
        if getattr(chosen, name):
            part(material, found)
        else:
            found.missing[name] = "not asked for"
    results = _results(material, found)
    results.write(folder)
    write_tables(results, folder)
    write_slicing_tables(results, folder / "tables", ("csv", "markdown"))
    write_pictures(results, folder)
    write_slicing_report(results, folder / "report.html")
    write_text(folder / YAML, yaml)
    write_text(folder / "run.json", json.dumps(kept.facts(), indent=1) + "\n")
    return results


def _results(material: Material, found: Found) -> SlicingResults:
    chosen, speech = material.chosen, material.speech
    made = speech.anonymizer if chosen.protected else None
    results = SlicingResults(
        title=chosen.title or f"Slices of {f'speech {made.description}' if made else 'speech'}",
        corpus=corpus_facts(material.evaluation, speech),
        anonymizer=made,
        encoder=encoder_facts(chosen.encoder),
        durations=chosen.durations,
        cut=chosen.cut,
        fixed=material.words["clear"] is None,
        privacy=tuple(found.privacy),
        utility=tuple(found.utility),
        successors=tuple(found.successors),
        restored=tuple(found.restored),
        recommendation=Recommendation(duration=None, reason=""),
        missing={
            part: why if chosen.reveal else shown_reason(why) for part, why in found.missing.items()
        },
        notices=tuple(
            n if chosen.reveal else replace(n, speakers=()).pseudonymous({}) for n in found.notices
        ),
        methods=replace(
            drawn_methods(material.evaluation, ()),
            enrolment="mean of the vectors of all pieces that enrol, cosine similarity",
            hashes={"clear": speech.digest, "anonymized": speech.anonymized_digest},
            evaluation_yaml=_shared_yaml(chosen),
        ),
    )
    return replace(results, recommendation=recommend(results))


def _choices(chosen: Slicing) -> dict[str, Any]:
    """Everything that is not as it is by default, for ``slicing.yaml``."""
    kept = {"durations", "seed", "effort", "encoder"}  # said even where they are the default
    plain = {one.name: getattr(chosen, one.name) for one in fields(Slicing)}
    plain |= {"options": dict(chosen.options), "sets": plain_sets(chosen.sets)}
    plain |= {"durations": list(chosen.durations), "neural": list(chosen.neural)}
    default = {one.name: one.default for one in fields(Slicing)}
    return {
        name: value
        for name, value in plain.items()
        if name in kept or (value != default[name] and value not in (None, {}, [], ""))
    }


def _shared_yaml(chosen: Slicing) -> str:
    """The same for eyes that may not see names."""
    plain = _choices(chosen)
    if chosen.anonymizer:
        plain["anonymizer"] = shown_choice(chosen.anonymizer)
        plain["options"] = shown_options(chosen.anonymizer, chosen.options)
    if not is_ready(chosen.encoder):
        plain["encoder"] = "ENCODER"
    return yaml_hidden(plain)
