"""The suite: what it must choose, what it must not see, and that a fused attacker is vectors."""

from pathlib import Path

import numpy as np
import pytest

from voxrisk.attack import weighing
from voxrisk.attack.backends import cosine, score_pairs
from voxrisk.attack.guess import fit_guess
from voxrisk.attack.joined import (
    Joined,
    collected_trials,
    join,
    large_collections,
    original_of,
)
from voxrisk.attack.maps import BACKENDS, Lesson, fit_map
from voxrisk.attack.sided import NEAREST
from voxrisk.attack.soundness import cross_validated, training_control
from voxrisk.attack.suite import (
    Lessons,
    Member,
    choose_suite,
    read_suite,
    suite_fit,
    write_suite,
)
from voxrisk.attack.weighing import Tried, all_alike, forward, fusion_weights, shares
from voxrisk.types import Embeddings, InputError

SPEAKERS, EACH = 40, 6
FAST = ("centred", "wccn", "plda")
CHOICE = {"sorts": {"room": "recording"}, "backends": FAST}


def block(signal: float, *, seed: int, nuisance: float = 0.0, size: int = 12) -> Embeddings:
    """Vectors with so much of the speaker, and one direction in which every utterance differs."""
    random = np.random.default_rng(seed)
    voices = np.repeat(random.standard_normal((SPEAKERS, size)), EACH, axis=0)
    noise = random.standard_normal((SPEAKERS * EACH, size))
    noise[:, 0] += nuisance * random.standard_normal(SPEAKERS * EACH)
    speaker = np.repeat([f"s{i:02d}" for i in range(SPEAKERS)], EACH)
    names = np.array([f"u{i}" for i in range(SPEAKERS * EACH)])
    return Embeddings(names, speaker, (signal * voices + noise).astype(np.float32))


@pytest.fixture(scope="module")
def joined() -> Joined:
    """Two halves of what can be known of a voice, one block of noise, one that must stand aside."""
    return join(
        {
            "left": block(0.55, seed=1, nuisance=6.0),
            "right": block(0.55, seed=2),
            "noise": block(0.0, seed=3),
            "room": block(3.0, seed=4),
        }
    )


@pytest.fixture(scope="module")
def suite(joined: Joined):
    return choose_suite(joined, **CHOICE, resamples=50)


def test_what_adds_is_fused_what_tells_nothing_is_left_out(suite) -> None:
    chosen = {judged.member.hears for judged in suite.chosen}
    assert {"left", "right"} <= chosen
    assert sum(j.weight for j in suite.chosen if j.member.hears == "noise") < 0.05
    assert sum(j.weight for j in suite.judged) == pytest.approx(1.0)
    best = min(j.eer.value for j in suite.judged if j.member.hears in ("left", "right"))
    assert suite.eer.value < best - 0.02
    assert suite.eer.interval is not None


def test_what_stands_aside_is_judged_and_never_chosen(suite) -> None:
    assert suite.judged[0].member.hears == "room"
    assert suite.judged[0].weight == 0.0


def test_the_cosine_of_the_fused_vectors_is_the_weighted_sum_of_cosines(suite, joined) -> None:
    vectors = joined.embeddings.vectors[:20]
    fused = suite.apply(vectors).astype(np.float64)
    alone = [suite.alone(j.member, vectors).astype(np.float64) for j in suite.chosen]
    expected = sum(
        suite.weights[j.member] * cosine(v[:10], v[10:])
        for j, v in zip(suite.chosen, alone, strict=True)
    )
    assert cosine(fused[:10], fused[10:]) == pytest.approx(expected, abs=1e-5)


def test_names_that_mean_nothing_are_judged_to_be_nothing(joined) -> None:
    """Maps and weights of a fold never see its speakers: with wrong names nobody is recognised."""
    held = joined.embeddings
    wrong = np.random.default_rng(0).permutation(held.speaker)
    shuffled = Joined(Embeddings(held.utterance, wrong, held.vectors), joined.blocks)
    found = choose_suite(shuffled, **CHOICE, resamples=0)
    assert found.eer.value > 0.44
    heard = shuffled.only(["left", "right", "noise"])
    assert training_control(heard, suite_fit(found, Lessons(shuffled)), resamples=100).at_chance


