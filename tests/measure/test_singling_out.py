"""Singling Out: the short list is exact, chance is chance, ties isolate nobody."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_eval.embeddings import SpeakerConversations
from legal_eval.metrics import score_conversations
from legal_eval.metrics import singling_out as oracle

from voxrisk.measure import _isolation
from voxrisk.measure.conversations import Conversations, conversations, halves, speaker_means
from voxrisk.measure.isolation import isolation_chance, singling_out
from voxrisk.measure.scorers import sealed
from voxrisk.types import InputError


def crowd(count: list[int], vectors: np.ndarray) -> Conversations:
    names = np.array([f"s{i:05d}" for i in range(len(count))])
    first = np.concatenate(([0], np.cumsum(count)))
    return Conversations(names, first, vectors, np.array([], str))


def brute(scores: np.ndarray, first: np.ndarray, order: np.ndarray, own: int, fold: int) -> int:
    """Eqs 1 and 2, word for word."""
    count = np.diff(first)
    m = count[own] - 1
    calibration, test = [], []
    for s in order:
        for k in range(count[s]):
            (test if k == fold % count[s] else calibration).append((scores[first[s] + k], s))
    falling = sorted((x for x, _ in calibration), reverse=True)
    threshold = (falling[m - 1] + falling[m]) / 2
    fired = [s for x, s in test if x > threshold]
    return fired[0] if len(fired) == 1 else -1


def isolate(
    scores, slack, predicate, vectors, first, own, sizes, streams, folds, keep, out
) -> None:
    """The compiled loop on arrays of the kind it is called with: others would compile it again."""
    predicate, vectors, first, sizes, streams = map(
        sealed, (predicate, vectors, first, sizes, streams)
    )
    _isolation.isolate(
        scores, slack, predicate, vectors, first, own, sizes, streams, folds, keep, out
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_short_list_answers_as_looking_at_everybody(data) -> None:
    """Whatever the ties and however short the list, every fold and size is exact."""
    n = data.draw(st.integers(2, 9))
    count = data.draw(st.lists(st.integers(2, 5), min_size=n, max_size=n))
    first = np.concatenate(([0], np.cumsum(count)))
    levels = data.draw(st.sampled_from([1, 3, 100]))
    total = int(first[-1])
    values = st.lists(st.integers(0, levels), min_size=total, max_size=total)
    scores = np.array(data.draw(values), dtype=float)
    own = data.draw(st.integers(0, n - 1))
    sizes = np.array(sorted(data.draw(st.sets(st.integers(2, n), min_size=1))))
    keep = count[own] + data.draw(st.sampled_from([0, 1, 5, 20]))
    stream = np.array([data.draw(st.integers(0, 2**63))], dtype=np.uint64)
    out = np.empty((1, 4, sizes.size), dtype=np.int32)
    vector = scores[:, None].copy()
    noise = np.random.default_rng(data.draw(st.integers(0, 99))).uniform(-2.9, 2.9, total)
    for slack in (-1.0, 3.0):  # ready scores; scores known within three, the product decides
        rough = scores if slack < 0 else (scores + noise).astype(np.float32)
        isolate(rough, slack, np.ones(1), vector, first, own, sizes, stream, 4, keep, out)
        order = _isolation.draw_order(n, own, int(sizes[-1]), stream[0])
        for s, size in enumerate(sizes):
            for fold in range(4):
                assert out[0, fold, s] == brute(scores, first, order[:size], own, fold)


def test_a_draw_has_the_own_speaker_and_others_once_each() -> None:
    orders = [_isolation.draw_order(30, 7, 12, np.uint64(k)) for k in range(4000)]
    assert all(o[0] == 7 and len(set(o.tolist())) == 12 for o in orders)
    times = np.bincount(np.concatenate(orders), minlength=30)
    # 11 of 29 others in each draw; four standard deviations of a binomial.
    others = np.delete(times, 7) / 4000
    assert np.abs(others - 11 / 29).max() < 4 * np.sqrt(11 / 29 * 18 / 29 / 4000)


def test_an_uninformative_attacker_isolates_at_chance_for_every_population() -> None:
    """Random vectors: 0.349 for M = 9 at any large N, within four standard errors."""
    rng = np.random.default_rng(0)
    n, sizes = 22_024, [20, 200, 2000, 22_024]
    tested = crowd([10] * n, rng.standard_normal((10 * n, 4)))
    predicates = rng.standard_normal((60, 4))
    found = singling_out(predicates, rng.choice(n, 60, replace=False), tested, sizes, seed=1)
    error = found.rate.std(axis=0) / np.sqrt(60)
    assert (np.abs(found.rate.mean(axis=0) - found.chance) < 4 * error).all()
    assert (error < 0.02).all()
    assert np.abs(found.chance[1:] - 0.9**10) == pytest.approx(0, abs=0.002)


def test_chance_is_what_random_scores_give() -> None:
    """One of N uniform test scores above a threshold from M·N uniform calibration scores."""
    rng = np.random.default_rng(4)
    for m, n in ((1, 20), (2, 5), (9, 20)):
        calibration = -np.sort(-rng.random((40_000, m * n)), axis=1)
        threshold = (calibration[:, m - 1] + calibration[:, m]) / 2
        rate = ((rng.random((40_000, n)) > threshold[:, None]).sum(axis=1) == 1).mean()
        assert isolation_chance(m, m * n, n) == pytest.approx(rate, abs=4 * 0.5 / 200)
    assert isolation_chance(9, 9 * 10**6, 10**6) == pytest.approx(0.9**10, abs=0.0011)


def test_a_predicate_that_fires_on_none_or_all_isolates_nobody() -> None:
    """Constant scores never exceed their own threshold; and everyone above is not one."""
    same = np.ones((40, 3))
    tested = crowd([4] * 10, same)
    found = singling_out(same[:5], np.arange(5), tested, [2, 5, 10])
    assert (found.rate == 0.0).all()
    # The tests of fold 0 all lie above every calibration score: all ten fire.
    scores = np.array([1.0 if k == 0 else 0.0 for _ in range(10) for k in range(4)])
    out = np.empty((1, 1, 1), dtype=np.int32)
    isolate(
        scores, -1.0, np.ones(1), np.ones((1, 1)), tested.first, 0, np.array([10]),
        np.array([1], np.uint64), 1, 12, out,
    )  # fmt: skip
    assert out.item() == -1


def noisy(golden_ecapa, noise: float, seed: int = 0):
    """Real embeddings blurred until isolation is neither certain nor impossible."""
    a, b = halves(golden_ecapa)
    tested = conversations(a, 1, at_least=2, at_most=10)
    rng = np.random.default_rng(seed)
    blurred = tested.vectors + noise * rng.standard_normal(tested.vectors.shape)
    blurred /= np.linalg.norm(blurred, axis=1, keepdims=True)
    tested = Conversations(tested.speaker, tested.first, blurred, tested.excluded)
    names, predicates = speaker_means(b, at_most=30)
    return names, predicates, tested


def package_scores(names, predicates, tested, fold: int):
    """What the authors' package computes from the very same conversations of one fold."""
    spoken = {}
    for i, speaker in enumerate(tested.speaker):
        own = tested.vectors[tested.first[i] : tested.first[i + 1]]
        k = fold % len(own)
        spoken[speaker] = SpeakerConversations(speaker, own[k], list(np.delete(own, k, axis=0)))
    return score_conversations(dict(zip(names, predicates, strict=True)), spoken)


