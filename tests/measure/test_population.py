"""Population curves in one call: roles, conversations, laws of the curves, and bad input."""

import json

import numpy as np
import pytest

from simulated_voices import voices
from voxrisk.measure import expected_disclosure, rocch_eer
from voxrisk.measure.conversations import check_sides, conversations, halves, speaker_means
from voxrisk.measure.crowd import crowd_of_scores, crowd_of_sets, measure_crowd
from voxrisk.measure.population import Protocol
from voxrisk.types import Embeddings, Estimate, InputError

QUICK = Protocol(lengths=(1, 3), sizes=(5, 20), draws=2, resamples=100)


def test_every_metric_length_and_size_has_value_interval_and_chance() -> None:
    found = crowd_of_sets(voices(), attacker="informed", protocol=QUICK)
    keys = {(e.name, e.parameters["L"], e.parameters["N"]) for e in found.estimates}
    metrics = ("singling_out", "linkability", "rocch_eer", "d_ece", "log10_l")
    assert keys == {(m, L, n) for m in metrics for L in (1, 3) for n in (5, 20, 30)}
    for e in found.estimates:
        assert e.interval.low <= e.value <= e.interval.high
        assert Estimate.from_json(json.loads(json.dumps(e.to_json()))) == e
    chance = {e.parameters["N"]: e.chance for e in found.curve("linkability", 1)}
    assert chance == {5: 0.2, 20: 0.05, 30: 1 / 30}
    assert all(
        e.parameters["chance_paper"] == pytest.approx(0.3679, abs=1e-4)
        for e in found.curve("singling_out", 1)
    )


def test_risk_falls_with_the_crowd_and_grows_with_speech() -> None:
    found = crowd_of_sets(voices(60), protocol=QUICK)
    for metric in ("linkability", "singling_out"):
        one = [e.value for e in found.curve(metric, 1)]
        three = [e.value for e in found.curve(metric, 3)]
        assert one == sorted(one, reverse=True)
        assert all(b > a for a, b in zip(one, three, strict=True))
    assert len({e.value for e in found.curve("rocch_eer", 1)}) == 1  # the EER sees no crowd


def test_score_metrics_equal_those_of_the_score_route() -> None:
    """The same trials through ``voxrisk.measure.Trials`` give the same EER and D_ECE."""
    a, b = voices(tag="a"), voices(seed=1, tag="b")
    found = crowd_of_sets(a, b, protocol=Protocol(lengths=(2,), sizes=(5,), resamples=0))
    names, enroll = speaker_means(a)
    tested = conversations(b, 2, at_most=1)
    scores = enroll @ tested.vectors.T
    target = scores[np.arange(30), np.arange(30)]
    rest = scores[~np.eye(30, dtype=bool)]
    for e in found.estimates:
        assert e.interval is None
        if e.name == "rocch_eer":
            assert e.value == pytest.approx(rocch_eer(target, rest), abs=1e-12)
        if e.name == "d_ece":
            assert e.value == pytest.approx(expected_disclosure(target, rest), abs=1e-12)
    matrix = crowd_of_scores(scores, names, tested.speaker, length=2, protocol=QUICK)
    assert [e.value for e in matrix.curve("linkability", 2)][-1] == (
        [e.value for e in found.curve("linkability", 2)][-1]
    )
    assert not matrix.curve("singling_out", 2)


def test_the_same_seed_gives_the_same_result_whatever_threads_and_row_order() -> None:
    e = voices()
    shuffle = np.random.default_rng(7).permutation(e.utterance.size)
    mixed = Embeddings(e.utterance[shuffle], e.speaker[shuffle], e.vectors[shuffle], e.source)
    one = crowd_of_sets(e, protocol=Protocol(lengths=(3,), resamples=50, threads=1))
    two = crowd_of_sets(mixed, protocol=Protocol(lengths=(3,), resamples=50, threads=3))
    assert one.estimates == two.estimates
    assert one.speakers == two.speakers
    other = crowd_of_sets(e, protocol=Protocol(lengths=(3,), resamples=50, seed=1))
    assert one.estimates != other.estimates


