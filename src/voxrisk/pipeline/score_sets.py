"""Score files to results: load, measure, write ``results.json`` and ``results.csv``."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from voxrisk.files.joining import join
from voxrisk.files.scores import PairTable, read_scores, read_speakers, read_trials
from voxrisk.measure import (
    FIGURES,
    Similarity,
    Trials,
    evaluate_similarity,
    measure_scores,
    similarity_matrix,
    tag,
)
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.profiles import zero_profile
from voxrisk.results import AttackResult, Methods, Person, Results
from voxrisk.types import Estimate, InputError

FEW_SPEAKERS = 20
REVERSED = 0.55  # an EER above this means that scores point the wrong way
WEAK = 0.4  # an EER on original speech above this means that the attack is none
REFERENCE = "original"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSet:
    """One set of scores and everything found about it.

    Attributes:
        name: What the user calls it.
        trials: The joined trials.
        files: SHA-256 of every file behind it, by role.
        notices: What a reader must know.
        original: The same trials on original speech (OO), if given.
        crossed: Original against protected speech (OP), if given.
        figures: Estimates by name.
        similarities: (OO, OP, PP), or the set's own matrix alone, or empty.
        confidence: Coverage of the intervals.
    """

    name: str
    trials: Trials
    files: Mapping[str, str]
    notices: tuple[Notice, ...] = ()
    original: Trials | None = None
    crossed: Trials | None = None
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    similarities: tuple[Similarity, ...] = ()
    confidence: float = 0.95

    @property
    def tag(self) -> str:
        """ZEBRA's category of the worst case."""
        return tag(self.figures["log10_l"].value)

    def renamed(self, alias: Mapping[str, str]) -> "ScoreSet":
        """The same with speakers under other names in its similarity matrices, in their order."""
        return replace(self, similarities=tuple(s.renamed(alias) for s in self.similarities))

    @property
    def slug(self) -> str:
        """The name as it may stand in a file name."""
        return re.sub(r"[^A-Za-z0-9._-]+", "_", self.name).strip("._") or "set"


def load_sets(
    named: Sequence[tuple[str, Path]],
    trials: Sequence[Path],
    *,
    reference: Path | None = None,
    crossed: Sequence[Path] = (),
    speakers: Path | None = None,
    allow_extra: bool = False,
) -> list[ScoreSet]:
    """Read score files and join each to its trial list; the reference becomes a set of its own."""
    if len({name for name, _ in named}) < len(named):
        names = ", ".join(name for name, _ in named)
        raise InputError(f"score sets share a name ({names}); name them: NAME=scores.csv")
    who = read_speakers(speakers) if speakers else {}
    keys = [read_trials(path) for path in trials]

    def load(path: Path, key: PairTable) -> tuple[Trials, list[Notice]]:
        return join(read_scores(path), key, speakers=who, allow_extra=allow_extra)

    sets = []
    for i, (name, path) in enumerate(named):
        key = keys[min(i, len(keys) - 1)]
        scored, notices = load(path, key)
        files = {"scores": _file(path), "trials": _file(key.path)}
        original = cross = None
        if reference:
            original, _ = load(reference, key)
            files["reference"] = _file(reference)
        if crossed:
            cross, _ = load(crossed[i], key)
            files["cross"] = _file(crossed[i])
        sets.append(ScoreSet(name, scored, files, tuple(notices), original, cross))
    if reference and sets[0].original is not None:
        files = {"scores": _file(reference), "trials": _file(keys[0].path)}
        sets.append(ScoreSet(REFERENCE, sets[0].original, files))
    return sets


def _file(path: Path) -> str:
    inside = [path / name for name in ("scores", "trials") if (path / name).is_file()]
    source = inside[0] if path.is_dir() and inside else path
    return hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else ""


