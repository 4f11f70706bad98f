"""``voxrisk slicing``: real speech in, figures of every length out, whatever is missing."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.corpus.trials import Lists
from voxrisk.pipeline.course import Step
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.sides import make_sides, write_sides
from voxrisk.pipeline.slicing import cuts
from voxrisk.pipeline.slicing.choices import Slicing
from voxrisk.pipeline.slicing.cuts import Pieces
from voxrisk.pipeline.slicing.privacy import bounded, pieces_sides
from voxrisk.pipeline.slicing.study import study_slicing
from voxrisk.pipeline.stages import Stages
from voxrisk.protect.alignment import write_alignment
from voxrisk.protect.slicing import Word
from voxrisk.slicing_results import CLEAR, SHORTENED, SLICED, WHOLE, SlicingResults
from voxrisk.types import InputError

ALONE = {"text": False, "speech": False, "utility": False}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six synthetic voices in two sessions."""
    folder = tmp_path_factory.mktemp("speech") / "demo"
    make_demo(folder, voices=6, sentences=4)
    return folder


@pytest.fixture(scope="module")
def words(corpus: Path) -> Path:
    """Word times without an aligner: each word takes as long as any other."""
    aligned = {}
    for row in read_corpus(corpus):
        texts = (row.text or "").split()
        each = (row.duration or 0.0) / (len(texts) + 1)
        aligned[row.utterance] = [
            Word(t, round((i + 0.5) * each, 3), round((i + 1.4) * each, 3))
            for i, t in enumerate(texts)
        ]
    path = corpus.parent / "words.csv"
    write_alignment(path, aligned)
    return path


@pytest.fixture(scope="module")
def run(
    corpus: Path, words: Path, plain_encoder: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, SlicingResults]:
    folder = tmp_path_factory.mktemp("run")
    return folder, study_slicing(chosen(corpus, words, plain_encoder), folder)


def few(corpus: Path, speakers: int = 3) -> list[Utterance]:
    """The speech of some of the speakers."""
    rows = read_corpus(corpus)
    kept = sorted({row.speaker for row in rows})[:speakers]
    return [row for row in rows if row.speaker in kept]


def chosen(corpus: Path, words: Path | None, encoder: str, **more: Any) -> Slicing:
    given = {"durations": (0.5, 1.0), "effort": "quick", "anonymizer": "mcadams", **ALONE, **more}
    return Slicing(corpus=corpus, alignment=words, encoder=encoder, **given)


def test_unsliced_speech_gives_the_figures_of_evaluate(
    corpus: Path, run: tuple[Path, SlicingResults], plain_encoder: str, tmp_path: Path
) -> None:
    """The same lists, the same encoder: slicing is measured against what evaluate says."""
    folder, results = run
    asked = Evaluation(
        corpus, anonymizer="mcadams", encoder=plain_encoder, effort="quick", utility=False
    )
    evaluated = evaluate_speech(asked, tmp_path / "evaluate", stages=folder / "stages")
    for condition, name in ((CLEAR, "original"), ("anonymized", "lazy-informed")):
        mine = results.row(condition, name, WHOLE)
        theirs = evaluated.attackers[name]
        assert mine is not None
        assert set(mine.figures) == {"d_sys", "linkability", "rocch_eer", "d_ece"}
        linked = max(theirs.curve("linkability", 1), key=lambda e: e.size)
        for figure, found in mine.figures.items():
            expected = linked if figure == "linkability" else theirs.figures[figure]
            assert found.value == pytest.approx(expected.value, abs=1e-9), figure
            assert found.interval == expected.interval, figure


def test_of_some_trials_the_figures_are_those_of_evaluate_on_the_same(
    corpus: Path, words: Path, plain_encoder: str, run: tuple[Path, SlicingResults], tmp_path: Path
) -> None:
    """One trial utterance of each speaker: shorter, and still no other protocol."""
    sides = bounded(make_sides(read_corpus(corpus), seed=0), 1)
    write_sides(tmp_path, sides)
    assert sorted(sides.rows[name].speaker for name in sides.trial) == sorted(sides.models)
    asked = chosen(corpus, words, plain_encoder, utterances=1, anonymizer=None)
    results = study_slicing(asked, tmp_path / "run", stages=run[0] / "stages")
    lists = (Lists(tmp_path / "trials.csv", tmp_path / "enroll.csv"),)
    evaluated = evaluate_speech(
        Evaluation(
            corpus, anonymizer="mcadams", encoder=plain_encoder, effort="quick", utility=False,
            sets=lists,
        ),
        tmp_path / "evaluate", stages=run[0] / "stages",
    )  # fmt: skip
    mine, theirs = results.row(CLEAR, "original", WHOLE), evaluated.attackers["original"]
    all_of_it = run[1].row(CLEAR, "original", WHOLE)
    assert mine is not None
    assert all_of_it is not None
    assert mine.pieces == 6 < all_of_it.pieces
    assert "rocch_eer" in mine.figures
    for figure in {*mine.figures} - {"linkability"}:
        assert mine.figures[figure].value == pytest.approx(theirs.figures[figure].value, abs=1e-9)


