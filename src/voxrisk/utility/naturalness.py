"""DistillMOS: the mark a listener would give to how natural speech sounds, guessed by a network.

A small network taught by a large one (Stahl & Gamper, ICASSP 2025), from 1 (bad) to 5 (excellent).
Unlike DNSMOS, which was made for noise, it was taught on coded, synthesised and converted speech
too. The network is written here with the parameter names of its authors' weights.
"""

import functools
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.files.errors import reading
from voxrisk.journal import hash_of, resumable
from voxrisk.models import MODELS, model_path
from voxrisk.types import require
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pairs import BySide, Cells, Measured, Pairs
from voxrisk.utility.quality import LOWEST_MARK, SILENCE

WINDOW = 122_880  # samples, 7.68 s
HOP = RATE  # at most, between windows
STFT, STEP = 320, 160
COMPRESSION = 0.3  # power of the magnitudes
CHANNELS = (64, 64, 128, 256, 256, 256)
WIDTH, HEADS, LAYERS = 200, 8, 7
SLOPE = 0.1  # of the leaky rectifiers
SOURCE = "DistillMOS v7, Stahl & Gamper, ICASSP 2025"


def distillmos(samples: NDArray[np.float32]) -> float:
    """The mark of ``samples (n,)`` at 16 kHz, from 1 to 5.

    The network hears windows of 7.68 s, at most a second apart, each at its own full level; their
    marks are averaged. Shorter speech is followed by silence, as its authors do. Digital silence,
    which the network never heard, gets the lowest mark.
    """
    if np.abs(samples).max() < SILENCE:
        return LOWEST_MARK
    torch: Any = require("torch", extra="utility")
    x = np.asarray(samples, np.float32)
    over = max(len(x) - WINDOW, 0)
    x = np.pad(x, (0, max(WINDOW - len(x), 0)))
    starts = (np.linspace(0, 1, int(np.ceil(over / HOP)) + 1) * over).astype(int)
    with torch.inference_mode():
        network = _network()
        marks = [float(_mark(network, x[start : start + WINDOW])) for start in starts]
    return float(np.mean(marks))


def _mark(network: Any, x: NDArray[np.float32]) -> Any:
    import torch
    from torch.nn import functional

    wave = torch.from_numpy(x / (np.abs(x).max() + np.float32(1e-8)))[None]
    wave = functional.pad(wave, ((STFT - STEP) // 2,) * 2, mode="reflect")
    spectrum = torch.stft(
        wave, STFT, STEP, window=torch.hann_window(STFT), center=False, return_complex=True
    )
    size = spectrum.abs().clip(1e-12)
    pressed = torch.view_as_real(spectrum * size ** (COMPRESSION - 1.0)).permute(0, 3, 1, 2)
    features = network.cnn.cnn(pressed).flatten(1, 2)  # (1, channels * bands, frames)
    head = network.transformer_pool_attn
    inner = head.transformer
    x_in = inner.norm(head.norm_input(features)).transpose(1, 2)
    hidden = inner.transformer_encoder(inner.linear_proj(x_in) + inner.position_encoding.pe)
    hidden = head.norm_trans(hidden.transpose(1, 2)).transpose(1, 2)
    weight = head.pool.linear2(functional.relu(head.pool.linear1(hidden))).softmax(dim=1)
    return 1.0 + 4.0 * torch.sigmoid(head.pool.linear3((weight * hidden).sum(dim=1)))[0, 0]


@functools.lru_cache(maxsize=1)
def _network() -> Any:
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for i, size in enumerate(CHANNELS):
        stride = (2 if i else 1, 2 if i == len(CHANNELS) - 1 else 1)
        before = CHANNELS[i - 1] if i else 2
        layers += [nn.Conv2d(before, size, 3, stride, (0, 1)), nn.LeakyReLU(SLOPE)]
    given = 4 * CHANNELS[-1]  # bands that are left × channels
    block = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, batch_first=True)
    positions = nn.Module()
    positions.register_buffer("pe", torch.zeros(1, 384, WIDTH))
    inner = _joined(
        norm=nn.BatchNorm1d(given),
        position_encoding=positions,
        linear_proj=nn.Linear(given, WIDTH),
        transformer_encoder=nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False),
    )
    pool = _joined(
        linear1=nn.Linear(WIDTH, 2 * WIDTH),
        linear2=nn.Linear(2 * WIDTH, 1),
        linear3=nn.Linear(WIDTH, 1),
    )
    head = _joined(
        norm_input=nn.BatchNorm1d(given),
        transformer=inner,
        norm_trans=nn.BatchNorm1d(WIDTH),
        pool=pool,
    )
    network = _joined(cnn=_joined(cnn=nn.Sequential(*layers)), transformer_pool_attn=head)
    path = model_path("distillmos")
    with reading(path, "weights of DistillMOS"):
        weights = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(weights["model"])
    return network.eval()


def _joined(**parts: Any) -> Any:
    """Parts of a network under their names."""
    from torch import nn

    whole = nn.Module()
    for name, part in parts.items():
        whole.add_module(name, part)
    return whole


def rate_naturalness(
    utterances: Sequence[Utterance],
    *,
    journal: Path | str | None = None,
    workers: int | None = None,
) -> list[float]:
    """The mark of each utterance; what ``journal`` knows is not done again."""
    require("torch", extra="utility")
    model_path("distillmos")
    versions = [MODELS["distillmos"].files[0].sha256, version("torch")]
    return resumable(
        _rate,
        utterances,
        key=functools.partial(hash_of, {"what": "distillmos 1", "versions": versions}),
        journal=journal,
        workers=workers,
        label="marking naturalness",
    )


def _rate(row: Utterance) -> float:
    return distillmos(read_audio(row, rate=RATE))


def measure_naturalness(pairs: Pairs) -> Measured:
    """Mean marks before and after, of all utterances or of those that are to be marked."""
    speakers = [pairs.original[i].speaker for i in pairs.places]
    estimates: BySide = {}
    cells: Cells = {}
    for side, marks in pairs.marks(rate_naturalness).items():
        cells[f"distillmos_{side}"] = pairs.column(marks)
        estimates[side] = ratio_estimate(
            "distillmos", marks, speakers, chance=LOWEST_MARK, source=SOURCE, **pairs.draw
        )
    return {"distillmos": estimates}, cells
