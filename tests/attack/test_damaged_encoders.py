"""Checkpoints, maps and ONNX files that are damaged or mean harm."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from voxrisk.attack.adapted import read_adapter  # noqa: E402
from voxrisk.attack.ecapa import Ecapa  # noqa: E402
from voxrisk.attack.ecapa_encoder import load_ecapa, pick_device, read_centre  # noqa: E402
from voxrisk.attack.onnx import OnnxEncoder  # noqa: E402
from voxrisk.attack.sizes import EcapaSize  # noqa: E402
from voxrisk.types import InputError  # noqa: E402


def saved(folder: Path, state: object) -> Path:
    torch.save(state, folder / "embedding_model.ckpt")
    return folder / "embedding_model.ckpt"


def test_a_tensor_that_claims_more_than_it_stores_builds_no_network(tmp_path: Path) -> None:
    """A stride of nothing lets four bytes claim a billion channels."""
    state = Ecapa(EcapaSize(8, attention=4, squeeze=4, embedding=6)).state_dict()
    state["fc.conv.weight"] = torch.zeros(1).expand(10**9, 1, 1)
    with pytest.raises(InputError, match=r"ckpt: claims layers of 1,000,000,000 values"):
        load_ecapa(saved(tmp_path, state))


@pytest.mark.parametrize("state", [[1, 2], {"a": 1}, {1: torch.zeros(1)}, torch.zeros(1)])
def test_a_checkpoint_holds_named_tensors(tmp_path: Path, state: object) -> None:
    with pytest.raises(InputError, match="holds no named tensors"):
        load_ecapa(saved(tmp_path, state))


def test_weights_of_another_shape_are_said_not_to_fit(tmp_path: Path) -> None:
    state = Ecapa(EcapaSize(8, attention=4, squeeze=4, embedding=6)).state_dict()
    state["fc.conv.bias"] = torch.zeros(7)
    with pytest.raises(InputError, match=r"cannot be read as an ECAPA-TDNN.*do not fit"):
        load_ecapa(saved(tmp_path, state))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"matrix": np.eye(2)}, "a mean of shape .3,. and a matrix of shape .2, 2."),
        ({"matrix": np.eye(3).astype(int)}, "not an attacker's map"),
        ({"mean": np.array([1.0, np.nan, 1.0])}, "the map is not finite"),
        ({"encoder": 5}, "does not name its encoder"),
        ({"identity": None}, "cannot be read as NumPy arrays"),
    ],
)
def test_a_map_is_checked(tmp_path: Path, change: dict[str, object], words: str) -> None:
    parts = {"encoder": "e", "identity": "i", "mean": np.ones(3), "matrix": np.eye(3), **change}
    np.savez(tmp_path / "adapter.npz", **parts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"adapter\.npz.*{words}"):
        read_adapter(tmp_path)


def test_a_mean_of_another_kind_is_refused(tmp_path: Path) -> None:
    for wrong in (np.ones(4), np.array(["a", "b", "c"]), np.array([1, np.inf, 1])):
        np.save(tmp_path / "centre.npy", wrong)
        with pytest.raises(InputError, match=r"centre\.npy"):
            read_centre(tmp_path / "centre.npy", 3)


def test_an_onnx_file_of_noise_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for content in (b"", b"\x08\x07", bytes(range(256)) * 4):
        (tmp_path / "wespeaker.onnx").write_bytes(content)
        with pytest.raises(InputError, match=r"wespeaker\.onnx: (cannot be read as|takes inputs)"):
            OnnxEncoder("x", tmp_path / "wespeaker.onnx")


def test_a_device_that_does_not_exist_is_said() -> None:
    with pytest.raises(InputError, match="device 'banana': write cpu, cuda or cuda:1"):
        pick_device("banana")