def test_the_control_of_a_sound_choice_passes(suite, joined) -> None:
    heard = joined.only(["left", "right", "noise"])
    assert not training_control(heard, suite_fit(suite, Lessons(joined)), resamples=300).failed


def test_only_people_of_one_gender_are_compared_where_they_are_known(joined) -> None:
    names = np.unique(joined.embeddings.speaker).tolist()
    kinds = {name: "fm"[i % 2] for i, name in enumerate(names)}
    some = choose_suite(joined, **CHOICE, kinds=kinds, resamples=0).eer.n
    everybody = choose_suite(joined, **CHOICE, resamples=0).eer.n
    assert some["target"] == everybody["target"]
    assert some["nontarget"] < 0.6 * everybody["nontarget"]


def test_a_suite_is_written_and_read(suite, joined, tmp_path: Path) -> None:
    write_suite(tmp_path, suite)
    again = read_suite(tmp_path)
    assert again.judged == suite.judged
    assert again.eer == suite.eer
    assert (again.apply(joined.embeddings.vectors) == suite.apply(joined.embeddings.vectors)).all()


def test_encoders_that_heard_other_speech_are_not_joined() -> None:
    one, other = block(1.0, seed=0), block(1.0, seed=0)
    renamed = Embeddings(np.array([f"x{n}" for n in other.utterance]), other.speaker, other.vectors)
    with pytest.raises(InputError, match="not the same utterances"):
        join({"one": one, "other": renamed})


def test_weights_are_never_negative() -> None:
    random = np.random.default_rng(0)
    target = np.arange(400) < 200
    good, against = random.standard_normal((2, 400)) + [[1.0], [-1.0]] * target
    weights = fusion_weights(np.stack([good, against]), all_alike(target))
    assert weights.min() >= 0.0
    assert weights[0] > 0.95
    assert fusion_weights(np.zeros((2, 400)), all_alike(target)) == pytest.approx([0.5, 0.5])


