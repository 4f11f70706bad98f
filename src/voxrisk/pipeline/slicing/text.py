"""Can the words of slices be put in order again (Section 5.1 of the paper)?"""

import functools
from pathlib import Path

import msgspec

from voxrisk.attack.successors import LAST, Scorer, Slices
from voxrisk.attack.text_attack import TOGETHER, text_attack, text_scorers, whole_utterances
from voxrisk.files.atomic import write_text
from voxrisk.journal import hash_of
from voxrisk.language.ngram import NGram, embedded_model, load_arpa
from voxrisk.notices import notice
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.cuts import Pieces
from voxrisk.pipeline.slicing.material import Found, Material, slices_of
from voxrisk.pipeline.stages import VERSIONS
from voxrisk.slicing_results import CLEAR, RestoredRow, SuccessorRow
from voxrisk.types import Estimate, InputError, MissingExtraError

Figures = dict[str, dict[str, Estimate]]


class _Kept(msgspec.Struct):
    """What a stage keeps: attacker → figures, and what lay on the table → what was restored."""

    figures: Figures
    restored: Figures


def attack_text(material: Material, found: Found) -> None:
    """Every attacker on text, on all slices of every length at once.

    The words are the same in clear and anonymized speech.
    """
    for duration in material.chosen.durations:
        pieces = material.sliced.get((CLEAR, duration))
        if pieces is None:
            continue
        slices = slices_of(pieces)
        if (slices.successor == LAST).all():
            found.note(notice("slicing_no_pairs", seconds=duration))
            continue
        try:
            kept = _attacked(material, pieces)
        except (InputError, MissingExtraError) as error:
            found.missing["text"] = str(error)
            return
        found.successors += [
            SuccessorRow(
                condition="",
                attacker=name,
                uses="text",
                duration=duration,
                cut=material.chosen.cut,
                slices=float(len(slices)),
                figures=figures,
            )
            for name, figures in kept.figures.items()
        ]
        found.restored += [
            RestoredRow(
                condition="", attacker=TOGETHER, duration=duration, pool=pool, figures=figures
            )
            for pool, figures in kept.restored.items()
        ]
    if not any(row.uses == "text" for row in found.successors):
        found.missing["text"] = "no utterance gives two slices"


def _attacked(material: Material, pieces: Pieces) -> _Kept:
    chosen, slices = material.chosen, slices_of(pieces)
    model = language_model(chosen)
    inputs = {
        "slices": hash_of(slices.speaker, slices.source, slices.place, slices.words),
        "model": model.identity,
        "neural": chosen.neural,
        "seed": chosen.seed,
        "confidence": chosen.confidence,
    }

    def make(folder: Path) -> None:
        done = text_attack(
            slices, language_model=model, neural=chosen.neural,
            confidence=chosen.confidence, seed=chosen.seed,
        )  # fmt: skip
        whole = whole_utterances(
            done.scorer, slices, confidence=chosen.confidence, seed=chosen.seed
        )
        figures = {name: dict(own) for name, own in done.figures.items()}
        kept = _Kept(figures, {name: dict(own) for name, own in whole.items()})
        write_text(folder / "text.json", msgspec.json.encode(kept).decode())

    label = f"words of slices of {pieces.duration:g} s"
    folder = material.stages.run("read", inputs, make, label=label, speech=pieces.rows)
    return msgspec.json.decode((folder / "text.json").read_bytes(), type=_Kept)


def language_model(chosen: Slicing) -> NGram:
    """The model that was asked for, read once."""
    return _model(chosen.language_model)


@functools.lru_cache(maxsize=1)
def _model(path: Path | None) -> NGram:
    return embedded_model() if path is None else load_arpa(path)


def word_identity(chosen: Slicing, slices: Slices) -> list[object] | None:
    """What the scores of :func:`word_scorers` depend on, beside the slices; None: none."""
    if not chosen.text or not any(slices.words):
        return None
    try:
        return [language_model(chosen).identity, chosen.neural, VERSIONS["read"]]
    except (InputError, MissingExtraError):
        return None


def word_scorers(chosen: Slicing, slices: Slices) -> dict[str, Scorer]:
    """The attackers on words for some slices; none where there are no words, or not asked for."""
    if not chosen.text or not any(slices.words):
        return {}
    try:
        return text_scorers(slices, language_model=language_model(chosen), neural=chosen.neural)
    except (InputError, MissingExtraError):
        return {}  # said by the attack on text
