"""The demo corpus: distinct synthetic voices, the same bytes every time, nothing downloaded."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import demo, read_audio, read_corpus
from voxrisk.corpus.demo import VOICES, demo_corpus, make_demo
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.corpus.splits import by_session
from voxrisk.protect.aligner import align_utterance
from voxrisk.types import InputError


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    make_demo(folder, voices=4, sentences=2)
    return folder


def test_voices_say_different_sentences_in_two_sessions(corpus: Path) -> None:
    rows = read_corpus(corpus)
    assert len(rows) == 4 * 2 * 2
    for voice in {row.speaker for row in rows}:
        own = [row for row in rows if row.speaker == voice]
        assert len({row.text for row in own}) == 4
        assert {row.session for row in own} == {"1", "2"}
    assert {row.extra["synthetic"] for row in rows} == {"espeak-ng"}
    assert {row.gender for row in rows} <= {"f", "m", None}
    assert {row.speaker: row.gender for row in rows}["f2"] == "f"
    assert by_session(rows).by == "session"


def test_audio_is_16_khz_level_and_not_clipped(corpus: Path) -> None:
    for row in read_corpus(corpus):
        samples = read_audio(row)
        assert len(samples) / 16_000 == pytest.approx(row.duration, abs=1e-3)
        assert np.abs(samples).max() < 0.995
        rms = 10 * np.log10(np.mean(samples.astype(float) ** 2))
        assert -30 < rms < -25.9


def test_the_same_options_give_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    command = ["corpus", "demo", "-o", str(tmp_path / "d"), "--voices", "4", "--sentences", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    files = [f.relative_to(corpus) for f in sorted(corpus.rglob("*")) if f.is_file()]
    assert len(files) == 17
    for file in files:
        assert (corpus / file).read_bytes() == (tmp_path / "d" / file).read_bytes()
    assert "--force" in str(CliRunner().invoke(app, command).exception)


def test_the_cache_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path))
    folder = demo_corpus(voices=2, sentences=1)
    assert folder.is_relative_to(tmp_path)
    assert len(read_corpus(folder)) == 4

    def never(*_: object, **__: object) -> None:
        raise AssertionError("made twice")

    monkeypatch.setattr(demo, "make_demo", never)
    assert demo_corpus(voices=2, sentences=1) == folder
    assert [f.name for f in folder.parent.iterdir()] == [folder.name]


def test_limits_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"2 to {len(VOICES)} voices, not 1"):
        make_demo(tmp_path, voices=1)
    with pytest.raises(InputError, match="1 to 30 sentences in a session, not 31"):
        make_demo(tmp_path, sentences=31)
    with pytest.raises(InputError, match="no voice variant 'nobody'"):
        speak_all([Line("hello", "en-us+nobody")])
    with pytest.raises(InputError, match="no voice 'nowhere'"):
        speak_all([Line("hello", "nowhere")])


def test_sixty_different_sentences() -> None:
    assert len(SENTENCES) == len(set(SENTENCES)) == 60


def test_the_aligner_finds_words_where_espeak_says_they_begin(corpus: Path) -> None:
    """Known word times: most words within 50 ms (docs/slicing.md has the figures)."""
    from voxrisk.corpus import Utterance, write_audio

    lines = [Line(SENTENCES[k], f"en-us+{voice}") for voice in ("f2", "m3") for k in (1, 7, 10)]
    differences: list[float] = []
    for line, said in zip(lines, speak_all(lines), strict=True):
        write_audio(corpus / "said.wav", said.samples, rate=said.rate)
        words = align_utterance(Utterance("said", corpus / "said.wav", "x", text=line.text))
        if len(words) == len(said.word_starts):
            times = zip(words, said.word_starts, strict=True)
            differences += [abs(w.start - t) for w, t in times if w.start is not None]
    assert len(differences) > 20
    assert np.mean(np.array(differences) <= 0.05) > 0.75
