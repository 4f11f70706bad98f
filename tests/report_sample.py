"""A realistic results.json, made on the spot: 20 simulated speakers, four attackers, all figures.

The embeddings are simulated; every figure is measured on them with voxrisk.measure, as the pipeline
does, so that the pages are tested on numbers that belong together.
"""

import base64
import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk import measure
from voxrisk.measure.curves import Population, Protocol
from voxrisk.measure.population import population
from voxrisk.types import Embeddings, Estimate, Interval

SPEAKERS, UTTERANCES, SIZE = 20, 16, 24
LOG_ODDS = np.linspace(-10.0, 10.0, 201)
# Name, VoicePrivacy's name, how much of the voice is left, what is known, enrolled, trained on.
ATTACKERS = (
    ("informed", "semi-informed", 0.62, "Knows the anonymizer and trains on speech it anonymized.",
     "anonymized", "trained on speech from the same anonymizer"),
    ("semi-informed", None, 0.42, "Knows a similar anonymizer and trains on its speech.",
     "anonymized", "trained on speech from a similar anonymizer"),
    ("lazy-informed", "lazy-informed", 0.33, "Anonymizes the known recordings, but trains nothing.",
     "anonymized", "trained on original speech"),
    ("ignorant", "ignorant", 0.1, "Does not know that the speech was anonymized.",
     "original", "trained on original speech"),
    ("original", None, 1.6, "Has the speech as it was.", "original", "trained on original speech"),
)  # fmt: skip


