"""What ``results.json`` holds: every figure, by attacker, group and speaker, without the names."""

import base64
import io
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk import __version__
from voxrisk.corpus import Utterance, read_audio
from voxrisk.files.atomic import write_text
from voxrisk.measure import (
    Trials,
    ece_profile,
    evaluate,
    evaluate_similarity,
    similarity_matrix,
    tag,
    zero_evidence,
)
from voxrisk.pipeline.attacks import Attack, Sides, similarity_trials
from voxrisk.pipeline.evaluation import Evaluation, write_yaml
from voxrisk.pipeline.speech import Speech, Warned, limited
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.verdict import lost_words, verdict, worst_first
from voxrisk.types import Estimate, InputError, MissingExtraError, require

LOG_ODDS = np.linspace(-10.0, 10.0, 201)
PAIRS_OF_AUDIO = 6
SMALLEST_GROUP = 5
CITATIONS = [
    "Vauquier et al., Legally validated evaluation framework for voice anonymization, 2025",
    "Noé et al., Speech Pseudonymisation Assessment Using Voice Similarity Matrices, 2020",
    "Franzreb et al., Improving the speaker anonymization evaluation's robustness to target "
    "speakers with adversarial learning, 2025",
    "Maouche et al., Enhancing Speech Privacy with Slicing, 2022",
    "Nautsch et al., The Privacy ZEBRA: Zero Evidence Biometric Recognition Assessment, 2020",
    "Gomez-Barrero et al., General framework to evaluate unlinkability, 2018",
    "Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
]


def assemble(
    chosen: Evaluation,
    speech: Speech,
    sides: Sides | None,
    attacks: Sequence[Attack],
    warnings: Sequence[Warned],
    stages: Stages,
    synthetic: str | None,
) -> dict[str, Any]:
    """Everything that ``results.json`` holds."""
    people = sorted({row.speaker for row in speech.original})
    alias = {s: s if chosen.reveal else f"S{i:02d}" for i, s in enumerate(people, start=1)}
    figures = {a.knowledge.name: _figures(chosen, a.trials) for a in attacks}
    eers = {name: found["rocch_eer"].value for name, found in figures.items()}
    ordered = worst_first(attacks, eers)
    similarity = _similarity(chosen, speech, sides, stages, alias) if sides else None
    useful = _utility(chosen, speech, stages)
    warnings = [*warnings, *lost_words(useful)]
    hidden = [_pseudonymous(w, alias, reveal=chosen.reveal) for w in warnings]
    return {
        "schema": 1,
        "voxrisk": __version__,
        "title": chosen.title or f"{chosen.original.name}, {speech.anonymizer['description']}",
        "corpus": _corpus(chosen, speech, people, synthetic),
        "anonymizer": speech.anonymizer,
        "encoder": {
            "name": chosen.encoder,
            "description": "ready speaker encoder, trained on original speech",
            "sha256": _sha(chosen.encoder),
        },
        "verdict": verdict(attacks),
        "warnings": [{"severity": w.severity, "text": w.text} for w in hidden],
        "attackers": [
            _attacker(a, figures[a.knowledge.name], chosen, alias, sides, similarity)
            for a in ordered
        ],
        "zero_evidence": {"log_odds": LOG_ODDS.tolist(), "bits": zero_evidence(LOG_ODDS).tolist()},
        "similarity": similarity,
        "utility": useful,
        "audio": _audio(speech, alias) if chosen.with_audio else [],
        "methods": _methods(chosen, speech, sides, attacks),
    }


def _figures(chosen: Evaluation, scored: Trials) -> Mapping[str, Estimate]:
    resamples = chosen.limits.resamples if len(scored.speakers) >= 5 else 0
    return evaluate(scored, resamples=resamples, seed=chosen.seed, confidence=chosen.confidence)


def _pseudonymous(w: Warned, alias: Mapping[str, str], *, reveal: bool) -> Warned:
    if reveal:
        return w
    words = [alias.get(word.rstrip(".:,"), word) for word in w.text.split(" ")]
    return Warned(w.severity, " ".join(words))


def _corpus(
    chosen: Evaluation, speech: Speech, people: Sequence[str], synthetic: str | None
) -> dict[str, Any]:
    genders: dict[str, set[str]] = {}
    for row in speech.original:
        genders.setdefault(row.gender or "unknown", set()).add(row.speaker)
    return {
        "name": chosen.original.name,
        "speakers": len(people),
        "utterances": len(speech.original),
        "hours": round(sum(row.duration or 0.0 for row in speech.original) / 3600, 3),
        "genders": {key: len(value) for key, value in sorted(genders.items())},
        "sessions_known": all(row.session for row in speech.original),
        "synthetic": synthetic,
    }


def _sha(encoder: str) -> str:
    try:
        from voxrisk.models import model

        return model(encoder).files[0].sha256
    except (InputError, AttributeError, IndexError):
        return ""


