"""The ``voxrisk`` command. Each command lives in its own file and imports its heavy parts late."""

import sys

import typer

from voxrisk.cli import corpus
from voxrisk.cli import population as population_command
from voxrisk.cli.align import align
from voxrisk.cli.anonymize import anonymize
from voxrisk.cli.compare import COMPARE_EXAMPLE, REPORT_EXAMPLE, compare, report
from voxrisk.cli.demo import demo
from voxrisk.cli.embed import embed
from voxrisk.cli.evaluate import EXAMPLE as EVALUATE_EXAMPLE
from voxrisk.cli.evaluate import evaluate
from voxrisk.cli.measure import EXAMPLE, measure
from voxrisk.cli.models import models_app
from voxrisk.cli.score import score
from voxrisk.cli.slice import slice_
from voxrisk.cli.train import train
from voxrisk.cli.utility import utility
from voxrisk.types import InputError, MissingExtraError

app = typer.Typer(
    name="voxrisk",
    help="How well can a speaker still be recognised after anonymization?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        from voxrisk import __version__

        print(__version__)
        raise typer.Exit


# In the order of the data: corpus → protect → attack → measure → report.
app.command()(demo)
app.command(epilog=EVALUATE_EXAMPLE)(evaluate)
app.add_typer(corpus.app, name="corpus")
app.command()(anonymize)
app.command()(align)
app.command(name="slice")(slice_)
app.command()(train)
app.command()(embed)
app.command()(score)
app.command(epilog=EXAMPLE)(measure)
app.command(epilog=population_command.EXAMPLE)(population_command.population)
app.command()(utility)
app.command(epilog=REPORT_EXAMPLE)(report)
app.command(epilog=COMPARE_EXAMPLE)(compare)
app.add_typer(models_app, name="models")


def main() -> None:
    """Run the command; bad input ends with exit code 2 and one clear message."""
    try:
        app()
    except (InputError, MissingExtraError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; what is finished is kept", file=sys.stderr)
        sys.exit(130)
