"""What speech is still good for, on real utterances, tones, noise and silence."""

import csv
import os
import signal
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.journal import resumable
from voxrisk.measure import speaker_weights
from voxrisk.models import model_path
from voxrisk.results import Results, UtilityResult
from voxrisk.types import Estimate, InputError
from voxrisk.utility import (
    dnsmos,
    measure_utility,
    normalise,
    pitch_correlation,
    pitch_correlations,
    rate_quality,
    track_pitch,
    transcribe,
)
from voxrisk.utility.estimates import ratio_estimate
from voxrisk.utility.pitch import COMPAT
from voxrisk.vocoder import pyworld

RATE = 16_000


def utility(*corpora: list[Utterance], **options: object) -> UtilityResult:
    """The figures as results hold them."""
    return measure_utility(*corpora, **options).result()  # type: ignore[arg-type]


RNG = np.random.default_rng(0)
SECOND = np.arange(RATE) / RATE


@pytest.fixture(scope="session")
def recogniser() -> str:
    try:
        model_path("whisper-tiny.en-ct2")
    except InputError as error:
        pytest.skip(f"the recogniser cannot be had here: {error}")
    return "whisper-tiny.en"


@pytest.fixture(scope="session")
def eight(shared: Path) -> list[Utterance]:
    """One real utterance of 3 to 5 s from each of eight speakers."""
    rows: dict[str, Utterance] = {}
    for row in read_corpus(shared / "librispeech_eval"):
        if 3.0 < (row.duration or 0) < 5.0:
            rows.setdefault(row.speaker, row)
    return list(rows.values())[:8]


@pytest.fixture(scope="session")
def noisy(eight: list[Utterance], tmp_path_factory: pytest.TempPathFactory) -> list[Utterance]:
    """The same utterances in white noise, in another order; the last one is silent."""
    folder = tmp_path_factory.mktemp("noisy")
    rows = []
    for i, row in enumerate(eight):
        samples = read_audio(row)
        noise = 0.03 * RNG.standard_normal(len(samples)).astype(np.float32)
        damaged = np.zeros_like(samples) if i == 7 else np.clip(samples + noise, -1, 1)
        write_audio(folder / f"{i}.flac", damaged, rate=RATE)
        rows.append(replace(row, path=folder / f"{i}.flac", text=None, speaker="?"))
    return rows[::-1]


def test_everything_before_and_after(
    eight: list[Utterance], noisy: list[Utterance], recogniser: str
) -> None:
    """tiny.en reads clean LibriSpeech; noise costs words, quality and pitch, but no time."""
    found = measure_utility(eight, noisy, asr=recogniser, workers=1, resamples=200, seed=3)
    assert not found.missing
    wer, mos = found.figures["wer"], found.figures["dnsmos"]
    assert wer["original"].value < 0.15
    assert wer["anonymized"].value > wer["original"].value
    words = sum(len(normalise(row.text or "").split()) for row in eight)
    assert wer["original"].n["word"] == words > 70
    assert mos["anonymized"].value < mos["original"].value - 0.5
    assert [mos[side].n["silent"] for side in ("original", "anonymized")] == [0, 1]
    melody = found.figures["pitch_correlation"]["anonymized"]
    assert 0.5 < melody.value < 1
    assert melody.n["left_out"] == 1
    assert melody.n["utterance"] == 7
    assert found.figures["duration_change"]["anonymized"].value == 0
    for sides in found.figures.values():
        for e in sides.values():
            assert e.interval is not None
            assert e.interval.low <= e.value <= e.interval.high
            assert e.n["speaker"] in (7, 8)
    assert [row["utterance"] for row in found.rows] == [row.utterance for row in eight]
    assert found.rows[7]["heard_anonymized"] == ""  # silence is not dreamt into words
    assert found.rows[7]["pitch_correlation"] is None
    errors = sum(row["errors_anonymized"] for row in found.rows)
    assert wer["anonymized"].value == errors / wer["anonymized"].n["word"]
    result = found.result()
    assert UtilityResult.from_json(result.to_json()) == result
    assert result.get("wer", "original") == wer["original"]
    assert (result.missing, result.untrusted) == ({}, {})


