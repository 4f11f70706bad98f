"""The demo corpus with Kokoro's neural voices: a table of voices, phonemes, the same samples."""

import hashlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import espeak, kokoro, read_audio, read_corpus, recorded
from voxrisk.corpus.demo import ENGINES, demo_corpus, make_demo
from voxrisk.corpus.kokoro import LENGTHS, STYLE, SYMBOLS, VOICES, Line, speak_all
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.models import cache_folder, is_cached, model, model_path
from voxrisk.types import InputError, MissingExtraError


@pytest.fixture(scope="module")
def weights() -> None:
    if not is_cached("kokoro"):
        pytest.skip("Kokoro's weights (340 MB) are not in the cache: voxrisk models fetch kokoro")


def test_the_voices_are_those_of_the_weights() -> None:
    weights, styles = model("kokoro").files
    names = [Path(part.member).stem for part in styles.npm]
    assert sorted(VOICES) == names
    assert styles.size == len(names) * LENGTHS * STYLE * 4
    shards = [re.findall(r"part(\d+)\.bin$", part.member) for part in weights.npm]
    assert shards == [[str(number)] for number in range(19)]


def test_names_tell_accent_and_gender() -> None:
    assert len(set(VOICES)) == 28
    for voice in VOICES:
        assert re.fullmatch(r"[ab][fm]_[a-z]+", voice)
    genders = ENGINES["kokoro"].genders()
    assert set(genders) == set(VOICES)
    assert genders["af_heart"] == genders["bf_emma"] == "f"
    assert genders["am_adam"] == genders["bm_george"] == "m"
    assert [list(genders.values()).count(g) for g in "fm"] == [15, 13]
    assert {kokoro.accent(voice) for voice in VOICES} == {"en-us", "en"}


def test_eight_voices_are_of_both_genders_and_accents() -> None:
    assert {voice[:2] for voice in VOICES[:8]} == {"af", "am", "bf", "bm"}


def test_every_sentence_has_symbols_in_both_accents() -> None:
    """Nothing is left out on the way from text to numbers, and the accents differ."""
    lines = [espeak.Line(text, voice) for voice in ("en-us", "en") for text in SENTENCES]
    said = espeak.ipa_all(lines)
    for line, phonemes in zip(lines, said, strict=True):
        assert set(phonemes) <= set(SYMBOLS), phonemes
        assert len(line.text) / 2 < len(phonemes) < LENGTHS
        assert re.sub(r"[^,.;:!?]", "", phonemes) == re.sub(r"[^,.;:!?]", "", line.text)
    american, british = said[:60], said[60:]
    assert sum(a != b for a, b in zip(american, british, strict=True)) > 50
    assert "hˈɑːɹbɚ" in american[0]
    assert "hˈɑːbə" in british[0]


def test_symbols_have_numbers_of_their_own() -> None:
    assert len(set(SYMBOLS.values())) == len(SYMBOLS)
    assert min(SYMBOLS.values()) > 0  # 0 marks both ends
    assert max(SYMBOLS.values()) < 178


def test_what_cannot_be_said_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no English Kokoro voice 'jf_alpha'; known are"):
        next(speak_all([Line("Hello.", "jf_alpha")]))
    with pytest.raises(InputError, match=r"1 to 510 phonemes at once, not 0: '\.\.\.'"):
        kokoro.numbers("...", "")
    with pytest.raises(InputError, match="1 to 510 phonemes at once, not 511"):
        kokoro.numbers("long", "a" * 511)
    with pytest.raises(InputError, match="no English symbol 'ɲ', a phoneme of 'España'"):
        kokoro.numbers("España", "ɛspˈaɲə")
    assert kokoro.numbers("Yes?", "jˈɛs?") == [52, 156, 86, 61, 6]
    with pytest.raises(InputError, match="2 to 28 voices, not 29"):
        make_demo(tmp_path, engine="kokoro", voices=29)
    with pytest.raises(InputError, match=r"no engine 'nobody'.*espeak, kokoro"):
        demo_corpus(engine="nobody")


