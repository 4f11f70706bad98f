"""``voxrisk measure`` as a user runs it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from simulated_scores import simulate
from voxrisk.report.png import obstacle


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return simulate(tmp_path_factory.mktemp("scores"), seed=1)


def voxrisk(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voxrisk", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


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
    results = json.loads((out / "results.json").read_text())
    sets = {s["name"]: s for s in results["sets"]}
    assert list(sets) == ["strong", "weak", "original"]
    eer = {name: s["figures"]["rocch_eer"]["value"] for name, s in sets.items()}
    assert eer["strong"] > eer["weak"] > eer["original"]
    assert sets["strong"]["figures"]["deid"]["value"] > sets["weak"]["figures"]["deid"]["value"]
    assert sets["strong"]["sizes"] == {"target": 480, "nontarget": 18720, "speaker": 40}
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    tidy = {(row["set"], row["figure"]): row for row in rows}
    for name, s in sets.items():
        for figure, estimate in s["figures"].items():
            row = tidy[name, figure]
            assert float(row["value"]) == estimate["value"]
            assert float(row["low"]) == estimate["interval"]["low"]
    for picture in ("ece_profile", "det", "scores", "similarity_strong", "deid_gvd"):
        assert "<svg" in (out / f"{picture}.svg").read_text()
        if obstacle() is None:
            assert (out / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert (obstacle() or "SVG and PNG") in done.stdout
    people = list(csv.DictReader((out / "speakers.csv").read_text().splitlines()))
    assert len(people) == 3 * 40


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
    first = voxrisk(*arguments, "-o", tmp_path / "a")
    second = voxrisk(*arguments, "-o", tmp_path / "b")
    assert json.loads(first.stdout) == json.loads((tmp_path / "a" / "results.json").read_text())
    assert first.stdout == second.stdout
    names = [s["name"] for s in json.loads(first.stdout)["sets"]]
    assert names == ["scores-weak"]
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_nothing_is_overwritten_unless_forced(scores: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    run = ("measure", scores["weak"], "-t", scores["trials"], "-o", tmp_path, "--resamples", 0)
    done = voxrisk(*run, code=2)
    assert "is not empty; choose another folder or add --force" in done.stderr
    voxrisk(*run, "--force")
    assert (tmp_path / "mine.txt").read_text() == "keep me"
    assert "interval" in (tmp_path / "results.json").read_text()


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
    assert "scores point the wrong way" in done.stdout
