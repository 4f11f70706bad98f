"""Figures of attributes: laws, an independent implementation, and how often intervals hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score

from simulated_attributes import shares
from voxrisk.measure.attributes import (
    area_under_curve,
    balanced_accuracy,
    confusion,
    expected_bits,
    measure_attribute,
    prior_entropy,
    reliability,
    worst_bits,
)
from voxrisk.measure.logistic import fit_logistic, fit_ridge, log_softmax
from voxrisk.measure.narrowing import beliefs_in_people, measure_narrowing, true_beliefs
from voxrisk.measure.posteriors import Beliefs, believe, speaker_folds
from voxrisk.types import Estimate, InputError


def scored(
    speakers: int = 20,
    each: int = 6,
    classes: int = 2,
    *,
    told: float = 0.0,
    voice: float = 1.0,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a classifier that leans to something in every speaker, and tells ``told``."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(speakers), each)
    truth = rng.permutation(np.arange(speakers) % classes)[who].astype(np.int64)
    lean = voice * rng.standard_normal((speakers, classes))
    scores = lean[who] + rng.standard_normal((who.size, classes)) + told * np.eye(classes)[truth]
    return scores, truth, np.array([f"s{i:02d}" for i in who])


def figures(b: Beliefs, **more: int) -> dict[str, Estimate]:
    return {e.name: e for e in measure_attribute(b, resamples=200, **more)}


def test_balanced_accuracy_and_area_agree_with_scikit_learn() -> None:
    scores, truth, speaker = scored(classes=3, told=1.0)
    weights = shares(speaker)
    decision = scores.argmax(axis=1)
    assert balanced_accuracy(truth, decision, weights) == pytest.approx(
        recall_score(truth, decision, average="macro", sample_weight=weights)
    )
    belief = np.exp(log_softmax(scores))
    one_against_rest = np.mean(
        [roc_auc_score(truth == c, belief[:, c], sample_weight=weights) for c in range(3)]
    )
    assert area_under_curve(truth, belief, weights) == pytest.approx(one_against_rest)


def test_logistic_regression_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    vectors = rng.standard_normal((300, 5)) + rng.standard_normal((3, 5))[truth]
    ours = fit_logistic(vectors, truth, classes=3, penalty=0.01)
    standard = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    theirs = LogisticRegression(C=1.0 / (0.01 * 300), tol=1e-8, max_iter=1000)
    theirs.fit(standard, truth)
    assert np.exp(log_softmax(ours(vectors))) == pytest.approx(
        theirs.predict_proba(standard), abs=0.02
    )


def test_a_class_without_a_row_is_never_believed_in() -> None:
    vectors = np.random.default_rng(0).standard_normal((20, 2))
    model = fit_logistic(vectors, np.arange(20) % 2, classes=3)
    assert np.exp(log_softmax(model(vectors)))[:, 2].max() < 1e-9


def test_ridge_finds_a_line() -> None:
    x = np.random.default_rng(0).standard_normal((200, 3))
    y = 40.0 + x @ np.array([10.0, 0.0, -5.0])
    assert fit_ridge(x, y, penalty=1e-6)(x)[:, 0] == pytest.approx(y, abs=1e-3)


def test_beliefs_in_what_a_classifier_knows_for_certain_hold_nearly_all_bits() -> None:
    scores, truth, speaker = scored(told=60.0)
    found = figures(believe(scores, truth, speaker, classes=2))
    assert found["uar"].value == found["attribute_auc"].value == 1.0
    # Laplace's rule: 20 speakers never make anybody quite certain.
    assert 0.9 < found["attribute_bits"].value < 1.0
    assert 0.9 < found["attribute_worst"].value < 1.0
    span = found["uar"].interval
    assert span is not None
    assert span.low == pytest.approx(0.025 ** (1 / 20), abs=1e-6)  # exact, not 1
    bits = found["attribute_bits"].interval
    assert bits is not None
    error = 1.0 - span.low
    left = -error * np.log2(error) - span.low * np.log2(span.low)
    assert bits.low == pytest.approx(1.0 - left, abs=1e-6)  # as the errors allow


def test_scores_that_say_nothing_leave_the_prior() -> None:
    _, truth, speaker = scored()
    b = believe(np.zeros((truth.size, 2)), truth, speaker, classes=2)
    assert b.posterior == pytest.approx(np.full((truth.size, 2), 0.5), abs=1e-6)
    assert expected_bits(b) == pytest.approx(0.0, abs=1e-6)
    found = figures(b)
    assert found["attribute_auc"].value == 0.5
    assert found["attribute_bits"].interval is not None
    assert found["attribute_bits"].interval.low == 0.0


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize(("speakers", "classes"), [(45, 2), (24, 3)])
def test_one_answer_for_everybody_is_a_guess_and_not_chance_to_the_last_digit(
    speakers: int, classes: int, number: bool
) -> None:
    """Scores that lead astray are worth nothing: the same answer for all, whoever is drawn.

    Its interval is that of a guess for each speaker, by the binomial law.
    """
    scores, truth, speaker = scored(speakers=speakers, classes=classes)
    astray = -2.0 * np.eye(classes)[truth] + 0.1 * scores
    b = believe(-1.0 * truth if number else astray, truth, speaker, classes=classes)
    assert not b.decided.any()
    found = figures(b)
    chance, span = 1.0 / classes, found["uar"].interval
    assert found["uar"].value == pytest.approx(chance)
    assert found["attribute_auc"].value == 0.5
    assert found["attribute_bits"].value == 0.0
    assert span is not None
    spread = np.sqrt(chance * (1.0 - chance) / speakers)
    assert (span.high - span.low) / 2 == pytest.approx(2.05 * spread, rel=0.25)
    order = found["attribute_auc"].interval
    assert order is not None
    assert order.low < 0.45 < 0.55 < order.high
    bits, worst = (found[name].interval for name in ("attribute_bits", "attribute_worst"))
    assert bits is not None
    assert worst is not None
    assert bits.low == 0.0 < bits.high <= worst.high
    assert confusion(b) == pytest.approx(np.full((classes, classes), chance))


@given(st.integers(0, 30), st.floats(0.1, 20.0), st.floats(-5.0, 5.0))
def test_what_is_learned_does_not_hang_on_the_classifiers_own_calibration(
    seed: int, scale: float, shift: float
) -> None:
    """A classifier twice as sure of itself, or leaning to one class, tells the same."""
    scores, truth, speaker = scored(told=2.0, seed=seed)
    plain = believe(scores, truth, speaker, classes=2)
    bent = believe(scale * scores + np.array([shift, 0.0]), truth, speaker, classes=2)
    assert expected_bits(bent) == pytest.approx(expected_bits(plain), abs=0.02)


@given(st.integers(0, 30))
def test_order_of_rows_is_irrelevant_and_bits_stay_in_their_range(seed: int) -> None:
    scores, truth, speaker = scored(told=1.0, classes=3, seed=seed)
    b = believe(scores, truth, speaker, classes=3)
    order = np.random.default_rng(seed).permutation(truth.size)
    mixed = believe(scores[order], truth[order], speaker[order], classes=3)
    assert expected_bits(mixed) == pytest.approx(expected_bits(b), abs=1e-3)
    assert figures(mixed)["uar"].value == pytest.approx(figures(b)["uar"].value, abs=1e-9)
    assert expected_bits(b) <= prior_entropy(b.prior)
    assert 0.0 <= worst_bits(b) <= -np.log2(b.prior.min())
    assert np.allclose(b.posterior.sum(axis=1), 1.0)
    assert np.allclose(confusion(b).sum(axis=1), 1.0)


def test_a_speaker_never_calibrates_his_own_beliefs() -> None:
    """Turning one speaker's labels round changes the others' likelihoods and not his own."""
    scores, truth, speaker = scored(told=2.0, speakers=10)
    first = speaker == "s00"
    turned = np.where(first, 1 - truth, truth)
    fold = dict(zip(speaker.tolist(), range(truth.size), strict=True))
    assert len(fold) == 10
    before, after = (believe(scores, t, speaker, classes=2) for t in (truth, turned))
    gap = np.abs(before.likelihood / before.likelihood.sum(axis=1, keepdims=True)
                 - after.likelihood / after.likelihood.sum(axis=1, keepdims=True))  # fmt: skip
    assert gap[first].max() < 0.05
    assert gap[~first].max() > 0.05


@given(st.integers(0, 50), st.integers(2, 7))
def test_folds_never_share_a_speaker_and_spread_the_classes(seed: int, folds: int) -> None:
    _, truth, speaker = scored(speakers=14, seed=seed)
    fold = speaker_folds(speaker, truth, folds=folds, seed=seed)
    assert all(np.unique(fold[speaker == s]).size == 1 for s in np.unique(speaker))
    for c in (0, 1):
        each = [np.unique(speaker[(fold == f) & (truth == c)]).size for f in range(folds)]
        assert max(each) - min(each) <= 1


def test_intervals_hold_chance_when_an_attribute_is_shuffled_among_speakers() -> None:
    """150 attributes that nobody can tell: how often chance lies in the interval, or above it."""
    inside = {"uar": 0, "attribute_auc": 0, "attribute_bits": 0, "attribute_worst": 0}
    above = dict.fromkeys(inside, 0)
    for seed in range(150):
        b = believe(*scored(seed=seed), classes=2)
        for name, e in figures(b, seed=seed).items():
            assert e.interval is not None
            inside[name] += e.interval.low <= e.chance <= e.interval.high
            above[name] += e.interval.low > e.chance
    assert all(n >= 0.88 * 150 for n in inside.values()), inside
    assert all(n <= 0.07 * 150 for n in above.values()), above


def test_interval_of_many_speakers_is_narrow_and_holds_the_truth() -> None:
    truth_of_many = figures(believe(*scored(speakers=600, told=1.5), classes=2))["uar"].value
    hit = 0
    for seed in range(40):
        span = figures(believe(*scored(speakers=24, told=1.5, seed=100 + seed), classes=2))["uar"]
        assert span.interval is not None
        hit += span.interval.low <= truth_of_many <= span.interval.high
    assert hit >= 35


def test_numbers_are_told_by_error_and_correlation_beside_the_groups() -> None:
    rng = np.random.default_rng(0)
    age = np.repeat(rng.uniform(10, 70, 24), 4)
    speaker = np.repeat([f"s{i}" for i in range(24)], 4)
    group = np.searchsorted([25.0, 40.0, 55.0], age).astype(np.int64)
    good = age + rng.normal(0.0, 4.0, age.size)
    found = figures(believe(good, group, speaker, classes=4, value=age))
    assert found["mean_error"].value < 5.0 < found["mean_error"].chance
    assert found["correlation"].value > 0.9
    assert found["attribute_bits"].value > 1.0
    blind = figures(believe(np.full(age.size, 40.0), group, speaker, classes=4, value=age))
    assert blind["correlation"].value == 0.0
    assert blind["attribute_bits"].value == pytest.approx(0.0, abs=1e-9)


def test_one_class_is_refused() -> None:
    scores, _, speaker = scored()
    b = believe(scores, np.zeros(speaker.size, np.int64), speaker, classes=2)
    with pytest.raises(InputError, match="nothing to infer"):
        measure_attribute(b)


def test_two_speakers_cannot_be_calibrated() -> None:
    with pytest.raises(InputError, match="give three"):
        believe(np.zeros((2, 2)), np.array([0, 1]), np.array(["a", "b"]), classes=2)


def test_reliable_beliefs_are_right_as_often_as_they_say() -> None:
    scores, truth, speaker = scored(speakers=300, told=1.0, voice=0.3)
    for sure, right, n in reliability(believe(scores, truth, speaker, classes=2)):
        assert n < 200 or right == pytest.approx(sure, abs=0.06)


def test_true_attributes_leave_the_people_who_share_them() -> None:
    classes = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 0], [1, 1]])
    people = np.array(list("abcdef"))
    left, found = measure_narrowing(
        true_beliefs(classes), np.arange(6), people, length=1, resamples=0
    )
    assert left.value == pytest.approx(2.0 ** (4 / 6))  # geometric mean of 2, 2, 1, 2, 2, 1
    assert found.value == pytest.approx((4 * 0.5 + 2) / 6)
    assert (left.chance, found.chance) == (6.0, 1 / 6)


def test_attributes_that_nobody_can_tell_leave_everybody() -> None:
    _, truth, speaker = scored(speakers=12)
    key = np.arange(truth.size).astype(str)
    nothing = believe(np.zeros((truth.size, 2)), truth, speaker, classes=2, key=key)
    left, found = measure_narrowing(*beliefs_in_people([nothing, nothing]), length=1)
    assert left.value == pytest.approx(12.0, rel=1e-3)
    assert found.value == pytest.approx(1 / 12, rel=0.5)


def test_attributes_told_for_certain_narrow_as_far_as_true_ones() -> None:
    first, truth, speaker = scored(speakers=40, told=80.0)
    key = np.arange(truth.size).astype(str)
    other = np.array([int(s[1:]) // 2 % 2 for s in speaker.tolist()])
    second = 80.0 * np.eye(2)[other]
    told = [
        believe(first, truth, speaker, classes=2, key=key),
        believe(second, other, speaker, classes=2, key=key),
    ]
    belief, heard, people = beliefs_in_people(told)
    left, found = measure_narrowing(belief, heard, people, length=1)
    classes = np.array([[truth[speaker == s][0], other[speaker == s][0]] for s in people])
    best, sure = measure_narrowing(
        true_beliefs(classes), np.arange(40), people, length=1, resamples=0
    )
    assert best.value <= left.value < 1.2 * best.value
    assert left.interval is not None
    assert 1.0 <= left.interval.low <= left.value <= left.interval.high
    assert found.value == pytest.approx(sure.value, rel=0.05)