def test_members_that_differ_by_accident_join_as_equals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trials: the plain regression prefers one of two equals, and the drawn one hardly."""
    random = np.random.default_rng(3)
    target = np.arange(60) < 30
    scores = random.standard_normal((2, 60)) + 1.0 * target
    drawn = shares(scores, fusion_weights(scores, all_alike(target)))
    with monkeypatch.context() as free:
        free.setattr(weighing, "EQUAL", 0.0)
        apart = shares(scores, fusion_weights(scores, all_alike(target)))
    assert abs(drawn[0] - 0.5) < 0.5 * abs(apart[0] - 0.5)
    strong = np.stack([scores[0] + 6.0 * target, random.standard_normal(60)])
    assert shares(strong, fusion_weights(strong, all_alike(target)))[0] > 0.6
    light, fold = np.zeros(2, dtype=bool), np.arange(60) % 5
    assert forward(strong, all_alike(target, fold), light) == [0]  # a guess does not join at all


def test_a_collection_counts_the_same_however_large_it_is() -> None:
    """One member knows people of the large collection, the other those of the small one.

    It has other scores for everybody there: who is from where is no knowledge of a person.
    """
    random = np.random.default_rng(0)
    group = np.repeat([0, 1], [4000, 400])
    target = np.concatenate([np.arange(4000) < 2000, np.arange(400) < 200])
    large = random.standard_normal(4400) + 2.0 * (target & (group == 0))
    small = random.standard_normal(4400) + 2.0 * (target & (group == 1)) + 3.0 * (group == 1)
    scores = np.stack([large, small])
    fold = np.arange(4400) % 5
    light = np.zeros(2, dtype=bool)
    apart = shares(scores, fusion_weights(scores, Tried(target, fold, group)))
    assert apart == pytest.approx([0.5, 0.5], abs=0.12)
    pooled = shares(scores, fusion_weights(scores, Tried(target, fold, np.zeros(4400, int))))
    assert pooled[0] > apart[0] + 0.1
    assert sorted(forward(scores, Tried(target, fold, group), light)) == [0, 1]
    # A collection of nothing but targets tells nothing, and breaks nothing.
    alone = Tried(target, fold, np.where(target & (group == 1), 2, group))
    assert np.isfinite(fusion_weights(scores, alone)).all()


def test_only_people_of_one_collection_are_compared(joined) -> None:
    names = np.unique(joined.embeddings.speaker).tolist()
    halves = {name: "ab"[i % 2] for i, name in enumerate(names)}
    some = choose_suite(joined, **CHOICE, collections=halves, resamples=0).eer.n
    everybody = choose_suite(joined, **CHOICE, resamples=0).eer.n
    assert some["target"] == everybody["target"]
    assert some["nontarget"] < 0.6 * everybody["nontarget"]
    unknown = {name: "" if i % 2 else "b" for i, name in enumerate(names)}
    for given in (unknown, {}, dict.fromkeys(names, "a")):
        assert large_collections(joined.embeddings, given) == {}


def test_a_few_people_of_another_collection_do_not_decide(joined) -> None:
    """Seven of forty are from elsewhere, and what hears the manner of speaking knows them alone.

    Their handful of trials counted as much as all others: effort quick on a mixed corpus chose a
    member that finds nobody, and called it the strongest attacker.
    """
    names = np.unique(joined.embeddings.speaker).tolist()
    few = set(names[:7])
    collections = {name: "b" if name in few else "a" for name in names}
    found = large_collections(joined.embeddings, collections)
    assert set(found) == set(names) - few
    nobody = {name: "a" if name == names[0] else "b" for name in names[:2]}
    trials, _ = cross_validated(joined.embeddings, Lessons(joined).fit(Member("left", "wccn"), 0))
    assert collected_trials(trials, nobody) is trials  # no two people to compare: all count
    inside = collected_trials(trials, found)
    assert {trials.speakers[i] for i in inside.enroll_speaker.tolist()} == set(found)
    thirds = {name: "abc"[i % 3] for i, name in enumerate(names)}  # all small: one crowd
    assert large_collections(joined.embeddings, thirds) == {}

    voice, manner = block(2.0, seed=1), block(0.0, seed=2)
    elsewhere = np.isin(voice.speaker, list(few))
    muffled = voice.vectors.copy()
    muffled[elsewhere] = block(0.0, seed=3).vectors[elsewhere]
    known = manner.vectors.copy()
    known[elsewhere] = block(9.0, seed=4).vectors[elsewhere]
    both = join(
        {
            "voice": Embeddings(voice.utterance, voice.speaker, muffled),
            "manner": Embeddings(manner.utterance, manner.speaker, known),
        }
    )
    choice = {"sorts": {"manner": "manner"}, "backends": FAST, "resamples": 0}
    heard = choose_suite(both, **choice, collections=collections)
    assert sum(j.weight for j in heard.chosen if j.member.hears == "voice") > 0.9


def test_a_choice_is_never_worse_than_one_voice_alone(
    joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever misleads the loss: here the worst member joins first, and alone."""
    monkeypatch.setattr(
        "voxrisk.attack.suite.forward", lambda table, tried, light: [len(table) - 1]
    )
    found = choose_suite(joined, **CHOICE, resamples=0)
    best = min(j.eer.value for j in found.judged if j.eer and not j.aside)
    assert found.eer.value == pytest.approx(best)
    assert [j.eer.value for j in found.chosen] == [best]


def test_manner_never_outweighs_voices() -> None:
    """One session flatters what hears the manner of speaking; beside voices it gets half."""
    random = np.random.default_rng(0)
    target = np.arange(600) < 300
    weak, strong = random.standard_normal((2, 600)) + [[0.7], [3.0]] * target
    scores = np.stack([weak, strong])
    assert shares(scores, fusion_weights(scores, all_alike(target)))[1] > 0.6
    capped = fusion_weights(scores, all_alike(target), np.array([False, True]))
    assert shares(scores, capped) == pytest.approx([0.5, 0.5], abs=1e-6)
    alone = fusion_weights(strong[None], all_alike(target), np.array([True]))
    assert alone == pytest.approx([1.0])
    for strength, share in ((0.6, 0.5), (0.0, 1.0)):  # of a voice that is there, and of none
        joined = join({"voice": block(strength, seed=1), "manner": block(2.0, seed=2)})
        found = choose_suite(joined, sorts={"manner": "manner"}, backends=FAST, resamples=0)
        heard = sum(j.weight for j in found.judged if j.member.hears == "manner")
        assert heard == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("name", ["wccn", "plda"])
