"""The third criterion: what can be inferred about people, and what should survive.

Which columns are attributes, what attackers listen to and learn from, and what limits the answer;
the attacks themselves are in :mod:`voxrisk.pipeline.attribute_attacks`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

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
from voxrisk.pipeline.confounds import confounds
from voxrisk.pipeline.evaluation import Evaluation, is_ready
from voxrisk.pipeline.recognisers import embed_stage, training_people
from voxrisk.pipeline.speech import Speech, anonymize_stage
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.results import AttributeResult, InferenceResult
from voxrisk.types import InputError, MissingExtraError

DEFAULT = ("gender", "age")
PROSODY, MOONSHINE = "prosody", "moonshine-base"
FEW = 10  # speakers of a class, below which the reader is told
MANY = 20  # classes, above which the reader is told


def check_asked(chosen: Evaluation, stages: Stages) -> None:
    """Look for the columns that were asked for before hours of work, not after them.

    Raises:
        InputError: If one is not in the manifest.
    """
    for name in (*chosen.hide, *chosen.keep):
        read_attribute(stages.read(chosen.original), name)


def infer_attributes(
    chosen: Evaluation, speech: Speech, stages: Stages
) -> tuple[InferenceResult | None, list[Notice]]:
    """Infer every attribute that was asked for, or gender and age where they are known.

    Raises:
        InputError: If a column that was asked for is not in the manifest.
    """
    wanted = _wanted(chosen, speech)
    if not wanted:
        return None, []
    notices = [n for a, use in wanted for n in _notices(chosen, speech, a, use)]
    usable = [(a, use) for a, use in wanted if not a.refused]
    refused = [AttributeResult(name=a.name, use=use, refused=a.refused) for a, use in wanted
               if a.refused]  # fmt: skip
    if not usable:
        return InferenceResult(attributes=tuple(refused)), notices
    if nameless := [a.name for a, _ in usable if not _origin_known(speech, a.name)]:
        names = " and ".join(nameless)
        notices.append(notice("attribute_origin", names=names, example=nameless[0]))
    encoders, missing = _encoders(chosen, speech, stages)
    notices += missing
    trained = _training(chosen, speech, stages)
    known = {name: a for a, _ in usable for name in trained if enough_speakers(trained[name], a)}
    if trained:
        notices += [
            notice("attribute_untrained", name=a.name, fewest=FEWEST)
            for a, _ in usable
            if not any(enough_speakers(rows, a) for rows in trained.values())
        ]
    hashes = stages.folder / "hashes.json"
    digests = {kind: digest_corpus(rows, hashes) for kind, rows in trained.items() if kind in known}
    fresh: list[InferenceResult] = []

    def make(folder: Path) -> None:
        def hear(rows: Sequence[Utterance], digest: str, label: str) -> Features:
            return Features(
                tuple(rows),
                {words: embed_stage(rows, digest, name, stages, f"{label}, {words}").vectors
                 for words, name in encoders.items()},
            )  # fmt: skip

        heard = {
            "original": hear(speech.original, speech.digest, "original speech"),
            "anonymized": hear(speech.anonymized, speech.anonymized_digest, "anonymized speech"),
        }
        learned = {
            kind: hear(trained[kind], digest, f"training speech, {kind}")
            for kind, digest in digests.items()
        }
        fresh.append(infer(chosen, usable, heard, learned))
        write_text(folder / "inference.json", fresh[0].to_json())

    inputs = {
        "original": speech.digest,
        "anonymized": speech.anonymized_digest,
        "training": digests,
        "labels": _digest([(a, use) for a, use in usable], speech, trained),
        "features": encoders,
        "lengths": chosen.limits.lengths,
        "resamples": chosen.limits.resamples,
        "confidence": chosen.confidence,
        "seed": chosen.seed,
    }
    folder = stages.run("infer", inputs, make, label="attributes")
    found = (
        fresh[0] if fresh else InferenceResult.from_json((folder / "inference.json").read_bytes())
    )
    for a in found.attributes:
        if untold(a):
            notices.append(notice("attribute_untold", name=a.name))
    return InferenceResult(
        attributes=(*found.attributes, *refused), together=found.together
    ), notices


def untold(attribute: AttributeResult) -> bool:
    """Whether no attacker tells the attribute even from original speech."""
    references = [e for a in attribute.attacks if a.reference for e in a.figures if e.name == "uar"]
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


def _notices(chosen: Evaluation, speech: Speech, attribute: Attribute, use: str) -> list[Notice]:
    name, found = attribute.name, []
    if attribute.refused:
        asked = name in (*chosen.hide, *chosen.keep)
        code = "attribute_refused" if asked else "attribute_absent"
        return [notice(code, name=name, why=attribute.refused)]
    if attribute.unlabelled:
        found.append(
            notice("attribute_unlabelled", name=name, count=attribute.unlabelled,
                   total=len(speech.people))
        )  # fmt: skip
    if attribute.unread:
        found.append(notice("attribute_unread", name=name, count=attribute.unread))
    if attribute.rare:
        found.append(
            notice("attribute_rare", name=name, count=attribute.rare, fewest=FEWEST,
                   lost=attribute.rare_speakers)
        )  # fmt: skip
    if min(attribute.speakers) < FEW:
        found.append(notice("attribute_few", name=name, fewest=min(attribute.speakers)))
    if len(attribute.classes) > MANY:
        k = len(attribute.classes)
        found.append(notice("attribute_many", name=name, classes=k, chance=1.0 / k))
    return [*found, *confounds(speech.original, attribute, seed=chosen.seed)]


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


def _training(chosen: Evaluation, speech: Speech, stages: Stages) -> dict[str, Sequence[Utterance]]:
    """Training speech as it was, and as each anonymizer at hand makes it."""
    if chosen.train is None:
        return {}
    hashes = stages.folder / "hashes.json"
    people = training_people(chosen, speech, stages)
    digest = digest_corpus(people, hashes)
    found: dict[str, Sequence[Utterance]] = {"original": people}
    for kind, name in (("similar", chosen.similar), ("anonymized", chosen.anonymizer)):
        if name:
            found[kind] = _as_labelled(
                anonymize_stage(
                    chosen, people, digest, stages, hashes, name=name, purpose="training"
                )[0],
                people,
            )
    return found


def _as_labelled(made: Sequence[Utterance], people: Sequence[Utterance]) -> list[Utterance]:
    """Anonymized rows whose other columns are those of the original speech."""
    by_id = {row.utterance: row for row in people}
    return [
        replace(row, age=by_id[row.utterance].age, gender=by_id[row.utterance].gender,
                language=by_id[row.utterance].language,
                extra={**by_id[row.utterance].extra, **row.extra})
        for row in made
        if row.utterance in by_id
    ]  # fmt: skip


def _digest(
    wanted: Sequence[tuple[Attribute, str]],
    speech: Speech,
    trained: Mapping[str, Sequence[Utterance]],
) -> str:
    """Hash of all labels: the digest of a corpus does not cover every column."""
    plain = [
        (a.name, use, a.classes, sorted(a.label.items()), sorted(a.value.items()),
         [sorted(labels_like(rows, a)[0].items()) for rows in trained.values()])
        for a, use in wanted
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