@pytest.mark.parametrize("package", ["onnxruntime", "espeakng_loader"])
def test_a_missing_package_is_said_before_anything_is_fetched(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*voxrisk\[kokoro\]"):
        make_demo(tmp_path / "demo", engine="kokoro", voices=2, sentences=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("weights")
def test_each_name_has_its_own_voice() -> None:
    """SHA-256 of single voices, as the hub publishes them."""
    found = kokoro.styles(model_path("kokoro"))
    published = {"af_heart": "d583ccff3cdca2f7", "bf_emma": "669fe0647f9dd04f"}
    for voice, start in published.items():
        assert hashlib.sha256(found[voice].tobytes()).hexdigest().startswith(start)


@pytest.mark.usefixtures("weights")
def test_samples_do_not_depend_on_the_workers_and_speed_is_speed() -> None:
    lines = [Line("A short one.", "bf_emma", speed) for speed in (1.0, 0.9)]
    alone, together = (list(speak_all(lines, workers=workers)) for workers in (1, 2))
    for one, other in zip(alone, together, strict=True):
        assert one.tobytes() == other.tobytes()
    assert 1.04 < len(alone[1]) / len(alone[0]) < 1.2


@pytest.mark.usefixtures("weights")
def test_the_command_makes_a_corpus_like_the_other_one(tmp_path: Path) -> None:
    options = ["--engine", "kokoro", "--voices", "2", "--sentences", "1"]
    result = CliRunner().invoke(app, ["corpus", "demo", *options, "-o", str(tmp_path / "d")])
    assert result.exit_code == 0, result.output
    assert "4 utterances of 2 synthetic voices" in result.output
    rows = read_corpus(tmp_path / "d")
    assert {row.speaker for row in rows} == set(VOICES[:2])
    for row in rows:
        assert row.gender == row.speaker[1]
        assert row.extra["synthetic"] == "kokoro"
        assert row.text in SENTENCES
        samples = read_audio(row)
        assert len(samples) / 16_000 == pytest.approx(row.duration, abs=1e-3)
        assert np.abs(samples).max() < 0.995
        assert -30 < 10 * np.log10(np.mean(samples.astype(float) ** 2)) < -25.9
    assert sorted(row.session for row in rows) == ["1", "1", "2", "2"]
    # The recording that comes with voxrisk is of these weights: the same sentence, less silence.
    for row in (row for row in rows if row.session == "1"):
        packed, rate = next(recorded.read_all([row.utterance]))
        assert row.duration - 1.5 < len(packed) / rate <= row.duration
        spectrum, again = (np.abs(np.fft.rfft(x, 1 << 17)) for x in (packed, read_audio(row)))
        bands = [x[: 1 << 15].reshape(64, -1).sum(axis=1) for x in (spectrum, again)]
        assert np.corrcoef(np.log(bands))[0, 1] > 0.95


def test_the_cache_tells_the_engines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXRISK_CACHE", str(tmp_path))
    made: list[str] = []

    def make(folder: Path, *, engine: str, voices: int, sentences: int) -> None:
        made.append(f"{engine} {voices} {sentences}")
        folder.mkdir(parents=True)
        (folder / "manifest.csv").touch()

    monkeypatch.setattr("voxrisk.corpus.demo.make_demo", make)
    folders = {demo_corpus(engine=engine) for engine in ("espeak", "kokoro", "kokoro")}
    assert made == ["espeak 40 6", "kokoro 28 6"]
    assert {folder.name.split("-")[0] for folder in folders} == {"espeak", "kokoro"}
    assert all(folder.is_relative_to(cache_folder()) for folder in folders)


def test_recorded_voices_are_what_the_demo_plans(tmp_path: Path) -> None:
    """All 28 voices, three sentences in each session, none twice."""
    rows = make_demo(tmp_path, engine="recorded")
    assert len(rows) == 28 * 2 * recorded.SENTENCES
    assert {row.speaker for row in rows} == set(VOICES)
    for voice in VOICES:
        own = [row for row in rows if row.speaker == voice]
        assert len({row.text for row in own}) == len(own) == 6
        assert {row.gender for row in own} == {kokoro.gender(voice)}
    assert {row.extra["synthetic"] for row in rows} == {"kokoro"}
    assert all(1.2 < row.duration < 7 for row in rows)
    assert 0.5e6 < recorded.FILE.stat().st_size < 1.5e6  # it travels in every wheel


def test_recorded_voices_say_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 sentences in a session, not 2; the engines espeak and"):
        make_demo(tmp_path, engine="recorded", sentences=2)
    with pytest.raises(InputError, match="hold no af_heart-3-00"):
        list(recorded.read_all(["af_heart-3-00"]))


def test_a_recording_gives_back_what_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opus keeps length and rate, and the sound nearly; names come out in any order."""
    time = np.arange(16_000) / 16_000
    tones = {f"v-1-0{k}": np.float32(0.1) * np.sin(900.0 * (k + 1) * time) for k in range(2)}
    recorded.write_all(
        [(n, t.astype(np.float32), 16_000) for n, t in tones.items()], tmp_path / "t"
    )
    monkeypatch.setattr(recorded, "FILE", tmp_path / "t")
    for name, (found, rate) in zip(
        ("v-1-01", "v-1-00"), recorded.read_all(["v-1-01", "v-1-00"]), strict=True
    ):
        assert rate == 16_000
        assert found.shape == tones[name].shape
        assert np.corrcoef(found[2000:-2000], tones[name][2000:-2000])[0, 1] > 0.95
