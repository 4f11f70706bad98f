"""``anonymize``: the same bytes for any number of workers and after any kill."""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.protect.anonymizers import (
    Anonymizer,
    anonymizer,
    parse_options,
    wants_targets,
)
from voxrisk.protect.own_code import own_code
from voxrisk.protect.run import TIMES, anonymize, finish
from voxrisk.protect.targets import (
    distances,
    select_targets,
    speakers_of,
    unit_generator,
    unit_of,
)
from voxrisk.types import InputError


@pytest.fixture(scope="session")
def some(shared: Path) -> list[Utterance]:
    """Three short real utterances of each of four speakers, two of each gender."""
    rows = read_corpus(shared / "librispeech_eval")
    genders: dict[str, int] = {}
    chosen = []
    for speaker in speakers_of(rows).values():
        gender = str(speaker[0].gender)
        if genders.get(gender, 0) < 2:
            genders[gender] = genders.get(gender, 0) + 1
            chosen += sorted(speaker, key=lambda row: row.duration or 0)[:3]
    assert len(chosen) == 12
    return chosen


def _tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES
    }


def test_kill_minus_9_then_the_same_command_gives_the_same_bytes(
    some: list[Utterance], tmp_path: Path
) -> None:
    write_corpus(tmp_path / "corpus" / "manifest.csv", some)
    command = [sys.executable, "-m", "voxrisk", "anonymize", str(tmp_path / "corpus")]
    command += ["--anonymizer", "world", "--workers", "1", "--seed", "7", "-o"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    subprocess.run([*command, str(tmp_path / "whole")], check=True, **quiet)

    killed = tmp_path / "killed"
    process = subprocess.Popen([*command, str(killed)], **quiet)
    while len(list(killed.glob("audio/[!.]*.flac"))) < 4:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "manifest.csv").exists()
    (killed / "audio" / ".torn.0.part.flac").write_bytes(b"half a file")
    journal = next((killed / ".journal").glob("*.jsonl"))
    finished = len(journal.read_bytes().splitlines())
    assert 3 <= finished < len(some)
    with journal.open("ab") as stream:
        stream.write(b'{"utterance": "torn')

    subprocess.run([*command, str(killed)], check=True, **quiet)
    assert _tree(killed) == _tree(tmp_path / "whole")
    assert [r.utterance for r in read_corpus(killed)] == [r.utterance for r in some]


