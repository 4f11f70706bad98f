"""Install a wheel from the index into an empty environment, and use it there.

    python tests/empty_environment.py dist/voxrisk-0.1.0-py3-none-any.whl

First without extras: nothing heavy may come along, and ``voxrisk measure`` must run. Then with all
of them: ``voxrisk demo``. It downloads everything, so it is part of a release and not of the tests;
``tests/test_wheel.py`` does the same from what is installed.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HEAVY = ("torch", "onnxruntime", "soundfile", "faster_whisper")
SCORES = "enroll,trial,score\n" + "".join(
    f"s{a},s{b}-{k},{(a == b) + 0.1 * ((7 * a + 3 * b + k) % 11)}\n"
    for a in range(6) for b in range(6) for k in range(3)
)  # fmt: skip
TRIALS = "enroll,trial,label\n" + "".join(
    f"s{a},s{b}-{k},{'target' if a == b else 'nontarget'}\n"
    for a in range(6) for b in range(6) for k in range(3)
)  # fmt: skip


def main(wheel: Path) -> None:
    """Do both; anything that fails ends it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv" / "bin" / "python"

        def run(*words: object) -> None:
            print("$", *words, flush=True)
            subprocess.run([str(python), *map(str, words)], cwd=home, env=clean, check=True)

        run("-m", "pip", "install", "--quiet", wheel)
        there = f"[n for n in {HEAVY} if importlib.util.find_spec(n)]"
        run("-c", f"import importlib.util; heavy = {there}; assert not heavy, heavy")
        (home / "scores.csv").write_text(SCORES)
        (home / "trials.csv").write_text(TRIALS)
        run("-m", "voxrisk", "measure", "scores.csv", "--trials", "trials.csv", "-o", "out")
        run("-m", "pip", "install", "--quiet", f"voxrisk[all] @ {wheel.as_uri()}")
        run("-m", "voxrisk", "demo", "-o", "demo")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
