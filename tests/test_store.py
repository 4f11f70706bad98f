"""The store: finished work is found again, damaged work is noticed, said and made again."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, write_audio
from voxrisk.journal import Failed, Journal, Line, hash_audio, hash_file, hash_of, resumable
from voxrisk.store import DONE, Store, digest_corpus
from voxrisk.types import InputError

Text = pytest.LogCaptureFixture


def fill(folder: Path) -> None:
    """An entry with one file of each kind."""
    np.savez(folder / "vectors.npz", vectors=np.arange(6.0))
    (folder / "facts.json").write_text('{"a": 1}')
    (folder / "table.csv").write_text("a,b\n1,2\n")
    (folder / "audio").mkdir(exist_ok=True)
    write_audio(folder / "audio" / "a.wav", np.ones(400, np.float32) / 2, rate=16_000)


def tree(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != DONE)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def warnings(caplog: Text) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip(path: Path) -> None:
    """Change one byte in the middle; size and times stay."""
    facts, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def later(path: Path) -> None:
    """Other audio of the same length."""
    write_audio(path, np.ones(400, np.float32) / 4, rate=16_000)
    os.utime(path, (time.time() + 5, time.time() + 5))


@pytest.mark.parametrize(
    ("name", "harm", "said"),
    [
        ("vectors.npz", cut, "vectors.npz is not as it was written"),
        ("vectors.npz", flip, "vectors.npz is not as it was written"),
        ("facts.json", flip, "facts.json is not as it was written"),
        ("table.csv", Path.unlink, "table.csv is missing"),
        ("audio/a.wav", Path.unlink, "audio/a.wav is missing"),
        ("audio/a.wav", cut, "audio/a.wav is not as it was written"),
        ("audio/a.wav", later, "audio/a.wav is not as it was written"),
        ("audio/a.wav", flip, "audio/a.wav is not as it was written"),
        (DONE, cut, "done.json is damaged"),
        (DONE, lambda path: path.write_text("[1]"), "done.json is damaged"),
        (DONE, lambda path: path.write_bytes(b"\xff\xfe"), "done.json is damaged"),
        (
            DONE,
            lambda path: path.write_text(path.read_text().replace('"files"', '"filez"')),
            "done.json is damaged",
        ),
    ],
)
def test_a_damaged_entry_is_said_and_made_again(
    tmp_path: Path, caplog: Text, name: str, harm: Callable[[Path], None], said: str
) -> None:
    folder = Store(tmp_path).entry("embed", {"x": 1}, fill, label="some speech")
    whole = tree(folder)
    harm(folder / name)
    store = Store(tmp_path)
    assert store.entry("embed", {"x": 1}, fill, label="some speech") == folder
    assert tree(folder) == whole
    assert store.reused == []
    assert warnings(caplog) == [f"embed some speech: {said}; it is made again"]
    again = Store(tmp_path)
    again.entry("embed", {"x": 1}, lambda _: pytest.fail("it is whole"), label="some speech")
    assert again.reused == ["embed some speech"]


def test_what_is_added_to_a_whole_entry_harms_nothing(tmp_path: Path, caplog: Text) -> None:
    folder = Store(tmp_path).entry("embed", {}, fill, label="")
    (folder / ".DS_Store").write_bytes(b"x")
    (tmp_path / f"{folder.name}.lock").write_bytes(b"")  # an empty lock that nobody holds
    Store(tmp_path).entry("embed", {}, lambda _: pytest.fail("it is whole"), label="")
    assert not warnings(caplog)


def test_a_whole_entry_is_read_once_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is hashed when the entry is first used, and what was hashed is remembered."""
    folder = Store(tmp_path).entry("embed", {"x": 1}, fill, label="")
    read: list[str] = []
    monkeypatch.setattr(
        "voxrisk.store.hash_file", lambda path: read.append(path.name) or whole[path]
    )
    whole = {path: hash_file(path) for path in folder.rglob("*") if path.is_file()}
    store = Store(tmp_path)
    for _ in range(3):
        store.entry("embed", {"x": 1}, lambda _: pytest.fail("it is there"), label="")
    assert sorted(read) == ["a.wav", "facts.json", "table.csv", "vectors.npz"]
    monkeypatch.setattr("voxrisk.journal.hash_file", lambda path: pytest.fail(f"reads {path}"))
    assert hash_audio(folder / "audio" / "a.wav") == whole[folder / "audio" / "a.wav"]


def test_a_kill_leaves_an_entry_that_is_gone_on_with(tmp_path: Path) -> None:
    def stopped(folder: Path) -> None:
        (folder / "half").write_text("kept")
        (folder / ".x.0.part.npz").write_bytes(b"torn")
        raise KeyboardInterrupt

    def rest(folder: Path) -> None:
        assert (folder / "half").read_text() == "kept"

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).entry("train", {}, stopped, label="")
    folder = Store(tmp_path).entry("train", {}, rest, label="")
    assert sorted(tree(folder)) == ["half"]


