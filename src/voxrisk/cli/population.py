"""``voxrisk population``: the risk against population size and conversation length."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.cli.engine import Engine
from voxrisk.cli.options import Confidence
from voxrisk.progress import log
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.measure.population import Population
    from voxrisk.pipeline.population_study import Attacker
    from voxrisk.types import Estimate

EXAMPLE = """\b
Example:
  voxrisk population A.npz B.npz -L 1,3,30 -N 20,100,1000 -o curves
  voxrisk population orig.npz --name original --attacker informed=anon.npz -L 1,3 -o curves
"""


def population(
    a: Annotated[
        Path, typer.Argument(help="Embeddings of many speakers, or a ready score matrix.")
    ],
    b: Annotated[
        Path | None,
        typer.Argument(
            help="Embeddings of the speakers to be looked for: other utterances of speakers that "
            "are in A. Without it each speaker's utterances are split in two halves."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the figure and the tables.")
    ] = ...,  # type: ignore[assignment]
    lengths: Annotated[
        str, typer.Option("--lengths", "-L", help="Conversation lengths, in utterances.")
    ] = "1,3,30",
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            "-N",
            help="Population sizes; by default 20, 100, 200, 400 … The whole population is always "
            "measured too.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="What to call the attacker who has A and B.")
    ] = "attacker",
    attacker: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A[,B]", help="A further attacker; may be given several times."),
    ] = None,
    plda: Annotated[
        Path | None,
        typer.Option(
            help="Score by PLDA, trained on these embeddings (other speakers), not by cosine."
        ),
    ] = None,
    under: Annotated[
        Path | None,
        typer.Option(help="Folder of published curves (CSV) to lay under ours in the figure."),
    ] = None,
    predicates: Annotated[int, typer.Option(min=1, help="Voices used for Singling Out.")] = 495,
    draws: Annotated[int, typer.Option(min=1, help="Random populations for each of them.")] = 5,
    conversations: Annotated[
        int,
        typer.Option(min=1, help="Conversations to link for each speaker of B; the paper has 1."),
    ] = 1,
    estimator: Annotated[
        str, typer.Option(help="Linkability 'exact', or by the paper's random 'draws'.")
    ] = "exact",
    min_utterances: Annotated[
        int, typer.Option(min=1, help="Leave out speakers of A with fewer utterances.")
    ] = 1,
    resamples: Annotated[
        int, typer.Option(min=0, help="Draws of speakers behind the intervals; 0: no intervals.")
    ] = 1000,
    confidence: Confidence = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; default: all cores.")] = None,
    engine: Engine = "local",
    reveal: Annotated[
        bool, typer.Option("--reveal-speakers", help="Write speaker ids, not pseudonyms.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print results as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder in use.")] = False,
) -> None:
    """Can a person be singled out, or linked, in a crowd of N, from L utterances?

    Reads embeddings as NPZ (utterance, speaker, embedding), NPY with CSV, Parquet, HDF5 x-vectors
    and Kaldi ark or scp with utt2spk or spk2utt. Writes population.svg (and .png, with the
    extra png), results.json, results.csv and speakers.csv (the most exposed first).
    """
    from voxrisk.files.atomic import output_folder, write_text
    from voxrisk.files.published import read_published
    from voxrisk.measure.population import Protocol
    from voxrisk.pipeline.population_study import Attacker, results_of, speaker_rows, study
    from voxrisk.pipeline.pseudonyms import pseudonyms, write_shared
    from voxrisk.pipeline.tables import as_csv, figure_rows
    from voxrisk.report.figure import save
    from voxrisk.report.population_figure import population_figure

    protocol = Protocol(
        lengths=_numbers(lengths, "-L"),
        sizes=None if sizes is None else _numbers(sizes, "-N"),
        predicates=predicates,
        draws=draws,
        trials=conversations,
        estimator=estimator,
        min_utterances=min_utterances,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        threads=workers,
    )
    attackers = [Attacker(name, a, b, plda), *(_attacker(text, plda) for text in attacker or [])]
    published = read_published(under) if under else []
    folder = output_folder(output, force=force)
    found = study(attackers, protocol, tell=log.info)
    people = sorted(
        {risk.speaker for p in found for risk in p.speakers}
        | {s for p in found for by in p.excluded.values() for who in by.values() for s in who}
    )
    results = write_shared(results_of(found, protocol), folder, people=people, reveal=reveal)
    alias = {s: s for s in people} if reveal else pseudonyms(people)
    write_text(folder / "results.csv", as_csv(figure_rows(results)))
    rows = ({**row, "speaker": alias[str(row["speaker"])]} for row in speaker_rows(found))
    write_text(folder / "speakers.csv", as_csv(rows))
    drawn = save(population_figure(found, under=published), folder, "population")
    if json_output:
        print(results.to_json(), end="")
    else:
        _print(found, folder, drawn)


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        raise InputError(f"{option} {text}: give whole numbers, as in {option} 1,3,30") from None


def _attacker(text: str, plda: Path | None) -> "Attacker":
    from voxrisk.pipeline.population_study import Attacker

    name, sign, paths = text.partition("=")
    parts = paths.split(",")
    if not sign or not name or not 1 <= len(parts) <= 2 or not all(parts):
        raise InputError(f"--attacker {text}: expected NAME=A or NAME=A,B")
    return Attacker(name, Path(parts[0]), Path(parts[1]) if len(parts) == 2 else None, plda)


def _cell(e: "Estimate") -> str:
    """A value and its interval: rates in percent."""
    rate = e.name in ("singling_out", "linkability", "rocch_eer")
    form, coarse = (".1%", ".0%") if rate else (".2f", ".2f")
    ends = (e.interval.low, e.interval.high) if e.interval else ()
    span = f" ({' to '.join(format(x, coarse) for x in ends)})" if ends else ""
    return format(e.value, form) + span


def _print(found: "Sequence[Population]", folder: Path, drawn: Sequence[Path]) -> None:
    from rich.console import Console
    from rich.table import Table

    from voxrisk.measure import FIGURES
    from voxrisk.measure.population import CROWD
    from voxrisk.report.png import obstacle

    for p in found:
        sizes = sorted({int(e.parameters["N"]) for e in p.estimates})
        table = Table(
            title=f"{p.attacker}: risk among N people", title_justify="left", title_style="bold",
            box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0),
        )  # fmt: skip
        table.add_column("figure", no_wrap=True)
        table.add_column("L", justify="right")
        for n in sizes:
            table.add_column(f"N = {n:,}", justify="right", no_wrap=True)
        lengths = sorted({int(e.parameters["L"]) for e in p.estimates})
        for metric in CROWD:
            label = FIGURES[metric].label
            for length in lengths:
                at = {int(e.parameters["N"]): e for e in p.curve(metric, length)}
                if not at:
                    continue
                cells = [_cell(at[n]) if n in at else "–" for n in sizes]
                table.add_row(label, str(length), *cells)
                if metric in ("singling_out", "linkability"):
                    chance = [f"{at[n].chance:.1%}" if n in at else "–" for n in sizes]
                    table.add_row("  chance", "", *chance, style="dim")
        console = Console(highlight=False, width=max(Console().width, 40 + 24 * len(sizes)))
        console.print(table)
        console.print()
        for excluding, who in p.excluded.items():
            for metric, names in who.items():
                if names:
                    console.print(
                        f"L = {excluding}: {len(names)} speakers have too few utterances for "
                        f"{FIGURES[metric].label}",
                        style="dim",
                    )
    names = ", ".join(path.name for path in drawn)
    print(f"{names}, results.json, results.csv and speakers.csv: {folder}")
    if obstacle():
        print(obstacle())
