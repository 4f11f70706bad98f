"""``voxrisk measure`` as a user runs it."""

import contextlib
import csv
import io
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from simulated_scores import simulate
from voxrisk.cli import main
from voxrisk.report.png import obstacle
from voxrisk.results import Results


class Said(NamedTuple):
    """What a command wrote to its two streams."""

    stdout: str
    stderr: str


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The secret behind the pseudonyms is not that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOXRISK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return simulate(tmp_path_factory.mktemp("scores"), seed=1)


def voxrisk(*arguments: object, code: int = 0) -> Said:
    """The command in this process: to load all it needs again takes longer than what it does."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        patch.setattr(sys, "argv", ["voxrisk", *map(str, arguments)])
        patch.setattr(threading, "excepthook", threading.excepthook)  # which the command sets
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == code, stderr.getvalue()
    return Said(stdout.getvalue(), stderr.getvalue())


def voxrisk_apart(*arguments: object) -> Said:
    """The command as a program of its own."""
    command = [sys.executable, "-m", "voxrisk", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Said(done.stdout, done.stderr)


def test_two_protections_beside_the_original(scores: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = voxrisk(
        "measure", f"strong={scores['strong']}", f"weak={scores['weak']}",
        "--trials", scores["trials"], "--reference", scores["original"],
        "--cross", scores["strong-cross"], "--cross", scores["weak-cross"],
        "-o", out, "--resamples", 100,
    )  # fmt: skip
    assert "EER, convex hull" in done.stdout
    assert "19,200" not in done.stderr
    results = Results.read(out)
    assert results.kind == "measure"
    sets = results.attackers
    assert list(sets) == ["strong", "weak", "original"]
    assert sets["strong"].eer.value > sets["weak"].eer.value > sets["original"].eer.value
    assert results.reference == sets["original"]
    deid = {name: sets[name].figures["deid"].value for name in ("strong", "weak")}
    assert deid["strong"] > deid["weak"]
    assert sets["strong"].sizes == {"target": 480, "nontarget": 18720, "speaker": 40}
    assert results.methods.resamples == 100
    assert len(results.methods.hashes["strong, scores"]) == 64
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    tidy = {(row["attack"], row["figure"]): row for row in rows}
    assert len(tidy) == len(rows) == sum(len(s.figures) for s in sets.values())
    for name, s in sets.items():
        for figure, estimate in s.figures.items():
            row = tidy[name, figure]
            assert float(row["value"]) == estimate.value
            assert float(row["low"]) == estimate.interval.low
    for picture in ("ece_profile", "det", "scores", "similarity_strong", "deid_gvd"):
        assert "<svg" in (out / f"{picture}.svg").read_text()
        if obstacle() is None:
            assert (out / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (obstacle() or "SVG and PNG") in done.stdout
    people = list(csv.DictReader((out / "speakers.csv").read_text().splitlines()))
    assert len(people) == 3 * 40
    shown = [p for s in results.attacks for p in s.speakers]
    assert [row["speaker"] for row in people] == [p.speaker for p in shown]
    assert [float(row["similarity_to_self"]) for row in people] == [p.similarity for p in shown]


@pytest.fixture(scope="module")
def named(scores: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same scores measured twice: names hidden, and revealed."""
    folder = tmp_path_factory.mktemp("named")
    run = ("measure", scores["weak"], "-t", scores["trials"], "--resamples", 0)
    voxrisk(*run, "-o", folder / "hidden")
    voxrisk(*run, "-o", folder / "open", "--reveal-speakers")
    return folder


def test_speakers_are_pseudonyms_unless_revealed(named: Path) -> None:
    ids = {f"speaker{i:02d}" for i in range(40)}
    for name in ("results.json", "results.csv", "speakers.csv"):
        assert "speaker0" not in (named / "hidden" / name).read_text()
    hidden, known = (Results.read(named / name).attacks[0] for name in ("hidden", "open"))
    assert {p.speaker for p in hidden.speakers} == {f"S{i:02d}" for i in range(1, 41)}
    assert {p.speaker for p in known.speakers} == ids
    key = named / "hidden" / "private" / "speakers.csv"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    whose = {r["pseudonym"]: r["speaker"] for r in csv.DictReader(key.read_text().splitlines())}
    assert set(whose.values()) == ids
    assert list(whose.values()) != sorted(ids), "the numbers must not follow the ids"
    own = {p.speaker: p for p in known.speakers}
    for p in hidden.speakers:
        assert own[whose[p.speaker]].similarity == p.similarity
        assert own[whose[p.speaker]].nearest_other == whose[str(p.nearest_other)]


def test_pictures_name_nobody_either(named: Path) -> None:
    assert "speaker00" in (named / "open" / "similarity_scores-weak.svg").read_text()
    for picture in (named / "hidden").glob("*.svg"):
        assert "speaker0" not in picture.read_text(), picture.name


