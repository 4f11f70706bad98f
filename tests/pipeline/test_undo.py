"""An anonymizer whose secret can be heard is run backwards."""

import json
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, read_audio, write_audio
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.undo import UNDO, drawn_values, undo_stage
from voxrisk.protect.mcadams import mcadams


def spectrum(samples: np.ndarray) -> np.ndarray:
    """Log spectrum of the whole utterance in bands of 125 Hz."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 512)[::256] * np.hanning(512)
    power = (np.abs(np.fft.rfft(frames)) ** 2).mean(axis=0)
    return np.log(power[:256].reshape(64, 4).mean(axis=1) + 1e-9)


def test_with_the_right_alpha_the_voice_comes_back_and_with_a_wrong_one_it_does_not(
    tmp_path: Path,
) -> None:
    row = make_demo(tmp_path / "demo", voices=2, sentences=1)[0]
    original = read_audio(row)
    path = tmp_path / "protected.flac"
    write_audio(path, 0.5 * mcadams(original, alpha=0.7), rate=16_000)
    protected = Utterance(utterance="u", speaker="s", path=path)
    stages = Stages(tmp_path / "stages")

    def left(alpha: float | None) -> float:
        heard = read_audio(protected)
        if alpha is not None:
            undone = undo_stage([protected], "x", np.array([alpha]), "mcadams", stages, "test")
            heard = read_audio(undone[0])
        gap = spectrum(heard) - spectrum(original)
        return float(np.abs(gap - np.median(gap)).mean())

    assert left(0.7) < 0.6 * left(None)
    assert left(0.7) < 0.6 * left(0.5)


def made(utterance: str, parameters: dict[str, float]) -> Utterance:
    extra = {"parameters": json.dumps(parameters)}
    return Utterance(utterance=utterance, speaker="s", path=Path("x.flac"), extra=extra)


@pytest.mark.parametrize(
    ("anonymizer", "drawn"),
    [("mcadams", [{"alpha": 0.8}, {"alpha": 0.8}]), ("knn", [{"alpha": 0.8}, {"alpha": 0.6}]),
     ("mcadams", [{"alpha": 0.8}, {}]), (None, [{"alpha": 0.8}, {"alpha": 0.6}])],
)  # fmt: skip
def test_nothing_is_undone_where_nothing_was_drawn_or_nothing_runs_backwards(
    anonymizer: str | None, drawn: list[dict[str, float]]
) -> None:
    assert drawn_values([made(str(i), d) for i, d in enumerate(drawn)], anonymizer) is None


def test_the_own_draws_are_read_from_the_own_manifest() -> None:
    rows = [made("a", {"alpha": 0.8}), made("b", {"alpha": 0.6})]
    found = drawn_values(rows, "mcadams")
    assert found is not None
    assert found.tolist() == [0.8, 0.6]
    assert set(UNDO) == {"mcadams"}
