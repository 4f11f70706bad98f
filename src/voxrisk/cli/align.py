"""``voxrisk align``: when is each word said?"""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from voxrisk.cli.engine import Engine


def align(
    corpus: Annotated[Path, typer.Argument(help="A corpus of speech with its text.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The table of words to write.")],
    asr: Annotated[
        str | None,
        typer.Option(help="Take word times from a recogniser: whisper-base knows 99 languages."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language tag; default: the table's, else en.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; else one for each core.")
    ] = None,
    engine: Engine = "local",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Find the time of each word of a known text.

    The built-in model knows English; --asr whisper-base knows 99 languages. Align the clear speech
    once and slice its anonymized versions with the same table. Words that are not found get no
    times.

    \b
    Example:
      voxrisk align LibriSpeech/test-clean -o words.csv
      voxrisk align speech --language de --asr whisper-base -o words.csv
    """
    from voxrisk.corpus import read_corpus
    from voxrisk.protect.alignment import write_alignment
    from voxrisk.protect.word_times import align_with, check_aligner, hardly_aligned
    from voxrisk.shards import run
    from voxrisk.types import InputError

    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another name or add --force")
    rows = read_corpus(corpus)
    check_aligner(rows, asr, language)
    found = run(partial(align_with, asr, language), rows, workers=workers, label="align")
    aligned = {row.utterance: words for row, words in zip(rows, found, strict=True)}
    write_alignment(output, aligned)
    words = [word for one in aligned.values() for word in one]
    unknown = sorted({word.text.lower() for word in words if word.start is None})
    without = sum(word.start is None for word in words)
    print(f"{output}: {len(words)} words of {len(rows)} utterances, {without} without times")
    if hardly := sum(hardly_aligned(one) for one in aligned.values() if one):
        print(
            f"in {hardly} utterances fewer than half of the words were found: is it another "
            "language (--language, --asr), or are these other texts?"
        )
    if unknown:
        more = f" … ({len(unknown)} in all)" if len(unknown) > 10 else ""
        print(f"not found: {', '.join(unknown[:10])}{more}")