def slow_entry(folder: Path, log: Path) -> None:
    def make(inside: Path) -> None:
        with log.open("a") as stream:
            stream.write("made\n")
        time.sleep(0.5)
        (inside / "result").write_text("done")

    Store(folder).entry("check", {"x": 1}, make, label="test")


def test_two_processes_at_once_make_an_entry_once_even_a_damaged_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for times in (1, 2):
        pair = [
            context.Process(target=slow_entry, args=(tmp_path / "store", tmp_path / "log"))
            for _ in range(2)
        ]
        for process in pair:
            process.start()
        for process in pair:
            process.join()
            assert process.exitcode == 0
        assert (tmp_path / "log").read_text() == "made\n" * times
        next(tmp_path.glob("store/check-*/result")).unlink()


def test_a_corpus_is_hashed_once_and_a_garbled_memory_is_made_anew(
    tmp_path: Path, caplog: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for name in "ab":
        write_audio(
            tmp_path / f"{name}.wav", np.full(400, ord(name) / 200, np.float32), rate=16_000
        )
        rows.append(Utterance(name, tmp_path / f"{name}.wav", "s"))
    memory = tmp_path / "hashes.json"
    first = digest_corpus(rows, memory)
    caplog.set_level(logging.INFO, "voxrisk")
    for harm in (cut, flip, lambda path: path.write_bytes(b"\x00garbage\xff\n[1]")):
        caplog.clear()
        harm(memory)
        assert digest_corpus(rows, memory) == first
        assert "hashes.json" in caplog.text
        caplog.clear()
        monkeypatch.setattr("voxrisk.store.hash_audio", lambda _: pytest.fail("it is remembered"))
        assert digest_corpus(rows, memory) == first
        assert not warnings(caplog)
        monkeypatch.undo()
    write_audio(rows[0].path, np.ones(400, np.float32) / 2, rate=16_000)
    assert digest_corpus(rows, memory) != first


def square(item: int) -> int | Failed:
    with Path(os.environ["VOXRISK_TEST_LOG"]).open("a") as stream:
        stream.write(f"{item}\n")
    return Failed(f"{item} is negative") if item < 0 else item * item


def squares(
    folder: Path, items: list[int], monkeypatch: pytest.MonkeyPatch, workers: int = 1
) -> tuple[list[int | Failed], list[int]]:
    """Results, and the items that were worked on for them."""
    log = folder / "log"
    log.write_text("")
    monkeypatch.setenv("VOXRISK_TEST_LOG", str(log))
    journal = folder / "journal.jsonl"
    found = resumable(square, items, key=str, journal=journal, workers=workers, label="squares")
    return found, sorted(map(int, log.read_text().split()))


@pytest.mark.parametrize("workers", [1, 2])
def test_items_in_the_journal_are_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    assert squares(tmp_path, [3, 1, 3, 2], monkeypatch, workers) == ([9, 1, 9, 4], [1, 2, 3])
    assert squares(tmp_path, [5, 3, 2, 1], monkeypatch, workers) == ([25, 9, 4, 1], [5])
    assert squares(tmp_path, [2, 1], monkeypatch, workers) == ([4, 1], [])


def test_a_failed_item_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        found, done = squares(tmp_path, [2, -1], monkeypatch)
        assert found == [4, Failed("-1 is negative")]
        assert -1 in done
    assert done == [-1]


def garble(path: Path) -> None:
    path.write_bytes(b"\x00\n{}\nnull\n")


@pytest.mark.parametrize(("harm", "aloud"), [(cut, False), (flip, True), (garble, True)])
def test_an_altered_line_is_said_once_and_a_torn_one_is_what_a_kill_leaves(
    tmp_path: Path,
    caplog: Text,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], None],
    aloud: bool,
) -> None:
    """In either case what the line held is done again, and nothing else."""
    squares(tmp_path, [1, 2, 3], monkeypatch)
    harm(tmp_path / "journal.jsonl")
    found, done = squares(tmp_path, [1, 2, 3], monkeypatch)
    assert found == [1, 4, 9]
    assert done == ([1, 2, 3] if harm is garble else [2] if harm is flip else [3])
    assert ("damaged lines; what they held is done again" in caplog.text) is aloud
    caplog.clear()
    assert squares(tmp_path, [1, 2, 3], monkeypatch) == ([1, 4, 9], [])
    assert not warnings(caplog)


def append(path: Path, first: int) -> None:
    for number in range(first, first + 200):
        Journal(path).add({str(number): Line("x" * (number % 97))})


def test_processes_that_write_one_journal_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "journal.jsonl"
    pair = [context.Process(target=append, args=(path, first)) for first in (0, 200)]
    for process in pair:
        process.start()
    for process in pair:
        process.join()
    assert {int(key): len(line.result) for key, line in Journal(path).read().items()} == {
        number: number % 97 for number in range(400)
    }


