"""Training and embedding throughput against SpeechBrain's own ECAPA class and loss in a plain loop.

python benchmarks/attack.py [--channels 128 512] [--rounds 3] [--batch 16]

Both sides get the same waveforms, weights and number of threads, in turns, so that a busy machine
hits both alike; the figure is the median of the rounds. SpeechBrain needs
``pip install --no-deps speechbrain hyperpyyaml ruamel.yaml``; without it only our side is measured.
"""

import argparse
import importlib.machinery
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from voxrisk.attack.features import filter_banks
from voxrisk.attack.heads import TwoHeads
from voxrisk.attack.sizes import EcapaSize

SECONDS = 3
CLASSES = 153


def speechbrain() -> Any:
    """SpeechBrain with an empty stand-in for torchaudio, or None."""
    for name in ("torchaudio", "torchaudio.transforms", "torchaudio.functional"):
        module: Any = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__version__ = "0"
        module.list_audio_backends = lambda: ["soundfile"]
        sys.modules.setdefault(name, module)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import speechbrain.lobes.features
            import speechbrain.lobes.models.ECAPA_TDNN
            import speechbrain.nnet.losses
    except ImportError:
        return None
    return speechbrain


def our_sides(channels: int, waves: torch.Tensor, label: torch.Tensor) -> dict[str, Callable]:
    model = TwoHeads(EcapaSize(channels), sources=CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=2e-6, fused=True)

    def train() -> None:
        model.train()
        loss = model(filter_banks(waves), None, label, None, 0.0).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    @torch.inference_mode()
    def embed() -> None:
        model.eval().encoder(filter_banks(waves))

    return {"train": train, "embed": embed}


def their_sides(package: Any, channels: int, waves: torch.Tensor, label: torch.Tensor) -> dict:
    ecapa = package.lobes.models.ECAPA_TDNN
    model = ecapa.ECAPA_TDNN(80, channels=[channels] * 4 + [3 * channels], lin_neurons=192)
    head = ecapa.Classifier(192, out_neurons=CLASSES)
    losses = package.nnet.losses
    criterion = losses.LogSoftmaxWrapper(losses.AdditiveAngularMargin(margin=0.2, scale=30))
    fbank = package.lobes.features.Fbank(n_mels=80)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-4, weight_decay=2e-6)

    def features() -> torch.Tensor:
        found = fbank(waves)
        return found - found.mean(dim=1, keepdim=True)

    def train() -> None:
        model.train()
        loss = criterion(head(model(features())), label[:, None])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.inference_mode()
    def embed() -> None:
        model.eval()(features())

    return {"train": train, "embed": embed}


def timed(work: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, nargs="+", default=[128, 512, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    package = speechbrain()
    waves = 0.1 * torch.randn(given.batch, SECONDS * 16_000)
    label = torch.randint(0, CLASSES, (given.batch,))
    print(f"torch {torch.__version__}, {given.threads} thread(s), batches of {given.batch} × 3 s")
    for channels in given.channels:
        sides = {"voxrisk": our_sides(channels, waves, label)}
        if package:
            sides["speechbrain"] = their_sides(package, channels, waves, label)
        for task in ("train", "embed"):
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
            for round_ in range(given.rounds + 1):
                for name, side in sides.items():
                    found = timed(side[task])
                    if round_:  # the first warms up
                        times[name].append(found)
            wall, cpu = (
                {n: float(np.median([t[i] for t in ts])) for n, ts in times.items()} for i in (0, 1)
            )
            text = f"{channels:5} channels {task:5}: {given.batch / cpu['voxrisk']:7.1f} crops"
            text += f" per CPU second, {given.batch * SECONDS / wall['voxrisk']:6.1f} × real time"
            if package:
                text += f"; {wall['speechbrain'] / wall['voxrisk']:.2f} times SpeechBrain's speed"
                text += f" ({cpu['speechbrain'] / cpu['voxrisk']:.2f} by CPU time)"
            print(text, flush=True)


if __name__ == "__main__":
    main()
