"""A recogniser that is really trained: on speech of pure tones, where every letter has its own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance
from voxrisk.corpus.audio import RATE, write_audio
from voxrisk.store import Store
from voxrisk.types import InputError
from voxrisk.utility.asr import RECIPES, Cell, Recipe, equal_hours, slice_utility
from voxrisk.utility.asr.ctc import Network, batches, ctc_loss, log_probs, train, warm_and_cool
from voxrisk.utility.asr.frames import encode_rows

LETTERS = "abdeio"
WORDS = ("bad", "abide", "do", "odd", "idea", "beda", "obi", "a")
SMALL = Recipe(
    frames="fbank", width=48, blocks=1, kernel=5, stride=2, dropout=0.0, batch_seconds=12.0,
    steps=150, rate=8e-3,
)  # fmt: skip


def sing(words: list[str], *, high: float = 1.0) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """A tone for each letter, a gap after each, a longer one after each word; when each is said."""
    gap, parts, times = np.zeros(int(0.02 * RATE), np.float32), [], []
    t = np.arange(int(0.06 * RATE)) / RATE
    at = 0.0
    for word in words:
        began = at
        for letter in word:
            tone = 0.3 * np.sin(2 * np.pi * high * 300 * 1.5 ** LETTERS.index(letter) * t)
            parts += [tone.astype(np.float32), gap]
            at += 0.08
        times.append((began, at))
        parts.append(np.zeros(int(0.06 * RATE), np.float32))
        at += 0.06
    return np.concatenate(parts), times


def make_corpus(folder: Path, *, high: float = 1.0) -> tuple[list[Utterance], list[Utterance]]:
    """Whole utterances of six speakers, and the same cut into single words."""
    random = np.random.default_rng(5)
    whole, cut = [], []
    for number in range(48):
        words = [str(word) for word in random.choice(WORDS, random.integers(2, 5))]
        samples, times = sing(words, high=high)
        samples = samples + random.normal(0, 1e-3, len(samples)).astype(np.float32)
        name, path = f"u{number:02d}", folder / f"u{number:02d}.flac"
        write_audio(path, samples, rate=RATE)
        row = Utterance(
            name, path, f"s{number % 6}", text=" ".join(words).upper(),
            duration=len(samples) / RATE,
        )  # fmt: skip
        whole.append(row)
        cut += [
            replace(row, utterance=f"{name}-{k}", text=word, start=start, end=end, duration=None)
            for k, (word, (start, end)) in enumerate(zip(words, times, strict=True))
        ]
    return whole, cut


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Utterance]]:
    folder = tmp_path_factory.mktemp("tones")
    found = {}
    for condition, high in (("clear", 1.0), ("anonymized", 1.22)):
        whole, cut = make_corpus(folder / condition, high=high)
        found |= {condition: whole[:36], f"{condition} cut": cut, f"{condition} test": whole[36:]}
    return found


@pytest.fixture(scope="module")
def table(
    spoken: dict[str, list[Utterance]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tuple[Cell, ...]]:
    store = tmp_path_factory.mktemp("store")
    return store, run(spoken, store)


def run(
    spoken: dict[str, list[Utterance]], store: Path, recipe: Recipe = SMALL
) -> tuple[Cell, ...]:
    training = {
        (condition, duration): [
            r for r in spoken[f"{condition}{cut}"] if int(r.utterance[1:3]) < 36
        ]
        for condition in ("clear", "anonymized")
        for duration, cut in ((None, ""), (0.2, " cut"))
    }
    testing = {name: spoken[f"{name} test"] for name in ("clear", "anonymized")}
    return slice_utility(training, testing, Store(store), recipe=SMALL, workers=1, resamples=200)


def cell(cells: tuple[Cell, ...], trained: str, duration: float | None, tested: str) -> Cell:
    return next(
        c for c in cells if (c.trained, c.duration, c.tested) == (trained, duration, tested)
    )


def test_what_was_learned_is_recognised_and_a_mismatch_costs_words(
    table: tuple[Path, tuple[Cell, ...]],
) -> None:
    cells = table[1]
    assert len(cells) == 8
    for tested, other in (("clear", "anonymized"), ("anonymized", "clear")):
        matched, mismatched = (cell(cells, name, None, tested) for name in (tested, other))
        assert matched.wer.value < 0.2
        assert mismatched.wer.value > matched.wer.value + 0.3
        assert matched.mismatch is None
        assert mismatched.mismatch is not None
        assert mismatched.mismatch.interval is not None
        assert mismatched.mismatch.interval.low > 0


def test_every_cell_has_the_same_hours_and_steps(table: tuple[Path, tuple[Cell, ...]]) -> None:
    cells = table[1]
    assert {c.steps for c in cells} == {SMALL.steps}
    hours = [c.hours for c in cells]
    assert max(hours) - min(hours) < 1.5 / 3600  # the longest utterance
    assert {c.wer.n["word"] for c in cells} == {cells[0].wer.n["word"]}
    assert {c.pieces for c in cells if c.duration is None} != {
        c.pieces for c in cells if c.duration
    }


def test_a_second_run_trains_nothing_and_finds_the_same(
    table: tuple[Path, tuple[Cell, ...]], spoken: dict[str, list[Utterance]]
) -> None:
    store, before = table
    dates = {p: p.stat().st_mtime_ns for p in store.rglob("network.pt")}
    assert len(dates) == 4
    assert run(spoken, store) == before
    assert {p: p.stat().st_mtime_ns for p in store.rglob("network.pt")} == dates
    assert not list(store.rglob("recogniser-*/frames.f16"))


def test_a_recogniser_that_is_lost_is_trained_to_the_same_weights(
    table: tuple[Path, tuple[Cell, ...]], spoken: dict[str, list[Utterance]], tmp_path: Path
) -> None:
    """Killed in the middle the entry has no ``done.json``, and the next run makes it whole."""
    again = tmp_path / "store"
    shutil.copytree(table[0], again)
    lost = min(p for p in again.glob("recogniser-*") if p.is_dir())
    before = (lost / "network.pt").read_bytes()
    for name in ("done.json", "network.pt"):
        (lost / name).unlink()
    cells = run(spoken, again)
    assert (lost / "network.pt").read_bytes() == before
    assert [c.wer for c in cells] == [c.wer for c in table[1]]


def test_transcripts_of_other_utterances_teach_nothing(
    spoken: dict[str, list[Utterance]], tmp_path: Path
) -> None:
    """The control of the whole table: with shuffled texts nothing is learned, and it says so."""
    rows = spoken["clear"]
    texts = [row.text for row in rows]
    wrong = [replace(row, text=texts[(i + 7) % len(texts)]) for i, row in enumerate(rows)]
    (found,) = slice_utility(
        {("clear", None): wrong}, {"clear": spoken["clear test"]}, Store(tmp_path),
        recipe=replace(SMALL, steps=80), workers=1, resamples=100,
    )  # fmt: skip
    assert found.wer.value > 0.75
    assert found.wer.parameters["trusted"] is False


@given(
    st.lists(st.floats(0.3, 20), min_size=4, max_size=40),
    st.lists(st.floats(0.3, 3), min_size=4, max_size=40),
    st.integers(0, 5),
)
def test_equal_hours_is_equal_hours(first: list[float], second: list[float], seed: int) -> None:
    """No set is longer than the shortest, none shorter by more than one piece, none drawn twice."""
    sets = {
        ("clear", float(k)): [
            Utterance(f"{k}-{i}", Path("x.flac"), "s", text="a", duration=d)
            for i, d in enumerate(lengths)
        ]
        for k, lengths in enumerate((first, second))
    }
    drawn = equal_hours(sets, seed=seed)
    wanted = min(sum(first), sum(second))
    for key, rows in drawn.items():
        total = sum(row.duration or 0 for row in rows)
        longest = max(row.duration or 0 for row in sets[key])
        assert wanted - longest - 1e-6 <= total <= wanted * (1 + 1e-6)
        assert len({row.utterance for row in rows}) == len(rows)


def test_clear_and_anonymized_pieces_are_drawn_alike() -> None:
    sets = {
        (condition, 1.0): [
            Utterance(f"u{i}", Path(f"{condition}.flac"), "s", text="a", duration=1 + i / 10)
            for i in range(20)
        ]
        for condition in ("clear", "anonymized")
    }
    drawn = equal_hours(sets, hours=15 / 3600, seed=3)
    assert len({tuple(r.utterance for r in rows) for rows in drawn.values()}) == 1


def test_more_hours_than_there_are() -> None:
    rows = [Utterance("u", Path("x.flac"), "s", text="a", duration=60.0)]
    with pytest.raises(InputError, match=r"0\.02 hours .*\(clear speech, 1 s, has least\)"):
        equal_hours({("clear", 1.0): rows}, hours=1.0)


def test_nobody_has_slices_of_every_length() -> None:
    short = [Utterance("u", Path("x.flac"), "first", text="a", duration=1.0)]
    long = [Utterance("v", Path("x.flac"), "second", text="a", duration=4.0)]
    with pytest.raises(InputError, match=r"pieces of every kind; clear speech, 1 s, has least"):
        equal_hours({("clear", 1.0): short, ("clear", 4.0): long})


@given(st.integers(0, 5), st.integers(2, 9))
def test_every_speaker_teaches_as_much_at_every_length(seed: int, long: int) -> None:
    """Who speaks in short utterances has no long slices, and nobody else may take that place."""
    people = {"long": 12, "short": 2} | {f"s{i}": long for i in range(4)}
    sets = {
        ("clear", length): [
            Utterance(f"{s}-{i}", Path("x.flac"), s, text="a", duration=length)
            for s, lasts in people.items()
            for _ in range(5)
            for i in range(int(lasts // length))
        ]
        for length in (1.0, 3.0)
    }
    drawn = equal_hours(sets, seed=seed)
    taught = {
        key: {s: sum(r.duration or 0 for r in rows if r.speaker == s) for s in people}
        for key, rows in drawn.items()
    }
    assert taught["clear", 1.0]["short"] == taught["clear", 3.0]["short"] == 0
    for speaker in people:
        assert abs(taught["clear", 1.0][speaker] - taught["clear", 3.0][speaker]) <= 3.0 + 1e-6


def test_without_transcripts_and_in_another_language(tmp_path: Path) -> None:
    mute = [Utterance("u", tmp_path / "x.flac", "s", duration=1.0)]
    said = [replace(mute[0], text="a")]
    with pytest.raises(InputError, match="none of 1 pieces has a transcript"):
        slice_utility({("clear", 1.0): mute}, {"clear": said}, Store(tmp_path))
    with pytest.raises(InputError, match="clear speech, to test on: none of 1 pieces"):
        slice_utility({("clear", 1.0): said}, {"clear": mute}, Store(tmp_path))
    with pytest.raises(InputError, match=r"'de-AT'; train from filter banks \(fbank\)"):
        slice_utility({("clear", 1.0): said}, {"clear": said}, Store(tmp_path), language="de-AT")
    with pytest.raises(InputError, match="no recipe 'kaldi'; known are whisper, fbank"):
        slice_utility({("clear", 1.0): said}, {"clear": said}, Store(tmp_path), recipe="kaldi")


def test_the_loss_of_ctc_is_minus_the_log_of_the_sum_over_paths() -> None:
    """Against the sum over all paths of three frames; the padding of a batch changes nothing."""
    network = Network(replace(SMALL, stride=1), 4, 3).eval()
    random = np.random.default_rng(0)
    frames = [random.normal(size=(t, 4)).astype(np.float16) for t in (3, 7)]
    targets = [[1, 2], [2]]
    p = np.exp(log_probs(network, frames[0]).astype(np.float64))
    paths = [(1, 2, 2), (1, 1, 2), (1, 2, 0), (1, 0, 2), (0, 1, 2)]
    total = sum(p[0, a] * p[1, b] * p[2, c] for a, b, c in paths)
    alone = float(ctc_loss(network, frames[:1], targets[:1]).detach())
    assert alone == pytest.approx(-np.log(total) / 2, rel=1e-5)
    other = float(ctc_loss(network, frames[1:], targets[1:]).detach())
    both = float(ctc_loss(network, frames, targets).detach())
    assert both == pytest.approx((2 * alone + other) / 3, rel=1e-5)


def test_batches_hold_equal_speech_and_every_piece_once_in_a_round() -> None:
    seconds = np.random.default_rng(1).uniform(0.5, 4.0, 300)
    order = batches(seconds.tolist(), 30.0, seed=0)
    seen: list[int] = []
    lengths = []
    while len(seen) < 300:
        chosen = next(order)
        seen += chosen
        lengths.append(seconds[chosen].sum())
    assert sorted(seen) == list(range(300))
    assert np.median(lengths) == pytest.approx(30.0, abs=4.0)
    assert max(lengths) < 34.0


def test_nothing_to_learn_from() -> None:
    with pytest.raises(InputError, match="there is none"):
        train([np.zeros((5, 3), np.float16)], [[]], SMALL, characters=3, rate=50)


def test_the_rate_warms_and_cools() -> None:
    shares = [warm_and_cool(step, 100) for step in range(100)]
    assert shares[9] == 1.0 == max(shares)
    assert shares[:10] == sorted(shares[:10])
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert shares[-1] < 0.01


def test_a_slice_is_heard_alone(spoken: dict[str, list[Utterance]]) -> None:
    """Nothing of the words beside a slice is in its frames: they are those of its own samples."""
    piece = next(r for r in spoken["clear cut"] if r.start)
    (inside,) = encode_rows([piece], "fbank")
    assert len(inside) == pytest.approx(100 * ((piece.end or 0) - (piece.start or 0)), abs=1)


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_builds_and_learns_a_step(name: str) -> None:
    recipe = replace(RECIPES[name], steps=2, batch_seconds=1.0)
    dimension = {"whisper": 384, "fbank": 80}[recipe.frames]
    random = np.random.default_rng(0)
    frames = [random.normal(size=(60, dimension)).astype(np.float16) for _ in range(3)]
    network, losses = train(frames, [[1, 2], [2], [1]], recipe, characters=4, rate=50)
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    assert log_probs(network, frames[0]).shape == (60 // recipe.stride, 4)


def test_facts_of_a_recogniser_can_be_read(table: tuple[Path, tuple[Cell, ...]]) -> None:
    folder = next(p for p in table[0].glob("recogniser-*") if p.is_dir())
    losses = json.loads((folder / "losses.json").read_text())
    assert len(losses) == SMALL.steps
    assert np.mean(losses[-20:]) < 0.3 * np.mean(losses[:20])
