"""What voxrisk tells while it works: few plain lines in a log, a bar on a terminal, or nothing."""

import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, write_audio, write_corpus
from voxrisk.progress import Progress, cpu_seconds, duration, telling
from voxrisk.shards import run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("voxrisk.progress.time.monotonic", lambda: now[0])
    return now


def test_the_estimate_is_the_recent_pace_times_what_is_left(clock: list[float]) -> None:
    progress = Progress("train", 1_000, show=False)
    with progress:
        for step in range(100):
            clock[0] += 1.0 if step < 20 else 3.0  # the machine got busy
            progress.at(step + 1)
        assert progress.left() == pytest.approx(900 * 3.0)


def test_work_that_goes_on_in_the_middle_is_judged_by_its_own_pace(clock: list[float]) -> None:
    progress = Progress("train", 1_000, show=False)
    progress.done = 900
    with progress:
        clock[0] += 2.0
        progress.at(901)
        assert progress.left() == pytest.approx(99 * 2.0)


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (1.0, 0),  # short work: its begin and its end
        (100.0, 3),  # at least 30 s apart
        (3_600.0, 9),  # one for every tenth
        (36_000.0, 59),  # ten hours: a sign of life every ten minutes
    ],
)
def test_lines_without_a_terminal_are_few(
    clock: list[float], caplog: pytest.LogCaptureFixture, seconds: float, lines: int
) -> None:
    caplog.set_level(logging.INFO, "voxrisk")
    with Progress("embed", 1_200) as progress:
        for done in range(1, 1_201):
            clock[0] = seconds * done / 1_200
            progress.at(done)
    assert caplog.messages[0] == "embed …"
    assert caplog.messages[-1] == f"embed: done in {duration(seconds)}"
    assert len(caplog.messages) == lines + 2
    if seconds == 100.0:
        assert caplog.messages[1:3] == ["embed: 30 %, 70 s left", "embed: 60 %, 40 s left"]


def test_work_that_failed_is_not_said_to_be_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "voxrisk")
    with pytest.raises(ZeroDivisionError):
        list(run(lambda item: 1 // item, [1, 0], workers=1, label="divide"))
    assert caplog.messages == ["divide …"]


SCRIPT = """
import logging, sys
from voxrisk.progress import log, talk
from voxrisk.shards import run

if __name__ == "__main__":
    if sys.argv[1:]:
        talk(int(sys.argv[1]))
    for _ in run(abs, [1, 2, 3], workers=1, label="count"):
        pass
    log.warning("look out")
    log.debug("rich: %s", "rich" in sys.modules)
"""


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ([], ["look out"]),
        ([logging.DEBUG], ["count …", "count: done in 0 s", "warning: look out", "rich: False"]),
        ([logging.INFO], ["count …", "count: done in 0 s", "warning: look out"]),
        ([logging.WARNING], ["warning: look out"]),
    ],
)
def test_a_library_is_silent_and_the_command_talks(
    tmp_path: Path, level: list[int], told: list[str]
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), *map(str, level)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == told
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals on this system")
def test_a_terminal_has_a_bar(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ours, theirs = os.openpty()
    command = [sys.executable, str(tmp_path / "script.py"), str(logging.INFO)]
    subprocess.run(command, stderr=theirs, check=True, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "100 %" in shown
    assert "━" in shown
    assert "count …" not in shown


@pytest.mark.parametrize(("option", "talks"), [("-q", False), ("-v", True), (None, True)])
def test_the_command_is_quiet_when_asked(tmp_path: Path, option: str | None, talks: bool) -> None:
    rows = []
    for name in "ab":
        tone = np.sin(np.arange(16_000) * (0.1 + ord(name) / 1000)).astype(np.float32) / 2
        write_audio(tmp_path / f"{name}.wav", tone, rate=16_000)
        rows.append(Utterance(name, tmp_path / f"{name}.wav", name))
    write_corpus(tmp_path / "manifest.csv", rows)
    command = [sys.executable, "-m", "voxrisk", *([option] if option else []), "slice"]
    command += [str(tmp_path / "manifest.csv"), "--fixed", "--workers", "1", "-o", "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ("slice …" in done.stderr) == talks


def burn(seconds: float) -> float:
    """Work for so long on one core; what it took."""
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass
    return time.process_time() - began


@pytest.mark.parametrize("workers", [1, 2])
def test_cpu_seconds_are_those_of_the_workers_too(workers: int) -> None:
    """Two items of 0.6 s each are 1.2 s of work, whoever does them, counted once."""
    before = cpu_seconds()
    spent = sum(run(burn, [0.6, 0.6], workers=workers))
    assert spent - 0.1 <= cpu_seconds() - before <= spent + 1.0  # the system counts in ticks


def test_a_program_that_a_stage_runs_is_counted(tmp_path: Path) -> None:
    script = "import time\nwhile time.process_time() < 0.5: pass"
    before = cpu_seconds()
    list(run(subprocess.run, [[sys.executable, "-c", script]], workers=1))
    assert cpu_seconds() - before >= 0.5


def test_the_edges_of_work_inside_a_stage_are_the_stage_s_own(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "voxrisk")
    with telling("embed original speech"), Progress("embed", 100) as progress:
        clock[0] = 40.0
        progress.at(40)
        clock[0] = 90.0
        progress.at(100)
    assert caplog.messages == ["embed original speech …", "embed: 40 %, 60 s left"]


@pytest.mark.parametrize("quiet", [True, False])
def test_a_log_file_gets_everything_with_the_time_and_keeps_what_it_held(
    tmp_path: Path, quiet: bool
) -> None:
    (tmp_path / "run.log").write_text("before\n")
    rows = []
    for name in "ab":
        tone = np.sin(np.arange(16_000) * (0.1 + ord(name) / 1000)).astype(np.float32) / 2
        write_audio(tmp_path / f"{name}.wav", tone, rate=16_000)
        rows.append(Utterance(name, tmp_path / f"{name}.wav", name))
    write_corpus(tmp_path / "manifest.csv", rows)
    command = [sys.executable, "-m", "voxrisk", "slice", "manifest.csv", "--fixed"]
    command += ["--workers", "1", "-o", "out"]
    command += ["--log", "run.log", *(["-q"] if quiet else [])]  # also behind the command
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    first, *lines = (tmp_path / "run.log").read_text().splitlines()
    assert first == "before"
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO ", line) for line in lines)
    assert any(line.endswith("slice …") for line in lines)
    assert ("slice …" in done.stderr) != quiet


def test_a_log_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "voxrisk", "models", "--log", str(tmp_path / "no" / "run.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals on this system")
def test_a_log_file_has_the_lines_that_a_bar_says_on_the_terminal(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "talk(int(sys.argv[1]))", "talk(int(sys.argv[1]), file=Path('run.log'))"
    )
    (tmp_path / "script.py").write_text(f"from pathlib import Path\n{script}")
    ours, theirs = os.openpty()
    command = [sys.executable, str(tmp_path / "script.py"), str(logging.INFO)]
    subprocess.run(command, stderr=theirs, check=True, cwd=tmp_path,
                   env={**os.environ, "TERM": "xterm"})  # fmt: skip
    os.close(theirs)
    assert "count …" not in os.read(ours, 100_000).decode()
    os.close(ours)
    assert "count …" in (tmp_path / "run.log").read_text()
