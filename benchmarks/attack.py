"""Training and embedding throughput against SpeechBrain's own ECAPA class and loss in a plain loop.

python benchmarks/attack.py [--channels 128 512] [--rounds 3] [--batch 16] [--threads 1]
python benchmarks/attack.py --processes 2

Both sides get the same waveforms, weights and number of threads, in turns, so that a busy machine
hits both alike; the figure is the median of the rounds. SpeechBrain needs
``pip install --no-deps speechbrain hyperpyyaml ruamel.yaml``; without it only our side is measured.
Embedding runs as ``voxrisk embed`` runs it, beside the bare matrix products of the same sizes in
the same rounds: the roofline. ``--processes`` compares so many processes of one thread with one
process of so many threads.
"""

import argparse
import importlib.machinery
import sys
import time
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from embedding import products

from voxrisk.attack.ecapa import Ecapa
from voxrisk.attack.ecapa_frames import FrameEcapa
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

    return {"train": train, "embed": embedding(model.encoder, waves)}


def embedding(model: Ecapa, waves: torch.Tensor) -> Callable[[], None]:
    """What ``voxrisk embed`` does with a batch: filter banks, and products over frames."""
    frames = FrameEcapa(model.eval())

    @torch.inference_mode()
    def embed() -> None:
        frames.embed(list(filter_banks(waves)))

    return embed


def bare(channels: int, waves: torch.Tensor) -> tuple[float, Callable[[], None]]:
    """Operations of a batch, and the matrix products alone, which nothing can beat."""
    frames = len(waves) * filter_banks(waves[:1]).shape[2]
    return products(Ecapa(EcapaSize(channels)), frames)


def work_alone(given: tuple[int, int, int, int]) -> float:
    """Seconds of so many batches on so many threads, by the clock, in a process of its own."""
    channels, batch, threads, batches = given
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    embed = embedding(Ecapa(EcapaSize(channels)), 0.1 * torch.randn(batch, SECONDS * 16_000))
    embed()
    began = time.perf_counter()
    for _ in range(batches):
        embed()
    return time.perf_counter() - began


def threads_or_processes(channels: int, batch: int, count: int, rounds: int) -> None:
    """Speech for each second by the clock: ``count`` processes of one thread, and the reverse."""
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        list(pool.map(work_alone, [(channels, batch, 1, 1)] * count))  # all are awake
        speed = []
        for threads in (1, count):
            jobs = [(channels, batch, threads, rounds)] * (count if threads == 1 else 1)
            slowest = max(pool.map(work_alone, jobs))
            speed.append(len(jobs) * rounds * batch * SECONDS / slowest)
    print(
        f"{channels:5} channels embed: {count} processes of one thread {speed[0]:.1f} × real time, "
        f"one of {count} threads {speed[1]:.1f}: {speed[0] / speed[1]:.2f} times"
    )


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
    parser.add_argument("--processes", type=int, default=0)
    given = parser.parse_args()
    if given.processes:
        for channels in given.channels:
            threads_or_processes(channels, given.batch, given.processes, given.rounds)
        return
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
        count, roof = bare(channels, waves)
        for task in ("train", "embed"):
            if task == "embed":
                sides["products"] = {"embed": roof}
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
            if task == "embed":
                reached, most = (count / cpu[side] / 1e9 for side in ("voxrisk", "products"))
                text += f"; {reached:.0f} of {most:.0f} GFLOP/s ({reached / most:.0%})"
            print(text, flush=True)


if __name__ == "__main__":
    main()
