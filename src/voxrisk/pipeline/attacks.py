"""Run every attacker the inputs allow: score, and count heads in the crowd."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk.attack.knowledge import ATTACKERS, Knowledge, attacker
from voxrisk.corpus import Utterance
from voxrisk.corpus.splits import by_session
from voxrisk.corpus.trials import make_trials
from voxrisk.files.atomic import atomic, write_text
from voxrisk.files.embeddings import write_embeddings
from voxrisk.files.scores import join, read_scores, read_trials
from voxrisk.measure import Trials
from voxrisk.measure.curves import Population, Protocol
from voxrisk.measure.population import population
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.recognisers import (
    embed_stage,
    train_adapter_stage,
    train_stage,
    training_words,
)
from voxrisk.pipeline.speech import Speech, Warned, anonymize_stage
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.types import Embeddings, InputError


@dataclass(frozen=True, slots=True)
class Sides:
    """Who enrols with what, and what is tried: utterance ids, and the list of trials."""

    enroll: tuple[str, ...]
    trial: tuple[str, ...]
    by: str
    left_out: Mapping[str, str]
    same_gender: bool
    rows: Mapping[str, Utterance]


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """What one attacker found."""

    knowledge: Knowledge
    trials: Trials
    population: Population | None
    warnings: tuple[Warned, ...]
    training: dict[str, Any] | None


def make_sides(rows: Sequence[Utterance], *, seed: int) -> Sides:
    """Split enrolment and trial, by session where sessions are known."""
    split = by_session(rows, seed=seed)
    known = all(row.gender for row in rows)
    people = {row.speaker: row.gender for row in rows}
    each = [sum(g == gender for g in people.values()) for gender in set(people.values())]
    return Sides(
        tuple(row.utterance for row in split.sides["enroll"]),
        tuple(row.utterance for row in split.sides["trial"]),
        split.by,
        dict(split.left_out),
        known and min(each) > 1,
        {row.utterance: row for row in rows},
    )


def allowed_attackers(chosen: Evaluation, speech: Speech) -> list[Knowledge]:
    """The attackers the inputs allow, in order of knowledge."""
    targets = {row.extra.get("target") for row in speech.anonymized}
    # A pseudo-speaker of its own for each utterance is no class that could be unlearned.
    recorded = None not in targets and len(targets) <= min(64, len(speech.anonymized) / 4)
    names = ["original", "ignorant", "lazy-informed"]
    if chosen.train and chosen.similar:
        names.append("semi-informed")
    if chosen.train and chosen.anonymizer:
        names.append("informed")
        if recorded:
            names.append("informed + adversarial")
    if not chosen.attackers:
        return [attacker(name) for name in names]
    wanted = [attacker(name) for name in dict.fromkeys(("original", *chosen.attackers))]
    if impossible := [k.name for k in wanted if k.name not in names]:
        raise InputError(
            f"attacker {impossible[0]!r} cannot run on these inputs: informed attackers need an "
            "anonymizer and --train, the semi-informed one --similar too; possible now: "
            f"{', '.join(names)}"
        )
    return sorted(wanted, key=lambda k: list(ATTACKERS).index(k.name))


def run_attack(
    chosen: Evaluation,
    knowledge: Knowledge,
    speech: Speech,
    sides: Sides,
    stages: Stages,
    folder: Path,
) -> Attack:
    """Train (if needed), embed, score and measure one attacker; scores go to ``folder``."""
    memory = stages.folder / "hashes.json"
    encoder = chosen.encoder
    adapter, made = None, None
    if knowledge.trained and chosen.limits.adapter:
        adapter, made = train_adapter_stage(chosen, knowledge, stages, memory)
    elif knowledge.trained:
        made = train_stage(chosen, knowledge, stages, memory)
        encoder = str(made)
    kinds = {
        "original": (speech.original, speech.digest),
        "anonymized": (speech.anonymized, speech.anonymized_digest),
    }
    enrolls: str = knowledge.enrolls
    if enrolls == "anonymized" and chosen.draws_apart:
        enrolls = "enrolled"
        kinds[enrolls] = _anonymized_again(chosen, speech, sides, stages, memory)
    found = {
        kind: embed_stage(*kinds[kind], encoder, stages, f"{kind} speech, {knowledge.name}")
        for kind in dict.fromkeys((enrolls, knowledge.trial))
    }
    if adapter:
        found = {
            kind: replace(held, vectors=adapter.apply(held.vectors)) for kind, held in found.items()
        }
    enroll = _rows(found[enrolls], sides.enroll)
    trial = _rows(found[knowledge.trial], sides.trial)
    name = slug(knowledge.name)
    write_embeddings(folder.parent / "embeddings" / f"{name}-enroll.npz", enroll)
    write_embeddings(folder.parent / "embeddings" / f"{name}-trial.npz", trial)
    write_scores(folder, knowledge, enroll, trial, sides)
    scored, _ = join(
        read_scores(folder / f"scores-{name}.csv"),
        read_trials(folder / "trials.csv"),
    )
    crowd, warnings = count_heads(chosen, knowledge.name, enroll, trial)
    return Attack(knowledge, scored, crowd, tuple(warnings), training_words(made) if made else None)


def _anonymized_again(
    chosen: Evaluation, speech: Speech, sides: Sides, stages: Stages, memory: Path
) -> tuple[tuple[Utterance, ...], str]:
    """The enrolled speech as the attacker anonymizes it, and its digest.

    The attacker has the tool, not the draws: with one target for all speech of a person, the
    published version of the enrolled speech would give the target away.
    """
    enrolled = set(sides.enroll)
    rows = [row for row in speech.original if row.utterance in enrolled]
    digest = digest_corpus(rows, memory)
    made = anonymize_stage(chosen, rows, digest, stages, memory, purpose="enrolment")[0]
    return tuple(made), digest_corpus(made, memory)


def slug(name: str) -> str:
    """An attacker's name as it stands in file names."""
    return name.replace(" + ", "-").replace(" ", "-")