def test_people_are_listed_with_the_most_exposed_first() -> None:
    found = crowd_of_sets(voices(strength=0.3), protocol=QUICK)
    for metric in ("linkability", "singling_out", "isolated"):
        for length in (1, 3):
            rows = [
                r for r in found.speakers
                if (r.metric, r.length, r.size) == (metric, length, 30)
            ]  # fmt: skip
            values = [r.value for r in rows]
            assert values == sorted(values, reverse=True)
            if metric != "isolated":
                mean = found.curve(metric, length)[-1].value
                assert np.mean(values) == pytest.approx(mean)


def test_several_trials_of_a_speaker_count_as_one_speaker() -> None:
    e = voices(strength=0.4)
    found = crowd_of_sets(e, protocol=Protocol(lengths=(1,), trials=5, resamples=50))
    estimate = found.curve("linkability", 1)[-1]
    assert estimate.n == {"trial": 150, "speaker": 30, "enrolled": 30}
    people = [r.value for r in found.speakers if (r.metric, r.size) == ("linkability", 30)]
    assert set(people) <= {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}
    assert len(people) == 30


def test_a_rate_without_event_gets_the_exact_bound() -> None:
    """Nobody missed among 30 speakers: the lower bound is 0.025^(1/30), not 1."""
    found = crowd_of_sets(voices(strength=50.0), protocol=QUICK)
    interval = found.curve("linkability", 1)[-1].interval
    assert interval.high == 1.0
    assert interval.low == pytest.approx(0.025 ** (1 / 30), rel=1e-9)
    assert interval.method == "exact, 30 of 30 speakers"


def test_conversations_are_disjoint_means_of_length_one() -> None:
    e = voices(n=3, utterances=7)
    made = conversations(e, 2, at_most=10, seed=5)
    assert made.count.tolist() == [3, 3, 3]
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(1.0)
    # One-hot embeddings show which utterances are in: two each, none twice.
    hot = Embeddings(e.utterance, e.speaker, np.eye(21), "hot")
    used = conversations(hot, 2, seed=5).vectors > 0
    assert (used.sum(axis=1) == 2).all()
    assert (used.sum(axis=0) <= 1).all()
    assert used[:3, :7].sum() == 6


def test_speakers_below_two_conversations_are_excluded_and_named() -> None:
    a, b = voices(tag="a"), voices(seed=1, tag="b")
    short = np.flatnonzero(a.speaker == "s04")[5:]
    keep = np.setdiff1d(np.arange(a.speaker.size), short)
    a = Embeddings(a.utterance[keep], a.speaker[keep], a.vectors[keep], "a.npz")
    found = crowd_of_sets(a, b, protocol=Protocol(lengths=(3,), sizes=(5,), resamples=0))
    assert found.excluded == {"3": {"linkability": [], "singling_out": ["s04"]}}
    assert [e.parameters["N"] for e in found.curve("singling_out", 3)] == [5, 29]
    assert [e.parameters["N"] for e in found.curve("linkability", 3)] == [5, 30]


def test_one_set_is_split_without_sharing_utterances() -> None:
    e = voices(n=4, utterances=5)
    a, b = halves(e, seed=2)
    assert set(a.utterance) | set(b.utterance) == set(e.utterance)
    assert not set(a.utterance) & set(b.utterance)
    assert np.unique(b.speaker, return_counts=True)[1].tolist() == [2, 2, 2, 2]


