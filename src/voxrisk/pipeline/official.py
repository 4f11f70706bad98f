"""The trials that come with the speech: lists that are given or lie beside it, or its own roles.

Figures of two systems can be compared where both were made on the same trials. So what a corpus or
a challenge says about enrolment and trials is used before a split is drawn here.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from voxrisk.corpus import Utterance
from voxrisk.corpus.forms import manifest, voiceprivacy
from voxrisk.corpus.splits import refuse_leak
from voxrisk.corpus.trials import Lists, Trial, read_enrolments
from voxrisk.files.scores import read_trials
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.sides import Sides, make_sides, paired_sides
from voxrisk.pipeline.speech import Speech
from voxrisk.pipeline.stages import Stages
from voxrisk.types import InputError

ENROLLS = {"enroll", "enrol", "enrollment", "enrolment", "enrolled"}
TRIES = {"trial", "trials", "test", "tested"}
WAY_OUT = "mend it, or draw a split with --split own"


def choose_sides(chosen: Evaluation, speech: Speech, stages: Stages) -> Sides:
    """The enrolment and the trials of an evaluation, in the order in which they are looked for.

    Lists that the user gives; lists that lie beside the speech (:func:`lists_of`); the roles in its
    table; and where there are none of these, or ``split`` is ``"own"``, a split drawn here.
    """
    rows = speech.original
    lists = chosen.sets
    if not lists and chosen.split == "official":
        lists = lists_of(chosen.original)
    if lists:
        known = {row.utterance: row.speaker for row in stages.read(chosen.original)}
        return listed_sides(rows, lists, known=known)
    if chosen.split == "official" and {r for row in rows for r in roles_of(row)} == {
        "enroll",
        "trial",
    }:
        return role_sides(rows)
    return make_sides(rows, seed=chosen.seed)


def lists_of(corpus: Path) -> tuple[Lists, ...]:
    """Lists that come with a corpus: those of VoicePrivacy, or enroll.csv and trials.csv beside it.

    A manifest of another name in the same folder is other speech, and has no lists.
    """
    folder = corpus.parent if corpus.name in manifest.NAMES else corpus
    if folder.is_dir() and manifest.recognise(folder):
        pair = folder / "trials.csv", folder / "enroll.csv"
        return (Lists(*pair),) if all(path.is_file() for path in pair) else ()
    return voiceprivacy.official_sets(corpus)


def roles_of(row: Utterance) -> set[str]:
    """What a row says that it is for, ``"enroll"`` or ``"trial"``; empty where it says nothing.

    The column is ``role`` or ``split``; ``train`` or ``dev`` are no roles of an evaluation.
    """
    words = (row.extra.get("role") or row.extra.get("split") or "").lower().split("+")
    found = {"enroll"} if ENROLLS.intersection(words) else set()
    return found | ({"trial"} if TRIES.intersection(words) else set())


def role_sides(rows: Sequence[Utterance]) -> Sides:
    """Every utterance in the role that the table gives it; all pairs are compared."""
    enroll = [row for row in rows if "enroll" in roles_of(row)]
    trial = [row for row in rows if "trial" in roles_of(row)]
    refuse_leak(enroll, trial, by="utterance")
    by, notices = _shared_sessions(enroll, trial)
    used = {row.speaker for row in (*enroll, *trial)}
    left_out = {row.speaker: "no role" for row in rows if row.speaker not in used}
    sides = paired_sides(
        rows, enroll, trial, by=by, left_out=left_out, source="roles", notices=notices
    )
    _refuse_one_sided(sides.listed, "the roles of the table")
    return sides


def listed_sides(
    rows: Sequence[Utterance], lists: Sequence[Lists], *, known: Mapping[str, str]
) -> Sides:
    """The trials of one or more lists.

    Args:
        rows: Utterances that can be used.
        lists: Where the lists are.
        known: Utterance → speaker of the whole corpus, also of files that are broken: a list may
            name those, and their trials are left out and counted.

    Raises:
        InputError: If a list names what is not in the corpus, calls two people one or one person
            two, or compares an utterance with itself.
    """
    names = set_names(lists)
    by_id = {row.utterance: row for row in rows}
    models: dict[tuple[str, ...], str] = {}  # utterances → name
    place: dict[tuple[str, str], int] = {}
    sets: dict[str, list[int]] = {}
    asked = lost = 0
    for name, where in zip(names, lists, strict=True):
        enrolments, trials = _read_set(where, known)
        mine = sets.setdefault(name, [])
        for trial in trials:
            asked += 1
            own = tuple(u for u in enrolments[trial.enroll] if u in by_id)
            if not own or trial.trial not in by_id:
                lost += 1
                continue
            model = models.get(own) or _free_name(trial.enroll, name, models.values())
            models[own] = model
            mine.append(place.setdefault((model, trial.trial), len(place)))
    named = {name: own for own, name in models.items()}
    owner = {name: known[own[0]] for name, own in named.items()}
    if len(set(owner.values())) == len(owner):  # one of each speaker: it has the speaker's name
        named = {owner[name]: own for name, own in named.items()}
        place = {(owner[model], trial): i for (model, trial), i in place.items()}
        owner = {name: name for name in named}
    listed = tuple(Trial(m, t, owner[m] == known[t]) for m, t in place)
    _refuse_one_sided(listed, str(lists[0].trials))
    enroll = list(dict.fromkeys(u for own in named.values() for u in own))
    tried = list(dict.fromkeys(t.trial for t in listed))
    by, notices = _shared_sessions([by_id[u] for u in enroll], [by_id[u] for u in tried])
    if lost:
        notices = [*notices, notice("trials_left_out", count=lost, total=asked)]
    used = {by_id[u].speaker for u in (*enroll, *tried)}
    genders = {row.speaker: row.gender for row in rows}
    return Sides(
        tuple(enroll),
        tuple(tried),
        by,
        {row.speaker: "not in the lists" for row in rows if row.speaker not in used},
        all(
            genders[owner[t.enroll]] and genders[owner[t.enroll]] == by_id[t.trial].gender
            for t in listed
        ),
        by_id,
        listed,
        named,
        sets={name: np.array(found) for name, found in sets.items()} if len(sets) > 1 else {},
        source="lists",
        notices=tuple(notices),
    )


def set_names(lists: Sequence[Lists]) -> list[str]:
    """What the sets are called in tables; a set without a name has its number.

    >>> set_names([Lists(Path("a")), Lists(Path("b"), name="libri_test_f")])
    ['set 1', 'libri_test_f']
    """
    names = [where.name or f"set {i}" for i, where in enumerate(lists, start=1)]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two sets of trials are called {doubled[0]!r}; name them apart")
    return names


def _read_set(
    where: Lists, known: Mapping[str, str]
) -> tuple[Mapping[str, Sequence[str]], list[Trial]]:
    """Enrolments and trials of one set, held against the speakers of the corpus."""
    table = read_trials(where.trials)
    trials = [Trial(*pair) for pair in table.pairs()]
    if where.enroll:
        enrolments = read_enrolments(where.enroll, speakers=known)
    else:
        enrolments = _by_speaker(trials, known)
    used = dict.fromkeys(t.enroll for t in trials)
    if lacking := [name for name in used if name not in enrolments]:
        raise InputError(
            f"{table.path}: enrolment {lacking[0]!r} is not in {where.enroll or 'the corpus'} "
            f"({len(lacking)} such); {WAY_OUT}"
        )
    ids = dict.fromkeys((*(u for name in used for u in enrolments[name]), *table.trial_ids))
    if strange := [u for u in ids if u not in known]:
        raise InputError(
            f"{table.path}: utterance {strange[0]!r} is not in the original speech ({len(strange)} "
            f"of {len(ids)} are not); give the lists of this corpus, or draw a split with "
            "--split own"
        )
    owner = {}
    for name in used:
        people = sorted({known[u] for u in enrolments[name]})
        if len(people) > 1:
            raise InputError(
                f"{where.enroll}: enrolment {name!r} holds speech of {len(people)} speakers "
                f"({people[0]}, {people[1]}); {WAY_OUT}"
            )
        owner[name] = people[0]
    for row, trial in enumerate(trials):
        line = f"{table.path} line {table.line[row]}"
        if trial.target != (owner[trial.enroll] == known[trial.trial]):
            said = "target" if trial.target else "nontarget"
            raise InputError(
                f"{line}: labelled {said}, but {trial.trial!r} is of speaker "
                f"{known[trial.trial]!r} and enrolment {trial.enroll!r} of "
                f"{owner[trial.enroll]!r}; {WAY_OUT}"
            )
        if trial.trial in enrolments[trial.enroll]:
            raise InputError(
                f"{line}: {trial.trial!r} is tried against an enrolment that holds it; every "
                f"attacker would recognise it. {WAY_OUT.capitalize()}"
            )
    return enrolments, trials


def _by_speaker(trials: Sequence[Trial], known: Mapping[str, str]) -> dict[str, list[str]]:
    """Without an enrolment list: an utterance, or what of a speaker is not tried."""
    tried = {t.trial for t in trials}
    people: dict[str, list[str]] = {}
    for utterance, speaker in known.items():
        if utterance not in tried:
            people.setdefault(speaker, []).append(utterance)
    found = {}
    for name in dict.fromkeys(t.enroll for t in trials):
        if own := people.get(name) or ([name] if name in known else []):
            found[name] = own
    return found


def _free_name(name: str, of_set: str, taken: Collection[str]) -> str:
    return name if name not in taken else f"{of_set}: {name}"


def _shared_sessions(
    enroll: Sequence[Utterance], trial: Sequence[Utterance]
) -> tuple[str, list[Notice]]:
    """What the sides never share, and a notice where the list itself mixes sessions."""
    if not all(row.session for row in (*enroll, *trial)):
        return "utterance", []
    held = {(row.speaker, row.session) for row in enroll}
    both = sorted({row.speaker for row in trial if (row.speaker, row.session) in held})
    if not both:
        return "session", []
    return "utterance", [notice("sessions_shared", count=len(both), speakers=both)]


def _refuse_one_sided(listed: Sequence[Trial], where: str) -> None:
    for target, what in ((True, "of one speaker"), (False, "of two speakers")):
        if not any(t.target is target for t in listed):
            raise InputError(f"{where}: no trial {what} is left, so nothing can be told; {WAY_OUT}")


def side_notices(sides: Sides, rows: Sequence[Utterance]) -> list[Notice]:
    """What a reader must know about who enrolled and who was tried."""
    found = list(sides.notices)
    if sides.source in ("lists", "roles"):
        each = int(median(len(own) for own in sides.models.values()))
        found.append(notice("official_enrolment", each=each))
    if sides.by == "utterance" and not all(row.session for row in rows):
        found.append(notice("no_sessions"))
    for why in dict.fromkeys(sides.left_out.values()):
        who = [s for s, reason in sides.left_out.items() if reason == why]
        found.append(notice("left_out", count=len(who), why=why, speakers=who))
    said = sum(bool(row.extra.get("role") or row.extra.get("split")) for row in rows)
    if said and sides.source == "own":
        found.append(notice("roles_ignored", count=said))
    return found


def enrolment_words(sides: Sides | None) -> str:
    """How enrolment and trials came about, for the methods of a report."""
    if sides is None:
        return ""
    origin = {
        "own": f"split by {sides.by}",
        "roles": "enrolment and trials by the roles in the table of the speech",
        "lists": "enrolment and trials by the official lists",
        "files": "enrolment and trials are the two files of vectors",
    }[sides.source]
    if sides.sets:
        origin += f", {len(sides.sets)} sets pooled"
    return f"{origin}; "
