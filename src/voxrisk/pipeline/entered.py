"""``voxrisk evaluate`` from embeddings or from scores: the same report of what they can tell.

Who has vectors or scores of a system of their own enters here, without speech. What only speech
can tell (usefulness, words, whether files pair up) is said to be missing, never guessed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from voxrisk.corpus import Utterance
from voxrisk.files.atomic import write_text
from voxrisk.files.embeddings import read_embeddings
from voxrisk.files.joining import join
from voxrisk.files.scores import pooled, read_scores, read_speakers, read_trials
from voxrisk.knowledge import ATTACKERS, Knowledge
from voxrisk.measure import Trials
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.advice import next_steps
from voxrisk.pipeline.attacks import Attack
from voxrisk.pipeline.controls import negative_control, positive_control
from voxrisk.pipeline.entry import REFERENCE, Entry
from voxrisk.pipeline.evaluation import YAML, refuse_another_run, yaml_from, yaml_hidden
from voxrisk.pipeline.findings import (
    figures_of,
    measure_attack,
    score_result,
    worst_first,
)
from voxrisk.pipeline.methods import drawn_methods
from voxrisk.pipeline.official import enrolment_words, listed_sides, set_names, side_notices
from voxrisk.pipeline.profiles import zero_profile
from voxrisk.pipeline.pseudonyms import write_shared
from voxrisk.pipeline.recogniser import Recogniser
from voxrisk.pipeline.sides import Sides, chosen_rows, make_sides, paired_sides, score_sides
from voxrisk.pipeline.verdict import give_verdict
from voxrisk.results import (
    Anonymizer,
    AttackResult,
    Control,
    Corpus,
    Encoder,
    Results,
    SetResult,
    UtilityResult,
    Verdict,
    strongest,
)
from voxrisk.types import Embeddings, InputError

FEW_SPEAKERS = 20
UNHEARD = "no speech was given"


@dataclass(frozen=True, slots=True)
class _Found:
    """What the figures of an entry rest on, speakers under their own names."""

    attacks: tuple[AttackResult, ...]
    scored: Mapping[str, Trials]
    corpus: Corpus
    people: tuple[str, ...]
    enrolment: str
    notices: tuple[Notice, ...]


def evaluate_entry(chosen: Entry, folder: Path, *, force: bool = False) -> Results:
    """Measure embeddings or scores, and write everything into ``folder``; returns the results.

    Raises:
        InputError: If the files do not fit together; the message says where and the way out.
    """
    yaml = yaml_from(chosen.plain(), folder)
    refuse_another_run(yaml, folder, force=force)
    found = _embedded(chosen) if chosen.embeddings else _scored(chosen)
    controls = _controls(chosen, found)
    few = len(found.people)
    notices = [notice("entered", kind=chosen.kind, missing=MISSING[chosen.kind])]
    if few < FEW_SPEAKERS:
        notices.append(notice("few_speakers", speakers=few))
    results = Results(
        kind="evaluate",
        title=chosen.title or f"Figures of {chosen.kind} as given",
        corpus=found.corpus,
        anonymizer=Anonymizer(name="not known", description=UNHEARD),
        encoder=Encoder(name="not known", description=f"{chosen.kind} were given", sha256=""),
        verdict=_verdict(chosen, found.attacks, controls),
        controls=controls,
        notices=(*notices, *found.notices),
        attacks=found.attacks,
        zero_evidence=zero_profile(),
        utility=UtilityResult(missing={"all": UNHEARD}),
        methods=replace(
            drawn_methods(chosen, found.attacks),
            enrolment=found.enrolment,
            hashes=_hashes(chosen),
            evaluation_yaml=yaml_hidden(chosen.plain()),
        ),
    )
    trained = any(knowledge_of(a.name).trained for a in found.attacks)
    steps = [n for n in next_steps(results) if not (trained and n.code == "next_train")]
    results = replace(results, notices=(*results.notices, *steps))
    folder.mkdir(parents=True, exist_ok=True)
    shared = write_shared(results, folder, people=found.people, reveal=chosen.reveal)
    write_text(folder / YAML, yaml)
    return shared


# What cannot be said, by where an evaluation begins.
_UNHEARD = (
    "how alike the voices are, what the speech is still good for, whether files pair up rightly, "
    "whether words give speakers away, and whether a trained attacker learned anything"
)
MISSING = {
    "embeddings": _UNHEARD,
    "scores": f"singling out and linkability in a crowd, the risk of single people, {_UNHEARD}",
}


def knowledge_of(name: str) -> Knowledge:
    """What an attacker of this name knows; of other names nothing is known."""
    return ATTACKERS.get(name) or Knowledge(
        name=name,
        voiceprivacy="not said",
        paper1="not said",
        trains_on="original",
        enrols="anonymized",
        knows="As given; what it knows was not said.",
        colour="",
        mark="",
    )


def _embedded(chosen: Entry) -> _Found:
    """Figures of vectors: scores, and the crowd."""
    pairs = _pairs_of_vectors(chosen)
    sides = _sides_of(chosen, *next(iter(pairs.values())))
    attacks, scored = [], {}
    notices = side_notices(sides, list(sides.rows.values()))
    for name, (enrolled, tried) in pairs.items():
        enroll = _vectors(enrolled, sides.enroll)
        trial = _vectors(tried, sides.trial)
        trials = score_sides(sides, enroll, trial)
        attack = Attack(knowledge_of(name), Recogniser("given"), enroll, trial, trials)
        result, said = measure_attack(chosen, attack, sides, None)
        attacks.append(replace(result, extractor="not known: vectors were given"))
        scored[name] = trials
        notices += [n for n in said if n not in notices]
    people = sorted({row.speaker for row in sides.rows.values()})
    return _Found(
        tuple(worst_first(attacks)),
        scored,
        Corpus(speakers=len(people), utterances=len(sides.rows), hours=0.0),
        tuple(people),
        f"{enrolment_words(sides)}mean of the enrolled vectors, cosine similarity",
        tuple(notices),
    )


def _pairs_of_vectors(chosen: Entry) -> dict[str, tuple[Embeddings, Embeddings]]:
    """Attacker → what it enrols and what it tries; the reference last."""
    before = read_embeddings(chosen.original_embeddings) if chosen.original_embeddings else None
    pairs = {}
    for name, path in chosen.embeddings.items():
        tried = enrolled = read_embeddings(path)
        if name in chosen.enroll_embeddings:
            enrolled = read_embeddings(chosen.enroll_embeddings[name])
        elif knowledge_of(name).enrols == "original":
            if before is None:
                raise InputError(
                    f"the {name} attacker enrols original speech: add --enroll-embeddings or "
                    "--original-embeddings"
                )
            enrolled = before
        pairs[name] = enrolled, tried
    if before is not None:
        pairs[REFERENCE] = before, before
    return pairs


def _sides_of(chosen: Entry, enrolled: Embeddings, tried: Embeddings) -> Sides:
    """Lists where there are any; two files are two sides; one file is split."""
    enroll, trial = _rows(enrolled), _rows(tried)
    rows = {row.utterance: row for row in (*enroll, *trial)}
    for row in (*enroll, *trial):
        if rows[row.utterance].speaker != row.speaker:
            raise InputError(
                f"{enrolled.source}: {row.utterance!r} is of speaker {row.speaker!r} here and of "
                f"{rows[row.utterance].speaker!r} in {tried.source}"
            )
    if chosen.sets:
        known = {name: row.speaker for name, row in rows.items()}
        return listed_sides(list(rows.values()), chosen.sets, known=known)
    shared = {row.utterance for row in enroll} & {row.utterance for row in trial}
    if shared:
        return make_sides([rows[name] for name in rows if name in shared], seed=chosen.seed)
    return paired_sides(
        list(rows.values()), enroll, trial, by="utterance", left_out={}, source="files"
    )


def _rows(embeddings: Embeddings) -> list[Utterance]:
    pairs = zip(embeddings.utterance.tolist(), embeddings.speaker.tolist(), strict=True)
    return [Utterance(name, Path(name), speaker) for name, speaker in pairs]


def _vectors(embeddings: Embeddings, ids: Sequence[str]) -> Embeddings:
    there = set(embeddings.utterance.tolist())
    if lacking := [name for name in ids if name not in there]:
        raise InputError(
            f"{embeddings.source}: no vector of {lacking[0]!r} ({len(lacking)} of {len(ids)} are "
            "missing); embed the same utterances for every attacker, and for the reference"
        )
    return chosen_rows(embeddings, ids)


def _scored(chosen: Entry) -> _Found:
    """Figures of scores, pooled and set by set."""
    who = read_speakers(chosen.speakers) if chosen.speakers else {}
    lists = [read_trials(where.trials) for where in chosen.sets]
    pool = pooled(lists)
    attacks, scored = [], {}
    notices: list[Notice] = []
    named = {**chosen.scores} | ({REFERENCE: chosen.original_scores} if chosen.original_scores
                                 else {})  # fmt: skip
    for name, paths in named.items():
        table = pooled([read_scores(path) for path in paths])
        trials, said = join(table, pool, speakers=who, allow_extra=True)
        notices += [n for n in said if n not in notices]
        sets = []
        for part, keys in zip(set_names(chosen.sets), lists, strict=True):
            own, _ = join(table, keys, speakers=who, allow_extra=True)
            figures = figures_of(chosen, own) if own.target.size and own.nontarget.size else {}
            sets.append(SetResult(name=part, figures=figures, sizes=own.sizes))
        result = score_result(chosen, knowledge_of(name), trials)
        attacks.append(
            replace(
                result,
                extractor="not known: scores were given",
                sets=tuple(sets) if len(sets) > 1 else (),
            )
        )
        scored[name] = trials
    first = next(iter(scored.values()))
    return _Found(
        tuple(worst_first(attacks)),
        scored,
        Corpus(speakers=len(first.speakers), utterances=len(pool.trial_ids), hours=0.0),
        tuple(sorted({s for trials in scored.values() for s in trials.speakers})),
        "trials by the lists, scores as given",
        tuple(notices),
    )


def _controls(chosen: Entry, found: _Found) -> tuple[Control, ...]:
    """What can be controlled without speech; the rest is said to be open."""
    reference = next((a for a in found.attacks if a.reference), None)
    controls = []
    if reference is not None:
        controls.append(positive_control("the recogniser", "", reference.eer))
    best = strongest(found.attacks, "rocch_eer", least=True)
    if best is not None:
        controls += negative_control(found.scored[best.name], {})
    lacking = {
        "pairs": "Is each anonymized file the protected version of the original of the same name?",
        "training": "Did trained attackers learn to recognise people they were not trained on?",
        "words": "Could the words alone give speakers away?",
    }
    if reference is None:
        lacking = {"positive": "Does the recogniser recognise people in original speech?"} | lacking
        way_out = f"; add --original-{chosen.kind}"
    for code, question in lacking.items():
        more = way_out if code == "positive" else ""
        controls.append(
            Control(
                code=code,
                question=question,
                expected="this needs the original speech, or what was made of it",
                found=f"not checked: the run began with {chosen.kind}{more}",
                passed=None,
            )
        )
    return tuple(controls)


def _verdict(
    chosen: Entry, attacks: Sequence[AttackResult], controls: Sequence[Control]
) -> Verdict:
    """As that of speech; scores alone give a headline of their own, and no criterion."""
    found = give_verdict(attacks, controls)
    if chosen.embeddings:
        return found
    criteria = tuple(
        replace(c, sentence=f"Scores of trials cannot tell {c.name}: give embeddings, or speech.")
        for c in found.criteria
    )
    if any(c.passed is False for c in controls):
        return replace(found, criteria=criteria)
    best = strongest(attacks, "rocch_eer", least=True)
    assert best is not None
    said = f"the strongest attacker given has an equal error rate of {100 * best.eer.value:.1f} %"
    if (before := next((a for a in attacks if a.reference), None)) is not None:
        said += f" ({100 * before.eer.value:.1f} % on original speech, 50 % is guessing)"
    else:
        said += " (50 % is guessing). Whether its recogniser recognises anybody is not known"
    return Verdict(
        headline=f"Scores alone do not tell the risk in a crowd; {said}.", criteria=criteria
    )


def _hashes(chosen: Entry) -> dict[str, str]:
    held: dict[str, Sequence[Path]] = {
        **{f"{name}, embeddings": [path] for name, path in chosen.embeddings.items()},
        **{f"{name}, enrolment": [path] for name, path in chosen.enroll_embeddings.items()},
        **{f"{name}, scores": paths for name, paths in chosen.scores.items()},
        f"{REFERENCE}, embeddings": [p for p in (chosen.original_embeddings,) if p],
        f"{REFERENCE}, scores": chosen.original_scores,
        "trials": [where.trials for where in chosen.sets],
    }
    found = {}
    for role, paths in held.items():
        for i, path in enumerate(p for p in paths if p.is_file()):
            name = role if len(paths) == 1 else f"{role} {i + 1}"
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
