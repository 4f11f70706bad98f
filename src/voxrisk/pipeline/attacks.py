"""Run every attacker the inputs allow: which can run is known before the work starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voxrisk.attack.suite import Judged
from voxrisk.corpus import Utterance
from voxrisk.files.embeddings import write_embeddings
from voxrisk.files.scores import write_scores
from voxrisk.knowledge import ATTACKERS, Knowledge, attacker
from voxrisk.measure import Trials
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.given import given_enrolment
from voxrisk.pipeline.recogniser import Recogniser
from voxrisk.pipeline.recognisers import train_recogniser, training_people
from voxrisk.pipeline.sides import Sides, chosen_rows, score_sides
from voxrisk.pipeline.speech import Speech, anonymize_stage
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.suite import member_trials
from voxrisk.types import Embeddings, InputError

# Why an attacker that needs something cannot run without it.
MISSING = {
    "train": "it trains on speech of other people (--train or --train-anonymized)",
    "anonymizer": "it anonymizes its training speech with the very anonymizer (--anonymizer), or "
    "has it anonymized (--train-anonymized)",
    "similar": "it trains on speech from a similar anonymizer (--similar)",
    "targets": "this anonymizer has no target voices that several utterances share, so there is "
    "nothing to unlearn",
}


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """What one attacker had in hand, and its scores; a figure is not among them.

    ``members`` are the scores of what it chose from, if it did.
    """

    knowledge: Knowledge
    recogniser: Recogniser
    enroll: Embeddings
    trial: Embeddings
    trials: Trials
    members: tuple[tuple[Judged, Trials], ...] = ()


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """Attackers that will run, the training speech they share, and why others do not run."""

    attackers: tuple[Knowledge, ...]
    people: tuple[Utterance, ...]
    notices: tuple[Notice, ...]


def plan_attacks(chosen: Evaluation, speech: Speech, stages: Stages) -> AttackPlan:
    """The attackers that can run, in order of knowledge; everything they need is checked now.

    Raises:
        InputError: If an attacker that was asked for cannot run, or the training speech cannot
            train any.
    """
    have = _available(chosen, speech, stages)
    missing = {k.name: [need for need in k.needs if need not in have] for k in ATTACKERS.values()}
    possible = [k for k in ATTACKERS.values() if not missing[k.name]]
    if chosen.attackers:
        wanted = [attacker(name) for name in dict.fromkeys(("original", *chosen.attackers))]
        for k in wanted:
            if missing[k.name]:
                why = "; ".join(MISSING[need] for need in missing[k.name])
                raise InputError(
                    f"attacker {k.name!r} cannot run on these inputs: {why}. Possible now: "
                    f"{', '.join(p.name for p in possible)}"
                )
        possible = [k for k in possible if k in wanted]
    people: Sequence[Utterance] = ()
    if any(k.trained for k in possible):
        people = training_people(chosen, speech, stages)
    # With training speech at hand a reader expects the trained attackers: say why one is not there.
    notices = [
        notice("attacker_impossible", attacker=name, why=MISSING[needs[0]])
        for name, needs in missing.items()
        if (chosen.train or chosen.train_anonymized)
        and not chosen.attackers
        and needs == ["targets"]
    ]
    return AttackPlan(tuple(possible), tuple(people), tuple(notices))


def _available(chosen: Evaluation, speech: Speech, stages: Stages) -> set[str]:
    """Which of the needs of attackers the inputs meet."""
    given = chosen.train_anonymized
    # Targets are unlearned in training: where that speech is given, it must name them.
    rows = stages.read(given) if given else speech.anonymized
    targets = {row.extra.get("target") or None for row in rows}
    have = {
        "train": chosen.train or given,
        "anonymizer": chosen.anonymizer or given,
        "similar": chosen.similar,
    }
    found = {name for name, value in have.items() if value}
    # A pseudo-speaker of its own for each utterance is no class that could be unlearned.
    if None not in targets and 1 < len(targets) <= len(rows) / 4:
        found.add("targets")
    return found


def run_attacks(
    chosen: Evaluation, plan: AttackPlan, speech: Speech, sides: Sides, stages: Stages, folder: Path
) -> tuple[list[Attack], list[Notice]]:
    """Every planned attack; one that fails is named with its reason, and the others go on.

    Raises:
        InputError: If the reference itself cannot run.
    """
    done: list[Attack] = []
    failed: list[Notice] = []
    for knowledge in plan.attackers:
        try:
            attack = run_attack(chosen, knowledge, plan.people, speech, sides, stages)
        except InputError as error:
            if not knowledge.trained:
                raise
            failed.append(
                notice("attacker_failed", attacker=knowledge.name, detail=str(error),
                       why="its training was refused")
            )  # fmt: skip
            continue
        for side, held in (("enroll", attack.enroll), ("trial", attack.trial)):
            write_embeddings(folder / "embeddings" / f"{knowledge.slug}-{side}.npz", held)
        write_scores(
            folder / "scores" / f"scores-{knowledge.slug}.csv",
            [trial.enroll for trial in sides.listed],
            [trial.trial for trial in sides.listed],
            attack.trials.score,
        )
        done.append(attack)
    return done, failed


def run_attack(
    chosen: Evaluation,
    knowledge: Knowledge,
    people: Sequence[Utterance],
    speech: Speech,
    sides: Sides,
    stages: Stages,
) -> Attack:
    """Train (if needed), embed and score one attacker."""
    recogniser = train_recogniser(chosen, knowledge, people, stages)
    kinds = {
        "original": (speech.original, speech.digest),
        "anonymized": (speech.anonymized, speech.anonymized_digest),
    }
    enrols = knowledge.enrols
    if enrols == "anonymized" and speech.enrolled:
        enrols = "enrolled"
        mine = tuple(given_enrolment(chosen, speech, sides.enroll))
        kinds[enrols] = mine, digest_corpus(mine, stages.folder / "hashes.json")
    elif enrols == "anonymized" and chosen.draws_apart:
        enrols = "enrolled"
        kinds[enrols] = _anonymized_again(chosen, speech, sides, stages)
    what = f"speech, {knowledge.name}"
    # Who is enrolled can be heard as they were too, by an attacker who makes use of that.
    before = speech.original, speech.digest
    raw = (
        chosen_rows(
            recogniser.heard(*kinds[enrols], stages, f"{enrols} {what}", before), sides.enroll
        ),
        chosen_rows(
            recogniser.heard(*kinds[knowledge.tests], stages, f"{knowledge.tests} {what}"),
            sides.trial,
        ),
    )
    enroll, trial = recogniser.mapped(raw[0], "enroll"), recogniser.mapped(raw[1], "trial")
    members: tuple[tuple[Judged, Trials], ...] = ()
    if recogniser.suite is not None:
        members = member_trials(recogniser.suite, *raw, sides)
    scored = score_sides(sides, enroll, trial)
    return Attack(knowledge, recogniser, enroll, trial, scored, members)


def _anonymized_again(
    chosen: Evaluation, speech: Speech, sides: Sides, stages: Stages
) -> tuple[tuple[Utterance, ...], str]:
    """The enrolled speech as the attacker anonymizes it, and its digest.

    The attacker has the tool, not the draws: with one target for all speech of a person, the
    published version of the enrolled speech would give the target away.
    """
    hashes = stages.folder / "hashes.json"
    enrolled = set(sides.enroll)
    rows = [row for row in speech.original if row.utterance in enrolled]
    digest = digest_corpus(rows, hashes)
    made = anonymize_stage(chosen, rows, digest, stages, hashes, purpose="enrolment")[0]
    return tuple(made), digest_corpus(made, hashes)
