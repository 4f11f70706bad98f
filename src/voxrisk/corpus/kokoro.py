"""Kokoro-82M: neural voices for the demo corpus.

The weights come from the model store (340 MB, Apache-2.0, fp32: the fp16 ones give NaN) and run in
ONNX Runtime. espeak-ng writes the phonemes, American or British as the voice is.

Kokoro has 54 voices. These are the 28 English ones. The other 26 can read English too, but it is
not the language they were trained on, and some look like one speaker under two names
(``em_santa`` and ``pm_santa``; docs/corpora.md).

The graph holds nothing random, and a session of one thread gives the same samples every time. More
threads would change the last bits: several lines are said at once instead.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import espeak
from voxrisk.types import InputError, require

KOKORO_RATE = 24_000
LENGTHS, STYLE = 510, 256  # a voice is one style vector for each number of phonemes
# Each is the one that ecapa-voxceleb finds least like those before it.
VOICES = (
    "bm_lewis", "am_michael", "af_sky", "am_onyx", "bf_lily", "am_puck", "af_nicole",
    "af_jessica", "bm_fable", "bm_daniel", "bf_isabella", "af_nova", "am_adam", "af_river",
    "af_aoede", "af_sarah", "af_alloy", "am_santa", "am_eric", "bf_alice", "af_bella",
    "bf_emma", "am_echo", "am_liam", "am_fenrir", "af_kore", "bm_george", "af_heart",
)  # fmt: skip
# The symbols of English among the 178 of the model, with the numbers its config.json gives them.
SYMBOLS = {
    ";": 1, ":": 2, ",": 3, ".": 4, "!": 5, "?": 6, " ": 16, "a": 43, "b": 44, "d": 46, "e": 47,
    "f": 48, "h": 50, "i": 51, "j": 52, "k": 53, "l": 54, "m": 55, "n": 56, "o": 57, "p": 58,
    "r": 60, "s": 61, "t": 62, "u": 63, "v": 64, "w": 65, "x": 66, "z": 68, "ɑ": 69, "ɐ": 70,
    "ɒ": 71, "æ": 72, "ɔ": 76, "ð": 81, "ə": 83, "ɚ": 85, "ɛ": 86, "ɜ": 87, "ɡ": 92, "ɪ": 102,
    "ŋ": 112, "θ": 119, "ɹ": 123, "ɾ": 125, "ʃ": 131, "ʊ": 135, "ʌ": 138, "ʒ": 147, "ʔ": 148,
    "ˈ": 156, "ˌ": 157, "ː": 158, "ᵻ": 177,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence to say: the text, a voice of :data:`VOICES`, and its speed (1 is normal)."""

    text: str
    voice: str
    speed: float = 1.0


def gender(voice: str) -> str:
    """``"f"`` or ``"m"``: the second letter of a voice's name; the first is its accent.

    >>> gender("bf_emma")
    'f'
    """
    return voice[1]


def accent(voice: str) -> str:
    """The language espeak-ng reads for this voice.

    >>> accent("bf_emma"), accent("am_adam")
    ('en', 'en-us')
    """
    return {"a": "en-us", "b": "en"}[voice[0]]


def speak_all(
    lines: Sequence[Line], *, workers: int | None = None
) -> Iterator[NDArray[np.float32]]:
    """Say every line, in order: samples ``(n,)`` at 24 kHz; ``workers`` changes no sample."""
    require("onnxruntime", extra="kokoro")
    require("espeakng_loader", extra="kokoro")
    from voxrisk.models import model_path
    from voxrisk.shards import run

    for line in lines:
        if line.voice not in VOICES:
            raise InputError(
                f"no English Kokoro voice {line.voice!r}; known are {', '.join(VOICES)}"
            )
    phonemes = espeak.ipa_all([espeak.Line(line.text, accent(line.voice)) for line in lines])
    coded = [numbers(line.text, said) for line, said in zip(lines, phonemes, strict=True)]
    folder = model_path("kokoro")
    voices = styles(folder)
    session = _session(folder / "model.onnx")

    def say(place: int) -> NDArray[np.float32]:
        line, ids = lines[place], coded[place]
        given = {
            "input_ids": np.array([[0, *ids, 0]], dtype=np.int64),
            "style": voices[line.voice][len(ids) - 1][None],
            "speed": np.array([line.speed], dtype=np.float32),
        }
        samples = np.asarray(session.run(None, given)[0][0], dtype=np.float32)
        if not np.isfinite(samples).all():
            raise InputError(f"Kokoro's voice {line.voice} gave NaN for {line.text!r}")
        return samples

    yield from run(say, range(len(lines)), workers=workers, label="speak", threads=True)


@functools.lru_cache(maxsize=1)
def _session(path: Path) -> Any:
    """The weights, loaded; kept, since who says one line mostly says another."""
    runtime: Any = require("onnxruntime", extra="kokoro")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def styles(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Voice → its style vectors ``(510, 256)``, from the folder of the weights."""
    from voxrisk.models import model

    # The file joins the voices in the order of its sources.
    names = [Path(part.member).stem for part in model("kokoro").files[1].npm]
    packed = np.fromfile(folder / "voices.bin", dtype="<f4").reshape(len(names), LENGTHS, STYLE)
    return dict(zip(names, packed, strict=True))


def version() -> str:
    """What the samples depend on: the weights and the espeak-ng that writes the phonemes."""
    from voxrisk.models import model

    return f"{model('kokoro').files[0].sha256[:8]}-{espeak.version()}"


def numbers(text: str, phonemes: str) -> list[int]:
    """Phonemes as the model's numbers; what it has no number for is an error, never left out."""
    if unknown := sorted(set(phonemes) - set(SYMBOLS)):
        raise InputError(f"Kokoro has no English symbol {unknown[0]!r}, a phoneme of {text!r}")
    if not 1 <= len(phonemes) <= LENGTHS:
        raise InputError(
            f"Kokoro says 1 to {LENGTHS} phonemes at once, not {len(phonemes)}: {text!r}"
        )
    return [SYMBOLS[symbol] for symbol in phonemes]
