"""``voxrisk report`` and ``voxrisk compare``: pages from the results of finished runs."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.results import Results
    from voxrisk.slicing_results import SlicingResults

COMPARE_EXAMPLE = """\b
Example:
  voxrisk compare runs/mcadams runs/knnvc -o compare.html
  voxrisk compare "weak=runs/a" "strong=runs/b" -o compare.html
  voxrisk compare board.yaml -o board.html
"""
REPORT_EXAMPLE = """\b
Example:
  voxrisk report runs/mcadams --pdf --force
  voxrisk report runs/mcadams --format latex --format bibtex --format svg
"""
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, with its results.json.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: report.html in the run.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="html, pdf, csv, latex, markdown, bibtex, svg or png; repeat for several.",
        ),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print it to PDF.")] = False,
    force: Force = False,
) -> None:
    """Write the report of a finished run again, or its tables and figures, from its results.json.

    Tables and the papers to cite go to the folder tables of the run, figures to figures, or both
    to the folder given with -o, where no page is asked for.
    """
    from voxrisk.files.results import read_times
    from voxrisk.report import run_figures
    from voxrisk.report.export import FOLDER, FORMATS, TEXTS, write_tables
    from voxrisk.report.html import write_report
    from voxrisk.results import Results
    from voxrisk.slicing_results import SlicingResults, is_slicing

    wanted = list(dict.fromkeys([*(formats or ["html"]), *(["pdf"] if pdf else [])]))
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise InputError(f"no format {unknown[0]!r}; known are {', '.join(FORMATS)}")
    home = run if run.is_dir() else run.parent
    if is_slicing(run):
        _slicing(SlicingResults.read(run), home, output, wanted, force=force)
        return
    results = Results.read(run)
    pages = [name for name in wanted if name in ("html", "pdf")]
    aside = output if output and not pages else None
    if tables := [name for name in wanted if name in TEXTS]:
        _print(write_tables(results, aside or home / FOLDER, tables, force=force))
    if drawn := [name for name in wanted if name in run_figures.ENDINGS]:
        folder = aside or home / run_figures.FOLDER
        _print(run_figures.write_figures(results, folder, drawn, force=force))
    if pages:
        path = output or home / f"report.{pages[0]}"
        _pages(
            lambda page: write_report(results, page, run=read_times(run)), path, pages, force=force
        )


def _slicing(
    study: "SlicingResults", home: Path, output: Path | None, wanted: Sequence[str], *, force: bool
) -> None:
    """The page and the tables of a study of slicing."""
    from voxrisk.report.export import FOLDER, WRITERS
    from voxrisk.report.slicing import write_slicing_report
    from voxrisk.report.slicing_tables import write_slicing_tables

    tables = [name for name in wanted if name in WRITERS]
    pages = [name for name in wanted if name in ("html", "pdf")]
    if other := [name for name in wanted if name not in (*tables, *pages)]:
        raise InputError(
            f"{other[0]}: a study of slicing has its figure beside its page; give html, pdf, "
            f"{', '.join(WRITERS)}"
        )
    if tables:
        folder = output if output and not pages else home / FOLDER
        _print(write_slicing_tables(study, folder, tables, force=force))
    if pages:
        path = output or home / f"report.{pages[0]}"
        _pages(lambda page: write_slicing_report(study, page), path, pages, force=force)


def _pages(write: Callable[[Path], None], path: Path, kinds: Sequence[str], *, force: bool) -> None:
    files = {name: path.with_suffix(f".{name}") for name in kinds}
    for file in files.values():
        _free(file, force=force)
    _write_pages(write, files)
    print(f"Look at {' and '.join(map(str, files.values()))}")


def _print(files: Sequence[Path]) -> None:
    for file in files:
        print(file)


def _write_pages(write: Callable[[Path], None], files: dict[str, Path]) -> None:
    """The page, and what is printed from it; a PDF alone leaves no page behind."""
    from voxrisk.report.pdf import write_pdf

    if "html" in files:
        write(files["html"])
        if "pdf" in files:
            write_pdf(files["html"], files["pdf"])
        return
    with tempfile.TemporaryDirectory() as aside:
        write(Path(aside, "report.html"))
        write_pdf(Path(aside, "report.html"), files["pdf"])


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
