"""``voxrisk slicing``: for each slice length what it buys, what it costs, and who undoes it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.cli.engine import Engine
from voxrisk.cli.options import Confidence

if TYPE_CHECKING:
    from voxrisk.slicing_results import SlicingResults

EXAMPLE = """\b
Example:
  voxrisk slicing speech --anonymizer world --train other-speakers -o run
  voxrisk slicing speech --anonymized protected -o run
  voxrisk slicing speech --duration 1 --duration 2 --alignment words.csv --no-utility -o run
"""


def slicing(
    corpus: Annotated[Path, typer.Argument(help="Clear speech with its text: any corpus.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the run.")],
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
    train: Annotated[
        Path | None,
        typer.Option(help="Speech of other people, to train attackers and recognisers on."),
    ] = None,
    train_anonymized: Annotated[
        Path | None, typer.Option(help="The same speech, anonymized as yours was.")
    ] = None,
    duration: Annotated[
        list[float] | None,
        typer.Option(help="Slice length in seconds; repeat. Else 0.5, 1, 1.5, 2, 3, 4."),
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(help="Ready word times of the clear speech; else the embedded aligner."),
    ] = None,
    cut: Annotated[
        str,
        typer.Option(help="pause: the pause at a cut is in both slices (the paper); clean: none."),
    ] = "pause",
    language_model: Annotated[
        Path | None, typer.Option(help="Language model of the text attack, ARPA; else embedded.")
    ] = None,
    neural: Annotated[
        list[str] | None,
        typer.Option(help="A neural model of the text attack too: smollm2, minilm; repeat."),
    ] = None,
    encoder: Annotated[str, typer.Option(help="Speaker encoder.")] = "ecapa-voxceleb",
    asr: Annotated[
        str | None, typer.Option(help="Ready recogniser; else by the language and the effort.")
    ] = None,
    effort: Annotated[str, typer.Option(help="quick, standard or paper.")] = "standard",
    enroll: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]LIST", help="Which utterances enrol.")
    ] = None,
    trials: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]LIST", help="What is compared.")
    ] = None,
    split: Annotated[str, typer.Option(help="official (lists of the speech) or own.")] = "official",
    privacy: Annotated[bool, typer.Option(help="Recognise speakers in slices.")] = True,
    text: Annotated[bool, typer.Option(help="Put slices together by their words.")] = True,
    speech: Annotated[bool, typer.Option(help="Put slices together by their sound.")] = True,
    utility: Annotated[bool, typer.Option(help="Word error rates on and from slices.")] = True,
    trained: Annotated[bool, typer.Option(help="Train recognisers on slices, for that.")] = True,
    utterances: Annotated[
        int, typer.Option(min=0, help="Of each speaker, that enrol, and that are tried; 0: all.")
    ] = 0,
    tried: Annotated[
        int, typer.Option(min=0, help="Slices of each trial utterance that are tried; 0: all.")
    ] = 2,
    steps: Annotated[
        int, typer.Option(min=0, help="Steps of each recogniser that learns from slices; 0: 600.")
    ] = 0,
    draws: Annotated[int, typer.Option(min=1, help="Draws of utterances, attacks on sound.")] = 5,
    drawn: Annotated[int, typer.Option(min=2, help="Utterances in a draw.")] = 100,
    title: Annotated[str, typer.Option(help="Of the report.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    confidence: Confidence = 0.95,
    reveal: Annotated[
        bool, typer.Option("--reveal-speakers", help="Name the corpus in results.")
    ] = False,
    stages: Annotated[
        Path | None, typer.Option(help="Where finished stages are kept; else OUTPUT/stages.")
    ] = None,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over another study.")] = False,
) -> None:
    """What slices protect, what they cost, and who can put them together again.

    For each length: how well speakers are recognised in slices of clear and anonymized speech, how
    many words a recogniser gets wrong, and how well attackers find the slice that came next
    (Maouche et al., "Enhancing Speech Privacy with Slicing"). Writes results.json, slicing.csv,
    figures and report.html. Run it again after an interruption and it goes on where it was.
    """
    from voxrisk.corpus.trials import pair_lists
    from voxrisk.pipeline.slicing.choices import DURATIONS, Slicing
    from voxrisk.pipeline.slicing.study import study_slicing
    from voxrisk.protect.anonymizers import parse_options

    chosen = Slicing(
        corpus=corpus,
        anonymized=anonymized,
        anonymizer=anonymizer,
        options=parse_options(settings or []),
        train=train,
        train_anonymized=train_anonymized,
        durations=tuple(sorted(duration or DURATIONS)),
        alignment=alignment,
        cut=cut,
        language_model=language_model,
        neural=tuple(neural or ()),
        encoder=encoder,
        asr=asr,
        effort=effort,
        sets=pair_lists(enroll or [], trials or []),
        split=split,
        privacy=privacy,
        text=text,
        speech=speech,
        utility=utility,
        trained=trained,
        utterances=utterances,
        tried=tried,
        steps=steps,
        draws=draws,
        drawn=drawn,
        title=title,
        seed=seed,
        confidence=confidence,
        reveal=reveal,
    )
    results = study_slicing(chosen, output, stages=stages, force=force)
    if as_json:
        print(results.to_json(), end="")
    else:
        _print(results, output)


def _print(results: "SlicingResults", folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from voxrisk.measure import FIGURES
    from voxrisk.report import words
    from voxrisk.slicing_results import PRIVACY, SLICED, WHOLE

    console = Console(highlight=False, width=max(Console().width, 120))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for name in ("speech", "attacker", "slices"):
        table.add_column(name, no_wrap=True)
    for name in PRIVACY:
        table.add_column(FIGURES[name].label, justify="right", no_wrap=True)
    for row in results.privacy:
        if row.cut in (WHOLE, SLICED):
            length = "none" if row.duration is None else f"{row.duration:g} s"
            cells = [words.estimate(row.figures.get(name)) for name in PRIVACY]
            table.add_row(row.condition, row.attacker, length, *cells)
    console.print(table)
    for line in results.notices:
        if line.severity == "serious":
            console.print(f"! {line.text}", style="yellow", markup=False)
    told = results.recommendation
    length = "none" if told.duration is None else f"{told.duration:g} s"
    console.print(f"\nrecommended length: {length}", style="bold")
    console.print(told.reason, markup=False)
    console.print(f"\nreport.html, results.json and slicing.csv: {folder}", markup=False)
