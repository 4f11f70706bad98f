"""An external program as an anonymizer: what it must do, and what happens when it does not."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.protect.command import parse_command, run_command
from voxrisk.protect.run import anonymize
from voxrisk.scratch import remove_scratch
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


# Says who it is, starts a child that says so too, and both wait; the input must be there.
ENDLESS = """
import os, subprocess, sys, time
note = sys.argv[3]
open(f"{note}/{os.getpid()}", "w").close()
if len(sys.argv) < 5:
    assert os.path.exists(sys.argv[1])
    assert os.stat(os.path.dirname(sys.argv[1])).st_mode & 0o077 == 0
    subprocess.Popen([sys.executable, *sys.argv, "child"])
time.sleep(600)
"""


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """``voxrisk anonymize`` with a program that never ends, and where its output will be."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "endless.py").write_text(ENDLESS)
    write_audio(tmp_path / "a.wav", NOISE, rate=16_000)
    write_corpus(tmp_path / "manifest.csv", [Utterance("a", tmp_path / "a.wav", "ann")])
    program = f"{sys.executable} {tmp_path}/endless.py {{input}} {{output}} {tmp_path}/notes"
    command = [sys.executable, "-m", "voxrisk", "anonymize", str(tmp_path / "manifest.csv")]
    command += ["--anonymizer", "command", "--set", f"run={program}", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as run:
        assert waited(lambda: len(running(tmp_path)) == 2 or run.poll() is not None)
        yield run, tmp_path / "out"
        run.kill()
    for process in running(tmp_path):
        os.kill(process, signal.SIGKILL)


def running(folder: Path) -> list[int]:
    """The processes that left a note and are alive."""
    found = [int(path.name) for path in (folder / "notes").iterdir()]
    return [pid for pid in found if alive(pid)]


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def waited(until: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not until() and time.monotonic() < deadline:
        time.sleep(0.02)
    return until()


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_leaves_no_child_and_no_speech(
    hanging: tuple[subprocess.Popen[bytes], Path], how: signal.Signals
) -> None:
    """The group of voxrisk is killed; the program, its child and the speech must go too."""
    run, out = hanging
    scratch = out.with_name("out.scratch")
    assert list(scratch.glob("*/input.wav"))
    os.killpg(run.pid, how)
    run.wait()
    assert waited(lambda: not running(out.parent))
    assert waited(lambda: not list(scratch.rglob("*.wav")))


@linux
def test_what_even_the_guard_could_not_remove_goes_at_the_next_start(
    hanging: tuple[subprocess.Popen[bytes], Path],
) -> None:
    """As after a power cut; the folder of a run that is still at it stays."""
    run, out = hanging
    scratch = out.with_name("out.scratch")
    remove_scratch(scratch)
    assert list(scratch.glob("*/input.wav"))  # in use
    guard = next(p for p in running_guards(str(scratch)))
    os.kill(guard, signal.SIGKILL)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    left = scratch / "voxrisk-left"
    left.mkdir()
    (left / "input.wav").write_bytes(b"speech")
    row = Utterance("a", out.parent / "a.wav", "ann")
    anonymize([row], out, "mcadams", workers=1, force=True)
    assert not scratch.exists()


def running_guards(folder: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if any(w.endswith(b"guard.py") for w in words) and folder.encode() in b" ".join(words):
                yield int(path.parent.name)


@linux
def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "endless.py").write_text(ENDLESS)
    code = (
        "import subprocess, time, os; "
        f"subprocess.Popen([sys.executable, {str(tmp_path / 'endless.py')!r}, '', '', "
        f"{str(tmp_path / 'notes')!r}, 'child']);\n"
        f"while not os.listdir({str(tmp_path / 'notes')!r}): time.sleep(0.02)\n"
        "x, r = s.read(sys.argv[1]); s.write(sys.argv[2], x / 2, r)"
    )
    np.testing.assert_allclose(_run(code), NOISE / 2, atol=1e-4)
    assert waited(lambda: not running(tmp_path))


def test_a_program_keeps_its_own_files_in_the_private_folder(tmp_path: Path) -> None:
    """A copy that a program makes of the speech must not outlive it in a folder all can read."""
    code = (
        "import tempfile, shutil; shutil.copy(sys.argv[1], tempfile.mkdtemp()); "
        f"open({str(tmp_path / 'said')!r}, 'w').write(tempfile.gettempdir()); "
        "shutil.copy(sys.argv[1], sys.argv[2])"
    )
    _run(code)
    used = Path((tmp_path / "said").read_text())
    assert used.name.startswith("voxrisk-")
    assert not used.exists()


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