def test_speech_that_did_not_change_loses_nothing(eight: list[Utterance]) -> None:
    figures = ("pitch_correlation", "duration_change")
    found = utility(eight, eight[::-1], figures=figures, workers=1, resamples=100)
    melody, length = (found.get(name) for name in figures)
    assert melody.value == pytest.approx(1, abs=1e-12)
    assert melody.n["left_out"] == 0
    assert length.value == 0
    assert (length.interval.low, length.interval.high) == (0, 0)
    assert found.get("pitch_correlation", "original") is None
    assert found.get("wer") is None


def test_half_as_long_is_minus_half(eight: list[Utterance], tmp_path: Path) -> None:
    """The change has a sign, and changes in both directions cancel each other."""
    halves, doubles = [], []
    for row in eight:
        samples = read_audio(row)[: 2 * RATE]
        for rows, name, length in ((halves, "half", RATE), (doubles, "double", 4 * RATE)):
            write_audio(tmp_path / name / row.path.name, np.resize(samples, length), rate=RATE)
            rows.append(replace(row, path=tmp_path / name / row.path.name))
    whole = [replace(row, start=0.0, end=2.0) for row in eight]

    def change(rows: list[Utterance]) -> Estimate:
        measured = measure_utility(whole, rows, figures=("duration_change",), resamples=200)
        return measured.figures["duration_change"]["anonymized"]

    assert change(halves).value == pytest.approx(-0.5)
    assert change(doubles).value == pytest.approx(1.0)
    mixed = change([*halves[:4], *doubles[4:6], *whole[6:]])
    assert mixed.value == pytest.approx(0)
    assert mixed.interval is not None
    assert mixed.interval.low < -0.1 < 0.1 < mixed.interval.high


def _hears(monkeypatch: pytest.MonkeyPatch, words: dict[str, str]) -> None:
    """A recogniser that hears what it is told, by the name of the file."""

    def heard(rows: list[Utterance], **_: object) -> list[str]:
        return [words[row.utterance] for row in rows]

    monkeypatch.setattr("voxrisk.utility.transcripts.transcribe", heard)