def sample(
    *, seed: int = 0, names: tuple[str, ...] = (), strength: float = 1.0, title: str = "mcadams"
) -> dict[str, Any]:
    """Results of a simulated evaluation; ``strength`` scales what is left of a voice."""
    rng = np.random.default_rng(7)
    voices = rng.normal(size=(SPEAKERS, SIZE))
    speakers = [*names, *(f"S{k + 1:02}" for k in range(len(names), SPEAKERS))]
    attackers, halves = [], {}
    for k, (name, other, left, knows, enrols, extractor) in enumerate(ATTACKERS):
        scale = left if name == "original" else left * strength
        a, b = (_half(voices * scale, speakers, [seed, k, part]) for part in (0, 1))
        halves[name] = (a, b)
        attackers.append(_attacker(name, other, knows, enrols, extractor, a, b))
    similarity = _similarity(halves, speakers)
    for attacker in attackers:
        own = {s: row[i] for i, (s, row) in enumerate(zip(speakers, similarity["op"], strict=True))}
        for person in attacker["speakers"]:
            person["similarity"] = own[person["speaker"]]
    return {
        "schema": 1,
        "voxrisk": "0.1.0",
        "title": f"simulated speech, anonymized by {title}",
        "corpus": {
            "name": "simulated", "speakers": SPEAKERS, "utterances": SPEAKERS * UTTERANCES * 2,
            "hours": 1.52, "genders": {"f": 11, "m": 9}, "sessions_known": True, "synthetic": None,
        },
        "anonymizer": {
            "name": title, "description": "Moves the formants by bending pole angles.",
            "parameters": {"coefficient": 0.8},
            "target_selection": {"select": "same-gender", "per": "utterance", "voices": 10},
        },
        "encoder": {
            "name": "ecapa-voxceleb", "description": "ECAPA-TDNN trained on VoxCeleb.",
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        },
        "verdict": _verdict(attackers),
        "warnings": [
            {"severity": "serious", "text": "Only 20 speakers: the intervals are wide."},
            {"severity": "note", "text": "Enrolment and trial recordings share 3 sessions."},
        ],
        "attackers": attackers,
        "zero_evidence": {
            "log_odds": LOG_ODDS.tolist(), "bits": measure.zero_evidence(LOG_ODDS).tolist(),
        },
        "similarity": similarity,
        "utility": _utility(strength),
        "audio": [],
        "methods": {
            "effort": "quick", "seed": seed, "confidence": 0.95, "resamples": 200, "L": [1, 3],
            "N": [5, 10, 20], "enrolment": "The mean of 8 utterances enrols each speaker.",
            "trials": {"target": 320, "nontarget": 6080},
            "versions": {"python": "3.11.7", "numpy": "2.4.6"},
            "hashes": {"original": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266"},
            "citations": [
                "Vauquier et al., Legally validated evaluation framework for voice anonymization, "
                "Interspeech 2025",
                "Nautsch et al., The Privacy ZEBRA, Interspeech 2020",
            ],
            "evaluation_yaml": "original: speech/original\nanonymized: speech/mcadams\nseed: 0\n",
        },
    }  # fmt: skip


def tone() -> str:
    """A tenth of a second of sound as a data address."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 800, "NONE", ""))
        wave_form = 8000 * np.sin(np.arange(800) * 0.2)
        file.writeframes(wave_form.astype("<i2").tobytes())
    return "data:audio/wav;base64," + base64.b64encode(stream.getvalue()).decode()


def _half(voices: NDArray[np.float64], speakers: list[str], seed: list[int]) -> Embeddings:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(SPEAKERS), UTTERANCES)
    vectors = voices[who] + rng.normal(size=(who.size, SIZE))
    names = np.array([f"u{seed[-1]}-{i}" for i in range(who.size)])
    return Embeddings(names, np.array(speakers)[who], vectors.astype(np.float32), "simulated")


def _scored(a: Embeddings, b: Embeddings) -> measure.Trials:
    """Each speaker's mean of ``a`` against each utterance of ``b``, by cosine."""
    names = np.unique(a.speaker)
    enrolled = np.stack([a.vectors[a.speaker == s].mean(axis=0) for s in names])
    enrolled /= np.linalg.norm(enrolled, axis=1, keepdims=True)
    tested = b.vectors / np.linalg.norm(b.vectors, axis=1, keepdims=True)
    enroll, segment = np.repeat(names, len(tested)), np.tile(np.arange(len(tested)), names.size)
    return measure.trials(
        (enrolled @ tested.T).ravel(), enroll, np.tile(b.speaker, names.size), segment=segment
    )


def _attacker(
    name: str, other: str | None, knows: str, enrols: str, extractor: str,
    a: Embeddings, b: Embeddings,
) -> dict[str, Any]:  # fmt: skip
    scored = _scored(a, b)
    figures = measure.evaluate(scored, resamples=200)
    curve = scored.roc
    keep = np.unique(np.linspace(0, curve.miss.size - 1, 200).astype(int))
    protocol = Protocol(lengths=(1, 3), sizes=(5, 10, 20), predicates=20, resamples=200, threads=1)
    found = population(enrolled=a, tested=b, attacker=name, protocol=protocol)
    groups = [
        {"group": "gender", "value": value, "speakers": len(who), "too_small": value == "m",
         "figures": _of_group(scored, who)}
        for value, who in (("f", range(11)), ("m", range(11, SPEAKERS)))
    ]  # fmt: skip
    return {
        "name": name, "voiceprivacy": other, "knows": knows, "enrols": enrols,
        "extractor": extractor, "reference": name == "original",
        "figures": {k: e.to_json() for k, e in figures.items()},
        "zebra_tag": measure.tag(figures["log10_l"].value),
        "ece": {"log_odds": LOG_ODDS.tolist(),
                "bits": measure.ece_profile(curve, log_odds=LOG_ODDS).tolist()},
        "det": {"false_alarm": curve.false_alarm[keep].tolist(), "miss": curve.miss[keep].tolist()},
        "population": [_point(e) for e in found.estimates],
        "groups": groups,
        "speakers": _people(found),
    }  # fmt: skip


def _of_group(scored: measure.Trials, who: range) -> dict[str, Any]:
    inside = np.isin(scored.enroll_speaker, who) & np.isin(scored.trial_speaker, who)
    group = measure.Trials(
        scored.score[inside], scored.is_target[inside],
        scored.enroll_speaker[inside] - np.int32(who[0]),
        scored.trial_speaker[inside] - np.int32(who[0]),
        scored.query[inside], scored.speakers[who[0] : who[-1] + 1],
    )  # fmt: skip
    figures = measure.evaluate(group, resamples=200)
    return {name: figures[name].to_json() for name in ("rocch_eer", "d_ece")}


def _point(e: Estimate) -> dict[str, Any]:
    return {
        "metric": e.name, "L": e.parameters["L"], "N": e.parameters["N"], "value": e.value,
        "low": e.interval.low if e.interval else None,
        "high": e.interval.high if e.interval else None, "chance": e.chance,
        "chance_published": e.parameters["chance_paper"],
    }  # fmt: skip


def _people(found: Population) -> list[dict[str, Any]]:
    def of(metric: str) -> dict[str, float]:
        return {
            p.speaker: p.value
            for p in found.speakers
            if (p.metric, p.length, p.size) == (metric, 3, SPEAKERS)
        }

    isolated = of("singling_out_self")
    linked = sorted(of("linkability").items(), key=lambda item: -item[1])
    return [
        {"speaker": s, "linkability": v, "singling_out": isolated.get(s), "similarity": None}
        for s, v in linked
    ]


def _similarity(halves: dict[str, Any], speakers: list[str]) -> dict[str, Any]:
    original, lazy = halves["original"], halves["lazy-informed"]
    oo, op, pp = _scored(*original), _scored(original[0], lazy[1]), _scored(*lazy)
    figures = measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=200)
    order = [measure.similarity_matrix(oo).speakers.index(s) for s in speakers]

    def matrix(scored: measure.Trials) -> list[list[float]]:
        whole = measure.similarity_matrix(scored).matrix[np.ix_(order, order)]
        return [[float(v) for v in row] for row in whole]

    return {
        "speakers": speakers, "oo": matrix(oo), "op": matrix(op), "pp": matrix(pp),
        **{k: e.to_json() for k, e in figures.items()},
    }  # fmt: skip


