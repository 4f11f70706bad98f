"""What an evaluation is asked to do: the choices that ``evaluation.yaml`` holds."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from voxrisk.corpus.trials import Lists
from voxrisk.files.plain_yaml import read_plain_yaml
from voxrisk.hearing import RECOGNISERS, check_recogniser, language_code
from voxrisk.knowledge import attacker
from voxrisk.pipeline.sharing import is_shown, shown_choice, shown_options
from voxrisk.results import FILE
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work an evaluation may take.

    Attributes:
        resamples: Draws of speakers behind each interval.
        lengths: Conversation lengths L.
        asr_minutes: At most so much speech of either kind is transcribed.
        asr: Recogniser of English.
        asr_others: Recogniser of speech that is not English, or not all of it.
        train_minutes: At most so much speech trains an attacker.
        adapter: Train a map behind the ready encoder instead of a whole recogniser.
        recipe: How a whole recogniser is trained, from nothing.
        words: What it will take, told beforehand.
        suite: Encoders beside the chosen one that the informed attacker's suite may use.
        aligned: Whether it also enrols original speech, aligned with anonymized speech.
        marks_minutes: At most so much of the speech that is transcribed is marked for naturalness
            and quality.
    """

    resamples: int
    lengths: tuple[int, ...]
    asr_minutes: float
    asr: str
    asr_others: str
    train_minutes: float
    adapter: bool
    recipe: str
    words: str
    suite: tuple[str, ...] = ()
    aligned: bool = True
    marks_minutes: float = 10.0


EFFORTS = {
    "quick": Effort(
        300, (1, 3), 1.5, "whisper-tiny.en", "whisper-base", 15.0, True, "",
        "on 2 cores about 0.1 times the length of the speech, a minute for what it is good for, "
        "and 2 minutes for each kind of training speech, beside the time of the anonymizer",
        ("prosody",), False,
    ),
    "standard": Effort(
        1000, (1, 3, 30), 20.0, "moonshine-base", "whisper-small", 60.0, True, "",
        "on 2 cores about 0.1 times the length of the speech, 4 minutes for what it is "
        "good for (half an hour where it is not English), "
        "and 4 minutes for each kind of training speech, beside the time of the anonymizer",
        ("wespeaker-resnet34", "prosody", "longterm"),
    ),
    "paper": Effort(
        1000, (1, 3, 30), 1e9, "moonshine-base", "whisper-small", 1e9, False, "paper",
        "hours on a GPU, and days on a CPU, for each training of an attacker",
        ("wespeaker-resnet34", "prosody", "durations", "longterm"), marks_minutes=1e9,
    ),
}  # fmt: skip


Kind = TypeVar("Kind")
YAML = "evaluation.yaml"
SPLITS = ("official", "own")