def copy_item(item: tuple[Path, str]) -> str:
    path, text = item
    path.write_text(text)
    return path.name


def copied(item: tuple[Path, str], result: str) -> list[Path]:
    return [item[0].with_name(result)]


@pytest.mark.parametrize("harm", [Path.unlink, flip, lambda path: path.write_text("")])
def test_an_item_whose_file_is_damaged_is_done_again(
    tmp_path: Path, caplog: Text, harm: Callable[[Path], None]
) -> None:
    items = [(tmp_path / name, f"text of {name}") for name in "abc"]

    def work() -> list[str]:
        return resumable(
            copy_item, items, key=lambda item: item[0].name, journal=tmp_path / "journal.jsonl",
            files=copied, workers=1, label="copy",
        )  # fmt: skip

    assert work() == ["a", "b", "c"]
    harm(items[1][0])
    items[0][0].touch()  # only the content counts
    caplog.set_level(logging.INFO, "voxrisk")
    assert work() == ["a", "b", "c"]
    assert items[1][0].read_text() == "text of b"
    assert "copy: finished files of 1 items are damaged; made again" in caplog.messages
    assert "copy: 2 of 3 are done already" in caplog.messages


def test_a_key_changes_with_the_audio_and_with_nothing_else_of_a_row(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", np.ones(400, np.float32) / 2, rate=16_000)
    row = Utterance("a", tmp_path / "a.wav", "s")
    before = hash_of({"x": 1}, row)
    assert hash_of({"x": 1}, Utterance("b", tmp_path / "a.wav", "t")) == before
    assert hash_of({"x": 2}, row) != before
    assert hash_of({"x": 1}, Utterance("a", tmp_path / "a.wav", "s", start=0.01)) != before
    write_audio(tmp_path / "a.wav", np.ones(400, np.float32) / 4, rate=16_000)
    assert hash_of({"x": 1}, row) != before


def dies_at_seven(item: int) -> int:
    if item == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def test_a_worker_killed_by_the_system_loses_nothing_that_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(InputError, match="squares: one of 2 worker processes was killed"):
        resumable(
            dies_at_seven, range(8), key=str, journal=journal, workers=2, batch=8, label="squares"
        )
    kept = {int(key): line.result for key, line in Journal(journal).read().items()}
    assert kept == {item: item * item for item in kept}
    assert 6 in kept  # done by the same worker, in the same batch, just before
    found, done = squares(tmp_path, list(range(8)), monkeypatch)
    assert found == [item * item for item in range(8)]
    assert done == sorted(set(range(8)) - set(kept))


KILLED = """
import os, sys, time
from pathlib import Path
from voxrisk.journal import resumable

def stage(number):
    if number == 5 and sys.argv[2] == "killed":
        time.sleep(60)
    with (Path(sys.argv[1]) / "log").open("a") as stream:
        stream.write(f"{number}\\n")
    return number * number

if __name__ == "__main__":
    journal = Path(sys.argv[1]) / "journal.jsonl"
    print(resumable(stage, range(8), key=str, journal=journal, workers=1, label="squares"))
"""


def test_kill_minus_9_loses_the_item_in_hand_only(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path)]
    log = tmp_path / "log"
    with subprocess.Popen([*command, "killed"]) as process:
        deadline = time.monotonic() + 60
        while len(Journal(tmp_path / "journal.jsonl").read()) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    done = subprocess.run([*command, "whole"], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str([n * n for n in range(8)])
    assert log.read_text().split() == list("01234567")


def test_a_fresh_entry_is_made_again_once_in_a_run(tmp_path: Path) -> None:
    made: list[int] = []

    def make(folder: Path) -> None:
        assert not any(folder.iterdir()), "nothing of the old one is left"
        made.append(1)
        (folder / "x").write_text(str(len(made)))

    Store(tmp_path).entry("anonymize", {}, make, label="")
    store = Store(tmp_path)
    for _ in range(3):
        folder = store.entry("anonymize", {}, make, label="", fresh=True)
    assert len(made) == 2
    assert (folder / "x").read_text() == "2"
    Store(tmp_path).entry("anonymize", {}, lambda _: pytest.fail("it is there"), label="")


def test_what_a_stage_asks_for_is_not_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("voxrisk.store.time.monotonic", lambda: now[0])
    store = Store(tmp_path)

    def inner(folder: Path) -> None:
        now[0] += 5.0

    def outer(folder: Path) -> None:
        now[0] += 2.0
        store.entry("embed", {}, inner, label="in")
        now[0] += 1.0

    store.entry("infer", {}, outer, label="out")
    assert [(t.stage, t.label, t.seconds) for t in store.took] == [
        ("embed", "in", 5.0), ("infer", "out", 3.0),
    ]  # fmt: skip
    store.entry("embed", {}, inner, label="in")  # made in this run: nothing new to tell
    assert len(store.took) == 2
