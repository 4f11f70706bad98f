"""A population study of several attackers: from files of embeddings to files of results."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from voxrisk.files.embeddings import read_embeddings
from voxrisk.files.score_matrix import read_score_matrix
from voxrisk.measure import FIGURES
from voxrisk.measure.crowd import crowd_of_scores, crowd_of_sets
from voxrisk.measure.plda import train_plda
from voxrisk.measure.population import Population, Protocol
from voxrisk.measure.scorers import Scorer, cosine
from voxrisk.notices import notice
from voxrisk.pipeline.findings import exposed
from voxrisk.results import AttackResult, Methods, Results
from voxrisk.shards import spread
from voxrisk.types import InputError


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
                crowd_of_scores(
                    matrix.score,
                    matrix.enroll,
                    matrix.trial,
                    length=protocol.lengths[0],
                    attacker=attacker.name,
                    protocol=protocol,
                    spread=spread,
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
            crowd_of_sets(
                a, b, attacker=attacker.name, scorer=scorer, protocol=protocol, spread=spread
            )
        )
    return found


def results_of(populations: Sequence[Population], protocol: Protocol) -> Results:
    """What ``voxrisk population`` found, in the form of every command; speakers by their ids."""
    lengths = sorted({e.length for p in populations for e in p.estimates})
    sizes = sorted({e.size for p in populations for e in p.estimates})
    notices = [
        notice("left_out", count=len(who), speakers=who,
               why=f"too few utterances for {FIGURES[metric].label} at L = {length} ({p.attacker})")
        for p in populations
        for length, by_metric in p.excluded.items()
        for metric, who in by_metric.items()
        if who
    ]  # fmt: skip
    return Results(
        kind="population",
        title=", ".join(p.attacker for p in populations),
        notices=tuple(notices),
        attacks=tuple(
            AttackResult(
                name=p.attacker,
                crowd=p.estimates,
                reference=p.attacker == "original",
                speakers=tuple(exposed(p)),
            )
            for p in populations
        ),
        methods=Methods(
            seed=protocol.seed,
            confidence=protocol.confidence,
            resamples=protocol.resamples,
            lengths=tuple(lengths),
            sizes=tuple(sizes),
        ),
    )


def speaker_rows(populations: Sequence[Population]) -> Iterable[dict[str, object]]:
    """Every figure of every person, for ``speakers.csv``."""
    return (
        {
            "attack": p.attacker,
            "figure": risk.metric,
            "L": risk.length,
            "N": risk.size,
            "speaker": risk.speaker,
            "value": risk.value,
        }
        for p in populations
        for risk in p.speakers
    )
