"""A light speaker vector that needs no trained model: mean and spread of the mel-cepstrum."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import RATE
from voxrisk.protect.targets import Vectors
from voxrisk.shards import run
from voxrisk.types import InputError, require

N_CEPSTRA = 20
SECONDS = 30.0


def cepstra(samples: NDArray[np.float32], *, rate: int = RATE) -> NDArray[np.float32]:
    """Mel-cepstrum ``(t, 20)``, a frame each 10 ms."""
    fbank = require("kaldi_native_fbank", extra="protect")
    options = fbank.MfccOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = rate
    options.frame_opts.snip_edges = False
    options.mel_opts.num_bins = 40
    options.num_ceps = N_CEPSTRA
    options.use_energy = False
    stream = fbank.OnlineMfcc(options)
    stream.accept_waveform(rate, (samples * 32768).tolist())
    stream.input_finished()
    return np.stack([stream.get_frame(i) for i in range(stream.num_frames_ready)])


def light_vector(utterances: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Mean and spread of coefficients 1–19 over the louder half of the frames: ``(38,)``."""
    frames = np.concatenate([cepstra(samples) for samples in utterances])
    loud = frames[frames[:, 0] >= np.median(frames[:, 0]), 1:]
    return np.concatenate([loud.mean(axis=0), loud.std(axis=0)]).astype(np.float32)


def light_vectors(
    speakers: Mapping[str, Sequence[Utterance]], *, workers: int | None = None
) -> dict[str, NDArray[np.float32]]:
    """A light vector for each speaker, from up to 30 s of speech.

    Coordinates are standardised over all speakers, so that cosines between them mean something.
    """
    rows = list(speakers.values())
    found = np.stack(list(run(_speaker_vector, rows, workers=workers, label="speaker vectors")))
    spread = found.std(axis=0)
    found = (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return dict(zip(speakers, found, strict=True))


def _speaker_vector(rows: Sequence[Utterance]) -> NDArray[np.float32]:
    speech, total = [], 0.0
    for row in rows:
        speech.append(read_audio(row))
        total += len(speech[-1]) / RATE
        if total >= SECONDS:
            break
    return light_vector(speech)


@functools.lru_cache(maxsize=1)
def read_speaker_vectors(path: Path) -> Vectors:
    """Read speaker vectors from an ``.npz`` with ``speakers (n,)`` and ``vectors (n, d)``.

    A speaker that stands there several times (a row for each utterance) gets the mean.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names, vectors = arrays["speakers"].astype(str), arrays["vectors"]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path}: not an .npz with the arrays speakers (n,) and vectors (n, d) ({error})"
        ) from error
    if vectors.ndim != 2 or len(names) != len(vectors) or not np.isfinite(vectors).all():
        raise InputError(f"{path}: speakers and finite vectors (n, d) must have the same n")
    return {name: vectors[names == name].mean(axis=0) for name in sorted(set(names))}
