"""What a study should take, so that its stages can tell how far it is.

It is reckoned once the speech is there and cut: then what the attackers will listen to is known.
Nothing is decided here; a study that takes another way only shows that this was an estimate.
"""

from collections.abc import Iterator

from voxrisk.knowledge import attacker
from voxrisk.pipeline.course import Course, Step
from voxrisk.pipeline.recognisers import EACH
from voxrisk.pipeline.slicing.choices import DURATIONS
from voxrisk.pipeline.slicing.cuts import Pieces, source_of
from voxrisk.pipeline.slicing.listeners import LISTENERS
from voxrisk.pipeline.slicing.material import Material
from voxrisk.pipeline.slicing.privacy import pieces_sides, used_rows
from voxrisk.pipeline.slicing.reassembly import sides_or_none
from voxrisk.pipeline.slicing.words_heard import hearing, teaching
from voxrisk.pipeline.speech import limited
from voxrisk.pipeline.stages import say, seconds_of
from voxrisk.progress import duration
from voxrisk.protect.anonymizers import named_tool
from voxrisk.slicing_results import CLEAR
from voxrisk.types import cores


def set_course(material: Material) -> None:
    """Tell what the study should take, and let its stages tell how far it is."""
    stages = material.stages
    behind = [Step(took.stage, took.what, took.speech_seconds) for took in stages.took]
    course = Course([*behind, *expected_steps(material)])
    for took in stages.took:
        course.passed(took)
    stages.course = course
    say(
        f"about {duration(course.left)} to come on {cores()} {'cores' if cores() > 1 else 'core'}, "
        "less where stages are finished already"
    )


def expected_steps(material: Material) -> list[Step]:
    """The stages that a study still goes through, if nothing is finished yet."""
    chosen = material.chosen
    steps: list[Step] = []
    if chosen.train or chosen.train_anonymized:
        steps += _taught(material)
    if chosen.privacy:
        steps += _listened(material)
    if chosen.text and material.words[CLEAR] is not None:
        steps += [Step("read", "", seconds_of(p.rows)) for p in _clear(material)]
    if chosen.speech:
        steps += _followed(material)
    if chosen.utility and material.words[CLEAR] is not None:
        steps.append(Step("utility", *hearing(material)))
        if chosen.train and chosen.trained:
            steps.append(Step("utility", *teaching(material)))
    return steps


def _clear(material: Material) -> list[Pieces]:
    return [pieces for (kind, _), pieces in material.sliced.items() if kind == CLEAR]


def _taught(material: Material) -> Iterator[Step]:
    """What other people's speech is needed for."""
    chosen = material.chosen
    source = chosen.train or chosen.train_anonymized
    assert source is not None
    rows = material.stages.read(source)
    seconds = seconds_of(limited(rows, chosen.limits.train_minutes, each=EACH))
    yield Step("check", "", seconds)
    if chosen.anonymizer:
        yield Step("anonymize", named_tool(chosen.anonymizer, chosen.options)[0], seconds)
    if chosen.privacy and chosen.protected:
        yield Step("embed", chosen.encoder, seconds)
        yield Step("train", "", seconds)
    if (chosen.speech or chosen.trained) and material.words[CLEAR] is not None:
        yield Step("align", "", seconds)
    if chosen.speech:
        for _ in material.conditions:
            yield Step("learn", "", seconds * len(DURATIONS))


def _listened(material: Material) -> Iterator[Step]:
    """Whole, sliced and shortened speech of every kind, and who recognises people in it."""
    sides, chosen = sides_or_none(material), material.chosen
    if sides is None:
        return
    able = material.evaluation.train or material.evaluation.train_anonymized
    names = {*sides.enroll, *sides.trial}
    for condition in material.conditions:
        rows = material.rows(condition)[0]
        yield Step("embed", chosen.encoder, seconds_of(rows))
        used = [row for row in rows if row.utterance in names]
        for most in chosen.shortened:
            yield Step("embed", chosen.encoder, sum(min(row.duration or 5.0, most) for row in used))
        for pieces in (p for (kind, _), p in material.sliced.items() if kind == condition):
            mine = pieces_sides(sides, pieces, tried=chosen.tried, seed=chosen.seed)
            if mine is not None:
                heard = used_rows(pieces, mine, material.stages)[0]
                yield Step("embed", chosen.encoder, seconds_of(heard))
        people = [name for name in LISTENERS[condition] if able or not attacker(name).trained]
        pieces_of_each = 1 + len(chosen.shortened) + len(chosen.durations)
        yield from [Step("recognise")] * (len(people) * pieces_of_each)


def _followed(material: Material) -> Iterator[Step]:
    """Every draw of utterances at every length."""
    chosen = material.chosen
    for pieces in material.sliced.values():
        sources = len({source_of(row) for row in pieces.rows})
        drawn = min(chosen.drawn, sources)
        draws = chosen.draws if sources > drawn else 1
        each = seconds_of(pieces.rows) * drawn / sources
        yield from [Step("follow", "", each)] * draws
