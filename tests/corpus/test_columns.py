"""A corpus by column is the same corpus: the same rows, filters, splits and complaints."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.columns import Columns, codes, numbers, read_columns, where, write_columns
from voxrisk.corpus.splits import a_and_b, by_session, by_speaker
from voxrisk.corpus.table import COLUMNS
from voxrisk.types import InputError

arrow = pytest.importorskip("pyarrow", reason="no pyarrow; pip install 'voxrisk[parquet]'")
parquet = pytest.importorskip("pyarrow.parquet")
ALL = (*COLUMNS, "accent")


def corpora(sessions: bool) -> st.SearchStrategy[list[Utterance]]:
    one = st.tuples(
        st.integers(0, 5), st.integers(0, 3), st.sampled_from(["f", "m", None]),
        st.floats(0.5, 9.0).map(lambda x: round(x, 2)), st.sampled_from(["us", "in", "ü,\"x"]),
    )  # fmt: skip
    return st.lists(one, min_size=1, max_size=40).map(
        lambda found: [
            Utterance(
                f"u{k * 37 % 101:03d}-{k}", Path(f"clips/{k}.wav"), f"s{who}", gender=gender,
                session=f"x{session}" if sessions else None, duration=seconds,
                text=f"number {k}", extra={"accent": accent},
            )
            for k, (who, session, gender, seconds, accent) in enumerate(found)
        ]
    )  # fmt: skip


def by_column(rows: list[Utterance], folder: Path) -> tuple[list[Utterance], Columns]:
    """The rows as a CSV manifest gives them, and as two shards of Parquet do."""
    rows = [
        Utterance(**{n: getattr(r, n) for n in (*COLUMNS, "extra") if n != "path"},
                  path=folder / r.path) for r in rows
    ]  # fmt: skip
    write_corpus(folder / "rows.csv", rows)
    half = len(rows) // 2
    for shard, part in enumerate((rows[:half], rows[half:]) if half else (rows,)):
        write_columns(folder / f"manifest-{shard}.parquet", part)
    return read_corpus(folder / "rows.csv", audio=False), read_columns(folder, columns=ALL)


@given(corpora(sessions=True), st.integers(0, 3))
def test_rows_filters_and_splits_are_those_of_the_list(rows: list[Utterance], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        listed, columns = by_column(rows, Path(folder))
        assert list(columns) == listed == read_corpus(folder, audio=False)
        assert [columns[k] for k in range(len(listed))] == listed
        for conditions in (["gender=f"], ["duration>=2", "accent!=us"], ["speaker=s1"]):
            assert same(lambda r: list(where(r, conditions)), listed, columns)  # noqa: B023
        for split in (by_session, a_and_b, by_speaker):
            assert same(
                lambda r: {k: list(v) for k, v in split(r, seed=seed).sides.items()},  # noqa: B023
                listed, columns,
            )  # fmt: skip


@given(corpora(sessions=False))
def test_a_split_without_sessions_is_that_of_the_list(rows: list[Utterance]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        listed, columns = by_column(rows, Path(folder))
        assert same(lambda r: {k: list(v) for k, v in by_session(r).sides.items()}, listed, columns)
        chosen = columns[1:]
        code, values = codes(chosen, "speaker")
        assert [values[k] for k in code] == [row.speaker for row in listed[1:]]
        assert numbers(chosen, "duration").tolist() == [row.duration for row in listed[1:]]


def same(what: Any, *of: Any) -> bool:
    found = []
    for rows in of:
        try:
            found.append(what(rows))
        except InputError as error:
            found.append(str(error))
    return bool(found[0] == found[1])


def test_a_side_keeps_all_columns_and_finds_its_audio(tmp_path: Path) -> None:
    rows = [
        Utterance(f"u{k}", tmp_path / "clips" / f"{k}.wav", f"s{k % 3}", text=f"t{k}",
                  session=str(k % 2), duration=1.0 + k) for k in range(12)
    ]  # fmt: skip
    (tmp_path / "clips").mkdir()
    for row in rows:
        row.path.touch()
    write_columns(tmp_path / "m.parquet", rows)
    side = by_session(read_columns(tmp_path / "m.parquet", audio=True)).sides["trial"]
    assert isinstance(side, Columns)
    side.write(tmp_path / "elsewhere" / "manifest.parquet")
    again = read_corpus(tmp_path / "elsewhere")
    assert sorted(again, key=lambda r: r.utterance) == sorted(
        (row for row in rows if row.utterance in {r.utterance for r in side}),
        key=lambda r: r.utterance,
    )
    assert 0 < len(again) < len(rows)


GOOD = {"utterance": ["a", "b"], "path": ["a.wav", "b.wav"], "speaker": ["s", "t"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"speaker": ["s", " "]}, "row 2: speaker is empty"),
        ({"path": [None, "b"]}, "row 1: path is empty"),
        ({"utterance": ["a", "a"]}, "'a' is used twice"),
        ({"duration": [1.0, np.nan]}, "row 2: duration is nan"),
        ({"duration": ["1.0", "soon"]}, "duration is no numbers"),
        ({"duration": [[1.0], [2.0]]}, "duration is no numbers"),
        ({"speaker": [{"id": 1}, {"id": 2}]}, "speaker is no text"),
        ({"path": [b"a.wav", b"\xff"]}, "path is no text"),
        ({"start": [-1.0, None]}, "row 1: start is -1.0"),
        ({"gender": ["f", "queen"]}, "gender is 'queen'"),
    ],
)
def test_a_bad_cell_is_named(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    parquet.write_table(arrow.table({**GOOD, **change}), tmp_path / "m.parquet")
    with pytest.raises(InputError, match=words):
        by_speaker(read_columns(tmp_path / "m.parquet"))


def test_long_strings_and_numbers_for_names_are_understood(tmp_path: Path) -> None:
    """As polars and pandas write them; an empty cell is no duration."""
    table = arrow.table({
        "utterance": arrow.array([7, 8]), "path": arrow.array(["a", "b"], arrow.large_string()),
        "speaker": [1, 2], "duration": arrow.array(["1.5", ""], arrow.large_string()),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "m.parquet")
    rows = list(read_columns(tmp_path / "m.parquet"))
    assert [(r.utterance, r.speaker, r.duration) for r in rows] == [
        ("7", "1", 1.5),
        ("8", "2", None),
    ]


def test_what_is_no_manifest_and_audio_that_is_missing_are_said(tmp_path: Path) -> None:
    parquet.write_table(arrow.table({"utterance": ["a"], "speaker": ["s"]}), tmp_path / "m.parquet")
    with pytest.raises(InputError, match="no column path"):
        read_columns(tmp_path / "m.parquet")
    with pytest.raises(InputError, match="no Parquet manifest"):
        read_columns(tmp_path)
    parquet.write_table(arrow.table(GOOD), tmp_path / "m.parquet")
    with pytest.raises(InputError, match=r"row 1: no audio file .*a\.wav"):
        read_columns(tmp_path / "m.parquet", audio=True)
    wrong = {"gender": "column=value", "age>=x": "no number", "accent=us": "no column accent"}
    for condition, words in {**wrong, "speaker=z": "no row"}.items():
        with pytest.raises(InputError, match=words):
            where(read_columns(tmp_path / "m.parquet"), [condition])
