"""Phone durations: what they must notice, and what they must not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from voxrisk.attack import load_encoder
from voxrisk.attack.durations import (
    CLASS,
    CLASSES,
    DurationsEncoder,
    Phone,
    durations,
    phones_of,
    unusual,
)
from voxrisk.attack.embed import embed_corpus
from voxrisk.corpus import Utterance
from voxrisk.corpus.audio import RATE, write_audio
from voxrisk.corpus.espeak import Line, speak_all
from voxrisk.hearing.forced import Timed, find_phones

TEXT = "THE QUICK BROWN FOX WANTED TO JUMP OVER EVERY LAZY DOG IN THE OLD VILLAGE"
ALIGNED = [
    Timed("<sil>", 20, ()),
    Timed("fox", 60, (("F", 10), ("AA", 20), ("K", 10), ("S", 20))),
    Timed("a", 5, (("AH", 5),)),
    Timed("<sil>", 30, ()),
    Timed("dog", 30, (("D", 5), ("AO", 15), ("G", 10))),
]


def value(vector: np.ndarray, name: str) -> float:
    return float(vector[DurationsEncoder.names.index(name)])


@pytest.fixture(scope="module")
def waves() -> list[np.ndarray]:
    """The same sentence by a voice of espeak at two rates."""
    pytest.importorskip("espeakng_loader")
    lines = [
        Line(TEXT.lower(), voice="en-us", rate=150),
        Line(TEXT.lower(), voice="en-us", rate=220),
    ]
    soxr = pytest.importorskip("soxr")
    return [soxr.resample(said.samples, said.rate, RATE) for said in speak_all(lines)]


def test_a_phone_knows_its_neighbours_its_word_and_whether_a_pause_follows() -> None:
    phones = phones_of(ALIGNED)
    assert [p.name for p in phones] == ["F", "AA", "K", "S", "AH", "D", "AO", "G"]
    assert [p.paused for p in phones] == [False] * 4 + [True, False, True, True]
    assert phones[0].before == "silence"
    assert phones[0].after == CLASS["AA"]
    assert phones[4].before == CLASS["S"]  # no silence between the two words
    assert phones[4].after == "silence"
    assert (phones[4].first, phones[4].last, phones[4].phones) == (True, True, 1)


def test_every_phone_of_the_aligner_has_a_class_and_a_row() -> None:
    from voxrisk.hearing.forced import PHONES

    assert set(PHONES) == set(CLASS)
    for name in PHONES:
        assert np.isfinite(unusual(Phone(name, 8, "silence", "short", False, False, True, 3)))


def test_an_ordinary_utterance_is_near_zero_and_a_longer_vowel_moves_the_vowels_only() -> None:
    random = np.random.default_rng(0)
    names = sorted(CLASS)
    chosen = [names[i] for i in random.integers(len(names), size=400)]
    plain = [Phone(name, 8, "short", "short", False, False, False, 4) for name in chosen]
    lengths = random.normal(size=400)
    ordinary = [
        replace_frames(p, lambda left, x=x: left - x) for p, x in zip(plain, lengths, strict=True)
    ]
    vector = durations(ordinary)
    assert abs(value(vector, "mean")) < 0.3
    longer = [
        p._replace(frames=round(p.frames * 1.5)) if CLASS[p.name] == "long" else p for p in ordinary
    ]
    moved = durations(longer) - vector
    assert value(moved, "long, mean") > 0.8
    means = [value(moved, f"{name}, mean") for name in CLASSES if name != "long"]
    assert max(means) < 0.0  # beside the utterance's own mean, the others became shorter
    assert max(means) - min(means) < 0.2


def replace_frames(phone: Phone, left: object) -> Phone:
    """The phone with the length at which a function of what is unusual in it vanishes."""
    assert callable(left)
    frames = np.arange(1, 200)
    away = [abs(left(unusual(phone._replace(frames=int(f))))) for f in frames]
    return phone._replace(frames=int(frames[int(np.argmin(away))]))


def test_speech_that_cannot_be_aligned_says_nothing() -> None:
    nothing = durations([])
    assert nothing[-1] == 1.0
    assert not nothing[:-1].any()
    wave = 0.1 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    assert (load_encoder("durations").embed([wave]) == nothing).all()  # no text


def test_a_faster_speaker_has_shorter_phones(waves: list[np.ndarray]) -> None:
    plain, fast = load_encoder("durations").embed(waves, [TEXT] * 2)
    assert value(fast, "mean") < value(plain, "mean") - 0.3


def test_phones_fill_their_words_and_do_not_depend_on_what_was_aligned_before(
    waves: list[np.ndarray],
) -> None:
    once = find_phones(waves[0], TEXT)
    assert once is not None
    find_phones(waves[1], TEXT)
    assert find_phones(waves[0], TEXT) == once
    spoken = [word for word in once if word.phones]
    assert [word.word.split("(")[0].upper() for word in spoken] == TEXT.split()
    assert all(sum(frames for _, frames in word.phones) == word.frames for word in spoken)
    assert sum(word.frames for word in once) == pytest.approx(len(waves[0]) / RATE * 100, abs=5)


def test_vectors_of_a_corpus_depend_on_its_words(waves: list[np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    write_audio(path, waves[0], rate=RATE)
    row = Utterance(utterance="a", speaker="s", path=path, text=TEXT)
    right = embed_corpus([row], "durations", tmp_path / "a.npz", workers=1)
    wrong = embed_corpus(
        [replace(row, text="NOTHING OF THIS WAS SAID")], "durations", tmp_path / "b.npz", workers=1
    )
    assert np.abs(right.vectors - wrong.vectors).max() > 0.1
