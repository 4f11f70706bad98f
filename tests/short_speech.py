"""Speech cut short, for tests of what is done with it: an encoder costs what it hears."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from voxrisk.corpus import Utterance, read_audio, write_audio

SECONDS = 1.6


def cut_short(
    rows: Sequence[Utterance], folder: Path, *, seconds: float = SECONDS
) -> list[Utterance]:
    """The beginnings of some utterances, in files of their own, with as much of their texts."""
    folder.mkdir(parents=True)
    short = []
    for row in rows:
        samples = read_audio(row, rate=16_000)[: round(16_000 * seconds)]
        path = folder / f"{row.utterance}.wav"
        write_audio(path, samples, rate=16_000)
        duration = len(samples) / 16_000
        words = (row.text or "").split()
        said = words[: max(1, int(len(words) * duration / (row.duration or duration)))]
        short.append(replace(row, path=path, duration=duration, text=" ".join(said)))
    return short
