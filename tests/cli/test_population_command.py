"""``voxrisk population``: files in, figure and tables out, clear words for bad input."""

import csv
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from simulated_voices import voices
from voxrisk.cli import app
from voxrisk.files.embeddings import write_embeddings
from voxrisk.report.png import obstacle
from voxrisk.results import Results
from voxrisk.types import Embeddings, InputError

QUICK = ["-L", "1,3", "-N", "5,20", "--draws", "2", "--resamples", "50"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch) -> None:
    """The secret behind the pseudonyms is not that of whoever runs the tests."""
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("embeddings")
    for name, strength in (("original", 0.9), ("informed", 0.5)):
        for seed, tag in enumerate("ab"):
            embeddings = voices(strength=strength, seed=seed, tag=tag)
            write_embeddings(folder / f"{name}_{tag}.npz", embeddings)
    return folder


def run(*arguments: object):
    return CliRunner().invoke(app, ["population", *map(str, arguments)])


def test_two_attackers_over_published_curves(files, golden, tmp_path) -> None:
    result = run(
        files / "original_a.npz", files / "original_b.npz", "--name", "original", *QUICK,
        "--attacker", f"informed={files}/informed_a.npz,{files}/informed_b.npz",
        "--under", golden / "legal_paper_figure1", "-o", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "original: risk among N people" in result.output
    out = tmp_path / "out"
    results = Results.read(out)
    assert results.kind == "population"
    assert list(results.attackers) == ["original", "informed"]
    assert results.reference == results.attacks[0]
    assert (results.methods.lengths, results.methods.sizes) == ((1, 3), (5, 20, 30))
    estimates = [e for a in results.attacks for e in a.crowd]
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [float(r["value"]) for r in rows] == [e.value for e in estimates]
    assert len(rows) == 2 * 5 * 2 * 3
    people = list(csv.DictReader((out / "speakers.csv").read_text().splitlines()))
    pseudonyms = {f"S{i:02d}" for i in range(1, 31)}
    assert {r["speaker"] for r in people} == pseudonyms
    for attack in results.attacks:
        linked = {p.speaker: p.linkability for p in attack.speakers}
        assert linked.keys() == pseudonyms
        assert list(linked.values()) == sorted(linked.values(), reverse=True)
        for r in people:
            if (r["attack"], r["figure"], r["L"], r["N"]) == (
                attack.name,
                "linkability",
                "3",
                "30",
            ):
                assert float(r["value"]) == linked[r["speaker"]]
    key = out / "private" / "speakers.csv"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    whose = list(csv.DictReader(key.read_text().splitlines()))
    assert {r["pseudonym"] for r in whose} == pseudonyms
    assert {r["speaker"] for r in whose} == {f"s{i:02d}" for i in range(30)}
    picture = (out / "population.svg").read_text()
    assert "published curve, same colour" in picture
    assert picture.count('data-series="informed"') == 6
    if obstacle() is None:
        assert (out / "population.png").read_bytes().startswith(b"\x89PNG")
    assert (obstacle() or "population.svg, population.png") in result.output


def test_json_goes_to_standard_output_alone(files, tmp_path) -> None:
    result = run(files / "informed_a.npz", *QUICK, "--json", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    results = Results.from_json(result.stdout)
    assert results == Results.read(tmp_path / "out")
    assert results.methods.seed == 0
    assert results.methods.resamples == 50


def test_speakers_are_revealed_on_demand_and_those_left_out_are_counted(tmp_path) -> None:
    spoken = voices(n=20, utterances=16)
    keep = (spoken.speaker != "s03") | (np.arange(spoken.speaker.size) % 16 < 4)
    fewer = Embeddings(spoken.utterance[keep], spoken.speaker[keep], spoken.vectors[keep])
    write_embeddings(tmp_path / "a.npz", fewer)
    call = (tmp_path / "a.npz", "-L", "3", "-N", "5", "--resamples", "0", "--draws", "2")
    assert run(*call, "--reveal-speakers", "-o", tmp_path / "open").exit_code == 0
    assert run(*call, "-o", tmp_path / "hidden").exit_code == 0
    known, hidden = (Results.read(tmp_path / name) for name in ("open", "hidden"))
    assert {n.speakers for n in known.notices} == {("s03",)}
    assert {n.code for n in known.notices} == {"left_out"}
    (name,) = {n.speakers for n in hidden.notices}
    key = (tmp_path / "hidden" / "private" / "speakers.csv").read_text()
    assert f"{name[0]},s03\n" in key
    for written in ("results.json", "results.csv", "speakers.csv"):
        assert "s03" not in (tmp_path / "hidden" / written).read_text()


def test_a_ready_score_matrix_is_measured_too(tmp_path) -> None:
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(20)]
    score = rng.standard_normal((20, 20)) + 2 * np.eye(20)
    np.savez(tmp_path / "m.npz", score=score, enroll=names, trial=names)
    result = run(tmp_path / "m.npz", "-L", "1", "-N", "5", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "Linkability" in result.output
    assert "Singling Out" not in result.output


def test_plda_takes_the_place_of_cosine(files, tmp_path) -> None:
    train = voices(n=40, seed=9, tag="t")
    write_embeddings(tmp_path / "train.npz", train)
    result = run(files / "informed_a.npz", files / "informed_b.npz", *QUICK,
                 "--plda", tmp_path / "train.npz", "-o", tmp_path / "out")  # fmt: skip
    assert result.exit_code == 0, result.output


def bad(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_bad_arguments_say_what_to_do(files, tmp_path) -> None:
    a, out = files / "informed_a.npz", tmp_path / "out"
    assert "-L 1,x: give whole numbers" in bad(a, "-L", "1,x", "-o", out)
    assert "expected NAME=A or NAME=A,B" in bad(a, "--attacker", "informed", "-o", out)
    assert "N = 99 is larger than the population" in bad(a, "-L", "1", "-N", "99", "-o", out)
    assert "two attackers are called x" in bad(a, "--name", "x", "--attacker", f"x={a}", "-o", out)
    assert "no published curves; looked for" in bad(a, "--under", tmp_path, "-o", out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert "is not empty" in bad(a, *QUICK, "-o", tmp_path / "full")


def test_bad_input_ends_with_code_2_and_one_message(tmp_path) -> None:
    command = [sys.executable, "-m", "voxrisk", "population", "none.npz", "-o", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.endswith("error: none.npz: no such file\n")
