"""Realistic results, made on the spot: 20 simulated speakers, five attackers, all figures.

The embeddings are simulated; every figure is measured on them with voxrisk.measure, as the pipeline
does, so that the pages are tested on numbers that belong together.
"""

import base64
import io
import wave
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from voxrisk import measure
from voxrisk.knowledge import Knowledge, attacker
from voxrisk.measure.crowd import measure_crowd
from voxrisk.measure.population import Population, Protocol
from voxrisk.notices import notice
from voxrisk.pipeline.advice import next_steps
from voxrisk.report.words import percent as words_percent
from voxrisk.results import (
    Anonymizer,
    AttackResult,
    AudioPair,
    Control,
    Corpus,
    Criterion,
    Encoder,
    ErrorCurve,
    Group,
    Methods,
    Person,
    Profile,
    Results,
    SimilarityResult,
    TargetSelection,
    UtilityResult,
    Verdict,
)
from voxrisk.types import Embeddings, Estimate, Interval

SPEAKERS, UTTERANCES, SIZE = 20, 16, 24
LOG_ODDS = np.linspace(-10.0, 10.0, 201)
# How much of a voice each attacker gets hold of, the strongest first and the reference last.
LEFT = {
    "informed": 0.62,
    "semi-informed": 0.42,
    "lazy-informed": 0.33,
    "ignorant": 0.1,
    "original": 1.6,
}
WORDS = 0.05  # what the words alone tell of a speaker
Halves = Mapping[str, tuple[Embeddings, Embeddings]]


def sample(
    *, seed: int = 0, names: tuple[str, ...] = (), strength: float = 1.0, title: str = "mcadams"
) -> Results:
    """Results of a simulated evaluation; ``strength`` scales what is left of a voice."""
    rng = np.random.default_rng(7)
    voices = rng.normal(size=(SPEAKERS, SIZE))
    speakers = (*names, *(f"S{k + 1:02}" for k in range(len(names), SPEAKERS)))
    halves = {}
    for k, (name, left) in enumerate(LEFT.items()):
        scale = left if name == "original" else left * strength
        halves[name] = (
            _half(voices * scale, speakers, [seed, k, 0]),
            _half(voices * scale, speakers, [seed, k, 1]),
        )
    similarity = _similarity(halves, speakers)
    attacks = tuple(_attack(attacker(name), *halves[name], similarity) for name in LEFT)
    words = _scored(*(_half(voices * WORDS, speakers, [seed, 9, part]) for part in (0, 1)))
    found = Results(
        kind="evaluate",
        title=f"simulated speech, anonymized by {title}",
        corpus=Corpus(
            name="simulated", speakers=SPEAKERS, utterances=SPEAKERS * UTTERANCES * 2, hours=1.52,
            genders={"f": 11, "m": 9}, sessions_known=True,
        ),
        anonymizer=Anonymizer(
            name=title, description="Moves the formants by bending pole angles.",
            parameters={"coefficient": 0.8},
            target_selection=TargetSelection(select="same-gender", per="utterance", voices=10),
        ),
        encoder=Encoder(
            name="ecapa-voxceleb", description="ECAPA-TDNN trained on VoxCeleb.",
            sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        ),
        verdict=_verdict(attacks),
        controls=_controls(attacks, _scored(*halves["informed"]), words),
        notices=(
            notice("few_speakers", speakers=SPEAKERS),
            notice("left_out", count=1, speakers=["S21"], why="too little speech"),
        ),
        attacks=attacks,
        zero_evidence=_profile(measure.zero_evidence(LOG_ODDS)),
        similarity=similarity,
        utility=_utility(strength),
        methods=Methods(
            effort="quick", seed=seed, resamples=200, lengths=(1, 3), sizes=(5, 10, 20),
            enrolment="The mean of 8 utterances enrols each speaker.",
            trials={"target": 320, "nontarget": 6080},
            versions={"python": "3.11.7", "numpy": "2.4.6"},
            hashes={"original": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266"},
            citations=(
                "Vauquier et al., Legally validated evaluation framework for voice anonymization, "
                "Interspeech 2025",
                "Nautsch et al., The Privacy ZEBRA, Interspeech 2020",
            ),
            evaluation_yaml="original: speech/original\nanonymized: speech/mcadams\nseed: 0\n",
        ),
    )  # fmt: skip
    return replace(found, notices=(*found.notices, *next_steps(found)))


def with_attack(run: Results, who: str, **changes: object) -> Results:
    """The same run with one attack changed."""
    attacks = (replace(a, **changes) if a.name == who else a for a in run.attacks)
    return replace(run, attacks=tuple(attacks))


def with_control(run: Results, code: str, **changes: object) -> Results:
    """The same run with one control changed."""
    controls = (replace(c, **changes) if c.code == code else c for c in run.controls)
    return replace(run, controls=tuple(controls))


def spoken(*, speaker: str = "S02", text: str = "") -> AudioPair:
    """A tenth of a second of sound, before and after."""
    return AudioPair(
        speaker=speaker, utterance="U0001", text=text, original=_tone(), anonymized=_tone()
    )


def _tone() -> str:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 800, "NONE", ""))
        wave_form = 8000 * np.sin(np.arange(800) * 0.2)
        file.writeframes(wave_form.astype("<i2").tobytes())
    return "data:audio/wav;base64," + base64.b64encode(stream.getvalue()).decode()