def test_damaged_output_is_noticed_and_made_again(
    some: list[Utterance],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of an unfinished run only the damaged file, of a finished one everything."""
    anonymize(some[:4], tmp_path / "whole", "mcadams", workers=1)
    out = tmp_path / "out"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("voxrisk.protect.run._close_run", stop)
    with pytest.raises(KeyboardInterrupt):
        anonymize(some[:4], out, "mcadams", workers=1)
    monkeypatch.undo()
    first, second = sorted(out.glob("audio/*.flac"))[:2]
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    kept = second.stat().st_mtime_ns
    anonymize(some[:4], out, "mcadams", workers=1)
    assert _tree(out) == _tree(tmp_path / "whole")
    assert second.stat().st_mtime_ns == kept
    assert "finished files of 1 items are damaged; made again" in caplog.text
    for harm, path, said in (
        (Path.unlink, first, "is missing; it is made again"),
        (_flip, first, "is not as it was written; it is made again"),
        (_flip, out / "manifest.csv", "manifest.csv is not as it was written; it is made again"),
        (_flip, out / "done.json", "it is made again"),
    ):
        caplog.clear()
        harm(path)
        anonymize(some[:4], out, "mcadams", workers=1)
        assert _tree(out) == _tree(tmp_path / "whole")
        assert said in caplog.text


def _flip(path: Path) -> None:
    """Change one byte; size and times stay."""
    facts, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def test_a_source_that_changed_since_the_end_is_noticed(
    some: list[Utterance], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same command on a mended corpus must not give what was made of the broken one."""
    row = dataclasses.replace(some[0], path=tmp_path / "a.wav")
    for other, name in ((0, "out"), (1, "out"), (1, "fresh")):
        write_audio(row.path, read_audio(some[other]), rate=16_000)
        anonymize([row], tmp_path / name, "mcadams", workers=1)
    assert _tree(tmp_path / "out") == _tree(tmp_path / "fresh")
    assert "the speech it was made of has changed; it is made again" in caplog.text


def test_a_source_that_changed_since_the_kill_is_converted_again(
    some: list[Utterance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = dataclasses.replace(some[0], path=tmp_path / "a.wav")
    write_audio(row.path, read_audio(some[0]), rate=16_000)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("voxrisk.protect.run._close_run", stop)
    with pytest.raises(KeyboardInterrupt):
        anonymize([row], tmp_path / "out", "mcadams", workers=1)
    monkeypatch.undo()
    write_audio(row.path, read_audio(some[1]), rate=16_000)
    for name in ("out", "fresh"):
        anonymize([row], tmp_path / name, "mcadams", workers=1)
    assert _tree(tmp_path / "out") == _tree(tmp_path / "fresh")


def test_one_worker_or_two_give_the_same_bytes(some: list[Utterance], tmp_path: Path) -> None:
    for workers in (1, 2):
        anonymize(some, tmp_path / str(workers), "mcadams", seed=3, workers=workers)
    assert _tree(tmp_path / "1") == _tree(tmp_path / "2")


def test_another_seed_gives_other_samples(some: list[Utterance], tmp_path: Path) -> None:
    for seed in (1, 2):
        anonymize(some[:2], tmp_path / str(seed), "mcadams", seed=seed, workers=1)
    assert not np.array_equal(*(read_audio(read_corpus(tmp_path / s)[0]) for s in ("1", "2")))


def test_the_manifest_keeps_the_rows_and_records_what_was_done(
    some: list[Utterance], tmp_path: Path
) -> None:
    anonymize(some, tmp_path / "out", "world", select="same-gender", seed=5, workers=1)
    rows = read_corpus(tmp_path / "out")
    gender = {row.speaker: row.gender for row in some}
    for before, after in zip(some, rows, strict=True):
        assert (after.utterance, after.speaker, after.text) == (
            before.utterance,
            before.speaker,
            before.text,
        )
        assert after.path.suffix == ".flac"
        assert after.extra["anonymizer"] == "world"
        assert after.extra["seed"] == "5"
        assert after.extra["target"] != before.speaker
        assert gender[after.extra["target"]] == before.gender
        assert json.loads(after.extra["parameters"])["strength"] == 1.0
        assert len(read_audio(after)) == len(read_audio(before))


def test_a_finished_run_is_left_alone_and_another_one_is_refused(
    some: list[Utterance], tmp_path: Path
) -> None:
    anonymize(some[:2], tmp_path / "out", "mcadams", workers=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    anonymize(some[:2], tmp_path / "out", "mcadams", workers=1)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    with pytest.raises(InputError, match=r"holds another run .*--force"):
        anonymize(some[:2], tmp_path / "out", "mcadams", seed=1, workers=1)
    anonymize(some[:2], tmp_path / "out", "mcadams", seed=1, workers=1, force=True)
    assert read_corpus(tmp_path / "out")[0].extra["seed"] == "1"


def test_a_foreign_folder_is_not_overwritten(some: list[Utterance], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="is not empty"):
        anonymize(some[:2], tmp_path / "out", "mcadams", workers=1)
    anonymize(some[:2], tmp_path / "out", "mcadams", workers=1, force=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_failures_name_the_utterances_and_keep_the_others(
    some: list[Utterance], tmp_path: Path
) -> None:
    (tmp_path / "broken.flac").write_bytes(b"not audio")
    bad = dataclasses.replace(some[1], path=tmp_path / "broken.flac")
    with pytest.raises(InputError, match=rf"1 of 3 utterances failed: {bad.utterance}: .*kept"):
        anonymize([some[0], bad, some[2]], tmp_path / "out", "mcadams", workers=1)
    assert len(list((tmp_path / "out" / "audio").iterdir())) == 2
    assert not (tmp_path / "out" / "manifest.csv").exists()


def test_output_never_clips_and_scaling_is_recorded(some: list[Utterance], tmp_path: Path) -> None:
    loud = tmp_path / "loud.wav"
    samples = read_audio(some[0])
    write_audio(loud, samples / np.abs(samples).max(), rate=16_000)
    row = dataclasses.replace(some[0], path=loud)
    out = anonymize([row], tmp_path / "out", "mcadams", options={"alpha": 0.6}, workers=1)[0]
    assert np.abs(read_audio(out)).max() <= 0.991
    assert 0 < json.loads(out.extra["parameters"])["scale"] < 1


def test_short_silent_and_unvoiced_speech_does_not_crash(
    some: list[Utterance], tmp_path: Path
) -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 4000).astype(np.float32)
    hard = {"short": noise[:7], "silent": np.zeros(8000, np.float32), "unvoiced": noise}
    rows = []
    for name, samples in hard.items():
        write_audio(tmp_path / f"{name}.wav", samples, rate=16_000)
        rows.append(Utterance(name, tmp_path / f"{name}.wav", "hard"))
    for name, options in (
        ("mcadams", {}),
        ("world", {}),
        ("knn", {"part": "light"}),
        ("private-knn", {"part": "light"}),
        ("pool", {"part": "light", "strategy": "random", "gender": "random", "size": 1}),
    ):
        out = anonymize(rows, tmp_path / name, name, options=options, targets=some[:1], workers=1)
        for row, samples in zip(out, hard.values(), strict=True):
            if name != "private-knn":
                assert len(read_audio(row)) == len(samples)


def test_no_id_leaves_the_folder(some: list[Utterance], tmp_path: Path) -> None:
    row = dataclasses.replace(some[0], utterance="../../escaped")
    out = anonymize([row], tmp_path / "deep" / "out", "mcadams", workers=1)[0]
    assert out.utterance == "../../escaped"
    assert out.path.parent == tmp_path / "deep" / "out" / "audio"
    assert not list(tmp_path.glob("escaped*"))


def test_output_that_is_wrong_is_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        finish(np.array([0, np.nan], np.float32), length=2)
    with pytest.raises(InputError, match="2 samples instead of 3"):
        finish(np.zeros(2, np.float32), length=3)
    with pytest.raises(InputError, match="shape"):
        finish(np.zeros((2, 2), np.float32), length=None)


# Target selection


def _people(n: int) -> list[Utterance]:
    return [
        Utterance(f"{s}-{u}", Path("x.wav"), f"s{s}", gender="fm"[s % 2], session=str(u // 2))
        for s in range(n)
        for u in range(4)
    ]


@given(st.integers(2, 9), st.integers(0, 99), st.sampled_from(["utterance", "speaker", "session"]))
def test_targets_depend_on_seed_and_id_alone(n: int, seed: int, per: str) -> None:
    rows = _people(n)
    pool = speakers_of(rows)
    chosen = select_targets(rows, pool, per=per, seed=seed)
    again = select_targets(rows[::-1], dict(reversed(pool.items())), per=per, seed=seed)
    assert again == chosen[::-1]
    assert all(target != (row.speaker,) for row, target in zip(rows, chosen, strict=True))
    units = {unit_of(row, per): target for row, target in zip(rows, chosen, strict=True)}
    assert [units[unit_of(row, per)] for row in rows] == chosen


def test_random_targets_use_the_whole_pool_evenly() -> None:
    rows = [Utterance(str(i), Path("x"), "source") for i in range(4000)]
    pool = {f"t{i}": [Utterance("u", Path("x"), f"t{i}")] for i in range(10)}
    chosen = select_targets(rows, pool, seed=1)
    counts = np.unique([target[0] for target in chosen], return_counts=True)[1]
    # Chi-square with 9 degrees of freedom: 27.9 is its 99.9 % point.
    assert len(counts) == 10
    assert np.sum((counts - 400) ** 2 / 400) < 27.9


def test_gender_selections_keep_their_word() -> None:
    rows = _people(6)
    gender = {row.speaker: row.gender for row in rows}
    pool = speakers_of(rows)
    for select, same in (("same-gender", True), ("opposite-gender", False)):
        for row, (target,) in zip(
            rows, select_targets(rows, pool, select=select, seed=0), strict=True
        ):
            assert (gender[target] == row.gender) is same


def test_farthest_is_the_farthest() -> None:
    rows = _people(3)
    vectors = {"s0": np.array([1.0, 0]), "s1": np.array([0.9, 0.3]), "s2": np.array([-1.0, 0.2])}
    chosen = select_targets(rows, speakers_of(rows), select="farthest", vectors=lambda: vectors)
    assert chosen[0] == ("s2",)
    assert distances("s0", ["s1", "s2"], vectors).argmax() == 1


def test_selection_errors_say_what_is_missing() -> None:
    rows = [Utterance("a", Path("x"), "s1"), Utterance("b", Path("x"), "s2")]
    pool = speakers_of(rows)
    with pytest.raises(InputError, match="speaker s1: gender is None"):
        select_targets(rows, pool, select="same-gender")
    with pytest.raises(InputError, match="no session"):
        select_targets(rows, pool, per="session")
    with pytest.raises(InputError, match="'s9' is not among the target speakers s1, s2"):
        select_targets(rows, pool, select="fixed", fixed="s9")
    with pytest.raises(InputError, match="no target speaker"):
        select_targets(rows[:1], speakers_of(rows[:1]))
    with pytest.raises(InputError, match="select is 'nearest'"):
        select_targets(rows, pool, select="nearest")


def test_generators_of_different_units_differ() -> None:
    draws = {unit_generator(0, "target", str(i)).integers(2**40) for i in range(100)}
    assert len(draws) == 100


# The shape of an anonymizer


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InputError, match="no anonymizer 'magic'"):
        anonymizer("magic")
    with pytest.raises(InputError, match="mcadams has no option 'beta'; it has alpha, low, high"):
        anonymizer("mcadams", {"beta": 1})
    with pytest.raises(InputError, match="cannot import the anonymizer nowhere:f"):
        anonymizer("nowhere:f")
    with pytest.raises(InputError, match="write key=value"):
        parse_options(["alpha"])


def reverse_time(
    samples: np.ndarray, *, rate: int, target: list[np.ndarray], seed: int
) -> np.ndarray:
    """An anonymizer of a user: the speech backwards."""
    assert rate == 16_000
    assert target
    return samples[::-1]


def test_a_python_function_works_as_well(some: list[Utterance], tmp_path: Path) -> None:
    assert isinstance(anonymizer(f"{__name__}:reverse_time"), Anonymizer)
    rows = anonymize(some, tmp_path / "out", f"{__name__}:reverse_time", workers=1)
    before, after = read_audio(some[0]), read_audio(rows[0])
    np.testing.assert_allclose(after, before[::-1], atol=1e-4)


OWN = """
import numpy as np
def quieter(samples, *, rate, target, seed, by=0.5):
    return samples * by
def wrong(samples, rate):
    return samples
def endless(samples, *, rate, target, seed):
    return np.tile(samples, 10)
def broken(samples, *, rate, target, seed):
    return {}["nothing"]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own_tool.py"
    path.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("own_tool", None)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wrong", {}, r"must take wrong\(samples, \*, rate, target, seed\)"),
        ("quieter", {"bye": 0.2}, "unexpected keyword argument 'bye'"),
        ("nothing", {}, "cannot import the anonymizer own_tool:nothing"),
        ("np", {}, "is no function"),
    ],
)
def test_a_function_that_does_not_fit_is_told_the_right_signature(
    own: Path, name: str, options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        anonymizer(f"own_tool:{name}", options)


@pytest.mark.parametrize(
    ("name", "message"),
    [("endless", "set shortest and longest"), ("broken", "failed .KeyError: 'nothing'.")],
)
def test_what_a_function_gives_back_is_checked(
    own: Path, some: list[Utterance], tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        anonymize(some[:1], tmp_path / "out", f"own_tool:{name}", targets=some[1:], workers=1)
    if name == "endless":
        options = {"longest": 12}
        anonymize(
            some[:1], tmp_path / "long", "own_tool:endless", options=options, targets=some[1:],
            workers=1,
        )  # fmt: skip


def test_code_of_the_user_is_known_by_what_it_holds(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of finished work holds the code, not only its name."""
    before = own_code("own_tool:quieter")
    assert before == own_code("own_tool:quieter") != ""
    own.write_text(OWN.replace("by=0.5", "by=0.25"))
    assert own_code("own_tool:quieter") != before
    assert own_code("knn") == ""
    monkeypatch.chdir(tmp_path)
    for words in ("tool.py", f"{tmp_path}/tool.py", "-m tool"):
        run = {"run": f"{sys.executable} {words} {{input}} {{output}}"}
        Path("tool.py").write_text("print(1)")
        first = own_code("command", run)
        Path("tool.py").write_text("print(2)")
        assert own_code("command", run) != first, words


def loudness(rows: list[Utterance], some: list[Utterance]) -> float:
    """How loud the first of them is, as a share of what it was."""
    after, before = read_audio(rows[0]), read_audio(some[0])
    return float(np.abs(after).max() / np.abs(before).max())


def test_a_function_that_was_edited_is_run_as_it_is_now(
    own: Path, some: list[Utterance], tmp_path: Path
) -> None:
    """Also by the process that loaded it before the edit, as a notebook does."""

    def protect(name: str, **choices: bool) -> float:
        rows = anonymize(
            some[:1], tmp_path / name, "own_tool:quieter", targets=some[1:], workers=1, **choices
        )
        return loudness(rows, some)

    assert protect("one") == pytest.approx(0.5, abs=0.01)
    own.write_text(OWN.replace("by=0.5", "by=0.25"))
    assert protect("two") == pytest.approx(0.25, abs=0.01)
    with pytest.raises(InputError, match=r"holds another run .*your code"):
        protect("one")
    assert protect("one", force=True) == pytest.approx(0.25, abs=0.01)


def test_fresh_runs_a_function_again_whose_reading_changed(
    own: Path, some: list[Utterance], tmp_path: Path
) -> None:
    """The code is the same; what it reads by itself, nobody but the user can know."""
    (tmp_path / "by.txt").write_text("0.5")
    own.write_text(
        "from pathlib import Path\n"
        "def quieter(samples, *, rate, target, seed):\n"
        f"    return samples * float(Path({str(tmp_path / 'by.txt')!r}).read_text())\n"
    )

    def protect(**choices: bool) -> float:
        rows = anonymize(
            some[:1], tmp_path / "out", "own_tool:quieter", targets=some[1:], workers=1, **choices
        )
        return loudness(rows, some)

    assert protect() == pytest.approx(0.5, abs=0.01)
    (tmp_path / "by.txt").write_text("0.25")
    assert protect() == pytest.approx(0.5, abs=0.01)
    assert protect(fresh=True) == pytest.approx(0.25, abs=0.01)


def test_which_anonymizers_want_targets_is_known_without_loading_models() -> None:
    assert not wants_targets("mcadams")
    assert wants_targets("world")
    for name in ("knn", "private-knn", "pool"):
        assert wants_targets(name)
        assert anonymizer(name, {"part": "light"}).learn is not None
    assert not wants_targets("command", {"run": "program {input} {output}"})
    assert wants_targets("command", {"run": "program {input} {output} {target}"})
    with pytest.raises(InputError, match="no anonymizer 'nothing'"):
        wants_targets("nothing")
