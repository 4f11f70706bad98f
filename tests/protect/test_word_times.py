"""Who tells when words are said, and what is refused when nobody can."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_corpus, write_audio, write_corpus
from voxrisk.hearing import RECOGNISERS
from voxrisk.models import is_cached
from voxrisk.protect.slice_corpus import Plan, slice_corpus
from voxrisk.protect.slicing import Word
from voxrisk.protect.word_times import align_with, check_aligner, hardly_aligned
from voxrisk.types import InputError, MissingExtraError


@pytest.fixture(scope="module")
def three(shared: Path) -> list[Utterance]:
    rows = read_corpus(shared / "librispeech_eval")
    return [row for row in rows if 3.5 < (row.duration or 0) < 4.5][:3]


def foreign(row: Utterance) -> Utterance:
    """A text of which the English dictionary knows a word or two, as of Iban's."""
    return replace(row, text="selamat malam diatu kami naburka berita ari radio malaysia sarawak")


def test_another_language_is_refused_before_anything_is_done(
    three: list[Utterance], tmp_path: Path
) -> None:
    german = [replace(row, language="de-AT") for row in three]
    with pytest.raises(InputError, match="knows English only, not German; take the times from"):
        slice_corpus(german, tmp_path / "slices", plan=Plan(1.0))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="not 'iba'"):
        check_aligner(three, None, "iba")
    with pytest.raises(InputError, match="no speech recogniser here knows the language 'iba'"):
        check_aligner(three, "whisper-base", "iba")
    with pytest.raises(InputError, match="moonshine-base tells no times of words"):
        check_aligner(three, "moonshine-base", None)


@pytest.fixture
def tone(tmp_path: Path) -> Path:
    """A corpus of one utterance, of no declared language."""
    sound = np.sin(np.arange(16_000) * 0.1).astype(np.float32) / 2
    write_audio(tmp_path / "speech" / "a.wav", sound, rate=16_000)
    row = Utterance("a", tmp_path / "speech" / "a.wav", "s", text="guten tag")
    write_corpus(tmp_path / "speech" / "manifest.csv", [row])
    return tmp_path / "speech"


@pytest.mark.parametrize("command", ["align", "slice"])
def test_commands_refuse_a_language_that_the_aligner_does_not_know(
    command: str, tone: Path, tmp_path: Path
) -> None:
    words = [command, str(tone), "-o", str(tmp_path / "out"), "--workers", "1"]
    for language, said in (("de", "English only, not German"), ("iba", "English only, not 'iba'")):
        found = CliRunner().invoke(app, [*words, "--language", language]).exception
        assert isinstance(found, InputError)
        assert said in str(found)
        assert "--asr whisper-base" in str(found)
    found = CliRunner().invoke(app, [*words, "--language", "iba", "--asr", "whisper-base"])
    assert "no speech recogniser here knows the language 'iba'" in str(found.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["speech"]


def test_without_the_aligner_the_way_out_is_said_before_anything_is_done(
    tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    for command in ("align", "slice"):
        words = [command, str(tone), "-o", str(tmp_path / "out"), "--workers", "1"]
        found = CliRunner().invoke(app, words).exception
        assert isinstance(found, MissingExtraError)
        assert "pip install 'voxrisk[align]'" in str(found)
    assert [path.name for path in tmp_path.iterdir()] == ["speech"]
    check_aligner(read_corpus(tone), "whisper-tiny.en", "en")  # a recogniser needs no aligner
    rows = [replace(row, text=None) for row in read_corpus(tone)]
    check_aligner(rows, None, None)  # nothing to align


def test_speech_of_which_hardly_a_word_was_found_is_not_passed_off_as_sliced(
    three: list[Utterance], tmp_path: Path
) -> None:
    """17 of 81 words found gave 12 slices of 10 utterances, and nothing was said."""
    with pytest.raises(InputError, match=r"found \d+ of 30 words, and in 3 of 3 utterances fewer"):
        slice_corpus([foreign(row) for row in three], tmp_path / "all", plan=Plan(1.0), workers=1)
    assert not (tmp_path / "all" / "manifest.csv").exists()
    assert not (tmp_path / "all.partial").exists()
    mixed = [foreign(three[0]), *three[1:]]
    counts = slice_corpus(mixed, tmp_path / "one", plan=Plan(1.0), workers=1)
    assert counts["utterances_without_times"] == 1
    assert {row.extra["source"] for row in read_corpus(tmp_path / "one")} == {
        row.utterance for row in three[1:]
    }


def test_half_of_the_words_are_enough() -> None:
    found, lost = Word("a", 0.0, 0.1), Word("b")
    assert not hardly_aligned([found, lost])
    assert hardly_aligned([found, lost, lost])
    assert not hardly_aligned([])


def test_a_recogniser_finds_words_where_the_embedded_aligner_does(three: list[Utterance]) -> None:
    """Two aligners that share nothing agree on the middle of most words to a fifth of a second."""
    if not all(is_cached(name) for name in RECOGNISERS["whisper-base"].models):
        pytest.skip("whisper-base is not in the cache; voxrisk models fetch whisper-base-ct2")
    row = three[1]
    embedded, heard = (align_with(asr, "en", row) for asr in (None, "whisper-base"))
    assert [w.text for w in heard] == [w.text for w in embedded]
    apart = [
        abs((a.start + a.end) / 2 - (b.start + b.end) / 2)
        for a, b in zip(embedded, heard, strict=True)
        if None not in (a.start, a.end, b.start, b.end)
    ]
    assert len(apart) > 0.7 * len(heard)
    assert np.median(apart) < 0.2
    ends = [w.end for w in heard if w.end is not None]
    assert ends == sorted(ends)