class Draws(Protocol):
    """What figures and their intervals need of whoever was asked for them."""

    @property
    def effort(self) -> str:
        """Its name."""

    @property
    def limits(self) -> Effort:
        """Resamples and lengths."""

    @property
    def seed(self) -> int:
        """Of everything random."""

    @property
    def confidence(self) -> float:
        """Of the intervals."""


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
        train_anonymized: Other speakers' speech, anonymized as the published speech was: the
            informed attacker trains on it without an anonymizer. Under the ids of ``train``, where
            both are given; a column ``target`` names target voices, for those who unlearn them.
        enroll_anonymized: What attackers enrol who enrol anonymized speech, where it was anonymized
            with other draws than the published speech; under the ids of ``original``.
        similar: Anonymizer of the semi-informed attacker.
        encoder: Ready speaker encoder.
        suite: More encoders for the attacker who chooses; empty: those of the effort.
        effort: ``quick``, ``standard`` or ``paper``.
        attackers: Names to run, or empty for all that the inputs allow.
        title: Of the report.
        sets: Lists of enrolments and trials, where not those that come with the speech.
        split: ``official`` (the lists or roles that come with the speech, where there are any) or
            ``own`` (enrolment and trials are drawn here).
        seed: Of everything random.
        confidence: Of the intervals.
        risk: How often a person may be linked; those above it are counted.
        reveal: Print speaker ids as they are instead of pseudonyms.
        with_audio: Put a few pairs of utterances into the report.
        utility: Whether to measure what the speech is still good for.
        language: Language of the speech; None takes that of the table, else English.
        asr: Speech recogniser; None takes one of the effort that knows the language.
        group_by: Columns by whose values or bands figures are told apart; without any, gender, age
            and language where they are known.
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
    train_anonymized: Path | None = None
    enroll_anonymized: Path | None = None
    similar: str | None = None
    encoder: str = "ecapa-voxceleb"
    suite: tuple[str, ...] = ()
    effort: str = "standard"
    attackers: tuple[str, ...] = ()
    sets: tuple[Lists, ...] = ()
    split: str = "official"
    title: str | None = None
    seed: int = 0
    confidence: float = 0.95
    risk: float = 0.5
    reveal: bool = False
    with_audio: bool = False
    utility: bool = True
    language: str | None = None
    asr: str | None = None
    group_by: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.anonymized is None) == (self.anonymizer is None):
            raise InputError(
                "give either anonymized speech (--anonymized) or an anonymizer (--anonymizer), and "
                "not both"
            )
        if self.effort not in EFFORTS:
            raise InputError(f"effort is {self.effort!r}; it must be {', '.join(EFFORTS)}")
        if self.similar and not self.train:
            raise InputError("a similar anonymizer needs training speech: add --train DIR")
        needed = not (self.anonymizer or self.similar or self.train_anonymized)
        if self.train and needed:
            raise InputError(
                "--train needs an anonymizer: attackers train on speech that voxrisk anonymizes as "
                "yours was, and from finished files alone it cannot; give --train-anonymized DIR, "
                "the same speech anonymized as yours was, or --anonymizer instead of --anonymized, "
                "or --similar NAME for an attacker who has a similar one, or leave out --train"
            )
        if self.split not in SPLITS:
            raise InputError(f"split is {self.split!r}; it must be {' or '.join(SPLITS)}")
        if self.sets and self.split == "own":
            raise InputError("--split own draws its own trials: leave out --trials, or the split")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; it must be 0 or more")
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence is {self.confidence}; it lies between 0 and 1")
        if not 0.0 < self.risk <= 1.0:
            raise InputError(f"risk is {self.risk}; it lies above 0 and is at most 1")
        for name in self.attackers:
            attacker(name)
        if self.asr is not None:
            check_recogniser(self.asr)
        if self.language is not None:
            language_code(self.language)
        if both := sorted(set(self.hide) & set(self.keep)):
            raise InputError(f"{both[0]!r} is to be hidden and kept; choose one of them")

    @property
    def limits(self) -> Effort:
        """Sizes that go with the effort."""
        return EFFORTS[self.effort]

    @property
    def suite_encoders(self) -> tuple[str, ...]:
        """Every encoder that the attacker who chooses may use, the chosen one first."""
        return tuple(dict.fromkeys((self.encoder, *(self.suite or self.limits.suite))))

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
    return yaml_from(_chosen(evaluation), folder)


def yaml_from(plain: Mapping[str, Any], folder: Path) -> str:
    """YAML with every path as it is seen from ``folder``."""
    return _yaml(_written(dict(plain), lambda _, path: _from_folder(path, folder)))


def yaml_hidden(plain: Mapping[str, Any]) -> str:
    """YAML with the name of its role, in capitals, for every path."""
    return _yaml(_hidden(plain))


def _hidden(plain: Mapping[str, Any]) -> dict[str, Any]:
    hidden: dict[str, Any] = _written(dict(plain), lambda key, _: key.upper())
    hidden.pop("title", None)
    return hidden


def refuse_another_run(yaml: str, folder: Path, *, force: bool, file: str = YAML) -> None:
    """Results of another evaluation are not written over; ``file`` holds its choices."""
    if force or not (folder / FILE).is_file():
        return
    before = folder / file
    if not before.is_file() or before.read_text(encoding="utf-8") != yaml:
        raise InputError(
            f"{folder} holds the results of another evaluation; choose another folder or add "
            "--force (finished stages can be shared: --stages DIR)"
        )


