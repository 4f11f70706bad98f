"""Entering with embeddings or scores: the figures of entering with speech, and what is missing."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import voxrisk
from simulated_scores import simulate
from voxrisk.cli import app
from voxrisk.corpus.trials import Lists, pair_lists
from voxrisk.files.embeddings import read_embeddings, write_embeddings
from voxrisk.files.scores import pooled, read_scores, read_trials
from voxrisk.pipeline.entered import evaluate_entry
from voxrisk.pipeline.entry import Entry, read_entry
from voxrisk.report.html import write_report
from voxrisk.results import Results
from voxrisk.types import Embeddings, InputError


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return simulate(tmp_path_factory.mktemp("simulated"))


def called(*command: object) -> str:
    told = CliRunner().invoke(app, ["evaluate", *(str(word) for word in command)])
    assert told.exit_code == 0, (told.output, told.exception)
    return told.output


def refused(words: str, *command: object) -> None:
    told = CliRunner().invoke(app, ["evaluate", *(str(word) for word in command)])
    assert isinstance(told.exception, InputError)
    assert words in str(told.exception)


def codes(results: Results) -> set[str]:
    return {n.code for n in results.notices}


def test_scores_give_the_figures_of_measure_and_say_what_is_missing(
    files: dict[str, Path], tmp_path: Path
) -> None:
    said = called(
        "--scores", f"informed={files['weak']}", "--scores", f"mine={files['strong']}",
        "--original-scores", files["original"], "--trials", files["trials"],
        "--effort", "quick", "-o", tmp_path / "run",
    )  # fmt: skip
    results = Results.read(tmp_path / "run")
    assert list(results.attackers) == ["informed", "mine", "original"]
    told = CliRunner().invoke(
        app,
        ["measure", f"x={files['weak']}", "--trials", str(files["trials"]), "--resamples", "300",
         "-o", str(tmp_path / "m")],
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    measured = Results.read(tmp_path / "m").attacks[0].figures
    for name, estimate in results.attackers["informed"].figures.items():
        assert measured[name] == estimate
    assert results.verdict is not None
    assert results.verdict.headline.startswith("Scores alone do not tell the risk in a crowd; ")
    assert f"{100 * results.attackers['informed'].eer.value:.1f} %" in results.verdict.headline
    for criterion in results.verdict.criteria:
        assert criterion.level == "not assessed"
        assert "give embeddings, or speech" in criterion.sentence
    assert "entered" in codes(results)
    assert "cannot tell: singling out and linkability" in said
    controls = {c.code: c.passed for c in results.controls}
    assert controls == {
        "positive": True, "negative": True, "pairs": None, "training": None, "words": None,
    }  # fmt: skip
    assert results.utility is not None
    assert results.utility.missing == {"all": "no speech was given"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "This run began with scores and heard no speech." in page
    assert "0</b> minutes" not in page


def test_a_recogniser_that_recognises_nobody_fails_the_test(
    files: dict[str, Path], tmp_path: Path
) -> None:
    """Scores of strangers' noise as reference: low figures behind it are no privacy."""
    with files["original"].open() as stream:
        header, *rows = csv.reader(stream)
    noise = np.random.default_rng(0).normal(size=len(rows))
    place = header.index("score")
    with (tmp_path / "noise.csv").open("w") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for row, value in zip(rows, noise.tolist(), strict=True):
            writer.writerow([*row[:place], repr(value), *row[place + 1 :]])
    entry = Entry(
        scores={"informed": (tmp_path / "noise.csv",)},
        original_scores=(tmp_path / "noise.csv",),
        sets=(Lists(files["trials"]),),
        effort="quick",
    )
    results = evaluate_entry(entry, tmp_path / "run")
    assert results.verdict is not None
    assert results.verdict.headline.startswith("This test failed")


def test_scores_without_a_reference_leave_the_recogniser_open(
    files: dict[str, Path], tmp_path: Path
) -> None:
    results = voxrisk.evaluate(
        scores={"informed": files["weak"]}, trials=files["trials"], effort="quick", out=tmp_path
    )
    assert results.verdict is not None
    assert "Whether its recogniser recognises anybody is not known" in results.verdict.headline
    (open_,) = [c for c in results.controls if c.code == "positive"]
    assert open_.passed is None
    assert "--original-scores" in open_.found


