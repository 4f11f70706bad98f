"""``voxrisk evaluate``: from two folders of audio to a report, in one command."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.pipeline.evaluation import Evaluation

EXAMPLE = """\b
Example:
  voxrisk evaluate --original speech --anonymized protected -o run
  voxrisk evaluate --original speech --anonymizer mcadams --train other-speakers -o run
  voxrisk evaluate --original speech --anonymizer world --hide age --keep emotion -o run
  voxrisk evaluate --config run/evaluation.yaml -o again
"""


# Options whose name is not that of the choice they make.
OPTIONS = {"settings": "options", "attacker": "attackers"}


def evaluate(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")],
    original: Annotated[Path | None, typer.Option(help="Original speech: any corpus.")] = None,
    anonymized: Annotated[
        Path | None, typer.Option(help="The same utterances, anonymized, under the same ids.")
    ] = None,
    anonymizer: Annotated[
        str | None,
        typer.Option(help="Or an anonymizer: a name, or a command with {input} and {output}."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Option of the anonymizer, key=value.")
    ] = None,
    select: Annotated[str, typer.Option(help="Target selection of the anonymizer.")] = "random",
    per: Annotated[str, typer.Option(help="Targets per utterance, speaker or session.")] = (
        "utterance"
    ),
    targets: Annotated[Path | None, typer.Option(help="Corpus of target speakers.")] = None,
    train: Annotated[
        Path | None, typer.Option(help="Speech of other people, to train informed attackers on.")
    ] = None,
    similar: Annotated[
        str | None, typer.Option(help="A similar anonymizer, for the semi-informed attacker.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Ready speaker encoder.")] = "ecapa-voxceleb",
    effort: Annotated[str, typer.Option(help="quick, standard or paper.")] = "standard",
    attacker: Annotated[
        list[str] | None, typer.Option(help="Only these attackers; repeat for several.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    reveal: Annotated[
        bool, typer.Option("--reveal-speakers", help="Print speaker ids, not pseudonyms.")
    ] = False,
    with_audio: Annotated[
        bool, typer.Option("--with-audio", help="Put a few pairs to listen to into the report.")
    ] = False,
    utility: Annotated[
        bool, typer.Option("--utility/--no-utility", help="Measure what speech is good for.")
    ] = True,
    hide: Annotated[
        list[str] | None,
        typer.Option(help="Column nobody should infer; repeat. By default gender and age."),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column that should survive, such as emotion; repeat.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="An evaluation.yaml to repeat; other options change it.")
    ] = None,
    stages: Annotated[
        Path | None, typer.Option(help="Where finished stages are kept; runs may share it.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the results of another evaluation.")
    ] = False,
) -> None:
    """Who can still be recognised, by whom, how surely, and what the speech is still good for.

    Runs every attacker the inputs allow and writes results.json and report.html. A run that was
    stopped goes on where it was; a stage is done again only when something it depends on changed.
    """
    from voxrisk.files.results import read_times
    from voxrisk.pipeline.evaluate import evaluate_speech
    from voxrisk.pipeline.evaluation import Evaluation, read_yaml
    from voxrisk.pipeline.stages import say
    from voxrisk.protect.anonymizers import parse_options
    from voxrisk.report.html import write_pdf, write_report

    choices = {
        "original": original,
        "anonymized": anonymized,
        "anonymizer": anonymizer,
        "options": parse_options(settings or []),
        "select": select,
        "per": per,
        "targets": targets,
        "train": train,
        "similar": similar,
        "encoder": encoder,
        "effort": effort,
        "attackers": tuple(attacker or ()),
        "title": title,
        "seed": seed,
        "reveal": reveal,
        "with_audio": with_audio,
        "utility": utility,
        "hide": tuple(hide or ()),
        "keep": tuple(keep or ()),
    }
    if config is not None:
        # What stands on the command line beside a file changes it; defaults do not.
        said = {OPTIONS.get(name, name) for name in context.params if _given(context, name)}
        changes = {key: value for key, value in choices.items() if key in said}
        chosen = _changed(read_yaml(config), changes)
    elif original is None:
        raise InputError("give --original DIR, or --config evaluation.yaml")
    else:
        chosen = Evaluation(**choices)  # type: ignore[arg-type]
    say(f"effort {chosen.effort}: {chosen.limits.words}")
    results = evaluate_speech(chosen, output, stages=stages, force=force)
    write_report(results, output / "report.html", run=read_times(output))
    if pdf:
        write_pdf(output / "report.html", output / "report.pdf")
    if as_json:
        print(results.to_json(), end="")
        return
    assert results.verdict is not None
    print(results.verdict.headline)
    for criterion in results.verdict.criteria:
        print(f"  {criterion.name}: {criterion.level}. {criterion.sentence}")
    for control in results.controls:
        if control.passed is False:
            print(f"  ! {control.question} No: {control.found}.")
    for notice in results.notices:
        if notice.severity != "next":
            print(f"  ! {notice.text}")
    print("\nWhat to do next:")
    for step in results.notices:
        if step.severity == "next":
            print(f"  - {step.text}")
    print(f"\nReport: {output / 'report.html'}")
    print(f"Names behind pseudonyms and files behind warnings: {output / 'private'}")


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _changed(chosen: "Evaluation", changes: dict[str, Any]) -> "Evaluation":
    """The evaluation of a file with what the command line says otherwise."""
    if "anonymizer" in changes:
        changes.setdefault("anonymized", None)
        changes.setdefault("options", {})
    if "anonymized" in changes and changes["anonymized"] is not None:
        changes.setdefault("anonymizer", None)
        changes.setdefault("options", {})
    return replace(chosen, **changes)
