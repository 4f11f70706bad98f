"""``voxrisk slice``: cut a corpus into short slices."""

import json
from pathlib import Path
from typing import Annotated

import typer

from voxrisk.cli.engine import Engine


def slice_(
    corpus: Annotated[Path, typer.Argument(help="The corpus to cut, usually anonymized already.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the slices.")],
    duration: Annotated[float, typer.Option(help="Least duration of a slice in seconds.")] = 1.0,
    alignment: Annotated[
        Path | None,
        typer.Option(
            help="Ready word times: TextGrid, CTM, Gentle JSON, LibriSpeech alignments, lhotse "
            "supervisions or `voxrisk align`; a file or a folder. Else the embedded aligner."
        ),
    ] = None,
    asr: Annotated[
        str | None,
        typer.Option(help="Take word times from a recogniser: whisper-base knows 99 languages."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language tag; default: the table's, else en.")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Cut at fixed times, through words as well.")
    ] = False,
    cut: Annotated[
        str | None,
        typer.Option(
            help="pause: the pause at a cut is in both slices, as in the paper; clean: in neither, "
            "edges faded, levels set. Else clean with --shuffle, and pause without."
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Random names, no speaker, no order: to be published."),
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(help="Which slice came from where (--shuffle); else OUTPUT.key.csv."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of the random names; as secret as the key. Else drawn at random."
        ),
    ] = None,
    rate: Annotated[int, typer.Option(help="Sample rate of the slices.")] = 16_000,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Leave out utterances that the alignment lacks."),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; else one for each core.")
    ] = None,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier slices.")] = False,
) -> None:
    """Cut utterances into short slices between words.

    A slice ends at the next word once it lasts DURATION (Maouche et al., "Enhancing Speech Privacy
    with Slicing", Algorithm 1). Short slices make a voice harder to recognise and the text harder
    to put together again. Run it again after an interruption and it goes on where it was.

    \b
    Example:
      voxrisk slice anonymized --duration 1.0 --shuffle -o published
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.files.atomic import output_folder
    from voxrisk.files.errors import reading
    from voxrisk.protect.alignment import read_alignment
    from voxrisk.protect.edges import REMAINS
    from voxrisk.protect.slice_corpus import Plan, discard, slice_corpus
    from voxrisk.protect.word_times import check_aligner
    from voxrisk.types import InputError

    if not shuffle and (key is not None or seed is not None):
        raise InputError("--key and --seed belong to --shuffle")
    plan = Plan(
        duration,
        fixed=fixed,
        shuffle=shuffle,
        seed=seed,
        rate=rate,
        cut=cut,
        asr=asr,
        language=language,
    )
    rows = read_corpus(corpus)
    words = None
    if alignment:
        with reading(alignment, "an alignment"):
            words = read_alignment(alignment)
    missing = [row for row in rows if words is not None and row.utterance not in words]
    if missing and not skip_missing:
        raise InputError(
            f"{alignment}: has no words for {missing[0].utterance!r} ({len(missing)} of "
            f"{len(rows)} utterances missing); add them, or leave these out with --skip-missing"
        )
    left_out = {row.utterance for row in missing}
    rows = [row for row in rows if row.utterance not in left_out]
    if words is None and not fixed:
        check_aligner(rows, asr, language)  # before earlier slices are thrown away
    if force:
        discard(output)
    if not output.with_name(output.name + ".partial").is_dir():
        output_folder(output, force=force)
    counts = slice_corpus(
        rows,
        output,
        plan=plan,
        alignment=words,
        key=key,
        workers=workers,
    )
    counts["utterances_without_alignment"] = len(missing)
    if as_json:
        print(json.dumps(counts, indent=2))
        return
    print(f"{output}: {counts['slices']} slices of {counts['utterances']} utterances")
    if counts["words"]:
        print(f"words kept: {counts['words_kept']} of {counts['words']}")
    for name in (
        "words_without_times",
        "utterances_without_slice",
        "utterances_without_times",
        "utterances_without_text",
        "utterances_without_alignment",
    ):
        if counts[name]:
            print(f"{name.replace('_', ' ')}: {counts[name]}")
    if shuffle:
        table = key or output.with_name(output.name + ".key.csv")
        print(f"keep secret: {table} and {table.with_suffix('.json').name} beside it")
        print(REMAINS[plan.clean])
