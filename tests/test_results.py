"""One form for the results of every command: typed, versioned, documented."""

import json
from pathlib import Path

import pytest

from voxrisk.notices import NOTICES, Notice, notice
from voxrisk.results import SCHEMA, AttackResult, Criterion, Results, Verdict, json_schema
from voxrisk.types import Estimate, InputError, Interval

ROOT = Path(__file__).parents[1]


def small() -> Results:
    eer = Estimate("rocch_eer", 0.2, 0.5, {"target": 3}, "x", Interval(0.1, 0.3, 0.95, "exact"))
    linked = Estimate("linkability", 0.4, 0.1, {}, "x", None, {"L": 1, "N": 10})
    found = Criterion(name="linkability", level="above chance", sentence="s", value=linked)
    return Results(
        kind="evaluate",
        verdict=Verdict(headline="h", criteria=(found,)),
        attacks=(AttackResult(name="informed", figures={"rocch_eer": eer}, crowd=(linked,)),),
        notices=(notice("left_out", count=1, why="one session", speakers=["19"]),),
    )


def test_results_survive_the_file(tmp_path: Path) -> None:
    small().write(tmp_path)
    again = Results.read(tmp_path)
    assert again == small()
    assert again == Results.read(tmp_path / "results.json")
    assert again.attackers["informed"].eer.interval == Interval(0.1, 0.3, 0.95, "exact")
    assert again.attackers["informed"].at("linkability", 1, 10) is not None
    assert again.attackers["informed"].at("linkability", 3, 10) is None
    assert again.verdict is not None
    assert again.verdict["linkability"].assessed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "schema None"),
        ('{"schema": 1, "attackers": []}', r"schema 1, and this voxrisk reads schema 2.*older"),
        ('{"schema": 3}', "schema 3.*newer"),
        (f'{{"schema": {SCHEMA}}}', "missing required field `kind`"),
        (f'{{"schema": {SCHEMA}, "kind": 5}}', r"Expected `str`, got `int` - at `\$.kind`"),
        (f'{{"schema": {SCHEMA}, "kind": "x", "titel": "y"}}', r"unknown field `\$.titel`"),
        ("[" * 100_000, "not JSON|cannot be read as results"),
    ],
)
def test_what_is_no_result_is_refused_with_words(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=words):
        Results.read(tmp_path)


def test_no_file_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the folder that voxrisk wrote"):
        Results.read(tmp_path)


def test_the_documented_schema_is_that_of_the_classes() -> None:
    """Mend with: python -c "from voxrisk.results import write_schema; write_schema('docs')"."""
    page = ROOT / "docs" / "results-schema.json"
    assert json.loads(page.read_text(encoding="utf-8")) == json.loads(json.dumps(json_schema()))


def test_a_pseudonym_touches_ids_only() -> None:
    """Speaker 19 must not turn "Only 19 speakers" into "Only S01 speakers"."""
    alias = {"19": "S07", "1089": "S02"}
    few = notice("few_speakers", speakers=19).pseudonymous(alias)
    assert few.text.startswith("Only 19 speakers:")
    out = notice("left_out", count=19, why="19 sessions are too few", speakers=["19", "1089"])
    assert out.pseudonymous(alias).text == (
        "Speakers who take no part: 19 (19 sessions are too few). These are: S07, S02."
    )


def test_an_utterance_does_not_name_its_speaker() -> None:
    broken = notice(
        "broken_files",
        count=1,
        total=9,
        kind="original",
        causes="1 silent",
        utterances=["1089-134686-0003"],
        detail="/home/ann/1089/x.wav: silent",
    )
    assert "1089" in broken.text
    hidden = broken.pseudonymous({"1089": "S01"})
    assert "1089" not in repr(hidden)
    assert "ann" not in repr(hidden)


@pytest.mark.parametrize("code", sorted(NOTICES))
def test_every_notice_has_a_severity_and_words(code: str) -> None:
    words = NOTICES[code]
    assert words.severity in ("serious", "note", "next")
    assert words.text


def test_a_notice_without_its_facts_is_an_error_where_it_is_made() -> None:
    with pytest.raises(KeyError, match="speakers"):
        notice("few_speakers")
    with pytest.raises(KeyError, match="nosuch"):
        notice("nosuch")
    assert isinstance(notice("no_crowd"), Notice)
