"""Who speaks, from how long each phone lasts: nothing of the timbre, and nothing of the melody.

Voice conversion gives an utterance another voice and keeps its timing. Speakers differ in how fast
they speak, and also in what they make long: vowels or consonants, the ends of phrases, some words
much more than others. The transcript is aligned with the sound (:mod:`voxrisk.hearing.forced`), and
of the log of each phone's length is taken what anybody's would be, given the phone, the classes of
its neighbours, its place in the word and whether a pause follows: an additive model, in
``durations.toml``. What is left is divided by its spread, and its means and spreads over classes of
phones are the vector. An attacker who has no transcript has a recogniser.

The model was learned by ``experiments/durations.py`` on the original speech of 133 speakers of
speechocean762 and LibriSpeech train-clean-5; it explains 32 % of the variance of the logs.
"""

import functools
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoder import check_all
from voxrisk.hearing.forced import Timed, find_phones

Floats: TypeAlias = NDArray[np.float64]
VERSION = 1  # raised when the numbers change
PAUSE = 8  # frames of 10 ms of silence that count as a pause
FEW = 3.0  # phones of a class that say as much as the expectation does
SILENCE = "silence"
CLASSES = {
    "short": "IH EH AE UH AH AA",
    "long": "IY UW AO ER EY OW AY AW OY",
    "voiced stop": "B D G",
    "unvoiced stop": "P T K",
    "voiced fricative": "V DH Z ZH",
    "unvoiced fricative": "F TH S SH HH",
    "affricate": "CH JH",
    "nasal": "M N NG",
    "liquid": "L R W Y",
}
CLASS = {phone: name for name, phones in CLASSES.items() for phone in phones.split()}
# In the order of the vector; a mean and a spread of each class stand behind them.
WHOLE = ("mean", "spread", "before pauses", "rhythm", "shortest", "longest")


class Phone(NamedTuple):
    """A phone as it was said: its length in frames of 10 ms, and what its length depends on."""

    name: str
    frames: int
    before: str  # class of the phone before it, or silence
    after: str
    paused: bool  # among the last two phones of a word before a pause
    last: bool  # in its word
    first: bool
    phones: int  # of its word


class DurationsEncoder:
    """See :class:`voxrisk.attack.Encoder`; it hears speech beside its text."""

    reads = True
    names = (*WHOLE, *(f"{name}, {kind}" for name in CLASSES for kind in ("mean", "spread")))

    def __init__(self, name: str = "durations") -> None:
        self.name = name
        self.identity = f"{name} {VERSION}"
        self.dimension = len(self.names) + 1  # and a constant, as in prosody

    def embed(
        self, waveforms: Sequence[NDArray[np.float32]], texts: Sequence[str] = ()
    ) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz of which ``texts`` say the words.

        What cannot be aligned, or has no text, says nothing: it is as ordinary as can be.
        """
        check_all(waveforms)
        words = texts or [""] * len(waveforms)
        aligned = [find_phones(wave, text) for wave, text in zip(waveforms, words, strict=True)]
        return np.stack([durations(phones_of(found or ())) for found in aligned]).astype(np.float32)


def phones_of(aligned: Sequence[Timed]) -> list[Phone]:
    """The phones of an aligned utterance in order, with what their lengths depend on."""
    flat: list[tuple[str, int, bool, bool, bool, int] | None] = []
    for i, word in enumerate(aligned):
        if not word.phones:
            flat.append(None)
            continue
        then = aligned[i + 1] if i + 1 < len(aligned) else None
        pause = then is None or (not then.phones and then.frames >= PAUSE)
        size = len(word.phones)
        flat += [
            (name, frames, pause and j >= size - 2, j == size - 1, j == 0, size)
            if name in CLASS
            else None
            for j, (name, frames) in enumerate(word.phones)
        ]
    classes = [SILENCE, *(CLASS[one[0]] if one else SILENCE for one in flat), SILENCE]
    return [
        Phone(one[0], one[1], classes[i], classes[i + 2], *one[2:])
        for i, one in enumerate(flat)
        if one is not None
    ]


def durations(phones: Sequence[Phone]) -> Floats:
    """What is unusual in the lengths of the phones of an utterance, ``(25,)``.

    The last value is always 1: beside it the direction of the vector keeps its length.
    """
    if not phones:
        return np.array([*np.zeros(len(DurationsEncoder.names)), 1.0])
    left = np.array([unusual(phone) for phone in phones])
    mean, spread = float(left.mean()), float(left.std())
    rest = left - mean
    paused = np.array([phone.paused for phone in phones])
    low, high = np.quantile(rest, [0.1, 0.9])
    rhythm = np.corrcoef(left[:-1], left[1:])[0, 1] if left.size > 5 and spread > 0 else 0.0
    found = [
        2.0 * mean,
        3.0 * (spread - 1.0),
        2.0 * rest[paused].sum() / (paused.sum() + FEW),
        4.0 * float(np.nan_to_num(rhythm)),
        low + 1.2,
        high - 1.2,
    ]
    kind = np.array([CLASS[phone.name] for phone in phones])
    for name in CLASSES:
        own = rest[kind == name]
        found.append(2.0 * own.sum() / (own.size + FEW))
        apart = float(own.std()) - spread if own.size > 1 else 0.0
        found.append(2.0 * apart * own.size / (own.size + FEW))
    return np.array([*np.clip(found, -4.0, 4.0), 1.0])


def unusual(phone: Phone) -> float:
    """How far the log of a phone's length is from what is expected, in units of its spread."""
    model = _model()
    of_phone = model["phone"][phone.name]
    expected = (
        of_phone["mean"]
        + phone.paused * of_phone["paused"]
        + model["before"][phone.before]
        + model["after"][phone.after]
        + phone.last * model["word"]["last"]
        + phone.first * model["word"]["first"]
        + np.log(phone.phones) * model["word"]["log_phones"]
    )
    return float((np.log(max(phone.frames, 1)) - expected) / of_phone["spread"])


@functools.cache
def _model() -> Mapping[str, Any]:
    text = files("voxrisk.attack").joinpath("durations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
