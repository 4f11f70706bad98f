"""Can the sound of slices be put in order again (Section 5.2 of the paper)?

Several draws of some utterances: all their slices lie on the table, and for each one that has a
next every attacker sorts all others. The draws are of utterances that enrol, all of whose slices
have a speaker vector already; where these are too few, of all utterances.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.fusion import fuse
from voxrisk.attack.successors import (
    LAST,
    Scorer,
    Slices,
    rank_estimates,
    successor_ranks,
)
from voxrisk.attack.text_attack import whole_utterances
from voxrisk.corpus import Utterance, read_audio
from voxrisk.files.atomic import write_text
from voxrisk.measure.ranking import RANK_FIGURES, Ranks
from voxrisk.notices import notice
from voxrisk.pipeline.recogniser import embed_stage
from voxrisk.pipeline.sides import Sides
from voxrisk.pipeline.slicing.accuracy import Tally, accuracies
from voxrisk.pipeline.slicing.cuts import Pieces, source_of
from voxrisk.pipeline.slicing.lessons import successor_net, training_speech
from voxrisk.pipeline.slicing.material import Found, Material, slices_of
from voxrisk.pipeline.slicing.privacy import pieces_sides, study_sides, used_rows
from voxrisk.pipeline.slicing.text import word_identity, word_scorers
from voxrisk.pipeline.stages import digest_corpus
from voxrisk.slicing_results import RestoredRow, SuccessorRow
from voxrisk.types import Estimate, InputError, MissingExtraError

NETWORK, VOICE = "network on joined slices", "likeness of the voice"
SOUND, ALL = "voice and cut together", "text, voice and cut together"
FEWEST = 12  # slices on the table: the best tenth must be somebody


class Sorted(msgspec.Struct):
    """What one attacker did in one draw: the rank of each right answer, and classes of pairs."""

    rank: list[float]
    candidates: int
    speaker: list[str]
    tally: Tally | None = None
    restored: dict[str, dict[str, Estimate]] = {}


def reassemble(material: Material, found: Found) -> None:
    """Every attacker on the sound of slices of every length and condition."""
    nets = _nets(material, found)
    for condition in material.conditions:
        for duration in material.chosen.durations:
            pieces = material.sliced.get((condition, duration))
            if pieces is None:
                continue
            draws = draw_utterances(material, pieces)
            heard = _heard(material, pieces, {name for names in draws for name in names})
            done = [_draw(material, pieces, names, heard, nets.get(condition)) for names in draws]
            done = [one for one in done if one]
            if not done:
                found.note(notice("slicing_no_pairs", seconds=duration))
                continue
            found.successors += _rows(material, condition, duration, done)
            found.restored += [
                RestoredRow(
                    condition=condition,
                    attacker=name,
                    duration=duration,
                    pool=f"{pool}, one draw",
                    figures=figures,
                )
                for name, own in done[0].items()
                for pool, figures in own.restored.items()
            ]
    if not any(row.draws for row in found.successors):
        found.missing["speech"] = "no utterance gives two slices"


def _nets(material: Material, found: Found) -> dict[str, Path]:
    """Condition → what learned from other people's slices of that kind."""
    speech = training_speech(material)
    nets = {}
    for condition in material.conditions:
        if condition not in speech:
            continue
        try:
            nets[condition] = successor_net(material, condition, speech)
        except (InputError, MissingExtraError) as error:
            found.note(
                notice("attacker_failed", attacker=NETWORK, detail=str(error),
                       why="its training was refused")
            )  # fmt: skip
    if not nets:
        found.note(notice("slicing_untrained", way_out="give speech of other people with --train"))
    return nets


