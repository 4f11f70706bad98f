"""An evaluation anonymizes again when the user's function or script was edited, or on demand."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.speech import anonymize_stage
from voxrisk.pipeline.stages import Stages
from voxrisk.store import digest_corpus

FUNCTION = """
def quieter(samples, *, rate, target, seed):
    return samples * 0.5
"""
SCRIPT = """
import sys
import soundfile
samples, rate = soundfile.read(sys.argv[1])
soundfile.write(sys.argv[2], samples * 0.5, rate)
"""


@pytest.fixture
def corpus(tmp_path: Path) -> list[Utterance]:
    """Two people, a tone each."""
    rows = []
    for k, name in enumerate("ab"):
        tone = np.sin(np.arange(8_000) * (0.1 + k / 10)).astype(np.float32) * 0.8
        write_audio(tmp_path / f"{name}.wav", tone, rate=16_000)
        rows.append(Utterance(name, tmp_path / f"{name}.wav", name))
    write_corpus(tmp_path / "manifest.csv", rows)
    return read_corpus(tmp_path / "manifest.csv")


@pytest.fixture(params=["function", "script"])
def own(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Path]]:
    """How the tool is named, and its file."""
    file = tmp_path / "my_tool.py"
    file.write_text(FUNCTION if request.param == "function" else SCRIPT)
    monkeypatch.syspath_prepend(tmp_path)
    if request.param == "function":
        yield "my_tool:quieter", file
    else:
        yield f"{sys.executable} {file} {{input}} {{output}}", file
    sys.modules.pop("my_tool", None)


def test_what_was_edited_is_run_again_and_fresh_forces_it(
    own: tuple[str, Path], corpus: list[Utterance], tmp_path: Path
) -> None:
    name, file = own
    chosen = Evaluation(tmp_path / "manifest.csv", anonymizer=name)
    hashes = tmp_path / "hashes.json"

    def run(*, fresh: bool = False) -> tuple[float, bool]:
        """How loud the speech is, and whether it was there already."""
        stages = Stages(tmp_path / "stages", fresh=fresh)
        digest = digest_corpus(corpus, hashes)
        rows, _ = anonymize_stage(chosen, corpus, digest, stages, hashes)
        return round(float(np.abs(read_audio(rows[0])).max()), 2), stages.took[0].reused

    assert run() == (0.4, False)
    assert run() == (0.4, True)
    assert run(fresh=True) == (0.4, False)
    file.write_text(file.read_text().replace("0.5", "0.25"))
    assert run() == (0.2, False)
    file.write_text(file.read_text().replace("0.25", "0.5"))
    assert run() == (0.4, True)