def _half(voices: NDArray[np.float64], speakers: tuple[str, ...], seed: list[int]) -> Embeddings:
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
    return measure.Trials(
        (enrolled @ tested.T).ravel(), enroll, np.tile(b.speaker, names.size), segment=segment
    )


def _profile(bits: NDArray[np.float64]) -> Profile:
    return Profile(log_odds=tuple(LOG_ODDS.tolist()), bits=tuple(bits.tolist()))


def _attack(
    knowledge: Knowledge, a: Embeddings, b: Embeddings, similarity: SimilarityResult
) -> AttackResult:
    scored = _scored(a, b)
    figures = dict(measure.measure_scores(scored, resamples=200))
    curve = scored.roc
    keep = np.unique(np.linspace(0, curve.miss.size - 1, 200).astype(int))
    protocol = Protocol(lengths=(1, 3), sizes=(5, 10, 20), predicates=20, resamples=200, threads=1)
    found = measure_crowd(enrolled=a, tested=b, attacker=knowledge.name, protocol=protocol)
    return AttackResult(
        name=knowledge.name,
        voiceprivacy=knowledge.voiceprivacy,
        paper1=knowledge.paper1,
        knows=knowledge.knows,
        enrols=knowledge.enrols,
        tests=knowledge.tests,
        extractor=f"ecapa-voxceleb, trained on {knowledge.trains_on} speech",
        reference=knowledge.reference,
        figures=figures,
        tag=measure.tag(figures["log10_l"].value),
        ece=_profile(measure.ece_profile(curve, log_odds=LOG_ODDS)),
        det=ErrorCurve(
            false_alarm=tuple(curve.false_alarm[keep].tolist()),
            miss=tuple(curve.miss[keep].tolist()),
        ),
        crowd=found.estimates,
        groups=tuple(_groups(scored)),
        speakers=tuple(_people(found, similarity)),
        sizes=scored.sizes,
        colour=knowledge.colour,
        mark=knowledge.mark,
    )


def _groups(scored: measure.Trials) -> list[Group]:
    """Two genders, and two ages of which one has too few people for a figure."""
    found = []
    for group, value, who in (
        ("gender", "f", range(11)),
        ("gender", "m", range(11, SPEAKERS)),
        ("age", "over 60", range(3)),
        ("age", "under 60", range(3, SPEAKERS)),
    ):
        figures = _of_group(scored, who) if len(who) > 3 else {}
        found.append(Group(group=group, value=value, speakers=len(who), figures=figures))
    return found


def _of_group(scored: measure.Trials, who: range) -> dict[str, Estimate]:
    inside = np.isin(scored.enroll_speaker, who) & np.isin(scored.trial_speaker, who)
    group = measure.Trials.coded(
        scored.score[inside], scored.is_target[inside],
        scored.enroll_speaker[inside] - np.int32(who[0]),
        scored.trial_speaker[inside] - np.int32(who[0]),
        scored.query[inside], scored.speakers[who[0] : who[-1] + 1],
    )  # fmt: skip
    figures = measure.measure_scores(group, resamples=200)
    return {name: figures[name] for name in ("rocch_eer", "d_ece")}


