"""Whether anonymized files are the versions of the originals with their ids, on real audio."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, pairs, read_audio, read_corpus, write_audio
from voxrisk.corpus.demo import VOICES
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.corpus.pairs import PairCheck, check_pairs, envelope, rate_suspicion
from voxrisk.corpus.sentences import SENTENCES
from voxrisk.protect.mcadams import mcadams
from voxrisk.protect.world import analyse, statistics, world
from voxrisk.types import InputError

RATE = 16_000
Samples = NDArray[np.float32]
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _say(texts: list[str], voices: list[str], rate: int = 165) -> list[Samples]:
    lines = [Line(text, f"en-us+{v}", rate) for text, v in zip(texts, voices, strict=True)]
    return [soxr.resample(said.samples, said.rate, RATE) for said in speak_all(lines)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture(scope="module")
def original(folder: Path) -> list[Utterance]:
    """36 different sentences by 12 synthetic voices."""
    texts, voices = list(SENTENCES[:36]), [VOICES[i % 12] for i in range(36)]
    sounds = dict(enumerate(_say(texts, voices)))
    rows = _written(folder / "original", {f"u{i:02}": x for i, x in sounds.items()})
    return [replace(row, text=text) for row, text in zip(rows, texts, strict=True)]


@pytest.fixture(scope="module")
def bent(folder: Path, original: list[Utterance]) -> list[Utterance]:
    return _converted(folder / "bent", original, lambda x: mcadams(x, alpha=0.7))


def _written(folder: Path, sounds: Mapping[str, Samples], ending: str = ".flac") -> list[Utterance]:
    for name, samples in sounds.items():
        write_audio(folder / f"{name}{ending}", samples, rate=RATE)
    return [Utterance(name, folder / f"{name}{ending}", "s") for name in sounds]


def _converted(
    folder: Path, rows: list[Utterance], change: Callable[[Samples], Samples], ending: str = ".flac"
) -> list[Utterance]:
    return _written(folder, {row.utterance: change(read_audio(row)) for row in rows}, ending)


def _permuted(rows: list[Utterance], *, seed: int = 3) -> list[Utterance]:
    """Every file under the id of another one."""
    order = np.random.default_rng(seed).permutation(len(rows))
    cycle = dict(zip(order, np.roll(order, 1), strict=True))
    return [replace(row, path=rows[cycle[i]].path) for i, row in enumerate(rows)]


def test_conversions_that_keep_the_timing_are_paired(
    original: list[Utterance], bent: list[Utterance], folder: Path
) -> None:
    target = statistics([analyse(read_audio(original[0]))])
    assert target is not None
    moved = _converted(folder / "world", original[:12], lambda x: world(x, target))
    for found in (check_pairs(original, bent), check_pairs(original, moved)):
        assert found.verdict == "paired"
        assert found.own_best > 0.9
        assert (found.identical, found.moved, found.misfits) == ((), (), ())
        assert found.duration_ratio_median == pytest.approx(1, abs=1e-3)
        assert (found.duration_mismatch, found.rate_ratio) == (0, None)
    assert (found.shared, found.compared) == (12, 12)


def test_a_copy_in_another_container_is_identical(original: list[Utterance], folder: Path) -> None:
    copies = _converted(folder / "copies", original, lambda x: x, ".wav")
    found = check_pairs(original, copies)
    assert found.verdict == "identical"
    assert found.identical == tuple(row.utterance for row in original)
    assert found.moved == ()


def test_a_few_unprotected_files_are_named(
    original: list[Utterance], bent: list[Utterance]
) -> None:
    found = check_pairs(original, [*original[:2], *bent[2:]])
    assert (found.verdict, found.identical) == ("paired", ("u00", "u01"))


def test_originals_under_other_ids_are_permuted(original: list[Utterance]) -> None:
    wrong = _permuted(original)
    found = check_pairs(original, wrong)
    assert found.verdict == "permuted"
    truth = {row.path: row.utterance for row in original}
    assert set(found.moved) == {(row.utterance, truth[row.path]) for row in wrong}
    assert found.identical == ()


def test_protected_files_under_other_ids_are_permuted(
    original: list[Utterance], bent: list[Utterance]
) -> None:
    wrong = _permuted(bent)
    found = check_pairs(original, wrong)
    assert found.verdict == "permuted"
    assert found.moved == ()
    truth = {row.path: row.utterance for row in bent}
    assert set(found.misfits) <= {(row.utterance, truth[row.path]) for row in wrong}
    assert found.other_best > 0.5
    assert found.own_best < 0.1


def test_a_small_sample_still_finds_the_true_originals(
    original: list[Utterance], bent: list[Utterance], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most true originals are outside of the sample; those of the same length are looked at."""
    wrong = _permuted(bent)
    monkeypatch.setattr(pairs, "EXTRA", 0)
    assert check_pairs(original, wrong, sample=6).verdict == "unknown"
    monkeypatch.setattr(pairs, "EXTRA", 12)
    found = check_pairs(original, wrong, sample=6)
    assert (found.compared, found.shared) == (6, 36)
    assert found.verdict == "permuted"


