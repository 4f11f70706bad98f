"""``voxrisk demo``: the main job on data made on the spot."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Write into a folder in use.")] = False,
) -> None:
    """Make a score set of two protections and measure everything on it.

    The numbers are simulated: they show what voxrisk prints, nothing about any real system.
    """
    from voxrisk.cli.measure import measure
    from voxrisk.files.atomic import output_folder
    from voxrisk.pipeline.demo import simulate_scores

    folder = output_folder(output, force=force)
    paths = simulate_scores(folder / "scores")
    command = " ".join(
        (
            f"voxrisk measure strong={paths['strong']} weak={paths['weak']}",
            f"--trials {paths['trials']} --reference {paths['original']}",
            f"--cross {paths['strong-cross']} --cross {paths['weak-cross']} -o {folder}/figures",
        )
    )
    print(f"Simulated scores of 40 speakers. This is what runs now:\n\n  {command}\n")
    measure(
        scores=[f"strong={paths['strong']}", f"weak={paths['weak']}"],
        trials=[paths["trials"]],
        output=folder / "figures",
        reference=paths["original"],
        cross=[str(paths["strong-cross"]), str(paths["weak-cross"])],
        force=True,
    )
    print(f"\nLook at {folder / 'figures' / 'ece_profile.png'}")