def _people(found: Population, similarity: SimilarityResult) -> list[Person]:
    def of(metric: str) -> dict[str, float]:
        return {
            p.speaker: p.value
            for p in found.speakers
            if (p.metric, p.length, p.size) == (metric, 3, SPEAKERS)
        }

    isolated = of("singling_out_self")
    own = {s: similarity.op[i][i] for i, s in enumerate(similarity.speakers)}
    linked = sorted(of("linkability").items(), key=lambda item: -item[1])
    return [
        Person(
            speaker=s, linkability=v, singling_out=isolated.get(s), similarity=own[s],
            trials=UTTERANCES // 3,
        )
        for s, v in linked
    ]  # fmt: skip


def _similarity(halves: Halves, speakers: tuple[str, ...]) -> SimilarityResult:
    original, lazy = halves["original"], halves["lazy-informed"]
    oo, op, pp = _scored(*original), _scored(original[0], lazy[1]), _scored(*lazy)
    figures = measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=200)
    order = [measure.similarity_matrix(oo).speakers.index(s) for s in speakers]

    def matrix(scored: measure.Trials) -> tuple[tuple[float, ...], ...]:
        whole = measure.similarity_matrix(scored).matrix[np.ix_(order, order)]
        return tuple(tuple(row) for row in whole.tolist())

    return SimilarityResult(
        speakers=speakers, oo=matrix(oo), op=matrix(op), pp=matrix(pp), figures=dict(figures)
    )


def _utility(strength: float) -> UtilityResult:
    def found(name: str, value: float, around: float) -> Estimate:
        span = Interval(value - around, value + around, 0.95, "speaker bootstrap, percentile")
        return Estimate(name, value, 0.0, {"speaker": SPEAKERS}, "", span)

    return UtilityResult(
        figures={
            "wer": {"original": found("wer", 0.041, 0.008),
                    "anonymized": found("wer", 0.16 - 0.06 * strength, 0.021)},
            "pitch_correlation": {"anonymized": found("pitch_correlation", 0.93, 0.02)},
            "duration_change": {"anonymized": found("duration_change", -0.002, 0.001)},
        },
        missing={"dnsmos": "the model is not installed; pip install 'voxrisk[utility]'"},
    )  # fmt: skip


def _verdict(attacks: tuple[AttackResult, ...]) -> Verdict:
    worst, reference = attacks[0], attacks[-1]
    criteria = []
    for name in ("singling out", "linkability"):
        value, original = (a.at(name.replace(" ", "_"), 3, SPEAKERS) for a in (worst, reference))
        assert value is not None
        assert value.interval is not None
        criteria.append(
            Criterion(
                name=name,
                level="above chance" if value.interval.low > value.chance else "at chance",
                sentence="The strongest attacker tried here does this better than by guessing.",
                attacker=worst.name,
                value=value,
                original=original,
            )
        )
    sentence = "Not assessed: this run did not try to deduce facts about the speakers."
    criteria.append(Criterion(name="inference", level="not assessed", sentence=sentence))
    return Verdict(
        headline="An attacker who knows the anonymizer can still recognise speakers.",
        criteria=tuple(criteria),
    )


def _controls(
    attacks: tuple[AttackResult, ...], informed: measure.Trials, words: measure.Trials
) -> tuple[Control, ...]:
    """One of each kind, all passed."""
    unprotected = attacks[-1].eer
    read = measure.measure_scores(words, resamples=200)["rocch_eer"]
    trained, other = attacks[0].eer, (informed.trial_speaker + 1) % SPEAKERS
    taken = informed.enroll_speaker == other
    exchanged = measure.interpolated_eer(
        informed.score[taken], informed.score[~taken & ~informed.is_target]
    )
    return (
        Control(
            code="positive", question="Does the ready recogniser recognise people in original "
            "speech?", expected="EER of 35.0 % or less",
            found=f"EER {words_percent(unprotected.value)}",
            passed=True, value=unprotected,
        ),
        Control(
            code="training", attacker="informed", passed=True, value=trained,
            question="Did the informed attacker learn to recognise people it was not trained on?",
            expected="better than chance, and not worse than the untrained recogniser",
            found=f"EER {words_percent(trained.value)} on held-out training speakers, "
            "untrained 40.0 %",
        ),
        Control(
            code="negative", passed=True, expected="EER of about 50 %",
            question="Does the attack fail where it must: with the names of speakers exchanged?",
            found=f"EER {words_percent(exchanged)} on average over 1 exchange",
        ),
        Control(
            code="words", question="Could the words alone give speakers away?", passed=True,
            expected="an attacker who only reads the transcripts does no better than chance",
            found=f"EER {words_percent(read.value)} from words alone", value=read,
        ),
    )  # fmt: skip
