"""Slices on disk: they hold what they claim, survive a kill and give nothing away when shuffled."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_corpus
from voxrisk.protect.aligner import align_utterance
from voxrisk.protect.alignment import write_alignment
from voxrisk.protect.slice_corpus import WITHHELD, Plan, slice_corpus
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError


@pytest.fixture(scope="module")
def speech(shared: Path) -> list[Utterance]:
    return read_corpus(shared / "librispeech_eval")[1:60:3]


@pytest.fixture(scope="module")
def words(speech: list[Utterance]) -> dict[str, list[Word]]:
    return {row.utterance: align_utterance(row) for row in speech}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


def test_slices_hold_the_sound_and_words_they_claim(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    out = tmp_path / "out"
    counts = slice_corpus(speech, out, plan=Plan(1.0), alignment=words, workers=1)
    slices = read_corpus(out)
    assert counts["slices"] == len(slices)
    assert counts["words"] == sum(len(w) for w in words.values())
    unknown = sum(word.start is None for one in words.values() for word in one)
    assert counts["words_without_times"] == unknown > 0
    sources = {row.utterance: row for row in speech}
    for piece in slices:
        source = sources[piece.extra["source"]]
        assert piece.speaker == source.speaker
        begin, end = float(piece.extra["source_start"]), float(piece.extra["source_end"])
        whole, part = read_audio(source), read_audio(piece)
        assert np.array_equal(whole[round(begin * 16_000) : round(end * 16_000)], part)
        first = int(piece.extra["first_word"])
        said = words[source.utterance][first:]
        assert (piece.text or "").split() == [w.text for w in said][: len(str(piece.text).split())]
    kept = sum(len(str(piece.text).split()) for piece in slices)
    assert kept == counts["words_kept"]
    assert not (tmp_path / "out.partial").exists()


def test_workers_and_aligner_do_not_change_the_slices(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    """With 1 and 2 workers, aligned on the way or before: the same bytes."""
    slice_corpus(speech, tmp_path / "a", plan=Plan(1.0), alignment=words, workers=1)
    slice_corpus(speech, tmp_path / "b", plan=Plan(1.0), workers=2)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_shuffled_slices_give_nothing_away(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    out = tmp_path / "published"
    slice_corpus(speech, out, plan=Plan(1.0, shuffle=True), alignment=words, workers=1)
    rows = read_corpus(out)
    assert {row.speaker for row in rows} == {WITHHELD}
    assert {(row.session, row.gender, *row.extra) for row in rows} == {(None, None)}
    assert len({f.stat().st_mtime for f in (out, *out.rglob("*"))}) == 1
    everything = b"".join(files(out).values()) + "".join(files(out)).encode()
    for row in speech:
        assert row.utterance.encode() not in everything
    with (tmp_path / "published.key.csv").open(newline="") as stream:
        key = {line["slice"]: line for line in csv.DictReader(stream)}
    assert set(key) == {row.utterance for row in rows}
    # The order of the names says nothing about the order of the speech.
    ordered = [list(key).index(row.utterance) for row in rows]
    assert abs(np.corrcoef(ordered, range(len(ordered)))[0, 1]) < 0.4
    # The same slices as without shuffling, under other names.
    plan = Plan(1.0, cut="clean")
    slice_corpus(speech, tmp_path / "plain", plan=plan, alignment=words, workers=1)
    plain = {r.utterance: r for r in read_corpus(tmp_path / "plain")}
    for row in rows:
        line = key[row.utterance]
        twin = plain[f"{line['source']}-s{int(line['place']):03d}"]
        assert (row.text, row.path.read_bytes()) == (twin.text, twin.path.read_bytes())


def test_the_key_is_for_its_owner_alone(tmp_path: Path, speech: list[Utterance]) -> None:
    """Also the secret of a run that was stopped, and the slices as they lie in order."""
    plan = Plan(1.0, fixed=True, shuffle=True)
    broken = replace(speech[1], path=tmp_path / "none.wav", utterance="none")
    old = os.umask(0o022)
    try:
        with pytest.raises(InputError, match="cannot be read as audio"):
            slice_corpus([speech[0], broken], tmp_path / "out", plan=plan, workers=1)
        assert (tmp_path / "out.partial").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "out.partial" / "run.json").stat().st_mode & 0o777 == 0o600
        slice_corpus(speech[:1], tmp_path / "other", plan=plan, workers=1)
    finally:
        os.umask(old)
    for name in ("other.key.csv", "other.key.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert not list((tmp_path / "other").rglob("*key*"))


def test_the_file_system_does_not_remember_the_order(
    tmp_path: Path, speech: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files come into being in the order of their names, which are drawn; so do their inodes."""
    made: list[str] = []
    copy = shutil.copyfile
    monkeypatch.setattr(
        "voxrisk.protect.slice_corpus.shutil.copyfile",
        lambda source, path: made.append(path.name) or copy(source, path),
    )
    out, plan = tmp_path / "out", Plan(1.0, fixed=True, shuffle=True, seed=3)
    slice_corpus(speech, out, plan=plan, workers=1)
    files = sorted(out.rglob("*.flac"), key=lambda path: path.name)
    assert made == [path.name for path in files]
    # Nothing else was ever written there, and no slice is the very file that was made in order.
    assert {path.stat().st_nlink for path in files} == {1}
    with (tmp_path / "out.key.csv").open(newline="") as stream:
        told = [line["slice"] for line in csv.DictReader(stream)]
    inode = {path.stem: path.stat().st_ino for path in files}
    inodes = [inode[name] for name in told]
    rank = np.argsort(np.argsort(inodes))
    assert abs(np.corrcoef(rank, np.arange(len(rank)))[0, 1]) < 0.3
    follows = np.mean(np.diff(rank) == 1)  # in the order of the words every one would
    assert follows < 0.1


