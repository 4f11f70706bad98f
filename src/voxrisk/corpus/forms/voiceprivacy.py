"""VoicePrivacy Challenge data (2020, 2022, 2024): Kaldi directories for enrolment and trials.

One directory (``libri_dev_enrolls``, ``vctk_test_trials_f`` …), or the folder that holds them: then
all ``*_enrolls`` and ``*_trials*`` are read together. An utterance of several lists (VCTK's
``trials_f_all`` contains ``trials_f_common``) is one row. Two columns are added: ``role``
(``enroll`` or ``trial``; the ids in a file ``enrolls``, where there is one, are the enrolment
utterances) and ``subset``, the directories it was found in. The official lists are
:func:`official_sets`: ``libri_test_trials_f`` is tried against ``libri_test_enrolls``.

The challenges put anonymized directories beside the original ones, under the same names and a
suffix (``libri_test_enrolls_mcadams``). Then the folder is the original speech, and the anonymized
speech is named with a star: ``data/*_mcadams``.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from voxrisk.corpus.forms import kaldi
from voxrisk.corpus.table import Located
from voxrisk.corpus.trials import Lists
from voxrisk.types import InputError

ENROLLS = "_enrolls"
TRIALS = "_trials"
STAR = "*"
# Sets of the challenges: libri_dev_f, vctk_test_m_common, IEMOCAP_test …
PUBLIC = re.compile(r"(libri|vctk|IEMOCAP)_(dev|test)(_(f|m|mixed|all|common|asr))*")


def _directories(path: Path) -> list[Path]:
    if STAR in path.name:
        found = sorted(f for f in path.parent.glob(path.name) if kaldi.recognise(f))
        return [folder for folder in found if _role(folder)]
    if kaldi.recognise(path):
        found = [path]
    elif path.is_dir():
        found = sorted(f for f in path.iterdir() if f.is_dir() and kaldi.recognise(f))
    else:
        found = []
    found = [folder for folder in found if _role(folder)]
    suffixes = _suffixes([folder.name for folder in found])
    return [folder for folder in found if not folder.name.endswith(suffixes)]


def _suffixes(names: Sequence[str]) -> tuple[str, ...]:
    """What anonymized directories have behind the names of the original ones beside them."""
    plain = [name for name in names if name.endswith(ENROLLS)]
    return tuple(
        sorted(
            {
                name.removeprefix(first)
                for first in plain
                for name in names
                if name.startswith(first) and name != first
            }
        )
    )


def _role(folder: Path) -> str | None:
    if (folder / "enrolls").is_file() or ENROLLS in folder.name:
        return "enroll"
    if (folder / "trials").is_file() or TRIALS in folder.name:
        return "trial"
    return None


def official_sets(path: Path) -> tuple[Lists, ...]:
    """The lists that come with the speech: each ``*_trials*`` with the ``*_enrolls`` of its name.

    A set has the name that the challenges' tables give it; a folder of another name is not named,
    for names of folders are nobody's business. Empty where there are no lists, or no enrolment goes
    with them: then nothing is official.
    """
    folders = _directories(path)
    enrolled = {
        folder.name.partition(ENROLLS)[0]: folder for folder in folders if _role(folder) == "enroll"
    }
    found = []
    for folder in folders:
        head, sign, tail = folder.name.partition(TRIALS)
        if sign and (folder / "trials").is_file() and head in enrolled:
            name = f"{head}{tail}" if PUBLIC.fullmatch(f"{head}{tail}") else ""
            found.append(Lists(folder, enrolled[head], name))
    return tuple(found)


def recognise(path: Path) -> bool:
    """A Kaldi directory of enrolment or trial speech, or a folder of such directories."""
    return bool(_directories(path))


def read(path: Path) -> Iterator[Located]:
    """Each utterance once, with its role."""
    found: dict[str, Located] = {}
    for folder in _directories(path):
        listed = folder / "enrolls"
        chosen = set(kaldi.table(listed, bare=True)) if listed.is_file() else None
        unseen = set(chosen or ())
        for where, row in kaldi.read(folder):
            unseen.discard(row.utterance)
            if chosen is not None and row.utterance not in chosen:
                continue
            role, subset = str(_role(folder)), folder.name
            if row.utterance in found:
                before = found[row.utterance][1]
                if (before.path, before.start, before.speaker) != (
                    row.path,
                    row.start,
                    row.speaker,
                ):
                    raise InputError(
                        f"{where}: {row.utterance!r} is not the same at {found[row.utterance][0]}"
                    )
                role = _joined(before.extra["role"], role)
                subset = _joined(before.extra["subset"], subset)
            row = dataclasses.replace(row, extra={"role": role, "subset": subset})
            found[row.utterance] = (where, row)
        if unseen:
            raise InputError(
                f"{folder / 'enrolls'}: {min(unseen)!r} is not in {folder / 'wav.scp'}"
            )
    yield from found.values()


def _joined(before: str, new: str) -> str:
    return before if new in before.split("+") else f"{before}+{new}"
