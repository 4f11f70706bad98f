"""``voxrisk align``: when is each word said?"""

from pathlib import Path
from typing import Annotated

import typer

from voxrisk.cli.engine import Engine


def align(
    corpus: Annotated[Path, typer.Argument(help="A corpus of English speech with its text.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The table of words to write.")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; else one for each core.")
    ] = None,
    engine: Engine = "local",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Find the time of each word of a known text (English; the model is built in).

    Align the clear speech once and slice its anonymized versions with the same table. Words that
    are not in the dictionary get no times.

    \b
    Example:
      voxrisk align LibriSpeech/test-clean -o words.csv
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.protect.aligner import align_utterance
    from voxrisk.protect.alignment import write_alignment
    from voxrisk.shards import run
    from voxrisk.types import InputError

    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another name or add --force")
    rows = read_corpus(corpus)
    found = run(align_utterance, rows, workers=workers, label="align")
    aligned = {row.utterance: words for row, words in zip(rows, found, strict=True)}
    write_alignment(output, aligned)
    words = [word for one in aligned.values() for word in one]
    unknown = sorted({word.text.lower() for word in words if word.start is None})
    without = sum(word.start is None for word in words)
    print(f"{output}: {len(words)} words of {len(rows)} utterances, {without} without times")
    if unknown:
        more = f" … ({len(unknown)} in all)" if len(unknown) > 10 else ""
        print(f"not found: {', '.join(unknown[:10])}{more}")
