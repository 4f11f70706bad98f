"""Scores joined to a trial list by id, with the speakers behind the ids."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.scores import PairTable, complain, complain_of_doubled
from voxrisk.notices import Notice, notice
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.measure.scored_trials import Trials


def join(
    scores: PairTable,
    keys: PairTable,
    *,
    speakers: Mapping[str, str] | None = None,
    allow_extra: bool = False,
) -> tuple["Trials", list[Notice]]:
    """Join scores to a trial list by id, and find the speakers behind the ids.

    Speakers come from ``speakers`` (id to speaker), from the trial list's own columns, or from the
    labels: ids that target trials connect are one person.

    Returns:
        The trials, and what a reader must know about them.

    Raises:
        InputError: If a trial has no score, a score has no trial (unless ``allow_extra``), a pair
            stands twice or a label contradicts the speakers; every kind is named together.
    """
    from voxrisk.measure.scored_trials import Trials

    score_code, key_code = _common_codes(scores, keys)
    problems: list[str] = []
    for table, code in ((scores, score_code), (keys, key_code)):
        complain_of_doubled(problems, table, code)
    complain(
        problems,
        keys,
        np.flatnonzero(~np.isin(key_code, score_code)),
        f"{keys.path}: trials without a score in {scores.path}",
    )
    if not allow_extra:
        complain(
            problems,
            scores,
            np.flatnonzero(~np.isin(score_code, key_code)),
            f"{scores.path}: scores without a trial in {keys.path} (--allow-extra leaves them out)",
        )
    if problems:
        raise InputError("\n".join(problems))
    order = np.argsort(score_code)
    row = order[np.searchsorted(score_code, key_code, sorter=order)]
    is_target = keys.value == 1.0
    left, right, names, notices = _speakers(keys, is_target, speakers or {})
    _check_labels(keys, is_target, left, right)
    return (
        Trials.coded(
            scores.value[row],
            is_target,
            left.astype(np.int32),
            right.astype(np.int32),
            keys.trial.astype(np.int32),
            tuple(names),
        ),
        notices,
    )


def _common_codes(a: PairTable, b: PairTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One whole number for each pair of ids, the same in both tables."""
    enroll = {name: i for i, name in enumerate(dict.fromkeys([*a.enroll_ids, *b.enroll_ids]))}
    trial = {name: i for i, name in enumerate(dict.fromkeys([*a.trial_ids, *b.trial_ids]))}
    codes = []
    for table in (a, b):
        left = np.array([enroll[name] for name in table.enroll_ids], np.int64)
        right = np.array([trial[name] for name in table.trial_ids], np.int64)
        codes.append(left[table.enroll] * len(trial) + right[table.trial])
    return codes[0], codes[1]


def _speakers(
    keys: PairTable, is_target: NDArray[np.bool_], speakers: Mapping[str, str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str], list[Notice]]:
    """Speaker of both sides of every trial, their names, and notices."""
    known = set(speakers.values())
    side = {"enroll": keys.enroll_ids, "trial": keys.trial_ids}
    names: list[str | None] = []
    for which, side_ids in side.items():
        for name in side_ids:
            said = keys.speakers.get((which, name)) or speakers.get(name)
            names.append(said or (name if which == "enroll" and name in known else None))
    n = len(keys.enroll_ids)
    group = _groups(len(names), keys.enroll[is_target], keys.trial[is_target] + n)
    # A group takes the name that the files give one of its members, else its first enrolled id.
    of_group: dict[int, str] = {}
    for member, given in zip(group.tolist(), names, strict=True):
        if given is not None:
            of_group.setdefault(member, given)
    lonely = 0
    final: list[str] = []
    ids = [*keys.enroll_ids, *keys.trial_ids]
    for place, member in enumerate(group.tolist()):
        own = names[place] or of_group.get(member)
        if own is None:
            # Groups are met by an enrolled id first, so one that is not has no target trial.
            lonely += place >= n
            own = ids[place] if place < n else f"{ids[place]} (speaker unknown)"
            of_group[member] = own
        final.append(own)
    distinct = sorted(set(final))
    number = {name: i for i, name in enumerate(distinct)}
    code = np.array([number[name] for name in final], np.int64)
    notices = []
    if lonely:
        notices.append(notice("unknown_speakers", count=lonely))
    return code[:n][keys.enroll], code[n:][keys.trial], distinct, notices


def _groups(nodes: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest node that each node is joined to, by any number of edges left–right."""
    group = np.arange(nodes)
    while (group[left] != group[right]).any():
        smallest = np.minimum(group[left], group[right])
        # The roots of both ends take the smaller of the two, then all nodes ask their root's root.
        np.minimum.at(group, group[left], smallest)
        np.minimum.at(group, group[right], smallest)
        while (group[group] != group).any():
            group = group[group]
    return group


def _check_labels(
    keys: PairTable,
    is_target: NDArray[np.bool_],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> None:
    wrong = np.flatnonzero(is_target != (left == right))
    if wrong.size:
        row = int(wrong[0])
        said = "target" if is_target[row] else "nontarget"
        fact = "different speakers" if is_target[row] else "one speaker"
        raise InputError(
            f"{keys.path} line {keys.line[row]}: labelled {said}, but the two sides are of {fact} "
            f"by the other trials or the speaker list ({wrong.size} such trials); correct the list"
        )
