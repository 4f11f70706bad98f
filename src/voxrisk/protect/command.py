"""Any external program as an anonymizer, run without a shell and checked before it is believed."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import read_audio, write_audio
from voxrisk.corpus.audio import RATE
from voxrisk.types import InputError, require

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
    with tempfile.TemporaryDirectory(prefix="voxrisk-") as folder:
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
        _run(filled, timeout)
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


def _run(words: list[str], timeout: float) -> None:
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
    except OSError as error:
        raise InputError(f"the program {words[0]} cannot be started ({error})") from error
    try:
        _, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise InputError(f"the program took longer than {timeout:g} s and was ended") from None
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        last = errors.decode(errors="replace").strip()[-300:]
        raise InputError(f"the program ended with code {process.returncode}: {last}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and what it started: a conda or shell wrapper leaves its child behind."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()
