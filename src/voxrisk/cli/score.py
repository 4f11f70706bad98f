"""``voxrisk score``: how alike enrolments and trial utterances sound."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.types import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voxrisk.corpus.trials import Trial
    from voxrisk.types import Embeddings

MADE = ("all-pairs", "same-gender")


class Backend(StrEnum):
    """What compares two vectors."""

    cosine = "cosine"
    plda = "plda"


def score(
    embeddings: Annotated[Path, typer.Argument(help="NPZ file with the trial utterances.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV file to write.")],
    trials: Annotated[
        str, typer.Option(help="A trial list (Kaldi, VoicePrivacy, CSV), all-pairs or same-gender.")
    ],
    enroll: Annotated[
        Path | None, typer.Option(help="Which utterances make an enrolment; else its speaker's.")
    ] = None,
    enroll_embeddings: Annotated[
        Path | None, typer.Option(help="NPZ file with the enrolment utterances, if another.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Corpus that knows the genders, for same-gender.")
    ] = None,
    train_embeddings: Annotated[
        Path | None, typer.Option(help="NPZ file of the training set: for centring, PLDA, AS-norm.")
    ] = None,
    centre: Annotated[bool, typer.Option(help="Subtract the mean training vector.")] = False,
    backend: Annotated[Backend, typer.Option(help="What compares vectors.")] = Backend.cosine,
    as_norm: Annotated[
        int,
        typer.Option(min=0, help="Normalise by so many nearest training speakers; 0: not at all."),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Score trials: the cosine between mean enrolment vector and trial vector, unless told else.

    \b
    Example:
      voxrisk score anonymized.npz --enroll-embeddings original.npz
        --trials trials.csv --enroll enroll.csv -o scores.csv
    """
    from voxrisk.attack.backends import cosine, plda, speaker_means
    from voxrisk.attack.scoring import score_trials
    from voxrisk.files.embeddings import read_embeddings
    from voxrisk.files.scores import write_scores
    from voxrisk.measure.eer import rocch_eer

    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another file or add --force")
    tried = read_embeddings(embeddings)
    enrolled = read_embeddings(enroll_embeddings) if enroll_embeddings else None
    listed, enrolments = _lists(trials, enroll, tried, enrolled, corpus)
    training = read_embeddings(train_embeddings) if train_embeddings else None
    if training is None and (centre or as_norm or backend is Backend.plda):
        raise InputError(
            "centring, PLDA and AS-norm need the training set: add --train-embeddings FILE.npz"
        )
    scored = score_trials(
        tried,
        listed,
        enrolments,
        enroll_embeddings=enrolled,
        centre=training.vectors.mean(axis=0, dtype=float) if training and centre else None,
        backend=plda(training) if training and backend is Backend.plda else cosine,
        cohort=speaker_means(training) if training and as_norm else None,
        nearest=as_norm or 1,
    )
    write_scores(output, scored.enroll, scored.trial, scored.score, is_target=scored.label)
    facts: dict[str, object] = {
        "output": str(output),
        "target": len(scored.target),
        "nontarget": len(scored.nontarget),
        "rocch_eer": rocch_eer(scored.target, scored.nontarget),
    }
    if as_json:
        print(json.dumps(facts))
    else:
        print(
            f"{output}: {facts['target']} target and {facts['nontarget']} nontarget scores, "
            f"ROCCH-EER {100 * float(facts['rocch_eer']):.2f} %"  # type: ignore[arg-type]
        )


def _lists(
    trials: str,
    enroll: Path | None,
    tried: "Embeddings",
    enrolled: "Embeddings | None",
    corpus: Path | None,
) -> "tuple[list[Trial], Mapping[str, list[str]]]":
    from voxrisk.attack.backends import utterances_of
    from voxrisk.attack.scoring import made_trials, speaker_enrolments
    from voxrisk.corpus import read_corpus
    from voxrisk.corpus.trials import Trial, read_enrolments
    from voxrisk.files.scores import read_trials

    source = enrolled or tried
    speakers = dict(zip(source.utterance.tolist(), source.speaker.tolist(), strict=True))
    enrolments = read_enrolments(enroll, speakers=speakers) if enroll else None
    if trials in MADE:
        if enrolments is None and enrolled is None:
            raise InputError(f"--trials {trials} needs --enroll or --enroll-embeddings")
        enrolments = enrolments or utterances_of(enrolled or tried)
        genders = None
        if trials == "same-gender":
            if corpus is None:
                raise InputError("--trials same-gender needs --corpus, which knows the genders")
            genders = {row.speaker: row.gender for row in read_corpus(corpus)}
        return made_trials(tried, enrolments, genders=genders), enrolments
    if not Path(trials).exists():
        raise InputError(f"--trials {trials}: no such file, and not one of {', '.join(MADE)}")
    listed = [Trial(*pair) for pair in read_trials(trials).pairs()]
    apart = enrolled is not None
    return listed, enrolments or speaker_enrolments(source, listed, apart=apart)
