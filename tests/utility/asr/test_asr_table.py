"""Cells of Table 1 from texts that are known: rates, losses and mismatches by hand."""

from pathlib import Path

import pytest

from voxrisk.corpus import Utterance
from voxrisk.utility.asr.table import Cell, Heard, cells_of

DRAW = {"resamples": 500, "seed": 0, "confidence": 0.95}
SAID = "one two three four"


def rows(speakers: int) -> list[Utterance]:
    """One utterance of four words for each speaker; the first has a second of eight."""
    made = [Utterance(f"u{i}", Path("x"), f"s{i}", text=SAID) for i in range(speakers)]
    return [*made, Utterance("more", Path("x"), "s0", text=f"{SAID} {SAID}")]


def heard(trained: str, duration: float | None, tested: str, wrong: int, n: int = 6) -> Heard:
    """The last ``wrong`` words of every utterance come out as another."""
    texts = {}
    for row in rows(n):
        words = str(row.text).split()
        kept = len(words) - wrong
        texts[row.utterance] = " ".join([*words[:kept], *["zebra"] * wrong])
    return Heard(duration, trained, tested, texts, pieces=9, hours=0.1, steps=5, seconds=1.0)


def table(*found: Heard, n: int = 6) -> list[Cell]:
    tested = {name: rows(n) for name in ("clear", "anonymized")}
    return list(cells_of(found, tested, language="en", draw=DRAW))


def test_rate_loss_and_mismatch_by_hand() -> None:
    """36 - 4 words: 5 speakers of 4, one of 12. A word wrong in each utterance is 7 of 32."""
    whole, sliced, other = table(
        heard("clear", None, "clear", 0),
        heard("clear", 1.0, "clear", 1),
        heard("anonymized", 1.0, "clear", 2),
    )
    assert (whole.wer.value, whole.loss, whole.mismatch) == (0.0, None, None)
    assert sliced.wer.value == pytest.approx(7 / 32)
    assert sliced.wer.n["word"] == 32
    # The mean over speakers: five lose a quarter of their words, the first 2 of 12.
    assert sliced.loss is not None
    assert sliced.loss.value == pytest.approx((5 / 4 + 2 / 12) / 6)
    assert sliced.loss.interval is not None
    assert sliced.loss.interval.low > 0.15
    assert sliced.mismatch is None
    assert other.loss is None  # nothing was trained on whole anonymized speech
    assert other.mismatch is not None
    assert other.mismatch.value == pytest.approx((5 / 4 + 2 / 12) / 6)


def test_equal_recognisers_do_not_differ() -> None:
    _, same = table(heard("clear", None, "clear", 1), heard("clear", 2.0, "clear", 1))
    assert same.loss is not None
    assert (same.loss.value, same.loss.parameters["p_value"]) == (0.0, 1.0)
    assert same.loss.chance == 0.0


def test_four_speakers_have_no_difference() -> None:
    _, sliced = table(heard("clear", None, "clear", 0, 4), heard("clear", 1.0, "clear", 1, 4), n=4)
    assert sliced.loss is None
    assert "no_interval" in sliced.wer.parameters


def test_a_recogniser_that_never_learned_is_not_trusted() -> None:
    """What slices cost cannot be seen where whole speech taught nothing either."""
    cells = table(heard("clear", None, "clear", 3), heard("clear", 1.0, "clear", 3))
    assert [cell.wer.parameters["trusted"] for cell in cells] == [False, False]
    assert "too few steps" in cells[1].wer.parameters["reason"]
    fine = table(heard("clear", None, "clear", 1), heard("clear", 0.5, "clear", 4))
    assert [cell.wer.parameters["trusted"] for cell in fine] == [True, True]
