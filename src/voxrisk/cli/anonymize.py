"""``voxrisk anonymize``: protect a corpus with one of the anonymizers."""

import json
from pathlib import Path
from typing import Annotated

import typer

from voxrisk.cli.engine import Engine


def anonymize(
    corpus: Annotated[Path, typer.Argument(help="The corpus to protect, in any known form.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="Output folder.")],
    name: Annotated[
        str,
        typer.Option(
            "--anonymizer",
            help="mcadams, world, knn, private-knn, pool, package.module:function, or a command "
            "with {input} and {output}.",
        ),
    ],
    targets: Annotated[
        Path | None,
        typer.Option(help="Corpus of target speakers; without it, the other speakers of CORPUS."),
    ] = None,
    select: Annotated[
        str, typer.Option(help="random, same-gender, opposite-gender, fixed or farthest.")
    ] = "random",
    target: Annotated[
        str | None, typer.Option(help="The one target speaker, with --select fixed.")
    ] = None,
    per: Annotated[
        str, typer.Option(help="Choose anew for each utterance, speaker or session.")
    ] = "utterance",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Option of the anonymizer, key=value.")
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Speaker vectors for selections by distance: .npz (speakers, vectors)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: all cores.")
    ] = None,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what OUT holds.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin this run anew, also where it is finished.")
    ] = False,
) -> None:
    """Anonymize a corpus: same ids, FLAC 16 kHz, a manifest with target, parameters and seed.

    A run that was stopped goes on where it was when the same command is given again.

    \b
    Example:
      voxrisk anonymize corpus --anonymizer world --select same-gender -o protected
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.files.errors import reading
    from voxrisk.protect.anonymizers import named_tool, parse_options
    from voxrisk.protect.run import anonymize as run_anonymizer
    from voxrisk.protect.vectors import read_speaker_vectors

    known = None
    if vectors:
        with reading(vectors, "speaker vectors"):
            known = read_speaker_vectors(vectors)
    tool, options = named_tool(name, parse_options(settings or []))
    rows = run_anonymizer(
        read_corpus(corpus),
        out,
        tool,
        options=options,
        targets=read_corpus(targets) if targets else None,
        select=select,
        per=per,
        fixed=target,
        vectors=known,
        seed=seed,
        workers=workers,
        force=force,
        fresh=fresh,
    )
    summary = {
        "out": str(out),
        "anonymizer": tool,
        "utterances": len(rows),
        "seconds": round(sum(row.duration or 0.0 for row in rows), 2),
        "scaled": sum("scale" in json.loads(row.extra["parameters"]) for row in rows),
    }
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print(
            f"{summary['utterances']} utterances, {summary['seconds']} s → {out} "
            f"({summary['scaled']} scaled down to stay below full scale)"
        )
