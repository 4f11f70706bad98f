"""How long phones last in anybody's speech: the additive model behind the encoder ``durations``.

Aligns the original speech of a corpus with its transcripts, and fits by least squares (with a
little ridge) what the log of a phone's length depends on: the phone, the classes of its neighbours,
its place in the word, the size of the word, and whether a pause follows. Writes
``src/voxrisk/attack/durations.toml``.

    python experiments/durations.py CORPUS --minutes 60 -o src/voxrisk/attack/durations.toml
"""

import argparse
from pathlib import Path

import numpy as np

from voxrisk.attack.durations import CLASS, CLASSES, SILENCE, Phone, phones_of
from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.hearing.forced import find_phones
from voxrisk.pipeline.recognisers import EACH, limited
from voxrisk.shards import run

RIDGE = 3.0
PHONES = sorted(CLASS)
AROUND = (SILENCE, *CLASSES)
WORD = ("last", "first", "log_phones")


def aligned(row: Utterance) -> list[Phone]:
    """The phones of one utterance."""
    return phones_of(find_phones(read_audio(row, rate=RATE), row.text or "") or ())


def facts(phone: Phone) -> np.ndarray:
    """What the length of a phone may depend on, as a row of the design."""
    own = np.zeros(2 * len(PHONES) + 2 * len(AROUND) + len(WORD))
    place = PHONES.index(phone.name)
    own[place] = 1.0
    own[len(PHONES) + place] = phone.paused
    at = 2 * len(PHONES)
    own[at + AROUND.index(phone.before)] = 1.0
    own[at + len(AROUND) + AROUND.index(phone.after)] = 1.0
    own[-3:] = phone.last, phone.first, np.log(phone.phones)
    return own


def main() -> None:
    """Read the command line, fit, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    rows = limited(read_corpus(chosen.corpus), chosen.minutes, each=EACH)
    phones = [phone for found in run(aligned, rows, label="align") for phone in found]
    design = np.stack([facts(phone) for phone in phones])
    log = np.log([max(phone.frames, 1) for phone in phones])
    effect = np.linalg.solve(design.T @ design + RIDGE * np.eye(design.shape[1]), design.T @ log)
    left = log - design @ effect
    print(
        f"{len(rows)} utterances, {len(phones)} phones; explained: {1 - left.var() / log.var():.3f}"
    )
    lines = [
        "# Written by experiments/durations.py: effects on the log of frames of 10 ms.",
        "[phone]",
    ]
    for i, name in enumerate(PHONES):
        spread = left[design[:, i] == 1].std()
        paused = effect[len(PHONES) + i]
        lines.append(
            f"{name} = {{mean = {effect[i]:.3f}, paused = {paused:.3f}, spread = {spread:.3f}}}"
        )
    at = 2 * len(PHONES)
    for title in ("before", "after"):
        lines.append(f"\n[{title}]")
        lines += [f'"{name}" = {effect[at + i]:.3f}' for i, name in enumerate(AROUND)]
        at += len(AROUND)
    lines.append("\n[word]")
    lines += [f"{name} = {effect[at + i]:.3f}" for i, name in enumerate(WORD)]
    chosen.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
