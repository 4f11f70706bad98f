"""Any external program as an anonymizer, run without a shell and checked before it is believed.

The speech lies in a private folder for as long as the program runs. A guard process stands between
voxrisk and the program (:mod:`voxrisk.protect.guard`): however voxrisk ends, the program, all it
started and the speech go with it.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, write_audio
from voxrisk.corpus.audio import RATE
from voxrisk.scratch import scratch_folder
from voxrisk.types import InputError, require

GUARD = Path(__file__).with_name("guard.py")
LONGEST_TMPDIR = 60  # characters; below a longer one many programs cannot make a socket
PLACES = ("input", "output", "target", "target_speaker", "seed")


def parse_command(text: str) -> list[str]:
    """Split a command line as a shell would, without one, and check its {places}.

    >>> parse_command("anonymize --in {input} --out {output} --seed {seed}")[1:3]
    ['--in', '{input}']
    """
    words = shlex.split(text)
    used = set(re.findall(r"\{([a-z_]+)\}", text))
    if unknown := sorted(used - set(PLACES)):
        raise InputError(f"command has no place {{{unknown[0]}}}; it has {', '.join(PLACES)}")
    if not {"input", "output"} <= used:
        raise InputError("the command must name {input} and {output}")
    return words


def run_command(
    samples: NDArray[np.float32],
    words: list[str],
    *,
    target: NDArray[np.float32] | None = None,
    target_speaker: str = "",
    seed: int = 0,
    timeout: float = 600.0,
    shortest: float = 0.5,
    longest: float = 2.0,
) -> NDArray[np.float32]:
    """Run the program on one utterance ``samples (n,)`` at 16 kHz and read what it wrote.

    The program gets WAV files: {input}, {output} (to write), {target} (speech of the target
    speaker); and the texts {target_speaker} and {seed}.

    Raises:
        InputError: If it fails, runs too long, writes nothing, another rate, samples that are not
            finite, or less than ``shortest`` or more than ``longest`` times the input's length.
    """
    with scratch_folder() as folder:
        places = {
            "input": str(Path(folder, "input.wav")),
            "output": str(Path(folder, "output.wav")),
            "target": str(Path(folder, "target.wav")),
            "target_speaker": target_speaker,
            "seed": str(seed),
        }
        write_audio(places["input"], samples, rate=RATE)
        if target is not None:
            write_audio(places["target"], target, rate=RATE)
        filled = [
            re.sub(r"\{([a-z_]+)\}", lambda found: places[found.group(1)], word) for word in words
        ]
        _run(filled, folder, timeout)
        output = Path(places["output"])
        if not output.is_file():
            raise InputError("the program ended well but wrote no {output}")
        info: Any = _info(output)
        if info.samplerate != RATE:
            raise InputError(f"the program wrote {info.samplerate} Hz instead of {RATE} Hz")
        protected = read_audio(output, rate=RATE)
    ratio = len(protected) / len(samples)
    if not shortest <= ratio <= longest:
        raise InputError(
            f"the program wrote {len(protected) / RATE:.2f} s for {len(samples) / RATE:.2f} s of "
            f"speech; set shortest and longest if that is right"
        )
    return protected


def _info(path: Path) -> Any:
    soundfile: Any = require("soundfile", extra="audio")
    try:
        return soundfile.info(str(path))
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        raise InputError(f"the program wrote an {{output}} that is not audio ({error})") from error


def _run(words: list[str], folder: Path, timeout: float) -> None:
    """Run a program to its end, or end it; ``folder`` is removed if this process is killed."""
    if os.name != "posix":
        _run_unguarded(words, timeout)
        return
    command = [sys.executable, "-I", "-S", str(GUARD), str(folder.absolute()), *words]
    environment = dict(os.environ)
    if len(str(folder.absolute())) <= LONGEST_TMPDIR:
        environment["TMPDIR"] = str(folder.absolute())  # the program's own copies go as well
    hears, line = os.pipe()
    try:
        guard = subprocess.Popen(
            command,
            stdin=hears,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(hears)
    try:
        said, errors = guard.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise InputError(f"the program took longer than {timeout:g} s and was ended") from None
    finally:
        os.close(line)
        guard.communicate()
    last = errors.decode(errors="replace").strip()[-300:]
    what, _, how = said.decode(errors="replace").strip().partition(" ")
    if what == "start":
        raise InputError(f"the program {words[0]} cannot be started ({how})")
    if what != "end":
        raise InputError(f"the program {words[0]} was ended from outside: {last}")
    if how != "0":
        raise InputError(f"the program ended with code {how}: {last}")


def _run_unguarded(words: list[str], timeout: float) -> None:
    """The same where there are no process groups."""
    try:
        subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout,
            check=True,
        )
    except OSError as error:
        raise InputError(f"the program {words[0]} cannot be started ({error})") from error
    except subprocess.TimeoutExpired:
        raise InputError(f"the program took longer than {timeout:g} s and was ended") from None
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip()[-300:]
        raise InputError(f"the program ended with code {error.returncode}: {last}") from error