def test_sets_of_scores_are_told_apart_and_pooled_once(
    files: dict[str, Path], tmp_path: Path
) -> None:
    header, *lines = files["trials"].read_text().splitlines()
    half = len(lines) // 2
    parts = {"a": lines[: half + 200], "b": lines[half:]}
    for name, own in parts.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *own]) + "\n")
    entry = Entry(
        scores={"informed": (files["weak"],)},
        sets=pair_lists([], [f"{n}={tmp_path / n}.csv" for n in parts]),
        effort="quick",
    )
    results = evaluate_entry(entry, tmp_path / "run")
    attack = results.attacks[0]
    assert sum(attack.sizes[k] for k in ("target", "nontarget")) == len(lines)
    assert {s.name: s.sizes["target"] + s.sizes["nontarget"] for s in attack.sets} == {
        name: len(own) for name, own in parts.items()
    }


def test_tables_that_contradict_each_other_are_refused(
    files: dict[str, Path], tmp_path: Path
) -> None:
    tables = [read_scores(files["weak"]), read_scores(files["strong"])]
    with pytest.raises(InputError, match="is not what"):
        pooled(tables)
    whole = pooled([read_trials(files["trials"]), read_trials(files["trials"])])
    assert sorted(whole.pairs()) == sorted(read_trials(files["trials"]).pairs())


def joined(files: dict[str, Path], name: str, path: Path) -> Path:
    """Both sides of a protection in one file."""
    a, b = (read_embeddings(files[f"{name}-{side}"]) for side in "AB")
    both = Embeddings(
        np.concatenate((a.utterance, b.utterance)),
        np.concatenate((a.speaker, b.speaker)),
        np.concatenate((a.vectors, b.vectors)),
    )
    write_embeddings(path, both)
    return path


def test_embeddings_give_the_scores_of_the_simulation_and_assess_the_crowd(
    files: dict[str, Path], tmp_path: Path
) -> None:
    """Enrolment and trial in two files are two sides: the figures of the scores made of them."""
    called(
        "--embeddings", f"lazy-informed={files['weak-B']}",
        "--enroll-embeddings", f"lazy-informed={files['weak-A']}",
        "--effort", "quick", "-o", tmp_path / "run",
    )  # fmt: skip
    results = Results.read(tmp_path / "run")
    scored = evaluate_entry(
        Entry(scores={"x": (files["weak"],)}, sets=(Lists(files["trials"]),), effort="quick"),
        tmp_path / "scored",
    )
    assert results.attacks[0].eer.value == pytest.approx(scored.attacks[0].eer.value, abs=1e-9)
    assert results.verdict is not None
    assert results.verdict["linkability"].assessed
    assert results.verdict["singling out"].assessed
    assert "two files of vectors" in results.methods.enrolment
    again = read_entry(tmp_path / "run" / "evaluation.yaml")
    assert again is not None
    assert str(tmp_path) not in results.methods.evaluation_yaml
    assert evaluate_entry(again, tmp_path / "run") == results


def test_the_ignorant_attacker_enrols_the_original_vectors(
    files: dict[str, Path], tmp_path: Path
) -> None:
    before = joined(files, "original", tmp_path / "o.npz")
    after = joined(files, "weak", tmp_path / "p.npz")
    entry = Entry(
        embeddings={"ignorant": after, "lazy-informed": after},
        original_embeddings=before,
        effort="quick",
    )
    results = evaluate_entry(entry, tmp_path / "run")
    values = {name: a.eer.value for name, a in results.attackers.items()}
    assert values["original"] < min(values["ignorant"], values["lazy-informed"])
    assert values["ignorant"] != values["lazy-informed"]
    assert {c.code for c in results.controls if c.passed} == {"positive", "negative"}
    write_report(results, tmp_path / "report.html")
    with pytest.raises(InputError, match="enrols original speech: add --enroll-embeddings"):
        evaluate_entry(Entry(embeddings={"ignorant": after}, effort="quick"), tmp_path / "b")