def test_enrolled_and_tested_do_not_change_places(golden_x_vectors) -> None:
    """VoicePrivacy 2020 B1, 29 speakers, L = 1: only the second of each pair is published speech.

    Original voices isolate hardly anybody among anonymized ones (chance 35.5 %). Anonymized voices
    among original ones isolate half, which says nothing about what was published.
    """
    sets = {
        "enrolments": ("original__enrolls", "xg0_f00__enrolls_anon"),
        "trials": ("original__trials_*", "xg0_f00__trials_*_anon"),
    }
    (o_first, a_first), (o_second, a_second) = (
        [golden_x_vectors(name, of="original__enrolls") for name in names]
        for names in sets.values()
    )
    protocol = Protocol(lengths=(1,), sizes=(29,), trials=10, resamples=0)

    def figures(enrolled: Embeddings, tested: Embeddings) -> list[float]:
        found = measure_crowd(enrolled=enrolled, tested=tested, protocol=protocol)
        names = ("singling_out", "linkability", "rocch_eer")
        return [round(100 * found.curve(name, 1)[-1].value, 1) for name in names]

    assert figures(o_first, a_second) == [35.9, 6.9, 36.1]
    assert figures(o_second, a_first)[0] == 37.2
    assert figures(a_second, o_first)[0] == 50.3
    assert figures(a_first, o_second)[0] == 47.6


def test_the_sets_of_the_paper_change_roles_between_its_attacks() -> None:
    """A is enrolled for Linkability; for Singling Out it is tested, and B is enrolled."""
    a, b = voices(tag="a"), voices(strength=0.3, seed=1, tag="b")
    found = crowd_of_sets(a, b, protocol=QUICK)
    there, back = (measure_crowd(enrolled=x, tested=y, protocol=QUICK) for x, y in ((a, b), (b, a)))
    for length in (1, 3):
        for metric in ("linkability", "rocch_eer", "d_ece", "log10_l"):
            assert found.curve(metric, length) == there.curve(metric, length)
            assert found.curve(metric, length) != back.curve(metric, length)
        assert found.curve("singling_out", length) == back.curve("singling_out", length)
        assert found.curve("singling_out", length) != there.curve("singling_out", length)


def test_roles_are_given_by_name_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        measure_crowd(voices(tag="a"), voices(seed=1, tag="b"))


def changed(**parts: np.ndarray) -> Embeddings:
    e = voices(n=6, utterances=8)
    return Embeddings(**{"utterance": e.utterance, "speaker": e.speaker, "vectors": e.vectors,
                         "source": "x.npz", **parts})  # fmt: skip


def test_bad_embeddings_name_the_culprit_and_the_way_out() -> None:
    e = voices(n=6, utterances=8)
    vectors = e.vectors.copy()
    vectors[11, 3] = np.nan
    with pytest.raises(InputError, match=r"x.npz row 11: .*s01-u11 \(speaker s01\) is not finite"):
        changed(vectors=vectors)
    with pytest.raises(InputError, match=r"s00-u0 .*is all zeros; embed again"):
        changed(vectors=np.where(np.arange(48)[:, None] == 0, 0, e.vectors))
    doubled = e.utterance.copy()
    doubled[9] = doubled[2]
    with pytest.raises(InputError, match=r"utterance s00-u2 is there twice \(rows 2 and 9\); keep"):
        changed(utterance=doubled)
    with pytest.raises(InputError, match=r"5 utterance ids and 48 speakers for 48 embeddings"):
        changed(utterance=e.utterance[:5])
    with pytest.raises(InputError, match=r"shape \(768,\).*must be a table"):
        changed(vectors=e.vectors.ravel())
    empty = e.speaker.copy()
    empty[3] = ""
    with pytest.raises(InputError, match=r"row 3: the speaker is empty; name it"):
        changed(speaker=empty)


