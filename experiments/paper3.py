"""What the scripts of paper 3 share: anonymize once, train an attacker, measure it.

``--scale small`` runs on a CPU with the data in $VOXRISK_SHARED: a few speakers of ``train_opus``,
anonymized with ``world`` (pitch and mean spectrum of the target, so targets are audible), 10
held-out speakers as targets, evaluation on ``librispeech_eval``. ``--scale paper`` is the paper's
set-up on LibriSpeech (train-clean-360, test-clean) for a GPU; give the folders with --train, --test
and --targets.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from voxrisk.attack.embed import embed_corpus
from voxrisk.attack.recipes import RECIPES, SMALL, SPANE, Recipe
from voxrisk.attack.starts import start_checkpoint
from voxrisk.attack.train import Trained, train_attacker
from voxrisk.attack.trials import score_trials
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.trials import Trial, make_trials, read_enrolments
from voxrisk.files.scores import read_trials
from voxrisk.measure.eer import rocch_eer
from voxrisk.protect.run import anonymize

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
    ready: tuple[list[Utterance], list[Utterance]] | None = None
    start: Path | None = None


@dataclass(frozen=True)
class Result:
    """The three figures of Table 1, as fractions, and the training behind them."""

    eer: float
    ver_source: float
    ver_target: float
    trained: Trained


def setup(description: str) -> Setup:
    """Read the command line and the data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", choices=("small", "paper"), default="small")
    parser.add_argument("--work", type=Path, required=True, help="folder for everything made")
    parser.add_argument("--anonymizer", default="world")
    parser.add_argument("--train", type=Path, help="paper: LibriSpeech train-clean-360")
    parser.add_argument("--test", type=Path, help="paper: LibriSpeech test-clean")
    parser.add_argument("--targets", type=Path, help="paper: 100 speakers of LibriTTS")
    parser.add_argument(
        "--ready",
        type=Path,
        nargs=2,
        metavar=("TRAIN", "TEST"),
        help="small: speech of --anonymizer with random targets, as voxrisk evaluate left it; for "
        "same-gender selection those of its utterances that drew such a target",
    )
    parser.add_argument(
        "--start",
        type=Path,
        help="small: begin with this attacker (trained on original speech), not with nothing",
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--speakers", type=int, default=40, help="small: training speakers")
    parser.add_argument("--utterances", type=int, default=8, help="small: utterances of each")
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
    targets = [n for g in "fm" for n in sorted(_of_gender(speakers, g))[::7][:5]]
    others = [name for name in sorted(speakers) if name not in targets][: given.speakers]
    folder = shared / "librispeech_eval"
    listed = [Trial(*pair) for pair in read_trials(folder / "trials.csv").pairs()]
    # Every third trial utterance is enough for a look, unless all are anonymized already.
    kept = set(sorted({t.trial for t in listed})[:: 1 if given.ready else 3])
    enrolments = dict(read_enrolments(folder / "enroll.csv"))
    used = kept | {u for utterances in enrolments.values() for u in utterances}
    recipe = replace(SMALL, speeds=(1.0,), batch=32)
    if given.epochs:
        recipe = replace(recipe, epochs=given.epochs, zero_epochs=given.epochs // 2)
    return Setup(
        given.work,
        [row for name in others for row in speakers[name][: given.utterances]],
        [row for row in read_corpus(folder) if row.utterance in used],
        [row for name in targets for row in speakers[name]],
        enrolments,
        [t for t in listed if t.trial in kept],
        given.anonymizer,
        recipe,
        tuple(range(given.seeds)),
        given.device,
        (read_corpus(given.ready[0]), read_corpus(given.ready[1])) if given.ready else None,
        start_checkpoint(str(given.start)) if given.start else None,
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
    enrolments: dict[str, list[str]] = {}
    for row in enroll:
        enrolments.setdefault(row.speaker, []).append(row.utterance)
    return Setup(
        given.work,
        read_corpus(given.train),
        [*enroll, *trial],
        read_corpus(given.targets),
        enrolments,
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


def _of_gender(speakers: dict[str, list[Utterance]], gender: str) -> list[str]:
    return [name for name, rows in speakers.items() if rows[0].gender == gender]


def anonymized(given: Setup, selection: str) -> tuple[list[Utterance], list[Utterance]]:
    """Training and test speech, anonymized once for all seeds, a new target for each utterance."""
    if given.ready:
        genders = {row.speaker: row.gender for row in read_corpus(_shared() / "train_opus")}
        return tuple(
            [r for r in rows if selection == "r" or genders[r.extra["target"]] == r.gender]
            for rows in given.ready
        )
    made = []
    for part, rows, seed in (("train", given.train, 1), ("test", given.test, 2)):
        folder = given.work / f"{given.anonymizer}-{selection}" / part
        made.append(
            anonymize(
                rows,
                folder,
                given.anonymizer,
                targets=given.targets,
                select=SELECTIONS[selection],
                per="utterance",
                seed=seed,
            )
        )
    return made[0], made[1]


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
    """Train an attacker and measure it; ``zero_epochs`` (E) makes it adversarial.

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
    encoder = str(folder / "attacker")
    vectors = embed_corpus(test, encoder, folder / "test.npz", device=given.device)
    training = embed_corpus(train, encoder, folder / "train.npz", device=given.device)
    there = {row.utterance for row in test}
    models = {m: [u for u in own if u in there] for m, own in given.enrolments.items()}
    models = {m: own for m, own in models.items() if own}
    scored = score_trials(
        vectors,
        [t for t in given.trials if t.trial in there and t.enroll in models],
        models,
        centre=training.vectors.mean(axis=0, dtype=np.float64),
    )
    last = trained.epochs[-1]
    return Result(
        rocch_eer(scored.target, scored.nontarget),
        last.ver_source,
        float("nan") if last.ver_target is None else last.ver_target,
        trained,
    )


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation over seeds, in percent, as the paper prints it."""
    return f"{100 * np.mean(values):5.1f} ± {100 * np.std(values):3.1f}"
