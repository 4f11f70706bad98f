"""Everybody is in one group, and no group is too small to be told unless it has to be."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance
from voxrisk.corpus.attributes import read_attribute
from voxrisk.corpus.groups import SEVERAL, SMALLEST, UNKNOWN, group_speakers


def people(values: list[str], column: str = "accent") -> list[Utterance]:
    return [
        Utterance(f"u{i}", Path("x.wav"), f"s{i}", extra={column: value})
        for i, value in enumerate(values)
    ]


@given(st.lists(st.sampled_from(["", "scots", "Scots", "irish", "27", "31", "welsh", "8.5"])))
def test_nobody_is_dropped(values: list[str]) -> None:
    found = group_speakers(people(values), "accent")
    assert set(found.member) == {f"s{i}" for i in range(len(values))}
    assert set(found.member.values()) == set(found.order)
    assert len(found.order) == len(set(found.order))


@given(st.lists(st.integers(18, 90), min_size=1, max_size=60))
def test_numbers_become_bands_of_enough_people_in_order(ages: list[int]) -> None:
    """Bands do not overlap, and only a corpus that has too few people has a band that is small."""
    rows = [Utterance(f"u{i}", Path("x"), f"s{i}", age=str(a)) for i, a in enumerate(ages)]
    found = group_speakers(rows, "age")
    size = Counter(found.member.values())
    assert len(found.order) == 1 or min(size.values()) >= SMALLEST
    assert len(found.order) <= 4
    bands = [[a for a, row in zip(ages, rows, strict=True) if found.member[row.speaker] == band]
             for band in found.order]  # fmt: skip
    for lower, higher in pairwise(bands):
        assert max(lower) < min(higher)


def test_small_kinds_are_put_together_and_the_unknown_are_counted() -> None:
    values = ["scots"] * 4 + ["Scots"] * 2 + ["irish", "welsh", "welsh"] + ["?"]
    found = group_speakers(people(values), "accent")
    assert Counter(found.member.values()) == {
        "scots": 6, "2 smaller groups together": 3, UNKNOWN: 1,
    }  # fmt: skip
    assert found.order == ("scots", "2 smaller groups together", UNKNOWN)


def test_who_has_two_values_is_in_neither_group() -> None:
    one, two = people(["calm", "angry"], "emotion")
    rows = [one, Utterance("u9", Path("x"), one.speaker, extra={"emotion": "angry"}), two]
    assert group_speakers(rows, "emotion").member == {"s0": SEVERAL, "s1": "angry"}


def test_nobody_is_1234_years_old() -> None:
    """AudioMNIST has such a speaker, and a band "30 to 1234" would be a false figure."""
    ages = ["22", "24", "25", "26", "27", "30", "31", "32", "33", "34", "1234"]
    rows = [Utterance(f"u{i}", Path("x"), f"s{i}", age=a) for i, a in enumerate(ages)]
    found = group_speakers(rows, "age")
    assert found.order == ("22 to 27", "30 to 34", UNKNOWN)
    assert found.member["s10"] == UNKNOWN
    assert read_attribute(rows, "age").unread == 1
