"""From scores to figures: what is measured about each attack, and about all voices together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from voxrisk.attack.joined import UNDONE
from voxrisk.corpus.groups import UNKNOWN, Groups, group_speakers
from voxrisk.knowledge import Knowledge
from voxrisk.measure import (
    Population,
    Protocol,
    Trials,
    evaluate_similarity,
    measure_crowd,
    measure_scores,
    segment_trials,
    similarity_matrix,
    tag,
)
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.attacks import Attack
from voxrisk.pipeline.evaluation import Draws, Evaluation
from voxrisk.pipeline.profiles import profile_of
from voxrisk.pipeline.recogniser import embed_stage
from voxrisk.pipeline.sharing import is_shown
from voxrisk.pipeline.sides import Sides
from voxrisk.pipeline.speech import Speech
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.suite import WORDS
from voxrisk.results import (
    AttackResult,
    ErrorCurve,
    Group,
    Person,
    SetResult,
    SimilarityResult,
    SuiteMember,
)
from voxrisk.shards import spread
from voxrisk.types import Embeddings, Estimate, InputError

POINTS = 400  # of an error curve
SMALLEST_GROUP = 5
GROUPS = ("gender", "age", "language")
MOST_KINDS = 8
ONE_SMALL = "one smaller group"


def figures_of(chosen: Draws, scored: Trials) -> Mapping[str, Estimate]:
    """Every score figure; with intervals where there are enough speakers."""
    resamples = chosen.limits.resamples if len(scored.speakers) >= MIN_SPEAKERS else 0
    return dict(
        measure_scores(scored, resamples=resamples, seed=chosen.seed, confidence=chosen.confidence)
    )


def measure_attack(
    chosen: Draws,
    attack: Attack,
    sides: Sides,
    similarity: SimilarityResult | None,
) -> tuple[AttackResult, list[Notice]]:
    """Everything that is said about one attack, speakers under their own names."""
    crowd, notices = crowd_of_attack(chosen, attack.knowledge.name, attack.enroll, attack.trial)
    result = replace(
        score_result(chosen, attack.knowledge, attack.trials),
        extractor=_extractor(attack, chosen) if isinstance(chosen, Evaluation) else "",
        training=attack.recogniser.training,
        crowd=crowd.estimates if crowd else (),
        groups=tuple(_groups(attack.trials, chosen, sides)),
        sets=set_figures(chosen, attack.trials, sides),
        speakers=tuple(_people(attack, crowd, similarity)) if crowd else (),
        members=tuple(_members(chosen, attack)),
    )
    return result, notices


def score_result(chosen: Draws, knowledge: Knowledge, scored: Trials) -> AttackResult:
    """What scores alone say about an attack."""
    curve = scored.roc
    figures = figures_of(chosen, scored)
    step = np.unique(np.linspace(0, curve.miss.size - 1, POINTS).astype(int))
    return AttackResult(
        name=knowledge.name,
        voiceprivacy=knowledge.voiceprivacy,
        paper1=knowledge.paper1,
        knows=knowledge.knows,
        enrols=knowledge.enrols,
        tests=knowledge.tests,
        reference=knowledge.reference,
        figures=figures,
        tag=tag(figures["log10_l"].value),
        ece=profile_of(curve),
        det=ErrorCurve(
            false_alarm=tuple(curve.false_alarm[step].tolist()),
            miss=tuple(curve.miss[step].tolist()),
        ),
        sizes=scored.sizes,
        colour=knowledge.colour,
        mark=knowledge.mark,
    )


def set_figures(chosen: Draws, scored: Trials, sides: Sides) -> tuple[SetResult, ...]:
    """Figures on each set of trials alone; a set whose trials are all of one kind has none."""
    found = []
    for name, places in sides.sets.items():
        part = sides.scored(scored.score, only=places)
        told = part.target.size and part.nontarget.size
        figures = figures_of(chosen, part) if told else {}
        found.append(SetResult(name=name, figures=figures, sizes=part.sizes))
    return tuple(found)


def _members(chosen: Draws, attack: Attack) -> Iterator[SuiteMember]:
    """What the attacker chose from, each with its EER on either kind of speakers."""
    for judged, trials in attack.members:
        if judged.eer is not None:
            yield SuiteMember(
                hears=shown_block(judged.member.hears),
                backend=judged.member.backend,
                weight=judged.weight,
                held_out=judged.eer,
                eer=figures_of(chosen, trials)["rocch_eer"],
                aside=judged.aside,
            )


def shown_block(block: str) -> str:
    """What a member hears with, for eyes that may not see the paths of a user.

    >>> shown_block("undone ecapa-voxceleb"), shown_block("undone /home/me/encoder")
    ('undone ecapa-voxceleb', 'undone encoder of the user')
    """
    from voxrisk.pipeline.evaluation import is_ready

    name = block.removeprefix(UNDONE)
    if name == WORDS or is_ready(name):
        return block
    return block.removesuffix(name) + "encoder of the user"


def crowd_of_attack(
    chosen: Draws, name: str, enrolled: Embeddings, tested: Embeddings
) -> tuple[Population | None, list[Notice]]:
    """Singling Out, Linkability and EER for each L that enough speakers have speech for."""
    tested = _known_and_new(enrolled, tested)
    speakers = np.unique(enrolled.speaker).size
    each = np.unique(tested.speaker, return_counts=True)[1]
    lengths = [L for L in chosen.limits.lengths if (each >= 2 * L).sum() >= max(2, speakers / 2)]
    if not lengths:
        return None, [notice("no_crowd")]
    sizes = sorted(
        {n for n in (5, 10, 20, *(100 * 2**k for k in range(20))) if n < speakers} | {speakers}
    )
    protocol = Protocol(
        lengths=tuple(lengths),
        sizes=tuple(sizes),
        trials=10,
        seed=chosen.seed,
        resamples=chosen.limits.resamples if speakers >= MIN_SPEAKERS else 0,
        confidence=chosen.confidence,
    )
    try:
        found = measure_crowd(
            enrolled=enrolled, tested=tested, attacker=name, protocol=protocol, spread=spread
        )
    except InputError as error:
        return None, [notice("crowd_failed", attacker=name, detail=str(error))]
    return found, []


def _known_and_new(enrolled: Embeddings, tested: Embeddings) -> Embeddings:
    """Tested speech of enrolled people that is not enrolled itself.

    Official lists try people whom nobody enrolled, and what enrols in one set may be tried in
    another. Neither belongs into a crowd.
    """
    kept = np.isin(tested.speaker, enrolled.speaker)
    kept &= ~np.isin(tested.utterance, enrolled.utterance)
    if kept.all() or not kept.any():
        return tested
    return Embeddings(
        tested.utterance[kept], tested.speaker[kept], tested.vectors[kept], tested.source
    )


def _extractor(attack: Attack, chosen: Evaluation) -> str:
    """What the attacker recognises speakers with, in words."""
    from voxrisk.pipeline.evaluation import is_ready

    name = chosen.encoder if is_ready(chosen.encoder) else "an encoder of the user"
    trained = attack.recogniser.training
    if trained is None:
        return f"{name}, trained on original speech"
    if (suite := attack.recogniser.suite) is not None:
        parts = "; ".join(f"{j.member.name} ({100 * j.weight:.0f}\u00a0%)" for j in suite.chosen)
        return (
            f"{len(suite.maps)} recognisers, trained on this anonymizer's speech: "
            f"{trained.utterances} utterances of {trained.speakers} other speakers; chosen: {parts}"
        )
    unlearns = {
        "erase": ", after erasing what tells target voices apart",
        "reverse": ", unlearning target voices against a head that tells them",
        None: "",
    }[attack.knowledge.unlearns]
    kind = f"{name} with a map behind it" if attack.recogniser.after else "an ECAPA-TDNN"
    whose = "a similar" if attack.knowledge.trains_on == "similar" else "this"
    whose += " anonymizer's speech"
    if attack.knowledge.trains_on == "anonymized" and chosen.train_anonymized:
        whose = "speech that was given as anonymized alike"
    return (
        f"{kind}, trained on {whose}{unlearns}: {trained.utterances} "
        f"utterances of {trained.speakers} other speakers"
    )


def _groups(scored: Trials, chosen: Draws, sides: Sides) -> list[Group]:
    """Figures within each group of speakers, by the columns that were asked for or are known."""
    asked: tuple[str, ...] = getattr(chosen, "group_by", ())
    found = []
    for column in asked or GROUPS:
        groups = group_speakers(list(sides.rows.values()), column, smallest=SMALLEST_GROUP)
        if not asked and not _plain(groups):
            continue
        for kind in groups.order:
            member = np.array([groups.member.get(s) == kind for s in scored.speakers])
            part = scored.among(member)
            n = int(member.sum())
            few = n < SMALLEST_GROUP or not (part.is_target.any() and (~part.is_target).any())
            figures = {} if few else figures_of(chosen, part)
            shown = {name: figures[name] for name in ("rocch_eer", "d_ece") if name in figures}
            # A kind that hardly anybody has may name its people, whoever asked for it.
            named = n >= SMALLEST_GROUP or groups.is_made(kind) or is_shown(column, kind)
            value = kind if named else ONE_SMALL
            found.append(Group(group=column, value=value, speakers=n, figures=shown))
    return found


def _plain(groups: Groups) -> bool:
    """Whether groups that nobody asked for are worth a table, and their names name nobody."""
    kinds = [kind for kind in groups.order if kind != UNKNOWN]
    named = [kind for kind in kinds if not groups.is_made(kind)]
    return 1 < len(kinds) <= MOST_KINDS and all(is_shown(groups.column, kind) for kind in named)


def _people(attack: Attack, crowd: Population, similarity: SimilarityResult | None) -> list[Person]:
    """Each speaker's own risk at the largest crowd and the longest conversation, worst first."""
    alike: dict[str, float] = {}
    if similarity:
        matrix = getattr(similarity, attack.knowledge.pair.replace("-", "").replace("a", "p"))
        alike = {s: float(matrix[i][i]) for i, s in enumerate(similarity.speakers)}
    spoken, counts = np.unique(attack.trial.speaker, return_counts=True)
    tried = dict(zip(spoken.tolist(), counts.tolist(), strict=True))
    return [
        replace(p, similarity=alike.get(p.speaker), trials=tried.get(p.speaker))
        for p in exposed(crowd)
    ]


