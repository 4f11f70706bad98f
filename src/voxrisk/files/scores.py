"""Scores, trial lists and the speakers behind them: read, joined by id, and checked.

Our own plain form is CSV with a header: scores ``enroll,trial,score``, trials
``enroll,trial,label`` with the labels ``target`` and ``nontarget``. Kaldi's and VoicePrivacy's
files (the same columns, no header, white space), TSV, gzip, Parquet and NPZ are read as well; a
folder stands for the ``scores`` or ``trials`` file in it.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.numbers import plain_number, read_number
from voxrisk.files.tables import read_rows
from voxrisk.notices import Notice, notice
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.measure.scored_trials import Trials

ENROLL = (
    "enroll_id", "enroll_utt", "enrollment", "enrol", "model", "modelid", "enroll_speaker_id",
)  # fmt: skip
TRIAL = ("trial_id", "trial_utt", "test", "test_utt", "segment", "segmentid", "utterance")
SCORE = ("llr", "similarity")
LABEL = ("key", "targettype", "target")
TARGET = {"target", "tgt", "1", "true", "same", "mated"}
NONTARGET = {"nontarget", "non", "imp", "impostor", "0", "false", "different", "nonmated", "spoof"}
SHOWN = 10


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """One value for each pair of an enrolled id and a trial id.

    Attributes:
        path: The file it came from.
        enroll_ids: Distinct enrolled ids.
        trial_ids: Distinct trial ids.
        enroll: ``(n,)`` index into ``enroll_ids``.
        trial: ``(n,)`` index into ``trial_ids``.
        value: ``(n,)`` score, or 1 for target and 0 for nontarget.
        line: ``(n,)`` line in the file.
        speakers: Speaker of an id where the file says so; keys are ``("enroll" | "trial", id)``.
    """

    path: Path
    enroll_ids: Sequence[str]
    trial_ids: Sequence[str]
    enroll: NDArray[np.int64]
    trial: NDArray[np.int64]
    value: NDArray[np.float64]
    line: NDArray[np.int64]
    speakers: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def name(self, row: int) -> str:
        """The pair in a row, for messages."""
        enroll, trial = self.enroll_ids[self.enroll[row]], self.trial_ids[self.trial[row]]
        return f"{enroll} {trial} (line {self.line[row]})"

    def pairs(self) -> Iterator[tuple[str, str, bool]]:
        """Each row of a trial list: the enrolled id, the trial id, and whether it is a target."""
        for enroll, trial, value in zip(self.enroll, self.trial, self.value, strict=True):
            yield self.enroll_ids[enroll], self.trial_ids[trial], bool(value)


def read_scores(path: Path | str) -> PairTable:
    """Read scored pairs; every score must be a finite number."""
    path = _inside(Path(path), ("scores", "scores.csv", "scores.txt", "scores.npz"))
    if path.suffix == ".npz":
        table = _read_npz(path)
    else:
        names = {"enroll": ENROLL, "trial": TRIAL, "score": SCORE}
        table = _read_pairs(path, names, _number)
    bad = np.flatnonzero(~np.isfinite(table.value))
    if bad.size:
        pairs = [f"{table.name(row)}: score is {table.value[row]}" for row in bad[:SHOWN]]
        raise InputError(
            f"{path}: {bad.size} of {table.value.size} scores are not finite; "
            f"embed or score these again:{_list(pairs, bad.size)}"
        )
    return table


def read_trials(path: Path | str) -> PairTable:
    """Read a trial list; optional columns ``enroll_speaker`` and ``trial_speaker`` are kept.

    Raises:
        InputError: If a line is malformed, a label is neither target nor nontarget, or a trial
            stands twice: it would count twice.
    """
    path = _inside(Path(path), ("trials", "trials.csv", "trials.txt"))
    names = {
        "enroll": ENROLL,
        "trial": TRIAL,
        "label": LABEL,
        "enroll_speaker": (),
        "trial_speaker": (),
    }
    table = _read_pairs(path, names, _label, optional=("enroll_speaker", "trial_speaker"))
    problems: list[str] = []
    _complain_of_doubled(problems, table, table.enroll * len(table.trial_ids) + table.trial)
    if problems:
        raise InputError("\n".join(problems))
    return table


def _inside(path: Path, names: Iterable[str]) -> Path:
    if not path.is_dir():
        return path
    for name in names:
        for candidate in (path / name, path / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    raise InputError(f"{path}: no {' or '.join(names)} in this folder")


def _number(text: str, path: Path, line: int) -> float:
    value = plain_number(text)
    return read_number(text, "score", f"{path} line {line}") if value is None else value


def _label(text: str, path: Path, line: int) -> float:
    if (word := text.lower()) in TARGET:
        return 1.0
    if word in NONTARGET:
        return 0.0
    raise InputError(f"{path} line {line}: label is {text!r}, not target or nontarget")


def _read_pairs(
    path: Path, names: Mapping[str, Sequence[str]], parse: Any, *, optional: Sequence[str] = ()
) -> PairTable:
    enroll_ids: dict[str, int] = {}
    trial_ids: dict[str, int] = {}
    enroll, trial, value, lines = array("q"), array("q"), array("d"), array("q")
    speakers: dict[tuple[str, str], str] = {}
    for line, cells in read_rows(path, names, optional=optional):
        left, right = cells[0], cells[1]
        if not left or not right:
            raise InputError(f"{path} line {line}: the {'trial' if left else 'enroll'} id is empty")
        enroll.append(enroll_ids.setdefault(left, len(enroll_ids)))
        trial.append(trial_ids.setdefault(right, len(trial_ids)))
        value.append(parse(cells[2], path, line))
        lines.append(line)
        for side, name, speaker in zip(("enroll", "trial"), (left, right), cells[3:], strict=False):
            if speaker and speakers.setdefault((side, name), speaker) != speaker:
                raise InputError(
                    f"{path} line {line}: {side} {name!r} is of speaker {speaker!r} here and of "
                    f"{speakers[side, name]!r} before"
                )
    return PairTable(
        path,
        list(enroll_ids),
        list(trial_ids),
        np.frombuffer(enroll, np.int64) if enroll else np.empty(0, np.int64),
        np.frombuffer(trial, np.int64) if trial else np.empty(0, np.int64),
        np.frombuffer(value, np.float64) if value else np.empty(0),
        np.frombuffer(lines, np.int64) if lines else np.empty(0, np.int64),
        speakers,
    )


def _read_npz(path: Path) -> PairTable:
    """Arrays ``enroll``, ``trial``, ``score``: flat ones, or a matrix with ids of its two sides."""
    try:
        with np.load(path, allow_pickle=False) as data:
            enroll, trial, score = data["enroll"], data["trial"], data["score"]
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"{path}: needs the arrays enroll, trial and score ({error})") from error
    if score.ndim == 2:
        if score.shape != (enroll.size, trial.size):
            raise InputError(
                f"{path}: score is {score.shape} beside {enroll.size} enroll and {trial.size} trial"
            )
        enroll, trial = np.repeat(enroll, trial.size), np.tile(trial, enroll.size)
    if not score.size == enroll.size == trial.size:
        raise InputError(f"{path}: enroll, trial and score differ in length")
    left, enroll_code = np.unique(enroll.astype(str), return_inverse=True)
    right, trial_code = np.unique(trial.astype(str), return_inverse=True)
    return PairTable(
        path,
        left.tolist(),
        right.tolist(),
        enroll_code.astype(np.int64),
        trial_code.astype(np.int64),
        score.ravel().astype(np.float64),
        np.arange(score.size, dtype=np.int64),
    )


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
        _complain_of_doubled(problems, table, code)
    _complain(
        problems,
        keys,
        np.flatnonzero(~np.isin(key_code, score_code)),
        f"{keys.path}: trials without a score in {scores.path}",
    )
    if not allow_extra:
        _complain(
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


def _complain(problems: list[str], table: PairTable, rows: NDArray[np.int64], what: str) -> None:
    if rows.size:
        names = [table.name(int(row)) for row in rows[:SHOWN]]
        problems.append(f"{what}: {rows.size}{_list(names, rows.size)}")


def _complain_of_doubled(problems: list[str], table: PairTable, code: NDArray[np.int64]) -> None:
    _, first = np.unique(code, return_index=True)
    if first.size < code.size:
        doubled = np.setdiff1d(np.arange(code.size), first)
        _complain(problems, table, doubled, f"{table.path}: pairs that stand twice")


def _list(names: Sequence[str], total: int) -> str:
    more = [f"… and {total - len(names)} more"] if total > len(names) else []
    return "".join(f"\n  {name}" for name in [*names, *more])


def _speakers(
    keys: PairTable, is_target: NDArray[np.bool_], speakers: Mapping[str, str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str], list[Notice]]:
    """Speaker of both sides of every trial, their names, and notices."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known = set(speakers.values())
    side = {"enroll": keys.enroll_ids, "trial": keys.trial_ids}
    names: list[str | None] = []
    for which, side_ids in side.items():
        for name in side_ids:
            said = keys.speakers.get((which, name)) or speakers.get(name)
            names.append(said or (name if which == "enroll" and name in known else None))
    n = len(keys.enroll_ids)
    edges = (keys.enroll[is_target], keys.trial[is_target] + n)
    graph = coo_array((np.ones(edges[0].size, np.int8), edges), shape=(len(names), len(names)))
    group = connected_components(graph, directed=False)[1]
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


def read_speakers(path: Path | str) -> dict[str, str]:
    """Read which speaker an utterance is of: Kaldi's ``utt2spk``, CSV, or a corpus manifest."""
    path = _inside(Path(path), ("utt2spk", "manifest.csv"))
    names = {"utterance": ("utt", "segment", "id"), "speaker": ("spk", "speaker_id")}
    found: dict[str, str] = {}
    for line, (utterance, speaker) in read_rows(path, names):
        if found.setdefault(utterance, speaker) != speaker:
            raise InputError(
                f"{path} line {line}: {utterance!r} is of speaker {speaker!r} here and of "
                f"{found[utterance]!r} before"
            )
    return found