def _utility(strength: float) -> dict[str, Any]:
    def found(name: str, value: float, around: float) -> dict[str, Any]:
        span = Interval(value - around, value + around, 0.95, "speaker bootstrap, percentile")
        return Estimate(name, value, 0.0, {"speaker": SPEAKERS}, "", span).to_json()

    return {
        "wer": {"original": found("wer", 0.041, 0.008),
                "anonymized": found("wer", 0.16 - 0.06 * strength, 0.021)},
        "pitch_correlation": {"anonymized": found("pitch_correlation", 0.93, 0.02)},
        "duration_change": {"anonymized": found("duration_change", -0.002, 0.001)},
        "missing": {"dnsmos": "the model is not installed; pip install 'voxrisk[utility]'"},
    }  # fmt: skip


def _verdict(attackers: list[dict[str, Any]]) -> dict[str, Any]:
    worst, reference = attackers[0], attackers[-1]
    criteria = []
    for criterion in ("singling out", "linkability"):
        name = criterion.replace(" ", "_")
        value, original = (
            next(e for e in a["population"] if (e["metric"], e["L"], e["N"]) == (name, 3, 20))
            for a in (worst, reference)
        )
        criteria.append(
            {
                "criterion": criterion, "assessed": True, "attacker": worst["name"], "L": 3,
                "N": 20, "value": _back(value), "original": _back(original),
                "level": "above chance" if value["low"] > value["chance"] else "at chance",
                "sentence": "The strongest attacker tried here does this better than by guessing.",
            }
        )  # fmt: skip
    criteria.append(
        {
            "criterion": "inference", "assessed": False, "attacker": None, "L": None, "N": None,
            "value": None, "original": None, "level": "not assessed",
            "sentence": "Not assessed: this run did not try to deduce facts about the speakers.",
        }
    )  # fmt: skip
    return {
        "criteria": criteria,
        "headline": "An attacker who knows the anonymizer can still recognise speakers.",
    }


def _back(point: dict[str, Any]) -> dict[str, Any]:
    span = Interval(point["low"], point["high"], 0.95, "speaker bootstrap, percentile")
    at = {"L": point["L"], "N": point["N"]}
    return Estimate(
        point["metric"], point["value"], point["chance"], {"speaker": SPEAKERS}, "", span, at
    ).to_json()
