"""The wheel in an environment of its own, outside the repository: what ``pip install`` gives.

The environment holds the wheel and exactly what its metadata asks for, linked from the packages of
this one: nothing is downloaded, and a dependency that was forgotten is missing there too. `make
wheel` does the same with the package index.
"""

import csv
import email
import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from short_speech import cut_short
from simulated_voices import voices
from voxrisk.corpus import write_corpus
from voxrisk.corpus.demo import make_demo

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "onnxruntime", "soundfile", "pyarrow", "faster-whisper", "ray", "h5py", "pyworld"}


def closure(requirements: list[str], extra: str = "") -> set[str]:
    """Names of all packages that these requirements bring along here."""
    found: set[str] = set()
    todo = [(Requirement(text), extra) for text in requirements]
    while todo:
        need, wanted = todo.pop()
        if need.marker and not any(
            need.marker.evaluate({"extra": e}) for e in (wanted or "").split(",") or [""]
        ):
            continue
        name = canonicalize_name(need.name)
        if name in found and not need.extras:
            continue
        found.add(name)
        try:
            more = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            pytest.fail(f"{name} is needed and not installed here")
        todo += [(Requirement(text), ",".join(need.extras)) for text in more]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source archive, as `python -m build` does."""
    pytest.importorskip("build", reason="the package build is missing: pip install build hatchling")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files, for all environments, with the loops that were compiled here from the same text.

    Numba takes them for the same where they are of the same time. One is left out: what comes with
    the wheel must be enough to compile, too.
    """
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for kept in (ROOT / "src").rglob("__pycache__/*.nb?"):
        if kept.name.startswith("_kernels.interleave-"):
            continue
        place = folder / kept.relative_to(ROOT / "src")
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(kept, place)
    for source in (ROOT / "src").rglob("*.py"):
        time = source.stat().st_mtime
        os.utime(folder / source.relative_to(ROOT / "src"), (time, time))
    return folder


@pytest.fixture(scope="module")
def described(wheel: Path) -> "email.message.Message":
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def core(described: "email.message.Message") -> set[str]:
    """What comes with ``pip install voxrisk``, without extras."""
    return closure(described.get_all("Requires-Dist") or [])


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(unpacked: Path, core: set[str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command in an environment of the wheel without extras, in an empty folder."""
    return installed(unpacked, core, tmp_path_factory.mktemp("empty"))


def installed(unpacked: Path, names: set[str], home: Path) -> Run:
    """Runs a command in a new environment of the wheel and these packages."""
    venv.create(home / "venv", with_pip=False, symlinks=True)
    (packages,) = (home / "venv").glob("lib/python*/site-packages")
    for own in unpacked.iterdir():
        (packages / own.name).symlink_to(own)
    for name in names:
        _link(name, packages)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*arguments: object, ok: bool = True) -> "subprocess.CompletedProcess[str]":
        command = [str(home / "venv" / "bin" / "python"), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=home, env=clean, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == ok, done.stderr
        return done

    return run


def _link(name: str, packages: Path) -> None:
    """The files of an installed package, by their first folders."""
    own = metadata.distribution(name)
    for file in own.files or ():
        first = Path(file).parts[0]
        place = Path(str(own.locate_file(first)))
        if first != ".." and place.exists() and not (packages / first).exists():
            (packages / first).symlink_to(place)


def test_the_wheel_holds_what_the_package_reads_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    own = {
        path.relative_to(source).as_posix()
        for path in (source / "voxrisk").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert own == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith(".j2") for name in names)


def test_without_extras_it_stays_light(core: set[str]) -> None:
    assert not core & HEAVY
    assert len(core) < 30, sorted(core)


def test_the_metadata_says_what_it_is(described: "email.message.Message") -> None:
    from trove_classifiers import classifiers

    assert described["Name"] == "voxrisk"
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Requires-Python"] == ">=3.11"
    assert described["Description-Content-Type"] == "text/markdown"
    assert set(described.get_all("Classifier") or []) <= classifiers
    text = described.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# voxrisk")
    assert {"all", "demo", "attack", "utility"} <= set(described.get_all("Provides-Extra") or [])


def test_it_runs_from_its_own_files(
    environment: Run,
) -> None:
    place = environment("-c", "import voxrisk; print(voxrisk.__file__)").stdout
    assert "empty" in place
    assert "site-packages" in place
    assert "Usage: " in environment("-m", "voxrisk", "--help").stdout
    missing = environment("-c", "import torch", ok=False).stderr
    assert "No module named 'torch'" in missing


def test_measure_runs_with_the_light_core(environment: Run, unpacked: Path, tmp_path: Path) -> None:
    """Scores in, figures and pictures out; without any extra."""
    assert not list(unpacked.rglob("_kernels.interleave-*.nbc"))
    enroll, trial = (
        dict(zip(held.utterance.tolist(), held.vectors, strict=True))
        for held in (voices(6, 4, seed=0, tag="e"), voices(6, 4, seed=1, tag="t"))
    )
    with (
        (tmp_path / "scores.csv").open("w", newline="") as scores,
        (tmp_path / "trials.csv").open("w", newline="") as trials,
    ):
        writers = csv.writer(scores), csv.writer(trials)
        writers[0].writerow(("enroll", "trial", "score"))
        writers[1].writerow(("enroll", "trial", "label"))
        for a in enroll:
            for b in trial:
                same = a.partition("-")[0] == b.partition("-")[0]
                writers[0].writerow((a, b, enroll[a] @ trial[b]))
                writers[1].writerow((a, b, "target" if same else "nontarget"))
    done = environment(
        "-m", "voxrisk", "measure", str(tmp_path / "scores.csv"), "--trials",
        str(tmp_path / "trials.csv"), "--resamples", "20", "-o", str(tmp_path / "out"),
    )  # fmt: skip
    assert "EER, convex hull" in done.stdout
    assert (tmp_path / "out" / "results.json").is_file()
    assert list((tmp_path / "out").glob("*.svg"))
    assert list(unpacked.rglob("_kernels.interleave-*.nbc"))  # compiled there


def test_what_needs_an_extra_says_which(
    environment: Run,
) -> None:
    done = environment("-m", "voxrisk", "demo", "-o", "demo", ok=False)
    assert done.returncode == 2
    assert "pip install 'voxrisk[" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_runs_outside_the_repository(
    unpacked: Path,
    described: "email.message.Message",
    core: set[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Two anonymizers, ready and trained attackers, a comparison: from the wheel and its extras.

    Ten voices that say a sentence twice, to be quick; `make wheel` does the whole of it.
    """
    more = closure(described.get_all("Requires-Dist") or [], "demo,attack,knn")
    assert "faster-whisper" not in core | more
    home = tmp_path_factory.mktemp("demo")
    rows = cut_short(make_demo(home / "voices", voices=10, sentences=1), home / "short")
    write_corpus(home / "speech" / "manifest.csv", rows)
    done = installed(unpacked, core | more, home)(
        "-m", "voxrisk", "demo", "--real", home / "speech", "--no-utility", "-o", home / "demo"
    )
    assert "Look at" in done.stdout
    assert str(ROOT) not in done.stdout + done.stderr
    assert (home / "demo" / "compare.html").is_file()
    for system in ("mcadams", "knn"):
        assert f"--anonymizer {system}" in done.stdout
        page = (home / "demo" / system / "report.html").read_text(encoding="utf-8")
        assert "informed" in page
