"""Linkability and the ROC of a whole population: exact, strict on ties, whatever the route."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from legal_eval import linkability as oracle
from legal_eval.io import ScoreMatrix

from voxrisk.measure import (
    expected_disclosure,
    linking,
    rocch_eer,
    scorers,
    worst_case_disclosure,
)
from voxrisk.measure.conversations import conversations, halves, speaker_means
from voxrisk.measure.linking import (
    Ranking,
    Redrawn,
    linkability,
    linkability_by_draws,
    rank_trials,
)
from voxrisk.measure.scorers import pairs, ready
from voxrisk.types import InputError

# Whole numbers: products are exact, so ties are ties, and there are many.
small = arrays(np.float64, (8, 3), elements=st.integers(-2, 2).map(float))


def brute(scores: np.ndarray, own: np.ndarray) -> tuple[list[int], dict[str, list[float]]]:
    """Count by comparing every pair; ``scores (trials, enrolled)``."""
    mine = scores[np.arange(own.size), own]
    others = [np.delete(row, j) for row, j in zip(scores, own, strict=True)]
    higher = [int((row >= m).sum()) for row, m in zip(others, mine, strict=True)]
    target, times = np.unique(mine, return_counts=True)
    rest = np.concatenate(others)
    edges = [-np.inf, *target, np.inf]
    between = [((rest > a) & (rest < b)).sum() for a, b in itertools.pairwise(edges)]
    equal = [(rest == t).sum() for t in target]
    return higher, {"score": target, "target": times, "equal": equal, "gap": between}


def same(ranking: Ranking, higher: list[int], counts: dict[str, list[float]]) -> None:
    assert ranking.higher.tolist() == higher
    for field, expected in counts.items():
        assert getattr(ranking.roc, field).tolist() == list(expected)


@settings(max_examples=150, deadline=None)
@given(small, small, arrays(np.int64, 8, elements=st.integers(0, 7)))
def test_counting_in_blocks_equals_comparing_every_pair(enroll, trial, own) -> None:
    """Vectors, ready scores and a callable agree with brute force, ties included."""
    expected = brute(trial @ enroll.T, own)
    for route in (
        pairs(trial, enroll, enroll_rows=False),
        ready(trial @ enroll.T),
        pairs(trial, enroll, enroll_rows=False, scorer=lambda e, t: e @ t.T),
    ):
        same(rank_trials(route, own, threads=2), *expected)


@pytest.mark.parametrize("power", [-1000, -130, -20, 20, 130, 900])
def test_the_unit_of_scores_changes_no_count(power: int) -> None:
    """Also far beyond what single precision holds."""
    rng = np.random.default_rng(0)
    scores, own = rng.normal(size=(40, 50)), rng.integers(0, 50, 40)
    whole, found = (rank_trials(ready(s), own) for s in (scores, scores * 2.0**power))
    assert (found.higher == whole.higher).all()
    assert (found.roc.gap == whole.roc.gap).all()
    assert (found.places == whole.places).all()


def test_buckets_that_fill_up_lose_nothing() -> None:
    """Scores of two values, more than 2¹⁵ of each: in a bucket of their own, and at a target."""
    own = np.array([1, 2, 3] * 100)
    scores = np.full((300, 800), 0.25)
    scores[:, 400:] = 0.5
    scores[np.arange(300), own] = np.tile([0.5, 0.75, 1.0], 100)
    found = rank_trials(ready(scores), own, threads=1)
    assert found.roc.score.tolist() == [0.5, 0.75, 1.0]
    assert found.roc.gap.tolist() == [300.0 * 399, 0.0, 0.0, 0.0]
    assert found.roc.equal.tolist() == [300.0 * 400, 0.0, 0.0]


@pytest.mark.parametrize("targets", [32_767, 32_768, 70_000])
def test_more_targets_than_small_numbers_can_tell_apart(targets: int) -> None:
    """The table of places is of 16 or of 32 bits; the counts are those of a sort."""
    rng = np.random.default_rng(targets)
    scores, own = rng.normal(size=(targets, 4)), rng.integers(0, 4, targets)
    rows = np.arange(targets)
    scores[7, own[7] - 1] = scores[9, own[9]]  # one nontarget at a target
    found = rank_trials(ready(scores), own)
    mine, others = np.sort(scores[rows, own]), np.ones(scores.shape, bool)
    others[rows, own] = False
    below = np.searchsorted(mine, scores[others], "left")
    equal = mine[np.minimum(below, targets - 1)] == scores[others]
    assert (found.roc.gap == np.bincount(below[~equal], minlength=targets + 1)).all()
    assert (found.roc.equal == np.bincount(below[equal], minlength=targets)).all()


@pytest.mark.parametrize("tile", [3, 7, 16])
def test_tiles_of_any_size_give_the_same(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Own speakers, ties and pairs of the bootstrap fall into every tile, and beside its edge."""
    rng = np.random.default_rng(tile)
    enroll, trial = (rng.integers(-4, 5, (n, 4)) / 4 for n in (50, 40))  # products are exact
    own = rng.integers(0, 50, 40)
    whole = rank_trials(pairs(trial, enroll, enroll_rows=False), own)
    for module in (scorers, linking):
        monkeypatch.setattr(module, "ROWS", tile + 2)
    monkeypatch.setattr(scorers, "COLUMNS", tile)
    found = rank_trials(pairs(trial, enroll, enroll_rows=False), own, threads=2)
    same(found, *brute(trial @ enroll.T, own))
    assert (found.places == whole.places).all()


