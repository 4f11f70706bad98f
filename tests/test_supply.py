"""What voxrisk builds on: every package has a known licence, every weight one hash."""

import runpy
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from voxrisk import models
from voxrisk.models import MODELS, model_path
from voxrisk.types import InputError

ROOT = Path(__file__).parents[1]


def test_the_page_of_licences_is_current_for_what_is_asked_for() -> None:
    """A new dependency, or one that changes its licence, makes this fail: run docs/licences.py."""
    script = runpy.run_path(str(ROOT / "docs" / "licences.py"))
    told = {}
    for line in (ROOT / "docs" / "licences.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| **"):
            name, said, extras = (cell.strip() for cell in line.strip("|").split("|"))
            told[name.strip("*")] = said, extras
    assert set(told) == set(script["direct"]())
    for name, (said, _) in told.items():
        installed = script["package"](name)
        if installed is not None:
            found = script["licence"](installed)
            assert said.split(";")[0] == found
            assert found != "not said" or name in script["CARRIED"], name


def test_every_dependency_is_pinned() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "licences.py"))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    assert set(script["direct"]()) <= pinned


def test_a_source_archive_tells_how_to_report() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "SECURITY.md" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert (ROOT / "SECURITY.md").is_file()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_no_weight_comes_in_under_another_hash(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every model there is: another file under the right name is refused and not kept."""
    row = MODELS[name]
    here = [replace(file, url="", wheel=(), npm=()) for file in row.files]
    monkeypatch.setattr(models, "MODELS", {name: replace(row, files=tuple(here))})
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VOXRISK_MODELS", str(tmp_path / "mine"))
    (tmp_path / "mine" / name).mkdir(parents=True)
    for file in here:
        (tmp_path / "mine" / name / file.name).write_bytes(b"other weights")
    with pytest.raises(InputError, match="the file has SHA-256"):
        model_path(name)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
