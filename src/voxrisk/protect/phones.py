"""Which phone each frame of speech belongs to, without a transcript.

``phones`` asks pocketsphinx's phone recogniser; its English acoustic model is in the package.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.types import require

SILENCE = "SIL"


@functools.lru_cache(maxsize=1)
def _decoder() -> Any:
    pocketsphinx = require("pocketsphinx", extra="knn")
    models = pocketsphinx.get_model_path() + "/en-us"
    return pocketsphinx.Decoder(
        hmm=f"{models}/en-us",
        allphone=f"{models}/en-us-phone.lm.bin",
        lm=None,
        dict=None,
        lw=2.0,
        beam=1e-20,
        pbeam=1e-20,
        bestpath=False,
        cmn="batch",
        loglevel="FATAL",
    )


def phones(samples: NDArray[np.float32]) -> list[tuple[str, float]]:
    """The phones of speech at 16 kHz in order, each with its end in seconds.

    Speech too short to recognise anything in is one stretch of silence.
    """
    whole = len(samples) / RATE
    decoder = _decoder()
    decoder.reinit_feat()  # forget the utterances before, or the phones would depend on them
    decoder.start_utt()
    pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
    found = [(segment.word, (segment.end_frame + 1) / 100) for segment in decoder.seg() or ()]
    if not found:
        return [(SILENCE, whole)]
    # Noises ("+SPN+") are no phones of a language: to the converter they are silence.
    names = [(SILENCE if name.startswith(("+", "(", "<")) else name, end) for name, end in found]
    return [*names[:-1], (names[-1][0], max(whole, names[-1][1]))]


def label(segments: Sequence[tuple[str, float]], n_frames: int, rate: float) -> list[str]:
    """The phone of each of ``n_frames`` frames at ``rate`` frames per second."""
    ends = np.array([end for _, end in segments])
    index = np.searchsorted(ends, (np.arange(n_frames) + 0.5) / rate, side="right")
    return [segments[min(int(i), len(segments) - 1)][0] for i in index]


def runs(labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """Stretches of equal labels as (label, first frame, frame after the last).

    >>> runs(["a", "a", "b"])
    [('a', 0, 2), ('b', 2, 3)]
    """
    starts = [i for i in range(len(labels)) if i == 0 or labels[i] != labels[i - 1]]
    return [
        (labels[start], start, stop)
        for start, stop in zip(starts, [*starts[1:], len(labels)], strict=True)
    ]
