"""The encoders and vocoders of ``knn``.

- ``light``: mel-cepstra with context for matching, WORLD as the vocoder. No trained model.
- ``whisper``: Whisper tiny.en for matching, WORLD as the vocoder.
- ``hifigan``: Whisper tiny.en for matching, the target's mel frames averaged, HiFi-GAN universal.
- ``wavlm``: WavLM-Large layer 6 and the HiFi-GAN trained on it, from the user's own files: kNN-VC
  as its paper describes it. Features are compared by cosine as they are, without any mean taken
  out, and the 4 nearest are averaged with equal weights.

Weights of Whisper and HiFi-GAN come from the model store.
"""

import functools
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.protect.knn import Array, Frames, Part
from voxrisk.protect.world import (
    N_CEPSTRA,
    PERIOD,
    WorldSpeech,
    analyse,
    analyse_target,
    fit_length,
    pitch,
    synthesise,
)
from voxrisk.shards import one_thread
from voxrisk.types import InputError, require

WORLD_RATE = 1000 / PERIOD
KEPT = (0, N_CEPSTRA)  # loudness, and the one band of aperiodicity that WORLD codes at 16 kHz
CONTEXT = (-12, -6, 0, 6, 12)  # frames of 5 ms
WHISPER_LAYER = 2  # of four: neighbours in it agree best on the phone (docs/anonymizers.md)


def part(name: str, *, encoder: str | None = None, vocoder: str | None = None) -> Part:
    """An encoder–vocoder pair by name; ``wavlm`` needs the paths of its two checkpoints."""
    makers: dict[str, Callable[[], Part]] = {
        "light": light_part,
        "whisper": whisper_part,
        "hifigan": hifigan_part,
    }
    if name in makers:
        return makers[name]()
    if name != "wavlm":
        raise InputError(f"part is {name!r}; choose {', '.join(makers)} or wavlm")
    if not encoder or not vocoder:
        raise InputError(
            "part wavlm needs your own checkpoints: --set encoder=WavLM-Large.pt "
            "--set vocoder=prematch_g_02500000.pt"
        )
    return wavlm_part(Path(encoder), Path(vocoder))


def at_times(features: Array, rate: float, times: NDArray[np.floating]) -> Array:
    """Features ``(t, d)`` at ``rate`` frames per second, interpolated at other ``times``."""
    position = np.clip(times * rate, 0, len(features) - 1)
    low = np.minimum(position.astype(int), max(len(features) - 2, 0))
    high = np.minimum(low + 1, len(features) - 1)
    share = (position - low)[:, None].astype(np.float32)
    mixed: Array = features[low] * (1 - share) + features[high] * share
    return mixed


def light_part() -> Part:
    """Cepstra and WORLD."""

    def content_of(samples: Array, values: Array) -> Array:
        shape = values[:, 1:20]
        padded = np.pad(shape, ((-CONTEXT[0], CONTEXT[-1]), (0, 0)), mode="edge")
        return np.hstack([padded[c - CONTEXT[0] :][: len(shape)] for c in CONTEXT])

    return _world_part("light", content_of, k=8, pitch_weight=0.5)


@functools.lru_cache(maxsize=1)
def whisper_part() -> Part:
    """Whisper tiny.en and WORLD."""
    hears = _whisper_content()

    def content_of(samples: Array, values: Array) -> Array:
        return hears(samples, np.arange(len(values)) / WORLD_RATE)

    return _world_part("whisper", content_of, k=16)


@functools.lru_cache(maxsize=1)
def hifigan_part() -> Part:
    """Whisper tiny.en and HiFi-GAN universal."""
    from voxrisk.models import model_path

    content_of = _whisper_content()
    from voxrisk.mel import HIFIGAN_HOP, HIFIGAN_RATE, hifigan_mel
    from voxrisk.protect.hifigan import load_generator

    generator = load_generator(model_path("hifigan-universal"))
    soxr = require("soxr", extra="audio")
    rate = HIFIGAN_RATE / HIFIGAN_HOP

    def to_frames(samples: Array) -> Frames:
        mel = hifigan_mel(soxr.resample(samples, RATE, HIFIGAN_RATE))
        times = np.arange(0.5, len(mel)) / rate
        f0 = pitch(samples)
        steps = np.clip(np.round(times * WORLD_RATE).astype(int), 0, len(f0) - 1)
        return Frames(content_of(samples, times), mel, f0[steps])

    def to_samples(values: Array, f0: NDArray[np.float64], length: int) -> Array:
        with one_thread():
            wave = _run_generator(generator, values)
        return fit_length(soxr.resample(wave, HIFIGAN_RATE, RATE), length)

    # A mel frame shows the harmonics, so frames of different pitch must not be averaged.
    return Part("hifigan", to_frames, to_samples, rate, pitch_weight=0.3)


