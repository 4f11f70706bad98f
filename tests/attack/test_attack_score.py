"""Scoring: published figures from published vectors, and the laws of the scores."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from voxrisk.attack.backends import cosine, plda, score_pairs, utterances_of
from voxrisk.attack.scoring import (
    made_trials,
    score_trials,
    speaker_enrolments,
)
from voxrisk.cli import app
from voxrisk.corpus.trials import Trial, read_enrolments
from voxrisk.files.embeddings import read_embeddings, write_embeddings
from voxrisk.files.scores import read_trials, write_scores
from voxrisk.measure.calibration import cllr, min_cllr
from voxrisk.measure.dsys import d_sys
from voxrisk.measure.eer import rocch_eer
from voxrisk.types import Embeddings, InputError


def vectors(n_speakers=4, each=5, d=8, seed=0) -> Embeddings:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_speakers, d))
    rows = np.repeat(centres, each, axis=0) + 0.3 * random.normal(size=(n_speakers * each, d))
    return Embeddings(
        np.array([f"s{s}-{u}" for s in range(n_speakers) for u in range(each)]),
        np.array([f"s{s}" for s in range(n_speakers) for _ in range(each)]),
        rows.astype(np.float32),
    )


def x_vectors(folder: Path, name: str) -> Embeddings:
    with np.load(folder / "xvectors" / f"{name}.npz") as stored:
        speaker = np.array([utterance.split("-")[0] for utterance in stored["utt"]])
        return Embeddings(stored["utt"], speaker, stored["x"], name)


def test_cosine_of_published_x_vectors_gives_the_eight_published_rows(golden: Path):
    """golden/vpc2020_libri_test/expected_cosine.csv; printed to 2 and 6 decimals."""
    folder = golden / "vpc2020_libri_test"
    enrolments = read_enrolments(folder / "meta" / "enrolls.utt2spk")
    with (folder / "expected_cosine.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8
    for row in rows:
        scored = score_trials(
            x_vectors(folder, row["trial_npz"]),
            [
                Trial(*pair)
                for pair in read_trials(folder / "meta" / f"trials_{row['gender']}.trials").pairs()
            ],
            enrolments,
            enroll_embeddings=x_vectors(folder, row["enroll_npz"]),
        )
        found = (scored.target, scored.nontarget)
        assert 100 * rocch_eer(*found) == pytest.approx(float(row["ROCCH_EER_pct"]), abs=0.006)
        assert min_cllr(*found) == pytest.approx(float(row["Cllr_min"]), abs=1e-4)
        assert cllr(*found) == pytest.approx(float(row["Cllr_act"]), abs=1e-5)
        assert d_sys(*found, compat="vpc") == pytest.approx(float(row["linkability"]), abs=1e-3)


@given(st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_cosine_ignores_the_length_of_vectors_and_the_order_of_the_two(scale: float, seed: int):
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(3, 5)), random.normal(size=(4, 5))
    np.testing.assert_allclose(cosine(scale * a, b), cosine(a, b), atol=1e-12)
    np.testing.assert_allclose(cosine(a, b), cosine(b, a).T, atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 4_000_000]))
def test_scores_do_not_depend_on_blocks_or_on_the_order_of_trials(seed: int, block: int):
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(6, 4)), random.normal(size=(5, 4))
    left, right = random.integers(0, 6, 40), random.integers(0, 5, 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("voxrisk.attack.backends.BLOCK", block)
        scores = score_pairs(a, b, (left, right))
    np.testing.assert_allclose(scores, cosine(a, b)[left, right], atol=1e-12)
    order = random.permutation(40)
    again = score_pairs(a, b, (left[order], right[order]))
    np.testing.assert_allclose(again, scores[order], atol=1e-12)


def test_as_norm_against_its_formula_one_pair_at_a_time():
    random = np.random.default_rng(1)
    a, b, cohort = (random.normal(size=(n, 6)) for n in (3, 4, 20))
    left, right = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    found = score_pairs(a, b, (left, right), cohort=cohort, nearest=5)
    for score, i, j in zip(found, left, right, strict=True):
        raw = cosine(a[i : i + 1], b[j : j + 1])[0, 0]
        tops = [np.sort(cosine(x[None], cohort)[0])[-5:] for x in (a[i], b[j])]
        assert score == pytest.approx(np.mean([(raw - t.mean()) / t.std() for t in tops]))


def test_centring_removes_what_all_vectors_share():
    found = vectors()
    shift = np.full(found.vectors.shape[1], 50.0, dtype=np.float32)
    moved = Embeddings(found.utterance, found.speaker, found.vectors + shift)
    enrolments = {s: u[:2] for s, u in utterances_of(found).items()}
    trials = made_trials(found, enrolments)
    plain = score_trials(found, trials, enrolments).score
    centred = score_trials(moved, trials, enrolments, centre=shift.astype(float)).score
    np.testing.assert_allclose(centred, plain, atol=1e-4)
    assert np.ptp(score_trials(moved, trials, enrolments).score) < 0.1 * np.ptp(plain)


def test_made_trials_never_compare_an_utterance_with_itself():
    found = vectors()
    enrolments = {s: u[:2] for s, u in utterances_of(found).items()}
    trials = made_trials(found, enrolments)
    assert len(trials) == 4 * 3 * 4
    assert sum(t.target for t in trials) == 4 * 3
    assert not {t.trial for t in trials} & {u for us in enrolments.values() for u in us}
    genders = {"s0": "f", "s1": "f", "s2": "m", "s3": "m"}
    same = made_trials(found, enrolments, genders=genders)
    assert all(genders[t.enroll] == genders[t.trial[:2]] for t in same)
    assert len(same) == 4 * 3 * 2


def test_enrolment_of_a_speaker_leaves_its_trials_out():
    found = vectors()
    trials = [Trial("s0", "s0-0", True), Trial("s1", "s0-0", False)]
    assert speaker_enrolments(found, trials, apart=False)["s0"] == ["s0-1", "s0-2", "s0-3", "s0-4"]
    assert len(speaker_enrolments(found, trials, apart=True)["s0"]) == 5
    single = speaker_enrolments(found, [Trial("s1-2", "s0-0", False)], apart=False)
    assert single == {"s1-2": ["s1-2"]}


def test_errors_name_what_is_missing():
    found = vectors()
    with pytest.raises(InputError, match="trial utterance s9-0 has no vector"):
        score_trials(found, [Trial("s0", "s9-0", False)], {"s0": ["s0-0"]})
    with pytest.raises(InputError, match="enrolment s0: utterance nobody has no vector"):
        score_trials(found, [Trial("s0", "s0-0", True)], {"s0": ["nobody"]})
    with pytest.raises(InputError, match="trial list is empty"):
        score_trials(found, [], {})
    with pytest.raises(InputError, match="enrolment s7 of the trial list"):
        score_trials(found, [Trial("s7", "s0-0", False)], {"s0": ["s0-0"]})


def test_embeddings_and_scores_survive_their_files(tmp_path: Path):
    found = vectors()
    write_embeddings(tmp_path / "e.npz", found)
    again = read_embeddings(tmp_path / "e.npz")
    assert again.utterance.tolist() == found.utterance.tolist()
    np.testing.assert_array_equal(again.vectors, found.vectors)
    scored = score_trials(found, [Trial("s0", "s0-0", True)], {"s0": ["s0-1"]})
    write_scores(
        tmp_path / "s.csv", scored.enroll, scored.trial, scored.score, is_target=scored.label
    )
    with (tmp_path / "s.csv").open(encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["enroll"], row["trial"], row["label"]) == ("s0", "s0-0", "target")
    assert float(row["score"]) == scored.score[0]


def test_plda_taught_by_speakers_beats_cosine_where_the_session_is_loud():
    """Within-speaker noise on a few axes, unlike the speakers: what PLDA is for."""
    random = np.random.default_rng(3)
    noise = np.array([3.0, 3.0, 3.0, 0.1, 0.1, 0.1, 0.1, 0.1])

    def population(n: int) -> Embeddings:
        voices = np.repeat(random.normal(size=(n, 8)), 8, axis=0)
        rows = voices + noise * random.normal(size=voices.shape)
        names = np.array([f"{s}-{u}" for s in range(n) for u in range(8)])
        return Embeddings(names, np.repeat(np.arange(n), 8).astype(str), rows)

    found = population(30)
    enrolments = {s: u[:1] for s, u in utterances_of(found).items()}
    trials = made_trials(found, enrolments)
    plain = score_trials(found, trials, enrolments)
    taught = score_trials(found, trials, enrolments, backend=plda(population(200)))
    eer = rocch_eer(taught.target, taught.nontarget)
    assert eer < 0.5 * rocch_eer(plain.target, plain.nontarget)


def test_the_command_refuses_a_trial_that_stands_twice(tmp_path):
    """A doubled line would count as two trials."""
    vectors_file, trials = tmp_path / "v.npz", tmp_path / "trials"
    write_embeddings(vectors_file, vectors())
    trials.write_text("s0-0 s0-1 target\ns1-0 s0-1 nontarget\ns0-0 s0-1 target\n")
    command = ["score", str(vectors_file), "--trials", str(trials), "-o", str(tmp_path / "s.csv")]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, InputError)
    assert "trials: pairs that stand twice: 1\n  s0-0 s0-1 (line 3)" in str(result.exception)
    trials.write_text("\ufeffs0-0 s0-1 target\r\ns1-0 s0-1 nontarget\r\n", newline="")
    assert CliRunner().invoke(app, command).exit_code == 0
