"""``kill -9`` at random moments: the same bytes at the end, and nothing left anywhere.

    python tests/kills.py --kills 20 --seed 0        (or: make kills)

Each command runs once undisturbed. Then it is started again and again in another folder and killed
after a random time, the whole process group or the main process alone, until it was killed as often
as asked; in the end it runs through. What it wrote must be what the undisturbed run wrote, and no
temporary file may be left: not beside the output and not in it, and nothing in the temporary folder
(a private one here) but what the undisturbed run left there too, such as a folder of torch's.
"""

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from short_speech import cut_short
from voxrisk.corpus import write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.knowledge import ATTACKERS

# Times and dates differ from run to run; a report and a checkpoint tell times.
DIFFERS = {"run.json", "times.json", "report.html", "checkpoint.pt", "curves.csv"}
LEFT = ("*.part*", "*.scratch", "*.parts", "*.partial", "voxrisk-*")
COPY = (
    "import sys, time, soundfile as s; x, r = s.read(sys.argv[1]); time.sleep(0.2); "
    "s.write(sys.argv[2], x[::-1], r)"
)


@dataclass(frozen=True)
class Case:
    """One command, without its output; and the folders in it whose insides are compared."""

    name: str
    words: tuple[str, ...]
    compared: Callable[[Path], bool] = lambda path: True


def make_cases(
    folder: Path,
    attackers: Sequence[str] = tuple(ATTACKERS),
    *,
    anonymizer: Sequence[str] = ("knn", "--set", "part=light"),
    voices: int = 24,
    encoder: str = "ecapa-voxceleb",
) -> dict[str, Case]:
    """Every long command on a tiny corpus, which is made in ``folder``.

    With fewer voices there are too few targets for the attackers that unlearn them. A cheaper
    encoder of an evaluation leaves its stages, and what a kill can do to them, as they are.
    """
    spoken = make_demo(folder / "voices", voices=voices, sentences=1)
    rows = cut_short(spoken, folder / "audio")
    people = sorted({row.speaker for row in rows})[::3]
    write_corpus(folder / "speech.csv", [row for row in rows if row.speaker in people])
    write_corpus(folder / "others.csv", [row for row in rows if row.speaker not in people])
    speech, others = str(folder / "speech.csv"), str(folder / "others.csv")
    chosen = [word for name in attackers for word in ("--attacker", name)]
    program = f'run={sys.executable} -c "{COPY}" {{input}} {{output}}'

    def shared_or_scores(path: Path) -> bool:
        return "stages" not in path.parts

    cases = [
        Case(
            "evaluate",
            ("evaluate", "--original", speech, "--anonymizer", *anonymizer,
             "--similar", "mcadams", "--train", others, "--effort", "quick", "--no-utility",
             "--encoder", encoder, *chosen),
            shared_or_scores,
        ),
        Case("train", ("train", others, "--recipe", "small", "--epochs", "3", "--batch", "8"),
             lambda path: "speech" not in path.parts),
        Case("train adapter", ("train", others, "--recipe", "adapter", "--epochs", "40")),
        Case("slice",
             ("slice", speech, "--fixed", "--duration", "0.3", "--shuffle", "--seed", "5")),
        Case("anonymize", ("anonymize", others, "--anonymizer", "world", "--seed", "3")),
        Case("anonymize by a program",
             ("anonymize", others, "--anonymizer", "command", "--set", program)),
    ]  # fmt: skip
    return {case.name: case for case in cases}


DONE = "is not empty; choose another folder"


def kill_and_finish(
    case: Case, folder: Path, *, kills: int, seed: int, longest: float = 0.6
) -> tuple[int, float]:
    """Kill a command so many times, let it end, and look at what it left.

    Kills come after up to ``longest`` times what the undisturbed run took. Returns how often the
    command came to its end between kills (it then begins again from nothing), and that time.
    """
    folder.mkdir(parents=True)
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    quiet = {"stdout": subprocess.DEVNULL, "env": environment}

    def command(out: str) -> list[str]:
        return [sys.executable, "-m", "voxrisk", *case.words, "-o", str(folder / out / "out")]

    def run(out: str) -> None:
        done = subprocess.run(command(out), stderr=subprocess.PIPE, check=False, **quiet)
        assert done.returncode == 0, f"{case.name}: {done.stderr.decode()[-2000:]}"

    started = time.monotonic()
    run("whole")
    took = time.monotonic() - started
    whole = tree(folder / "whole", case)
    assert len(whole) > 1
    usual = {path.name for path in temporary.iterdir()}
    random = np.random.default_rng([seed, *case.name.encode()])
    killed = ended = 0
    while killed < kills:
        log = (folder / "log").open("wb")
        process = subprocess.Popen(
            command("killed"), stderr=log, start_new_session=True, **quiet
        )  # fmt: skip
        try:
            code = process.wait(random.uniform(0.02, longest) * took)
        except subprocess.TimeoutExpired:
            end = os.killpg if random.random() < 0.5 else os.kill
            end(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
            continue
        finally:
            log.close()
        said = (folder / "log").read_text()
        # The kill before came after the last act: a finished folder is not written over.
        assert code == 0 or (killed and DONE in said), f"{case.name}: {said[-2000:]}"
        assert tree(folder / "killed", case) == whole, case.name
        shutil.rmtree(folder / "killed")
        ended += 1
    last = subprocess.run(command("killed"), stderr=subprocess.PIPE, check=False, **quiet)
    said = last.stderr.decode()
    assert last.returncode == 0 or DONE in said, f"{case.name}: {said[-2000:]}"
    found = tree(folder / "killed", case)
    assert found == whole, {name for name in {*found, *whole} if found.get(name) != whole.get(name)}
    nothing_left(folder, usual)
    return ended, took


def tree(folder: Path, case: Case) -> dict[str, str]:
    """What a command wrote, by path: a hash of each file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in DIFFERS and path.suffix != ".lock"
        and case.compared(path.relative_to(folder))
    }  # fmt: skip


def nothing_left(folder: Path, usual: set[str]) -> None:
    """Neither in the temporary folder nor among the output; orphans get some seconds to go."""
    deadline = time.monotonic() + 20
    while True:
        left = [path for form in LEFT for path in folder.rglob(form)]
        left += [p for p in (folder / "temporary").iterdir() if p.name not in usual]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert not left, left


def main() -> None:
    """Every command, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="commands to kill; default: all")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cases = make_cases(place)
        for name in asked.cases or cases:
            started = time.monotonic()
            ended, took = kill_and_finish(
                cases[name], place / name, kills=asked.kills, seed=asked.seed
            )
            print(
                f"{name}: killed {asked.kills} times, ended {ended} times between kills, and wrote "
                f"the same ({took:.0f} s undisturbed, {time.monotonic() - started:.0f} s in all)",
                flush=True,
            )


if __name__ == "__main__":
    main()
