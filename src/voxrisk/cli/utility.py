"""``voxrisk utility``: what anonymized speech is still good for, beside the original."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxrisk.cli.engine import Engine
from voxrisk.cli.options import Confidence

if TYPE_CHECKING:
    from voxrisk.types import Estimate
    from voxrisk.utility import Utility

FORMS = {"rate": ".1%", "signed rate": "+.1%"}  # how a unit is printed; others with two digits
JOURNAL = ".journal.jsonl"
LEFT_OUT = {"left_out": "utterances left out", "silent": "silent files, marked 1"}


def utility(
    original: Annotated[Path, typer.Argument(help="Corpus before anonymization.")],
    anonymized: Annotated[Path, typer.Argument(help="The same utterances after it.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Output folder.")],
    asr: Annotated[
        str | None,
        typer.Option(
            help="Recogniser: whisper-tiny.en, moonshine-base, whisper-base, whisper-small, or a "
            "CTranslate2 folder; default: one that knows the language."
        ),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option(
            "--figure",
            help="wer, cer, pitch_correlation, distillmos, dnsmos, duration_change; all.",
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language tag; default: the table's, else en.")
    ] = None,
    compat: Annotated[
        str | None, typer.Option(help="voiceprivacy2022 (pitch correlation) or speechmos (DNSMOS).")
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Draws of speakers behind the intervals; 0: no intervals.")
    ] = 1000,
    confidence: Confidence = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: all cores.")
    ] = None,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what OUT holds.")] = False,
) -> None:
    """Word error rate, pitch correlation, sound quality and duration, before and after.

    Utterances are paired by id. A run that was stopped goes on where it was when the same command
    is given again. Writes results.json and utterances.csv.

    \b
    Example:
      voxrisk utility corpus protected -o utility
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.files.atomic import output_folder, write_text
    from voxrisk.results import FILE, Methods, Results
    from voxrisk.utility import measure_utility

    # A journal without results is a stopped run; what it holds is right for any settings.
    stopped = (out / JOURNAL).is_file() and not (out / FILE).exists()
    folder = output_folder(out, force=force or stopped)
    measured = measure_utility(
        read_corpus(original),
        read_corpus(anonymized),
        asr=asr,
        language=language,
        figures=figures or (),
        compat=compat,
        journal=folder / JOURNAL,
        workers=workers,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    results = Results(
        kind="utility",
        utility=measured.result(),
        methods=Methods(seed=seed, confidence=confidence, resamples=resamples),
    )
    write_text(folder / "utterances.csv", _csv(measured))
    text = results.write(folder)
    if as_json:
        print(text, end="")
    else:
        _print(measured, folder)


def _csv(measured: "Utility") -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, list(measured.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.rows)
    return text.getvalue()


def _print(measured: "Utility", folder: Path) -> None:
    from rich.console import Console

    from voxrisk.measure import FIGURES

    console = Console(highlight=False, width=max(Console().width, 110))
    console.print(_table(measured))
    for name, sides in measured.figures.items():
        for side, estimate in sides.items():
            for what, words in LEFT_OUT.items():
                if count := estimate.n.get(what):
                    console.print(f"[yellow]! {FIGURES[name].label}, {side}: {count} {words}[/]")
    for name, sides in measured.figures.items():
        reason = next((e.parameters.get("reason") for e in sides.values()), None)
        if reason:
            console.print(f"[yellow]! {FIGURES[name].label} cannot be trusted: [/]", end="")
            console.print(reason, style="yellow", markup=False)
    for name, reason in measured.missing.items():
        console.print(f"[yellow]! {FIGURES[name].label} is missing: [/]", end="")
        console.print(reason, style="yellow", markup=False)
    console.print(f"\nresults.json and utterances.csv: {folder}")


def _table(measured: "Utility") -> Any:
    from rich.table import Table

    from voxrisk.measure import FIGURES

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("figure", no_wrap=True)
    for side in ("original", "anonymized"):
        table.add_column(side, justify="right", no_wrap=True)
        table.add_column("interval", style="dim", no_wrap=True)
    for name, sides in measured.figures.items():
        label, form = FIGURES[name].label, FORMS.get(FIGURES[name].unit, ".2f")
        cells = [c for side in ("original", "anonymized") for c in _cells(sides.get(side), form)]
        table.add_row(label, *cells)
    return table


def _cells(estimate: "Estimate | None", form: str) -> tuple[str, str]:
    if estimate is None:
        return "", ""
    span = estimate.interval
    ends = f"{span.low:{form}} to {span.high:{form}}" if span else ""
    return f"{estimate.value:{form}}", ends
