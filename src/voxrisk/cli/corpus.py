"""``voxrisk corpus``: look at a corpus, bring it to one table, split it, make a demo corpus."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxrisk.cli.engine import Engine
from voxrisk.cli.options import number
from voxrisk.types import InputError

if TYPE_CHECKING:
    from voxrisk.corpus.check import Findings
    from voxrisk.corpus.splits import Split
    from voxrisk.corpus.table import Utterance

app = typer.Typer(no_args_is_help=True, help="Look at a corpus, split it, make a demo corpus.")

MOST_TRIALS = 100_000_000
Corpus = Annotated[Path, typer.Argument(help="A folder of audio, a manifest, a known corpus.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core unless given.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION", help="Only rows with gender=f, duration>=2 …; repeat for several."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over what is there.")]


class Voices(StrEnum):
    """What makes the voices of a demo corpus."""

    espeak = "espeak"
    kokoro = "kokoro"
    recorded = "recorded"


class By(StrEnum):
    """What the two sides of a split do not share."""

    session = "session"
    ab = "ab"
    speaker = "speaker"


@app.command()
def check(
    corpus: Corpus,
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Sample rate all files should have; else the commonest."),
    ] = None,
    min_duration: Annotated[
        float,
        typer.Option(min=0.0, callback=number, help="Shorter utterances are a problem."),
    ] = 0.5,
    workers: Workers = None,
    engine: Engine = "local",
    as_json: Json = False,
) -> None:
    """Find files that are missing, unreadable, short, silent, clipped, doubled or mis-sampled.

    Each cause is told once, with a count and examples; --json has every file. Exit code 0: no
    problems; 1: some; 2: the corpus cannot be read at all.

    \b
    Example:
      voxrisk corpus check LibriSpeech/test-clean
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.corpus.check import check_corpus

    rows = read_corpus(corpus, audio=False)
    findings = check_corpus(rows, rate=rate, shortest=min_duration, workers=workers)
    if as_json:
        print(json.dumps(asdict(findings), indent=2, ensure_ascii=False))
    else:
        _print_findings(findings, corpus)
    if findings.problems:
        raise typer.Exit(1)


def _print_findings(findings: "Findings", corpus: Path) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from voxrisk.corpus.check import causes
    from voxrisk.corpus.reading import where_else

    console = Console()
    found = causes(findings.problems)
    if found:
        table = Table("problem", "utterances", "for example", "detail", "file")
        for cause in found:
            for i, problem in enumerate(cause.examples):
                first = (cause.kind, str(cause.count)) if i == 0 else ("", "")
                cells = (*first, problem.utterance, problem.detail, problem.path)
                table.add_row(*(escape(cell) for cell in cells))
        console.print(table)
    for cause in found:
        if cause.kind == "missing":
            looked = Path(cause.examples[0].path)
            hint = where_else(looked, corpus)
            kaldi = any(corpus.glob("*wav.scp")) and looked.is_relative_to(corpus)
            above = " and for the same path in every folder above" if kaldi else ""
            console.print(
                escape(f"missing: looked for {looked}{above}" + (f"; {hint}" if hint else "")),
                highlight=False,
                soft_wrap=True,
            )
    rates = ", ".join(f"{n} at {rate} Hz" for rate, n in findings.rates.items())
    console.print(
        f"{findings.utterances} utterances of {findings.speakers} speakers, "
        f"{findings.seconds / 3600:.2f} h ({rates or 'nothing readable'}); "
        f"{(n := len(findings.problems))} problem{'' if n == 1 else 's'}",
        highlight=False,
    )


@app.command(name="import")
def import_(
    corpus: Corpus,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The manifest to write: .csv or .parquet.")
    ],
    where: Where = None,
    force: Force = False,
) -> None:
    """Write the plain table of any known corpus, to look at or to edit.

    \b
    Example:
      voxrisk corpus import cv-corpus-17.0/en -o manifest.csv
      voxrisk corpus import cv-corpus-17.0/en --where "duration>=2" -o manifest.parquet
    """
    from voxrisk.corpus import write_corpus
    from voxrisk.corpus.columns import open_corpus, write_columns

    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another name or add --force")
    rows = open_corpus(corpus, where or [])
    write = write_columns if output.suffix == ".parquet" else write_corpus
    write(output, rows)
    print(f"{output}: {len(rows)} utterances of {_people(rows)} speakers")


def _people(rows: "Sequence[Utterance]") -> int:
    from voxrisk.corpus.columns import codes

    return len(codes(rows, "speaker")[1])


