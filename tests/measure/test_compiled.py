"""Compiled loops are kept on disk: never older than their source, and quick to load."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from voxrisk.measure import _compiled

INNER = """from loops._compiled import compiled

@compiled
def more(x):
    return x + {}
"""
OUTER = """from loops._compiled import compiled
from loops.inner import more

@compiled
def twice(x):
    return 2.0 * more(x)
"""


@pytest.fixture
def loops(tmp_path: Path) -> Path:
    """A package of two files, one of which calls the other."""
    folder = tmp_path / "loops"
    folder.mkdir()
    shutil.copy(_compiled.__file__, folder / "_compiled.py")
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text(INNER.format(1))
    (folder / "outer.py").write_text(OUTER)
    return folder


def told(loops: Path, code: str) -> str:
    command = [sys.executable, "-c", f"import sys; from loops.outer import twice; {code}"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=loops.parent, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_change_of_a_function_reaches_those_that_call_it_from_another_file(loops: Path) -> None:
    assert told(loops, "print(twice(1.0))") == "4.0"
    (loops / "inner.py").write_text(INNER.format(5))
    assert told(loops, "print(twice(1.0))") == "12.0"


def test_kept_code_is_used_without_the_compiler(loops: Path) -> None:
    """And what is not kept is compiled, in the same process."""
    hits = "sum(twice.stats.cache_hits.values())"
    assert told(loops, f"print(twice(1.0), {hits})") == "4.0 0"
    compiler = "'numba.np.arraymath' in sys.modules"
    assert told(loops, f"print(twice(1.0), {hits}, {compiler})") == "4.0 1 False"
    assert told(loops, f"print(twice(1.0), twice(1), {hits}, {compiler})") == "4.0 4.0 1 True"


@pytest.mark.parametrize(("tried", "hits"), [("0.68.", 2), ("0.0.", 0)])
def test_processes_that_compile_at_once_never_take_the_loop_of_another(
    loops: Path, tried: str, hits: int
) -> None:
    """Two that know nothing of each other keep loops for other types; then all their files meet.

    A numba that was not tried keeps them in its own way; what is not for these types is left alone.
    """
    file = loops / "_compiled.py"
    file.write_text(file.read_text().replace("0.68.", tried))
    other = loops.parent / "other" / "loops"
    shutil.copytree(loops, other)
    assert told(loops, "print(twice(1.0))") == "4.0"
    assert told(other, "print(twice(1))") == "4.0"
    for file in (other / "__pycache__").iterdir():
        if file.suffix == ".nbc":
            shutil.copy2(file, loops / "__pycache__")
    found = told(loops, "print(twice(1.5), twice(3), sum(twice.stats.cache_hits.values()))")
    assert found == f"5.0 8.0 {hits}"


def test_what_was_compiled_from_other_sources_is_removed(loops: Path) -> None:
    kept = loops / "__pycache__"
    told(loops, "twice(1.0)")
    before = {file.name for file in kept.glob("*.nb*")}
    (loops / "inner.py").write_text(INNER.format(5))
    told(loops, "twice(1.0), twice(1)")
    after = {file.name for file in kept.glob("*.nb*")}
    assert len(before) == 2
    assert len(after) == 4
    assert not before & after


def test_another_numba_loads_all_of_itself_first(loops: Path) -> None:
    """Slower, and sure; the code on disk is used all the same."""
    file = loops / "_compiled.py"
    file.write_text(file.read_text().replace('TRIED = ("0.68.",)', 'TRIED = ("0.0.",)'))
    hits = "sum(twice.stats.cache_hits.values())"
    assert told(loops, "print(twice(1.0))") == "4.0"
    found = told(loops, f"print(twice(1.0), {hits}, 'numba.np.arraymath' in sys.modules)")
    assert found == "4.0 1 True"


def test_the_numba_of_the_constraints_was_tried() -> None:
    assert numba.__version__.startswith(_compiled.TRIED)
