"""Attackers on attributes: certainty from a leak, chance from noise, nobody on both sides."""

from dataclasses import replace

import numpy as np
import pytest

from simulated_attributes import labelled
from voxrisk.attack import attributes
from voxrisk.attack.attributes import (
    ALL,
    Labelled,
    guess_by_folds,
    join_utterances,
    train_guesser,
)
from voxrisk.measure.attributes import balanced_accuracy, measure_attribute
from voxrisk.measure.logistic import fit_weighing
from voxrisk.measure.posteriors import believe
from voxrisk.types import Estimate, InputError


def figures(known: Labelled, classes: int = 2, seed: int = 0) -> dict[str, Estimate]:
    (scores,), _ = guess_by_folds(known, [known], classes=classes, seed=seed)
    b = believe(scores, known.truth, known.speaker, classes=classes, value=known.value)
    return {e.name: e for e in measure_attribute(b, resamples=200, seed=seed)}


def test_a_column_copied_into_the_features_gives_certainty() -> None:
    known = labelled(speakers=30, classes=3)
    leak = np.eye(3, dtype=np.float32)[known.truth]
    vectors = np.concatenate([known.vectors["voice"], 5.0 * leak], axis=1)
    found = figures(replace(known, vectors={"voice": vectors}), classes=3)
    assert found["uar"].value > 0.99
    assert found["attribute_bits"].value > 0.9 * np.log2(3)


def test_a_name_tag_of_each_speaker_tells_nothing_about_others() -> None:
    """Would an utterance of a speaker be on both sides, name tags would give certainty."""
    known = labelled(speakers=24, classes=2)
    place = {s: i for i, s in enumerate(np.unique(known.speaker).tolist())}
    tags = 20.0 * np.eye(24, dtype=np.float32)[[place[s] for s in known.speaker.tolist()]]
    found = figures(replace(known, vectors={"tag": tags}))
    assert found["uar"].interval is not None
    assert found["uar"].interval.low <= 0.5
    assert found["uar"].value < 0.75


def test_no_speaker_is_on_both_sides_of_any_split(monkeypatch: pytest.MonkeyPatch) -> None:
    known, tested = labelled(speakers=12), labelled(speakers=12, seed=3)
    seen: list[set[str]] = []
    train = attributes.train_guesser

    def spy(rows: Labelled, **more: int) -> attributes.Guesser:
        seen.append(set(rows.speaker.tolist()))
        guess = train(rows, **more)  # type: ignore[arg-type]
        called = attributes.Guesser.__call__

        def check(self: attributes.Guesser, test: Labelled) -> np.ndarray:
            if self is guess:
                assert not seen[-1] & set(test.speaker.tolist())
            return called(self, test)

        monkeypatch.setattr(attributes.Guesser, "__call__", check)
        return guess

    monkeypatch.setattr(attributes, "train_guesser", spy)
    guess_by_folds(known, [known, tested], classes=2, seed=0)
    assert len(seen) == attributes.FOLDS
    assert all(len(s) == 10 for s in seen)


def test_shuffled_among_speakers_an_attribute_is_at_chance_and_told_it_is_not() -> None:
    """The whole attacker, with its choice of features and caution, on 40 shuffled attributes."""
    above = 0
    for seed in range(40):
        span = figures(labelled(speakers=16, utterances=4, size=6, seed=seed), seed=seed)["uar"]
        assert span.interval is not None
        above += span.interval.low > span.chance
    assert above <= 5
    assert figures(labelled(told=2.0))["uar"].interval.low > 0.6  # type: ignore[union-attr]


def test_features_are_chosen_on_training_speakers_and_not_on_those_under_test() -> None:
    """What tells the class of the people under test only is neither chosen nor believed."""
    train, test = labelled(speakers=30, told=1.5, seed=1), labelled(speakers=30, told=1.5, seed=2)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((train.truth.size, 2)).astype(np.float32)
    leak = 5.0 * np.eye(2, dtype=np.float32)[test.truth]
    turned = leak[:, ::-1]
    known = replace(train, vectors={"voice": train.vectors["voice"], "other": noise})
    guess = train_guesser(known, classes=2, seed=0)
    voice = test.vectors["voice"]
    heard = {
        name: balanced_accuracy(
            test.truth, guess(replace(test, vectors={"voice": voice, "other": v})).argmax(axis=1)
        )
        for name, v in {"leak": leak, "turned": turned}.items()
    }
    assert guess.features in ("voice", ALL)
    assert min(heard.values()) > 0.75
    assert abs(heard["leak"] - heard["turned"]) < 0.1


