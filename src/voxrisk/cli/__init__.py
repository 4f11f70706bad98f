"""The ``voxrisk`` command. Each command lives in its own file and imports its heavy parts late."""

import logging
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from voxrisk.cli import (
    align,
    anonymize,
    compare,
    corpus,
    demo,
    embed,
    evaluate,
    measure,
    models,
    population,
    score,
    slicing,
    train,
    utility,
)
from voxrisk.cli import slice as slice_command
from voxrisk.cli.ending import INTERRUPTED, ended, thread_ended
from voxrisk.progress import talk
from voxrisk.types import InputError

app = typer.Typer(
    name="voxrisk",
    help="How well can a speaker still be recognised after anonymization?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts in half the time
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Tell more of what goes on."),
    quiet: bool = typer.Option(False, "-q", "--quiet", help="Tell only what is wrong."),
    log: Annotated[
        Path | None,
        typer.Option(help="Also write what is told to this file, with the time of day."),
    ] = None,
    _: bool = typer.Option(
        False, "--debug", help="Show where an error arose. These may stand anywhere on the line."
    ),
) -> None:
    level = logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO
    try:
        talk(level, file=log)
    except OSError as error:
        raise InputError(f"--log {log}: cannot be written ({error.strerror})") from error
    if version:
        from voxrisk import __version__

        print(__version__)
        raise typer.Exit


# In the order of the data: corpus → protect → attack → measure → report.
app.command(short_help="See the whole chain, on synthetic voices or yours")(demo.demo)
app.command(epilog=evaluate.EXAMPLE, short_help="From speech to a report, in one command")(
    evaluate.evaluate
)
app.add_typer(corpus.app, name="corpus", short_help="Check, split or make a corpus")
app.command(short_help="Protect speech with an anonymizer")(anonymize.anonymize)
app.command(short_help="Find the time of each spoken word")(align.align)
app.command(name="slice", short_help="Cut speech into short slices between words")(
    slice_command.slice_
)
app.command(short_help="Train an attacker")(train.train)
app.command(short_help="Speaker embeddings of a corpus")(embed.embed)
app.command(short_help="Scores of trials from embeddings")(score.score)
app.command(epilog=measure.EXAMPLE, short_help="Every privacy figure of score files")(
    measure.measure
)
app.command(epilog=population.EXAMPLE, short_help="Risk in a crowd of N, from L utterances")(
    population.population
)
app.command(short_help="What the speech is still good for")(utility.utility)
app.command(epilog=slicing.EXAMPLE, short_help="What slices protect, cost, and who undoes them")(
    slicing.slicing
)
app.command(epilog=compare.REPORT_EXAMPLE, short_help="Write the report of a run again")(
    compare.report
)
app.command(epilog=compare.COMPARE_EXAMPLE, short_help="Compare several anonymizers")(
    compare.compare
)
app.add_typer(models.models_app, name="models", short_help="List and fetch trained models")


def in_front(arguments: Sequence[str]) -> list[str]:
    """The words of a command line with what is common to all commands before the command.

    >>> in_front(["evaluate", "-q", "--log", "run.log", "-o", "run", "--debug"])
    ['-q', '--log', 'run.log', 'evaluate', '-o', 'run']
    """
    common: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in ("-q", "--quiet", "-v", "--verbose") or word.startswith("--log="):
            common.append(word)
        elif word == "--log":
            common += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word != "--debug":
            rest.append(word)
    return common + rest


def main() -> NoReturn:
    """Run the command; whatever happens, it ends with words and an exit code.

    0 is success, 1 is "no" (a check that found something), 2 is bad input, 70 a bug in voxrisk, 130
    an interruption.
    """
    arguments = sys.argv[1:]
    # Whoever runs a failed command again adds it at the end of the line.
    debug = "--debug" in arguments
    if not debug:
        threading.excepthook = thread_ended
    try:
        code = app(in_front(arguments), standalone_mode=False)
        if code == INTERRUPTED:  # so typer hands on Ctrl-C
            raise KeyboardInterrupt
    except BaseException as error:
        code = ended(error, debug=debug)
    sys.exit(code if isinstance(code, int) else 0)
