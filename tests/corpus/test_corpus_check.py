"""``voxrisk corpus check`` finds each kind of trouble, all of them in one run."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.check import KINDS, check_corpus, clipped

RATE = 16_000


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    """One file of each kind of trouble, named after it, and three good ones."""
    random = np.random.default_rng(0)
    noise = np.round(3000 * random.standard_normal((4, RATE))) / 2**15  # exact in 16 bits
    files = {
        "good1": noise[0], "good2": noise[1], "good3": noise[2], "doubled": noise[0],
        "short": noise[3][:1000], "silent": 1e-4 * noise[3], "empty": noise[3][:0],
        "clipped": np.clip(30 * noise[3], -1, 1),
    }  # fmt: skip
    for name, samples in files.items():
        soundfile.write(tmp_path / f"{name}.wav", samples, RATE)
    # The same sound in another container is still the same sound.
    (tmp_path / "doubled.wav").unlink()
    soundfile.write(tmp_path / "doubled.wav.flac", noise[0], RATE)
    (tmp_path / "doubled.wav.flac").rename(tmp_path / "doubled.wav")
    soundfile.write(tmp_path / "rate.wav", noise[3], 8_000)
    (tmp_path / "unreadable.wav").write_bytes(b"this is not audio")
    names = [*files, "rate", "unreadable", "missing"]
    lines = [f"{name},{name}.wav,s{i % 2}" for i, name in enumerate(names)]
    (tmp_path / "manifest.csv").write_text("\n".join(["utterance,path,speaker", *lines]))
    return tmp_path


def test_every_kind_of_trouble_is_found_together(troubled: Path) -> None:
    findings = check_corpus(read_corpus(troubled, audio=False), workers=1)
    found = {problem.utterance: problem.kind for problem in findings.problems}
    expected = {kind: kind for kind in KINDS}
    assert found == expected
    assert findings.utterances == 11
    assert findings.rates == {8_000: 1, 16_000: 7}


def test_workers_do_not_change_the_findings(troubled: Path) -> None:
    rows = read_corpus(troubled, audio=False)
    assert check_corpus(rows, workers=1) == check_corpus(rows, workers=2)


def test_command_reports_json_and_exit_code(troubled: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["corpus", "check", str(troubled), "--json", "--workers", "1"])
    assert result.exit_code == 1
    assert {p["kind"] for p in json.loads(result.stdout)["problems"]} == set(KINDS)
    result = CliRunner().invoke(app, ["corpus", "check", str(troubled), "--workers", "1"])
    assert "8 problems" in result.stdout


def test_real_speech_has_no_problems(shared: Path) -> None:
    rows = read_corpus(shared / "librispeech_eval")[::40]
    assert check_corpus(rows, workers=1).problems == ()


def test_loud_is_not_clipped() -> None:
    """A full-scale sine touches full scale, but never stays there."""
    sine = np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE).astype(np.float32)[:, None]
    assert clipped(sine * 0.9985) == 0
    peaks = np.zeros_like(sine)
    peaks[::10] = 1.0
    assert clipped(peaks) == 0
    assert clipped(np.clip(sine * 2, -1, 1)) > 0.5


NOISE = np.random.default_rng(1).standard_normal(RATE)
TIME = np.arange(RATE) / RATE


@pytest.mark.parametrize(
    ("samples", "kinds"),
    [
        (np.zeros(RATE), {"silent"}),
        (np.full(RATE, 0.25), {"silent"}),
        (0.25 + 1e-4 * NOISE, {"silent"}),
        (np.where(TIME < 0.48, 0.3, -0.3), {"silent"}),  # a jump between two 30 ms
        (3e-4 * NOISE, {"silent"}),
        (np.zeros(RATE // 4), {"silent", "short"}),
        (0.1 * NOISE[: RATE // 4], {"short"}),
        (0.1 * NOISE[: RATE // 2], set()),
        (0.25 + 0.1 * NOISE, set()),
        (3e-3 * NOISE, set()),
        (0.05 * np.sin(2 * np.pi * 80 * TIME), set()),  # the lowest of voices
        (np.where((TIME > 0.6) & (TIME < 0.7), 0.05 * NOISE, 0.0), set()),
    ],
)
def test_silence_and_shortness(tmp_path: Path, samples: np.ndarray, kinds: set[str]) -> None:
    """Digital silence, an offset and faint noise are silent; quiet or brief speech is not."""
    soundfile.write(tmp_path / "a.wav", samples, RATE, subtype="FLOAT")
    found = check_corpus([Utterance("a", tmp_path / "a.wav", "s")], workers=1)
    assert {problem.kind for problem in found.problems} == kinds


def test_every_file_is_read_once(troubled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    rows = read_corpus(troubled, audio=False)
    real, decoder = Path.open, soundfile.SoundFile

    def counting(path: Path, *args: Any, **options: Any) -> Any:
        opened.append(path.stem)
        return real(path, *args, **options)

    def never(file: Any) -> Any:
        assert not isinstance(file, str | Path), "libsndfile opens the file once more"
        return decoder(file)

    monkeypatch.setattr(Path, "open", counting)
    monkeypatch.setattr(soundfile, "SoundFile", never)
    check_corpus(rows, workers=1)
    assert sorted(opened) == sorted(row.utterance for row in rows if row.utterance != "missing")


def test_the_same_part_of_a_file_twice_is_doubled(troubled: Path) -> None:
    path = troubled / "good1.wav"
    parts = [(0.0, 0.6), (0.3, 0.9), (0.0, 0.6)]
    rows = [Utterance(f"u{i}", path, "s", start=a, end=b) for i, (a, b) in enumerate(parts)]
    (problem,) = check_corpus(rows, workers=1).problems
    assert (problem.utterance, problem.detail) == ("u2", "the same sound as u0")


def test_each_cause_is_said_once_with_a_count(tmp_path: Path) -> None:
    """Seven hundred files that are missing for one reason are one reason."""
    rows = [(f"u{i:03d}", f"gone/{i}.wav", "s") for i in range(700)]
    table = "".join(f"{','.join(row)}\n" for row in rows)
    (tmp_path / "manifest.csv").write_text(f"utterance,path,speaker\n{table}")
    result = CliRunner().invoke(app, ["corpus", "check", str(tmp_path), "--workers", "1"])
    assert result.exit_code == 1
    assert result.stdout.count("no such file") == 3
    assert "700" in result.stdout
    assert f"looked for {tmp_path / 'gone' / '0.wav'}" in result.stdout.replace("\n", "")
