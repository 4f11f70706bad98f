"""The verdict: what the figures say about the three criteria of Opinion 05/2014, and no more."""

from collections.abc import Mapping, Sequence
from typing import Any

from voxrisk.corpus import Utterance
from voxrisk.pipeline.attacks import Attack
from voxrisk.pipeline.speech import Warned
from voxrisk.types import Estimate

FEW_SPEAKERS = 20
MANY_WORDS = 0.4  # share of wrong words
MEANING = {
    "singling_out": (
        "singling out",
        "an attacker isolates exactly one person among {N} with {value}",
    ),
    "linkability": (
        "linkability",
        "an attacker finds the right person among {N} with {value}",
    ),
}


def verdict(attacks: Sequence[Attack]) -> dict[str, Any]:
    """Three criteria, each with the worst attacker and setting, and a headline."""
    criteria = [_criterion(metric, attacks) for metric in MEANING]
    criteria.append(
        _not_assessed("inference", "Whether attributes such as age, health or origin can be "
                      "inferred from the voice was not assessed.")
    )  # fmt: skip
    found = [c for c in criteria if c["assessed"]]
    if not found:
        headline = "The risk of re-identification could not be assessed with this speech."
    elif all(c["level"] == "as original" for c in found):
        headline = (
            "For the strongest attacker tried, this protection made no measurable difference."
        )
    elif as_before := [c["criterion"] for c in found if c["level"] == "as original"]:
        headline = (
            f"By {' and '.join(as_before)}, the strongest attacker tried does measurably no worse "
            "than on original speech."
        )
    elif any(c["level"] == "above chance" for c in found):
        headline = "Speakers can still be recognised better than by chance after this protection."
    else:
        headline = (
            "None of the attackers tried did measurably better than chance. That is no proof of "
            "anonymity: a stronger attacker may."
        )
    return {"criteria": criteria, "headline": headline}


def _not_assessed(name: str, sentence: str) -> dict[str, Any]:
    return {
        "criterion": name,
        "assessed": False,
        "attacker": None,
        "L": None,
        "N": None,
        "value": None,
        "original": None,
        "level": "not assessed",
        "sentence": sentence,
    }


def _criterion(metric: str, attacks: Sequence[Attack]) -> dict[str, Any]:
    name, words = MEANING[metric]
    ranked = [
        (e.value - e.chance, attack.knowledge.name, e)
        for attack in attacks
        if attack.knowledge.name != "original" and attack.population
        for e in _largest(attack, metric)
    ]
    if not ranked:
        return _not_assessed(name, f"There is too little speech to assess {name}.")
    _, worst, e = max(ranked, key=lambda row: row[0])
    length, size = int(e.parameters["L"]), int(e.parameters["N"])
    original = next(
        (
            o
            for attack in attacks
            if attack.knowledge.name == "original" and attack.population
            for o in attack.population.curve(metric, length)
            if int(o.parameters["N"]) == size
        ),
        None,
    )
    level = compared(e, original)
    said = words.format(N=size, value=f"a success of {e.value:.1%}")
    text = f"From {_spoken(length)} of anonymized speech, {said} (chance: {e.chance:.1%}"
    text += f"; on original speech: {original.value:.1%})." if original else ")."
    return {
        "criterion": name,
        "assessed": True,
        "attacker": worst,
        "L": length,
        "N": size,
        "value": e.to_json(),
        "original": original.to_json() if original else None,
        "level": level,
        "sentence": text,
    }


def _spoken(length: int) -> str:
    return "one utterance" if length == 1 else f"{length} utterances"


def _largest(attack: Attack, metric: str) -> list[Estimate]:
    """For each L, the estimate with the largest crowd."""
    assert attack.population is not None
    lengths = {int(e.parameters["L"]) for e in attack.population.estimates if e.name == metric}
    return [attack.population.curve(metric, length)[-1] for length in sorted(lengths)]


def compared(e: Estimate, original: Estimate | None) -> str:
    """Hold an estimate against chance and against original speech."""
    low = e.interval.low if e.interval else e.value
    if low <= e.chance or e.value <= e.chance:
        return "at chance"
    high = e.interval.high if e.interval else e.value
    if original and high >= original.value:
        return "as original"
    return "above chance"


def general_warnings(
    speakers: int,
    attacks: Sequence[Attack],
    by: str,
    synthetic: str | None,
    *,
    shared_targets: bool = False,
    drawn_apart: bool = False,
) -> list[Warned]:
    """What a reader must know whatever the figures are."""
    found = []
    if synthetic:
        found.append(
            Warned("serious", f"These voices are synthetic ({synthetic}): the figures show how "
                   "voxrisk works, not what real speech would give.")
        )  # fmt: skip
    if speakers < FEW_SPEAKERS:
        found.append(
            Warned("serious", f"Only {speakers} speakers: the risk in a larger crowd, or for "
                   "other people, is not known from these figures.")
        )  # fmt: skip
    if by == "utterance":
        found.append(
            Warned("serious", "Recording sessions are not known, so enrolled and tried speech may "
                   "share a room and a microphone; this makes speakers look easier to recognise.")
        )  # fmt: skip
    for attack in attacks:
        if attack.knowledge.name == "original":
            from voxrisk.measure import rocch_eer

            eer = rocch_eer(attack.trials.roc)
            if eer > 0.35:
                found.append(
                    Warned("serious", f"The recogniser hardly tells original voices apart (EER "
                           f"{eer:.0%}): its failure on protected speech proves nothing.")
                )  # fmt: skip
    if shared_targets and drawn_apart:
        found.append(
            Warned("serious", "All utterances of a speaker have the same target voice, by which "
                   "everybody who holds two of them can link them. The attackers below do not use "
                   "this: they draw targets of their own for the speech they enrol.")
        )  # fmt: skip
    elif shared_targets:
        found.append(
            Warned("serious", "All utterances of a speaker have the same target voice, in enrolled "
                   "and in tried speech alike. The attackers who enrol anonymized speech may "
                   "recognise the target instead of the speaker.")
        )  # fmt: skip
    trained = [a for a in attacks if a.knowledge.trained]
    if not trained:
        found.append(
            Warned("serious", "No attacker was trained on anonymized speech. Such attackers are "
                   "usually the strongest; add --train to run them.")
        )  # fmt: skip
    return found


def worst_first(attacks: Sequence[Attack], eers: Mapping[str, float]) -> list[Attack]:
    """The most successful attacker on protected speech first, the reference last."""
    return sorted(attacks, key=lambda a: (a.knowledge.name == "original", eers[a.knowledge.name]))


def lost_words(utility: Mapping[str, Any]) -> list[Warned]:
    """Speech that nobody understands hides its speaker too; say so where words were lost."""
    found = (utility.get("wer") or {}).get("anonymized")
    before = (utility.get("wer") or {}).get("original")
    if not found or not before or found["value"] < max(MANY_WORDS, 2 * before["value"]):
        return []
    return [
        Warned("serious", f"A speech recogniser gets {found['value']:.0%} of the words wrong after "
               f"this protection ({before['value']:.0%} before). Speakers may be hard to recognise "
               "because the speech is damaged, not because it is well protected.")
    ]  # fmt: skip


def share_targets(rows: Sequence[Utterance]) -> bool:
    """Whether every speaker has one target voice only, and there are several."""
    own: dict[str, set[str]] = {}
    for row in rows:
        if not row.extra.get("target"):
            return False
        own.setdefault(row.speaker, set()).add(row.extra["target"])
    several = len(set().union(*own.values())) > 1 if own else False
    return several and all(len(targets) == 1 for targets in own.values())
