"""DNSMOS P.835: the mark a listener would give to how the speech sounds, guessed by a network.

Speech (SIG), background (BAK) and the whole (OVRL), from 1 (bad) to 5 (excellent). The trained
network is one ONNX file of its authors' package ``speechmos``, through the model store.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.journal import hash_of, resumable
from voxrisk.models import MODELS, model_path
from voxrisk.types import InputError, require
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import BySide, Cells, Measured, Pairs

WINDOW = 144_160  # samples, 9.01 s
SILENCE = 1e-4  # largest sample of a file that holds nothing: three steps of 16-bit audio
LOWEST_MARK = 1.0
COMPAT = "speechmos"
SOURCE = "DNSMOS P.835, Reddy et al., ICASSP 2022"
# From the network's raw marks to the listeners' scale: the authors' quadratic fits.
SCALE = {
    "signal": (-0.08397278, 1.22083953, 0.0052439),
    "background": (-0.13166888, 1.60915514, -0.39604546),
    "overall": (-0.06766283, 1.11546468, 0.04602535),
}


@dataclass(frozen=True, slots=True)
class Quality:
    """Marks from 1 to 5; ``silent`` if there was nothing to hear."""

    overall: float
    signal: float
    background: float
    silent: bool = False


def dnsmos(samples: NDArray[np.float32], *, compat: str | None = None) -> Quality:
    """The marks of ``samples (n,)`` at 16 kHz.

    The network hears windows of 9.01 s. Shorter speech is repeated until it fills one; longer
    speech is covered by as few windows as can, evenly spaced, and their marks are averaged. Samples
    beyond ±1 are clipped. Digital silence gets the lowest mark, 1: the network, which never heard
    any, gives it about 1.8 overall.

    ``compat="speechmos"`` places the windows as the authors' code does: speech is doubled until it
    fills one, and a window begins at every second. The marks of an utterance differ by about 0.02,
    the time by a factor of up to 9.
    """
    check_compat(compat)
    x = np.clip(samples, -1.0, 1.0).astype(np.float32)
    if np.abs(x).max() < SILENCE:
        return Quality(LOWEST_MARK, LOWEST_MARK, LOWEST_MARK, silent=True)
    session = _session()
    windows = _windows_at_every_second(x) if compat else _windows(x)
    raw = np.concatenate([session.run(None, {"input_1": w[None]})[0] for w in windows])
    marks = [float(np.polyval(fit, raw[:, i]).mean()) for i, fit in enumerate(SCALE.values())]
    return Quality(overall=marks[2], signal=marks[0], background=marks[1])


def _windows(x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    if len(x) <= WINDOW:
        return [np.resize(x, WINDOW)]
    starts = np.linspace(0, len(x) - WINDOW, -(-len(x) // WINDOW)).astype(int)
    return [x[start : start + WINDOW] for start in starts]


def _windows_at_every_second(x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    while len(x) < WINDOW:
        x = np.concatenate([x, x])
    starts = range(0, max(1, len(x) // RATE - 9) * RATE, RATE)
    return [x[start : start + WINDOW] for start in starts if start + WINDOW <= len(x)]


def check_compat(compat: str | None) -> None:
    """Refuse a ``compat`` that DNSMOS does not know."""
    if compat not in (None, COMPAT):
        raise InputError(f"DNSMOS knows compat={COMPAT!r}, not {compat!r}")


def rate_quality(
    utterances: Sequence[Utterance],
    *,
    compat: str | None = None,
    journal: Path | str | None = None,
    workers: int | None = None,
) -> list[Quality]:
    """The marks of each utterance; what ``journal`` knows is not done again."""
    check_compat(compat)
    _session()
    versions = [MODELS["dnsmos"].files[0].sha256, version("onnxruntime")]
    settings = {"what": "dnsmos 1", "compat": compat, "versions": versions}
    found = resumable(
        functools.partial(_rate, compat),
        utterances,
        key=functools.partial(hash_of, settings),
        journal=journal,
        workers=workers,
        label="marking quality",
    )
    return [Quality(*marks) for marks in found]


def _rate(compat: str | None, row: Utterance) -> list[Any]:
    marks = dnsmos(read_audio(row, rate=RATE), compat=compat)
    return [marks.overall, marks.signal, marks.background, marks.silent]


def measure_quality(pairs: Pairs) -> Measured:
    """Mean marks for the whole, the speech and the background, before and after.

    Of all utterances, or of those that are to be marked.
    """
    names = {"dnsmos": "overall", "dnsmos_signal": "signal", "dnsmos_background": "background"}
    compat = pairs.compat if pairs.compat == COMPAT else None
    estimates: dict[str, BySide] = {name: {} for name in names}
    cells: Cells = {}
    speakers = [pairs.original[i].speaker for i in pairs.places]
    for side, marks in pairs.marks(functools.partial(rate_quality, compat=compat)).items():
        for name, mark in names.items():
            values = [getattr(m, mark) for m in marks]
            cells[f"{name}_{side}"] = pairs.column(values)
            estimates[name][side] = ratio_estimate(
                name,
                values,
                speakers,
                chance=LOWEST_MARK,
                source=SOURCE,
                n={"silent": sum(m.silent for m in marks)},
                parameters={"compat": compat},
                **pairs.draw,
            )
    return estimates, cells


@functools.lru_cache(maxsize=1)
def _session() -> Any:
    runtime: Any = require("onnxruntime", extra="utility")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    weights = str(model_path("dnsmos"))
    return runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
