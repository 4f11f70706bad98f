"""Speaker encoders behind one small interface, found by name or path.

An encoder turns waveforms into one float32 vector each. A name may be

* a ready encoder, ``"ecapa-voxceleb"`` or another of :data:`ENCODERS`; ``"prosody"``,
  ``"durations"`` and ``"longterm"`` among them listen to no voice;
* a folder with ``embedding_model.ckpt``: an attacker of ``voxrisk train``, or of SpeechBrain; with
  ``centre.npy`` beside it, that vector is subtracted from every vector;
* a folder with ``adapter.npz``: a ready encoder and a map behind it (``--recipe adapter``);
* an ONNX file of WeSpeaker or 3D-Speaker (CAM++, ERes2Net);
* ``"hub:owner/name"``: a repository of the Hugging Face hub that holds one of these.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxrisk.attack.encoder import ADAPTER, CENTRE, CHECKPOINT, Encoder, file_identity
from voxrisk.types import InputError, require


def load_encoder(name: str | Path, *, device: str = "auto", threads: int | None = None) -> Encoder:
    """Load an encoder by name or path.

    Args:
        name: See the module: a ready encoder, a folder, an ONNX file, or ``hub:owner/name``.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` …; ``"auto"`` takes a GPU where there is one.
        threads: CPU threads; None leaves it to torch and ONNX Runtime.

    Raises:
        InputError: If there is no such encoder or its file is damaged.
    """
    text = str(name)
    if text in ENCODERS:
        return ENCODERS[text](text, device, threads)
    if text.startswith("hub:"):
        return _load_path(text, _from_hub(text.removeprefix("hub:")), device, threads)
    path = Path(name)
    if not path.exists():
        raise InputError(
            f"no encoder {text!r}: not a file or folder, and not one of {', '.join(ENCODERS)}; "
            "for a repository of the hub write hub:owner/name"
        )
    return _load_path(text, path, device, threads)


def encoder_identity(name: str) -> str:
    """What its vectors depend on, without loading it: a name of the store, or a hash of its files.

    The files behind a name of the store have a fixed hash; those behind a path may change.
    """
    if name in WITHOUT_WEIGHTS:
        return load_encoder(name).identity
    path = Path(name)
    if name in ENCODERS or not path.exists():
        return name
    known = [path / CHECKPOINT, path / CENTRE, path / ADAPTER, *sorted(path.glob("*.onnx"))]
    files = [path] if path.is_file() else [file for file in known if file.is_file()]
    return "+".join(map(file_identity, files))


def _load_path(name: str, path: Path, device: str, threads: int | None) -> Encoder:
    if path.is_dir() and (path / CHECKPOINT).is_file():
        centre = path / CENTRE if (path / CENTRE).is_file() else None
        return _ecapa(name, path / CHECKPOINT, device, threads, centre)
    if path.is_dir() and (path / ADAPTER).is_file():
        from voxrisk.attack.adapted import AdaptedEncoder, read_adapter

        adapter = read_adapter(path)
        base = load_encoder(adapter.encoder, device=device, threads=threads)
        return AdaptedEncoder(name, base, adapter)
    if path.is_dir() and len(found := sorted(path.glob("*.onnx"))) == 1:
        path = found[0]
    if path.suffix == ".onnx":
        return _onnx(name, path, device, threads)
    raise InputError(f"{path}: neither an ONNX file nor a folder with {CHECKPOINT} or {ADAPTER}")


def _from_hub(repository: str) -> Path:
    hub: Any = require("huggingface_hub", extra="attack")
    try:
        return Path(
            hub.snapshot_download(repository, allow_patterns=[CHECKPOINT, CENTRE, "*.onnx"])
        )
    except Exception as error:  # the hub's client raises many kinds: network, name, permission
        raise InputError(
            f"hub:{repository} cannot be fetched ({type(error).__name__}: {error}); "
            "download it elsewhere and give its folder"
        ) from error


def _ecapa(
    name: str, path: Path, device: str, threads: int | None, centre: Path | None = None
) -> Encoder:
    require("torch", extra="attack")
    from voxrisk.attack.ecapa_encoder import EcapaEncoder

    return EcapaEncoder(name, path, device=device, threads=threads, centre=centre)


def _pooled(name: str, device: str, threads: int | None) -> Encoder:
    require("torch", extra="attack")
    from voxrisk.attack.ecapa_encoder import EcapaEncoder
    from voxrisk.models import model_path

    path = model_path("ecapa-voxceleb")
    return EcapaEncoder(name, path, device=device, threads=threads, pooled=True)


def _onnx(name: str, path: Path, device: str, threads: int | None) -> Encoder:
    from voxrisk.attack.onnx import OnnxEncoder

    return OnnxEncoder(name, path, device=device, threads=threads)


def _threed(name: str, path: Path, device: str, threads: int | None) -> Encoder:
    require("torch", extra="attack")
    from voxrisk.attack.threed_speaker import TorchEncoder

    return TorchEncoder(name, path, device=device, threads=threads)


def _ge2e(name: str, path: Path, device: str, threads: int | None) -> Encoder:
    require("torch", extra="attack")
    from voxrisk.attack.ge2e import Ge2eEncoder

    return Ge2eEncoder(name, path, device=device, threads=threads)


def _moonshine(name: str, path: Path, device: str, threads: int | None) -> Encoder:
    from voxrisk.attack.moonshine import MoonshineEncoder

    return MoonshineEncoder(name, path, device=device, threads=threads)


def _stored(load: Callable[[str, Path, str, int | None], Encoder]) -> Callable[..., Encoder]:
    def from_store(name: str, device: str, threads: int | None) -> Encoder:
        from voxrisk.models import model_path

        return load(name, model_path(name), device, threads)

    return from_store


def _prosody(name: str, device: str, threads: int | None) -> Encoder:
    from voxrisk.attack.prosody import ProsodyEncoder

    return ProsodyEncoder(name)


def _longterm(name: str, device: str, threads: int | None) -> Encoder:
    from voxrisk.attack.longterm import LongtermEncoder

    return LongtermEncoder(name)


def _durations(name: str, device: str, threads: int | None) -> Encoder:
    require("pocketsphinx", extra="align")
    from voxrisk.attack.durations import DurationsEncoder

    return DurationsEncoder(name)


# Encoders that are computed: what they give changes with the program, not with a file.
WITHOUT_WEIGHTS = {"prosody": _prosody, "longterm": _longterm, "durations": _durations}
# Ready encoders: their weights come through the model store, so no training and no hub is needed.
ENCODERS: dict[str, Callable[[str, str, int | None], Encoder]] = {
    "ecapa-voxceleb": _stored(_ecapa),
    "ecapa-pooled": _pooled,  # ecapa-voxceleb without its last layer, which an attacker trains anew
    "wespeaker-resnet34": _stored(_onnx),
    "campplus": _stored(_threed),
    "eres2net-voxceleb": _stored(_threed),
    "ge2e": _stored(_ge2e),
    "moonshine-base": _stored(_moonshine),  # for attributes: it hears how, not who
    **WITHOUT_WEIGHTS,
}
