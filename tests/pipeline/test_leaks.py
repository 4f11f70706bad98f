"""Nothing that a user can name is in what is shared: a marker stands in every field there is.

Speakers, utterances, sessions, texts, languages, ages, extra columns, files, folders, target
speakers, the anonymizer's program, the encoder's path, the folder of training speech, the user's
name, home and working folder, and the tags inside the audio all carry the marker. Title and names
of systems do not: a user who gives one wants it to be read.
"""

import base64
import csv
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from short_speech import cut_short
from voxrisk import models
from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.notices import NOTICES, Notice
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.pseudonyms import hide_names, pseudonyms
from voxrisk.report.html import write_report
from voxrisk.report.pdf import find_browser
from voxrisk.results import AudioPair, Results, UtilityResult

MARK = "zqxmark"
SHARED = {"results.json", "report.html", "report.pdf", "run.json", "tables", "figures"}
KEPT = {"private", "stages", "scores", "embeddings", "evaluation.yaml"}  # for the owner
HALF = """
import sys, soundfile
samples, rate = soundfile.read(sys.argv[1])
soundfile.write(sys.argv[2], samples[::-1] * 0.5, rate)
"""


def marked(folder: Path, rows: list[Utterance]) -> list[Utterance]:
    """A corpus whose every field, file name and audio tag holds the marker."""
    made = []
    for i, row in enumerate(rows):
        path = folder / f"{MARK}-sub{i % 3}" / f"{MARK}-file{i}.flac"
        path.parent.mkdir(parents=True, exist_ok=True)
        with soundfile.SoundFile(path, "w", 16_000, 1, "PCM_16") as stream:
            for tag in ("title", "artist", "comment", "copyright"):
                setattr(stream, tag, f"{MARK} {tag}")
            stream.write(read_audio(row))
        made.append(
            Utterance(
                f"{MARK}-utterance{i}", path, f"{MARK}-{row.speaker}", gender=row.gender,
                text=f"{MARK} {row.text}", session=f"{MARK}-{row.session}",
                language=f"{MARK}{i % 2}", age=f"{MARK}{i % 3}",
                extra={f"{MARK}_column": f"{MARK}-cell", "synthetic": f"{MARK}-voice",
                       "anonymizer": f"{MARK}-tool", "target": f"{MARK}-target{i % 4}"},
            )
        )  # fmt: skip
    write_corpus(folder / "manifest.csv", made)
    return made


def found(data: bytes) -> list[str]:
    """Marked words in the bytes of a file, as they are or packed as a page or a PDF packs them."""
    parts = [data]
    for packed in re.findall(rb"data:audio/[a-z]+;base64,([A-Za-z0-9+/=]+)", data):
        parts.append(base64.b64decode(packed))
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", data, re.S):
        try:
            parts.append(zlib.decompress(stream.strip(b"\r\n")))
        except zlib.error:
            continue
    wanted = re.compile(MARK.encode() + rb"[\w-]*", re.IGNORECASE)
    return sorted({m.decode() for part in parts for m in wanted.findall(part)})


