"""``transcribe``: nothing but text passes from the speaker to the voice that reads."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance, kokoro, read_audio, write_audio
from voxrisk.corpus.audio import RATE
from voxrisk.protect import anonymize, anonymizer, transcribe
from voxrisk.protect.transcribe import UNHEARD, pieces, readable
from voxrisk.types import InputError

pytest.importorskip("espeakng_loader", reason="skipped: no espeak-ng")


def voice(seed: int, *, level: float, seconds: float = 1.0) -> np.ndarray:
    """Noise of a person's own: what a recogniser would write is decided by the test."""
    noise = np.random.default_rng(seed).normal(0, level, round(seconds * RATE))
    return noise.astype(np.float32)


def heard(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from voxrisk.protect import transcribe

    monkeypatch.setattr(transcribe, "recogniser_paths", lambda asr: ())
    monkeypatch.setattr(transcribe, "open_recogniser", lambda asr, paths: lambda *_: [text])


def test_whoever_says_the_same_words_sounds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people, two rooms, two speeds, one text: the same samples. So no voice is left."""
    heard(monkeypatch, "Give not so earnest a mind.")
    tool = anonymizer("transcribe", {"voice": "espeak"})
    generator = np.random.default_rng(0)
    said = [
        tool.convert(voice(seed, level=level, seconds=length), [], generator, voice="espeak")
        for seed, level, length in ((1, 0.01, 1.0), (2, 0.3, 2.5))
    ]
    assert np.array_equal(*said)
    assert said[0].size > RATE / 2


def test_other_words_sound_different_and_are_as_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = anonymizer("transcribe", {"voice": "espeak"})
    said = []
    for text in ("One two three.", "A lady, sir!"):
        heard(monkeypatch, text)
        said.append(tool.convert(voice(1, level=0.1), [], None, voice="espeak"))
    assert said[0].size != said[1].size
    power = [float(np.sqrt(np.mean(s.astype(float) ** 2))) for s in said]
    assert power == pytest.approx([transcribe.LEVEL] * 2, rel=1e-3)


def test_speech_that_nobody_understands_is_called_inaudible(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A silent output would stop every attack, and an empty one the run."""
    heard(monkeypatch, " ... ")
    rows = []
    for i in range(2):
        path = tmp_path / f"{i}.wav"
        write_audio(path, voice(i, level=0.1), rate=RATE)
        rows.append(Utterance(f"u{i}", path, f"s{i}"))
    made = anonymize(rows, tmp_path / "out", "transcribe", options={"voice": "espeak"}, workers=1)
    both = [read_audio(row) for row in made]
    assert np.array_equal(*both)
    assert both[0].size > RATE / 4
    assert json.loads(made[0].extra["parameters"])["voice"] == "espeak"
    assert "target" not in made[0].extra


def test_a_drawn_voice_is_one_of_kokoros_and_depends_on_the_generator() -> None:
    tool = anonymizer("transcribe", {"voice": "random"})
    drawn = {str(tool.draw(np.random.default_rng(i))["voice"]) for i in range(40)}
    assert drawn <= set(kokoro.VOICES)
    assert len(drawn) > 10
    assert anonymizer("transcribe").draw(np.random.default_rng(0)) == {"voice": "af_heart"}


def test_an_unknown_voice_or_recogniser_is_named() -> None:
    with pytest.raises(InputError, match="no voice 'bob'"):
        anonymizer("transcribe", {"voice": "bob"})
    with pytest.raises(InputError, match=r"no recogniser 'ears'.*whisper-tiny\.en"):
        anonymizer("transcribe", {"asr": "ears"})


@given(st.lists(st.text("abcdefg,.!", min_size=1, max_size=9), min_size=1), st.integers(10, 40))
def test_pieces_hold_every_word_in_order_and_none_is_too_long(words: list[str], most: int) -> None:
    cut = pieces(" ".join(words), most=most)
    assert " ".join(cut).split() == " ".join(words).split()
    assert all(len(piece) <= most for piece in cut)


@pytest.mark.parametrize("text", ["", "♪ ♪", "[BLANK_AUDIO]", "(wind)", "…"])
def test_what_holds_no_word_is_inaudible(text: str) -> None:
    assert readable(text) == UNHEARD
