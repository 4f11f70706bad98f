"""Recognisers as rows: what they know, how they decode, and that they hear real speech."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE
from voxrisk.hearing import (
    RECOGNISERS,
    check_language,
    language_code,
    open_recogniser,
    recogniser_digest,
    recogniser_paths,
    shown_recogniser,
)
from voxrisk.hearing.languages import NAMES, UNSPACED, WHISPER
from voxrisk.hearing.moonshine import read_tokens, spell
from voxrisk.hearing.moonshine_decoder import HEADS, MoonshineDecoder, read_weights
from voxrisk.hearing.sequences import Decoder, open_session, pieces
from voxrisk.models import MODELS, is_cached
from voxrisk.types import InputError
from voxrisk.utility.wer import word_errors


@pytest.mark.parametrize(
    ("said", "code"),
    [("de", "de"), ("de_AT", "de"), ("zh-Hant-TW", "zh"), ("German", "de"),
     ("haitian creole", "ht"), ("cmn", "zh"), ("nb-NO", "no"), ("iba", "iba"), ("haw", "haw")],
)  # fmt: skip
def test_a_language_has_one_code_however_it_is_written(said: str, code: str) -> None:
    assert language_code(said) == code


def test_every_recogniser_is_a_row_with_weights() -> None:
    """Its models are in the store, and what it knows are languages that have a name."""
    digests = {recogniser_digest(name) for name in RECOGNISERS}
    assert len(digests) == len(RECOGNISERS)
    for row in RECOGNISERS.values():
        assert row.languages <= NAMES.keys()
        assert all(name in MODELS for name in row.models)
    assert len(WHISPER) == 99
    assert sorted(UNSPACED - WHISPER) == ["yue"]


def test_what_a_recogniser_does_not_know_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="take --asr whisper-base or whisper-small"):
        check_language("moonshine-base", "de-AT")
    with pytest.raises(InputError, match="no speech recogniser here knows the language 'iba'"):
        check_language("whisper-base", "iba")
    with pytest.raises(InputError, match="no recogniser 'hal'; known are"):
        check_language("hal", "en")
    (tmp_path / "model.bin").write_bytes(b"weights")
    assert check_language(str(tmp_path), "yue") == "yue"
    assert shown_recogniser(str(tmp_path)) == "recogniser of the user"
    assert recogniser_digest(str(tmp_path)) != recogniser_digest("whisper-base")


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_tokens_are_read_as_they_were_written(tokens: list[bytes]) -> None:
    from tempfile import TemporaryDirectory

    raw = b"".join(
        (bytes([len(t)]) if len(t) < 128 else bytes([len(t) % 128 + 128, len(t) // 128])) + t
        for t in tokens
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.bin"
        path.write_bytes(raw)
        assert read_tokens(path) == tokens


def test_a_token_that_is_cut_short_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.bin").write_bytes(b"\x03ab")
    with pytest.raises(InputError, match=r"tokenizer\.bin: the last token is cut short"):
        read_tokens(tmp_path / "tokenizer.bin")


def test_letters_of_several_bytes_are_put_together() -> None:
    tokens = [b"<unk>", b"<s>", b"</s>", "▁caf".encode(), "é".encode()[:1], "é".encode()[1:]]
    assert spell(tokens, [1, 3, 4, 5, 2]) == "café"


@given(st.integers(1, 40_000), st.integers(0, 5))
def test_pieces_are_the_whole_in_order(length: int, seed: int) -> None:
    samples = np.random.default_rng(seed).standard_normal(length).astype(np.float32)
    parts = pieces(samples, 0.5)
    assert np.array_equal(np.concatenate(parts), samples)
    assert all(len(part) <= 0.5 * RATE for part in parts)


def test_long_speech_is_cut_in_its_pause() -> None:
    samples = np.random.default_rng(0).standard_normal(40 * RATE).astype(np.float32)
    samples[25 * RATE : 26 * RATE] = 0.0
    first, _ = pieces(samples, 30.0)
    assert 25.0 < len(first) / RATE < 26.0


class Session:
    """Says 5, 6, 7, 6, 7 … and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[dict[str, np.ndarray]] = []

    def run(self, wanted: list[str], given: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.given.append(given)
        last = int(given["input_ids"][0, -1])
        scores = np.zeros((1, given["input_ids"].shape[1], 9), np.float32)
        scores[0, -1, [3, 4, {5: 6, 6: 7, 7: 6}.get(last, 5)]] = (9, 8, 7)
        new = np.full((1, 1, len(self.given), 1), len(self.given), np.float32)
        return [scores, *(new for _ in wanted[1:])]


def test_greedy_decoding_remembers_and_stops() -> None:
    """What may not be said is not said, and the memory of the sound is that of the first step."""
    decoder = Decoder.__new__(Decoder)
    decoder.session = Session()
    names = [f"{{}}.0.{kind}.key" for kind in ("decoder", "encoder")]
    decoder.empty = {n.format("past_key_values"): np.zeros((1, 1, 0, 1)) for n in names}
    decoder.memory = [n.format("present") for n in names]
    states = np.zeros((1, 4, 2), np.float32)
    said = decoder.greedy(states, [1, 2], end=8, most=4, never=[3], not_first=[4])
    assert said == [5, 4, 4, 4]
    given = decoder.session.given
    assert [bool(g["use_cache_branch"][0]) for g in given] == [False, True, True, True]
    assert given[0]["input_ids"].tolist() == [[1, 2]]
    assert given[3]["past_key_values.0.decoder.key"].shape[2] == 3
    assert given[3]["past_key_values.0.encoder.key"].shape[2] == 1
    assert decoder.greedy(states, [1], end=3, most=4) == []


@pytest.mark.parametrize("name", list(RECOGNISERS))
def test_it_hears_real_speech(name: str, shared: Path) -> None:
    """At most a quarter of the words of a clear sentence of LibriSpeech are wrong."""
    if not all(is_cached(model) for model in RECOGNISERS[name].models):
        pytest.skip(f"{name} is not in the cache; voxrisk models fetch")
    rows = read_corpus(shared / "librispeech_eval")
    row = next(r for r in rows if 6.0 < (r.duration or 0) < 7.0)
    (heard,) = open_recogniser(name, recogniser_paths(name))([read_audio(row, rate=RATE)], "en")
    found = word_errors(row.text or "", heard)
    assert found.errors <= 0.25 * found.words, heard


def small_decoder(seed: int) -> MoonshineDecoder:
    """Moonshine's decoder with two layers of random weights and forty tokens."""
    random = torch.Generator().manual_seed(seed)
    size = 8 * HEADS

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) / shape[0] ** 0.5

    found = {"norm": torch.ones(size), "embed_tokens": 8 * drawn(40, size)}
    for name in ("layers.0", "layers.1"):
        for kind in ("self_attn", "encoder_attn"):
            for place in ("q_proj", "k_proj", "v_proj", "dense"):
                found[f"{name}/{kind}/{place}"] = drawn(size, size)
        for norm in ("input", "post_attention", "final"):
            found[f"{name}.{norm}_layernorm.weight"] = torch.ones(size)
        found[f"{name}/mlp/up_proj"], found[f"{name}.mlp.up_proj.bias"] = drawn(size, 64), drawn(64)
        found[f"{name}/mlp/down_proj"] = drawn(32, size)
        found[f"{name}.mlp.down_proj.bias"] = drawn(size)
    found["turns"] = torch.tensor([1.0, 0.1])
    return MoonshineDecoder(found)