def _attacker(
    attack: Attack,
    figures: Mapping[str, Estimate],
    chosen: Evaluation,
    alias: Mapping[str, str],
    sides: Sides | None,
    similarity: Mapping[str, Any] | None,
) -> dict[str, Any]:
    knowledge, curve = attack.knowledge, attack.trials.roc
    alarm, miss = curve.false_alarm, curve.miss
    step = np.unique(np.linspace(0, alarm.size - 1, 400).astype(int))
    return {
        "name": knowledge.name,
        "voiceprivacy": knowledge.voiceprivacy,
        "knows": knowledge.knows,
        "enrols": knowledge.enrolls,
        "extractor": _extractor(attack, chosen),
        "training": attack.training,
        "reference": knowledge.name == "original",
        "figures": {name: e.to_json() for name, e in figures.items()},
        "zebra_tag": tag(figures["log10_l"].value),
        "ece": {
            "log_odds": LOG_ODDS.tolist(),
            "bits": ece_profile(curve, log_odds=LOG_ODDS).tolist(),
        },
        "det": {"false_alarm": alarm[step].tolist(), "miss": miss[step].tolist()},
        "population": _population(attack),
        "groups": _groups(attack.trials, chosen, sides),
        "speakers": _speakers(attack, alias, similarity),
    }


def _extractor(attack: Attack, chosen: Evaluation) -> str:
    """What the attacker recognises speakers with, in words."""
    trained = attack.training
    if trained is None:
        return f"{chosen.encoder}, trained on original speech"
    kind = "a linear map behind it" if chosen.limits.adapter else "fine-tuned"
    whose = "a similar" if attack.knowledge.trains_on == "similar" else "this"
    return (
        f"{chosen.encoder}, {kind}, trained on {whose} anonymizer's speech: "
        f"{trained['utterances']} utterances of {trained['speakers']} other speakers"
    )


def _population(attack: Attack) -> list[dict[str, Any]]:
    if attack.population is None:
        return []
    return [
        {
            "metric": e.name,
            "L": int(e.parameters["L"]),
            "N": int(e.parameters["N"]),
            "value": e.value,
            "low": e.interval.low if e.interval else None,
            "high": e.interval.high if e.interval else None,
            "chance": e.chance,
            "chance_published": e.parameters.get("chance_paper"),
        }
        for e in attack.population.estimates
    ]


def _groups(scored: Trials, chosen: Evaluation, sides: Sides | None) -> list[dict[str, Any]]:
    """Figures within each gender, age and language, where there are several."""
    if sides is None:
        return []
    found = []
    for group in ("gender", "age", "language"):
        value = {row.speaker: getattr(row, group) for row in sides.rows.values()}
        kinds = sorted({str(v) for v in value.values() if v})
        if not 1 < len(kinds) <= 8:
            continue
        for kind in kinds:
            member = np.array([str(value.get(s)) == kind for s in scored.speakers])
            keep = member[scored.enroll_speaker] & member[scored.trial_speaker]
            part = Trials(
                scored.score[keep],
                scored.is_target[keep],
                scored.enroll_speaker[keep],
                scored.trial_speaker[keep],
                scored.query[keep],
                scored.speakers,
            )
            n = int(member.sum())
            few = n < SMALLEST_GROUP or not (part.is_target.any() and (~part.is_target).any())
            figures = {} if few else _figures(chosen, _renumbered(part, member))
            found.append(
                {
                    "group": group,
                    "value": kind,
                    "speakers": n,
                    "figures": {k: figures[k].to_json() for k in ("rocch_eer", "d_ece") if figures},
                    "too_small": few,
                }
            )
    return found


def _renumbered(part: Trials, member: np.ndarray[Any, np.dtype[np.bool_]]) -> Trials:
    number = np.cumsum(member, dtype=np.int32) - np.int32(1)
    names = tuple(s for s, here in zip(part.speakers, member, strict=True) if here)
    return Trials(
        part.score,
        part.is_target,
        number[part.enroll_speaker],
        number[part.trial_speaker],
        part.query,
        names,
    )


