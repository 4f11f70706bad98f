"""The normaliser: what is the same when spoken is the same when written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.types import InputError
from voxrisk.utility.text import normalise, number_words
from voxrisk.utility.wer import WordErrors, character_errors, word_error_rate, word_errors


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Mr. and Mrs. Smith", "MISTER AND MISSUS SMITH"),
        ("It's 3.5 miles.", "IT'S THREE POINT FIVE MILES"),
        ("I couldn’t've known, I'm sure", "I COULD NOT HAVE KNOWN I AM SURE"),
        (
            "$1 and $2.5 million, 20%",
            "ONE DOLLAR AND TWO POINT FIVE MILLION DOLLARS TWENTY PERCENT",
        ),
        ("1,200 men in 1905", "ONE THOUSAND TWO HUNDRED MEN IN NINETEEN O FIVE"),
        ("the 3rd, 20th and 112th", "THE THIRD TWENTIETH AND ONE HUNDRED AND TWELFTH"),
        ("the 1860s", "THE EIGHTEEN SIXTIES"),
        ("‘Tis a well-to-do man—really!", "TIS A WELL TO DO MAN REALLY"),
        ("007", "zero zero seven"),
        ("version 1.2.3", "VERSION ONE POINT TWO THREE"),
    ],
)
def test_written_and_spoken_forms_meet(written: str, spoken: str) -> None:
    assert normalise(written) == normalise(spoken)


def test_different_words_stay_different() -> None:
    assert normalise("the boy's") != normalise("the boys")
    assert normalise("bread and five") == "bread and five"
    assert normalise("colour") != normalise("color")


def test_other_languages_keep_their_marks_and_numbers() -> None:
    assert normalise("Où est-il? Là-bas!", language="fr") == "où est il là bas"
    assert normalise("हिन्दी भाषा।", language="hi") == "हिन्दी भाषा"
    assert normalise("I can't: 5", language="fr") == "i can't 5"


@given(st.text(st.sampled_from("aAdmnorstv0123489.,'’-$% &"), max_size=30) | st.text(max_size=20))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_no_two_numbers_are_said_alike() -> None:
    numbers = [*range(12_000), *range(990_000, 1_002_000), 10**12 - 1, 10**9, 10**6]
    assert len({number_words(n) for n in numbers}) == len(set(numbers))


WORDS = st.lists(st.sampled_from(["red", "green", "blue"]), max_size=8)


@given(WORDS, WORDS)
def test_errors_are_counted_against_the_reference(reference: list[str], heard: list[str]) -> None:
    """Words and errors obey the laws of an edit distance."""
    found = word_errors(" ".join(reference), " ".join(heard))
    assert found.words == len(reference)
    assert found.hits + found.substitutions + found.insertions == len(heard)
    assert abs(len(reference) - len(heard)) <= found.errors <= max(len(reference), len(heard))
    assert (found.errors == 0) == (reference == heard)


def test_words_where_none_were_said_are_insertions() -> None:
    assert word_errors("...", "thank you") == WordErrors(0, 0, 0, 2)


def test_a_word_error_rate_needs_words_and_their_speakers() -> None:
    nothing = word_errors("...", "")
    assert nothing == WordErrors(0, 0, 0, 0)
    assert word_errors("two words", "") == WordErrors(0, 0, 2, 0)
    with pytest.raises(InputError, match="the transcripts hold no words"):
        word_error_rate([nothing], ["s"])
    with pytest.raises(InputError, match="1 utterances but 2 speakers; give one for each"):
        word_error_rate([word_errors("a", "a")], ["s", "t"])


@given(st.text("abc 今天", min_size=0, max_size=12), st.text("abc 今天", min_size=0, max_size=12))
def test_character_errors_are_an_edit_distance_without_spaces(said: str, heard: str) -> None:
    """The oracle is the textbook's table of distances."""
    left, right = said.replace(" ", ""), heard.replace(" ", "")
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        new = [i]
        for j, b in enumerate(right, start=1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (a != b)))
        row = new
    found = character_errors(said, heard, language="zh")
    assert (found.errors, found.words) == (row[-1], len(left))