def compare_voices(
    sets: Sequence[ScoreSet], *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> list[ScoreSet]:
    """Fill in similarity matrices, DeID and G_VD, and why there are none."""
    return [_compare(s, resamples, seed, confidence) for s in sets]


def _compare(s: ScoreSet, resamples: int, seed: int, confidence: float) -> ScoreSet:
    notices = list(s.notices)
    figures: dict[str, Estimate] = {}
    matrices: tuple[Similarity, ...] = ()
    try:
        parts = [s.original, s.crossed, s.trials] if s.crossed is not None else [s.trials]
        matrices = tuple(similarity_matrix(part) for part in parts if part is not None)
        if s.original is not None and s.trials is not s.original:
            alike = evaluate_similarity(
                s.original,
                crossed=s.crossed,
                protected=s.trials,
                resamples=resamples if len(s.trials.speakers) >= MIN_SPEAKERS else 0,
                seed=seed,
                confidence=confidence,
            )
            figures |= alike
            notices += _undefined(alike.undefined)
    except InputError as error:
        notices.append(notice("no_similarity", figure="Voice similarity", why="not every pair of "
                              "speakers was compared", detail=str(error)))  # fmt: skip
    return replace(
        s, figures={**s.figures, **figures}, similarities=matrices, notices=tuple(notices)
    )


def _undefined(reasons: Mapping[str, str]) -> list[Notice]:
    return [
        notice("undefined", figure=FIGURES[name].label, why=why.rstrip("."))
        for name, why in reasons.items()
    ]


def measure_sets(
    sets: Sequence[ScoreSet], *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> list[ScoreSet]:
    """Fill in the figures of scores, and warnings."""
    return [_measure(s, resamples, seed, confidence) for s in sets]


def _measure(s: ScoreSet, resamples: int, seed: int, confidence: float) -> ScoreSet:
    notices = list(s.notices)
    n = len(s.trials.speakers)
    if resamples and n < MIN_SPEAKERS:
        notices.append(notice("no_interval", speakers=n))
        resamples = 0
    elif n < FEW_SPEAKERS:
        notices.append(notice("few_speakers", speakers=n))
    found = measure_scores(s.trials, resamples=resamples, seed=seed, confidence=confidence)
    figures = {**found, **s.figures}
    if s.trials.score.min() == s.trials.score.max():
        notices.append(notice("scores_constant"))
    elif figures["interpolated_eer"].value > REVERSED:
        notices.append(notice("scores_reversed"))
    if s.original is not None:
        plain = measure_scores(s.original, resamples=0)["rocch_eer"].value
        if plain > WEAK:
            notices.append(notice("weak_on_original", eer=plain))
    notices += _undefined(found.undefined)
    return replace(s, figures=figures, notices=tuple(notices), confidence=confidence)


def people(s: ScoreSet) -> tuple[Person, ...]:
    """Who stands out: similarity of each voice to itself and to the most similar other voice.

    With OO, OP and PP the first is S_OP(i, i): how well the original voice finds its protected
    self. Most exposed first.
    """
    if not s.similarities:
        return ()
    matrix = s.similarities[1 if len(s.similarities) == 3 else 0]
    rows = []
    for i, speaker in enumerate(matrix.speakers):
        others = [(float(matrix.matrix[i, j]), j) for j in range(len(matrix.speakers)) if j != i]
        nearest, j = max(others)
        rows.append(
            Person(
                speaker=speaker,
                similarity=float(matrix.matrix[i, i]),
                nearest_other=matrix.speakers[j],
                similarity_to_nearest=nearest,
            )
        )
    return tuple(sorted(rows, key=lambda p: (-(p.similarity or 0.0), p.speaker)))


def results_of(sets: Sequence[ScoreSet]) -> Results:
    """What ``voxrisk measure`` found, in the form of every command; speakers by their ids."""
    notices: list[Notice] = []
    for s in sets:
        notices += [n for n in s.notices if n not in notices]
    drawn = [e.parameters for s in sets for e in s.figures.values() if e.interval]
    return Results(
        kind="measure",
        title=", ".join(s.name for s in sets),
        notices=tuple(notices),
        attacks=tuple(
            AttackResult(
                name=s.name,
                figures=s.figures,
                tag=s.tag,
                speakers=people(s),
                sizes=s.trials.sizes,
                reference=s.name == REFERENCE,
            )
            for s in sets
        ),
        zero_evidence=zero_profile(),
        methods=Methods(
            confidence=sets[0].confidence,
            seed=int(drawn[0].get("seed", 0)) if drawn else 0,
            resamples=int(drawn[0].get("resamples", 0)) if drawn else 0,
            hashes={f"{s.name}, {role}": sha for s in sets for role, sha in s.files.items()},
        ),
    )