def test_equal_scores_get_no_interval_and_a_word(scores: dict[str, Path], tmp_path: Path) -> None:
    """50 % to 50 % would read as certain privacy; it is an attack that says nothing."""
    lines = scores["weak"].read_text().splitlines()
    flat = tmp_path / "flat.csv"
    cells = [line.rpartition(",")[0] for line in lines[1:]]
    flat.write_text("\n".join([lines[0], *(f"{cell},0.5" for cell in cells)]))
    done = voxrisk("measure", flat, "-t", scores["trials"], "-o", tmp_path / "o", "--resamples", 20)
    assert "All scores are equal" in done.stdout
    results = Results.read(tmp_path / "o")
    assert results.attacks[0].eer.value == 0.5
    assert [e.name for e in results.attacks[0].figures.values() if e.interval] == []


def test_a_long_name_with_brackets_is_printed_whole(
    scores: dict[str, Path], tmp_path: Path
) -> None:
    name = "a system whose name is long, [bold] and much longer than any column of figures [/]"
    done = voxrisk(
        "measure", f"{name}={scores['weak']}", "-t", scores["trials"], "--resamples", 20,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.stdout.count(name) == 2
    assert "…" not in done.stdout


def test_json_for_machines_is_the_results_file(scores: dict[str, Path], tmp_path: Path) -> None:
    arguments = ("measure", scores["weak"], "-t", scores["trials"], "--resamples", 20, "--json")
    first = voxrisk_apart(*arguments, "-o", tmp_path / "a")
    second = voxrisk_apart(*arguments, "-o", tmp_path / "b")
    assert first.stdout == (tmp_path / "a" / "results.json").read_text()
    assert first.stdout == second.stdout
    assert list(Results.from_json(first.stdout).attackers) == ["scores-weak"]
    written = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(written) > 8
    for path in written:
        again = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert path.read_bytes() == again.read_bytes()


def test_nothing_is_overwritten_unless_forced(scores: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    run = ("measure", scores["weak"], "-t", scores["trials"], "-o", tmp_path, "--resamples", 0)
    done = voxrisk(*run, code=2)
    assert "is not empty; choose another folder or add --force" in done.stderr
    voxrisk(*run, "--force")
    assert (tmp_path / "mine.txt").read_text() == "keep me"
    assert Results.read(tmp_path).attacks[0].eer.interval is None


def test_scores_are_measured_without_what_only_speech_needs(
    scores: dict[str, Path], tmp_path: Path
) -> None:
    """Half of a short run is imports: corpora, stores, workers and networks are not among them."""
    run = ["measure", scores["weak"], "-t", scores["trials"], "-o", tmp_path, "--resamples", 0]
    code = (
        "import sys, voxrisk.cli\n"
        f"voxrisk.cli.app({[str(word) for word in run]}, standalone_mode=False)\n"
        "rooms = ('attack', 'cluster', 'corpus', 'shards', 'store')\n"
        "speech = {'torch', 'soundfile', 'http.client', 'concurrent.futures.process'}\n"
        "speech |= {f'voxrisk.{room}' for room in rooms}\n"
        "print(sorted(speech & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_bad_calls_end_with_code_2_and_one_message(scores: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "o"
    wrong = voxrisk("measure", "nowhere.csv", "-t", scores["trials"], "-o", out, code=2)
    assert wrong.stderr == "error: nowhere.csv: no such file\n"
    twice = voxrisk("measure", scores["weak"], scores["weak"], "-t", scores["trials"], "-o", out,
                    code=2)  # fmt: skip
    assert "share a name" in twice.stderr
    alone = voxrisk("measure", scores["weak"], "-t", scores["trials"], "-o", out,
                    "--cross", scores["weak-cross"], code=2)  # fmt: skip
    assert "--cross needs --reference" in alone.stderr
    short = tmp_path / "short.csv"
    short.write_text("\n".join(scores["weak"].read_text().splitlines()[:-3]))
    missing = voxrisk("measure", short, "-t", scores["trials"], "-o", out, code=2)
    assert "trials without a score" in missing.stderr
    assert "speaker39 speaker39-B11 (line 19201)" in missing.stderr
    assert not any(out.iterdir())


def test_warnings_stand_beside_the_figures(tmp_path: Path) -> None:
    trials, scores = tmp_path / "t", tmp_path / "s"
    names = [(e, f"{t}{i}") for e in "abc" for t in "abc" for i in "12"]
    trials.write_text("".join(
        f"{e} {t} {'target' if e == t[0] else 'nontarget'}\n" for e, t in names
    ))  # fmt: skip
    scores.write_text("".join(f"{e} {t} {-1.0 * (e == t[0])}\n" for e, t in names))
    done = voxrisk("measure", scores, "-t", trials, "-o", tmp_path / "o")
    assert "no interval can be given" in done.stdout
    assert "Scores point the wrong way" in done.stdout
    codes = {n.code for n in Results.read(tmp_path / "o").notices}
    assert {"no_interval", "scores_reversed"} <= codes