def test_a_back_end_learns_what_varies_within_a_speaker(name: str) -> None:
    held = block(1.0, seed=5, nuisance=12.0)

    def error(backend: str) -> float:
        from voxrisk.measure import interpolated_eer

        def fit(embeddings, rows):
            part = Embeddings(held.utterance[rows], held.speaker[rows], held.vectors[rows])
            fitted = fit_map(backend, Lesson(part))
            return lambda vectors: fitted.apply(vectors, "trial")

        scored, _ = cross_validated(held, fit)
        return interpolated_eer(scored.target, scored.nontarget)

    assert error(name) < error("centred") - 0.05


def test_targets_are_erased_before_speakers_are_told() -> None:
    held = block(0.5, seed=6)
    random = np.random.default_rng(7)
    target = random.integers(0, 3, len(held.speaker))
    moved = held.vectors + 4.0 * random.standard_normal((3, 12))[target].astype(np.float32)
    given = Embeddings(held.utterance, held.speaker, moved)
    lesson = Lesson(given, targets=[str(t) for t in target])
    mapped = fit_map("erased wccn", lesson).apply(moved, "trial")
    means = np.stack([mapped[target == t].mean(axis=0) for t in range(3)])
    plain = fit_map("centred", lesson).apply(moved, "trial")
    before = np.stack([plain[target == t].mean(axis=0) for t in range(3)])
    assert np.ptp(means, axis=0).max() < 0.3 * np.ptp(before, axis=0).max()
    with pytest.raises(InputError, match="needs the target voice"):
        fit_map("erased wccn", Lesson(given))


def test_as_norm_is_a_cosine_of_two_unlike_vectors() -> None:
    """Against the plain formula of ``voxrisk score``, on every pair, with another cohort's code."""
    held = block(0.6, seed=1)
    fitted = fit_map("as-norm", Lesson(held))
    new = block(0.6, seed=2).vectors[:50]
    sides = [fitted.apply(new, side).astype(np.float64) for side in ("enroll", "trial")]
    for vectors in sides:
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    plain = fitted.enroll.apply(new).astype(np.float64)
    pairs = tuple(np.indices((50, 50)).reshape(2, -1))
    expected = score_pairs(
        plain, plain, pairs, cohort=fitted.cohort.voices, nearest=NEAREST
    ).reshape(50, 50)
    found = cosine(*sides)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 1 - 1e-6
    slope = np.polyfit(expected.ravel(), found.ravel(), 1)
    assert slope[0] > 0
    assert abs(slope[1]) < 1e-6  # a factor and nothing else


def test_procrustes_finds_the_rotation_between_two_spaces() -> None:
    """Anonymized = rotated original: enrolling originals fails as it is, and works aligned."""
    original = block(2.0, seed=3)
    turn = np.linalg.qr(np.random.default_rng(4).standard_normal((12, 12)))[0]
    noise = 0.3 * np.random.default_rng(5).standard_normal(original.vectors.shape)
    turned = (original.vectors @ turn + noise + 3.0).astype(np.float32)
    heard = Embeddings(original.utterance, original.speaker, turned)
    joined = join({"voice": heard, original_of("voice"): original})
    found = choose_suite(joined, backends=("centred", "procrustes"), resamples=0)
    eers = {j.member.backend: j.eer.value for j in found.judged}
    assert eers["procrustes"] < 0.05
    lesson = Lesson(heard, originals=original)
    fitted = fit_map("procrustes", lesson)
    apart = cosine(
        fitted.apply(original.vectors, "enroll").astype(np.float64),
        fitted.apply(turned, "trial").astype(np.float64),
    )
    assert np.diag(apart).mean() > 0.8
    plain = fit_map("centred", lesson)
    untouched = cosine(
        plain.apply(original.vectors, "enroll").astype(np.float64),
        plain.apply(turned, "trial").astype(np.float64),
    )
    assert abs(np.diag(untouched).mean()) < 0.3
    with pytest.raises(InputError, match="before it was anonymized"):
        fit_map("procrustes", Lesson(heard))


def test_a_member_that_needs_originals_is_not_there_without_them(joined: Joined) -> None:
    found = choose_suite(joined, backends=("centred", "procrustes"), resamples=0)
    assert {j.member.backend for j in found.judged} == {"centred"}