def _rows(embeddings: Embeddings, ids: Sequence[str]) -> Embeddings:
    place = {name: i for i, name in enumerate(embeddings.utterance.tolist())}
    order = np.array([place[name] for name in ids])
    return Embeddings(
        embeddings.utterance[order],
        embeddings.speaker[order],
        embeddings.vectors[order],
        embeddings.source,
    )


def write_scores(
    folder: Path, knowledge: Knowledge, enroll: Embeddings, trial: Embeddings, sides: Sides
) -> None:
    """Scores and trials in our plain form, so that ``voxrisk measure`` gives the same figures."""
    from voxrisk.attack.trials import score_trials

    models = {
        speaker: enroll.utterance[enroll.speaker == speaker].tolist()
        for speaker in np.unique(enroll.speaker).tolist()
    }
    rows = sides.rows
    listed = list(
        make_trials(
            [rows[u] for u in sides.enroll],
            [rows[u] for u in sides.trial],
            same_gender=sides.same_gender,
        )
    )
    scored = score_trials(trial, listed, models, enroll_embeddings=enroll)
    pairs = zip(scored.enroll, scored.trial, strict=True)
    _write_csv(
        folder / f"scores-{slug(knowledge.name)}.csv",
        ("enroll", "trial", "score"),
        ((e, t, repr(s)) for (e, t), s in zip(pairs, scored.score.tolist(), strict=True)),
    )
    _write_csv(
        folder / "trials.csv",
        ("enroll", "trial", "label", "enroll_speaker", "trial_speaker"),
        (
            (
                t.enroll,
                t.trial,
                "target" if t.target else "nontarget",
                t.enroll,
                rows[t.trial].speaker,
            )
            for t in listed
        ),
    )


def _write_csv(path: Path, header: Sequence[str], rows: Any) -> None:
    with atomic(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def count_heads(
    chosen: Evaluation, name: str, a: Embeddings, b: Embeddings
) -> tuple[Population | None, list[Warned]]:
    """Singling Out, Linkability and EER for each L that enough speakers have speech for."""
    speakers = np.unique(a.speaker).size
    spoken = np.unique(b.speaker, return_counts=True)[1]
    # Singling Out tests one conversation of L utterances and calibrates on another.
    lengths = [L for L in chosen.limits.lengths if (spoken >= 2 * L).sum() >= max(2, speakers / 2)]
    if not lengths:
        text = "Too few utterances of each speaker for Singling Out and Linkability in a crowd."
        return None, [Warned("serious", text)]
    sizes = sorted(
        {n for n in (5, 10, 20, *(100 * 2**k for k in range(20))) if n < speakers} | {speakers}
    )
    protocol = Protocol(
        lengths=tuple(lengths),
        sizes=tuple(sizes),
        trials=10,
        seed=chosen.seed,
        resamples=chosen.limits.resamples if speakers >= 5 else 0,
        confidence=chosen.confidence,
    )
    try:
        return population(enrolled=a, tested=b, attacker=name, protocol=protocol), []
    except InputError as error:
        return None, [Warned("serious", f"No figures for a crowd of speakers: {error}")]


def all_pairs(enroll: Embeddings, trial: Embeddings) -> Trials:
    """Every trial utterance against every enrolled speaker, for similarity matrices."""
    from voxrisk.measure import trials

    names = np.unique(enroll.speaker)
    models = np.stack([enroll.vectors[enroll.speaker == s].mean(axis=0) for s in names])
    left = models / np.linalg.norm(models, axis=1, keepdims=True)
    right = trial.vectors / np.linalg.norm(trial.vectors, axis=1, keepdims=True)
    score = (left.astype(np.float64) @ right.T.astype(np.float64)).ravel()
    who = np.repeat(names, trial.speaker.size)
    spoken = np.tile(trial.speaker, names.size)
    segment = np.tile(np.arange(trial.speaker.size), names.size)
    return trials(score, who, spoken, segment=segment)


def similarity_trials(
    chosen: Evaluation, speech: Speech, sides: Sides, stages: Stages
) -> dict[str, Trials]:
    """OO, OP and PP of the ready encoder."""
    rows = {
        "o": embed_stage(speech.original, speech.digest, chosen.encoder, stages,
                         "original speech"),
        "p": embed_stage(speech.anonymized, speech.anonymized_digest, chosen.encoder,
                         stages, "anonymized speech"),
    }  # fmt: skip
    return {
        f"{a}{b}": all_pairs(_rows(rows[a], sides.enroll), _rows(rows[b], sides.trial))
        for a, b in ("oo", "op", "pp")
    }


def write_sides(folder: Path, sides: Sides) -> None:
    """Write which utterances enrolled and which were tried."""
    plain = {"enroll": sides.enroll, "trial": sides.trial, "by": sides.by}
    write_text(folder / "sides.json", json.dumps(plain, indent=1) + "\n")