@given(st.integers(0, 99), st.lists(st.integers(1, 9), min_size=1, max_size=5))
@settings(max_examples=20)
def test_who_is_heard_together_changes_no_word(seed: int, lengths: list[int]) -> None:
    """Padding is hidden, and an utterance that has ended does not disturb the others."""
    decoder = small_decoder(seed)
    random = np.random.default_rng(seed)
    states = [random.normal(size=(n, 8 * HEADS)).astype(np.float32) for n in lengths]
    most = [2 * n for n in lengths]
    together = decoder.greedy(states, begin=1, end=2, most=most)
    alone = [
        decoder.greedy([state], begin=1, end=2, most=[limit])[0]
        for state, limit in zip(states, most, strict=True)
    ]
    assert together == alone
    for said, limit in zip(together, most, strict=True):
        assert len(said) <= limit
        assert 2 not in said


def test_moonshine_says_what_its_published_graph_says(shared: Path) -> None:
    """Token for token, three utterances at once beside ONNX Runtime one by one."""
    if not all(is_cached(model) for model in RECOGNISERS["moonshine-base"].models):
        pytest.skip("moonshine-base is not in the cache; voxrisk models fetch")
    encoder, folder = map(Path, recogniser_paths("moonshine-base"))
    rows = [r for r in read_corpus(shared / "librispeech_eval") if 2.0 < (r.duration or 0) < 3.5]
    session = open_session(encoder)
    states = [session.run(None, {"input_values": read_audio(r)[None]})[0] for r in rows[:9:4]]
    published = Decoder(folder / "decoder_model_merged.ort")
    expected = [published.greedy(state, [1], end=2, most=20) for state in states]
    ours = MoonshineDecoder(read_weights(folder / "decoder_model_merged.ort"))
    found = ours.greedy([state[0] for state in states], begin=1, end=2, most=[20] * 3)
    assert found == expected
    assert min(map(len, found)) > 4