def test_stages_tell_how_far_the_study_is(
    corpus: Path,
    words: Path,
    plain_encoder: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is expected once the speech is cut is what the study then goes through."""
    with caplog.at_level("INFO", "voxrisk"):
        study_slicing(chosen(corpus, words, plain_encoder, text=True), tmp_path)
    said = [re.search(r"(\d+) % of the run, about (.+) left", m) for m in caplog.messages]
    shares = [int(found[1]) for found in said if found]
    assert shares == sorted(shares)
    assert shares[0] < 50
    assert shares[-1] > 90
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    gone = [Step(t["stage"], t["what"], t["speech_seconds"]) for t in facts["stages"]]
    assert facts["estimated_seconds"] == pytest.approx(sum(s.seconds for s in gone), rel=0.15)


def test_every_length_has_its_rows_and_real_durations(run: tuple[Path, SlicingResults]) -> None:
    _, results = run
    assert SlicingResults.read(run[0]) == results
    for condition, name in ((CLEAR, "original"), ("anonymized", "lazy-informed")):
        for duration in (0.5, 1.0):
            cut = results.row(condition, name, SLICED, duration)
            short = results.row(condition, name, SHORTENED, duration)
            assert cut is not None
            assert short is not None
            assert cut.seconds >= duration  # a slice lasts δ or more
            assert short.seconds == pytest.approx(duration)
            assert short.spread == pytest.approx(0.0, abs=1e-9)
    for file in ("report.html", "slicing.csv", "duration.svg", "slicing.yaml", "run.json"):
        assert (run[0] / file).is_file(), file


def test_pieces_are_tried_where_their_utterance_was(corpus: Path) -> None:
    """Enrolment gets all pieces of its utterances, a trial those that were drawn of its own."""
    rows = read_corpus(corpus)
    sides = make_sides(rows, seed=0)
    cut = [
        replace(row, utterance=f"{row.utterance}-{k}", extra={"source": row.utterance})
        for row in rows
        for k in range(4)
    ]
    pieces = Pieces(CLEAR, SLICED, 1.0, tuple(cut), "")
    mine = pieces_sides(sides, pieces, tried=3)
    assert mine is not None
    for name, own in sides.models.items():
        assert len(mine.models[name]) == 4 * len(own)
    assert len(mine.listed) == 3 * len(sides.listed)
    assert sum(t.target for t in mine.listed) == 3 * sum(t.target for t in sides.listed)
    source = {row.utterance: row.extra["source"] for row in cut}
    assert {source[t.trial] for t in mine.listed} == {t.trial for t in sides.listed}
    assert not {*mine.enroll} & {*mine.trial}


def test_without_transcripts_slices_are_cut_at_fixed_times_and_it_is_said(
    corpus: Path, plain_encoder: str, tmp_path: Path
) -> None:
    silent = [replace(row, text=None) for row in few(corpus)]
    write_corpus(tmp_path / "speech.csv", silent)
    asked = chosen(tmp_path / "speech.csv", None, plain_encoder, anonymizer=None, durations=(1.0,))
    results = study_slicing(asked, tmp_path / "run")
    assert results.fixed
    assert "slicing_no_text" in {n.code for n in results.notices}
    row = results.row(CLEAR, "original", SLICED, 1.0)
    assert row is not None
    assert row.seconds == pytest.approx(1.0)


def test_without_an_aligner_slices_are_cut_at_fixed_times_and_it_is_said(
    corpus: Path, plain_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    write_corpus(tmp_path / "speech.csv", few(corpus))
    asked = chosen(tmp_path / "speech.csv", None, plain_encoder, anonymizer=None, durations=(1.0,))
    results = study_slicing(asked, tmp_path / "run")
    assert results.fixed
    said = next(n.text for n in results.notices if n.code == "slicing_no_aligner")
    assert "voxrisk[align]" in said
    assert results.row(CLEAR, "original", SLICED, 1.0) is not None


def test_a_language_that_whisper_knows_has_its_times_from_whisper(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """German is aligned by the recogniser that knows it, and what it says is where slices end."""
    german = [replace(row, language="de") for row in few(corpus, 1)]
    asked_of: set[str | None] = set()

    def told(asr: str | None, language: str | None, row: Utterance) -> list[Word]:
        asked_of.add(asr)
        return [Word(text, k, k + 0.5) for k, text in enumerate((row.text or "").split())]

    monkeypatch.setattr(cuts, "align_with", told)
    monkeypatch.setattr(cuts, "check_aligner", lambda *_: None)
    monkeypatch.setattr(cuts, "resumable", lambda stage, rows, **_: [stage(row) for row in rows])
    found = cuts.align_stage(german, "digest", Stages(tmp_path), "speech")
    assert asked_of == {"whisper-base"}
    assert all(words[1].start == 1.0 for words in found.values())


def test_a_language_that_nobody_knows_is_cut_at_fixed_times(
    corpus: Path, plain_encoder: str, tmp_path: Path
) -> None:
    german = [replace(row, language="iba") for row in few(corpus)]
    write_corpus(tmp_path / "speech.csv", german)
    asked = chosen(tmp_path / "speech.csv", None, plain_encoder, anonymizer=None, durations=(1.0,))
    results = study_slicing(asked, tmp_path / "run")
    assert results.fixed
    assert "--alignment" in next(n.text for n in results.notices if n.code == "slicing_language")


def test_where_nobody_can_enrol_and_be_tried_the_rest_goes_on(
    corpus: Path, words: Path, plain_encoder: str, tmp_path: Path
) -> None:
    """One session of each speaker: no privacy can be measured, the order of words still can."""
    rows = [row for row in few(corpus) if row.session == few(corpus)[0].session]
    write_corpus(tmp_path / "speech.csv", rows)
    asked = chosen(
        tmp_path / "speech.csv", words, plain_encoder,
        anonymizer=None, durations=(0.5,), text=True, speech=True,
    )  # fmt: skip
    results = study_slicing(asked, tmp_path / "run")
    assert not results.privacy
    assert "two sessions" in results.missing["privacy"]
    assert {row.uses for row in results.successors} >= {"text", "voice", "cut"}


def test_a_length_that_no_utterance_has_is_named(
    corpus: Path, words: Path, plain_encoder: str, tmp_path: Path
) -> None:
    asked = chosen(corpus, words, plain_encoder, anonymizer=None, durations=(1.0, 50.0))
    results = study_slicing(asked, tmp_path)
    said = [n.text for n in results.notices if n.code == "slicing_too_long"]
    assert said
    assert "50 s" in said[0]
    assert results.row(CLEAR, "original", SLICED, 50.0) is None


def test_another_study_is_not_written_over(
    corpus: Path, words: Path, plain_encoder: str, run: tuple[Path, SlicingResults]
) -> None:
    with pytest.raises(InputError, match="another evaluation"):
        study_slicing(chosen(corpus, words, plain_encoder, seed=3), run[0])


def test_killed_and_started_again_it_goes_on(corpus: Path, words: Path, tmp_path: Path) -> None:
    """The same bytes as of a run that nobody disturbed, and finished stages are not done again."""
    speech = tmp_path / "speech.csv"
    write_corpus(speech, few(corpus, 2))
    command = [
        sys.executable, "-m", "voxrisk", "slicing", str(speech), "--alignment", str(words),
        "--duration", "0.5", "--encoder", "prosody", "--effort", "quick",
        "--no-text", "--no-speech", "--no-utility", "-o",
    ]  # fmt: skip
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    process = subprocess.Popen(
        [*command, str(killed)], start_new_session=True, stderr=subprocess.DEVNULL
    )
    while not list((killed / "stages").glob("embed-*/done.json")) and process.poll() is None:
        time.sleep(0.05)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    embedded = next((killed / "stages").glob("embed-*/done.json"))
    before = embedded.stat().st_mtime_ns
    subprocess.run([*command, str(killed)], check=True, capture_output=True)
    assert embedded.stat().st_mtime_ns == before
    for name in ("results.json", "slicing.csv", "duration.svg", "report.html"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"durations": (0.0,)}, "0.2 to 60"),
        ({"durations": (float("nan"),)}, "0.2 to 60"),
        ({"durations": (1.0, 1.0)}, "twice"),
        ({"cut": "rough"}, "pause or clean"),
        ({"anonymized": Path("a"), "anonymizer": "mcadams"}, "not both"),
    ],
)
def test_bad_choices_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Slicing(corpus=Path("speech"), **given)


def test_the_middle_of_an_utterance_is_kept(corpus: Path, tmp_path: Path) -> None:
    from voxrisk.pipeline.slicing.cuts import shortened

    row = next(r for r in read_corpus(corpus) if (r.duration or 0) > 1.2)
    pieces, silent = shortened([row], CLEAR, 1.0, Stages(tmp_path))
    assert pieces is not None
    assert silent == 0
    (cut,) = pieces.rows
    assert np.isclose((cut.start or 0) + (cut.end or 0), row.duration)