def leaks(folder: Path, names: set[str] | None = None) -> dict[str, list[str]]:
    """File → marked words in its content or its name; of some files of a folder, or of all."""
    files = [p for p in folder.rglob("*") if p.is_file() and (not names or p.name in names)]
    assert files
    said = {str(p.relative_to(folder)): found(p.read_bytes()) + found(bytes(p.name, "utf-8"))
            for p in files}  # fmt: skip
    return {name: words for name, words in said.items() if words}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with marked speech: to be evaluated, of targets, and to train on."""
    folder = tmp_path_factory.mktemp(f"{MARK}-cwd")
    voices = tmp_path_factory.mktemp("voices")
    rows = cut_short(make_demo(voices / "demo", voices=6, sentences=2), voices / "short")
    marked(folder / f"{MARK}-speech", rows)
    marked(folder / f"{MARK}-others", [replace(r, speaker=f"other-{r.speaker}") for r in rows[:8]])
    (folder / f"{MARK}-encoder").mkdir()
    weights = models.model_path("ecapa-voxceleb")
    weights = weights if weights.is_file() else weights / "embedding_model.ckpt"
    (folder / f"{MARK}-encoder" / "embedding_model.ckpt").symlink_to(weights)
    (folder / f"{MARK}-program.py").write_text(HALF)
    (folder / f"{MARK}-home").mkdir()
    return folder


@pytest.fixture(scope="module")
def program_run(place: Path) -> Path:
    """``voxrisk evaluate`` with everything of the user's own, as another user would run it."""
    command = [
        sys.executable, "-m", "voxrisk", "evaluate", "--original", f"{MARK}-speech",
        "--anonymizer", f"{sys.executable} {MARK}-program.py {{input}} {{output}} {{target}}",
        "--targets", f"{MARK}-others", "--train", str(place / f"{MARK}-others"),
        "--encoder", f"{MARK}-encoder", "--attacker", "ignorant", "--effort", "quick",
        "--no-utility", "--with-audio", "-o", f"{MARK}-run",
    ]  # fmt: skip
    user = {"HOME": str(place / f"{MARK}-home"), "USER": MARK, "LOGNAME": MARK}
    user |= {"VOXRISK_CACHE": str(models.cache_folder())}
    done = subprocess.run(
        [*command, "--pdf"] if find_browser() else command,
        cwd=place, env={**os.environ, **user}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place / f"{MARK}-run"


@pytest.fixture(scope="module")
def given_run(place: Path, plain_encoder: str) -> tuple[Path, Results]:
    """An evaluation of finished files, with every fault that a notice can tell of."""
    rows = read_corpus(place / f"{MARK}-speech")
    broken = marked(place / f"{MARK}-given", rows)
    for i, row in enumerate(broken):
        samples = read_audio(row)
        row.path.unlink()
        write_audio(row.path, samples[::-1] if i else np.zeros(8000, np.float32), rate=16_000)
    broken[1].path.write_bytes(b"not audio")
    broken[3].path.write_bytes(broken[2].path.read_bytes())
    write_corpus(place / f"{MARK}-given" / "manifest.csv", broken[:-1])
    asked = Evaluation(
        place / f"{MARK}-speech", anonymized=place / f"{MARK}-given", effort="quick",
        utility=False, attackers=("ignorant",), with_audio=True, encoder=plain_encoder,
    )  # fmt: skip
    folder = place / f"{MARK}-again"
    results = evaluate_speech(asked, folder)
    write_report(results, folder / "report.html")
    return folder, results


def test_every_file_of_a_run_is_for_sharing_or_for_its_owner(program_run: Path) -> None:
    """A file that is new in a run must be put on one of the two lists; the first is looked at."""
    assert {path.name for path in program_run.iterdir()} <= SHARED | KEPT
    assert {"results.json", "report.html", "run.json"} <= {p.name for p in program_run.iterdir()}


def test_an_evaluation_shares_no_name(program_run: Path) -> None:
    for path in program_run.iterdir():
        if path.name in SHARED:
            parts = [p for p in (path, *path.rglob("*")) if p.is_file()]
            assert parts
            assert [p.name for p in parts if found(p.read_bytes() + p.name.encode())] == []
    assert leaks(program_run / "private")  # the marker is where it belongs, and would be found


def test_warnings_share_no_name(given_run: tuple[Path, Results]) -> None:
    folder, results = given_run
    codes = {n.code for n in results.notices}
    assert {"broken_files", "doubled_files", "unpaired", "synthetic"} <= codes
    for name in ("results.json", "report.html", "run.json"):
        assert found((folder / name).read_bytes()) == [], name
    assert found((folder / "private" / "notices.txt").read_bytes())


def test_a_comparison_shares_no_name(
    program_run: Path, given_run: tuple[Path, Results], tmp_path: Path
) -> None:
    command = ["compare", str(program_run), str(given_run[0]), "-o", str(tmp_path / "compare.html")]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    assert leaks(tmp_path) == {}


def test_figures_of_scores_and_of_a_crowd_share_no_name(
    given_run: tuple[Path, Results], tmp_path: Path
) -> None:
    """JSON, CSV, SVG and PNG of ``measure`` and ``population``; file names name no system here."""
    run = given_run[0]
    scores, trials = run / "scores" / "scores-ignorant.csv", run / "scores" / "trials.csv"
    sides = [run / "embeddings" / f"ignorant-{side}.npz" for side in ("enroll", "trial")]
    out = {name: tmp_path / name for name in ("measure", "population")}
    for command in (
        ["measure", f"x={scores}", "--trials", trials, "--resamples", 0, "-o", out["measure"]],
        ["population", *sides, "-L", 1, "--resamples", 0, "-o", out["population"]],
    ):
        told = CliRunner().invoke(app, [str(word) for word in command])
        assert told.exit_code == 0, told.output
    for folder in out.values():
        said = leaks(folder)
        assert set(said) == {"private/speakers.csv"}, said


def test_shuffled_slices_share_no_name(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "published"
    command = ["slice", str(place / f"{MARK}-speech"), "--fixed", "--shuffle", "--workers", "1"]
    told = CliRunner().invoke(app, [*command, "-o", str(out)])
    assert told.exit_code == 0, told.output
    assert leaks(out) == {}
    assert "what remains: the voice and the words" in told.stdout
    assert found((tmp_path / "published.key.csv").read_bytes())


def test_names_are_shared_where_it_is_asked_for(
    place: Path, plain_encoder: str, given_run: tuple[Path, Results], tmp_path: Path
) -> None:
    asked = Evaluation(
        place / f"{MARK}-speech", anonymized=place / f"{MARK}-given", effort="quick",
        utility=False, attackers=("ignorant",), reveal=True, encoder=plain_encoder,
    )  # fmt: skip
    evaluate_speech(asked, tmp_path, stages=given_run[0] / "stages")
    assert found((tmp_path / "results.json").read_bytes())


def test_no_notice_shares_what_it_is_about() -> None:
    """Ids of utterances and what a library said are dropped, and speakers renamed."""
    for code, wording in NOTICES.items():
        asked = re.findall(r"\{(\w+)[:}]", wording.text)
        facts = {name: 1 for name in asked if name not in ("who", "detail")}
        ids = (f"{MARK}-one",)
        told = Notice(code, wording.severity, facts, ids, (f"{MARK}-u",), f"/home/{MARK}/a.wav")
        shared = told.pseudonymous({f"{MARK}-one": "S01"})
        assert MARK not in shared.text + json.dumps(shared.facts)
        assert (shared.utterances, shared.detail) == ((), "")


def test_the_order_of_what_is_shared_is_that_of_the_names_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of participants, sorted as their ids are, undoes nothing.

    The place of an utterance in the corpus named it before, and with it the speaker.
    """
    people = [f"p{i:02d}" for i in range(40)]
    orders = []
    for secret in ("one", "two"):
        monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path / secret))
        alias = pseudonyms(people)
        assert pseudonyms(people[::-1]) == alias  # of the speaker, not of the order
        assert (tmp_path / secret / "pseudonyms.key").stat().st_mode & 0o777 == 0o600
        orders.append([int(alias[p][1:]) for p in people])
        assert abs(np.corrcoef(orders[-1], range(40))[0, 1]) < 0.6
    assert np.mean(np.array(orders[0]) == np.array(orders[1])) < 0.3
    pairs = tuple(
        AudioPair(speaker=p, utterance=f"U{i}", text=MARK, original="", anonymized="")
        for i, p in enumerate(people)
    )
    reason = f"the recogniser knows English only, and the speech is {MARK!r}"
    shared = hide_names(
        Results(kind="evaluate", audio=pairs, utility=UtilityResult(missing={"wer": reason})), alias
    )
    assert [p.speaker for p in shared.audio] == sorted(alias.values())
    assert [p.utterance for p in shared.audio] == [f"U{n:02d}" for n in range(1, 41)]
    assert MARK not in shared.to_json()


def keys(path: Path) -> Iterator[str]:
    with path.open(newline="") as stream:
        yield from (row["speaker"] for row in csv.DictReader(stream))


def test_the_key_of_a_run_is_complete_and_private(program_run: Path, place: Path) -> None:
    key = program_run / "private" / "speakers.csv"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    people = {row.speaker for row in read_corpus(place / f"{MARK}-speech")}
    assert set(keys(key)) == people