def exposed(crowd: Population) -> list[Person]:
    """Each speaker's risk at the largest crowd and the longest conversation, worst first."""
    linked, singled = (_at_largest(crowd, m) for m in ("linkability", "singling_out_self"))
    rows = [
        Person(speaker=speaker, linkability=value, singling_out=singled.get(speaker))
        for speaker, value in linked.items()
    ]
    return sorted(rows, key=lambda p: (-(p.linkability or 0.0), p.speaker))


def _at_largest(crowd: Population, metric: str) -> dict[str, float]:
    mine = [r for r in crowd.speakers if r.metric == metric]
    top = max(((r.length, r.size) for r in mine), default=None)
    return {r.speaker: r.value for r in mine if (r.length, r.size) == top}


def measure_similarity(
    chosen: Evaluation, speech: Speech, stages: Stages
) -> tuple[SimilarityResult | None, list[Notice]]:
    """How alike the voices are to the ready encoder, segment by segment (paper 2, Eq. 2)."""
    o, p = (
        embed_stage(rows, digest, chosen.encoder, stages, label)
        for rows, digest, label in (
            (speech.original, speech.digest, "original speech"),
            (speech.anonymized, speech.anonymized_digest, "anonymized speech"),
        )
    )
    notices = []
    try:
        parts = {
            "oo": segment_trials(o, seed=chosen.seed),
            "op": segment_trials(o, p, seed=chosen.seed),
            "pp": segment_trials(p, seed=chosen.seed),
        }
        matrices = {key: similarity_matrix(part) for key, part in parts.items()}
    except InputError as error:
        why = "the voices cannot be compared in pairs"
        return None, [notice("no_similarity", figure="DeID", why=why, detail=str(error))]
    figures = evaluate_similarity(
        parts["oo"],
        crossed=parts["op"],
        protected=parts["pp"],
        resamples=chosen.limits.resamples if len(matrices["oo"].speakers) >= MIN_SPEAKERS else 0,
        seed=chosen.seed,
        confidence=chosen.confidence,
    )
    labels = {"deid": "DeID", "g_vd": "G_VD"}
    for name, why in figures.undefined.items():
        notices.append(notice("no_similarity", figure=labels[name], why=why.rstrip(".")))
    how = speech.anonymizer.target_selection
    if how is not None and (how.per == "utterance" or several_voices(speech)):
        notices.append(notice("voice_per_utterance"))
    tables = {key: tuple(map(tuple, np.round(m.matrix, 5).tolist())) for key, m in matrices.items()}
    return (
        SimilarityResult(speakers=matrices["oo"].speakers, **tables, figures=dict(figures)),
        notices,
    )


def several_voices(speech: Speech) -> bool:
    """Whether utterances of one speaker have different target voices."""
    own: dict[str, set[str]] = {}
    for row in speech.anonymized:
        if row.extra.get("target"):
            own.setdefault(row.speaker, set()).add(row.extra["target"])
    return any(len(targets) > 1 for targets in own.values())


def share_targets(speech: Speech) -> bool:
    """Whether every speaker has one target voice only, and there are several."""
    targets = {row.extra.get("target") for row in speech.anonymized}
    return (
        "" not in targets
        and None not in targets
        and len(targets) > 1
        and not several_voices(speech)
    )


def worst_first(attacks: Sequence[AttackResult]) -> list[AttackResult]:
    """The most successful attack on protected speech first; failed ones behind; reference last."""
    return sorted(attacks, key=lambda a: (a.reference, not a.ranked, a.eer.value))
