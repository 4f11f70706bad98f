"""A few kills of the long commands; ``make kills`` does it twenty times with every one of them."""

from pathlib import Path

import pytest

from kills import kill_and_finish, make_cases


@pytest.mark.parametrize(("name", "voices"), [("evaluate", 15), ("anonymize by a program", 9)])
def test_killed_and_started_again_it_ends_with_the_same_bytes(
    tmp_path: Path, name: str, voices: int
) -> None:
    """Training, anonymizing and slicing are killed where their tests are."""
    cases = make_cases(
        tmp_path, attackers=("informed",), anonymizer=("world",), voices=voices, encoder="longterm"
    )
    kill_and_finish(cases[name], tmp_path / "case", kills=2, seed=1, longest=0.7)
