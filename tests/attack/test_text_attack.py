"""The attack on text as a whole: what it gives, and what it refuses."""

import numpy as np
import pytest
from test_trigram_scorer import MODEL, babble

from voxrisk.attack.successors import Slices
from voxrisk.attack.text_attack import LIFT, TOGETHER, TRIGRAM, text_attack, whole_utterances
from voxrisk.types import InputError


def cut(sentences: list[list[str]], length: int = 3, people: int = 10) -> Slices:
    rows = [
        (f"s{k % people}", f"u{k}", place, tuple(words[at : at + length]))
        for k, words in enumerate(sentences)
        for place, at in enumerate(range(0, len(words), length))
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    return Slices(*(tuple(column) for column in zip(*(rows[i] for i in order), strict=True)))


def test_every_attacker_finds_something_and_all_together_most() -> None:
    found = text_attack(cut(babble(120, seed=4)), language_model=MODEL)
    assert list(found.figures) == [TRIGRAM, LIFT, TOGETHER]
    assert list(found.scorers) == [TRIGRAM, LIFT]
    mean = {name: figures["mean_rank"] for name, figures in found.figures.items()}
    assert all(e.interval is not None and e.interval.high < e.chance for e in mean.values())
    assert mean[TOGETHER].value < min(mean[TRIGRAM].value, mean[LIFT].value) + 0.01
    assert found.unknown == 0.0


def test_words_in_a_random_order_give_chance() -> None:
    """The same slices, but what stands in them was drawn anew: nothing is left to find."""
    slices = cut(babble(120, seed=4))
    words = np.array(slices.words)
    drawn = np.random.default_rng(1).permutation(len(slices))
    shuffled = Slices(
        slices.speaker, slices.source, slices.place, tuple(tuple(words[i]) for i in drawn)
    )
    found = text_attack(shuffled, language_model=MODEL)
    for name, figures in found.figures.items():
        assert figures["mean_rank"].value == pytest.approx(0.5, abs=0.05), name


def test_one_speaker_is_weighed_over_utterances() -> None:
    found = text_attack(cut(babble(20, seed=5), people=1), language_model=MODEL)
    assert TOGETHER in found.figures
    assert found.figures[TOGETHER]["mean_rank"].interval is None


def test_knowing_more_restores_more() -> None:
    slices = cut(babble(60, seed=6))
    attack = text_attack(slices, language_model=MODEL)
    found = whole_utterances(attack.scorer, slices)
    share = {pool: figures["pairs_restored"] for pool, figures in found.items()}
    assert share["all"].value <= share["speaker"].value <= share["utterance"].value
    assert all(e.value > e.chance for e in share.values())
    # Four slices of an utterance in a random order: three of its twelve links are right.
    assert share["utterance"].chance == pytest.approx(1 / 4, abs=0.03)


def test_slices_without_words_another_language_and_one_word_utterances_are_told_apart() -> None:
    slices = cut(babble(4))
    silent = Slices(slices.speaker, slices.source, slices.place, ((),) * len(slices))
    with pytest.raises(InputError, match="have no words"):
        text_attack(silent, language_model=MODEL)
    foreign = tuple(("der", "hund", "sat") for _ in slices.words)
    with pytest.raises(InputError, match="67% of the words: they seem to be of another language"):
        text_attack(
            Slices(slices.speaker, slices.source, slices.place, foreign), language_model=MODEL
        )
    single = Slices(("a", "b", "c"), ("u", "v", "w"), (0, 0, 0), (("cat",), ("sat",), ("on",)))
    with pytest.raises(InputError, match="no slice has a successor"):
        text_attack(single, language_model=MODEL)
    with pytest.raises(InputError, match="no neural model 'gpt'"):
        text_attack(slices, language_model=MODEL, neural=("gpt",))
