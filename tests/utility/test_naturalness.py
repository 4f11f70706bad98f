"""DistillMOS as its authors' package gives it, and what no network was asked."""

from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance
from voxrisk.models import is_cached
from voxrisk.utility import naturalness, quality
from voxrisk.utility.naturalness import distillmos
from voxrisk.utility.pairs import Pairs
from voxrisk.utility.quality import Quality

RATE = 16_000


def hum(seconds: float, noise: float) -> np.ndarray:
    """A voice-like sound without a random number in it."""
    t = np.arange(round(seconds * RATE)) / RATE
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 3 * t)) / RATE
    x = sum(np.sin(k * pitch) / k for k in range(1, 20)) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    return (0.1 * x + noise * np.sin(np.arange(len(t)) ** 2 * 0.37)).astype(np.float32)


@pytest.fixture(scope="module")
def weights() -> None:
    if not is_cached("distillmos"):
        pytest.skip("distillmos is not in the cache; voxrisk models fetch distillmos")


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize(
    ("seconds", "noise", "mark", "near"),
    [(3.0, 0.0, 3.26311, 0.01), (3.0, 0.05, 2.04002, 2e-4), (9.5, 0.0, 3.25096, 0.01)],
)
def test_marks_are_those_of_the_package(
    seconds: float, noise: float, mark: float, near: float
) -> None:
    """The package distillmos 0.9.1 gave these marks: one padded window twice, then three.

    Between the harmonics of a sound without noise lies nothing but rounding, and its logarithm is
    heard too: another processor, or other last bits, move the mark by some thousandths.
    """
    assert distillmos(hum(seconds, noise)) == pytest.approx(mark, abs=near)


@pytest.mark.usefixtures("weights")
def test_loudness_does_not_count_and_silence_is_worst() -> None:
    speech = hum(2.0, 0.01)
    assert distillmos(0.1 * speech) == pytest.approx(distillmos(speech), abs=1e-3)
    assert distillmos(np.zeros(RATE, np.float32)) == 1.0


@pytest.mark.parametrize("marked", [None, frozenset({"b", "d"})])
def test_only_what_is_to_be_marked_counts(
    monkeypatch: pytest.MonkeyPatch, marked: frozenset[str] | None
) -> None:
    """The mean is over the marked utterances, and each mark stands in the row of its utterance."""
    marks = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}

    def rated(rows: list[Utterance], **_: object) -> list[float]:
        return [marks[row.utterance] + 0.5 * (row.path.name == "after") for row in rows]

    def rated_quality(rows: list[Utterance], **_: object) -> list[Quality]:
        return [Quality(mark, mark, mark) for mark in rated(rows)]

    monkeypatch.setattr(naturalness, "rate_naturalness", rated)
    monkeypatch.setattr(quality, "rate_quality", rated_quality)
    sides = [[Utterance(u, Path(side), "s") for u in marks] for side in ("before", "after")]
    draw = {"resamples": 0, "seed": 0, "confidence": 0.95}
    pairs = Pairs(*sides, [None] * 4, None, None, None, draw, {}, marked)
    kept = [u if marked is None or u in marked else None for u in marks]
    expected = [marks[u] + 0.5 if u else None for u in kept]
    mean = np.mean([mark for mark in expected if mark is not None])
    for name, measure in (
        ("distillmos", naturalness.measure_naturalness),
        ("dnsmos", quality.measure_quality),
    ):
        estimates, cells = measure(pairs)
        assert cells[f"{name}_anonymized"] == expected
        assert estimates[name]["anonymized"].value == pytest.approx(mean)
