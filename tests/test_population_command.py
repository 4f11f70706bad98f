"""``voxrisk population``: files in, figure and tables out, clear words for bad input."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from test_population import voices
from voxrisk.cli import app
from voxrisk.files.embeddings import write_embeddings
from voxrisk.files.published import read_published
from voxrisk.measure.curves import Protocol
from voxrisk.measure.population import population_of_sets
from voxrisk.report.population_figure import population_figure
from voxrisk.types import Estimate, InputError

QUICK = ["-L", "1,3", "-N", "5,20", "--draws", "2", "--resamples", "50"]


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
    plain = json.loads((out / "results.json").read_text())
    assert [a["attacker"] for a in plain["attackers"]] == ["original", "informed"]
    estimates = [Estimate.from_json(e) for a in plain["attackers"] for e in a["estimates"]]
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [float(r["value"]) for r in rows] == [e.value for e in estimates]
    assert len(rows) == 2 * 5 * 2 * 3
    people = list(csv.DictReader((out / "speakers.csv").read_text().splitlines()))
    assert {r["speaker"] for r in people} == {f"s{i:02d}" for i in range(30)}
    assert (out / "population.png").read_bytes().startswith(b"\x89PNG")
    picture = (out / "population.svg").read_text()
    assert "</svg>" in picture


def test_the_figure_shows_every_attacker_chance_and_published_curve(files, golden) -> None:
    protocol = Protocol(lengths=(1, 3), sizes=(5, 20), resamples=50, draws=2)
    found = [
        population_of_sets(voices(), attacker=name, protocol=protocol) for name in ("informed", "x")
    ]
    under = read_published(golden / "legal_paper_figure1")
    figure = population_figure(found, under=under)
    panels = [a for a in figure.axes if a.get_xscale() == "log"]
    assert len(panels) == 6
    # Singling Out: two attackers, two chance lines, four published curves.
    assert len(panels[0].lines) == 2 + 2 + 4
    words = [t.get_text() for t in figure.legends[0].get_texts()]
    assert "informed (VoicePrivacy: semi-informed)" in words
    assert {"x", "chance as the paper gives it, 37 %"} <= set(words)
    own = panels[0].lines[4]
    assert own.get_xdata().tolist() == [5, 20, 30]
    assert own.get_ydata().tolist() == [e.value for e in found[0].curve("singling_out", 1)]
    eer = next(line for line in panels[4].lines if line.get_color() == own.get_color()
               and line.get_xdata()[0] == 5)  # fmt: skip
    assert eer.get_ydata()[0] == 1 - found[0].curve("rocch_eer", 1)[0].value


def test_json_goes_to_standard_output_alone(files, tmp_path) -> None:
    result = run(files / "informed_a.npz", *QUICK, "--json", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["attackers"][0]["parameters"]["seed"] == 0


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