def test_a_recogniser_that_fails_on_the_original_is_not_trusted(
    eight: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transcripts of other utterances: both sides are bad, and the loss between them is nothing."""
    _hears(monkeypatch, {row.utterance: str(row.text) for row in eight})
    right = utility(eight, eight, figures=("wer",), resamples=0)
    assert right.untrusted == {}
    for estimate in right.figures["wer"].values():
        assert estimate.parameters["trusted"] is True
        assert "reason" not in estimate.parameters
    texts = [str(row.text) for row in eight]
    swapped = {row.utterance: text for row, text in zip(eight, texts[1:] + texts[:1], strict=True)}
    wrong = utility(eight, eight, transcripts=swapped, figures=("wer",), resamples=0)
    assert wrong.get("wer", "original").value > 0.8
    assert "of the words of the original speech wrong" in wrong.untrusted["wer"]
    for side in ("original", "anonymized"):
        parameters = wrong.get("wer", side).parameters
        assert parameters["trusted"] is False
        assert parameters["reason"] == wrong.untrusted["wer"]
    few = {row.utterance: " ".join(str(row.text).split()[::2]) for row in eight}
    _hears(monkeypatch, few)
    half = utility(eight, eight, figures=("wer",), resamples=0)
    assert 0.4 < half.get("wer", "original").value < 0.6
    assert half.untrusted == {}


def test_swapped_transcripts_are_not_trusted_with_a_real_recogniser(
    eight: list[Utterance], recogniser: str
) -> None:
    texts = {a.utterance: str(b.text) for a, b in zip(eight, [*eight[1:], eight[0]], strict=True)}
    found = utility(
        eight[:3], eight[:3], transcripts=texts, figures=("wer",), asr=recogniser, workers=1
    )
    assert list(found.untrusted) == ["wer"]


def test_transcripts_of_other_utterances_are_refused(eight: list[Utterance]) -> None:
    with pytest.raises(InputError, match="none of the 1 transcripts has the id of an utterance"):
        utility(eight, eight, transcripts={"x": "HELLO"}, figures=("wer",))
    found = utility(eight, eight, transcripts={eight[0].utterance: "..."}, figures=("wer",))
    assert found.missing["wer"] == "the transcripts hold no words"


def test_each_utterance_is_heard_in_its_own_language(
    eight: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the recogniser does not know is left out and counted; what is assumed is said."""
    asked: list[tuple[str, list[str]]] = []

    def heard(rows: list[Utterance], *, asr: str, language: list[str], **_: object) -> list[str]:
        asked.append((asr, language))
        return [str(row.text) for row in rows]

    monkeypatch.setattr("voxrisk.utility.transcripts.transcribe", heard)
    codes = ["de-AT", "English", "iba"]
    rows = [replace(row, language=code) for row, code in zip(eight, codes, strict=False)]
    found = utility(rows, rows, figures=("wer",), resamples=0)
    assert asked == 2 * [("whisper-base", ["de", "en"])]  # original, then anonymized
    assert found.get("wer", "original").n["left_out"] == 1
    assert found.get("wer", "original").parameters["asr"] == "Whisper base"
    assert found.get("wer", "original").parameters["declared"] is True
    plain = utility(eight[:2], eight[:2], figures=("wer",), resamples=0)
    assert asked[-1] == ("whisper-tiny.en", ["en"] * 2)
    assert plain.get("wer", "original").parameters["declared"] is False


def test_a_language_that_no_recogniser_knows_costs_the_words_only(eight: list[Utterance]) -> None:
    rows = [replace(row, language="iba") for row in eight[:2]]
    figures = ("wer", "cer", "duration_change")
    found = utility(rows, rows, figures=figures, workers=1, resamples=0)
    for name in ("wer", "cer"):
        assert found.missing[name] == "no speech recogniser here knows the language 'iba'"
    assert found.get("duration_change").value == 0


def test_a_language_without_spaces_has_characters_and_no_words(
    eight: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wrong sign of six is 17 %, whatever a word may be; nonsense is not believed."""
    rows = [replace(row, language="zh-CN", text="今天天气很好") for row in eight[:2]]
    _hears(monkeypatch, {row.utterance: "今天天汽很好。" for row in rows})
    found = utility(rows, rows, figures=("wer", "cer"), resamples=0)
    assert "written without spaces" in found.missing["wer"]
    assert found.get("cer", "original").value == pytest.approx(1 / 6)
    assert found.get("cer", "original").n["character"] == 12
    assert found.untrusted == {}
    _hears(monkeypatch, {row.utterance: "我们不知道" for row in rows})
    wrong = utility(rows, rows, figures=("cer",), resamples=0)
    assert "of the characters of the original speech wrong" in wrong.untrusted["cer"]


def test_characters_are_believed_where_words_are(
    eight: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters of unrelated texts agree often: 60 % of them wrong is as bad as all words wrong."""
    texts = [str(row.text) for row in eight]
    _hears(monkeypatch, dict(zip([r.utterance for r in eight], texts[1:] + texts[:1], strict=True)))
    found = utility(eight, eight, figures=("wer", "cer"), resamples=0)
    assert found.get("cer", "original").value < found.get("wer", "original").value
    assert sorted(found.untrusted) == ["cer", "wer"]
    assert "English was assumed" in found.untrusted["wer"]
    declared = utility(eight, eight, figures=("wer",), resamples=0, language="en")
    assert "English was assumed" not in declared.untrusted["wer"]


def test_a_torn_journal_is_mended_and_nothing_is_done_twice(
    eight: list[Utterance], recogniser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal.jsonl"
    whole = transcribe(eight[:3], asr=recogniser, workers=1)
    assert transcribe(eight[:2], asr=recogniser, journal=journal, workers=1) == whole[:2]
    journal.write_bytes(journal.read_bytes()[:-9])  # a kill in the middle of a line
    done = []
    from voxrisk.utility.transcripts import _transcribe

    monkeypatch.setattr(
        "voxrisk.utility.transcripts._transcribe",
        lambda asr, paths, task: done.extend(task[0]) or _transcribe(asr, paths, task),
    )
    assert transcribe(eight[:3], asr=recogniser, journal=journal, workers=1) == whole
    assert done == eight[1:3]
    assert transcribe(eight[:3], asr=recogniser, journal=journal, workers=1) == whole
    assert len(done) == 2


def test_a_changed_file_is_measured_anew(eight: list[Utterance], tmp_path: Path) -> None:
    samples = read_audio(eight[0])
    row = replace(eight[0], path=tmp_path / "a.flac")
    journal = tmp_path / "journal.jsonl"
    write_audio(row.path, samples, rate=RATE)
    (before,) = rate_quality([row], journal=journal, workers=1)
    write_audio(
        row.path, np.clip(samples + 0.1 * np.sin(99 * np.arange(len(samples))), -1, 1), rate=RATE
    )
    (after,) = rate_quality([row], journal=journal, workers=1)
    assert after.overall < before.overall


def test_the_number_of_workers_changes_nothing(
    eight: list[Utterance], noisy: list[Utterance]
) -> None:
    pairs = (eight, noisy[::-1])
    one, two = (pitch_correlations(*pairs, workers=workers) for workers in (1, 2))
    assert one == two
    assert one[7] == "0 frames are voiced in both, 20 are needed"


def test_kill_minus_9_then_the_same_command_gives_the_same_bytes(
    eight: list[Utterance], noisy: list[Utterance], tmp_path: Path
) -> None:
    corpora = (eight[:4], noisy[4:])
    command = [sys.executable, "-m", "voxrisk", "utility", "--resamples", "50", "--workers", "1"]
    command += ["--figure", "dnsmos", "--figure", "duration_change"]
    for name, rows in zip(("original", "anonymized"), corpora, strict=True):
        write_corpus(tmp_path / name / "manifest.csv", rows)
        command.append(str(tmp_path / name))
    journal = tmp_path / "killed" / ".journal.jsonl"
    with subprocess.Popen([*command, "-o", tmp_path / "killed"], stderr=subprocess.DEVNULL) as run:
        for _ in range(600):
            if journal.is_file() or run.poll() is not None:
                break
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGKILL)
    assert not (tmp_path / "killed" / "results.json").exists()
    for name in ("killed", "whole"):
        done = subprocess.run(
            [*command, "-o", tmp_path / name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "DNSMOS overall" in done.stdout
    for name in ("results.json", "utterances.csv"):
        both = [(tmp_path / run / name).read_bytes() for run in ("killed", "whole")]
        assert both[0] == both[1]
    results = Results.read(tmp_path / "whole")
    assert results.kind == "utility"
    assert results.methods.resamples == 50
    assert set(results.utility.figures) >= {"dnsmos", "duration_change"}
    rows = list(csv.DictReader((tmp_path / "whole" / "utterances.csv").read_text().splitlines()))
    assert [row["utterance"] for row in rows] == [row.utterance for row in eight[:4]]
    again = subprocess.run(
        [*command, "-o", tmp_path / "whole"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 2
    assert "add --force" in again.stderr


def test_other_ids_are_named(eight: list[Utterance]) -> None:
    stranger = replace(eight[0], utterance="stranger")
    with pytest.raises(
        InputError, match=rf"without an anonymized version: 1 \({eight[1].utterance}"
    ):
        utility(eight[:2], eight[:1])
    with pytest.raises(InputError, match=r"without an original: 1 \(stranger\)"):
        utility(eight[:1], [eight[0], stranger])
    with pytest.raises(InputError, match=rf"anonymized speech: .* twice: 1 \({eight[0].utterance}"):
        utility(eight[:1], [eight[0], eight[0]])
    with pytest.raises(InputError, match="no original utterances"):
        utility([], [])


def test_a_figure_that_cannot_be_had_says_why_and_the_others_stay(
    eight: list[Utterance], noisy: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [replace(noisy[0], utterance=eight[0].utterance)]
    nobody = [replace(eight[0], text=None)]
    found = utility(
        nobody, silent, figures=("wer", "pitch_correlation", "duration_change"), workers=1
    )
    assert set(found.missing) == {"wer", "pitch_correlation"}
    assert found.missing["wer"].startswith("no transcripts")
    assert "0 frames are voiced in both" in found.missing["pitch_correlation"]
    assert found.get("duration_change").interval is None
    assert "1 speakers" in found.get("duration_change").parameters["no_interval"]
    german = [replace(eight[0], language="de")]
    reason = utility(german, german, figures=("wer",), asr="whisper-tiny.en").missing["wer"]
    assert "German, and the recogniser whisper-tiny.en knows English only" in reason
    assert reason.endswith("take --asr whisper-base or whisper-small")
    monkeypatch.setitem(sys.modules, "jiwer", None)
    monkeypatch.setitem(sys.modules, "pyworld", None)
    pyworld.cache_clear()  # it was found a moment ago
    found = utility(eight, eight, figures=("wer", "pitch_correlation"))
    assert found.missing["wer"].endswith("pip install 'voxrisk[utility]'")
    assert "'pyworld'" in found.missing["pitch_correlation"]


def test_an_unknown_recogniser_or_figure_is_refused(eight: list[Utterance]) -> None:
    with pytest.raises(InputError, match=r"no recogniser 'hal'; known are whisper-tiny.en"):
        transcribe(eight, asr="hal")
    with pytest.raises(InputError, match="no utility figure 'beauty'"):
        utility(eight, eight, figures=("beauty",))
    with pytest.raises(InputError, match="not '2020'"):
        utility(eight, eight, compat="2020")


# Pitch


def tone(f0: np.ndarray) -> np.ndarray:
    """A buzz with ten harmonics that follows ``f0 (n,)`` hertz."""
    phase = 2 * np.pi * np.cumsum(f0) / RATE
    return (0.05 * sum(np.sin(k * phase) for k in range(1, 11))).astype(np.float32)


GLIDE = 150 + 40 * np.sin(2 * np.pi * 1.5 * np.concatenate([SECOND, 1 + SECOND]))


def test_the_pitch_of_a_buzz_is_found() -> None:
    found = track_pitch(tone(GLIDE))
    voiced = found > 0
    assert voiced.mean() > 0.9
    truth = GLIDE[np.minimum(np.arange(len(found)) * RATE // 100, len(GLIDE) - 1)]
    assert np.median(np.abs(found[voiced] / truth[voiced] - 1)) < 0.01


def test_silence_noise_and_a_click_have_no_melody() -> None:
    for samples in (np.zeros(RATE), 0.1 * RNG.standard_normal(RATE), np.ones(10)):
        track = track_pitch(samples.astype(np.float32))
        with pytest.raises(InputError, match="voiced in both, 20 are needed"):
            pitch_correlation(track_pitch(tone(GLIDE)), track)


def test_a_melody_survives_height_range_delay_and_tempo_but_not_mirroring() -> None:
    melody = track_pitch(tone(GLIDE))
    assert pitch_correlation(melody, track_pitch(tone(1.6 * GLIDE - 20))) > 0.99
    late = track_pitch(np.concatenate([np.zeros(RATE // 20, np.float32), tone(GLIDE)]))[
        : len(melody)
    ]
    assert pitch_correlation(melody, late) > 0.99
    slower = np.interp(
        np.linspace(0, len(GLIDE) - 1, int(1.3 * len(GLIDE))), np.arange(len(GLIDE)), GLIDE
    )
    assert pitch_correlation(melody, track_pitch(tone(slower))) > 0.99
    assert pitch_correlation(melody, np.where(melody > 0, 400 - melody, 0)) == pytest.approx(-1)
    assert pitch_correlation(melody, np.where(melody > 0, 120.0, 0)) == 0


def test_the_published_code_of_voiceprivacy_2022_rewards_voicing_alone() -> None:
    """Unrelated melodies that are voiced at the same times: 0 by definition, near 1 by the code."""
    voiced = np.repeat([1, 0] * 6, 40)
    a, b = (voiced * (200 + 15 * RNG.standard_normal(480)) for _ in range(2))
    assert abs(pitch_correlation(a, b)) < 0.2
    assert pitch_correlation(a, b, compat=COMPAT) > 0.95
    assert pitch_correlation(a, a, compat=COMPAT) == pytest.approx(1)
    assert pitch_correlation(a, 0 * a, compat=COMPAT) == 0


# Quality


def test_marks_are_those_of_the_authors_code(
    eight: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIG, BAK and OVRL as ``speechmos`` gives them, for speech shorter and longer than 9 s."""
    mel = np.zeros((120, 900))
    stub = types.SimpleNamespace(  # librosa serves another figure (P.808), which we do not use
        feature=types.SimpleNamespace(melspectrogram=lambda **_: mel),
        power_to_db=lambda spectrum, **_: spectrum,
    )
    monkeypatch.setitem(sys.modules, "librosa", stub)
    monkeypatch.setitem(sys.modules, "requests", types.SimpleNamespace(session=None))
    from speechmos import dnsmos as authors

    whole = np.concatenate([read_audio(row) for row in eight[:3]])
    for samples in (whole[: 5 * RATE // 2], whole[: 11 * RATE]):
        theirs = authors.run(samples, RATE)
        ours = dnsmos(samples, compat="speechmos")
        expected = [theirs[f"{name}_mos"] for name in ("ovrl", "sig", "bak")]
        assert [ours.overall, ours.signal, ours.background] == pytest.approx(expected, abs=1e-4)
        assert dnsmos(samples).overall == pytest.approx(ours.overall, abs=0.1)


def test_silence_gets_the_lowest_mark_and_is_counted() -> None:
    assert dnsmos(np.zeros(RATE, np.float32)).overall == 1
    assert dnsmos(np.zeros(RATE, np.float32)).silent


# Estimates


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 6)), min_size=12),
    st.integers(0, 99),
)
def test_resampling_is_counting_speakers_as_often_as_they_are_drawn(
    rows: list[tuple[int, int, int]], seed: int
) -> None:
    errors, words, who = (list(column) for column in zip(*rows, strict=True))
    speakers = [str(w) for w in who]
    names = sorted(set(speakers))
    options = {"denominator": words, "chance": 1.0, "source": "", "seed": seed, "resamples": 9}
    found = ratio_estimate("wer", errors, speakers, **options)  # type: ignore[arg-type]
    assert found.value == pytest.approx(sum(errors) / sum(words))
    if len(names) < 5:
        assert found.interval is None
        return
    draws = []
    for weights in speaker_weights(len(names), resamples=9, seed=seed):
        copies = [i for i, s in enumerate(speakers) for _ in range(weights[names.index(s)])]
        draws.append(sum(errors[i] for i in copies) / sum(words[i] for i in copies))
    assert found.interval is not None
    ends = (found.interval.low, found.interval.high)
    assert ends == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def test_no_error_in_few_speakers_is_not_certainty() -> None:
    speakers = list("abcdefgh")
    found = ratio_estimate("wer", [0] * 8, speakers, chance=1.0, source="", rate=True)
    assert found.interval is not None
    assert found.interval.high > 0.1
    with pytest.raises(InputError, match="wer: no utterance"):
        ratio_estimate("wer", [], [], chance=1.0, source="")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_said_plainly() -> None:
    with pytest.raises(InputError, match="/dev/full: the disk is full; make room"):
        resumable(lambda item: item, [1], key=str, journal="/dev/full")