def test_sets_that_do_not_fit_name_the_culprit_and_the_way_out() -> None:
    a, b = voices(n=6, tag="a"), voices(n=7, tag="b", seed=1)
    with pytest.raises(InputError, match=r"b.npz: speaker s06 is not in a.npz.*enrol them"):
        check_sides(a, b)
    with pytest.raises(
        InputError, match=r"120 utterances \(s00-a0, .*both in a.npz.*keep it in one"
    ):
        check_sides(a, a)
    thin = Embeddings(b.utterance, b.speaker, b.vectors[:, :4], "thin.npz")
    with pytest.raises(InputError, match=r"a.npz has 16 dimensions and thin.npz has 4"):
        check_sides(a, thin)
    once = np.flatnonzero((a.speaker != "s02") | (a.utterance == "s02-a40"))
    single = Embeddings(a.utterance[once], a.speaker[once], a.vectors[once], "a.npz")
    with pytest.raises(InputError, match=r"a.npz: speaker s02 has one utterance.*min-utter"):
        crowd_of_sets(single, protocol=QUICK)
    left = crowd_of_sets(single, protocol=Protocol(lengths=(1,), min_utterances=2, resamples=0))
    assert "s02" not in {r.speaker for r in left.speakers}
    alone = Embeddings(a.utterance[:20], a.speaker[:20], a.vectors[:20], "a.npz")
    with pytest.raises(InputError, match=r"a.npz has 1 speaker; nobody"):
        halves(alone)


def test_impossible_requests_are_refused() -> None:
    e = voices()
    with pytest.raises(InputError, match=r"N = 31 is larger than the population.*30 speakers"):
        crowd_of_sets(e, protocol=Protocol(lengths=(1,), sizes=(5, 31)))
    with pytest.raises(InputError, match=r"no speaker has the 40 utterances that L = 40 needs"):
        crowd_of_sets(e, protocol=Protocol(lengths=(40,), sizes=(5,)))
    with pytest.raises(InputError, match=r"estimator is 'guess'"):
        Protocol(estimator="guess")
    with pytest.raises(InputError, match=r"N is 1"):
        crowd_of_sets(e, protocol=Protocol(lengths=(1,), sizes=(1,)))
    with pytest.raises(InputError, match=r"at least 5 speakers"):
        crowd_of_sets(voices(n=4), protocol=Protocol(lengths=(1,)))


def test_a_score_matrix_is_checked_as_embeddings_are() -> None:
    rng = np.random.default_rng(0)
    names, scores = np.array(list("abcdef")), rng.standard_normal((6, 6))
    with pytest.raises(InputError, match=r"trial speaker z is not enrolled"):
        crowd_of_scores(scores, names, np.array(list("abcdez")), protocol=QUICK)
    with pytest.raises(InputError, match=r"speaker a is enrolled twice"):
        crowd_of_scores(scores, np.array(list("aacdef")), names, protocol=QUICK)
    bad = scores.copy()
    bad[2, 4] = np.inf
    with pytest.raises(InputError, match=r"score of c against trial 4 \(e\) is inf"):
        crowd_of_scores(bad, names, names, protocol=QUICK)
    with pytest.raises(InputError, match=r"shape \(6, 6\) for 6 enrolled speakers and 5 trials"):
        crowd_of_scores(scores, names, names[:5], protocol=QUICK)


def test_any_callable_may_score_and_is_checked() -> None:
    e = voices()
    plain = crowd_of_sets(e, protocol=QUICK)
    same = crowd_of_sets(e, scorer=lambda a, b: a @ b.T, protocol=QUICK)
    assert [x.value for x in same.estimates] == pytest.approx([x.value for x in plain.estimates])
    for wrong, words in (
        (lambda a, b: (a @ b.T)[:-1], "must return"),
        (lambda a, b: a @ b.T * np.nan, "not finite"),
    ):
        with pytest.raises(InputError, match=words):
            crowd_of_sets(e, scorer=wrong, protocol=QUICK)


def test_real_voices_of_librispeech_are_all_but_fully_linked(golden_ecapa) -> None:
    """ECAPA on original speech: 40 of 40 linked from one utterance; intervals say how sure."""
    found = crowd_of_sets(
        golden_ecapa, protocol=Protocol(lengths=(1, 3, 10), sizes=(10,), resamples=200)
    )
    for length in (1, 3, 10):
        assert found.curve("linkability", length)[-1].value > 0.97
        assert found.curve("singling_out", length)[-1].value > 0.97
        assert found.curve("rocch_eer", length)[-1].value < 0.01
