"""``voxrisk demo``: the whole chain on voices that come with it."""

import functools
from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "demo"
    ),
    real: Annotated[
        Path | None, typer.Option(help="A corpus of real speech instead of synthetic voices.")
    ] = None,
    utility: Annotated[
        bool, typer.Option("--utility/--no-utility", help="Measure what speech is good for.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder in use.")] = False,
) -> None:
    """Evaluate two anonymizers on speech, with ready and trained attackers, and compare them.

    Half of the speakers are evaluated, the others are targets and train the attackers. Without
    --real the voices are synthetic (24 of Kokoro-82M, recorded): the figures then show how voxrisk
    works and nothing about any real system. Takes under four minutes on 2 cores; run again, it goes
    on.
    """
    from voxrisk.files.atomic import output_folder
    from voxrisk.pipeline.demo import run_demo

    tell = functools.partial(print, flush=True)
    folder = output_folder(output, force=force)
    page = run_demo(folder, real=real, utility=utility, tell=tell)
    print(f"\nLook at {page} (and report.html in the folders beside it)")
