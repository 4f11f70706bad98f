"""An external program as an anonymizer: what it must do, and what happens when it does not."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.protect.command import parse_command, run_command
from voxrisk.protect.run import anonymize
from voxrisk.types import InputError

NOISE = np.random.default_rng(0).normal(0, 0.1, 8000).astype(np.float32)


def _run(code: str, **options: float) -> np.ndarray:
    words = [sys.executable, "-c", f"import sys, soundfile as s; {code}", "{input}", "{output}"]
    return run_command(NOISE, words, **options)


def test_a_program_gets_and_gives_audio() -> None:
    out = _run("x, r = s.read(sys.argv[1]); s.write(sys.argv[2], x / 2, r)")
    np.testing.assert_allclose(out, NOISE / 2, atol=1e-4)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit('no model here')", "ended with code 1: no model here"),
        ("pass", "wrote no {output}"),
        ("open(sys.argv[2], 'w').write('text')", "not audio"),
        ("s.write(sys.argv[2], [0.1] * 8000, 22050)", "wrote 22050 Hz instead of 16000 Hz"),
        ("s.write(sys.argv[2], [0.1] * 800, 16000)", r"wrote 0.05 s for 0.50 s"),
        (
            "s.write(sys.argv[2], [float('nan')] * 8000, 16000, subtype='FLOAT')",
            "not finite",
        ),
    ],
)
def test_a_program_that_fails_is_not_believed(code: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _run(code)


def test_a_program_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """The program starts a child that would leave a mark after two seconds."""
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    code = f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(InputError, match=r"longer than 0\.8 s"):
        _run(code, timeout=0.8)
    time.sleep(2)
    assert not mark.exists()


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    words = parse_command(f"echo {{input}} {{output}} ; touch {tmp_path / 'owned'}")
    with pytest.raises(InputError, match="wrote no"):
        run_command(NOISE, words)
    assert not (tmp_path / "owned").exists()


def test_a_command_with_wrong_places_is_refused() -> None:
    with pytest.raises(InputError, match=r"must name \{input\} and \{output\}"):
        parse_command("anonymize {input}")
    with pytest.raises(InputError, match=r"no place \{speaker\}"):
        parse_command("anonymize {input} {output} {speaker}")
    with pytest.raises(InputError, match="cannot be started"):
        run_command(NOISE, ["/no/such/program", "{input}", "{output}"])


def test_a_corpus_through_a_command_with_target_and_seed(shared: Path, tmp_path: Path) -> None:
    """The program mixes in the target's speech, so the output shows which target it got."""
    script = tmp_path / "mix.py"
    script.write_text(
        "import sys, numpy as np, soundfile as s\n"
        "x, r = s.read(sys.argv[1]); t, _ = s.read(sys.argv[2])\n"
        "assert int(sys.argv[4]) >= 0 and sys.argv[5]\n"
        "s.write(sys.argv[3], 0.5 * np.resize(t, len(x)), r)\n"
    )
    rows = read_corpus(shared / "librispeech_eval")
    first: dict[str, Utterance] = {}
    for row in sorted(rows, key=lambda row: row.duration or 0):
        first.setdefault(row.speaker, row)
    some = list(first.values())[:2]
    command = (
        f"{sys.executable} {script} {{input}} {{target}} {{output}} {{seed}} {{target_speaker}}"
    )
    out = anonymize(some, tmp_path / "out", "command", options={"run": command}, workers=2)
    assert [row.extra["target"] for row in out] == [some[1].speaker, some[0].speaker]
    target = read_audio(some[1])
    wanted = 0.5 * np.resize(target, len(read_audio(some[0])))
    np.testing.assert_allclose(read_audio(out[0]), wanted, atol=1e-3)