def draw_utterances(material: Material, pieces: Pieces) -> list[list[str]]:
    """Several draws of utterances; one of all of them, where there are no more.

    They are drawn from those that enrol. Where these are too few, from those that are tried as
    well, and then from all: slices of the first have a speaker vector already.
    """
    chosen = material.chosen
    there = {source_of(row) for row in pieces.rows}
    sides = sides_or_none(material)
    pools = [there] if sides is None else [
        there & {*sides.enroll}, there & {*sides.enroll, *sides.trial}, there
    ]  # fmt: skip
    enough = (2 * chosen.drawn, chosen.drawn + 1, 0)[-len(pools) :]
    pool = sorted(next(own for own, least in zip(pools, enough, strict=True) if len(own) >= least))
    if len(pool) <= chosen.drawn:
        return [pool]
    rng = np.random.default_rng([chosen.seed, 5])
    return [
        [pool[i] for i in np.sort(rng.choice(len(pool), chosen.drawn, replace=False))]
        for _ in range(chosen.draws)
    ]


def sides_or_none(material: Material) -> Sides | None:
    """Who enrols and who is tried; None where nobody can be both."""
    if len(material.speech.people) < 2:
        return None
    try:
        return study_sides(material)
    except InputError:
        return None  # said where privacy is measured


def _draw(
    material: Material,
    pieces: Pieces,
    names: Sequence[str],
    heard: Sequence[Utterance],
    net: Path | None,
) -> dict[str, Sorted]:
    """All attackers on the slices of some utterances; empty where there is no order to restore."""
    stages, chosen = material.stages, material.chosen
    wanted = set(names)
    rows = [row for row in pieces.rows if source_of(row) in wanted]
    slices = slices_of(Pieces(pieces.condition, pieces.cut, pieces.duration, tuple(rows), ""))
    if len(rows) < FEWEST or (slices.successor == LAST).all():
        return {}
    inputs = {
        "slices": digest_corpus(rows, stages.folder / "hashes.json"),
        "orders": slices.place,
        "cut": chosen.cut,
        "net": net.name if net else None,
        "encoder": chosen.encoder,
        "text": word_identity(chosen, slices),
        "seed": chosen.seed,
    }

    def make(folder: Path) -> None:
        vectors = _vectors(material, pieces, rows, heard)
        done = attack_slices(
            [read_audio(row) for row in rows], slices,
            vectors=vectors, net=net, clean=chosen.cut == "clean",
            text=word_scorers(chosen, slices),
            seed=chosen.seed, confidence=chosen.confidence,
        )  # fmt: skip
        write_text(folder / "sorted.json", msgspec.json.encode(done).decode())

    label = f"{pieces.condition} slices of {pieces.duration:g} s, {len(names)} utterances"
    folder = stages.run("follow", inputs, make, label=label, speech=rows)
    return msgspec.json.decode((folder / "sorted.json").read_bytes(), type=dict[str, Sorted])


def _heard(material: Material, pieces: Pieces, names: AbstractSet[str]) -> list[Utterance]:
    """The slices whose vectors are wanted: of all draws at once, or those of privacy, if enough."""
    chosen, sides = material.chosen, sides_or_none(material)
    drawn = [row for row in pieces.rows if source_of(row) in names]
    if chosen.privacy and sides is not None:
        mine = pieces_sides(sides, pieces, tried=chosen.tried, seed=chosen.seed)
        if mine and {row.utterance for row in drawn} <= {*mine.enroll, *mine.trial}:
            return used_rows(pieces, mine, material.stages)[0]
    return drawn


def _vectors(
    material: Material, pieces: Pieces, rows: Sequence[Utterance], heard: Sequence[Utterance]
) -> NDArray[np.floating[Any]]:
    """Speaker vectors of some slices of those that are heard."""
    stages = material.stages
    digest = digest_corpus(heard, stages.folder / "hashes.json")
    label = f"{pieces.condition} speech sliced to {pieces.duration:g} s"
    found = embed_stage(heard, digest, material.chosen.encoder, stages, label)
    place = {name: i for i, name in enumerate(found.utterance.tolist())}
    return found.vectors[[place[row.utterance] for row in rows]]


