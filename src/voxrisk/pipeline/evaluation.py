"""What an evaluation is asked to do: the choices that ``evaluation.yaml`` holds."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from voxrisk.knowledge import attacker
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work an evaluation may take.

    Attributes:
        resamples: Draws of speakers behind each interval.
        lengths: Conversation lengths L.
        asr_minutes: At most so much speech of either kind is transcribed.
        asr: Recogniser.
        train_minutes: At most so much speech trains an attacker.
        adapter: Train a map behind the ready encoder instead of a whole recogniser.
        recipe: How a whole recogniser is trained, from nothing.
        words: What it will take, told beforehand.
    """

    resamples: int
    lengths: tuple[int, ...]
    asr_minutes: float
    asr: str
    train_minutes: float
    adapter: bool
    recipe: str
    words: str


EFFORTS = {
    "quick": Effort(
        300, (1, 3), 1.5, "whisper-tiny.en", 15.0, True, "",
        "on 2 cores about 0.1 times the length of the speech, a minute for what it is good for, "
        "and 2 minutes for each kind of training speech, beside the time of the anonymizer",
    ),
    "standard": Effort(
        1000, (1, 3, 30), 30.0, "whisper-tiny.en", 60.0, True, "",
        "on 2 cores about 0.1 times the length of the speech, 15 minutes for what it is good for, "
        "and 4 minutes for each kind of training speech, beside the time of the anonymizer",
    ),
    "paper": Effort(
        1000, (1, 3, 30), 1e9, "whisper-base", 1e9, False, "paper",
        "hours on a GPU, and days on a CPU, for each training of an attacker",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that is chosen; two equal ones on equal data give equal results.

    Attributes:
        original: Corpus of original speech.
        anonymized: The same utterances, anonymized; or
        anonymizer: a name (``mcadams``, ``knn`` …), or a command with {input} and {output}.
        options: Options of the anonymizer.
        select: Its target selection.
        per: Whether targets are drawn per utterance, speaker or session.
        targets: Corpus of target speakers, if not the other speakers.
        train: Other speakers' speech to train attackers on.
        similar: Anonymizer of the semi-informed attacker.
        encoder: Ready speaker encoder.
        effort: ``quick``, ``standard`` or ``paper``.
        attackers: Names to run, or empty for all that the inputs allow.
        title: Of the report.
        seed: Of everything random.
        confidence: Of the intervals.
        reveal: Print speaker ids as they are instead of pseudonyms.
        with_audio: Put a few pairs of utterances into the report.
        utility: Whether to measure what the speech is still good for.
        hide: Columns of the manifest that nobody should infer; without any, gender and age.
        keep: Columns that should survive, such as emotion.
    """

    original: Path
    anonymized: Path | None = None
    anonymizer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    select: str = "random"
    per: str = "utterance"
    targets: Path | None = None
    train: Path | None = None
    similar: str | None = None
    encoder: str = "ecapa-voxceleb"
    effort: str = "standard"
    attackers: tuple[str, ...] = ()
    title: str | None = None
    seed: int = 0
    confidence: float = 0.95
    reveal: bool = False
    with_audio: bool = False
    utility: bool = True
    hide: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.anonymized is None) == (self.anonymizer is None):
            raise InputError("give either anonymized speech or an anonymizer, and not both")
        if self.effort not in EFFORTS:
            raise InputError(f"effort is {self.effort!r}; it must be {', '.join(EFFORTS)}")
        if self.similar and not self.train:
            raise InputError("a similar anonymizer needs training speech: add --train DIR")
        if self.train and self.anonymized and not self.similar:
            raise InputError(
                "--train needs an anonymizer: attackers train on speech that voxrisk anonymizes as "
                "yours was, and from finished files alone it cannot; give --anonymizer instead of "
                "--anonymized, or --similar NAME for an attacker who has a similar one, or leave "
                "out --train"
            )
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; it must be 0 or more")
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence is {self.confidence}; it lies between 0 and 1")
        for name in self.attackers:
            attacker(name)
        if both := sorted(set(self.hide) & set(self.keep)):
            raise InputError(f"{both[0]!r} is to be hidden and kept; choose one of them")

    @property
    def limits(self) -> Effort:
        """Sizes that go with the effort."""
        return EFFORTS[self.effort]

    @property
    def draws_apart(self) -> bool:
        """Whether attackers anonymize what they enrol again, with draws of their own.

        The attacker has the tool, not the draws. A draw per utterance tells nothing of another
        utterance, and the farthest target is not drawn.
        """
        drawn = self.per != "utterance" and self.select != "farthest"
        return self.anonymizer is not None and drawn


def write_yaml(evaluation: Evaluation, folder: Path) -> str:
    """The text of an ``evaluation.yaml`` in ``folder`` that repeats this evaluation from there.

    Paths are written as seen from ``folder``, so that speech and runs can move together.
    """
    plain = {
        key: _from_folder(value, folder) if isinstance(value, Path) else value
        for key, value in _chosen(evaluation).items()
    }
    return _yaml(plain)


def shared_yaml(evaluation: Evaluation) -> str:
    """The same for eyes that may not see names: each path is the name of its role, in capitals."""
    hidden = {
        key: key.upper() if isinstance(value, Path) else value
        for key, value in _chosen(evaluation).items()
        if key != "title"
    }
    for key in ("anonymizer", "similar"):
        if "{input}" in str(hidden.get(key, "")):
            hidden[key] = "COMMAND {input} {output}"
    if str(hidden.get("encoder", "")) and not is_ready(evaluation.encoder):
        hidden["encoder"] = "ENCODER"
    return _yaml(hidden)


def is_ready(encoder: str) -> bool:
    """Whether this is the name of a ready encoder, and not a path of the user."""
    from voxrisk.attack.encoders import ENCODERS

    return encoder in ENCODERS


def _chosen(evaluation: Evaluation) -> dict[str, Any]:
    """Everything that is not as it is by default."""
    default = {f.name: f.default for f in fields(Evaluation)}
    plain = {f.name: getattr(evaluation, f.name) for f in fields(Evaluation)}
    plain |= {"options": dict(evaluation.options), "attackers": list(evaluation.attackers)}
    plain |= {"hide": list(evaluation.hide), "keep": list(evaluation.keep)}
    kept = {"effort", "seed", "encoder"}  # said even where they are the default
    return {
        key: value
        for key, value in plain.items()
        if key in kept or (value != default[key] and value not in (None, {}, []))
    }


def _from_folder(path: Path, folder: Path) -> str:
    try:
        return os.path.relpath(path.resolve(), folder.resolve())
    except ValueError:  # another drive
        return str(path.resolve())


def _yaml(plain: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(plain), sort_keys=False, allow_unicode=True))


def read_yaml(path: Path) -> Evaluation:
    """Read an ``evaluation.yaml``; relative paths start from its folder.

    Raises:
        InputError: If it is no YAML, a key is unknown, or a value is not of the right type (a
            quoted ``'false'`` is text, not false).
    """
    import msgspec
    import yaml

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not YAML ({error})") from error
    if not isinstance(plain, dict) or "original" not in plain:
        raise InputError(f"{path}: needs at least the key original")
    known = {f.name for f in fields(Evaluation)}
    if unknown := sorted(set(map(str, plain)) - known):
        raise InputError(f"{path}: unknown keys {', '.join(unknown)}; known are {sorted(known)}")
    try:
        return msgspec.convert(plain, Evaluation, dec_hook=partial(_path, path.parent))
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}") from error


def _path(folder: Path, kind: type, value: Any) -> Path:
    if kind is Path and isinstance(value, str):
        return folder / value
    raise NotImplementedError(f"{value!r} is not of type {kind.__name__}")
