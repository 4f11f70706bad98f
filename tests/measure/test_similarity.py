"""Voice similarity matrices against a plain double loop, and the laws of DeID and G_VD."""

import numpy as np
import pytest

from voxrisk import measure
from voxrisk.measure import Similarity, Trials
from voxrisk.measure.similarity import resampled_dominance
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, InputError


def segments(seed: int, speakers: int = 6, each: int = 4, pull: float = 2.0) -> Trials:
    """All pairs of different segments; ``pull`` is how much a speaker is like itself."""
    rng = np.random.default_rng(seed)
    speaker = np.repeat(np.arange(speakers), each)
    left, right = np.divmod(np.arange(speaker.size**2), speaker.size)
    keep = left != right
    left, right = left[keep], right[keep]
    score = rng.normal(size=left.size) + pull * (speaker[left] == speaker[right])
    return measure.Trials(score, speaker[left], speaker[right], segment=right)


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
    part = measure.Trials(
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
    scored = measure.Trials([3.0, 0.0, 0.1, 2.0, 0.3, 0.2], list("aabbab"), list("ababcc"))
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
        measure.similarity_matrix(measure.Trials([1.0, 0.0], ["a", "a"], ["a", "b"]))
    with pytest.raises(InputError, match=r"2 of 9 pairs of speakers were never compared"):
        measure.similarity_matrix(
            measure.Trials([1, 0, 1, 0, 1, 0, 0], list("aabbcca"), list("abbccac"))
        )


def test_de_identification_stands_where_distinctiveness_does_not() -> None:
    """All protected voices alike: G_VD is -inf and says so, DeID is given all the same."""
    oo, op = segments(0, speakers=8), segments(1, speakers=8, pull=0.3)
    flat = Trials.coded(
        np.zeros_like(oo.score), oo.is_target, oo.enroll_speaker, oo.trial_speaker, oo.query,
        oo.speakers,
    )  # fmt: skip
    found = measure.evaluate_similarity(oo, crossed=op, protected=flat, resamples=50)
    alone = measure.evaluate_similarity(oo, crossed=op, resamples=50)
    assert dict(found) == dict(alone)
    assert set(found) == {"deid"}
    assert "G_VD is -inf" in found.undefined["g_vd"]
    turned = measure.evaluate_similarity(oo, crossed=flat, protected=segments(2, speakers=8))
    assert turned["deid"].value == 1.0
    assert turned["g_vd"].interval is not None
    none = measure.evaluate_similarity(flat, crossed=op, protected=oo, resamples=0)
    assert not none
    assert set(none.undefined) == {"deid", "g_vd"}


def test_a_distinctiveness_that_resamples_lose_has_no_interval_and_no_value() -> None:
    oo, weak = segments(0, speakers=6), segments(1, speakers=6, each=2, pull=0.02)
    found = measure.evaluate_similarity(oo, protected=weak, resamples=200)
    assert not found
    assert "no lower limit" in found.undefined["g_vd"]


def spoken(seed: int, speakers: int = 7, each: int = 5, tag: str = "u") -> Embeddings:
    rng = np.random.default_rng(seed)
    voice = np.random.default_rng(1).normal(size=(speakers, 6))
    vectors = (voice[:, None] + 0.8 * rng.normal(size=(speakers, each, 6))).reshape(-1, 6)
    who = np.repeat([f"s{i}" for i in range(speakers)], each)
    return Embeddings(np.array([f"{s}-{tag}{k}" for k, s in enumerate(who)]), who, vectors)


def test_segments_are_compared_pair_by_pair_and_never_with_themselves() -> None:
    o, p = spoken(0), spoken(5)
    for first, second in ((o, None), (o, p)):
        other = second or first
        found = measure.segment_trials(first, second)
        rows = [
            (a @ b / np.linalg.norm(a) / np.linalg.norm(b), s, t)
            for u, s, a in zip(first.utterance, first.speaker, first.vectors, strict=True)
            for v, t, b in zip(other.utterance, other.speaker, other.vectors, strict=True)
            if u != v
        ]
        assert found.score == pytest.approx([r[0] for r in rows], abs=1e-12)
        names = np.array(found.speakers)
        assert names[found.enroll_speaker].tolist() == [r[1] for r in rows]
        assert names[found.trial_speaker].tolist() == [r[2] for r in rows]
        assert found.sizes["target"] == 7 * 5 * 4


def test_segments_and_score_files_of_the_same_pairs_agree_exactly() -> None:
    """``voxrisk measure`` takes the pairs of a trial list; with those of Eq. 2 it says the same."""
    sets = [
        measure.segment_trials(spoken(0)),
        measure.segment_trials(spoken(0), spoken(5)),
        measure.segment_trials(spoken(5)),
    ]
    listed = []
    for s in sets:
        order = np.random.default_rng(3).permutation(s.score.size)
        names = np.array(s.speakers)
        listed.append(
            measure.Trials(
                s.score[order], names[s.enroll_speaker[order]], names[s.trial_speaker[order]]
            )
        )
    ours, theirs = (
        measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=30)
        for oo, op, pp in (sets, listed)
    )
    for name in ("deid", "g_vd"):
        assert ours[name].value == pytest.approx(theirs[name].value, abs=1e-12)
        span, other = ours[name].interval, theirs[name].interval
        assert (span.low, span.high) == pytest.approx((other.low, other.high), abs=1e-12)


def test_many_segments_are_thinned_alike_for_every_speaker_and_both_sides() -> None:
    o, p = spoken(0, each=12), spoken(5, each=12)
    few = measure.segment_trials(o, p, most=30**2)
    assert few.score.size == 28 * 28 - 28  # four segments of each of seven speakers
    assert (np.bincount(few.trial_speaker) == few.score.size / 7).all()
    again = measure.segment_trials(o, p, most=30**2)
    assert (few.score == again.score).all()
    assert (few.score != measure.segment_trials(o, p, most=30**2, seed=1).score).any()


@pytest.mark.parametrize(("gender", "gain", "speakers"), [("f", -7.98, 16), ("m", -7.41, 13)])
def test_distinctiveness_of_voiceprivacy_by_single_segments(
    golden_x_vectors, gender: str, gain: float, speakers: int
) -> None:
    """B1 of VoicePrivacy 2020 by Eq. 2, cosine; enrolment means give -4.15 and -5.19 dB."""
    o, p = (
        golden_x_vectors(name, of="original__enrolls")
        for name in (f"original__trials_{gender}", f"xg0_f00__trials_{gender}_anon")
    )
    oo, op, pp = (measure.segment_trials(*pair) for pair in ((o,), (o, p), (p,)))
    found = measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=0)
    assert found["g_vd"].value == pytest.approx(gain, abs=0.005)
    assert found["g_vd"].n["speaker"] == speakers
    assert found["deid"].value > 0.999


def test_a_vector_without_direction_is_an_error_or_stays_zero() -> None:
    vectors = np.array([[0.0, 2.0], [0.0, 0.0]], np.float32)
    with pytest.raises(InputError, match="a vector is zero"):
        unit_length(vectors)
    assert unit_length(vectors, shortest=1e-12).tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert vectors.tolist() == [[0.0, 2.0], [0.0, 0.0]]
