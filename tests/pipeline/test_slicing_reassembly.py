"""Attacks on the order of slices, from waves to figures: what they find, and what chance finds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.attack.successors import Slices
from voxrisk.corpus import read_corpus, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.slicing.accuracy import Tally, accuracies
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.reassembly import ALL, NETWORK, SOUND, VOICE, attack_slices
from voxrisk.pipeline.slicing.study import study_slicing
from voxrisk.protect.alignment import write_alignment
from voxrisk.protect.slicing import Word

RATE = 16_000


def slices_of(speakers: int, each: int) -> Slices:
    n = speakers * each
    return Slices(
        tuple(f"s{i // each}" for i in range(n)),
        tuple(f"u{i // each}" for i in range(n)),
        tuple(i % each for i in range(n)),
        ((),) * n,
    )


def test_a_perfect_judge_is_right_in_every_class() -> None:
    slices = slices_of(6, 4)
    yes = np.zeros((24, 24), bool)
    rows = np.flatnonzero(slices.successor >= 0)
    yes[rows, slices.successor[rows]] = True
    found = accuracies([Tally.of(yes, slices)], 0.95)
    assert {name: e.value for name, e in found.items()} == dict.fromkeys(found, 1.0)
    assert set(found) == {
        "successive", "same_speaker", "other_speaker", "balanced",
        "against_same_speaker", "against_other_speaker",
    }  # fmt: skip
    assert found["successive"].n["successive"] == 18
    assert found["successive"].n["same_speaker"] == 24 * 3 - 18
    assert found["successive"].n["other_speaker"] == 24 * 20


@given(st.booleans(), st.integers(2, 6), st.integers(2, 5))
def test_whoever_says_the_same_to_all_is_right_by_chance(
    answer: bool, speakers: int, each: int
) -> None:
    """Always yes or always no: one half, wherever successive pairs are held against others."""
    slices = slices_of(speakers, each)
    n = len(slices)
    found = accuracies([Tally.of(np.full((n, n), answer), slices)], 0.95)
    for name in ("balanced", "against_same_speaker", "against_other_speaker"):
        assert found[name].value == pytest.approx(0.5)
    assert found["successive"].value == float(answer)


def test_random_answers_have_chance_in_their_interval() -> None:
    slices = slices_of(20, 6)
    rng = np.random.default_rng(3)
    found = accuracies([Tally.of(rng.random((120, 120)) < 0.5, slices)], 0.95)
    for name, e in found.items():
        assert e.interval is not None, name
        assert e.interval.low < 0.5 < e.interval.high, name


def test_attackers_find_slices_that_share_their_pause_and_nothing_in_noise() -> None:
    rng = np.random.default_rng(0)
    slices = slices_of(6, 5)
    whole = rng.standard_normal((6, 6 * 8000)).astype(np.float32) * 0.1
    shared = [whole[i // 5, (i % 5) * 8000 : (i % 5) * 8000 + 8400] for i in range(30)]
    apart = [rng.standard_normal(8400).astype(np.float32) * 0.1 for _ in range(30)]
    vectors = rng.standard_normal((30, 8))
    found = {
        name: attack_slices(waves, slices, vectors=vectors, net=None, clean=False, text={}, seed=0)
        for name, waves in (("shared", shared), ("apart", apart))
    }
    ranks = {k: np.mean(v["equal samples"].rank) for k, v in found.items()}
    assert ranks["shared"] == 1.0
    assert ranks["apart"] == 15.0  # all alike: the middle of 29
    together = {k: np.mean(v[SOUND].rank) for k, v in found.items()}
    assert together["shared"] < 2.5
    assert 9 < together["apart"] < 21
    assert set(found["shared"][SOUND].restored) >= {"all", "speaker"}
    assert found["shared"][SOUND].restored["all"]["pairs_restored"].value > 0.8


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Voices to attack, others to learn from, and word times of both."""
    folder = tmp_path_factory.mktemp("speech")
    rows = make_demo(folder / "voices", voices=8, sentences=4)
    people = sorted({row.speaker for row in rows})
    own, others = (folder / name for name in ("speech.csv", "others.csv"))
    write_corpus(own, [row for row in rows if row.speaker in people[:4]])
    write_corpus(others, [replace(r, text=None) for r in rows if r.speaker not in people[:4]])
    aligned = {}
    for row in read_corpus(own):
        texts = (row.text or "").split()
        each = (row.duration or 0.0) / (len(texts) + 1)
        aligned[row.utterance] = [
            Word(t, round((i + 0.5) * each, 3), round((i + 1.4) * each, 3))
            for i, t in enumerate(texts)
        ]
    write_alignment(folder / "words.csv", aligned)
    return own, others, folder / "words.csv"


def test_the_study_attacks_words_and_sound_and_says_who_undoes_slices_best(
    corpora: tuple[Path, Path, Path], plain_encoder: str, tmp_path: Path
) -> None:
    own, others, words = corpora
    chosen = Slicing(
        corpus=own, train=others, alignment=words, encoder=plain_encoder, effort="quick",
        durations=(0.5,), privacy=False, utility=False, draws=2, drawn=12,
    )  # fmt: skip
    results = study_slicing(chosen, tmp_path)
    names = {row.attacker for row in results.successors if row.draws}
    assert {NETWORK, VOICE, SOUND, ALL, "equal samples"} <= names
    network = next(row for row in results.successors if row.attacker == NETWORK)
    assert network.draws == 2
    assert 0.0 <= network.accuracy["successive"].value <= 1.0
    text = [row for row in results.successors if row.uses == "text" and not row.draws]
    assert {row.duration for row in text} == {0.5}
    assert results.missing == {"privacy": "not asked for", "utility": "not asked for"}
    best = results.undoer(0.5)
    assert best is not None
    assert best.figures["mean_rank"].value == min(
        row.figures["mean_rank"].value for row in results.successors
    )
    assert best.attacker in results.recommendation.reason
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert NETWORK in page
    assert 'select name="length"' in page


def test_the_clean_cut_shares_no_samples_and_the_pause_gives_slices_away(
    corpora: tuple[Path, Path, Path], plain_encoder: str, tmp_path: Path
) -> None:
    own, _, words = corpora
    found = {}
    for cut in ("pause", "clean"):
        chosen = Slicing(
            corpus=own, alignment=words, encoder=plain_encoder, effort="quick", cut=cut,
            durations=(0.5,), privacy=False, utility=False, text=False,
        )  # fmt: skip
        results = study_slicing(chosen, tmp_path / cut)
        row = next(r for r in results.successors if r.attacker == "equal samples")
        found[cut] = row.figures["precision_at_1"].value
    assert found["pause"] > 0.5
    assert found["clean"] == 0.0


def test_utterances_of_one_slice_have_no_order_and_it_is_said(
    corpora: tuple[Path, Path, Path], plain_encoder: str, tmp_path: Path
) -> None:
    own, _, _ = corpora
    aligned = {
        row.utterance: [Word("yes", 0.1, (row.duration or 1.0) - 0.1)] for row in read_corpus(own)
    }
    write_alignment(tmp_path / "words.csv", aligned)
    chosen = Slicing(
        corpus=own, alignment=tmp_path / "words.csv", encoder=plain_encoder, effort="quick",
        durations=(0.5,), privacy=False, utility=False,
    )  # fmt: skip
    results = study_slicing(chosen, tmp_path / "run")
    assert not results.successors
    assert "slicing_no_pairs" in {n.code for n in results.notices}
    assert {"text", "speech"} <= set(results.missing)
