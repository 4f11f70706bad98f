"""A demo corpus made on the spot: many synthetic voices that say different sentences.

Three engines make the voices. ``espeak`` needs no download: the 40 variants of espeak-ng that a
speaker encoder tells apart best, robots and whispers left out; gender is given where espeak-ng
names it. ``kokoro`` is slower and sounds like people: 28 neural voices, from weights of 340 MB that
the model store fetches. ``recorded`` is what these said, as it comes with the package: the voices
of ``voxrisk demo``. docs/corpora.md has the figures.

Each voice speaks in two sessions, which differ in speaking rate (and pitch with espeak), and never
says a sentence twice. The corpus is for trying things out: the voices are synthetic, the column
``synthetic`` says so, and no figure measured on them is a figure about people.
"""

import hashlib
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import espeak, kokoro, recorded
from voxrisk.corpus.audio import RATE, write_audio
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.corpus.table import Utterance, read_gender, write_corpus
from voxrisk.types import InputError, require

LEVEL_DB = -26.0
USUAL = 6  # sentences of a voice in a session
# Most distinct first, so that fewer voices are the easier corpus.
VOICES = (
    "f2", "Jacky", "travis", "zac", "caleb", "Lee", "steph", "grandma", "kaukovalta", "quincy",
    "m1", "edward", "gustave", "shelby", "ian", "Andrea", "Hugo", "anika", "Alicia", "AnxiousAndy",
    "Marco", "belinda", "Andy", "david", "marcelo", "Gene", "iven4", "antonio", "announcer", "f1",
    "ed", "norbert", "Nguyen", "boris", "Reed", "victor", "aunty", "m2", "sandro", "robert",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Planned:
    """One utterance to be made."""

    name: str
    voice: str
    session: str
    text: str


Sound = tuple[NDArray[np.float32], int]  # samples and their rate


def _say_espeak(plan: Sequence[_Planned]) -> Iterator[Sound]:
    sessions = ENGINES["espeak"].sessions
    lines = [espeak.Line(p.text, f"en-us+{p.voice}", *sessions[p.session]) for p in plan]
    return ((said.samples, said.rate) for said in espeak.speak_all(lines))


def _say_kokoro(plan: Sequence[_Planned]) -> Iterator[Sound]:
    sessions = ENGINES["kokoro"].sessions
    lines = [kokoro.Line(p.text, p.voice, *sessions[p.session]) for p in plan]
    return ((samples, kokoro.KOKORO_RATE) for samples in kokoro.speak_all(lines))


def _say_recorded(plan: Sequence[_Planned]) -> Iterator[Sound]:
    return recorded.read_all([p.name for p in plan])


def _kokoro_genders() -> dict[str, str | None]:
    return {voice: kokoro.gender(voice) for voice in kokoro.VOICES}


def _espeak_genders() -> dict[str, str | None]:
    """Voice → gender, where espeak-ng's own file of the voice names one."""
    genders = {}
    for file in espeak.variants():
        said = re.search(r"^gender\s+(\w+)", file.read_text("utf-8", "replace"), re.M | re.I)
        genders[file.name] = read_gender(said[1], str(file)) if said else None
    return genders


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to make voices.

    Attributes:
        synthetic: What the column of that name says.
        voices: Its voices, most distinct first.
        sessions: Session → how it differs: words per minute and pitch, or speed.
        genders: Gives voice → gender.
        say: Gives the sound of each planned utterance, in order.
        version: What the sound depends on besides this module.
        recorded: How many sentences a voice says in a session, where it cannot say others.
    """

    synthetic: str
    voices: tuple[str, ...]
    sessions: Mapping[str, tuple[Any, ...]]
    genders: Callable[[], Mapping[str, str | None]]
    say: Callable[[Sequence[_Planned]], Iterable[Sound]]
    version: Callable[[], str]
    recorded: int | None = None


ENGINES = {
    "espeak": Engine(
        "espeak-ng",
        VOICES,
        {"1": (165, 50), "2": (148, 55)},
        _espeak_genders,
        _say_espeak,
        espeak.version,
    ),
    "kokoro": Engine(
        "kokoro",
        kokoro.VOICES,
        {"1": (1.0,), "2": (0.9,)},
        _kokoro_genders,
        _say_kokoro,
        kokoro.version,
    ),
    "recorded": Engine(
        "kokoro",
        kokoro.VOICES,
        {"1": (), "2": ()},
        _kokoro_genders,
        _say_recorded,
        recorded.version,
        recorded.SENTENCES,
    ),
}


def demo_corpus(
    *, engine: str = "espeak", voices: int | None = None, sentences: int | None = None
) -> Path:
    """The folder of the demo corpus in the cache, made on first use."""
    from voxrisk.models import cache_folder

    chosen = _engine(engine)
    count = len(chosen.voices) if voices is None else voices
    sentences = sentences or chosen.recorded or USUAL
    recipe = repr((chosen.voices, chosen.sessions, SENTENCES, LEVEL_DB, RATE)).encode()
    mark = hashlib.blake2b(recipe, digest_size=4).hexdigest()
    name = f"{engine}-{chosen.version()}-{count}x{sentences}-{mark}"
    folder = cache_folder() / "demo" / name
    if not (folder / "manifest.csv").is_file():
        # Built under another name: a killed or a second process never shows half a corpus.
        part = folder.with_name(f".{name}.{uuid.uuid4().hex}.part")
        try:
            make_demo(part, engine=engine, voices=count, sentences=sentences)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def make_demo(
    folder: Path | str,
    *,
    engine: str = "espeak",
    voices: int | None = None,
    sentences: int | None = None,
) -> list[Utterance]:
    """Write the demo corpus to ``folder``: the same bytes with the same engine.

    Args:
        folder: Where ``manifest.csv`` and ``audio/`` go.
        engine: ``"espeak"``, ``"kokoro"`` or ``"recorded"``.
        voices: How many voices; all of the engine's unless given.
        sentences: How many sentences each voice says in each of its two sessions; 6 unless given,
            and as many as there are of the recorded ones.
    """
    folder = Path(folder)
    chosen = _engine(engine)
    count = len(chosen.voices) if voices is None else voices
    plan = _plan(chosen, count, sentences or chosen.recorded or USUAL)
    resample = require("soxr", extra="audio").resample
    genders = chosen.genders()
    rows = []
    for planned, (sound, rate) in zip(plan, chosen.say(plan), strict=True):
        samples = level(resample(sound, rate, RATE, quality="HQ"))
        speaker = planned.voice.lower()
        path = folder / "audio" / speaker / f"{planned.name}.flac"
        write_audio(path, samples, rate=RATE)
        rows.append(
            Utterance(
                utterance=planned.name,
                path=path,
                speaker=speaker,
                gender=genders[planned.voice],
                text=planned.text,
                session=planned.session,
                language="en",
                duration=round(len(samples) / RATE, 4),
                extra={"synthetic": chosen.synthetic},
            )
        )
    write_corpus(folder / "manifest.csv", rows)
    return rows


def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise InputError(f"no engine {name!r} for the demo corpus; known are {', '.join(ENGINES)}")
    return ENGINES[name]


def _plan(engine: Engine, voices: int, sentences: int) -> list[_Planned]:
    """Who says what: every voice its own sentences, none of them twice."""
    if not 2 <= voices <= len(engine.voices):
        raise InputError(f"the demo corpus has 2 to {len(engine.voices)} voices, not {voices}")
    most = len(SENTENCES) // len(engine.sessions)
    if engine.recorded not in (None, sentences):
        raise InputError(
            f"the recorded voices say {engine.recorded} sentences in a session, not {sentences}; "
            "the engines espeak and kokoro say others"
        )
    if not 1 <= sentences <= most:
        raise InputError(f"a voice can say 1 to {most} sentences in a session, not {sentences}")
    plan = []
    for voice in engine.voices[:voices]:
        random = np.random.default_rng(list(voice.encode()))
        order = random.permutation(len(SENTENCES)).tolist()
        for session in engine.sessions:
            for number in range(sentences):
                name = f"{voice.lower()}-{session}-{number:02d}"
                plan.append(_Planned(name, voice, session, SENTENCES[order.pop()]))
    return plan


def level(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring speech to −26 dB re full scale, or as near as its peaks allow."""
    power = float(np.square(samples, dtype=np.float64).mean())
    gain = 10 ** (LEVEL_DB / 20) / np.sqrt(power)
    scale = np.float32(min(gain, 0.99 / float(np.abs(samples).max())))
    return np.asarray(samples * scale, dtype=np.float32)
