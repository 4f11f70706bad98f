"""How close embedding comes to what the processor can do: the ready ECAPA against its products.

python benchmarks/embedding.py [--rounds 5]

On one thread, in turns: torch's convolutions on the official weights as they come (what SpeechBrain
runs), the same with weights too small for a normal number set to 0, our products over frames, and
the bare matrix products of the same sizes, which nothing can beat. Utterances of like length, as
``voxrisk embed`` batches them, and of mixed length. Figures are medians of the rounds, in processor
time, so that other work on the machine matters little.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from voxrisk.attack.ecapa import Ecapa
from voxrisk.attack.ecapa_encoder import drop_denormals, load_ecapa
from voxrisk.attack.ecapa_frames import FrameEcapa
from voxrisk.models import model_path

LENGTHS = {"like": [500] * 8, "mixed": [250, 400, 520, 610, 700, 810, 320, 390]}


def products(model: Ecapa, frames: int) -> tuple[float, Callable[[], None]]:
    """Operations of all convolutions for so many frames, and the matrix products alone."""
    work, count = [], 0.0
    for name, weight in model.named_parameters():
        if not name.endswith("conv.weight") or "se_block" in name or name.startswith("fc"):
            continue
        outputs, inputs, taps = weight.shape
        if name.startswith("asp.tdnn"):
            inputs //= 3  # the context is multiplied once for an utterance
        work.append((torch.randn(frames, inputs * taps), torch.randn(inputs * taps, outputs)))
        count += 2.0 * frames * inputs * taps * outputs

    def run() -> None:
        for left, right in work:
            torch.mm(left, right)

    return count, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    path = model_path("ecapa-voxceleb")
    plain, clean = load_ecapa(path).eval(), load_ecapa(path).eval()
    drop_denormals(clean)
    fast = FrameEcapa(clean)
    rng = torch.Generator().manual_seed(0)
    for name, lengths in LENGTHS.items():
        features = [10 * torch.randn(80, length, generator=rng) for length in lengths]
        batch = torch.zeros(len(lengths), 80, max(lengths))
        for row, feature in zip(batch, features, strict=True):
            row[:, : feature.shape[1]] = feature
        frames = None if len(set(lengths)) == 1 else torch.tensor(lengths)
        count, bare = products(clean, sum(lengths))
        found: dict[str, NDArray[np.float32]] = {}
        sides: dict[str, Callable[[], object]] = {
            "torch, weights as they come": lambda: plain(batch, frames),  # noqa: B023
            "torch, no denormal weights": lambda: clean(batch, frames),  # noqa: B023
            "products over frames (ours)": lambda: fast.embed(features),  # noqa: B023
            "bare products of these sizes": bare,
        }
        times: dict[str, list[float]] = {side: [] for side in sides}
        with torch.inference_mode():
            for side, work in sides.items():  # compiled and warm
                vectors = work()
                if isinstance(vectors, torch.Tensor):
                    found[side] = vectors.numpy()
            for _ in range(rounds):
                for side, work in sides.items():
                    began = time.process_time()
                    work()
                    times[side].append(time.process_time() - began)
        first = statistics.median(times["torch, weights as they come"])
        print(f"{name} lengths, {sum(lengths) / 100:.0f} s of speech")
        for side, each in times.items():
            seconds = statistics.median(each)
            apart = ""
            if side in found:
                base = found["torch, weights as they come"]
                apart = (
                    f", largest change {np.abs(found[side] - base).max() / np.abs(base).max():.0e}"
                )
            print(
                f"  {side:<30} {seconds:6.3f} s, {first / seconds:4.2f} times, "
                f"{count / seconds / 1e9:4.0f} GFLOP/s, {sum(lengths) / 100 / seconds:3.0f} times "
                f"real time{apart}"
            )


if __name__ == "__main__":
    main()
