"""A demo corpus made on the spot: many synthetic voices, different sentences, no download.

The voices are the 40 variants of espeak-ng that a speaker encoder tells apart best, robots and
whispers left out (docs/corpora.md has the figures). Gender is given where espeak-ng names it. Each
speaks in two sessions, which differ in speaking rate and pitch, and never says a sentence twice.
The corpus is for trying things out: the voices are synthetic, the column ``synthetic`` says so, and
no figure measured on them is a figure about people.
"""

import hashlib
import re
import shutil
import uuid
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import write_audio
from voxrisk.corpus.espeak import Line, speak_all, variants, version
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.corpus.table import Utterance, read_gender, write_corpus
from voxrisk.types import InputError, require

RATE = 16_000
LEVEL_DB = -26.0
# Most distinct first, so that fewer voices are the easier corpus.
VOICES = (
    "f2", "Jacky", "travis", "zac", "caleb", "Lee", "steph", "grandma", "kaukovalta", "quincy",
    "m1", "edward", "gustave", "shelby", "ian", "Andrea", "Hugo", "anika", "Alicia", "AnxiousAndy",
    "Marco", "belinda", "Andy", "david", "marcelo", "Gene", "iven4", "antonio", "announcer", "f1",
    "ed", "norbert", "Nguyen", "boris", "Reed", "victor", "aunty", "m2", "sandro", "robert",
)  # fmt: skip
SESSIONS = {"1": (165, 50), "2": (148, 55)}  # words per minute, pitch


def demo_corpus(*, voices: int = len(VOICES), sentences: int = 6) -> Path:
    """The folder of the demo corpus in the cache, made on first use."""
    from voxrisk.models import cache_folder

    recipe = repr((VOICES, SESSIONS, SENTENCES, LEVEL_DB, RATE)).encode()
    mark = hashlib.blake2b(recipe, digest_size=4).hexdigest()
    name = f"espeak-{version()}-{voices}x{sentences}-{mark}"
    folder = cache_folder() / "demo" / name
    if not (folder / "manifest.csv").is_file():
        # Built under another name: a killed or a second process never shows half a corpus.
        part = folder.with_name(f".{name}.{uuid.uuid4().hex}.part")
        try:
            make_demo(part, voices=voices, sentences=sentences)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def make_demo(
    folder: Path | str, *, voices: int = len(VOICES), sentences: int = 6
) -> list[Utterance]:
    """Write the demo corpus to ``folder``: the same bytes with the same espeak-ng.

    Args:
        folder: Where ``manifest.csv`` and ``audio/`` go.
        voices: How many voices.
        sentences: How many sentences each voice says in each of its two sessions.
    """
    folder = Path(folder)
    if not 2 <= voices <= len(VOICES):
        raise InputError(f"the demo corpus has 2 to {len(VOICES)} voices, not {voices}")
    most = len(SENTENCES) // len(SESSIONS)
    if not 1 <= sentences <= most:
        raise InputError(f"a voice can say 1 to {most} sentences in a session, not {sentences}")
    genders = _genders()
    plan = []
    for voice in VOICES[:voices]:
        random = np.random.default_rng(list(voice.encode()))
        order = random.permutation(len(SENTENCES)).tolist()
        for session, (rate, pitch) in SESSIONS.items():
            for number in range(sentences):
                text = SENTENCES[order.pop()]
                name = f"{voice.lower()}-{session}-{number:02d}"
                plan.append((name, voice, session, Line(text, f"en-us+{voice}", rate, pitch)))
    rows = []
    said = speak_all([line for *_, line in plan])
    resample = require("soxr", extra="audio").resample
    for (name, voice, session, line), sound in zip(plan, said, strict=True):
        samples = level(resample(sound.samples, sound.rate, RATE, quality="HQ"))
        path = folder / "audio" / voice.lower() / f"{name}.flac"
        write_audio(path, samples, rate=RATE)
        rows.append(
            Utterance(
                utterance=name,
                path=path,
                speaker=voice.lower(),
                gender=genders[voice],
                text=line.text,
                session=session,
                language="en",
                duration=round(len(samples) / RATE, 4),
                extra={"synthetic": "espeak-ng"},
            )
        )
    write_corpus(folder / "manifest.csv", rows)
    return rows


def level(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring speech to −26 dB re full scale, or as near as its peaks allow."""
    power = float(np.square(samples, dtype=np.float64).mean())
    gain = 10 ** (LEVEL_DB / 20) / np.sqrt(power)
    scale = np.float32(min(gain, 0.99 / float(np.abs(samples).max())))
    return np.asarray(samples * scale, dtype=np.float32)


def _genders() -> dict[str, str | None]:
    """Voice → gender, where espeak-ng's own file of the voice names one."""
    genders = {}
    for file in variants():
        said = re.search(r"^gender\s+(\w+)", file.read_text("utf-8", "replace"), re.M | re.I)
        genders[file.name] = read_gender(said[1], str(file)) if said else None
    return genders
