"""``voxrisk demo``: the main jobs on voices made on the spot."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Write into a folder in use.")] = False,
) -> None:
    """Make voices and two protections of them, and measure everything on them.

    The numbers are simulated: they show what voxrisk prints, nothing about any real system.
    """
    from voxrisk.cli.measure import measure
    from voxrisk.cli.population import population
    from voxrisk.files.atomic import output_folder
    from voxrisk.pipeline.demo import KEPT, simulate

    folder = output_folder(output, force=force)
    made = simulate(folder / "data")
    print("40 simulated speakers, a strong and a weak protection. This is what runs now:\n")
    print(
        f"$ voxrisk measure strong={made['strong']} weak={made['weak']} --trials {made['trials']} "
        f"\\\n    --reference {made['original']} --cross {made['strong-cross']} "
        f"--cross {made['weak-cross']} -o {folder}/scores\n"
    )
    measure(
        scores=[f"{name}={made[name]}" for name in KEPT],
        trials=[made["trials"]],
        output=folder / "scores",
        reference=made["original"],
        cross=[str(made[f"{name}-cross"]) for name in KEPT],
        force=True,
    )
    others = [f"{name}={made[f'{name}-A']},{made[f'{name}-B']}" for name in KEPT]
    print(
        f"\n$ voxrisk population {made['original-A']} {made['original-B']} --name original "
        f"\\\n    --attacker {others[0]} \\\n    --attacker {others[1]} "
        f"-L 1,3 -N 5,10,20 -o {folder}/crowd\n"
    )
    population(
        made["original-A"],
        made["original-B"],
        output=folder / "crowd",
        lengths="1,3",
        sizes="5,10,20",
        name="original",
        attacker=others,
        force=True,
    )
    print(f"\nLook at {folder}/scores/ece_profile.png and {folder}/crowd/population.png")