def test_vectors_of_other_utterances_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    entry = Entry(
        embeddings={"a": joined(files, "weak", tmp_path / "p.npz")},
        original_embeddings=files["original-A"],
        effort="quick",
    )
    with pytest.raises(InputError, match="no vector of"):
        evaluate_entry(entry, tmp_path / "run")


def test_what_does_not_go_together(files: dict[str, Path], tmp_path: Path) -> None:
    out = "-o", tmp_path / "run"
    refused("scores need the list of their trials", "--scores", files["weak"], *out)
    refused("either --embeddings or --scores", "--scores", files["weak"], "--trials",
            files["trials"], "--embeddings", files["weak-A"], *out)  # fmt: skip
    refused("--train needs speech", "--scores", files["weak"], "--trials", files["trials"],
            "--train", tmp_path, *out)  # fmt: skip
    refused("goes with --embeddings or --scores", "--speakers", files["trials"], "--original",
            tmp_path, "--anonymizer", "mcadams", *out)  # fmt: skip
    refused("is the reference", "--scores", f"original={files['weak']}", "--trials",
            files["trials"], *out)  # fmt: skip
    refused("or begin with --embeddings", *out)


ATTACKS = {
    "lazy-informed": ("xg0_f00__enrolls_anon", "xg0_f00__trials"),
    "informed": ("xg0_f00_retrained__enrolls_anon", "xg0_f00_retrained__trials"),
    "ignorant": ("original__enrolls", "xg0_f00__trials"),
}


def test_voiceprivacy_2020_from_its_lists_and_vectors(
    golden: Path, golden_x_vectors: Callable[..., Embeddings], tmp_path: Path
) -> None:
    """The published EERs of each set, and a crowd although 11 trial speakers are not enrolled."""
    folder = golden / "vpc2020_libri_test"
    for name in {name for pair in ATTACKS.values() for name in pair}:
        of = f"{name}_[fm]_anon" if name.endswith("trials") else name
        write_embeddings(tmp_path / f"{name}.npz", golden_x_vectors(of))
    entry = Entry(
        embeddings={n: tmp_path / f"{trial}.npz" for n, (_, trial) in ATTACKS.items()},
        enroll_embeddings={n: tmp_path / f"{enroll}.npz" for n, (enroll, _) in ATTACKS.items()},
        sets=pair_lists(
            [folder / "meta" / "enrolls.utt2spk"],
            [f"{g}={folder}/meta/trials_{g}.trials" for g in "fm"],
        ),
        effort="quick",
    )
    results = evaluate_entry(entry, tmp_path / "run")
    with (folder / "expected_cosine.csv").open() as stream:
        published = {
            (row["enroll_npz"], row["trial_npz"]): float(row["ROCCH_EER_pct"])
            for row in csv.DictReader(stream)
        }
    for name, (enroll, trial) in ATTACKS.items():
        for found in results.attackers[name].sets:
            value = published[enroll, f"{trial}_{found.name}_anon"]
            assert 100 * found.figures["rocch_eer"].value == pytest.approx(value, abs=0.006)
    assert "crowd_failed" not in codes(results)
    assert results.verdict is not None
    assert results.verdict["linkability"].assessed


def test_voiceprivacy_2020_from_its_scores(golden: Path, tmp_path: Path) -> None:
    """One file for each set, as the challenge's tools leave them."""
    folder = golden / "vpc2020_libri_test"
    start = "xg0_f00__libri_test_enrolls_anon-libri_test_trials_"
    entry = Entry(
        scores={
            "lazy-informed": tuple(folder / "scores" / f"{start}{g}_anon.txt.gz" for g in "fm")
        },
        sets=pair_lists([], [f"{g}={folder}/meta/trials_{g}.trials" for g in "fm"]),
        effort="quick",
    )
    results = evaluate_entry(entry, tmp_path / "run")
    with (folder / "expected.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if Path(row["file"]).name.startswith(start)]
    expected = {("f" if "_trials_f" in row["pair"] else "m"): row for row in rows}
    assert len(expected) == 2
    for found in results.attacks[0].sets:
        shown = f"{100 * found.figures['rocch_eer'].value:.3f}"
        assert shown == expected[found.name]["ROCCH_EER_pct"]