def test_clean_slices_share_no_sample_and_tell_no_level(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    """A slice begins inside its neighbour as the paper cuts, never when the cut is clean.

    Clean slices begin and end with nothing, and are equally loud.
    """

    def shared(folder: Path) -> int:
        found = 0
        pieces = {(r.extra["source"], int(r.extra["place"])): r for r in read_corpus(folder)}
        for (source, place), row in pieces.items():
            if (source, place - 1) in pieces:
                # Behind the fade, where there is sound in either case.
                start = np.rint(read_audio(row) * 32768).astype(np.int16)[200:224]
                before = read_audio(pieces[source, place - 1])
                text = np.rint(before * 32768).astype(np.int16).tobytes()
                found += start.tobytes() in text
        return found

    for cut in ("pause", "clean"):
        plan = Plan(1.0, cut=cut)
        slice_corpus(speech, tmp_path / cut, plan=plan, alignment=words, workers=1)
    assert shared(tmp_path / "pause") > 5
    assert shared(tmp_path / "clean") == 0
    levels = []
    for row in read_corpus(tmp_path / "clean"):
        samples = read_audio(row)
        assert samples[0] == samples[-1] == 0
        levels.append(np.sqrt(np.mean(samples**2)))
    assert np.ptp(levels) < 0.002


def test_names_depend_on_the_secret_only(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    names = []
    for folder, seed in [("a", 1), ("b", 1), ("c", 2), ("d", None), ("e", None)]:
        plan = Plan(1.0, shuffle=True, seed=seed)
        slice_corpus(speech[:3], tmp_path / folder, plan=plan, alignment=words, workers=1)
        names.append(frozenset(row.utterance for row in read_corpus(tmp_path / folder)))
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_damaged_slices_of_a_stopped_run_are_made_again(
    tmp_path: Path,
    speech: list[Utterance],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan, out = Plan(1.0, fixed=True), tmp_path / "out"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    slice_corpus(speech, tmp_path / "whole", plan=plan, workers=1)
    monkeypatch.setattr("voxrisk.protect.slice_corpus._write_manifest", stop)
    with pytest.raises(KeyboardInterrupt):
        slice_corpus(speech, out, plan=plan, workers=1)
    monkeypatch.undo()
    damaged, gone = sorted(out.rglob("*.flac"))[:2]
    damaged.write_bytes(b"")  # as a power cut leaves it
    gone.unlink()
    slice_corpus(speech, out, plan=plan, workers=1)
    assert files(out) == files(tmp_path / "whole")
    assert "are damaged; made again" in caplog.text


def test_a_damaged_plan_of_a_stopped_run_says_the_way_out(
    tmp_path: Path, speech: list[Utterance]
) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json: is damaged.*add --force to begin again"):
        slice_corpus(speech, tmp_path / "out", plan=Plan(1.0, fixed=True))


def test_the_key_must_not_be_published(tmp_path: Path, speech: list[Utterance]) -> None:
    with pytest.raises(InputError, match="must not lie in the folder that is given away"):
        slice_corpus(
            speech, tmp_path / "o", plan=Plan(1.0, shuffle=True), key=tmp_path / "o" / "key.csv"
        )


def test_a_key_of_the_wrong_kind_is_refused(tmp_path: Path, speech: list[Utterance]) -> None:
    """It would be written over by the plan that lies beside it."""
    with pytest.raises(InputError, match="the key is a table"):
        slice_corpus(speech, tmp_path / "o", plan=Plan(1.0, shuffle=True), key=tmp_path / "k.json")
    with pytest.raises(InputError, match="cut is 'through'"):
        Plan(1.0, cut="through")


def test_a_kill_loses_and_doubles_nothing(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    """``kill -9`` in the middle, the same command again: the bytes of an undisturbed run."""
    write_corpus(tmp_path / "manifest.csv", speech)
    write_alignment(tmp_path / "words.csv", words)
    options = ["--alignment", str(tmp_path / "words.csv"), "--shuffle", "--seed", "7"]

    def command(out: Path) -> list[str]:
        corpus = str(tmp_path / "manifest.csv")
        return ["slice", corpus, "-o", str(out), "--workers", "1", *options]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert CliRunner().invoke(app, command(whole)).exit_code == 0
    process = subprocess.Popen([sys.executable, "-m", "voxrisk", *command(killed)])
    waited = time.monotonic()
    partial = killed.with_name("killed.partial")
    while len(list(partial.rglob("*.flac"))) < 3 and time.monotonic() - waited < 60:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "manifest.csv").exists()
    other = CliRunner().invoke(app, [*command(killed), "--duration", "2.0"])
    assert "other options" in str(other.exception)
    assert CliRunner().invoke(app, command(killed)).exit_code == 0
    assert files(killed) == files(whole)
    again = CliRunner().invoke(app, command(killed))
    assert "not empty" in str(again.exception)
    assert CliRunner().invoke(app, [*command(killed), "--force"]).exit_code == 0
    assert files(killed) == files(whole)


def test_fixed_cuts_need_no_text(tmp_path: Path, speech: list[Utterance]) -> None:
    bare = [Utterance(r.utterance, r.path, r.speaker, duration=r.duration) for r in speech[:4]]
    with pytest.raises(InputError, match="no text to align"):
        slice_corpus(bare, tmp_path / "x", plan=Plan(1.0))
    slice_corpus(bare, tmp_path / "out", plan=Plan(1.0, fixed=True), workers=1)
    rows = read_corpus(tmp_path / "out")
    assert {len(read_audio(row)) for row in rows} == {16_000}
    assert len(rows) == sum(int((row.duration or 0) + 1e-6) for row in bare)


def test_missing_alignments_and_impossible_times_are_said(
    tmp_path: Path, speech: list[Utterance], words: dict[str, list[Word]]
) -> None:
    write_corpus(tmp_path / "manifest.csv", speech[:3])
    write_alignment(tmp_path / "w.csv", {speech[0].utterance: words[speech[0].utterance]})
    command = ["slice", str(tmp_path / "manifest.csv"), "-o", str(tmp_path / "out")]
    command += ["--alignment", str(tmp_path / "w.csv"), "--workers", "1"]
    result = CliRunner().invoke(app, command)
    assert "(2 of 3 utterances missing)" in str(result.exception)
    result = CliRunner().invoke(app, [*command, "--skip-missing", "--json"])
    assert '"utterances_without_alignment": 2' in result.stdout
    late = {row.utterance: [Word("late", 99.0, 100.0)] for row in speech[:1]}
    with pytest.raises(InputError, match=f"{speech[0].utterance}: word 0 .'late'. ends at 100"):
        slice_corpus(speech[:1], tmp_path / "late", plan=Plan(1.0), alignment=late, workers=1)
