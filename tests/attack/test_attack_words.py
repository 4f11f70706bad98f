"""The attacker who reads: words give speakers away, and the voice has no part in it."""

import math
from pathlib import Path

import numpy as np
import pytest

from voxrisk.attack.words import score_words
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.trials import Trial, read_enrolments
from voxrisk.files.scores import read_trials
from voxrisk.measure.eer import rocch_eer
from voxrisk.types import InputError


def said(utterance: str, speaker: str, text: str | None) -> Utterance:
    return Utterance(utterance, Path(utterance), speaker, text=text)


ENROLLED = [
    said("a1", "ann", "the whale"),
    said("a2", "ann", "the sea"),
    said("b1", "bob", "the market fell"),
]
TRIED = [said("x", "ann", "The WHALE, the whale!"), said("y", "bob", "zebra")]
PAIRS = [Trial("ann", "x", True), Trial("bob", "x", False), Trial("bob", "y", True)]


def test_words_against_the_formula_by_hand() -> None:
    """Weight f · (1 + ln((1 + N) / (1 + n_w))), documents of one enrolment together, cosine."""
    common, rare = 1.0, 1.0 + math.log(3 / 2)
    ann = np.array([2 * common, rare, rare])  # the, whale, sea
    bob = np.array([common, rare, rare])  # the, market, fell
    x = np.array([2 * common, 2 * rare])  # the, whale
    score = score_words(ENROLLED, TRIED, PAIRS).score
    unit = np.linalg.norm
    assert score[0] == pytest.approx(ann[:2] @ x / unit(ann) / unit(x))
    assert score[1] == pytest.approx(bob[0] * x[0] / unit(bob) / unit(x))
    assert score[2] == 0.0  # a word nobody enrolled says nothing


def test_the_trials_as_a_whole_do_not_change_a_score() -> None:
    """Document frequencies come from the enrolled texts only; the order is irrelevant."""
    alone = score_words(ENROLLED, TRIED[:1], PAIRS[:2]).score
    more = [*TRIED, said("z", "ann", "whale whale sea market")]
    listed = [Trial("ann", "z", True), *PAIRS[1::-1]]
    assert score_words(ENROLLED[::-1], more, listed).score[:0:-1] == pytest.approx(alone)


def test_missing_texts_and_names_are_said() -> None:
    with pytest.raises(InputError, match="utterance n has no text"):
        score_words(ENROLLED, [said("n", "ann", None)], [Trial("ann", "n", True)])
    with pytest.raises(InputError, match="utterance a1 has no text"):
        score_words([said("a1", "ann", "...")], TRIED, PAIRS[:1])
    with pytest.raises(InputError, match="trial utterance q is not in the corpus"):
        score_words(ENROLLED, TRIED, [Trial("ann", "q", True)])
    with pytest.raises(InputError, match="enrolment cy: no utterance"):
        score_words(ENROLLED, TRIED, [Trial("cy", "x", False)])
    with pytest.raises(InputError, match="enrolment ann: utterance gone is not in the corpus"):
        score_words(ENROLLED, TRIED, PAIRS[:1], enrolments={"ann": ["gone"]})
    with pytest.raises(InputError, match="trial list is empty"):
        score_words(ENROLLED, TRIED, [])


def test_books_give_readers_away_a_little(shared: Path) -> None:
    """librispeech_eval, trials.csv: 45.3 % by an independent TF-IDF with cosine (± 0.5)."""
    folder = shared / "librispeech_eval"
    rows = read_corpus(folder)
    listed = [Trial(*pair) for pair in read_trials(folder / "trials.csv").pairs()]
    enrolments = read_enrolments(folder / "enroll.csv")
    scored = score_words(rows, rows, listed, enrolments=enrolments)
    assert rocch_eer(scored.target, scored.nontarget) == pytest.approx(0.453, abs=0.005)