def test_equals_the_authors_package_on_the_whole_population(golden_ecapa) -> None:
    """With everybody in the set nothing is random: each predicate and fold has the same outcome."""
    names, predicates, tested = noisy(golden_ecapa, 0.12)
    found = singling_out(predicates, np.arange(40), tested, [40], draws=1)
    for fold in range(10):
        theirs = oracle(package_scores(names, predicates, tested, fold), 40, n_runs=1, fold=fold)
        ours = found.who[:, 0, fold, 0] >= 0
        assert ours.tolist() == [bool(theirs[name][0]) for name in names]
    assert 0.1 < found.rate.mean() < 0.9


def test_agrees_with_the_authors_package_within_monte_carlo_error(golden_ecapa) -> None:
    """N = 12 of 40, random draws: paired difference of predicates below four standard errors."""
    names, predicates, tested = noisy(golden_ecapa, 0.12)
    found = singling_out(predicates, np.arange(40), tested, [12], draws=40)
    theirs = np.zeros(40)
    for fold in range(10):
        outcome = oracle(package_scores(names, predicates, tested, fold), 12, n_runs=40, fold=fold)
        theirs += [np.mean(outcome[name]) / 10 for name in names]
    difference = found.rate[:, 0] - theirs
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(40)
    assert difference.std() < 0.05


def test_the_result_does_not_depend_on_threads(golden_ecapa) -> None:
    _, predicates, tested = noisy(golden_ecapa, 0.12)
    one, three = (
        singling_out(predicates, np.arange(40), tested, [5, 20], seed=3, threads=t) for t in (1, 3)
    )
    assert (one.who == three.who).all()
    assert (one.who != singling_out(predicates, np.arange(40), tested, [5, 20], seed=4).who).any()


def test_few_conversations_lower_the_rank_of_the_threshold() -> None:
    """K = 2 conversations calibrate once: chance is that of M = 1, not of M = 9."""
    rng = np.random.default_rng(6)
    tested = crowd([2] * 300, rng.standard_normal((600, 3)))
    found = singling_out(rng.standard_normal((200, 3)), np.arange(200), tested, [300], draws=1)
    assert found.chance[0] == isolation_chance(1, 300, 300)
    error = found.rate.std() / np.sqrt(200)
    assert abs(found.rate.mean() - found.chance[0]) < 4 * error
    assert found.chance[0] < 0.3


def test_sizes_and_conversations_that_cannot_be_are_refused() -> None:
    tested = crowd([2, 2, 2], np.eye(6))
    for sizes, culprit in (([4], "N = 4"), ([1], "N = 1")):
        with pytest.raises(InputError, match=culprit + ".*from 2 to the 3 speakers"):
            singling_out(np.eye(6)[:1], np.array([0]), tested, sizes)
    with pytest.raises(InputError, match="s00001 has one conversation"):
        singling_out(np.eye(3)[:1], np.array([0]), crowd([2, 1], np.eye(3)), [2])
