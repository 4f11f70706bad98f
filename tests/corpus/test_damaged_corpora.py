"""A damaged table of a corpus is an error with its place, never a smaller or another corpus."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxrisk.corpus import read_corpus
from voxrisk.types import InputError


def sound(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(1600), 16_000, format="WAV")
    return path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def refused(folder: Path, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_corpus(folder, audio=False)


def test_a_broken_header_of_common_voice_does_not_make_clips_a_speaker(tmp_path: Path) -> None:
    sound(tmp_path / "clips" / "a.mp3")
    write(tmp_path / "validated.tsv", "client_idx\tpath\tsentence\nx\ta.mp3\tHi\n")
    refused(tmp_path, r"validated\.tsv line 1: no column client_id")


@pytest.mark.parametrize("name", ["SPEAKERS.TXT", "speaker-info.txt", "spk2gender"])
def test_an_empty_list_of_speakers_is_not_the_same_as_none(tmp_path: Path, name: str) -> None:
    if name == "SPEAKERS.TXT":
        write(tmp_path / "test" / "1" / "2" / "1-2.trans.txt", "1-2-3 HELLO\n")
    elif name == "speaker-info.txt":
        sound(tmp_path / "wav48" / "p1" / "p1_001.wav")
    else:
        write(tmp_path / "wav.scp", "a a.wav\n")
        write(tmp_path / "utt2spk", "a s\n")
    assert len(read_corpus(tmp_path, audio=False) if name != "speaker-info.txt" else [1]) == 1
    write(tmp_path / name, "; nobody\n" if name == "SPEAKERS.TXT" else "")
    refused(tmp_path, rf"{name}: (names no speaker|is empty)")


@pytest.mark.parametrize(
    ("table", "text", "words"),
    [
        ("utt2spk", "a\n", "utt2spk line 1: nothing stands behind 'a'"),
        ("utt2spk", "a s t\n", "utt2spk line 1: expected 'utterance speaker'"),
        ("wav.scp", "a\n", r"wav\.scp line 1: nothing stands behind 'a'"),
    ],
)
def test_rows_of_kaldi_are_complete(tmp_path: Path, table: str, text: str, words: str) -> None:
    write(tmp_path / "wav.scp", "a a.wav\n")
    write(tmp_path / "utt2spk", "a s\n")
    write(tmp_path / table, text)
    refused(tmp_path, words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "lists no utterance of its chapter"),
        (b"\n \n", "lists no utterance of its chapter"),
        (b"\xef", "is not UTF-8 text"),
        (b"\xef\xbb", "is not UTF-8 text"),
    ],
)
def test_a_chapter_of_librispeech_is_not_lost(tmp_path: Path, data: bytes, words: str) -> None:
    """Half a byte-order mark is an empty text to Python: the fuzzer found that."""
    write(tmp_path / "test" / "1" / "2" / "1-2.trans.txt", "1-2-3 HELLO\n")
    other = tmp_path / "test" / "1" / "4" / "1-4.trans.txt"
    write(other, "")
    other.write_bytes(data)
    refused(tmp_path, rf"1-4\.trans\.txt.*{words}")


@pytest.mark.parametrize("line", ["12 HELLO", "1-2 HELLO", "-2-3 HELLO", "1-2-/../../x HELLO"])
def test_ids_of_librispeech_have_their_parts(tmp_path: Path, line: str) -> None:
    write(tmp_path / "test" / "1" / "2" / "1-2.trans.txt", line + "\n")
    refused(tmp_path, r"trans\.txt line 1: .* is not SPEAKER-CHAPTER-NUMBER")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": None}, "line 1: no id"),
        ({"id": {"a": 1}}, "line 1: id is .* not text"),
        ({"recording_id": ["r"]}, "recording_id is .* not text"),
        ({"text": 5}, "text is 5, not text"),
        ({"start": True}, "start is True, not a number"),
        ({"start": "1_0"}, "start is '1_0', not a number"),
        ({"duration": None}, "duration is None, not a number"),
        ({"speaker": "\ud800"}, r"'\\ud800' is not valid Unicode"),
    ],
)
def test_fields_of_lhotse_have_their_types(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    recording = {"id": "r", "sources": [{"type": "file", "source": "a.wav"}], "duration": 1.0}
    row = {"id": "u", "recording_id": "r", "start": 0, "duration": 1.0, "speaker": "s", **change}
    write(tmp_path / "x_recordings.jsonl", json.dumps(recording) + "\n")
    write(tmp_path / "x_supervisions.jsonl", json.dumps(row) + "\n")
    refused(tmp_path, words)
    write(tmp_path / "x_recordings.jsonl", (json.dumps(recording) + "\n") * 2)
    refused(tmp_path, "line 2: recording 'r' is there twice")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_a_file_name_that_is_not_utf8_is_named_and_not_written_by_halves(tmp_path: Path) -> None:
    folder = tmp_path / "anna"
    folder.mkdir()
    (folder / os.fsdecode(b"gr\xfc\xdfe.wav")).write_bytes(b"")
    refused(tmp_path, r"'gr\\udcfc\\udcdfe' is not valid Unicode; rename it|is not valid Unicode")


def test_a_name_longer_than_any_disk_allows_is_a_missing_file(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", f"utterance,path,speaker\na,{'x' * 5000}.wav,s\n")
    with pytest.raises(InputError, match="line 2: no audio file"):
        read_corpus(tmp_path)


def test_a_quote_that_is_not_closed_does_not_swallow_rows(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", 'utterance,path,speaker\na,a.wav,"s\nb,b.wav,t"\n')
    refused(tmp_path, "speaker runs over the end of the line; is a quotation mark missing")


def test_transcripts_in_latin_1_are_named(tmp_path: Path) -> None:
    sound(tmp_path / "anna" / "a.wav")
    (tmp_path / "anna" / "a.txt").write_bytes("Grüße".encode("latin-1"))
    refused(tmp_path, r"a\.txt line 1: is not UTF-8 text \(byte 0xfc\); save the file as UTF-8")
