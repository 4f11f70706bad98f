"""The third criterion: what can be inferred about people, and what should survive.

Which columns are attributes, what attackers listen to and learn from, and what limits the answer;
the attacks themselves are in :mod:`voxrisk.pipeline.attribute_attacks`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from voxrisk.corpus import Utterance
from voxrisk.corpus.attributes import (
    FEWEST,
    Attribute,
    columns_of,
    known_value,
    labels_like,
    read_attribute,
)
from voxrisk.files.atomic import write_text
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.attribute_attacks import Features, enough_speakers, infer
from voxrisk.pipeline.confounds import doubts
from voxrisk.pipeline.evaluation import Evaluation, is_ready
from voxrisk.pipeline.given import given_training
from voxrisk.pipeline.recogniser import embed_stage
from voxrisk.pipeline.recognisers import training_people
from voxrisk.pipeline.sharing import is_shown
from voxrisk.pipeline.speech import Speech, anonymize_stage, spoken_as
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.results import AttributeResult, InferenceResult
from voxrisk.types import InputError, MissingExtraError

DEFAULT = ("gender", "age")
PROSODY, MOONSHINE = "prosody", "moonshine-base"
PITCH = "pitch"  # a part of prosody


def check_asked(chosen: Evaluation, stages: Stages) -> None:
    """Look for the columns that were asked for before hours of work, not after them.

    Raises:
        InputError: If one is not in the manifest.
    """
    for name in (*chosen.hide, *chosen.keep, *chosen.group_by):
        read_attribute(stages.read(chosen.original), name)


def infer_attributes(
    chosen: Evaluation, speech: Speech, stages: Stages
) -> tuple[InferenceResult | None, list[Notice]]:
    """Infer every attribute that was asked for, or gender and age where they are known.

    Raises:
        InputError: If a column that was asked for is not in the manifest.
    """
    wanted = _wanted(chosen, speech)
    asked = (*chosen.hide, *chosen.keep)
    notices = [
        n
        for a, _ in wanted
        for n in doubts(speech.original, a, asked=a.name in asked, seed=chosen.seed)
    ]
    usable = [(a, use) for a, use in wanted if not a.refused]
    refused = [
        AttributeResult(name=a.name, use=use, refused=a.refused) for a, use in wanted if a.refused
    ]
    if not usable:
        return (InferenceResult(attributes=tuple(refused)) if refused else None), notices
    if nameless := [a.name for a, _ in usable if not _origin_known(speech, a.name)]:
        names = " and ".join(nameless)
        notices.append(notice("attribute_origin", names=names, example=nameless[0]))
    encoders, missing = _encoders(chosen, speech, stages)
    notices += missing
    try:
        trained = _training(chosen, speech, stages)
    except InputError as error:  # no attacker of this run asked for it, or it would have said so
        trained = {}
        notices.append(notice("attribute_features", name="training speech", detail=str(error)))
    notices += [
        notice("attribute_untrained", name=a.name, fewest=FEWEST)
        for a, _ in usable
        if trained and not any(enough_speakers(t.rows, a) for t in trained.values())
    ]
    found = _infer_stage(chosen, speech, stages, usable, encoders, trained)
    notices += [notice("attribute_untold", name=a.name) for a in found.attributes if untold(a)]
    shown = [_unnamed(a, asked=a.name in asked) for a in found.attributes]
    return replace(found, attributes=(*shown, *refused)), notices


def _unnamed(attribute: AttributeResult, *, asked: bool) -> AttributeResult:
    """The classes of a column that nobody asked for by number, where their names may name people.

    Groups of numbers are named here, and a column that was asked for is meant to be read.
    """
    if asked or attribute.kind == "number":
        return attribute
    classes = [
        name if is_shown(attribute.name, name) else f"class {i}"
        for i, name in enumerate(attribute.classes, start=1)
    ]
    return replace(attribute, classes=tuple(classes))


class _Spoken(NamedTuple):
    """Training speech with its labels, and the digest under which its vectors are kept."""

    rows: Sequence[Utterance]
    digest: str


def _infer_stage(
    chosen: Evaluation,
    speech: Speech,
    stages: Stages,
    wanted: Sequence[tuple[Attribute, str]],
    encoders: Mapping[str, str],
    trained: Mapping[str, _Spoken],
) -> InferenceResult:
    """Every attack, made once for the same speech, labels and features."""
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.prosody import pitch_alone

    useful = {
        kind: spoken
        for kind, spoken in trained.items()
        if any(enough_speakers(spoken.rows, a) for a, _ in wanted)
    }
    fresh: list[InferenceResult] = []

    def hear(spoken: _Spoken, label: str) -> Features:
        vectors = {
            words: embed_stage(*spoken, name, stages, f"{label}, {words}").vectors
            for words, name in encoders.items()
        }
        if PROSODY in vectors:
            vectors[PITCH] = pitch_alone(vectors[PROSODY])
        return Features(tuple(spoken.rows), vectors)

    def make(folder: Path) -> None:
        heard = {
            "original": hear(_Spoken(speech.original, speech.digest), "original speech"),
            "anonymized": hear(
                _Spoken(speech.anonymized, speech.anonymized_digest), "anonymized speech"
            ),
        }
        learned = {kind: hear(s, f"training speech, {kind}") for kind, s in useful.items()}
        fresh.append(infer(chosen, wanted, heard, learned))
        write_text(folder / "inference.json", fresh[0].to_json())

    inputs = {
        "original": speech.digest,
        "anonymized": speech.anonymized_digest,
        "training": {kind: spoken.digest for kind, spoken in useful.items()},
        "labels": _digest(wanted, useful),
        "features": {words: encoder_identity(name) for words, name in encoders.items()},
        "lengths": chosen.limits.lengths,
        "resamples": chosen.limits.resamples,
        "confidence": chosen.confidence,
        "seed": chosen.seed,
    }
    heard_of = (*speech.original, *speech.anonymized)
    folder = stages.run("infer", inputs, make, label="attributes", speech=heard_of)
    if fresh:
        return fresh[0]
    return InferenceResult.from_json((folder / "inference.json").read_bytes())


def untold(attribute: AttributeResult) -> bool:
    """Whether no attacker tells the attribute even from original speech."""
    names = ("uar", "attribute_auc")
    references = [e for a in attribute.attacks if a.reference for e in a.figures if e.name in names]
    return bool(references) and not any(
        (e.interval.low if e.interval else e.value) > e.chance for e in references
    )


def _wanted(chosen: Evaluation, speech: Speech) -> list[tuple[Attribute, str]]:
    there = columns_of(speech.original)
    hide = chosen.hide or tuple(n for n in DEFAULT if n in there and n not in chosen.keep)
    return [
        (read_attribute(speech.original, name), use)
        for use, names in (("hide", hide), ("keep", chosen.keep))
        for name in dict.fromkeys(names)
    ]


def _origin_known(speech: Speech, name: str) -> bool:
    keys = (f"{name}_source", f"{name}_origin")
    return any(known_value(row, key) for row in speech.original for key in keys)


def _encoders(
    chosen: Evaluation, speech: Speech, stages: Stages
) -> tuple[dict[str, str], list[Notice]]:
    """What attackers listen to, by name; Moonshine where columns were asked for."""
    own = chosen.encoder if is_ready(chosen.encoder) else "speaker encoder"
    found, notices = {own: chosen.encoder}, []
    for name in (PROSODY, *((MOONSHINE,) if chosen.hide or chosen.keep else ())):
        try:
            _try(name, speech, stages)
        except (MissingExtraError, InputError, OSError) as error:
            notices.append(notice("attribute_features", name=name, detail=str(error)))
            continue
        found[name] = name
    return found, notices


def _try(name: str, speech: Speech, stages: Stages) -> None:
    """Embed the original speech now: what cannot be had must not end the run later."""
    embed_stage(speech.original, speech.digest, name, stages, f"original speech, {name}")


def _training(chosen: Evaluation, speech: Speech, stages: Stages) -> dict[str, _Spoken]:
    """Training speech as it was, and as each anonymizer makes it, here or at the user's."""
    if chosen.train is None and chosen.train_anonymized is None:
        return {}
    hashes = stages.folder / "hashes.json"
    people = training_people(chosen, speech, stages)
    digest = digest_corpus(people, hashes)
    own = {row.utterance: row for row in people}

    def made_by(name: str) -> Sequence[Utterance]:
        purpose = "training"
        return anonymize_stage(chosen, people, digest, stages, hashes, name=name, purpose=purpose)[
            0
        ]

    made: dict[str, Sequence[Utterance]] = {"original": people} if chosen.train else {}
    if chosen.similar:
        made["similar"] = made_by(chosen.similar)
    if chosen.train_anonymized:
        made["anonymized"] = given_training(chosen, people, stages)
    elif chosen.anonymizer:
        made["anonymized"] = made_by(chosen.anonymizer)
    # Only the sound is new: what the originals' manifest knows about the people stays known.
    return {
        kind: _Spoken(
            [replace(spoken_as(row, own[row.utterance]), extra=own[row.utterance].extra)
             for row in rows],
            digest_corpus(rows, hashes),
        )
        for kind, rows in made.items()
    }  # fmt: skip


def _digest(wanted: Sequence[tuple[Attribute, str]], trained: Mapping[str, _Spoken]) -> str:
    """Hash of all labels: the digest of a corpus does not cover every column."""
    plain = [
        (a.name, use, a.classes, sorted(a.label.items()), sorted(a.value.items()),
         [sorted(labels_like(spoken.rows, a)[0].items()) for spoken in trained.values()])
        for a, use in wanted
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
