"""However a command ends, it says so in words a person can use, and never in a traceback."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
import soundfile

import voxrisk.cli
from voxrisk.types import InputError, MissingExtraError

Run = Callable[..., tuple[int, str]]


def raising(error: BaseException) -> Callable[..., None]:
    def app(*_: object, **__: object) -> None:
        raise error

    return app


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process: its exit code and what it says on stderr."""

    def call(*arguments: str, app: Callable[..., None] | None = None) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["voxrisk", *arguments])
        if app is not None:
            monkeypatch.setattr(voxrisk.cli, "app", app)
        with pytest.raises(SystemExit) as ended:
            voxrisk.cli.main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("x.csv line 3: bad"), 2, "error: x.csv line 3: bad\n"),
        (MissingExtraError("pip install"), 2, "error: pip install\n"),
        (OSError(errno.ENOSPC, "x", "run/a"), 2, "error: run/a: the disk is full; make room"),
        (PermissionError(errno.EACCES, "x", "run/a"), 2, "error: run/a: permission denied"),
        (MemoryError(), 2, "error: memory ran out; what is finished is kept"),
        (BrokenProcessPool("x"), 2, "error: a worker process was killed"),
        (KeyboardInterrupt(), 130, "interrupted: what is finished is kept; run the same command"),
        (ZeroDivisionError("by zero"), 70,
         "this is a bug in voxrisk (ZeroDivisionError: by zero); run the same command again with "
         "--debug"),
        (KeyError("rocch"), 70, "this is a bug in voxrisk (KeyError: KeyError 'rocch')"),
        (EOFError(), 70, "this is a bug in voxrisk (EOFError"),
    ],
)  # fmt: skip
def test_every_error_ends_in_one_line_and_a_code(
    run: Run, error: BaseException, code: int, words: str
) -> None:
    found, said = run("measure", app=raising(error))
    assert found == code
    assert said.startswith(words)
    assert said.count("\n") == 1


def test_debug_shows_where_wherever_it_stands(run: Run) -> None:
    for line in (
        ("--debug", "corpus", "check", "/nowhere"),
        ("corpus", "check", "/nowhere", "--debug"),
    ):
        code, said = run(*line)
        assert code == 2
        assert "Traceback" in said
        assert said.splitlines()[-1].startswith("error: /nowhere: no such corpus")
    code, said = run("corpus", "check", "/nowhere")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("measure", "s", "-t", "t", "-o", "o", "--seed", "-3"), "'--seed'"),
        (("measure", "s", "-t", "t", "-o", "o", "--seed", "1_0x"), "'--seed'"),
        (("measure", "s", "-t", "t", "-o", "o", "--confidence", "nan"), "'--confidence'"),
        (("population", "a", "-o", "o", "--draws", "0"), "'--draws'"),
        (("population", "a", "-o", "o", "--workers", "-1"), "'--workers'"),
        (("embed", "c", "-o", "o", "--workers", "0"), "'--workers'"),
        (("train", "c", "-o", "o", "--epochs", "0"), "'--epochs'"),
        (("nonsense",), "No such command 'nonsense'"),
        (("measure",), "Missing argument"),
    ],
)
def test_values_on_the_command_line_are_checked_there(
    run: Run, line: tuple[str, ...], words: str
) -> None:
    code, said = run(*line)
    assert code == 2
    assert words in said
    assert "Traceback" not in said


def test_ctrl_c_inside_a_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxrisk.corpus.read_corpus", raising(KeyboardInterrupt()))
    code, said = run("corpus", "check", "anything")
    assert (code, said.count("\n")) == (130, 1)
    assert said.startswith("interrupted: ")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_ctrl_c_ends_all_workers_quietly(tmp_path: Path) -> None:
    """A terminal sends it to every process, also while workers start; one line is enough."""
    soundfile.write(tmp_path / "long.wav", np.zeros(16_000 * 600, np.int16), 16_000)
    rows = "".join(f"u{i},long.wav,s{i % 2}\n" for i in range(300))
    (tmp_path / "manifest.csv").write_text("utterance,path,speaker\n" + rows)
    command = [sys.executable, "-m", "voxrisk", "corpus", "check", str(tmp_path), "--workers", "2"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("check")
        os.killpg(process.pid, signal.SIGINT)
        try:
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert said == "interrupted: what is finished is kept; run the same command again to go on\n"


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "voxrisk", "models", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
