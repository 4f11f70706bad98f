"""Where a fine-tuning begins: the checkpoint of a ready ECAPA-TDNN."""

from pathlib import Path

from voxrisk.attack.encoder import CHECKPOINT
from voxrisk.types import InputError


def start_checkpoint(name: str) -> Path:
    """The checkpoint file behind ``ecapa-voxceleb`` or behind a folder.

    Raises:
        InputError: If there is none; only an ECAPA-TDNN can be trained further.
    """
    if name == "ecapa-voxceleb":
        from voxrisk.models import model_path

        return model_path(name)
    path = Path(name) / CHECKPOINT
    if not path.is_file():
        raise InputError(
            f"--start {name}: no {CHECKPOINT} there; give ecapa-voxceleb or an attacker's folder"
        )
    return path
