"""YAML as a person reads it."""

from pathlib import Path

import pytest

from voxrisk.files.plain_yaml import read_plain_yaml
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, write_yaml
from voxrisk.types import InputError

START = "original: speech\nanonymized: protected\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reveal: 'false'\n", r"Expected `bool`, got `str` - at `\$.reveal`"),
        ("with_audio: 1\n", r"Expected `bool`, got `int`"),
        ("seed: 1_0\n", r"Expected `int`, got `str` - at `\$.seed`"),
        ("seed: 010\n", r"Expected `int`, got `str`"),
        ("seed: 1:30\n", r"Expected `int`, got `str`"),
        ("seed: -3\n", "seed is -3; it must be 0 or more"),
        ("seed: 1\nseed: 2\n", "line 4: seed is there twice"),
        ("train: &a [b]\ntitle: *a\n", r"line 4: aliases \(\*name\) are not read"),
        ("<<: {seed: 1}\n", "line 3: << is not read"),
        ("title: !!python/name:os.system x\n", "cannot be read as YAML"),
        ("title: " + "[" * 5000, "cannot be read as YAML"),
        ("confidence: .nan\n", "Expected `float`, got `str`"),
        ("train: 5\n", r"5 is not a path"),
        ("train: ''\n", "'' is not a path"),
    ],
)
def test_a_value_is_what_it_looks_like_or_an_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "evaluation.yaml"
    path.write_text(START + text)
    with pytest.raises(InputError, match=rf"(?s)evaluation\.yaml.*{words}"):
        read_yaml(path)


def test_what_we_write_we_read(tmp_path: Path) -> None:
    chosen = Evaluation(
        original=tmp_path / "a", anonymizer="mcadams", seed=10, confidence=1e-5, title="1_0",
        options={"x": 1e-7, "y": "no", "z": [1, "2"], "t": "2026-01-01"}, reveal=True,
    )  # fmt: skip
    path = tmp_path / "evaluation.yaml"
    path.write_text(write_yaml(chosen, tmp_path))
    assert read_yaml(path) == chosen


def test_a_large_file_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("a: 1\n# " + "x" * 2**20)
    with pytest.raises(InputError, match="at most 1 MB"):
        read_plain_yaml(tmp_path / "e.yaml")