def attack_slices(
    waves: Sequence[NDArray[np.float32]],
    slices: Slices,
    *,
    vectors: NDArray[np.floating[Any]],
    net: Path | None,
    clean: bool,
    text: Mapping[str, Scorer],
    seed: int,
    confidence: float = 0.95,
) -> dict[str, Sorted]:
    """Every attacker by name: each cue alone, the network, and all of them weighed together."""
    from voxrisk.attack.cut_cues import CUES, by_voice

    scorers: dict[str, Scorer] = {
        name: table(cue(waves, clean=clean)) for name, cue in CUES.items()
    }
    scorers[VOICE] = table(by_voice(vectors))
    odds = None
    if net is not None:
        from voxrisk.attack.successor_net import mel_frames, score_pairs
        from voxrisk.attack.successor_training import load_successor

        odds = score_pairs(load_successor(net), [mel_frames(wave) for wave in waves])
        scorers[NETWORK] = table(odds)
    together = _together(scorers, SOUND, slices, seed)
    if text:
        together |= _together({**scorers, **text}, ALL, slices, seed)
    scorers |= {f"words, {name}": scorer for name, scorer in text.items()} | together
    done = {name: _sorted(scorer, slices) for name, scorer in scorers.items()}
    for name in together:
        whole = whole_utterances(scorers[name], slices, confidence=confidence, seed=seed)
        done[name].restored = {pool: dict(figures) for pool, figures in whole.items()}
    if odds is not None:
        done[NETWORK].tally = Tally.of(odds > 0, slices)
    return done


def _together(
    alone: Mapping[str, Scorer], name: str, slices: Slices, seed: int
) -> dict[str, Scorer]:
    try:
        return {name: fuse(list(alone.values()), slices.successor, slices.speaker, seed=seed)}
    except InputError:  # fewer than two people have slices in a row
        return {}


def table(scores: NDArray[np.floating[Any]]) -> Scorer:
    """A scorer that looks scores ``(n, n)`` up."""
    held = scores.astype(np.float32)
    np.fill_diagonal(held, -np.inf)
    return lambda block: held[block]


def _sorted(scorer: Scorer, slices: Slices) -> Sorted:
    ranks = successor_ranks(scorer, slices.successor)
    speaker = [slices.speaker[i] for i in ranks.query]
    return Sorted(ranks.rank.tolist(), int(ranks.candidates[0]), speaker)


USES = {VOICE: "voice", NETWORK: "speech", SOUND: "speech", ALL: "all"}


def _rows(
    material: Material, condition: str, duration: float, done: Sequence[Mapping[str, Sorted]]
) -> list[SuccessorRow]:
    """One row for each attacker: all draws together, and how far they differ."""
    chosen = material.chosen
    rows = []
    for name in done[0]:
        mine = [one[name] for one in done if name in one]
        speaker = np.concatenate([one.speaker for one in mine])
        figures = rank_estimates(pooled(mine), speaker, confidence=chosen.confidence)
        rows.append(
            SuccessorRow(
                condition=condition,
                attacker=name,
                uses=USES.get(name, "text" if name.startswith("words") else "cut"),
                duration=duration,
                cut=chosen.cut,
                slices=float(np.mean([one.candidates + 1 for one in mine])),
                draws=len(mine),
                figures=figures,
                spread=_spread(mine, list(figures)),
                accuracy=accuracies([m.tally for m in mine if m.tally], chosen.confidence),
            )
        )
    return rows


def pooled(draws: Sequence[Sorted]) -> Ranks:
    """The ranks of several draws as one set."""
    rank = np.concatenate([one.rank for one in draws])
    candidates = np.concatenate([np.full(len(one.rank), one.candidates) for one in draws])
    return Ranks(np.arange(rank.size), rank, candidates.astype(np.int64))


def _spread(draws: Sequence[Sorted], names: Sequence[str]) -> dict[str, float]:
    """Standard deviation of each figure over the draws; none of one draw."""
    if len(draws) < 2:
        return {}
    value: dict[str, Callable[[Ranks], float]] = {n: RANK_FIGURES[n].value for n in names}
    return {n: float(np.std([value[n](pooled([one])) for one in draws], ddof=1)) for n in names}
