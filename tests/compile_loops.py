"""Compile the loops of ``measure`` once: processes of tests that begin together would each do it.

Half a minute where nothing is compiled yet, three seconds where all is.
"""

import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from simulated_scores import simulate
from voxrisk.cli import app
from voxrisk.measure import Protocol, crowd_of_scores


def main() -> None:
    """Commands that come by nearly all of them."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(StringIO()):
        folder = Path(name)
        path = {key: str(value) for key, value in simulate(folder).items()}
        app(
            ["-q", "measure", path["strong"], "--trials", path["trials"],
             "--reference", path["original"], "--cross", path["strong-cross"],
             "-o", str(folder / "measured")],
            standalone_mode=False,
        )  # fmt: skip
        app(
            ["-q", "population", path["strong-A"], path["strong-B"], "-L", "1,3", "-N", "5,20",
             "-o", str(folder / "crowd")],
            standalone_mode=False,
        )  # fmt: skip
        speaker = np.array([f"s{i}" for i in range(20)])
        scores = np.random.default_rng(0).normal(size=(20, 20))
        crowd_of_scores(scores, speaker, speaker, protocol=Protocol(resamples=20))


if __name__ == "__main__":
    main()
