"""One recogniser, from its speech to what it hears: the work of one process, kept in the store."""

import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from voxrisk.corpus import Utterance
from voxrisk.corpus.audio import audio_seconds
from voxrisk.files.atomic import write_text
from voxrisk.language import LanguageModel
from voxrisk.shards import one_thread
from voxrisk.store import Store
from voxrisk.utility.asr.beam import SPACE, Search, best_text
from voxrisk.utility.asr.frames import (
    encode_rows,
    has_frames,
    kind_of,
    read_frames,
    remove_frames,
    write_frames,
)
from voxrisk.utility.asr.recipes import Recipe
from voxrisk.utility.asr.table import Heard
from voxrisk.utility.text import said

if TYPE_CHECKING:
    from voxrisk.utility.asr.ctc import Network

# Raise a number when the same input gives something else.
VERSIONS = {"recogniser": 1, "recognised": 1}


@dataclass(frozen=True, slots=True)
class Job:
    """What a recogniser learns from.

    Attributes:
        condition: ``"clear"``, ``"anonymized"``.
        duration: δ; None: whole utterances.
        rows: The pieces.
        digest: Hash of all of them.
    """

    condition: str
    duration: float | None
    rows: tuple[Utterance, ...]
    digest: str

    def __str__(self) -> str:
        return describe(self.condition, self.duration)


@dataclass(frozen=True, slots=True)
class Setting:
    """What all recognisers of a table have in common.

    Attributes:
        store: Folder of the store.
        recipe: How they are trained.
        alphabet: What they spell with; the blank first.
        language: What they spell.
        search: How they are decoded.
        load_model: Gives the language model, or None.
        tests: Condition → ids of the test utterances, and the file of their frames.
        seed: Of weights, order and places.
        device: Where they are trained.
    """

    store: Path
    recipe: Recipe
    alphabet: tuple[str, ...]
    language: str
    search: Search
    load_model: Callable[[], LanguageModel] | None
    tests: Mapping[str, tuple[tuple[str, ...], Path]]
    seed: int
    device: str


def describe(condition: str, duration: float | None) -> str:
    """Training speech, for people."""
    return f"{condition} speech, {'whole' if duration is None else f'{duration:g} s'}"


def seconds_of(row: Utterance) -> float:
    """How long a piece is, by its table where that says it."""
    if row.start is not None and row.end is not None:
        return row.end - row.start
    return row.duration if row.duration is not None else audio_seconds(row)


def alphabet_of(rows: Iterable[Utterance], language: str) -> tuple[str, ...]:
    """The blank, the space, and every other character of the transcripts."""
    letters = {c for row in rows for c in said(str(row.text), language=language)}
    return ("", SPACE, *sorted(letters - {SPACE}))


def learn_and_hear(setting: Setting, job: Job) -> list[Heard]:
    """Train one recogniser and let it hear every test; each is an entry of the store."""
    from voxrisk.utility.asr import ctc

    store = Store(setting.store)
    kind = kind_of(setting.recipe.frames)
    inputs = {
        "training": job.digest,
        "recipe": asdict(setting.recipe),
        "frames": kind.identity,
        "alphabet": setting.alphabet,
        "language": setting.language,
        "seed": setting.seed,
    }
    make = functools.partial(_train, setting, job)
    folder = store.entry(
        "recogniser", inputs, make, label=f"of {job}", version=VERSIONS["recogniser"]
    )
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    network = ctc.load(folder / "network.pt", setting.recipe, kind.dimension, len(setting.alphabet))
    model = setting.load_model() if setting.load_model else None
    decoding = {"model": model.identity if model else None, "search": asdict(setting.search)}
    heard = []
    for condition, (ids, frames) in setting.tests.items():
        place = store.entry(
            "recognised",
            {**inputs, **decoding, "test": frames.parent.name},
            functools.partial(_hear, setting, network, model, ids, frames),
            label=f"{condition} speech after {job}",
            version=VERSIONS["recognised"],
        )
        texts = json.loads((place / "heard.json").read_text(encoding="utf-8"))
        heard.append(Heard(job.duration, job.condition, condition, texts, **facts))
    return heard


def _train(setting: Setting, job: Job, folder: Path) -> None:
    from voxrisk.utility.asr import ctc

    recipe, began = setting.recipe, time.monotonic()
    frames = folder / "frames.f16"
    if not has_frames(frames):  # a killed run may have left them whole
        write_frames(frames, encode_rows(job.rows, recipe.frames, scatter=setting.seed))
    place = {letter: i for i, letter in enumerate(setting.alphabet)}
    texts = [said(str(row.text), language=setting.language) for row in job.rows]
    parts = read_frames(frames, recipe.frames)
    with one_thread():
        network, losses = ctc.train(
            parts,
            [[place[c] for c in text] for text in texts],
            recipe,
            characters=len(setting.alphabet),
            rate=kind_of(recipe.frames).rate,
            seed=setting.seed,
            device=setting.device,
            label=f"training on {job}",
        )
    ctc.save(folder / "network.pt", network)
    write_text(folder / "losses.json", json.dumps([round(x, 5) for x in losses]) + "\n")
    facts = {
        "pieces": len(parts),
        "hours": round(sum(map(seconds_of, job.rows)) / 3600, 4),
        "steps": recipe.steps,
        "seconds": round(time.monotonic() - began, 1),
    }
    write_text(folder / "facts.json", json.dumps(facts, indent=1) + "\n")
    del parts
    remove_frames(frames)


def _hear(
    setting: Setting,
    network: "Network",
    model: LanguageModel | None,
    ids: tuple[str, ...],
    frames: Path,
    folder: Path,
) -> None:
    from voxrisk.utility.asr import ctc

    with one_thread():
        texts = [
            best_text(
                ctc.log_probs(network, part), setting.alphabet, model=model, search=setting.search
            )
            for part in read_frames(frames, setting.recipe.frames)
        ]
    heard = dict(zip(ids, texts, strict=True))
    write_text(folder / "heard.json", json.dumps(heard, indent=0) + "\n")