def _speakers(
    attack: Attack, alias: Mapping[str, str], similarity: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Each speaker's own risk at the largest crowd and the longest conversation, worst first."""
    if attack.population is None:
        return []
    risks = attack.population.speakers
    own: dict[str, dict[str, float]] = {}
    for metric in ("linkability", "singling_out_self"):
        mine = [r for r in risks if r.metric == metric]
        if mine:
            top = max((r.length, r.size) for r in mine)
            own[metric] = {r.speaker: r.value for r in mine if (r.length, r.size) == top}
    kind = {"original": "oo", "ignorant": "op"}.get(attack.knowledge.name, "pp")
    alike = {}
    if similarity:
        diagonal = np.diag(np.array(similarity[kind]))
        alike = dict(zip(similarity["speakers"], diagonal.tolist(), strict=True))
    rows = [
        {
            "speaker": alias[speaker],
            "linkability": value,
            "singling_out": own.get("singling_out_self", {}).get(speaker),
            "similarity": alike.get(alias[speaker]),
        }
        for speaker, value in own.get("linkability", {}).items()
    ]
    return sorted(rows, key=lambda r: (-float(str(r["linkability"])), str(r["speaker"])))


def _similarity(
    chosen: Evaluation, speech: Speech, sides: Sides, stages: Stages, alias: Mapping[str, str]
) -> dict[str, Any] | None:
    parts = similarity_trials(chosen, speech, sides, stages)
    try:
        figures = evaluate_similarity(
            parts["oo"],
            crossed=parts["op"],
            protected=parts["pp"],
            resamples=chosen.limits.resamples if len(parts["oo"].speakers) >= 5 else 0,
            seed=chosen.seed,
            confidence=chosen.confidence,
        )
        matrices = {key: similarity_matrix(part) for key, part in parts.items()}
    except InputError:
        return None
    return {
        "speakers": [alias[s] for s in matrices["oo"].speakers],
        **{key: np.round(m.matrix, 5).tolist() for key, m in matrices.items()},
        **{name: e.to_json() for name, e in figures.items()},
    }


def _utility(chosen: Evaluation, speech: Speech, stages: Stages) -> dict[str, Any]:
    if not chosen.utility:
        return {"missing": {"all": "not asked for"}}
    rows = limited(speech.original, chosen.limits.asr_minutes, lambda r: r.duration or 5.0)
    kept = {row.utterance for row in rows}
    pair = rows, [row for row in speech.anonymized if row.utterance in kept]
    inputs = {
        "original": speech.digest,
        "anonymized": speech.anonymized_digest,
        "minutes": chosen.limits.asr_minutes,
        "asr": chosen.limits.asr,
        "seed": chosen.seed,
        "resamples": chosen.limits.resamples,
    }

    def make(folder: Path) -> None:
        from voxrisk.utility import utility

        found = utility(
            *pair,
            # Keys are hashes of the audio: runs that share stages share what they heard.
            journal=stages.folder / "utility.jsonl",
            asr=chosen.limits.asr,
            seed=chosen.seed,
            resamples=chosen.limits.resamples,
        )
        write_text(folder / "utility.json", json.dumps(found, indent=1, allow_nan=False))

    try:
        folder = stages.run("utility", inputs, make, label="before and after")
    except MissingExtraError as error:
        return {"missing": {"all": str(error)}}
    found: dict[str, Any] = json.loads((folder / "utility.json").read_text(encoding="utf-8"))
    return found


def _audio(speech: Speech, alias: Mapping[str, str]) -> list[dict[str, Any]]:
    """A few pairs to listen to: one utterance each of speakers across the corpus."""
    people: dict[str, int] = {}
    for i, row in enumerate(speech.original):
        people.setdefault(row.speaker, i)
    step = max(len(people) // PAIRS_OF_AUDIO, 1)
    return [
        {
            "speaker": alias[speech.original[i].speaker],
            "utterance": f"U{i:04d}",
            "text": speech.original[i].text or "",
            "original": _data(speech.original[i]),
            "anonymized": _data(speech.anonymized[i]),
        }
        for i in list(people.values())[::step][:PAIRS_OF_AUDIO]
    ]


def _data(row: Utterance) -> str:
    soundfile: Any = require("soundfile", extra="audio")
    packed = io.BytesIO()
    soundfile.write(packed, read_audio(row)[: 16_000 * 10], 16_000, format="FLAC")
    return "data:audio/flac;base64," + base64.b64encode(packed.getvalue()).decode()


def _methods(
    chosen: Evaluation, speech: Speech, sides: Sides | None, attacks: Sequence[Attack]
) -> dict[str, Any]:
    first = attacks[0] if attacks else None
    crowd = first.population if first else None
    lengths = sorted({int(e.parameters["L"]) for e in crowd.estimates}) if crowd else []
    sizes = sorted({int(e.parameters["N"]) for e in crowd.estimates}) if crowd else []
    by = f"split by {sides.by}; " if sides else ""
    gender = "same-gender trials" if sides and sides.same_gender else "all speakers are compared"
    return {
        "effort": chosen.effort,
        "seed": chosen.seed,
        "confidence": chosen.confidence,
        "resamples": chosen.limits.resamples,
        "L": lengths,
        "N": sizes,
        "enrolment": f"{by}mean of the enrolled utterances' vectors, cosine similarity; {gender}",
        "trials": first.trials.sizes if first else {},
        "versions": _versions(),
        "hashes": {"original": speech.digest, "anonymized": speech.anonymized_digest},
        "citations": CITATIONS,
        "evaluation_yaml": write_yaml(chosen),
    }


def _versions() -> dict[str, str]:
    found = {"voxrisk": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "torch", "faster-whisper", "pyworld"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
