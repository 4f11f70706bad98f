"""What an evaluation will do, and about how long it takes, before it is done.

Nothing is decided here: the steps are read off the same choices that the run follows, and a run
that takes another way (an attacker that fails, files that are broken) only shows that this was an
estimate.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from voxrisk.corpus import Utterance
from voxrisk.corpus.attributes import Attribute, columns_of, read_attribute
from voxrisk.knowledge import ATTACKERS, Knowledge
from voxrisk.pipeline.attribute_attacks import enough_speakers
from voxrisk.pipeline.course import Course, Step
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.inference import DEFAULT, MOONSHINE, PROSODY
from voxrisk.pipeline.recognisers import EACH
from voxrisk.pipeline.speech import limited, pool_of_training
from voxrisk.pipeline.stages import Stages, say, seconds_of
from voxrisk.pipeline.suite import BY, voices
from voxrisk.pipeline.undo import UNDO
from voxrisk.pipeline.usefulness import plan_hearing
from voxrisk.progress import duration
from voxrisk.protect.anonymizers import named_tool, wants_targets
from voxrisk.types import cores

Spoken = dict[str, float]  # a kind of speech → its seconds


def expected_steps(chosen: Evaluation, stages: Stages) -> list[Step]:
    """The stages that this evaluation goes through, if nothing is finished yet."""
    original = stages.read(chosen.original)
    attackers = _attackers(chosen)
    speech: Spoken = {kind: seconds_of(original) for kind in ("original", "anonymized")}
    people = _people(chosen, attackers, stages)
    kinds = sorted({a.trains_on for a in attackers if a.trained}) if people else []
    training = dict.fromkeys(kinds, seconds_of(people))
    hidden = _hidden(chosen, original)
    taught = [a for a in hidden if enough_speakers(people, a)]
    steps = [
        *_made(chosen, attackers, speech, training),
        *_heard(chosen, attackers, speech, training, hidden=bool(hidden), taught=bool(taught)),
        *_learned(attackers, sum(training.values())),
        Step("measure", "", 0.0, "every attack"),
        Step("control", "", 0.0, "every attack"),
    ]
    if chosen.utility:
        asked = seconds_of(limited(original, chosen.limits.asr_minutes))
        by = plan_hearing(chosen, original).asr
        steps.append(Step("utility", by, 2 * asked, "before and after"))
    if hidden:
        steps.append(Step("infer", "", sum(speech.values()), "attributes"))
    return steps


def set_course(chosen: Evaluation, stages: Stages) -> None:
    """Tell what the run should take, and let its stages tell how far it is."""
    stages.course = Course(expected_steps(chosen, stages))
    some = any(stages.folder.iterdir())
    less = "; less where stages are finished already" if some else ""
    say(
        f"effort {chosen.effort}: about {duration(stages.course.total)} on {cores()} "
        f"{'cores' if cores() > 1 else 'core'} of the kind it was measured on{less} "
        "(--dry-run lists the stages)"
    )


def arrived(course: Course, seconds: float) -> str:
    """What a run took beside what it was said to take.

    >>> arrived(Course([Step("measure")]), 32.0)
    'took 32 s; 8 s were expected'
    """
    return f"took {duration(seconds)}; {duration(course.beforehand)} were expected"


def _attackers(chosen: Evaluation) -> list[Knowledge]:
    """Those whose needs the choices meet."""
    have = {
        "train": chosen.train or chosen.train_anonymized,
        "anonymizer": chosen.anonymizer or chosen.train_anonymized,
        "similar": chosen.similar,
        "targets": chosen.anonymizer
        and wants_targets(*named_tool(chosen.anonymizer, chosen.options)),
    }
    wanted = {*chosen.attackers, "original"} if chosen.attackers else set(ATTACKERS)
    return [
        a for a in ATTACKERS.values() if a.name in wanted and all(have[need] for need in a.needs)
    ]


def _people(chosen: Evaluation, attackers: Sequence[Knowledge], stages: Stages) -> list[Utterance]:
    """The speech that attackers train on, as it was."""
    source = chosen.train or chosen.train_anonymized
    if not isinstance(source, Path) or not any(a.trained for a in attackers):
        return []
    pool = pool_of_training(chosen, stages)
    rows = [row for row in stages.read(source) if row.speaker not in pool]
    return limited(rows, chosen.limits.train_minutes, each=EACH)


def _hidden(chosen: Evaluation, original: Sequence[Utterance]) -> list[Attribute]:
    """Attributes that will be inferred: those known of enough people."""
    there = set(columns_of(original))
    names = (*(chosen.hide or DEFAULT), *chosen.keep)
    found = (read_attribute(original, name) for name in names if name in there)
    return [attribute for attribute in found if not attribute.refused]


def _made(
    chosen: Evaluation, attackers: Sequence[Knowledge], speech: Spoken, training: Spoken
) -> Iterator[Step]:
    """Speech that is checked and made."""
    tool = named_tool(chosen.anonymizer or "", chosen.options)[0]
    yield Step("check", "", speech["original"], "original speech")
    if chosen.anonymizer:
        yield Step("anonymize", tool, speech["original"], "evaluation speech")
    yield Step("check", "", speech["anonymized"], "anonymized speech")
    if training:
        yield Step("check", "", max(training.values()), "training speech")
    for kind, seconds in training.items():
        by = chosen.similar if kind == "similar" else tool
        if by and not (kind == "anonymized" and chosen.train_anonymized):
            yield Step("anonymize", by, seconds, f"training speech, {kind}")
    if chosen.anonymizer in UNDO and any(a.chooses for a in attackers):
        for kind, seconds in {"training": training["anonymized"], **speech}.items():
            if kind != "original":
                yield Step("undo", "", seconds, f"{kind} speech")


def _heard(
    chosen: Evaluation,
    attackers: Sequence[Knowledge],
    speech: Spoken,
    training: Spoken,
    *,
    hidden: bool,
    taught: bool,
) -> Iterator[Step]:
    """Every encoder and what it hears, each once."""
    suite = any(a.chooses for a in attackers)
    undone = suite and chosen.anonymizer in UNDO
    listeners = [chosen.encoder, PROSODY]  # of attributes
    listeners += [MOONSHINE] if chosen.hide or chosen.keep else []
    names = [chosen.encoder, *(chosen.suite_encoders if suite else ()), *([BY] if undone else [])]
    learned = {(name, k) for name in names for k in training
               if name == chosen.encoder or k == "anonymized"}  # fmt: skip
    if taught:
        original = {"original": max(training.values())} if chosen.train else {}
        training = {**original, **training}
        learned |= {(name, kind) for name in listeners for kind in training}
    for name in dict.fromkeys([*names, *(listeners if hidden else [])]):
        for kind, seconds in speech.items():
            if name != BY or kind == "anonymized" or name in chosen.suite_encoders:
                yield Step("embed", name, seconds, f"{kind} speech, {name}")
        for kind, seconds in training.items():
            if (name, kind) in learned:
                yield Step("embed", name, seconds, f"training speech, {kind}, {name}")
    for name in voices(chosen.suite_encoders) if undone else ():
        for kind, seconds in (("anonymized", speech["anonymized"]),
                              ("training", training["anonymized"])):  # fmt: skip
            yield Step("embed", name, seconds, f"{kind} speech, undone, {name}")


def _learned(attackers: Sequence[Knowledge], seconds: float) -> Iterator[Step]:
    for a in attackers:
        if a.trained:
            yield Step("suite" if a.chooses else "train", "", seconds, f"{a.name} attacker")
