"""Write down what was said, and have a synthetic voice read it: the extreme anonymizer.

Nothing of the voice, its melody, timing or room is left, because nothing but text passes. So what
an attacker still finds is in the words, and what the recogniser got wrong is lost. It is a strong
baseline for speech whose words alone matter, and the negative control of every attack on voices.

The voices are those of Kokoro (neural; a second of speech takes about a second of work), or one of
espeak-ng (a hundredth of that). By default one voice reads for everybody. Loudness is the same for
all: that of the recording would be a trace of it.
"""

import functools
import re
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import espeak, kokoro
from voxrisk.corpus.audio import RATE, to_mono
from voxrisk.hearing import RECOGNISERS, open_recogniser, recogniser_paths
from voxrisk.types import InputError

Samples: TypeAlias = NDArray[np.float32]
ESPEAK = "espeak"
ESPEAK_VOICE = "en-us"
RANDOM = "random"
UNHEARD = "Inaudible."  # what transcribers write; silence would be no speech at all
PIECE = 240  # characters said at once: Kokoro takes 510 phonemes
PAUSE = 0.2  # seconds between two pieces
LEVEL = 0.07  # RMS: about −23 dB of full scale
KEPT = 4096  # sentences that a process remembers


def check_voice(voice: str) -> str:
    """The same voice.

    Raises:
        InputError: If there is no such voice.
    """
    if voice not in (ESPEAK, RANDOM, *kokoro.VOICES):
        raise InputError(
            f"transcribe has no voice {voice!r}; choose {ESPEAK}, {RANDOM}, or one of "
            f"{', '.join(kokoro.VOICES)}"
        )
    return voice


def check_recogniser(asr: str) -> str:
    """The same recogniser.

    Raises:
        InputError: If there is none of that name that writes English down.
    """
    if asr not in RECOGNISERS:
        known = ", ".join(RECOGNISERS)
        raise InputError(f"transcribe has no recogniser {asr!r}; choose {known}")
    return asr


def transcribe(samples: Samples, voice: str, *, asr: str = "whisper-tiny.en") -> Samples:
    """What is said in ``samples (n,)`` at 16 kHz, read by ``voice``; of another length."""
    hear = open_recogniser(check_recogniser(asr), recogniser_paths(asr))
    (heard,) = hear([samples], "en")
    return read_aloud(readable(heard), voice)


def readable(text: str) -> str:
    """The text in letters, figures and marks that voices can read.

    >>> readable("“Well—he said…” [music] £5!")
    'Well he said. 5!'
    """
    text = text.replace("’", "'").replace("…", ".")
    text = re.sub(r"\[[^\]]*\]|\([^)]*\)", " ", text)
    text = re.sub(r"[^A-Za-zÀ-ÿ0-9',.;:!?]+", " ", text)
    text = re.sub(r"\s+([,.;:!?])", r"\1", text).strip(" ,;:'")
    return text if re.search(r"[A-Za-zÀ-ÿ0-9]", text) else UNHEARD


@functools.lru_cache(maxsize=KEPT)
def read_aloud(text: str, voice: str) -> Samples:
    """Samples at 16 kHz of a voice that reads; the same text is said once."""
    said = [_said(piece, voice) for piece in pieces(text)]
    pause = np.zeros(round(PAUSE * RATE), np.float32)
    joined = np.concatenate([part for one in said for part in (one, pause)][:-1])
    power = float(np.sqrt(np.mean(joined.astype(np.float64) ** 2)))
    level = joined * np.float32(LEVEL / max(power, 1e-6))
    level.setflags(write=False)  # it is remembered
    return level


def _said(text: str, voice: str) -> Samples:
    if voice == ESPEAK:
        (spoken,) = espeak.speak_all([espeak.Line(text, ESPEAK_VOICE)])
        return to_mono(spoken.samples[:, None], spoken.rate, rate=RATE)
    (samples,) = kokoro.speak_all([kokoro.Line(text, voice)], workers=1)
    return to_mono(samples[:, None], kokoro.KOKORO_RATE, rate=RATE)


def pieces(text: str, *, most: int = PIECE) -> list[str]:
    """The text in pieces of at most ``most`` characters, cut after a mark if there is one.

    >>> pieces("One two, three four. Five", most=12)
    ['One two,', 'three four.', 'Five']
    """
    found, rest = [], text
    while len(rest) > most:
        head = rest[: most + 1]
        places = [m.end() for m in re.finditer(r"[,.;:!?](?= )", head)]
        place = places[-1] if places else head.rfind(" ")
        place = place if place > 0 else most
        found.append(rest[:place].strip())
        rest = rest[place:].strip()
    return [*found, rest]
