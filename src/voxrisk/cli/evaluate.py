"""``voxrisk evaluate``: from two folders of audio to a report, in one command."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxrisk.cli.engine import Engine
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.pipeline.evaluation import Evaluation
    from voxrisk.results import Results

EXAMPLE = """\b
Example:
  voxrisk evaluate --original speech --anonymized protected -o run
  voxrisk evaluate --original speech --anonymizer mcadams --train other-speakers -o run
  voxrisk evaluate --original speech --anonymized protected --enroll enroll.csv
    --trials f=trials_f.csv --trials m=trials_m.csv -o run
  voxrisk evaluate --original data --anonymized "data/*_mine" --train-anonymized train_mine -o run
  voxrisk evaluate --scores informed=scores.csv --trials trials.csv -o run
  voxrisk evaluate --original speech --anonymizer world --hide age --keep emotion -o run
  voxrisk evaluate --config run/evaluation.yaml -o again
"""


# Options whose name is not that of the choice they make.
OPTIONS = {
    "settings": "options",
    "attacker": "attackers",
    "enroll": "sets",
    "trials": "sets",
}


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
    train_anonymized: Annotated[
        Path | None,
        typer.Option(help="Other people's speech, anonymized as yours was: no anonymizer needed."),
    ] = None,
    enroll_anonymized: Annotated[
        Path | None,
        typer.Option(help="Enrolment that the attacker anonymized with draws of its own."),
    ] = None,
    embeddings: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ATTACKER=]FILE", help="Begin with vectors of anonymized speech; repeat."
        ),
    ] = None,
    enroll_embeddings: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ATTACKER=]FILE", help="Vectors of the enrolment, if in another file."
        ),
    ] = None,
    original_embeddings: Annotated[
        Path | None, typer.Option(help="Vectors of the original speech: the reference.")
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(metavar="[ATTACKER=]FILE", help="Begin with scores of the --trials; repeat."),
    ] = None,
    original_scores: Annotated[
        list[Path] | None, typer.Option(help="Scores of these trials on original speech.")
    ] = None,
    speakers: Annotated[
        Path | None, typer.Option(help="Who speaks, beside --scores: utt2spk, CSV, manifest.")
    ] = None,
    similar: Annotated[
        str | None, typer.Option(help="A similar anonymizer, for the semi-informed attacker.")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(help="Speaker encoder (ecapa-voxceleb); more are for the suite."),
    ] = None,
    effort: Annotated[str, typer.Option(help="quick, standard or paper.")] = "standard",
    attacker: Annotated[
        list[str] | None, typer.Option(help="Only these attackers; repeat for several.")
    ] = None,
    enroll: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]LIST",
            help="Which utterances enrol: CSV, Kaldi or VoicePrivacy; once, or for each --trials.",
        ),
    ] = None,
    trials: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]LIST", help="What is compared; repeat for several sets of trials."
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(help="official: lists or roles that come with the speech; own: drawn here."),
    ] = "official",
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    risk: Annotated[
        float, typer.Option(help="Count the people who are linked at least so often, 0 to 1.")
    ] = 0.5,
    reveal: Annotated[
        bool, typer.Option("--reveal-speakers", help="Print speaker ids, not pseudonyms.")
    ] = False,
    with_audio: Annotated[
        bool, typer.Option("--with-audio", help="Put a few pairs to listen to into the report.")
    ] = False,
    utility: Annotated[
        bool, typer.Option("--utility/--no-utility", help="Measure what speech is good for.")
    ] = True,
    language: Annotated[
        str | None, typer.Option(help="Language of the speech; default: the table's, else en.")
    ] = None,
    asr: Annotated[
        str | None,
        typer.Option(
            help="Speech recogniser: whisper-tiny.en, moonshine-base, whisper-base, whisper-small, "
            "or a CTranslate2 folder."
        ),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(help="Column by which figures are told apart, such as accent; repeat."),
    ] = None,
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
    engine: Engine = "local",
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the results of another evaluation.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Anonymize again, also where finished speech is there.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, and about how long; do nothing.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Try each stage on a sample; say what the run would take."),
    ] = False,
) -> None:
    """Who can still be recognised, by whom, how surely, and what the speech is still good for.

    Runs every attacker the inputs allow and writes results.json and report.html. A run that was
    stopped goes on where it was; a stage is done again only when something it depends on changed.
    """
    from voxrisk.corpus.trials import pair_lists
    from voxrisk.pipeline.dry_run import look_ahead
    from voxrisk.pipeline.entered import evaluate_entry
    from voxrisk.pipeline.entry import Entry, named_files, one_file, read_entry
    from voxrisk.pipeline.evaluate import evaluate_speech
    from voxrisk.pipeline.evaluation import Evaluation, read_yaml
    from voxrisk.protect.anonymizers import parse_options

    choices = {
        "original": original,
        "anonymized": anonymized,
        "anonymizer": anonymizer,
        "options": parse_options(settings or []),
        "select": select,
        "per": per,
        "targets": targets,
        "train": train,
        "train_anonymized": train_anonymized,
        "enroll_anonymized": enroll_anonymized,
        "similar": similar,
        "encoder": (encoder or ["ecapa-voxceleb"])[0],
        "suite": tuple((encoder or [])[1:]),
        "effort": effort,
        "attackers": tuple(attacker or ()),
        "sets": pair_lists(enroll or [], trials or []),
        "split": split,
        "title": title,
        "seed": seed,
        "risk": risk,
        "reveal": reveal,
        "with_audio": with_audio,
        "utility": utility,
        "language": language,
        "asr": asr,
        "group_by": tuple(group_by or ()),
        "hide": tuple(hide or ()),
        "keep": tuple(keep or ()),
    }
    sources = {
        "embeddings": one_file("--embeddings", embeddings or []),
        "enroll_embeddings": one_file("--enroll-embeddings", enroll_embeddings or []),
        "original_embeddings": original_embeddings,
        "scores": named_files(scores or []),
        "original_scores": tuple(original_scores or ()),
        "speakers": speakers,
    }
    # What stands on the command line beside a file changes it; defaults do not.
    said = {OPTIONS.get(name, name) for name in context.params if _given(context, name)}
    begun = read_entry(config) if config is not None else None
    if begun is not None or sources["embeddings"] or sources["scores"]:
        known = {f.name for f in fields(Entry)}
        made = {k: v for k, v in {**sources, **choices}.items() if k in known}
        if foreign := sorted(said & set(choices) - known - {"utility"}):
            raise InputError(
                f"--{foreign[0].replace('_', '-')} needs speech, and this run begins without any; "
                "leave it out"
            )
        changes = {k: v for k, v in made.items() if k in said}
        entry = replace(begun, **changes) if begun else Entry(**made)  # type: ignore[arg-type]
        if dry_run or plan:
            print(f"  measure {entry.kind} as given: {', '.join(entry.embeddings or entry.scores)}")
            return
        _told(evaluate_entry(entry, output, force=force), output, pdf=pdf, as_json=as_json)
        return
    if lonely := [name for name, value in sources.items() if value]:
        raise InputError(f"--{lonely[0].replace('_', '-')} goes with --embeddings or --scores")
    if config is not None:
        said |= {"suite"} if "encoder" in said else set()
        changes = {key: value for key, value in choices.items() if key in said}
        chosen = _changed(read_yaml(config), changes)
    elif original is None:
        raise InputError(
            "give --original DIR, or --config evaluation.yaml; or begin with --embeddings or "
            "--scores"
        )
    else:
        chosen = Evaluation(**choices)  # type: ignore[arg-type]
    if dry_run:
        print(look_ahead(chosen, output, stages=stages, fresh=fresh).text())
        return
    if plan:
        from voxrisk.pipeline.planning import plan_evaluation

        planned = plan_evaluation(chosen)
        print(planned.to_json() if as_json else planned.text())
        return
    results = evaluate_speech(chosen, output, stages=stages, force=force, fresh=fresh)
    _told(results, output, pdf=pdf, as_json=as_json)


def _told(results: "Results", output: Path, *, pdf: bool, as_json: bool) -> None:
    """Write the pages of a run, and print what it found."""
    from voxrisk.files.results import read_times
    from voxrisk.report import run_figures
    from voxrisk.report.export import FOLDER, write_tables
    from voxrisk.report.html import write_pdf, write_report

    write_report(results, output / "report.html", run=read_times(output))
    write_tables(results, output / FOLDER)
    run_figures.write_figures(results, output / run_figures.FOLDER)
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
    print(f"Tables as CSV, LaTeX and Markdown, and papers to cite: {output / FOLDER}")
    print(f"Figures as SVG and PNG: {output / run_figures.FOLDER}")
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