@app.command()
def split(
    corpus: Corpus,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the two sides.")],
    by: Annotated[
        By,
        typer.Option(
            help="session: enrolment and trials of the same speakers. ab: sets A and B of the "
            "linkability and singling-out attacks. speaker: training and evaluation."
        ),
    ] = By.session,
    share: Annotated[
        float | None,
        typer.Option(help="Enrolment or B's part of a speaker (0.5); evaluation speakers (0.2)."),
    ] = None,
    b_speakers: Annotated[
        int | None, typer.Option(min=1, help="With --by ab: speakers in B.")
    ] = None,
    same_gender: Annotated[
        bool, typer.Option("--same-gender", help="Compare only speakers of one gender.")
    ] = False,
    nontargets: Annotated[
        int | None, typer.Option(min=1, help="At most so many other speakers for each trial.")
    ] = None,
    where: Where = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random choice.")] = 0,
    force: Force = False,
) -> None:
    """Split a corpus in two sides that share no session, no utterance or no speaker.

    Writes one manifest for each side (Parquet if the corpus is), split.json, and for sessions the
    trial list: enroll.csv (enroll,utterance) and trials.csv (enroll,trial,label).

    \b
    Example:
      voxrisk corpus split LibriSpeech/test-clean --by session --same-gender -o trials
    """
    from voxrisk.corpus import splits
    from voxrisk.corpus.columns import open_corpus
    from voxrisk.files.atomic import output_folder

    if b_speakers is not None and by != By.ab:
        raise InputError("--b-speakers belongs to --by ab")
    if (same_gender or nontargets is not None) and by != By.session:
        raise InputError("--same-gender and --nontargets belong to --by session")
    rows = open_corpus(corpus, where or [])
    if share is None:
        share = 0.2 if by == By.speaker else 0.5
    if by == By.session:
        made = splits.by_session(rows, share=share, seed=seed)
    elif by == By.ab:
        made = splits.a_and_b(rows, speakers=b_speakers, share=share, seed=seed)
    else:
        made = splits.by_speaker(rows, share=share, seed=seed)
    folder = output_folder(output, force=force)
    _write_split(folder, made, same_gender=same_gender, nontargets=nontargets)


def _write_split(folder: Path, made: "Split", *, same_gender: bool, nontargets: int | None) -> None:
    from voxrisk.corpus.columns import Columns
    from voxrisk.corpus.table import write_corpus
    from voxrisk.corpus.trials import make_trials, write_enrolments, write_trials
    from voxrisk.files.atomic import write_text

    record: dict[str, object] = {"by": made.by, "seed": made.seed, "left_out": dict(made.left_out)}
    for name, side in made.sides.items():
        if isinstance(side, Columns):
            side.write(folder / name / "manifest.parquet")
        else:
            write_corpus(folder / name / "manifest.csv", side)
        people = _people(side)
        record[name] = {"utterances": len(side), "speakers": people}
        print(f"{name}: {len(side)} utterances of {people} speakers")
    if "enroll" in made.sides:
        enroll, trial = made.sides["enroll"], made.sides["trial"]
        if nontargets is None and len(trial) * _people(enroll) > MOST_TRIALS:
            raise InputError(
                f"{len(trial):,} trial utterances against {_people(enroll):,} speakers are too "
                f"many for one list (at most {MOST_TRIALS:,}); add --nontargets 20"
            )
        write_enrolments(folder / "enroll.csv", enroll)
        trials = make_trials(
            enroll, trial, same_gender=same_gender, nontargets=nontargets, seed=made.seed
        )
        record["trials"] = write_trials(folder / "trials.csv", trials)
        print(f"trials: {record['trials']}")
    if made.by == "utterance":
        print("the corpus names no sessions: both sides may come from the same recording session")
    for speaker, reason in made.left_out.items():
        print(f"left out: {speaker} ({reason})")
    write_text(folder / "split.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the corpus.")],
    engine: Annotated[
        Voices,
        typer.Option(
            help="espeak: 40 voices, at once. kokoro: 28 neural voices, minutes. recorded: what "
            "these said, 3 sentences in a session."
        ),
    ] = Voices.espeak,
    voices: Annotated[
        int | None, typer.Option(min=1, help="How many voices; all unless given.")
    ] = None,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Sentences of a voice in a session; 6 unless given.")
    ] = None,
    force: Force = False,
) -> None:
    """Make a corpus of synthetic voices on the spot, with transcripts.

    espeak downloads nothing and needs espeak-ng (`pip install 'voxrisk[demo]'`, GPL-3). kokoro
    sounds like people, needs `voxrisk[kokoro]` and fetches 340 MB of weights once; recorded is a
    part of it that comes with voxrisk. The same options give the same bytes.

    \b
    Example:
      voxrisk corpus demo -o demo
      voxrisk corpus demo --engine kokoro --voices 8 --sentences 2 -o neural
      voxrisk corpus demo --engine recorded -o neural
    """
    from voxrisk.corpus.demo import make_demo
    from voxrisk.files.atomic import output_folder

    folder = output_folder(output, force=force)
    rows = make_demo(folder, engine=engine.value, voices=voices, sentences=sentences)
    minutes = sum(row.duration or 0.0 for row in rows) / 60
    people = len({row.speaker for row in rows})
    print(f"{output}: {len(rows)} utterances of {people} synthetic voices, {minutes:.0f} min")