def test_two_files_prove_nothing(original: list[Utterance], bent: list[Utterance]) -> None:
    """Of two files both fit best by chance in one case of four."""
    assert check_pairs(original[:2], bent[:2]).verdict == "unknown"
    swapped = [replace(bent[0], path=bent[1].path), replace(bent[1], path=bent[0].path)]
    assert check_pairs(original[:2], swapped).verdict == "unknown"
    copied = [replace(original[0], path=original[1].path), original[1]]
    assert check_pairs(original[:2], copied).moved == (("u00", "u01"),)


def test_half_the_length_is_a_wrong_sample_rate(
    original: list[Utterance], bent: list[Utterance], folder: Path
) -> None:
    fast = _converted(folder / "fast", bent, lambda x: soxr.resample(x, RATE, RATE // 2))
    found = check_pairs(original, fast)
    assert found.duration_ratio_median == pytest.approx(0.5, abs=1e-3)
    assert found.rate_ratio == pytest.approx(0.5)
    assert found.verdict == "paired"


def test_speech_spoken_anew_is_unknown(original: list[Utterance], folder: Path) -> None:
    """A voice that reads the same words in its own time fits nothing, and nothing is claimed."""
    texts = [str(row.text) for row in original]
    random = np.random.default_rng(0)
    sounds = []
    for samples in _say(texts, ["grandma"] * 36, 120):
        # espeak-ng has one rhythm for all voices; people do not.
        parts = np.array_split(samples, 8)
        stretched = [soxr.resample(p, RATE, int(RATE * random.uniform(0.6, 1.7))) for p in parts]
        sounds.append(np.concatenate(stretched))
    anew = _written(
        folder / "anew", {r.utterance: s for r, s in zip(original, sounds, strict=True)}
    )
    for rows in (anew, _permuted(anew)):
        found = check_pairs(original, rows)
        assert found.verdict == "unknown"
        assert found.other_best < 0.1
        assert found.duration_mismatch > 0.5
        assert found.rate_ratio is None


def test_digits_of_one_length_are_never_called_permuted(folder: Path) -> None:
    """Ten words by nine voices, all of 1 s: other voices say a word alike, which proves nothing."""
    texts = list(DIGITS) * 9
    random = np.random.default_rng(0)

    def second(samples: Samples) -> Samples:
        padded = np.pad(samples[:RATE], (0, RATE - len(samples[:RATE])))
        return (padded + random.normal(0, 1e-3, RATE)).astype(np.float32)

    sides = [
        [second(x) for x in _say(texts, [voices[i // 10] for i in range(90)])]
        for voices in (VOICES[:9], VOICES[30:39])
    ]
    names = [f"{word}-{i // 10}" for i, word in enumerate(texts)]
    spoken, anew = (
        _written(folder / f"digits{i}", dict(zip(names, side, strict=True)))
        for i, side in enumerate(sides)
    )
    assert check_pairs(spoken, anew).verdict == "unknown"
    bent = _converted(folder / "digits-bent", spoken, lambda x: mcadams(x, alpha=0.7))
    assert check_pairs(spoken, bent).verdict in ("paired", "unknown")


def test_real_speech_of_one_length(shared: Path, folder: Path) -> None:
    """One second of each utterance: lengths tell nothing, the loudness still does."""
    rows = [r for r in read_corpus(shared / "librispeech_eval")[::16] if (r.duration or 0) > 2]
    cut = [replace(r, start=0.5, end=1.5) for r in rows]
    moved = _converted(folder / "seconds", cut, lambda x: mcadams(x, alpha=0.7))
    assert check_pairs(cut, moved).verdict == "paired"
    assert check_pairs(cut, _permuted(moved)).verdict == "permuted"


def test_silence_is_neither_identical_nor_moved(folder: Path) -> None:
    rows = _written(folder / "silence", {f"z{i}": np.zeros(RATE, np.float32) for i in range(4)})
    found = check_pairs(rows, _permuted(rows))
    assert (found.verdict, found.identical, found.moved) == ("unknown", (), ())


def test_what_cannot_be_compared_is_refused(original: list[Utterance]) -> None:
    other = [replace(row, utterance=f"x{row.utterance}") for row in original]
    with pytest.raises(InputError, match="no utterance id in common; give the protected version"):
        check_pairs(original, other)
    with pytest.raises(InputError, match="the sample is 0"):
        check_pairs(original, original, sample=0)


def test_the_result_is_plain_json(original: list[Utterance]) -> None:
    import json

    found = check_pairs(original, _permuted(original), sample=8, seed=2)
    plain = json.loads(json.dumps(found.to_json()))
    assert plain == found.to_json()
    assert plain["moved"] == [list(pair) for pair in found.moved]
    assert plain["seed"] == 2
    assert set(plain) == set(PairCheck.__dataclass_fields__)


def test_an_envelope_knows_neither_level_nor_speed() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 32_000)
    samples = (noise * np.sin(np.arange(32_000) / 4000) ** 2).astype(np.float32)
    assert np.linalg.norm(envelope(samples)) == pytest.approx(1)
    assert envelope(samples).sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(envelope(samples / 8), envelope(samples), atol=1e-6)
    assert envelope(samples[::2]) @ envelope(samples) > 0.95
    assert not envelope(np.zeros(1000, np.float32)).any()
    assert envelope(np.ones(7, np.float32)).shape == (100,)


def test_speech_at_double_speed_is_suspected(original: list[Utterance], folder: Path) -> None:
    """The same words in half the time; without words there is nothing to say."""
    assert rate_suspicion(original) is None
    rows = []
    for row in original:
        path = folder / f"double-{row.utterance}.wav"
        soundfile.write(path, read_audio(row), 2 * RATE)
        rows.append(replace(row, path=path))
    found = rate_suspicion(rows, limit=4.5)
    assert found is not None
    words = sum(len(str(row.text).split()) for row in original)
    assert (found.words, found.utterances, found.limit) == (words, 36, 4.5)
    assert found.words_per_second == pytest.approx(found.words / found.seconds)
    assert rate_suspicion([replace(row, text=None) for row in rows], limit=4.5) is None
    assert rate_suspicion(rows[:3], limit=4.5) is None


def test_real_reading_is_under_three_words_a_second(shared: Path) -> None:
    rows = read_corpus(shared / "librispeech_eval")
    assert rate_suspicion(rows) is None
    found = rate_suspicion(rows, limit=0.1)
    assert found is not None
    assert 2.5 < found.words_per_second < 3.0
