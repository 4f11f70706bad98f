"""What the scripts of paper 3 share: anonymize once, train an attacker, measure it.

``--scale small`` runs on a CPU with the data in $VOXRISK_SHARED: up to five utterances (2 to 9 s)
of each speaker of ``train_opus`` but 20, who are the targets, half of each gender; evaluation on
up to five enrolment and six trial utterances (1.5 to 12 s) of each speaker of ``librispeech_eval``.
Random and same-gender selection have the same utterances. ``--scale paper`` is the paper's set-up
on LibriSpeech (train-clean-360, test-clean) for a GPU; give the folders with --train, --test and
--targets.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from voxrisk.attack.adapter import Unlearn, fit_adapter
from voxrisk.attack.embed import embed_corpus
from voxrisk.attack.epochs import Epoch
from voxrisk.attack.recipes import ADAPTED, RECIPES, SMALL, SPANE, AdapterRecipe, Recipe
from voxrisk.attack.scoring import score_trials
from voxrisk.attack.starts import start_checkpoint
from voxrisk.attack.train import train_attacker
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.trials import Trial, make_trials
from voxrisk.files.embeddings import read_embeddings
from voxrisk.measure.eer import rocch_eer
from voxrisk.protect.run import anonymize
from voxrisk.types import Embeddings

SELECTIONS = {"r": "random", "s": "same-gender"}  # the subscripts of the paper


@dataclass(frozen=True)
class Setup:
    """Data and sizes of one scale."""

    work: Path
    train: list[Utterance]
    test: list[Utterance]
    targets: list[Utterance]
    enrolments: dict[str, list[str]]
    trials: list[Trial]
    anonymizer: str
    recipe: Recipe
    seeds: tuple[int, ...]
    device: str
    start: Path | None = None
    encoder: bool = True


@dataclass(frozen=True)
class Result:
    """The three figures of Table 1, as fractions, and the curve of every epoch."""

    eer: float
    ver_source: float
    ver_target: float
    epochs: tuple[Epoch, ...]


def setup(description: str) -> Setup:
    """Read the command line and the data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", choices=("small", "paper"), default="small")
    parser.add_argument("--work", type=Path, required=True, help="folder for everything made")
    parser.add_argument("--anonymizer", default="knn")
    parser.add_argument("--train", type=Path, help="paper: LibriSpeech train-clean-360")
    parser.add_argument("--test", type=Path, help="paper: LibriSpeech test-clean")
    parser.add_argument("--targets", type=Path, help="paper: 100 speakers of LibriTTS")
    parser.add_argument(
        "--start",
        type=Path,
        help="small: begin with this attacker (trained on original speech), not with nothing",
    )
    parser.add_argument(
        "--encoder", action="store_true", help="small: train whole encoders for Table 1"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="instead of the recipe's")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    build = _paper if given.scale == "paper" else _small
    return build(given)


def _shared() -> Path:
    return Path(os.environ.get("VOXRISK_SHARED", "../shared")) / "data"


