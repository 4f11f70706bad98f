"""A population study of several attackers: from files of embeddings to files of results."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.files.atomic import write_text
from voxrisk.files.embeddings import read_embeddings
from voxrisk.files.score_matrix import read_score_matrix
from voxrisk.measure.curves import Population, Protocol
from voxrisk.measure.plda import train_plda
from voxrisk.measure.population import population_of_scores, population_of_sets
from voxrisk.measure.scoring import Scorer, cosine
from voxrisk.types import Estimate, InputError


@dataclass(frozen=True, slots=True)
class Attacker:
    """What one attacker sees.

    Attributes:
        name: ``original``, ``ignorant``, ``semi-informed``, ``informed`` or any other.
        a: Embeddings of the large set, or a ready score matrix.
        b: Embeddings of the speakers to be looked for, if they are in a file of their own.
        train: Embeddings to train PLDA on; None scores by cosine.
    """

    name: str
    a: Path
    b: Path | None = None
    train: Path | None = None


def study(
    attackers: Sequence[Attacker],
    protocol: Protocol,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Population]:
    """Measure each attacker in turn; ``tell`` hears what is going on."""
    names = [attacker.name for attacker in attackers]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two attackers are called {min(twice)}; give them different names")
    found = []
    for attacker in attackers:
        tell(f"{attacker.name}: reading {attacker.a}")
        matrix = read_score_matrix(attacker.a)
        if matrix is not None:
            found.append(
                population_of_scores(
                    matrix.score,
                    matrix.enroll,
                    matrix.trial,
                    length=protocol.lengths[0],
                    attacker=attacker.name,
                    protocol=protocol,
                )
            )
            continue
        a = read_embeddings(attacker.a)
        b = read_embeddings(attacker.b) if attacker.b else None
        scorer: Scorer = cosine
        if attacker.train:
            tell(f"{attacker.name}: training PLDA on {attacker.train}")
            train = read_embeddings(attacker.train)
            if train.vectors.shape[1] != a.vectors.shape[1]:
                raise InputError(
                    f"{train.source} has {train.vectors.shape[1]} dimensions and {a.source} has "
                    f"{a.vectors.shape[1]}; PLDA needs vectors of the same extractor"
                )
            scorer = train_plda(train)
        tell(f"{attacker.name}: comparing {len(a.utterance):,} utterances")
        found.append(
            population_of_sets(a, b, attacker=attacker.name, scorer=scorer, protocol=protocol)
        )
    return found


def write_results(populations: Sequence[Population], folder: Path) -> str:
    """Write ``results.json``, the tidy ``results.csv`` and ``speakers.csv``; return the JSON."""
    plain = {"voxrisk": __version__, "attackers": [_plain(p) for p in populations]}
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "results.json", text + "\n")
    rows = (_tidy(p.attacker, e) for p in populations for e in p.estimates)
    write_text(folder / "results.csv", _csv(rows))
    people = (
        {
            "attacker": p.attacker,
            "metric": risk.metric,
            "L": risk.length,
            "N": risk.size,
            "speaker": risk.speaker,
            "value": risk.value,
        }
        for p in populations
        for risk in p.speakers
    )
    write_text(folder / "speakers.csv", _csv(people))
    return text


def _plain(p: Population) -> dict[str, Any]:
    return {
        "attacker": p.attacker,
        "parameters": dict(p.parameters),
        "excluded": {length: dict(who) for length, who in p.excluded.items()},
        "estimates": [e.to_json() for e in p.estimates],
    }


def _tidy(attacker: str, e: Estimate) -> dict[str, Any]:
    span = asdict(e.interval) if e.interval else {}
    return {
        "attacker": attacker,
        "metric": e.name,
        "L": e.parameters["L"],
        "N": e.parameters["N"],
        "value": e.value,
        "low": span.get("low", ""),
        "high": span.get("high", ""),
        "confidence": span.get("confidence", ""),
        "method": span.get("method", ""),
        "chance": e.chance,
        "chance_paper": e.parameters["chance_paper"],
        "speakers": e.n["speaker"],
        "source": e.source,
    }


def _csv(rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()
