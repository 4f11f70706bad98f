"""Who hears the words of a run, what is said when nobody can, and what follows from it."""

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from voxrisk.corpus import Utterance
from voxrisk.measure import Trials
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, shared_yaml, write_yaml
from voxrisk.pipeline.findings import _groups
from voxrisk.pipeline.speech import limited
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.usefulness import (
    plan_hearing,
    tell_hearing,
    transcripts_control,
    word_notices,
)
from voxrisk.results import UtilityResult
from voxrisk.types import Estimate, InputError

CHOSEN = Evaluation(Path("speech"), anonymizer="mcadams", effort="quick")


def said(language: str | None = None, text: str | None = "selamat malam") -> Utterance:
    return Utterance("u", Path("x.wav"), "s", text=text, language=language)


@pytest.mark.parametrize(
    ("changes", "row", "asr", "why"),
    [
        ({}, said(), "whisper-tiny.en", ""),
        ({"effort": "standard"}, said(), "moonshine-base", ""),
        ({}, said("de"), "whisper-base", ""),
        ({"effort": "standard"}, said("German"), "whisper-small", ""),
        ({"language": "de"}, said("en"), "whisper-base", ""),
        ({"asr": "whisper-small"}, said(), "whisper-small", ""),
        ({"language": "iba"}, said(), "whisper-base", "no speech recogniser here knows"),
        ({"asr": "moonshine-base"}, said("pl"), "moonshine-base", "Polish, and the recogniser"),
        ({}, said(text=None), "whisper-tiny.en", "no transcripts"),
    ],
)
def test_the_recogniser_follows_the_language(
    changes: dict[str, str], row: Utterance, asr: str, why: str
) -> None:
    plan = plan_hearing(replace(CHOSEN, **changes), [row])  # type: ignore[arg-type]
    assert plan.asr == asr
    assert plan.why_not.startswith(why) or why in plan.why_not
    assert bool(plan.why_not) == bool(why)


def test_it_is_said_before_anything_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 16_000)
    (tmp_path / "manifest.csv").write_text("utterance,path,speaker,text\na,a.wav,s,selamat\n")
    stages = Stages(tmp_path / "stages")
    chosen = replace(CHOSEN, original=tmp_path)
    with caplog.at_level(logging.INFO):
        tell_hearing(chosen, stages)
        assert "Whisper tiny.en hears the words, in English (assumed" in caplog.text
        tell_hearing(replace(chosen, language="iba"), stages)
    assert "only what needs no words will be measured" in caplog.text
    with pytest.raises(InputError, match="no recogniser 'hal'"):
        replace(chosen, asr="hal")


def heard(name: str, before: float, after: float, why: str = "") -> UtilityResult:
    sides = {
        side: Estimate(name, value, 1.0, {}, "")
        for side, value in (("original", before), ("anonymized", after))
    }
    return UtilityResult(figures={name: sides}, untrusted={name: why} if why else {})


def test_characters_stand_where_no_words_are_counted() -> None:
    """Chinese speech that is lost is lost; a recogniser that knows none of it fails the control."""
    assert [n.code for n in word_notices(heard("cer", 0.06, 0.61))] == ["characters_lost"]
    wrong = heard("cer", 0.9, 0.9, "not this language")
    assert [n.code for n in word_notices(wrong)] == ["characters_untrusted"]
    control = transcripts_control(wrong)
    assert control is not None
    assert control.passed is False
    assert control.expected == "it gets fewer than 50 % of the characters of the transcripts wrong"
    assert transcripts_control(UtilityResult(missing={"wer": "no transcripts"})) is None


def test_choices_come_back_and_a_folder_of_the_user_is_not_shared(tmp_path: Path) -> None:
    own = tmp_path / "anna-meier"
    own.mkdir()
    (own / "model.bin").write_bytes(b"")
    chosen = replace(
        CHOSEN, original=tmp_path, language="de", asr=str(own), group_by=("accent", "age")
    )
    (tmp_path / "evaluation.yaml").write_text(write_yaml(chosen, tmp_path))
    again = read_yaml(tmp_path / "evaluation.yaml")
    assert (again.language, again.asr, again.group_by) == ("de", str(own), ("accent", "age"))
    assert "anna" not in shared_yaml(chosen)
    assert "asr: RECOGNISER" in shared_yaml(chosen)
    assert "Annas" not in shared_yaml(replace(chosen, language="Annas Mundart aus Wien"))


def test_durations_that_the_table_lacks_are_those_of_the_files(tmp_path: Path) -> None:
    """Five seconds were assumed of each, and a word error rate rested on 18 words."""
    rows = []
    for i in range(30):
        soundfile.write(tmp_path / f"{i}.wav", np.zeros(16_000), 16_000)
        rows.append(Utterance(f"u{i}", tmp_path / f"{i}.wav", f"s{i % 3}"))
    assert len(limited(rows, 0.25)) == 15
    assert len(limited([replace(row, duration=5.0) for row in rows], 0.25)) == 3


def test_groups_of_any_column_keep_everybody_and_name_no_single_person() -> None:
    """Six Scots have a figure; the only Cornishman is counted, and his accent is not printed."""
    accents = ["scots"] * 6 + ["cornish"]
    rows = {
        f"u{i}": Utterance(f"u{i}", Path("x"), f"s{i}", extra={"accent": accent})
        for i, accent in enumerate(accents)
    }
    names = [f"s{i}" for i in range(7)]
    enroll, trial = map(np.array, zip(*[(a, b) for a in names for b in names], strict=True))
    score = np.random.default_rng(0).normal(size=enroll.size) + 2.0 * (enroll == trial)
    trials = Trials(score, enroll, trial)
    chosen = replace(CHOSEN, group_by=("accent",))
    found = _groups(trials, chosen, SimpleNamespace(rows=rows))  # type: ignore[arg-type]
    assert [(g.value, g.speakers, bool(g.figures)) for g in found] == [
        ("one smaller group", 1, False),
        ("scots", 6, True),
    ]
    assert _groups(trials, CHOSEN, SimpleNamespace(rows=rows)) == []  # type: ignore[arg-type]
