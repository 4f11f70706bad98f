"""Voice similarity matrices against a plain double loop, and the laws of DeID and G_VD."""

import numpy as np
import pytest

from voxrisk import measure
from voxrisk.measure import Similarity, Trials
from voxrisk.measure.similarity import resampled_dominance
from voxrisk.types import InputError


def segments(seed: int, speakers: int = 6, each: int = 4, pull: float = 2.0) -> Trials:
    """All pairs of different segments; ``pull`` is how much a speaker is like itself."""
    rng = np.random.default_rng(seed)
    speaker = np.repeat(np.arange(speakers), each)
    left, right = np.divmod(np.arange(speaker.size**2), speaker.size)
    keep = left != right
    left, right = left[keep], right[keep]
    score = rng.normal(size=left.size) + pull * (speaker[left] == speaker[right])
    return measure.trials(score, speaker[left], speaker[right], segment=right)


def test_matrix_equals_the_definition_cell_by_cell() -> None:
    scored = segments(0)
    llr = measure.pav(scored.target, scored.nontarget, laplace=True)
    found = measure.similarity_matrix(scored)
    for i in range(6):
        for j in range(6):
            cell = (scored.enroll_speaker == i) & (scored.trial_speaker == j)
            mean = np.mean([llr([s])[0] for s in scored.score[cell]])
            assert found.matrix[i, j] == pytest.approx(1 / (1 + np.exp(-mean)))


def test_diagonal_dominance_of_known_matrices() -> None:
    """Paper, below Eq. 3: 0 for a constant matrix, 1 for the identity and for its opposite."""
    names = ("a", "b", "c")
    assert measure.diagonal_dominance(Similarity(names, np.full((3, 3), 0.3))) == 0.0
    assert measure.diagonal_dominance(Similarity(names, np.eye(3))) == 1.0
    assert measure.diagonal_dominance(Similarity(names, 1 - np.eye(3))) == 1.0


def test_doing_nothing_protects_nothing() -> None:
    original = measure.similarity_matrix(segments(0))
    assert measure.de_identification(original, original) == 0.0
    assert measure.distinctiveness_gain(original, original) == 0.0


def test_unlinkable_voices_are_de_identified_and_less_distinct() -> None:
    original = measure.similarity_matrix(segments(0, pull=3.0))
    blurred = measure.similarity_matrix(segments(1, pull=0.3))
    assert measure.de_identification(original, blurred) > 0.8
    assert measure.distinctiveness_gain(original, blurred) < -5


def test_vpc2020_averages_the_upper_triangle_only() -> None:
    matrix = np.array([[1.0, 0.2, 0.4], [0.8, 1.0, 0.6], [0.8, 0.8, 1.0]])
    lopsided = Similarity(("a", "b", "c"), matrix)
    assert measure.diagonal_dominance(lopsided) == pytest.approx(0.4)
    assert measure.diagonal_dominance(lopsided, compat="vpc2020") == pytest.approx(0.6)
    with pytest.raises(InputError, match="knows only 'vpc2020'"):
        measure.diagonal_dominance(lopsided, compat="vpc")


def test_resampled_dominance_with_weight_one_is_the_dominance() -> None:
    scored = segments(2, speakers=7)
    drawn = resampled_dominance(scored, np.ones((1, 7), np.int32))
    expected = measure.diagonal_dominance(measure.similarity_matrix(scored))
    assert drawn[0] == pytest.approx(expected, abs=1e-12)


def test_resampled_dominance_is_that_of_the_drawn_speakers() -> None:
    """Weights 0 and 1 leave the matrix of the speakers that are left, calibrated on their own."""
    scored = segments(3, speakers=9)
    weights = np.array([[1, 1, 0, 1, 1, 0, 1, 1, 1]], np.int32)
    alive = weights[0].astype(bool)
    keep = alive[scored.enroll_speaker] & alive[scored.trial_speaker]
    part = measure.trials(
        scored.score[keep], scored.enroll_speaker[keep], scored.trial_speaker[keep]
    )
    expected = measure.diagonal_dominance(measure.similarity_matrix(part))
    assert resampled_dominance(scored, weights)[0] == pytest.approx(expected, abs=1e-12)


def test_estimates_carry_intervals_and_compat() -> None:
    oo, op, pp = segments(0, speakers=8), segments(1, speakers=8, pull=0.3), segments(2, speakers=8)
    found = measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=100)
    assert set(found) == {"deid", "g_vd"}
    for estimate in found.values():
        assert estimate.interval is not None
        assert estimate.interval.low <= estimate.value <= estimate.interval.high
    assert found["deid"].value > 0.5


def test_speakers_that_stand_on_one_side_only_have_no_row() -> None:
    scored = measure.trials([3.0, 0.0, 0.1, 2.0, 0.3, 0.2], list("aabbab"), list("ababcc"))
    assert measure.similarity_matrix(scored).speakers == ("a", "b")


def test_what_is_undefined_says_so() -> None:
    flat = Similarity(("a", "b"), np.full((2, 2), 0.5))
    clear = Similarity(("a", "b"), np.eye(2))
    with pytest.raises(InputError, match="DeID and G_VD are undefined"):
        measure.de_identification(flat, clear)
    with pytest.raises(InputError, match="G_VD is -inf"):
        measure.distinctiveness_gain(clear, flat)
    with pytest.raises(InputError, match="only in one: b, c"):
        measure.de_identification(clear, Similarity(("a", "c"), np.eye(2)))
    with pytest.raises(InputError, match="two speakers on both sides"):
        measure.similarity_matrix(measure.trials([1.0, 0.0], ["a", "a"], ["a", "b"]))
    with pytest.raises(InputError, match=r"2 of 9 pairs of speakers were never compared"):
        measure.similarity_matrix(
            measure.trials([1, 0, 1, 0, 1, 0, 0], list("aabbcca"), list("abbccac"))
        )
