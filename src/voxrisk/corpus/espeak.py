"""espeak-ng through its C API: text in; samples and word times, or phonemes, out.

The library comes with the package ``espeakng-loader`` and is loaded when it is first used. It is
licensed under the GPL-3: it is an optional extra, no part of voxrisk.

espeak-ng keeps state in global variables, and what it says depends a little on what it said before.
:func:`speak_all` therefore says everything in order in a process of its own: the same list always
gives the same samples.
"""

import ctypes
import os
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.shards import end_with_parent
from voxrisk.types import InputError, require

SYNCHRONOUS = 2
UTF8 = 1
BY_CHARACTER = 1
IPA = 2
RATE_PARAMETER, PITCH_PARAMETER = 1, 3
WORD_EVENT = 1


class _Event(ctypes.Structure):
    """``espeak_EVENT`` of speak_lib.h."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence to say.

    Attributes:
        text: What to say.
        voice: Language and variant, e.g. ``"en-us+f2"``.
        rate: Words per minute.
        pitch: 0–100; 50 is the voice's own.
    """

    text: str
    voice: str
    rate: int = 165
    pitch: int = 50


@dataclass(frozen=True, slots=True)
class Said:
    """What came out: samples ``(n,)`` in −1 … 1, their rate, and when each word begins (s)."""

    samples: NDArray[np.float32]
    rate: int
    word_starts: tuple[float, ...]


def speak_all(lines: Sequence[Line]) -> list[Said]:
    """Say every line, in order, in a fresh process."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=end_with_parent
    ) as pool:
        return pool.submit(_speak_all, list(lines)).result()


def ipa_all(lines: Sequence[Line]) -> list[str]:
    """The phonemes of every line in the IPA, its punctuation kept, from a fresh process."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=end_with_parent
    ) as pool:
        return pool.submit(_ipa_all, list(lines)).result()


def version() -> str:
    """Version of the installed espeak-ng."""
    loader: Any = require("espeakng_loader", extra="demo")
    library = ctypes.CDLL(str(loader.get_library_path()))
    library.espeak_Info.restype = ctypes.c_char_p
    return str(library.espeak_Info(None).decode()).split()[0]


def _start() -> tuple[Any, int]:
    """The library, ready to speak, and its sample rate."""
    loader: Any = require("espeakng_loader", extra="demo")
    library = ctypes.CDLL(str(loader.get_library_path()))
    library.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, os.fsencode(loader.get_data_path()), 0)
    if rate <= 0:
        raise InputError(f"espeak-ng cannot start with its data in {loader.get_data_path()}")
    return library, int(rate)


def _choose(library: Any, voice: str) -> None:
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise InputError(f"espeak-ng has no voice {voice!r}")


def _ipa_all(lines: list[Line]) -> list[str]:
    library, _ = _start()
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_TextToPhonemes.argtypes = [
        ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_int,
    ]  # fmt: skip
    found = []
    for line in lines:
        _choose(library, line.voice)
        pieces = []
        # espeak-ng drops punctuation: it sees what stands between the marks.
        for words, mark in re.findall(r"([^,.;:!?]*)([,.;:!?]*)", line.text):
            rest = ctypes.c_char_p(words.encode())
            clauses = []
            while rest.value:
                said = library.espeak_TextToPhonemes(ctypes.byref(rest), UTF8, IPA)
                clauses.append(said.decode().strip())
            pieces.append(" ".join(clauses) + mark)
        found.append(" ".join(piece for piece in pieces if piece))
    library.espeak_Terminate()
    return found


def _speak_all(lines: list[Line]) -> list[Said]:
    library, rate = _start()
    library.espeak_Synth.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_uint,
        ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    sound: list[NDArray[np.int16]] = []
    starts: list[float] = []

    def hear(samples: Any, count: int, events: Any) -> int:
        if samples and count:
            sound.append(np.ctypeslib.as_array(samples, (count,)).copy())
        place = 0
        while events[place].type:
            if events[place].type == WORD_EVENT:
                starts.append(events[place].audio_position / 1000)
            place += 1
        return 0

    callback = _CALLBACK(hear)  # kept by name: espeak-ng does not own it
    library.espeak_SetSynthCallback(callback)
    said = []
    known = {file.name for file in variants()}
    for line in lines:
        sound.clear()
        starts.clear()
        # espeak-ng itself says nothing about an unknown variant and speaks with another voice.
        if (variant := line.voice.partition("+")[2]) and variant not in known:
            raise InputError(f"espeak-ng has no voice variant {variant!r}")
        _choose(library, line.voice)
        library.espeak_SetParameter(RATE_PARAMETER, line.rate, 0)
        library.espeak_SetParameter(PITCH_PARAMETER, line.pitch, 0)
        library.espeak_ng_SetRandSeed(ctypes.c_long(0))  # else seeded by the clock
        text = line.text.encode()
        library.espeak_Synth(text, len(text) + 1, 0, BY_CHARACTER, 0, UTF8, None, None)
        library.espeak_Synchronize()
        if not sound:
            raise InputError(f"espeak-ng said nothing for {line.text!r}")
        samples = np.concatenate(sound).astype(np.float32) / np.float32(32768)
        said.append(Said(samples, rate, tuple(starts)))
    library.espeak_Terminate()
    return said


def variants() -> list[Path]:
    """The files of all voice variants espeak-ng brings."""
    loader: Any = require("espeakng_loader", extra="demo")
    return sorted((Path(loader.get_data_path()) / "voices" / "!v").iterdir())