@settings(max_examples=60, deadline=None)
@given(small, small, arrays(np.int64, 8, elements=st.integers(0, 7)), st.sampled_from([30, 4095]))
def test_what_all_voices_share_moves_every_score_and_no_count(enroll, trial, own, part) -> None:
    """Also where the spread of the scores is a millionth of them, near the end of single precision.

    Whole numbers below 2²⁴: all products are exact.
    """
    shared = np.full((8, 1), float(part))
    route = pairs(np.hstack([trial, shared]), np.hstack([enroll, shared]), enroll_rows=False)
    higher, counts = brute(trial @ enroll.T, own)
    counts["score"] = counts["score"] + part**2
    same(rank_trials(route, own), higher, counts)


def test_single_precision_finds_double_precision_decides() -> None:
    """Where single precision cannot tell two scores apart, the answer is that of float64."""
    rng = np.random.default_rng(3)
    base = rng.standard_normal(192)
    enroll = base + 1e-8 * rng.standard_normal((300, 192))
    trial = base + 1e-8 * rng.standard_normal((50, 192))
    scores = np.array([[np.dot(t, e) for e in enroll] for t in trial])
    ranking = rank_trials(pairs(trial, enroll, enroll_rows=False), np.arange(50))
    close = np.abs(scores - scores[np.arange(50), np.arange(50)][:, None])
    assert np.unique(trial.astype("f4") @ enroll.astype("f4").T).size < 200  # all but tied
    assert np.median(close) < 1e-6
    expected = np.array(brute(scores, np.arange(50))[0])
    # Two orders of summation differ by 1e-13 here, so a rank may move by a place.
    assert np.abs(ranking.higher - expected).max() <= 1


def test_identical_embeddings_are_never_linked() -> None:
    """Eq. 3 is strict: if everybody sounds the same, nobody is linked and nothing is learnt."""
    voice = np.random.default_rng(0).standard_normal(192)
    voices = np.tile(voice / np.linalg.norm(voice), (700, 1))
    ranking = rank_trials(pairs(voices, voices, enroll_rows=False), np.arange(700))
    assert (linkability(ranking.higher, 700, [2, 20, 700]) == 0.0).all()
    assert rocch_eer(ranking.roc) == 0.5
    assert expected_disclosure(ranking.roc) == 0.0
    assert worst_case_disclosure(ranking.roc) == 0.0


def test_linkability_equals_the_authors_package(golden_ecapa) -> None:
    """To 1e-12, for every N', on real embeddings made harder by noise."""
    rng = np.random.default_rng(1)
    a, b = halves(golden_ecapa)
    names, enroll = speaker_means(a)
    tested = conversations(b, 1, at_most=1)
    trial = tested.vectors + 0.25 * rng.standard_normal(tested.vectors.shape)
    trial /= np.linalg.norm(trial, axis=1, keepdims=True)
    ranking = rank_trials(pairs(trial, enroll, enroll_rows=False), np.arange(40))
    matrix = ScoreMatrix(enroll @ trial.T, names.tolist(), tested.speaker.tolist(), {})
    ours = linkability(ranking.higher, 40, range(1, 41)).mean(axis=0)
    theirs = [oracle(matrix, n, estimator="exact")[0] for n in range(1, 41)]
    assert np.abs(ours - theirs).max() < 1e-12
    assert 0.2 < ours[-1] < 0.95  # neither empty nor full, or nothing would be compared
    draws = linkability_by_draws(ranking.higher, 40, [10], draws=4000, seed=1).mean()
    assert draws == pytest.approx(ours[9], abs=0.005)