def _small(given: argparse.Namespace) -> Setup:
    shared = _shared()
    speakers = _by_speaker(read_corpus(shared / "train_opus"))
    # Every 7th speaker of each gender is a target; the others train.
    targets = [n for g in "fm" for n in sorted(_of_gender(speakers, g))[::7][:10]]
    train = [
        row
        for name in sorted(speakers)
        if name not in targets
        for row in _lasting(speakers[name], 2.0, 9.0)[:5]
    ]
    enroll, trial = [], []
    tried = _by_speaker(read_corpus(shared / "librispeech_eval"))
    for name in sorted(tried):
        own = _lasting(tried[name], 1.5, 12.0)
        enroll += [row for row in own if row.extra["role"] == "enroll"][:5]
        trial += [row for row in own if row.extra["role"] != "enroll"][:6]
    recipe = replace(SMALL, speeds=(1.0,), batch=32, centre=True)
    if given.epochs:
        recipe = replace(recipe, epochs=given.epochs, zero_epochs=given.epochs // 2)
    return Setup(
        given.work,
        train,
        [row for name in sorted(tried) for row in (*enroll, *trial) if row.speaker == name],
        [row for name in targets for row in speakers[name]],
        _enrolled(enroll),
        list(make_trials(enroll, trial)),
        given.anonymizer,
        recipe,
        tuple(range(given.seeds)),
        given.device,
        start_checkpoint(str(given.start)) if given.start else None,
        given.encoder,
    )


def _paper(given: argparse.Namespace) -> Setup:
    if not (given.train and given.test and given.targets):
        raise SystemExit("--scale paper needs --train, --test and --targets")
    test = _by_speaker(read_corpus(given.test))
    # Franzreb et al. 2025: 20 enrolment and 20 trial utterances of each of the 40 speakers; where
    # a speaker has fewer than 40, the enrolment is served first.
    random = np.random.default_rng(0)
    enroll, trial = [], []
    for name in sorted(test):
        own = [test[name][i] for i in random.permutation(len(test[name]))]
        enroll += own[:20]
        trial += own[20:40]
    return Setup(
        given.work,
        read_corpus(given.train),
        [*enroll, *trial],
        read_corpus(given.targets),
        _enrolled(enroll),
        list(make_trials(enroll, trial)),
        given.anonymizer,
        replace(SPANE, epochs=given.epochs) if given.epochs else SPANE,
        tuple(range(given.seeds)),
        given.device,
    )


def _by_speaker(rows: Sequence[Utterance]) -> dict[str, list[Utterance]]:
    groups: dict[str, list[Utterance]] = {}
    for row in rows:
        groups.setdefault(row.speaker, []).append(row)
    return groups


def _lasting(rows: Sequence[Utterance], least: float, most: float) -> list[Utterance]:
    return [row for row in rows if least <= (row.duration or 0.0) <= most]


def _enrolled(rows: Sequence[Utterance]) -> dict[str, list[str]]:
    return {name: [row.utterance for row in own] for name, own in _by_speaker(rows).items()}


def _of_gender(speakers: dict[str, list[Utterance]], gender: str) -> list[str]:
    return [name for name, rows in speakers.items() if rows[0].gender == gender]


def anonymized(given: Setup, selection: str) -> tuple[list[Utterance], list[Utterance]]:
    """Training and test speech, anonymized once for all seeds, a new target for each utterance."""
    return anonymized_part(given, selection, "train"), anonymized_part(given, selection, "test")


def anonymized_part(given: Setup, selection: str, part: str) -> list[Utterance]:
    """One of the two, ``"train"`` or ``"test"``."""
    rows, seed = (given.train, 1) if part == "train" else (given.test, 2)
    return anonymize(
        rows,
        given.work / f"{given.anonymizer}-{selection}" / part,
        given.anonymizer,
        targets=given.targets,
        select=SELECTIONS[selection],
        per="utterance",
        seed=seed,
    )


def attack(
    given: Setup,
    train: Sequence[Utterance],
    test: Sequence[Utterance],
    name: str,
    *,
    seed: int,
    zero_epochs: int | None = None,
    size: str | None = None,
) -> Result:
    """Train a whole encoder and measure it; ``zero_epochs`` (E) makes it adversarial.

    Scores as in the paper: the mean training vector subtracted, mean enrolment, cosine.
    """
    recipe = given.recipe
    if zero_epochs is not None:
        recipe = replace(recipe, zero_epochs=zero_epochs)
    if size is not None:
        recipe = replace(recipe, size=RECIPES[size].size)
    folder = given.work / name / f"seed-{seed}"
    trained = train_attacker(
        train,
        folder / "attacker",
        recipe,
        seed=seed,
        adversarial=zero_epochs is not None and zero_epochs < recipe.epochs,
        start=given.start,
        device=given.device,
        cache=given.work / "speech",
    )
    encoder = str(folder / "attacker")  # it subtracts the mean training vector by itself
    vectors = embed_corpus(test, encoder, folder / "test.npz", device=given.device)
    return _result(given, vectors, trained.epochs)


def attack_behind(
    given: Setup,
    train: Sequence[Utterance],
    test: Sequence[Utterance],
    name: str,
    *,
    seed: int,
    unlearn: Unlearn | None,
    recipe: AdapterRecipe = ADAPTED,
) -> Result:
    """The same with a map behind ``ecapa-voxceleb``: vectors once, then seconds for a training."""
    vectors = [
        ready_vectors(given, rows, given.work / name / f"{part}.npz")
        for part, rows in (("train", train), ("test", test))
    ]
    targets = [row.extra["target"] for row in train]
    found = fit_adapter(vectors[0], recipe, targets=targets, unlearn=unlearn, seed=seed)
    mapped = replace(vectors[1], vectors=found.adapter.apply(vectors[1].vectors))
    return _result(given, mapped, found.epochs)


def ready_vectors(given: Setup, rows: Sequence[Utterance], path: Path) -> Embeddings:
    """Vectors of ``ecapa-voxceleb``, made once."""
    if not path.is_file():
        embed_corpus(rows, "ecapa-voxceleb", path, device=given.device)
    return read_embeddings(path)


def _result(given: Setup, vectors: Embeddings, epochs: Sequence[Epoch]) -> Result:
    scored = score_trials(vectors, given.trials, given.enrolments)
    last = epochs[-1]
    return Result(
        rocch_eer(scored.target, scored.nontarget),
        last.ver_source,
        float("nan") if last.ver_target is None else last.ver_target,
        tuple(epochs),
    )


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation over seeds, in percent, as the paper prints it."""
    return f"{100 * np.mean(values):5.1f} ± {100 * np.std(values):3.1f}"
