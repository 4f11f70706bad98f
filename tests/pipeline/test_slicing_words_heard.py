"""What the study gives its recognisers to learn from and to hear, and what it keeps of them."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from slicing_sample import estimate
from voxrisk.corpus import Utterance
from voxrisk.pipeline.slicing import words_heard
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.cuts import Pieces
from voxrisk.pipeline.slicing.material import Found, Material
from voxrisk.pipeline.slicing.words_heard import hear
from voxrisk.utility.asr.ready import ReadyCell
from voxrisk.utility.asr.table import Cell

KINDS = ("clear", "anonymized")


def rows(count: int, name: str) -> tuple[Utterance, ...]:
    """Utterances of 60 s each, of two speakers."""
    return tuple(
        Utterance(f"{name}{i}", Path("x"), f"s{i % 2}", text="one two", duration=60.0)
        for i in range(count)
    )


class Told:
    """Recognisers that only remember what they were given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained: dict[str, Any] = {}
        self.ready: dict[str, Any] = {}
        monkeypatch.setattr(words_heard, "slice_utility", self.learn)
        monkeypatch.setattr(words_heard, "ready_utility", self.listen)
        monkeypatch.setattr(
            words_heard, "training_speech", lambda _: {kind: rows(4, "t") for kind in KINDS}
        )
        monkeypatch.setattr(
            words_heard,
            "training_slices",
            lambda _, kind, speech, durations: [
                Pieces(kind, "sliced", d, rows(9, "c"), "") for d in durations
            ],
        )

    def learn(
        self,
        training: Mapping[Any, Sequence[Utterance]],
        testing: Mapping[str, Sequence[Utterance]],
        store: Any,
        **more: Any,
    ) -> list[Cell]:
        self.trained = {"training": training, "testing": testing, **more}
        return [
            Cell(d, kind, test, estimate("wer", 0.4), None,
                 None if kind == test else estimate("wer_mismatch", 0.1, 0.0), 9, 0.4, 77, 1.0)
            for kind, d in training
            for test in testing
        ]  # fmt: skip

    def listen(self, pieces: Mapping[Any, Sequence[Utterance]], **more: Any) -> list[ReadyCell]:
        self.ready = {"pieces": pieces, **more}
        return [
            ReadyCell(d, kind, estimate("wer", 0.1), None, len(own))
            for (kind, d), own in pieces.items()
        ]


def material(**more: Any) -> Material:
    """Two kinds of speech and their slices of two lengths, without a file."""

    class Speech:
        original = rows(30, "u")
        anonymized = rows(30, "u")
        digest = anonymized_digest = ""

    class Kept:
        folder = Path("stages")

        @staticmethod
        def work(
            name: str, label: str, *, what: str, speech: float
        ) -> contextlib.AbstractContextManager[None]:
            return contextlib.nullcontext()

    chosen = Slicing(
        corpus=Path("x"), anonymizer="mcadams", train=Path("y"), durations=(0.5, 1.0), **more
    )
    sliced = {
        (kind, d): Pieces(kind, "sliced", d, rows(50, "p"), "")
        for kind in KINDS
        for d in (0.5, 1.0)
    }
    words: dict[str, Any] = {kind: {} for kind in KINDS}
    parts: Any = (chosen, chosen.evaluation(), Speech(), words, sliced, Kept())
    return Material(*parts)


def test_every_length_and_kind_is_learned_from_and_each_kind_is_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Table 1: clear and anonymized in 2 × 2, at every length and without slicing."""
    told, found = Told(monkeypatch), Found()
    hear(material(steps=77), found)
    assert set(told.trained["training"]) == {(k, d) for k in KINDS for d in (None, 0.5, 1.0)}
    assert set(told.trained["testing"]) == set(KINDS)
    assert told.trained["recipe"].steps == 77
    trained = [row for row in found.utility if row.recogniser == "trained"]
    assert len(trained) == 12
    for row in trained:
        assert (row.mismatch is None) == (row.train == row.test)
    assert not found.missing


def test_the_test_is_the_same_ten_minutes_in_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch)
    hear(material(), Found())
    names = [[row.utterance for row in own] for own in told.trained["testing"].values()]
    assert len(names[0]) == words_heard.MOST_MINUTES
    assert names[0] == names[1]
    assert told.trained["recipe"] == words_heard.RECIPES["whisper"]


def test_a_ready_recogniser_hears_words_not_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    told, found = Told(monkeypatch), Found()
    hear(material(asr="whisper-tiny.en"), found)
    assert told.ready["asr"] == "whisper-tiny.en"
    assert told.ready["words"] == words_heard.WORDS
    assert set(told.ready["pieces"]) == {(k, d) for k in KINDS for d in (None, 0.5, 1.0)}
    heard = [row for row in found.utility if row.recogniser == "ready"]
    assert [row.pieces for row in heard] == [30, 50, 50, 30, 50, 50]
