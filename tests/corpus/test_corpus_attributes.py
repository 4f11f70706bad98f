"""Columns as attributes: what is used, what is left out, and what is refused with a reason."""

from dataclasses import replace

import pytest

from simulated_attributes import rows
from voxrisk.corpus.attributes import columns_of, labels_like, read_attribute
from voxrisk.types import InputError


def test_a_column_of_classes() -> None:
    found = read_attribute(rows({"accent": ["North"] * 4 + ["south"] * 3}), "accent")
    assert (found.kind, found.per) == ("category", "speaker")
    assert found.classes == ("north", "south")
    assert found.speakers == (4, 3)
    assert found.label["s00-0"] == 0
    assert not found.refused


def test_speakers_without_a_label_take_no_part_and_are_counted() -> None:
    given = rows({"gender": ["f"] * 4 + ["m"] * 4 + [""] * 3})
    found = read_attribute(given, "gender")
    assert found.unlabelled == 3
    assert len(found.label) == 16
    unknown = rows({"accent": ["a"] * 3 + ["b"] * 3 + ["unknown", "N/A", "-"]})
    assert read_attribute(unknown, "accent").unlabelled == 3


def test_a_constant_is_refused() -> None:
    assert "nothing to infer" in read_attribute(rows({"gender": ["f"] * 6}), "gender").refused
    assert "nothing to infer" in read_attribute(rows({"age": ["30"] * 6}), "age").refused


def test_a_class_with_two_speakers_is_left_out_and_counted() -> None:
    found = read_attribute(rows({"accent": ["a"] * 4 + ["b"] * 4 + ["c"] * 2}), "accent")
    assert found.classes == ("a", "b")
    assert (found.rare, found.rare_speakers) == (1, 2)
    few = read_attribute(rows({"accent": ["a"] * 4 + ["c"] * 2}), "accent")
    assert few.refused == (
        "of 2 classes only 1 has at least 3 speakers; some must be learned from and others tested"
    )


def test_ages_are_numbers_in_groups_of_about_as_many_speakers() -> None:
    ages = [str(a) for a in (6, 7, 8, 20, 21, 22, 30, 31, 32, 50, 51, 52)]
    found = read_attribute(rows({"age": ages}), "age")
    assert found.kind == "number"
    assert found.classes == ("6 to 8", "20 to 22", "30 to 32", "50 to 52")
    assert found.speakers == (3, 3, 3, 3)
    assert found.value["s03-1"] == 20.0


def test_ages_as_text_are_classes_and_a_few_texts_among_numbers_take_no_part() -> None:
    text = read_attribute(rows({"age": ["twenties"] * 4 + ["60-69"] * 3}), "age")
    assert (text.kind, text.classes) == ("category", ("60-69", "twenties"))
    mixed = [f"{20 + i} years" for i in range(12)] + ["old", "forties"]
    found = read_attribute(rows({"age": mixed}), "age")
    assert found.kind == "number"
    assert found.unread == 2
    assert found.value["s00-0"] == 20.0


def test_thirty_categories_work_where_there_are_speakers_and_are_refused_where_not() -> None:
    many = read_attribute(rows({"town": [f"t{i % 30}" for i in range(90)]}), "town")
    assert len(many.classes) == 30
    alone = read_attribute(rows({"town": [f"t{i}" for i in range(30)]}), "town")
    assert alone.refused.startswith("of 30 classes only 0 have at least 3 speakers")
    crowd = read_attribute(rows({"town": [f"t{i % 60}" for i in range(180)]}), "town")
    assert "join them to fewer" in crowd.refused


def test_what_changes_within_a_speaker_is_a_fact_of_the_utterance() -> None:
    given = rows({"x": ["1"] * 5}, utterances=4)
    moods = [replace(r, extra={"mood": ("calm", "angry")[i % 2]}) for i, r in enumerate(given)]
    found = read_attribute(moods, "mood")
    assert found.per == "utterance"
    assert found.speakers == (5, 5)


def test_a_few_different_numbers_are_classes() -> None:
    assert read_attribute(rows({"intensity": ["1", "2"] * 4}), "intensity").kind == "category"


def test_labels_of_training_speech_follow_the_classes_under_test() -> None:
    ages = [str(a) for a in (6, 7, 8, 30, 31, 32)]
    like = read_attribute(rows({"age": ages}), "age")
    label, value = labels_like(rows({"age": ["5", "60", "old", ""]}), like)
    assert label == {"s00-0": 0, "s00-1": 0, "s01-0": 1, "s01-1": 1}
    assert value["s01-0"] == 60.0
    accent = read_attribute(rows({"accent": ["a"] * 3 + ["b"] * 3}), "accent")
    assert set(labels_like(rows({"accent": ["B", "c"]}), accent)[0].values()) == {1}


def test_an_unknown_column_and_what_is_no_attribute_are_errors_that_name_the_others() -> None:
    given = rows({"gender": ["f", "m"], "accent": ["a", "b"]})
    assert columns_of(given) == ["gender", "accent"]
    with pytest.raises(InputError, match="no column 'health' in the manifest; there is gender"):
        read_attribute(given, "health")
    with pytest.raises(InputError, match="'speaker' is no attribute"):
        read_attribute(given, "speaker")
    assert read_attribute(rows({"gender": ["", ""], "x": ["1", "2"]}), "gender").refused == (
        "it is not known of anybody"
    )
