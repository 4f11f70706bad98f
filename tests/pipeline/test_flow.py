"""Speech flows once: a decoded copy is the speech itself, and files stay closed."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxrisk.corpus import Utterance, read_audio, write_corpus
from voxrisk.corpus.audio import audio_seconds, read_heard
from voxrisk.corpus.check import check_corpus, copy_name
from voxrisk.corpus.demo import make_demo
from voxrisk.corpus.table import Heard
from voxrisk.journal import hash_audio, resumable
from voxrisk.store import Store, digest_corpus

ROOT = Path(__file__).parents[2]
# Ending, sample rate, channels, subtype, and whether 16 bits hold the samples.
FORMS = [
    ("wav", 16_000, 1, "PCM_16", True),
    ("flac", 16_000, 1, "PCM_16", True),
    ("flac", 16_000, 1, "PCM_24", False),
    ("wav", 44_100, 2, "FLOAT", False),
    ("ogg", 16_000, 1, "VORBIS", False),
    ("mp3", 48_000, 1, "MPEG_LAYER_III", False),
]


def heard_of(row: Utterance, folder: Path) -> Utterance:
    """The row with a decoded copy, as an evaluation makes it."""
    found = check_corpus([row], workers=1, shortest=0.1, keep=folder)
    place = (row.path, row.start, row.end)
    heard = Heard(folder / copy_name(row), place, found.durations[row.utterance])
    return replace(row, heard=heard)


def noise(path: Path, rate: int = 16_000, channels: int = 1, subtype: str | None = None) -> Path:
    samples = np.random.default_rng(3).normal(0, 0.1, (rate, channels))
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


@pytest.mark.parametrize(("ending", "rate", "channels", "subtype", "small"), FORMS)
@pytest.mark.parametrize("place", [(None, None), (0.25, 0.8), (0.5, None), (0.5, 1.05)])
def test_a_copy_is_the_speech_to_the_bit(
    tmp_path: Path,
    ending: str,
    rate: int,
    channels: int,
    subtype: str,
    small: bool,
    place: tuple[float | None, float | None],
) -> None:
    path = noise(tmp_path / f"a.{ending}", rate, channels, subtype)
    row = Utterance("a", path, "s", start=place[0], end=place[1])
    samples, seconds = read_audio(row), audio_seconds(row)
    known = heard_of(row, tmp_path / "heard")
    path.unlink()
    again = read_audio(known)
    assert again.dtype == np.float32
    assert np.array_equal(again, samples)
    assert audio_seconds(known) == seconds
    assert known.copy is not None
    assert (np.load(known.copy.path).dtype == np.int16) == small


def test_a_copy_stands_for_no_other_speech(tmp_path: Path) -> None:
    """A row that now names the anonymized file must never give the original: risk would be wrong.

    The same for another part of the recording.
    """
    row = heard_of(Utterance("a", noise(tmp_path / "a.wav"), "s"), tmp_path / "heard")
    soundfile.write(tmp_path / "b.wav", np.full(8_000, 0.25), 16_000)
    other = replace(row, path=tmp_path / "b.wav")
    assert np.array_equal(read_audio(other), np.full(8_000, 0.25, np.float32))
    assert audio_seconds(other) == 0.5
    part = replace(row, start=0.5)
    assert np.array_equal(read_audio(part), read_audio(row)[8_000:])
    assert audio_seconds(part) == 0.5


def test_copies_of_voices_are_for_their_owner_alone(tmp_path: Path) -> None:
    heard_of(Utterance("a", noise(tmp_path / "a.wav"), "s"), tmp_path / "heard")
    assert (tmp_path / "heard").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("harm", ["gone", "cut", "empty"])
def test_a_damaged_copy_is_not_believed(tmp_path: Path, harm: str) -> None:
    row = heard_of(Utterance("a", noise(tmp_path / "a.wav"), "s"), tmp_path / "heard")
    assert row.copy is not None
    copy, samples = row.copy.path, read_audio(row)
    whole = copy.read_bytes()
    copy.unlink() if harm == "gone" else copy.write_bytes(whole[: 900 if harm == "cut" else 0])
    with pytest.raises((OSError, ValueError, EOFError)):
        read_heard(copy)
    assert np.array_equal(read_audio(row), samples)


def test_a_copy_is_no_column_of_a_table(tmp_path: Path) -> None:
    row = Utterance("a", noise(tmp_path / "a.wav"), "s")
    known = heard_of(row, tmp_path / "heard")
    assert known == row
    for name, rows in (("plain", [row]), ("known", [known])):
        write_corpus(tmp_path / f"{name}.csv", rows)
    assert (tmp_path / "known.csv").read_text() == (tmp_path / "plain.csv").read_text()


def write_noise(path: Path) -> str:
    noise(path)
    return path.name


def wrote(path: Path, _: str) -> list[Path]:
    return [path]


def test_what_a_worker_hashed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to seal the entry nor to know the corpus by its content; a changed file is."""
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.extend(folder / f"{name}.wav" for name in "abc")
        resumable(write_noise, made, key=str, journal=tmp_path / "j", files=wrote, workers=2)
        monkeypatch.setattr("voxrisk.journal.hash_file", lambda path: pytest.fail(f"reads {path}"))

    Store(tmp_path / "store").entry("check", {}, make, label="noise")
    rows = [Utterance(path.stem, path, "s") for path in made]
    digest = digest_corpus(rows, tmp_path / "hashes.json")
    monkeypatch.undo()
    before = hash_audio(made[0])
    made[0].write_bytes(made[0].read_bytes()[:-2] + b"xy")
    assert hash_audio(made[0]) != before
    assert digest_corpus(rows, tmp_path / "hashes.json") != digest


def test_an_evaluation_opens_a_file_at_most_twice(tmp_path: Path) -> None:
    """Once to hash it and once to decode it: check, anonymizer, two attackers, utility and all.

    Counted in a program of its own and in its workers, as the benchmark does.
    """
    rows = make_demo(tmp_path / "speech", voices=2, sentences=1)
    evaluate = runpy.run_path(str(ROOT / "benchmarks" / "evaluate.py"))["evaluate"]
    more = ["--with-audio", "--encoder", "longterm"]
    counts = evaluate(ROOT, tmp_path / "speech", tmp_path / "scratch", more).counts
    for kind, opens in counts.opens.items():
        assert len(opens) == len(rows), kind
        assert set(opens.values()) == {2}, kind
    speech = sum(row.duration or 0.0 for row in rows)
    assert counts.decoded == pytest.approx(2 * speech, rel=0.02)  # each side once
