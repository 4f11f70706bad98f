"""How well speakers are recognised in pieces of every length (Figure 3 of the paper).

Enrolment and trials are cut alike. The trials are those of ``voxrisk evaluate`` on whole
utterances: each trial utterance is replaced by its pieces, which are tried one by one, and each
enrolled utterance by its pieces, all of which enrol. A person with many slices is enrolled with the
mean of all their vectors, as a person with many utterances is.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.corpus.trials import Trial
from voxrisk.files.atomic import write_text
from voxrisk.journal import hash_of
from voxrisk.knowledge import Knowledge
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Effort
from voxrisk.pipeline.findings import crowd_of_attack, figures_of
from voxrisk.pipeline.official import choose_sides
from voxrisk.pipeline.recogniser import Recogniser
from voxrisk.pipeline.sides import Sides, chosen_rows, score_sides
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.cuts import Pieces
from voxrisk.pipeline.slicing.material import Material
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.slicing_results import PRIVACY, WHOLE, PrivacyRow
from voxrisk.types import Embeddings, Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """An attacker on one condition of speech: what it knows, and what it recognises with."""

    condition: str
    knowledge: Knowledge
    recogniser: Recogniser
    identity: str  # of everything that its vectors depend on, beside the speech


@dataclass(frozen=True, slots=True)
class _Draws:
    """What figures and intervals need; a single conversation length."""

    effort: str
    limits: Effort
    seed: int
    confidence: float


def study_sides(material: Material) -> Sides:
    """The enrolment and the trials of the study: those of ``evaluate``, or as many as asked for."""
    sides = choose_sides(material.evaluation, material.speech, material.stages)
    return bounded(sides, material.chosen.utterances, seed=material.chosen.seed)


def bounded(sides: Sides, most: int, *, seed: int = 0) -> Sides:
    """At most so many utterances of each enrolment and trial utterances of each speaker; 0: all.

    They are drawn at random; of fewer, all are among those of a larger number.
    """
    if not most:
        return sides
    people: dict[str, list[str]] = {}
    for name in sides.trial:
        people.setdefault(sides.rows[name].speaker, []).append(name)
    kept = {name for mine in people.values() for name in _some(mine, most, seed)}
    models = {name: _some(own, most, seed) for name, own in sides.models.items()}
    return replace(
        sides,
        enroll=tuple(dict.fromkeys(name for own in models.values() for name in own)),
        trial=tuple(name for name in sides.trial if name in kept),
        listed=tuple(trial for trial in sides.listed if trial.trial in kept),
        models=models,
        sets={},
    )


def _some(names: Sequence[str], most: int, seed: int) -> tuple[str, ...]:
    """So many of them, in their order."""
    kept = set(sorted(names, key=lambda name: hash_of(seed, name))[:most])
    return tuple(name for name in names if name in kept)


def pieces_sides(sides: Sides, pieces: Pieces, *, tried: int = 0, seed: int = 0) -> Sides | None:
    """The trials of whole utterances, on their pieces; None if no target trial is left.

    Args:
        sides: The trials of whole utterances.
        pieces: What the utterances were cut into.
        tried: Pieces of each trial utterance that are tried, drawn at random; 0: all.
        seed: Of that draw.
    """
    own = pieces.sources
    drawn = {u: _draw(u, found, tried, seed) for u, found in own.items()}
    models = {
        name: tuple(piece for u in utterances for piece in own.get(u, ()))
        for name, utterances in sides.models.items()
    }
    models = {name: found for name, found in models.items() if found}
    listed = tuple(
        Trial(trial.enroll, piece, trial.target)
        for trial in sides.listed
        if trial.enroll in models
        for piece in drawn.get(trial.trial, ())
    )
    if len({trial.target for trial in listed}) < 2:
        return None
    return replace(
        sides,
        enroll=tuple(dict.fromkeys(p for found in models.values() for p in found)),
        trial=tuple(dict.fromkeys(trial.trial for trial in listed)),
        rows={row.utterance: row for row in pieces.rows},
        listed=listed,
        models=models,
        sets={},
    )


def _draw(utterance: str, found: list[str], most: int, seed: int) -> list[str]:
    """At most so many pieces; the draw of an utterance depends on nothing but its name."""
    if not most or len(found) <= most:
        return found
    rng = np.random.default_rng([seed, zlib.crc32(utterance.encode())])
    return [found[i] for i in np.sort(rng.choice(len(found), most, replace=False))]


def measure_privacy(
    chosen: Slicing, listener: Listener, pieces: Pieces, sides: Sides, stages: Stages
) -> tuple[PrivacyRow | None, list[Notice]]:
    """The figures of one attacker on pieces of one length, kept once they are found."""
    mine = pieces_sides(sides, pieces, tried=chosen.tried, seed=chosen.seed)
    if mine is None:
        seconds = pieces.duration or 0.0
        return None, [notice("slicing_too_long", seconds=seconds, cut=pieces.cut)]
    label = _label(listener, pieces)
    rows, digest = used_rows(pieces, mine, stages)
    vectors = listener.recogniser.embed(rows, digest, stages, label)
    inputs = {
        "pieces": digest,
        "sides": _identity(sides),
        "listener": listener.identity,
        "draws": [chosen.effort, chosen.seed, chosen.confidence, chosen.limits.resamples],
    }

    def make(folder: Path) -> None:
        text = msgspec.json.encode(_figures(chosen, listener, mine, vectors))
        write_text(folder / "figures.json", text.decode())

    folder = stages.run("recognise", inputs, make, label=label)
    figures = msgspec.json.decode((folder / "figures.json").read_bytes(), type=dict[str, Estimate])
    tried = replace(pieces, rows=tuple(mine.rows[name] for name in mine.trial))
    seconds, spread = tried.lengths()
    row = PrivacyRow(
        condition=pieces.condition,
        attacker=listener.knowledge.name,
        cut=pieces.cut,
        duration=pieces.duration,
        seconds=seconds,
        spread=spread,
        pieces=len(tried.rows),
        figures=figures,
        colour=listener.knowledge.colour,
        mark=listener.knowledge.mark,
    )
    return row, []


def used_rows(pieces: Pieces, mine: Sides, stages: Stages) -> tuple[list[Utterance], str]:
    """The pieces that enrol or are tried, and their digest.

    Of whole utterances all: ``evaluate`` wants their vectors too.
    """
    if pieces.cut == WHOLE:
        return list(pieces.rows), pieces.digest
    used = {*mine.enroll, *mine.trial}
    rows = [row for row in pieces.rows if row.utterance in used]
    return rows, digest_corpus(rows, stages.folder / "hashes.json")


def _label(listener: Listener, pieces: Pieces) -> str:
    length = "" if pieces.duration is None else f" to {pieces.duration:g} s"
    return f"{listener.condition} speech {pieces.cut}{length}, {listener.knowledge.name}"


def _figures(
    chosen: Slicing, listener: Listener, mine: Sides, vectors: Embeddings
) -> Mapping[str, Estimate]:
    enroll, trial = chosen_rows(vectors, mine.enroll), chosen_rows(vectors, mine.trial)
    draws = _Draws(
        chosen.effort, replace(chosen.limits, lengths=(1,)), chosen.seed, chosen.confidence
    )
    scored = score_sides(mine, enroll, trial)
    found = dict(figures_of(draws, scored))
    crowd, _ = crowd_of_attack(draws, listener.knowledge.name, enroll, trial)
    if crowd is not None:
        curve = crowd.curve("linkability", 1)
        if curve:
            found["linkability"] = max(curve, key=lambda e: e.size)
    return {name: found[name] for name in PRIVACY if name in found}


def _identity(sides: Sides) -> str:
    plain = json.dumps([sorted(sides.models.items()), [(t.enroll, t.trial) for t in sides.listed]])
    return hashlib.sha256(plain.encode()).hexdigest()[:32]
