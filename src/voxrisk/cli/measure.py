"""``voxrisk measure``: every privacy figure of score files, with intervals and pictures."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxrisk.cli.options import Confidence
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.pipeline.score_sets import ScoreSet
    from voxrisk.report.figure import Figure

EXAMPLE = """\b
Example:
  voxrisk measure anonymized.csv --trials trials.csv --reference original.csv -o figures
  voxrisk measure B1=b1.txt B2=b2.txt --trials trials_f --speakers utt2spk -o compare
"""


def measure(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]SCORES...", help="Score files: enroll, trial, score."),
    ],
    trials: Annotated[
        list[Path],
        typer.Option(
            "--trials",
            "-t",
            help="Trial list: enroll, trial, label. Once for all, or once for each score file.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for figures and tables.")],
    speakers: Annotated[
        Path | None,
        typer.Option(help="Speaker of each utterance: utt2spk, CSV or a manifest."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Scores of the same trials on original speech (OO): printed beside the "
            "figures, and the base of DeID and G_VD."
        ),
    ] = None,
    cross: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]SCORES",
            help="Scores of original against protected speech "
            "(OP), for DeID; once for each score file.",
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="Draws of speakers behind the intervals; 0: no intervals.")
    ] = 1000,
    confidence: Confidence = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    allow_extra: Annotated[
        bool, typer.Option("--allow-extra", help="Leave out scores that no trial asks for.")
    ] = False,
    reveal: Annotated[
        bool, typer.Option("--reveal-speakers", help="Write speaker ids, not pseudonyms.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder in use.")] = False,
) -> None:
    """Every privacy figure of a score file, with its interval, chance level and picture.

    SCORES are protected speech compared with protected speech, as the attacker would (any set of
    scores will do). Reads CSV, TSV, Kaldi and VoicePrivacy files, gzip, Parquet and NPZ.
    """
    from voxrisk.report.png import Painter

    # Pictures are rendered beside all the rest; written only when nothing can fail any more. As
    # they take the longest, other processes get ready for them while this one loads, and what
    # pictures need is found first.
    with Painter() as painter, ThreadPoolExecutor(painter.hands) as pool:
        from voxrisk.files.atomic import output_folder, write_text
        from voxrisk.pipeline.pseudonyms import pseudonyms, write_shared
        from voxrisk.pipeline.score_sets import compare_voices, load_sets, measure_sets, results_of
        from voxrisk.pipeline.tables import as_csv, figure_rows, people_rows
        from voxrisk.report.figure import render

        named, crossed = _inputs(scores, trials, reference, cross)
        folder = output_folder(output, force=force)
        sets = load_sets(
            named,
            trials,
            reference=reference,
            crossed=crossed,
            speakers=speakers,
            allow_extra=allow_extra,
        )
        people = sorted({name for s in sets for name in s.trials.speakers})
        draw = partial(render, draw=painter)
        pictures = {name: pool.submit(draw, own) for name, own in _curves(sets)}
        sets = compare_voices(sets, resamples=resamples, seed=seed, confidence=confidence)
        shown = sets if reveal else [s.renamed(pseudonyms(people)) for s in sets]
        pictures |= {name: pool.submit(draw, own) for name, own in _squares(shown)}
        sets = measure_sets(sets, resamples=resamples, seed=seed, confidence=confidence)
        results = write_shared(results_of(sets), folder, people=people, reveal=reveal)
        write_text(folder / "results.csv", as_csv(figure_rows(results)))
        if any(a.speakers for a in results.attacks):
            write_text(folder / "speakers.csv", as_csv(people_rows(results)))
        written = [
            path for name, own in pictures.items() for path in own.result().save(folder, name)
        ]
    if json_output:
        print(results.to_json(), end="")
    else:
        _print(sets, folder, written)


def _inputs(
    scores: Sequence[str], trials: Sequence[Path], reference: Path | None, cross: list[str] | None
) -> tuple[list[tuple[str, Path]], list[Path]]:
    """Names and files of the sets, and their files of original against protected speech."""
    named = [_named(text) for text in scores]
    if len(trials) not in (1, len(named)):
        raise InputError(
            f"{len(trials)} trial lists for {len(named)} score files: give one for all, or one each"
        )
    crossed = [_named(text)[1] for text in cross or []]
    if crossed and len(crossed) != len(named):
        raise InputError(f"{len(crossed)} --cross files for {len(named)} score files: one each")
    if crossed and reference is None:
        raise InputError("--cross needs --reference: DeID compares OP with OO")
    return named, crossed


def _named(text: str) -> tuple[str, Path]:
    name, sign, path = text.partition("=")
    if sign and not Path(text).exists():
        return name, Path(path)
    return Path(text).name.split(".")[0], Path(text)


def _curves(sets: "Sequence[ScoreSet]") -> "Iterator[tuple[str, Figure]]":
    """Pictures that need the trials alone."""
    from voxrisk.report import score_figures as figures

    curves = {s.name: s.trials.roc for s in sets}
    yield "ece_profile", figures.ece_figure(curves)
    yield "det", figures.det_figure(curves)
    yield "scores", figures.histogram_figure({s.name: s.trials for s in sets})


def _squares(sets: "Sequence[ScoreSet]") -> "Iterator[tuple[str, Figure]]":
    """Pictures that need how alike voices are."""
    from voxrisk.report import score_figures as figures

    for s in sets:
        if s.similarities:
            picture = figures.similarity_figure(s.name, s.similarities, s.figures)
            yield f"similarity_{s.slug}", picture
    points = {s.name: (s.figures["deid"], s.figures["g_vd"]) for s in sets
              if {"deid", "g_vd"} <= set(s.figures)}  # fmt: skip
    if points:
        yield "deid_gvd", figures.scatter_figure(points)


def _print(sets: "Sequence[ScoreSet]", folder: Path, written: Sequence[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from voxrisk.report.png import obstacle

    # A table of figures is never cut: narrow terminals scroll, pipes get whole lines.
    table = _table(sets)
    wide = 60 + sum(40 + len(s.name) for s in sets)
    console = Console(highlight=False, width=max(Console().width, wide))
    console.print(table)
    for s in sets:
        sizes = s.trials.sizes
        console.print(
            f"[bold]{escape(s.name)}[/]: {sizes['target']:,} target and "
            f"{sizes['nontarget']:,} nontarget trials of {sizes['speaker']} speakers",
            style="dim",
        )
        for notice in s.notices:
            console.print(f"  [yellow]! {escape(notice.text)}[/]")
    names = ", ".join(sorted({path.stem for path in written}))
    kinds = "SVG" if obstacle() else "SVG and PNG"
    console.print(f"\nFigures ({names}; {kinds}), results.json and results.csv: {folder}")
    if obstacle():
        console.print(obstacle(), markup=False)


def _table(sets: "Sequence[ScoreSet]") -> Any:
    from rich.markup import escape
    from rich.table import Table

    from voxrisk.measure import FIGURES

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("figure", no_wrap=True)
    for s in sets:
        table.add_column(escape(s.name), justify="right", no_wrap=True)
        table.add_column(f"{s.confidence:.0%} interval", style="dim", no_wrap=True)
    table.add_column("chance", justify="right", style="dim", no_wrap=True)
    table.add_column("", style="dim", no_wrap=True)
    for name, definition in FIGURES.items():
        found = [s.figures.get(name) for s in sets]
        chance = next((e.chance for e in found if e is not None), None)
        if chance is None:
            continue
        cells: list[str] = []
        for s, e in zip(sets, found, strict=True):
            mark = f"{s.tag}  " if name == "log10_l" else ""
            cells.append(mark + _shown(e.value, definition.unit) if e else "–")
            span = e.interval if e else None
            ends = [_shown(x, definition.unit) for x in (span.low, span.high)] if span else []
            cells.append(" to ".join(ends))
        unit = definition.unit if definition.unit in ("bit", "dB") else ""
        table.add_row(definition.label, *cells, _shown(chance, definition.unit), unit)
    return table


def _shown(value: float, unit: str) -> str:
    forms: Mapping[str, str] = {"rate": ".1%", "bit": ".3f", "dB": "+.2f", "log10": ".2f"}
    return format(value, forms.get(unit, ".3f"))
