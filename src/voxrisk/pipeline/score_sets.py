"""Score files to results: load, measure, write ``results.json`` and ``results.csv``."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.files.atomic import write_text
from voxrisk.files.scores import PairTable, join, read_scores, read_speakers, read_trials
from voxrisk.measure import (
    DEFINITIONS,
    Similarity,
    Trials,
    evaluate,
    evaluate_similarity,
    similarity_matrix,
    tag,
)
from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.types import Estimate, InputError

FEW_SPEAKERS = 20


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSet:
    """One set of scores and everything found about it.

    Attributes:
        name: What the user calls it.
        trials: The joined trials.
        files: Path and SHA-256 of every file behind it.
        warnings: What a reader must know, in plain words.
        original: The same trials on original speech (OO), if given.
        crossed: Original against protected speech (OP), if given.
        figures: Estimates by name.
        similarities: (OO, OP, PP), or the set's own matrix alone, or empty.
        confidence: Coverage of the intervals.
    """

    name: str
    trials: Trials
    files: Mapping[str, Mapping[str, str]]
    warnings: tuple[str, ...] = ()
    original: Trials | None = None
    crossed: Trials | None = None
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    similarities: tuple[Similarity, ...] = ()
    confidence: float = 0.95

    @property
    def tag(self) -> str:
        """ZEBRA's category of the worst case."""
        return tag(self.figures["log10_l"].value)

    @property
    def slug(self) -> str:
        """The name as it may stand in a file name."""
        return re.sub(r"[^A-Za-z0-9._-]+", "_", self.name).strip("._") or "set"

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they stand in results.json."""
        return {
            "name": self.name,
            "files": self.files,
            "sizes": self.trials.sizes,
            "zebra_tag": self.tag,
            "warnings": list(self.warnings),
            "figures": {name: estimate.to_json() for name, estimate in self.figures.items()},
            "speakers": speaker_rows(self),
        }


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

    def load(path: Path, key: PairTable) -> tuple[Trials, list[str]]:
        return join(read_scores(path), key, speakers=who, allow_extra=allow_extra)

    sets = []
    for i, (name, path) in enumerate(named):
        key = keys[min(i, len(keys) - 1)]
        scored, warnings = load(path, key)
        files = {"scores": _file(path), "trials": _file(key.path)}
        original = cross = None
        if reference:
            original, _ = load(reference, key)
            files["reference"] = _file(reference)
        if crossed:
            cross, _ = load(crossed[i], key)
            files["cross"] = _file(crossed[i])
        sets.append(ScoreSet(name, scored, files, tuple(warnings), original, cross))
    if reference and sets[0].original is not None:
        files = {"scores": _file(reference), "trials": _file(keys[0].path)}
        sets.append(ScoreSet("original", sets[0].original, files))
    return sets


def _file(path: Path) -> dict[str, str]:
    inside = [path / name for name in ("scores", "trials") if (path / name).is_file()]
    source = inside[0] if path.is_dir() and inside else path
    digest = hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else ""
    return {"path": str(path), "sha256": digest}


def measure_sets(
    sets: Sequence[ScoreSet], *, resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> list[ScoreSet]:
    """Fill in figures, similarity matrices and warnings."""
    return [_measure(s, resamples, seed, confidence) for s in sets]


def _measure(s: ScoreSet, resamples: int, seed: int, confidence: float) -> ScoreSet:
    warnings = list(s.warnings)
    n = len(s.trials.speakers)
    if resamples and n < MIN_SPEAKERS:
        warnings.append(f"only {n} speakers: no interval can be given")
        resamples = 0
    elif n < FEW_SPEAKERS:
        warnings.append(f"only {n} speakers: the figures may not hold for others")
    found = evaluate(s.trials, resamples=resamples, seed=seed, confidence=confidence)
    figures = dict(found)
    if "d_sys" in found.undefined:
        warnings.append(f"no D_sys: {found.undefined['d_sys']}")
    if figures["interpolated_eer"].value > 0.55:
        warnings.append(
            "scores point the wrong way (strangers score higher than the speaker): check that a "
            "higher score means more similar"
        )
    if s.original is not None:
        plain = evaluate(s.original, resamples=0)["rocch_eer"].value
        if plain > 0.4:
            warnings.append(
                f"the attack fails on original speech too (EER {plain:.0%}): a weak attack proves "
                "no privacy"
            )
    matrices: tuple[Similarity, ...] = ()
    try:
        if s.original is not None and s.trials is not s.original:
            alike = evaluate_similarity(
                s.original,
                crossed=s.crossed,
                protected=s.trials,
                resamples=resamples,
                seed=seed,
                confidence=confidence,
            )
            figures |= alike
            for name, reason in alike.undefined.items():
                warnings.append(f"no {DEFINITIONS[name].label}: {reason}")
        parts = [s.original, s.crossed, s.trials] if s.crossed is not None else [s.trials]
        matrices = tuple(similarity_matrix(part) for part in parts if part is not None)
    except InputError as error:
        warnings.append(f"no voice similarity: {error}")
    return replace(
        s,
        figures=figures,
        similarities=matrices,
        warnings=tuple(warnings),
        confidence=confidence,
    )


def speaker_rows(s: ScoreSet) -> list[dict[str, Any]]:
    """Who stands out: similarity of each voice to itself and to the most similar other voice.

    With OO, OP and PP the first is S_OP(i, i): how well the original voice finds its protected
    self. Most exposed first.
    """
    if not s.similarities:
        return []
    matrix = s.similarities[1 if len(s.similarities) == 3 else 0]
    rows = []
    for i, speaker in enumerate(matrix.speakers):
        others = [(float(matrix.matrix[i, j]), j) for j in range(len(matrix.speakers)) if j != i]
        nearest, j = max(others)
        rows.append(
            {
                "speaker": speaker,
                "similarity_to_self": float(matrix.matrix[i, i]),
                "nearest_other": matrix.speakers[j],
                "similarity_to_nearest": nearest,
            }
        )
    return sorted(rows, key=lambda row: (-row["similarity_to_self"], row["speaker"]))


def write_results(sets: Sequence[ScoreSet], folder: Path) -> str:
    """Write ``results.json``, the tidy ``results.csv`` and ``speakers.csv``; return the JSON."""
    plain = {"voxrisk": __version__, "sets": [s.to_json() for s in sets]}
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "results.json", text + "\n")
    rows = [_tidy(s, estimate) for s in sets for estimate in s.figures.values()]
    write_text(folder / "results.csv", _csv(rows))
    people = [{"set": s.name, **row} for s in sets for row in speaker_rows(s)]
    if people:
        write_text(folder / "speakers.csv", _csv(people))
    return text


def _tidy(s: ScoreSet, e: Estimate) -> dict[str, Any]:
    span = e.interval
    return {
        "set": s.name,
        "figure": e.name,
        "value": e.value,
        "low": span.low if span else "",
        "high": span.high if span else "",
        "confidence": span.confidence if span else "",
        "method": span.method if span else "",
        "chance": e.chance,
        "unit": DEFINITIONS[e.name].unit,
        **{f"n_{key}": value for key, value in e.n.items()},
        "source": e.source,
    }


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
