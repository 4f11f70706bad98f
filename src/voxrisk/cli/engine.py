"""The option ``--engine`` of every long command: which machines do the work."""

from typing import Annotated

import typer


def _enter(context: typer.Context, name: str) -> str:
    """Run the command inside this engine; the command itself knows nothing of it."""
    from voxrisk.shards import engine

    if not context.resilient_parsing:
        context.with_resource(engine(name))
    return name


Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        callback=_enter,
        help="local; ray or ray://host:port for a cluster (extra ray), see docs/scaling.md.",
    ),
]