def shared_yaml(evaluation: Evaluation) -> str:
    """The same for eyes that may not see names: each path is the name of its role, in capitals."""
    hidden = _hidden(_chosen(evaluation))
    for key in ("anonymizer", "similar"):
        if hidden.get(key):
            hidden[key] = shown_choice(str(hidden[key]))
    if "options" in hidden:
        hidden["options"] = shown_options(evaluation.anonymizer or "", evaluation.options)
    if str(hidden.get("encoder", "")) and not is_ready(evaluation.encoder):
        hidden["encoder"] = "ENCODER"
    if evaluation.asr and evaluation.asr not in RECOGNISERS:
        hidden["asr"] = "RECOGNISER"
    if evaluation.language:
        code = language_code(evaluation.language)
        hidden["language"] = code if is_shown("language", code) else "LANGUAGE"
    if "suite" in hidden:
        hidden["suite"] = [name if is_ready(name) else "ENCODER" for name in evaluation.suite]
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
    plain |= {"suite": list(evaluation.suite)}
    plain |= {name: list(getattr(evaluation, name)) for name in ("hide", "keep", "group_by")}
    plain["sets"] = plain_sets(evaluation.sets)
    kept = {"effort", "seed", "encoder"}  # said even where they are the default
    return {
        key: value
        for key, value in plain.items()
        if key in kept or (value != default[key] and value not in (None, {}, []))
    }


def plain_sets(sets: Sequence[Lists]) -> list[dict[str, Any]]:
    """Sets of trials as YAML has them."""
    return [
        {f.name: value for f in fields(Lists) if (value := getattr(lists, f.name))}
        for lists in sets
    ]


def _written(plain: Any, path: Callable[[str, Path], str], key: str = "") -> Any:
    """The same with every path, also inside lists, as ``path(key, path)`` has it."""
    if isinstance(plain, Path):
        return path(key, plain)
    if isinstance(plain, dict):
        return {name: _written(value, path, name) for name, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_written(value, path, key) for value in plain]
    return plain


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
    plain = plain_yaml(path)
    if "original" not in plain:
        raise InputError(f"{path}: needs at least the key original")
    return choices_of(plain, Evaluation, path)


def plain_yaml(path: Path) -> dict[str, Any]:
    """The keys of a YAML file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    plain = read_plain_yaml(path)
    if not isinstance(plain, dict):
        raise InputError(f"{path}: needs at least the key original")
    return plain


def choices_of(plain: Mapping[str, Any], kind: type[Kind], path: Path) -> Kind:
    """The choices that the keys of a file make, each checked for its type."""
    import msgspec

    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(map(str, plain)) - known):
        raise InputError(f"{path}: unknown keys {', '.join(unknown)}; known are {sorted(known)}")
    try:
        return msgspec.convert(plain, kind, dec_hook=partial(_path, path.parent))
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}") from error


def checked(given: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """The choices of a caller in Python: paths may be text, and a wrong type is said.

    Raises:
        InputError: If a choice is unknown, or not of its type.
    """
    import msgspec

    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if unknown := [name for name in given if name not in known]:
        raise InputError(
            f"evaluate has no option {unknown[0]!r}; it has {', '.join(known)}, enroll and trials"
        )
    try:
        return msgspec.convert(dict(given), kind, dec_hook=_given_path)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        said = re.sub(r" - at `\$\.?(.*)`$", r" (\1)", str(error))
        if callable(given.get("anonymizer")):
            said += "; name your own function as 'package.module:function'"
        raise InputError(f"{said}; see help(voxrisk.evaluate)") from error


def _given_path(kind: type, value: Any) -> Path:
    if kind is Path and isinstance(value, str | os.PathLike) and str(value).strip():
        return Path(value)
    raise TypeError(f"{value!r} is not a path")


def _path(folder: Path, kind: type, value: Any) -> Path:
    if kind is Path and isinstance(value, str) and value.strip():
        return folder / value
    raise TypeError(f"{value!r} is not a path")