def _world_part(
    name: str, content_of: Callable[[Array, Array], Array], *, k: int, pitch_weight: float = 0.0
) -> Part:
    """A part whose vocoder is WORLD; ``content_of(samples, values)`` gives what is compared."""

    def encoder(analysis: Callable[[Array], WorldSpeech]) -> Callable[[Array], Frames]:
        def to_frames(samples: Array) -> Frames:
            speech = analysis(samples)
            # Cepstrum and aperiodicity side by side (t, 41), a frame each 5 ms.
            values = np.hstack([speech.cepstra, speech.aperiodicity]).astype(np.float32)
            return Frames(content_of(samples, values), values, speech.f0)

        return to_frames

    return Part(
        name,
        encoder(analyse),
        _world_vocode,
        WORLD_RATE,
        k=k,
        pitch_weight=pitch_weight,
        kept=KEPT,
        encode_target=encoder(analyse_target),
    )


def _world_vocode(values: Array, f0: NDArray[np.float64], length: int) -> Array:
    wide = values.astype(np.float64)
    return synthesise(WorldSpeech(f0, wide[:, :N_CEPSTRA], wide[:, N_CEPSTRA:]), length)


def _whisper_content() -> Callable[[Array, NDArray[np.floating]], Array]:
    """A function from samples to content features ``(t, 60)`` at given times in seconds."""
    from voxrisk.whisper import FRAMES_PER_SECOND

    encode = whisper_layer()
    file = resources.files("voxrisk.protect") / "content_directions.npy"
    with file.open("rb") as stream:
        directions: Array = np.load(stream).astype(np.float32)

    def content_of(samples: Array, times: NDArray[np.floating]) -> Array:
        return at_times(encode(samples) @ directions, FRAMES_PER_SECOND, times)

    return content_of


def whisper_layer() -> Callable[[Array], Array]:
    """A function from samples to Whisper's second layer ``(t, 384)``, a frame each 20 ms."""
    from voxrisk.models import model_path

    require("torch", extra="knn")
    from voxrisk.whisper import encode, load_encoder

    encoder = load_encoder(model_path("whisper-tiny.en"))
    # Whisper adds the place in the utterance to its features. What it says to faint noise is almost
    # nothing but the place: taking that away lets frames match wherever they stand.
    noise = np.random.default_rng(0).normal(0, 1e-3, 30 * RATE).astype(np.float32)
    with one_thread():
        place = encode(encoder, noise, layer=WHISPER_LAYER)

    def layer_of(samples: Array) -> Array:
        with one_thread():
            content = encode(encoder, samples, layer=WHISPER_LAYER)
        return content - place[np.arange(len(content)) % len(place)]

    return layer_of


@functools.lru_cache(maxsize=1)
def wavlm_part(encoder_path: Path, vocoder_path: Path) -> Part:
    """WavLM and its HiFi-GAN, from the checkpoints that kNN-VC publishes."""
    require("torch", extra="knn")
    from voxrisk.protect.hifigan import load_generator
    from voxrisk.protect.wavlm import FRAMES_PER_SECOND, encode, load_wavlm

    encoder = load_wavlm(encoder_path)
    generator = load_generator(vocoder_path)

    def to_frames(samples: Array) -> Frames:
        with one_thread():
            content = encode(encoder, samples)
        f0 = pitch(samples)
        steps = np.round(np.arange(len(content)) * 1000 / FRAMES_PER_SECOND / PERIOD).astype(int)
        return Frames(content, content, f0[np.clip(steps, 0, len(f0) - 1)])

    def to_samples(values: Array, f0: NDArray[np.float64], length: int) -> Array:
        with one_thread():
            return fit_length(_run_generator(generator, values), length)

    return Part("wavlm", to_frames, to_samples, FRAMES_PER_SECOND, centre=False)


def _run_generator(generator: "object", values: Array) -> Array:
    import torch

    with torch.inference_mode():
        wave: Array = generator(torch.from_numpy(np.ascontiguousarray(values))[None])[0].numpy()  # type: ignore[operator]
    return wave
