"""Where an evaluation begins with embeddings or scores: the choices that its YAML holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from voxrisk.corpus.trials import Lists
from voxrisk.pipeline.evaluation import EFFORTS, Effort, choices_of, plain_sets, plain_yaml
from voxrisk.types import InputError

REFERENCE = "original"
UNNAMED = "given"  # an attacker of whom nothing is said


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything that is chosen where an evaluation begins with embeddings or scores.

    Attributes:
        embeddings: Attacker → vectors of the published speech, tried and (unless given apart)
            enrolled. A name of :data:`voxrisk.knowledge.ATTACKERS` says what the attacker knows.
        enroll_embeddings: Attacker → vectors of what it enrols, where they are in another file.
        original_embeddings: Vectors of the original speech: the reference.
        scores: Attacker → score files, together one score for each trial.
        original_scores: Scores of the same trials on original speech: the reference.
        speakers: Who speaks in each utterance of the scores (utt2spk, CSV, manifest).
        sets: Lists of enrolments and trials; scores need them, embeddings may go without.
        effort: ``quick``, ``standard`` or ``paper``: draws behind intervals, lengths of
            conversations.
        title: Of the report.
        seed: Of everything random.
        confidence: Of the intervals.
        reveal: Print speaker ids as they are instead of pseudonyms.
    """

    embeddings: Mapping[str, Path] = field(default_factory=dict)
    enroll_embeddings: Mapping[str, Path] = field(default_factory=dict)
    original_embeddings: Path | None = None
    scores: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    original_scores: tuple[Path, ...] = ()
    speakers: Path | None = None
    sets: tuple[Lists, ...] = ()
    effort: str = "standard"
    title: str | None = None
    seed: int = 0
    confidence: float = 0.95
    reveal: bool = False

    def __post_init__(self) -> None:
        if bool(self.embeddings) == bool(self.scores):
            raise InputError("give either --embeddings or --scores of anonymized speech")
        if self.scores and not self.sets:
            raise InputError("scores need the list of their trials: add --trials LIST")
        if self.scores and (self.enroll_embeddings or self.original_embeddings):
            raise InputError("give either embeddings or scores, and not both")
        if self.embeddings and (self.original_scores or self.speakers):
            raise InputError("--original-scores and --speakers go with --scores")
        if strange := set(self.enroll_embeddings) - set(self.embeddings):
            raise InputError(
                f"--enroll-embeddings of {min(strange)!r}, who has no --embeddings; name both alike"
            )
        if REFERENCE in (*self.embeddings, *self.scores):
            raise InputError(
                f"{REFERENCE!r} is the reference; give it with --original-embeddings or "
                "--original-scores"
            )
        if self.effort not in EFFORTS:
            raise InputError(f"effort is {self.effort!r}; it must be {', '.join(EFFORTS)}")

    @property
    def limits(self) -> Effort:
        """Sizes that go with the effort."""
        return EFFORTS[self.effort]

    @property
    def kind(self) -> str:
        """Where the evaluation begins."""
        return "embeddings" if self.embeddings else "scores"

    def plain(self) -> dict[str, Any]:
        """Everything that is not as it is by default."""
        held = {f.name: getattr(self, f.name) for f in fields(Entry)} | {
            "sets": plain_sets(self.sets)
        }
        kept = {"effort", "seed"}
        empty: tuple[Any, ...] = (None, {}, [], (), False)
        return {
            key: value
            for key, value in held.items()
            if key in kept or not (value in empty or (key, value) == ("confidence", 0.95))
        }


def read_entry(path: Path) -> Entry | None:
    """The entry of an ``evaluation.yaml``, or None if that begins with speech."""
    plain = plain_yaml(path)
    if not {"embeddings", "scores"} & set(plain):
        return None
    return choices_of(plain, Entry, path)


def named_files(texts: Sequence[str | Path]) -> dict[str, tuple[Path, ...]]:
    """Attacker → files, from ``[ATTACKER=]FILE``; one attacker may have several.

    >>> list(named_files(["informed=f.csv", "informed=m.csv"]))
    ['informed']
    """
    found: dict[str, tuple[Path, ...]] = {}
    for text in texts:
        name, sign, path = str(text).partition("=")
        if not sign or Path(text).exists():
            name, path = UNNAMED, str(text)
        found[name] = (*found.get(name, ()), Path(path))
    return found


def one_file(option: str, texts: Sequence[str | Path]) -> dict[str, Path]:
    """The same where an attacker has one file only."""
    found = named_files(texts)
    if several := [name for name, files in found.items() if len(files) > 1]:
        raise InputError(
            f"{option}: {len(found[several[0]])} files of attacker {several[0]!r}; name them apart "
            "(ATTACKER=FILE)"
        )
    return {name: files[0] for name, files in found.items()}