def test_the_better_features_win_and_all_together_can() -> None:
    known = labelled(speakers=30, told=1.5)
    noise = np.random.default_rng(0).standard_normal((known.truth.size, 4)).astype(np.float32)
    both = replace(known, vectors={"noise": noise, "voice": known.vectors["voice"]})
    assert train_guesser(both, classes=2, seed=0).features != "noise"


def test_kinds_of_features_are_weighed_and_not_averaged() -> None:
    """Beside a loud kind that says nothing, a quiet one that knows keeps all it knows."""
    known = labelled(speakers=40, told=1.5)
    rng = np.random.default_rng(0)
    noise = {f"noise {i}": rng.standard_normal((known.truth.size, 40)) for i in range(3)}
    alone = figures(known)["uar"].value
    beside = figures(replace(known, vectors={**noise, "voice": known.vectors["voice"]}))
    assert beside["uar"].value > alone - 0.03


def test_opinions_are_weighed_as_they_deserve() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 600)
    knows = 2.0 * np.eye(3)[truth] + rng.standard_normal((600, 3))
    lies, nothing = -knows + rng.standard_normal((600, 3)), rng.standard_normal((600, 3))
    share = np.full(600, 1 / 600)
    found = fit_weighing(np.stack([knows, nothing, lies]), truth, share=share, caution=1e-3)
    assert found.weights[0] > 5 * found.weights[1]
    assert found.weights[2] == 0.0
    assert balanced_accuracy(truth, found(np.stack([knows, nothing, lies])).argmax(1), share) > 0.7


def test_numbers_are_guessed_by_regression() -> None:
    rng = np.random.default_rng(0)
    known = labelled(speakers=40)
    own = dict(zip(np.unique(known.speaker).tolist(), rng.uniform(10, 70, 40), strict=True))
    age = np.array([own[s] for s in known.speaker.tolist()])
    vectors = known.vectors["voice"].copy()
    vectors[:, 0] += (age - 40.0).astype(np.float32) / 5.0
    group = np.searchsorted([25.0, 40.0, 55.0], age).astype(np.int64)
    found = figures(Labelled(known.speaker, group, {"voice": vectors}, age), classes=4)
    assert found["correlation"].value > 0.8
    assert found["mean_error"].value < 0.7 * found["mean_error"].chance
    assert found["uar"].value > 0.45


def test_several_utterances_tell_more_than_one() -> None:
    known = labelled(speakers=24, told=0.9, per="utterance", classes=4, utterances=16)
    names = np.arange(known.truth.size).astype(str)
    (scores,), _ = guess_by_folds(known, [known], classes=4, seed=0)
    by_length = {}
    for length in (1, 4):
        joined, truth, _, key, value = join_utterances(scores, known, names, length=length, seed=0)
        assert value is None
        assert np.unique(key).size == key.size
        by_length[length] = balanced_accuracy(truth, joined.argmax(axis=1))
    assert by_length[4] > by_length[1] + 0.05


def test_groups_of_utterances_are_of_one_speaker_and_class_and_use_each_once() -> None:
    known = labelled(speakers=5, utterances=7, classes=2, per="utterance")
    names = np.array([f"{s}-{i}" for i, s in enumerate(known.speaker.tolist())])
    scores = np.stack([known.truth, known.truth], axis=1).astype(float)
    joined, truth, speaker, key, _ = join_utterances(scores, known, names, length=3, seed=0)
    assert (joined[:, 0] == truth).all()
    used = [name for k in key.tolist() for name in k.split("|")]
    assert len(used) == len(set(used)) == 3 * truth.size
    assert all(name.startswith(s) for k, s in zip(key.tolist(), speaker.tolist(), strict=True)
               for name in k.split("|"))  # fmt: skip


def test_nobody_with_so_many_utterances_is_an_error() -> None:
    known = labelled(speakers=4, utterances=2)
    with pytest.raises(InputError, match="nobody has 5 utterances"):
        join_utterances(np.zeros((8, 2)), known, np.arange(8).astype(str), length=5, seed=0)