def test_gender_is_shown_and_never_chosen() -> None:
    """The direction of gender tells women from men, and nobody among women."""
    held = block(0.5, seed=6)
    names = np.unique(held.speaker).tolist()
    kinds = {name: "fm"[i % 2] for i, name in enumerate(names)}
    male = np.array([kinds[s] == "m" for s in held.speaker])
    moved = held.vectors + 6.0 * male[:, None] * np.eye(12, dtype=np.float32)[3]
    given = Embeddings(held.utterance, held.speaker, moved.astype(np.float32))
    lesson = Lesson(given, kinds=[kinds[s] for s in given.speaker])
    told = fit_map("gender", lesson).apply(given.vectors, "trial")[:, 0]
    assert np.abs(told).mean() > 0.99
    both = fit_map("gender", lesson).apply(given.vectors, "trial").astype(np.float64)
    halves = both[[np.argmax(told), np.argmin(told)]]
    assert np.linalg.norm(halves.mean(axis=0)) > 1e-6  # one of either kind has a direction still
    assert ((told > 0) == male).mean() > 0.95
    found = choose_suite(join({"voice": given}), kinds=kinds, backends=("centred", "gender"))
    gender = next(j for j in found.judged if j.member.backend == "gender")
    assert gender.aside
    assert gender.weight == 0.0
    assert gender.eer.value > 0.4


def test_the_last_layer_goes_on_from_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that reads six values of noise beside one of twelve of the voice learns the rest."""
    from voxrisk.attack import maps

    held = block(1.2, seed=8)
    begin = np.zeros((12, 6))
    begin[np.arange(6), np.arange(6)] = 1.0
    monkeypatch.setattr(maps, "last_layer", lambda width: begin)
    mapped = fit_map("last layer", Lesson(held)).enroll.matrix
    assert mapped.shape == (12, 6)
    assert np.abs(mapped[6:]).max() > 0.005
    assert np.abs(mapped[:6] - begin[:6]).max() < 0.5
    found = choose_suite(
        join({"pooled": held}), sorts={"pooled": "pooled"}, resamples=0
    )  # nothing else stands behind such vectors
    assert {j.member.backend for j in found.judged} == {"last layer"}


def test_shares_tell_how_much_a_member_moves_the_sum() -> None:
    """A score in other units has another weight and the same share."""
    random = np.random.default_rng(0)
    target = np.arange(400) < 200
    scores = random.standard_normal((2, 400)) + 1.0 * target
    wide = scores * [[1.0], [100.0]]
    for table in (scores, wide):
        weights = fusion_weights(table, all_alike(target))
        assert shares(table, weights) == pytest.approx([0.5, 0.5], abs=0.1)
        assert weights.sum() == pytest.approx(1.0)
    assert fusion_weights(wide, all_alike(target))[0] > 0.95


def test_words_are_vectors() -> None:
    from voxrisk.attack.words import word_vectors

    same, other, none = word_vectors(["The SHIP sails", "sails the ship", ""])
    assert same == pytest.approx(other)
    assert none @ same == pytest.approx(1.0)  # the constant alone
    assert same @ same > 2.0


def test_what_cannot_be_fitted_says_why() -> None:
    held = block(1.0, seed=0)
    with pytest.raises(InputError, match=f"known are {', '.join(BACKENDS)}"):
        fit_map("magic", Lesson(held))
    few = Embeddings(held.utterance[:3], held.speaker[:3], held.vectors[:3])
    with pytest.raises(InputError, match="3 utterances of 1 speakers"):
        fit_map("wccn", Lesson(few))


def test_a_parameter_that_can_be_heard_is_guessed_and_one_that_cannot_is_not() -> None:
    held = block(1.0, seed=8)
    values = np.exp(0.1 * held.vectors[:, 2].astype(np.float64)) * 0.7
    found = fit_guess(held, values)
    assert found.correlation > 0.95
    assert found.of(held.vectors) == pytest.approx(values, rel=0.05)
    assert fit_guess(held, np.random.default_rng(0).permutation(values)).correlation < 0.25
    with pytest.raises(InputError, match="all values are the same"):
        fit_guess(held, np.full(values.size, 0.8))