@given(st.integers(2, 30), st.data())
def test_linkability_is_the_share_of_sets_without_a_rival(n, data) -> None:
    """The closed form C(n-1-m, N-1) / C(n-1, N-1), falling in m and in N."""
    from math import comb

    sizes = list(range(1, n + 1))
    table = linkability(np.arange(n), n, sizes)
    m, size = data.draw(st.integers(0, n - 1)), data.draw(st.sampled_from(sizes))
    exact = comb(n - 1 - m, size - 1) / comb(n - 1, size - 1)
    assert table[m, size - 1] == pytest.approx(exact, rel=1e-12, abs=1e-300)
    assert (np.diff(table, axis=0) <= 0).all()
    assert (np.diff(table, axis=1) <= 0).all()


def test_linkability_of_more_than_are_enrolled_is_refused() -> None:
    with pytest.raises(InputError, match="N = 11: N goes from 1 to the 10 enrolled"):
        linkability(np.zeros(3, int), 10, [11])


def test_weights_of_one_change_nothing_and_weights_copy_speakers() -> None:
    """A resample is exact: weight 2 is the same as having the speaker twice."""
    rng = np.random.default_rng(5)
    n = 12
    enroll, own = rng.standard_normal((n, 4)), np.array([0, 2, 4, 6, 8, 2, 4])
    trial = enroll[own] + rng.standard_normal((own.size, 4))
    ranking = rank_trials(pairs(trial, enroll, enroll_rows=False), own)
    weights = np.array([np.ones(n), rng.integers(0, 3, n), rng.integers(1, 4, n)], dtype=np.int32)
    redrawn = Redrawn(weights, np.arange(n), n, np.arange(0))
    draws = ranking.resample(redrawn, np.array([n]))
    assert draws["rocch_eer"][0] == rocch_eer(ranking.roc)
    assert draws["log10_l"][0, 0] == pytest.approx(worst_case_disclosure(ranking.roc), rel=1e-12)
    scores = np.array([[trial[j] @ enroll[i] for i in range(n)] for j in range(own.size)])
    for row, w in enumerate(weights):
        target = [s for j, i in enumerate(own) for s in [scores[j, i]] * w[i]]
        nontarget = [
            scores[j, i] for j in range(own.size) for i in range(n) if i != own[j]
            for _ in range(w[i] * w[own[j]])
        ]  # fmt: skip
        assert draws["rocch_eer"][row] == pytest.approx(rocch_eer(target, nontarget), abs=1e-12)
        assert draws["d_ece"][row] == pytest.approx(
            expected_disclosure(target, nontarget), abs=1e-12
        )


def test_those_who_are_not_tested_are_drawn_apart_and_the_same_in_any_part() -> None:
    """Each row draws as many as there are, each with the same chance, as a multinomial does."""
    n, tested, others = 60, np.arange(0, 20, 2), np.arange(20, 60)
    weights = np.full((4000, tested.size), 3, dtype=np.int32)
    redrawn = Redrawn(weights, tested, n, others, seed=1)
    rows = redrawn.rows(slice(0, 4000))
    assert (rows[:, tested] == 3).all()
    assert (rows[:, 1:20:2] == 1).all()  # in neither list
    drawn = rows[:, others].astype(float)
    assert (drawn.sum(axis=1) == others.size).all()
    assert drawn.mean(axis=0) == pytest.approx(1.0, abs=0.08)
    covariance = np.cov(drawn.T)
    assert np.diag(covariance) == pytest.approx(1 - 1 / 40, abs=0.15)
    assert covariance[~np.eye(40, dtype=bool)].mean() == pytest.approx(-1 / 40, abs=0.005)
    assert (drawn[0] != drawn[1]).any()
    assert np.array_equal(redrawn.rows(slice(7, 9)), rows[7:9])
    assert not np.array_equal(
        Redrawn(weights, tested, n, others, seed=2).rows(slice(7, 9)), rows[7:9]
    )


def test_more_people_give_stronger_worst_case_and_the_same_eer() -> None:
    """N changes the number of nontargets, not how they lie: EER stays, log10 l grows."""
    rng = np.random.default_rng(2)
    enroll = rng.standard_normal((200, 16))
    trial = enroll[:50] + rng.standard_normal((50, 16))
    ranking = rank_trials(pairs(trial, enroll, enroll_rows=False), np.arange(50))
    curves = [ranking.roc_among(n) for n in (10, 50, 200)]
    assert np.ptp([rocch_eer(c) for c in curves]) < 1e-12
    worst = [worst_case_disclosure(c) for c in curves]
    assert worst[0] < worst[1] < worst[2] == worst_case_disclosure(ranking.roc)
