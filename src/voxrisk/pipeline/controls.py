"""Can this test be trusted? Controls that every run makes before anything is concluded.

A broken attack looks like privacy. Public evaluations have overstated privacy by up to 74 % because
their recogniser was badly trained (Panariello et al., arXiv 2507.22534). So each recogniser must
recognise people where it should (positive control), have learned something from its training
(training control), recognise nobody where labels are wrong (negative control), and what words alone
give is measured beside it (words control).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from voxrisk.attack.soundness import held_out_control, target_control, training_control
from voxrisk.measure import Trials, interpolated_eer, measure_scores
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.pipeline.attacks import Attack
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.given import kind_control
from voxrisk.pipeline.recogniser import embed_stage
from voxrisk.pipeline.sides import Sides, chosen_rows, score_sides
from voxrisk.pipeline.speech import Speech
from voxrisk.pipeline.stages import Stages
from voxrisk.results import AttackResult, Control, strongest
from voxrisk.types import Estimate, InputError

RECOGNISES = 0.35  # EER on speech that is hardly protected, above which a recogniser is no attack
SHUFFLES = 20
NEAR_CHANCE = 0.05


class _Draw(TypedDict):
    seed: int
    resamples: int
    confidence: float


@dataclass(frozen=True, slots=True)
class _Setting:
    chosen: Evaluation
    speech: Speech
    sides: Sides
    stages: Stages

    def eer(self, scored: Trials) -> Estimate:
        resamples = self.chosen.limits.resamples if len(scored.speakers) >= MIN_SPEAKERS else 0
        found = measure_scores(
            scored,
            resamples=resamples,
            seed=self.chosen.seed,
            confidence=self.chosen.confidence,
        )
        return found["rocch_eer"]


def run_controls(
    chosen: Evaluation,
    speech: Speech,
    sides: Sides,
    attacks: Sequence[Attack],
    measured: Mapping[str, AttackResult],
    stages: Stages,
) -> list[Control]:
    """Every control of a run but that of the transcripts, which needs a speech recogniser."""
    setting = _Setting(chosen, speech, sides, stages)
    found = [_pairs(speech)]
    if (speed := _speed(speech)) is not None:
        found.append(speed)
    for attack in attacks:
        found += _positive(setting, attack, measured[attack.knowledge.name])
    for attack in attacks:
        found += _training(setting, attack)
        found += [*_kind(setting, attack), *_targets(setting, attack)]
    found += _negative(sides, attacks, measured)
    found.append(_words(setting, list(measured.values())))
    return found


def failed_attackers(controls: Sequence[Control]) -> set[str]:
    """Attackers that a control of their own shows to be no attack."""
    return {c.attacker for c in controls if c.attacker and c.passed is False}


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def _pairs(speech: Speech) -> Control:
    pairs = speech.pairs
    passed = None if pairs.verdict == "unknown" else True
    if pairs.identical or pairs.moved:  # one file that was not protected is one too many
        passed = False
    return Control(
        code="pairs",
        question="Is each anonymized file the protected version of the original of the same name?",
        expected="timing and loudness fit the own original best, and no file is a copy",
        found=f"{_percent(pairs.own_best)} of {pairs.compared} files fit their own original best; "
        f"{len(pairs.identical) + len(pairs.moved)} are exact copies",
        passed=passed,
    )


def _speed(speech: Speech) -> Control | None:
    from voxrisk.corpus.pairs import rate_suspicion

    odd = rate_suspicion(speech.original)
    if odd is None:
        return None
    return Control(
        code="speed",
        question="Does the original speech run at its true speed?",
        expected=f"fewer than {odd.limit:g} words a second",
        found=f"{odd.words_per_second:.1f} words a second: its sample rate is probably wrong",
        passed=False,
    )


def _positive(setting: _Setting, attack: Attack, measured: AttackResult) -> list[Control]:
    """A recogniser must recognise people in speech that is not protected."""
    if attack.knowledge.reference:
        value = measured.eer
        who, name = "the ready recogniser", ""
    elif attack.knowledge.trained:
        sides, spoken = setting.sides, (setting.speech.original, setting.speech.digest)
        heard = attack.recogniser.heard(
            *spoken, setting.stages, f"original speech, control of {attack.knowledge.name}", spoken
        )
        scored = score_sides(
            sides,
            attack.recogniser.mapped(chosen_rows(heard, sides.enroll), "enroll"),
            attack.recogniser.mapped(chosen_rows(heard, sides.trial), "open"),
        )
        value = setting.eer(scored)
        who, name = f"the {attack.knowledge.name} attacker", attack.knowledge.name
    else:
        return []
    return [positive_control(who, name, value)]


def positive_control(who: str, name: str, value: Estimate) -> Control:
    """Whether ``who`` recognises people in original speech."""
    return Control(
        code="positive",
        attacker=name,
        question=f"Does {who} recognise people in original speech?",
        expected=f"EER of {_percent(RECOGNISES)} or less",
        found=f"EER {_percent(value.value)}",
        passed=value.value <= RECOGNISES,
        value=value,
    )


def _training(setting: _Setting, attack: Attack) -> list[Control]:
    """A trained recogniser must be better than chance, and not weaker than the untrained one."""
    from voxrisk.attack.adapter import adapter_fit
    from voxrisk.attack.recipes import ADAPTED

    held = attack.recogniser
    if held.training is None:
        return []
    chosen, name = setting.chosen, attack.knowledge.name
    unlearn = attack.knowledge.unlearns
    draw = _Draw(seed=chosen.seed, resamples=chosen.limits.resamples, confidence=chosen.confidence)
    question = f"Did the {name} attacker learn to recognise people it was not trained on?"
    expected = "better than chance, and not worse than the untrained recogniser"
    try:
        if held.vectors is not None:
            fit = held.fit or adapter_fit(
                ADAPTED, targets=held.targets, unlearn=unlearn, seed=chosen.seed
            )
            result = training_control(held.vectors, fit, **draw)
        elif held.held_out is not None:
            result = held_out_control(*held.held_out, **draw)
        else:
            raise InputError("no training speaker could be kept out of the training")
    except InputError:
        return [
            Control(
                code="training",
                attacker=name,
                question=question,
                expected=expected,
                found="could not be checked with this training speech",
                passed=None,
            )
        ]
    return [
        Control(
            code="training",
            attacker=name,
            question=question,
            expected=expected,
            found=f"EER {_percent(result.trained.value)} on held-out training speakers, untrained "
            f"{_percent(result.untrained.value)}",
            passed=not result.failed,
            value=result.trained,
        )
    ]


def _targets(setting: _Setting, attack: Attack) -> list[Control]:
    """Target voices that are unlearned must be those of the training speech."""
    held, chosen = attack.recogniser, setting.chosen
    if not (attack.knowledge.unlearns and held.targets and held.vectors is not None):
        return []
    draw = _Draw(seed=chosen.seed, resamples=chosen.limits.resamples, confidence=chosen.confidence)
    try:
        told = target_control(held.vectors, held.targets, **draw)
    except InputError:
        return []  # too little training speech to judge; the control of the training says so
    return [
        Control(
            code="targets",
            attacker=attack.knowledge.name,
            question="Are the target voices that the attacker unlearns those of its training "
            "speech?",
            expected="before unlearning they can be told better than by chance",
            found=f"told wrongly in {_percent(told.ver_target.value)} of held-out utterances, "
            f"by chance in {_percent(told.ver_target.chance)}",
            passed=not told.failed,
            value=told.ver_target,
        )
    ]


def _kind(setting: _Setting, attack: Attack) -> list[Control]:
    """Training speech that the user gives must be of the kind of the published speech."""
    held, chosen, speech = attack.recogniser, setting.chosen, setting.speech
    if not chosen.train_anonymized or attack.knowledge.trains_on != "anonymized":
        return []
    trained = held.vectors or (held.held_out[1] if held.held_out else None)
    if trained is None:
        return []
    before, after = (
        embed_stage(rows, digest, chosen.encoder, setting.stages, label)
        for rows, digest, label in (
            (speech.original, speech.digest, "original speech"),
            (speech.anonymized, speech.anonymized_digest, "anonymized speech"),
        )
    )
    if held.suite is not None:  # what the ready encoder hears stands first
        trained = replace(trained, vectors=trained.vectors[:, : before.vectors.shape[1]])
    return [kind_control(attack.knowledge.name, before, after, trained)]


def _negative(
    sides: Sides, attacks: Sequence[Attack], measured: Mapping[str, AttackResult]
) -> list[Control]:
    """With speakers exchanged, the strongest attack must find nobody."""
    best = strongest(list(measured.values()), "rocch_eer", least=True)
    attack = next((a for a in attacks if best and a.knowledge.name == best.name), None)
    if attack is None:
        return []
    genders = {row.speaker: row.gender or "" for row in sides.rows.values()}
    return negative_control(attack.trials, genders if sides.same_gender else {})


def negative_control(scored: Trials, genders: Mapping[str, str]) -> list[Control]:
    """With speakers exchanged (within ``genders``, where given), scores must tell nobody."""
    drawn = shuffled_eers(scored, genders, shuffles=SHUFFLES)
    if not drawn.size:
        return []
    middle = float(drawn.mean())
    allowed = max(NEAR_CHANCE, 3.0 * float(drawn.std()) / np.sqrt(drawn.size))
    return [
        Control(
            code="negative",
            question="Does the attack fail where it must: with the names of speakers exchanged?",
            expected="EER of about 50 %",
            found=f"EER {_percent(middle)} on average over {drawn.size} exchanges "
            f"({_percent(float(drawn.min()))} to {_percent(float(drawn.max()))})",
            passed=bool(abs(middle - 0.5) <= allowed),
        )
    ]


def shuffled_eers(
    scored: Trials, genders: Mapping[str, str], *, shuffles: int, seed: int = 0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """EERs of the same scores when every speaker is taken for another one (of the same gender).

    The true pairs are left out. ``(shuffles,)``; empty where nobody can be exchanged.
    """
    random = np.random.default_rng([seed, 0x5E])
    kind = np.unique([genders.get(s, "") for s in scored.speakers], return_inverse=True)[1]
    groups = [np.flatnonzero(kind == k) for k in np.unique(kind)]
    groups = [g for g in groups if g.size > 1]
    found = []
    for _ in range(shuffles if groups else 0):
        other = np.arange(len(scored.speakers))
        for group in groups:  # a cycle through the group in random order: nobody stays
            order = random.permutation(group)
            other[order] = np.roll(order, 1)
        moved = other[scored.trial_speaker] != scored.trial_speaker
        keep = ~scored.is_target & moved
        target = keep & (scored.enroll_speaker == other[scored.trial_speaker])
        rest = keep & ~target
        if target.any() and rest.any():
            found.append(interpolated_eer(scored.score[target], scored.score[rest]))
    return np.array(found)


def _words(setting: _Setting, measured: Sequence[AttackResult]) -> Control:
    """What an attacker gets who reads and never listens."""
    from voxrisk.attack.words import score_words

    question = "Could the words alone give speakers away?"
    expected = "an attacker who only reads the transcripts does no better than chance"
    sides = setting.sides
    try:
        scored = score_words(
            [sides.rows[u] for u in sides.enroll],
            [sides.rows[u] for u in sides.trial],
            sides.listed,
            enrolments=sides.models,
        )
    except InputError:
        return Control(
            code="words",
            question=question,
            expected=expected,
            found="not checked: not every utterance has a transcript",
            passed=None,
        )
    value = setting.eer(sides.scored(scored.score))
    best = strongest(measured, "rocch_eer", least=True)
    better = value.interval is not None and value.interval.high < value.chance
    said = f"EER {_percent(value.value)} from words alone"
    if best is not None:
        said += f"; the strongest attacker on voices has {_percent(best.eer.value)}"
        if better:
            share = min((0.5 - value.value) / max(0.5 - best.eer.value, 1e-9), 1.0)
            said += f". Words may explain up to {100 * share:.0f}\u00a0% of the way from guessing"
    all_of_it = better and best is not None and value.value <= best.eer.value
    return Control(
        code="words",
        question=question,
        expected=expected,
        found=said,
        passed=not all_of_it,
        value=value,
    )
