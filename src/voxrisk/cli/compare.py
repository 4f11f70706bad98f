"""``voxrisk report`` and ``voxrisk compare``: pages from the results of finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.results import Results

COMPARE_EXAMPLE = """\b
Example:
  voxrisk compare runs/mcadams runs/knnvc -o compare.html
  voxrisk compare "weak=runs/a" "strong=runs/b" -o compare.html
  voxrisk compare board.yaml -o board.html
"""
REPORT_EXAMPLE = """\b
Example:
  voxrisk report runs/mcadams --pdf --force
  voxrisk report runs/mcadams --format latex --format bibtex
"""
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, with its results.json.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: report.html in the run.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html, csv, latex, markdown or bibtex; repeat for several."),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print it to PDF.")] = False,
    force: Force = False,
) -> None:
    """Write the report of a finished run again, or its tables, from its results.json.

    Tables of attackers and of sets of trials, and the papers to cite, go to the folder tables of
    the run, or to the folder given with -o.
    """
    from voxrisk.files.results import read_times
    from voxrisk.report.export import FOLDER, FORMATS, write_tables
    from voxrisk.report.html import write_pdf, write_report
    from voxrisk.results import Results

    wanted = list(dict.fromkeys(formats or ["html"]))
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise InputError(f"no format {unknown[0]!r}; known are {', '.join(FORMATS)}")
    results = Results.read(run)
    home = run if run.is_dir() else run.parent
    tables = [name for name in wanted if name != "html"]
    if tables:
        folder = output if output and "html" not in wanted else home / FOLDER
        for file in write_tables(results, folder, tables, force=force):
            print(file)
    if "html" not in wanted:
        return
    path = output or home / "report.html"
    _free(path, force=force)
    if pdf:
        _free(path.with_suffix(".pdf"), force=force)
    write_report(results, path, run=read_times(run))
    print(f"Look at {path}")
    if pdf:
        write_pdf(path, path.with_suffix(".pdf"))
        print(f"and {path.with_suffix('.pdf')}")


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RUN...",
            help="Folders of finished runs; or one YAML file of a leaderboard, which runs them.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print it to PDF.")] = False,
    force: Force = False,
) -> None:
    """Compare several anonymizers: ranking, real differences, privacy against usefulness.

    A leaderboard names its systems in a YAML file. What is not evaluated yet is evaluated, in the
    folder of the output under its name; what is finished is used again.
    """
    from voxrisk.report.compare import write_compare
    from voxrisk.report.html import write_pdf

    _free(output, force=force)
    board = len(runs) == 1 and Path(runs[0]).suffix in (".yaml", ".yml")
    found = _evaluated(Path(runs[0]), output) if board else _finished(runs)
    write_compare(list(found.values()), output, names=list(found))
    print(f"Look at {output}")
    if pdf:
        write_pdf(output, output.with_suffix(".pdf"))


def _evaluated(path: Path, output: Path) -> "dict[str, Results]":
    """The systems of a leaderboard; their runs are beside the page."""
    from voxrisk.pipeline.board import read_board, run_board

    return dict(run_board(read_board(path), output.with_suffix("")))


def _finished(runs: list[str]) -> "dict[str, Results]":
    from voxrisk.report.compare import system_names
    from voxrisk.results import Results

    named = [_named(text) for text in runs]
    results = [Results.read(path) for _, path in named]
    default = system_names(results)
    names = [name or other for (name, _), other in zip(named, default, strict=True)]
    if len(set(names)) < len(names):
        raise InputError(f"two runs are called the same ({', '.join(names)}); give NAME=RUN")
    return dict(zip(names, results, strict=True))


def _named(text: str) -> tuple[str, Path]:
    name, sign, path = text.partition("=")
    return (name, Path(path)) if sign and not Path(text).exists() else ("", Path(text))


def _free(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise InputError(f"{path} is already there; choose another name or add --force")
