"""VoicePrivacy Challenge data (2020, 2022, 2024): Kaldi directories for enrolment and trials.

One directory (``libri_dev_enrolls``, ``vctk_test_trials_f`` …), or the folder that holds them: then
all ``*_enrolls`` and ``*_trials*`` are read together. An utterance of several lists (VCTK's
``trials_f_all`` contains ``trials_f_common``) is one row. Two columns are added: ``role``
(``enroll`` or ``trial``; the ids in a file ``enrolls``, where there is one, are the enrolment
utterances) and ``subset``, the directories it was found in. The ``trials`` files themselves are
read with :func:`voxrisk.files.scores.read_trials`.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from voxrisk.corpus.forms import kaldi
from voxrisk.corpus.table import Located
from voxrisk.types import InputError


def _directories(path: Path) -> list[Path]:
    if kaldi.recognise(path):
        found = [path]
    elif path.is_dir():
        found = sorted(f for f in path.iterdir() if f.is_dir() and kaldi.recognise(f))
    else:
        found = []
    return [folder for folder in found if _role(folder)]


def _role(folder: Path) -> str | None:
    if (folder / "enrolls").is_file() or folder.name.endswith("_enrolls"):
        return "enroll"
    if (folder / "trials").is_file() or "_trials" in folder.name:
        return "trial"
    return None


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
