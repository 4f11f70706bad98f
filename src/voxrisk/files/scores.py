"""Scores, trial lists and the speakers behind them: read, checked and written.

Our own plain form is CSV with a header: scores ``enroll,trial,score``, trials
``enroll,trial,label`` with the labels ``target`` and ``nontarget``. Kaldi's and VoicePrivacy's
files (the same columns, no header, white space), TSV, gzip, Parquet and NPZ are read as well; a
folder stands for the ``scores`` or ``trials`` file in it.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.arrays import as_text, read_npz
from voxrisk.files.numbers import plain_number, read_number
from voxrisk.files.tables import read_rows, write_table
from voxrisk.types import InputError

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
    complain_of_doubled(problems, table, table.enroll * len(table.trial_ids) + table.trial)
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
        if not any(cells[3:]):
            continue
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
        np.frombuffer(enroll, np.int64),
        np.frombuffer(trial, np.int64),
        np.frombuffer(value, np.float64),
        np.frombuffer(lines, np.int64),
        speakers,
    )


def _read_npz(path: Path) -> PairTable:
    """Arrays ``enroll``, ``trial``, ``score``: flat ones, or a matrix with ids of its two sides."""
    enroll, trial, score = read_score_arrays(path)
    if score.ndim == 2:
        if score.shape != (enroll.size, trial.size):
            raise InputError(
                f"{path}: score is {score.shape} beside {enroll.size} enroll and {trial.size} trial"
            )
        enroll, trial = np.repeat(enroll, trial.size), np.tile(trial, enroll.size)
    if not score.size:
        raise InputError(f"{path}: holds no scores")
    if not score.size == enroll.size == trial.size:
        raise InputError(f"{path}: enroll, trial and score differ in length")
    left, enroll_code = np.unique(enroll, return_inverse=True)
    right, trial_code = np.unique(trial, return_inverse=True)
    return PairTable(
        path,
        left.tolist(),
        right.tolist(),
        enroll_code.astype(np.int64),
        trial_code.astype(np.int64),
        np.asarray(score, dtype=np.float64).ravel(),
        np.arange(score.size, dtype=np.int64),
    )


def read_score_arrays(
    path: Path,
) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.floating[Any]]]:
    """The arrays ``enroll``, ``trial`` and ``score`` of an NPZ file, the ids flat."""
    found = read_npz(path, ("enroll", "trial", "score"))
    if missing := [name for name in ("enroll", "trial", "score") if name not in found]:
        raise InputError(
            f"{path}: needs the arrays enroll, trial and score; no array {', '.join(missing)}"
        )
    score = found["score"]
    if score.dtype.kind not in "fiu" or score.ndim not in (1, 2):
        raise InputError(
            f"{path}: score is {score.dtype} of shape {score.shape}; it must be numbers, one for "
            "each pair or a matrix"
        )
    ids = [as_text(found[name], f"{path} array {name}") for name in ("enroll", "trial")]
    for name, column in zip(("enroll", "trial"), ids, strict=True):
        if column.ndim != 1 or (column == "").any():
            raise InputError(f"{path} array {name}: must be a list of ids, none of them empty")
    return ids[0], ids[1], score


def pooled(tables: Sequence[PairTable]) -> PairTable:
    """Several tables as one; a pair that stands in several of them counts once.

    Raises:
        InputError: If two tables say different things about a pair.
    """
    if len(tables) == 1:
        return tables[0]
    enroll = {n: i for i, n in enumerate(dict.fromkeys(n for t in tables for n in t.enroll_ids))}
    trial = {n: i for i, n in enumerate(dict.fromkeys(n for t in tables for n in t.trial_ids))}
    seen: dict[tuple[int, int], tuple[float, PairTable, int]] = {}
    speakers: dict[tuple[str, str], str] = {}
    for table in tables:
        speakers |= table.speakers
        left = [enroll[name] for name in table.enroll_ids]
        right = [trial[name] for name in table.trial_ids]
        columns = (table.enroll.tolist(), table.trial.tolist(), table.value.tolist())
        for row, (i, j, value) in enumerate(zip(*columns, strict=True)):
            before = seen.setdefault((left[i], right[j]), (value, table, row))
            if before[0] != value:
                raise InputError(
                    f"{table.path}: {table.name(row)} is not what {before[1].path} says of this "
                    "pair; give one of them"
                )
    pairs = np.array(list(seen), np.int64).reshape(-1, 2)
    return PairTable(
        tables[0].path,
        list(enroll),
        list(trial),
        pairs[:, 0],
        pairs[:, 1],
        np.array([value for value, _, _ in seen.values()]),
        np.array([int(t.line[row]) for _, t, row in seen.values()], np.int64),
        speakers,
    )


def write_scores(
    path: Path | str,
    enroll: Sequence[str],
    trial: Sequence[str],
    score: NDArray[np.float64],
    *,
    is_target: NDArray[np.bool_] | None = None,
) -> None:
    """Write ``enroll,trial,score`` with all digits, and ``label`` where it is known."""
    columns = {"enroll": enroll, "trial": trial, "score": [repr(s) for s in score.tolist()]}
    if is_target is not None:
        columns["label"] = np.where(is_target, "target", "nontarget").tolist()
    write_table(path, tuple(columns), zip(*columns.values(), strict=True))


def complain(problems: list[str], table: PairTable, rows: NDArray[np.int64], what: str) -> None:
    """Add ``what`` to the problems, with the first pairs it is true of, if there are any."""
    if rows.size:
        names = [table.name(int(row)) for row in rows[:SHOWN]]
        problems.append(f"{what}: {rows.size}{_list(names, rows.size)}")


def complain_of_doubled(problems: list[str], table: PairTable, code: NDArray[np.int64]) -> None:
    """Add the pairs whose ``code`` ``(n,)`` stands in the table before."""
    _, first = np.unique(code, return_index=True)
    if first.size < code.size:
        doubled = np.setdiff1d(np.arange(code.size), first)
        complain(problems, table, doubled, f"{table.path}: pairs that stand twice")


def _list(names: Sequence[str], total: int) -> str:
    more = [f"… and {total - len(names)} more"] if total > len(names) else []
    return "".join(f"\n  {name}" for name in [*names, *more])


def read_speakers(path: Path | str) -> dict[str, str]:
    """Read which speaker an utterance is of: Kaldi's ``utt2spk``, CSV, or a corpus manifest."""
    path = _inside(Path(path), ("utt2spk", "manifest.csv"))
    names = {"utterance": ("utt", "segment", "id"), "speaker": ("spk", "speaker_id")}
    found: dict[str, str] = {}
    for line, (utterance, speaker) in read_rows(path, names):
        if not utterance or not speaker:
            raise InputError(f"{path} line {line}: the utterance or its speaker is empty")
        if found.setdefault(utterance, speaker) != speaker:
            raise InputError(
                f"{path} line {line}: {utterance!r} is of speaker {speaker!r} here and of "
                f"{found[utterance]!r} before"
            )
    return found
