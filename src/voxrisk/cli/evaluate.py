"""``voxrisk evaluate``: from two folders of audio to a report, in one command."""

import json
from pathlib import Path
from typing import Annotated

import typer

from voxrisk.types import InputError

EXAMPLE = """\b
Example:
  voxrisk evaluate --original speech --anonymized protected -o run
  voxrisk evaluate --original speech --anonymizer mcadams --train other-speakers -o run
  voxrisk evaluate --config run/evaluation.yaml -o again
"""


def evaluate(
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
    config: Annotated[Path | None, typer.Option(help="An evaluation.yaml to repeat.")] = None,
    stages: Annotated[
        Path | None, typer.Option(help="Where finished stages are kept; runs may share it.")
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json.")] = False,
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

    if config is not None:
        chosen = read_yaml(config)
    elif original is None:
        raise InputError("give --original DIR, or --config evaluation.yaml")
    else:
        chosen = Evaluation(
            original,
            anonymized,
            anonymizer,
            parse_options(settings or []),
            select,
            per,
            targets,
            train,
            similar,
            encoder,
            effort,
            tuple(attacker or ()),
            title,
            seed,
            reveal=reveal,
            with_audio=with_audio,
            utility=utility,
        )
    say(f"effort {chosen.effort}: {chosen.limits.words}")
    results = evaluate_speech(chosen, output, stages=stages)
    write_report(results, output / "report.html", run=read_times(output))
    if pdf:
        write_pdf(output / "report.html", output / "report.pdf")
    if as_json:
        print(json.dumps(results, ensure_ascii=False))
        return
    print(results["verdict"]["headline"])
    for criterion in results["verdict"]["criteria"]:
        print(f"  {criterion['criterion']}: {criterion['level']}. {criterion['sentence']}")
    for warning in results["warnings"]:
        print(f"  ! {warning['text']}")
    print(f"\nReport: {output / 'report.html'}")
