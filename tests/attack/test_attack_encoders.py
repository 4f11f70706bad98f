"""Encoders: the official weights on real speech, padding, batches, and what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from voxrisk.attack import load_encoder  # noqa: E402
from voxrisk.attack.ecapa import Ecapa  # noqa: E402
from voxrisk.attack.ecapa_encoder import drop_denormals, length_batches  # noqa: E402
from voxrisk.attack.ecapa_frames import FrameEcapa  # noqa: E402
from voxrisk.attack.embed import _groups, embed_corpus  # noqa: E402
from voxrisk.attack.features import filter_banks, frame_count  # noqa: E402
from voxrisk.attack.onnx import FEATURES, kaldi_filter_banks  # noqa: E402
from voxrisk.attack.sizes import SIZES, EcapaSize  # noqa: E402
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio  # noqa: E402
from voxrisk.types import InputError  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


@pytest.fixture(scope="session")
def speech(shared: Path) -> list[Utterance]:
    """Real utterances of two speakers, the shortest first."""
    rows = [r for r in read_corpus(shared / "librispeech_eval") if r.speaker in ("61", "121")]
    return sorted(rows, key=lambda r: r.duration or 0.0)


@pytest.fixture(scope="session")
def official():
    from voxrisk.models import model_path

    try:
        model_path("ecapa-voxceleb")
    except InputError as error:
        pytest.skip(f"no official weights: {error}")
    return load_encoder("ecapa-voxceleb")


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """The folder of an encoder of the small size with random weights."""
    folder = tmp_path_factory.mktemp("small")
    torch.manual_seed(0)
    torch.save(Ecapa(SIZES["small"]).state_dict(), folder / "embedding_model.ckpt")
    return folder


def angle(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_official_ecapa_reproduces_published_vectors_of_whole_utterances(
    official, speech, golden: Path
):
    """golden/librispeech_testclean_ecapa: cosine above 0.999."""
    folder = golden / "librispeech_testclean_ecapa"
    names = [Path(u).stem for u in np.load(folder / "utterances.npy")]
    published = dict(zip(names, np.load(folder / "xvectors.npy"), strict=True))
    rows = [r for r in speech if r.utterance in published][:8]
    assert len(rows) == 8
    found = official.embed([read_audio(r) for r in rows])
    assert found.dtype == np.float32
    assert min(angle(f, published[r.utterance]) for f, r in zip(found, rows, strict=True)) > 0.999


def test_official_ecapa_is_the_same_alone_or_in_a_batch_to_1e_5(official, speech):
    """Relative to the length of the vector, which is about 260."""
    waves = [read_audio(r) for r in speech[:3]]
    assert len({len(w) for w in waves}) == 3
    together = official.embed(waves)
    for wave, vector in zip(waves, together, strict=True):
        alone = official.embed([wave])[0]
        assert np.abs(alone - vector).max() < 1e-5 * np.linalg.norm(alone)


def test_padding_does_not_matter_for_random_weights_either(small, speech):
    encoder = load_encoder(small)
    waves = [read_audio(r)[:n] for r, n in zip(speech, (1_600, 16_000, 47_999), strict=False)]
    together = encoder.embed(waves)
    alone = np.concatenate([encoder.embed([w]) for w in waves])
    assert np.abs(together - alone).max() < 1e-5 * np.linalg.norm(alone, axis=1).min()


@given(
    lengths=st.lists(st.integers(5, 60), min_size=1, max_size=4),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=25)
def test_products_over_frames_give_the_vectors_of_the_convolutions(
    lengths: list[int], seed: int
) -> None:
    """Any weights, any lengths, the shortest too: the same vectors to the last digits."""
    torch.manual_seed(seed)
    model = Ecapa(EcapaSize(channels=32)).eval()
    for norm in model.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            torch.nn.init.uniform_(norm.running_mean, -1, 1)
            torch.nn.init.uniform_(norm.running_var, 0.5, 2)
            torch.nn.init.uniform_(norm.weight, -1, 2)
            torch.nn.init.uniform_(norm.bias, -1, 1)
    features = [torch.randn(80, length) for length in lengths]
    with torch.inference_mode():
        alone = torch.cat([model(feature[None]) for feature in features])
    found = FrameEcapa(model).embed(features)
    assert torch.allclose(found, alone, rtol=1e-4, atol=1e-4 * float(alone.abs().max()))


def test_weights_too_small_for_a_normal_number_become_zero_and_change_nothing() -> None:
    model = Ecapa(EcapaSize(channels=32)).eval()
    weight = model.mfa.conv.conv.weight
    with torch.no_grad():
        weight[::2] = 1e-40
    feature = torch.randn(1, 80, 20)
    with torch.inference_mode():
        before = model(feature)
        drop_denormals(model)
        assert torch.equal(model(feature), before)
    assert not weight[::2].any()
    assert weight[1::2].all()


def test_batch_norm_in_training_leaves_padding_out(speech):
    """Statistics of a padded batch are those of its real frames, and padding changes no vector."""
    torch.manual_seed(0)
    model = Ecapa(SIZES["small"]).train()
    wave = torch.from_numpy(read_audio(speech[3])[:24_000])
    exact = torch.stack([wave, wave.flip(0)])
    lengths = torch.tensor([24_000, 24_000])
    padded = torch.nn.functional.pad(exact, (0, 8_000))
    plain = model(filter_banks(exact))
    masked = model(filter_banks(padded, lengths), frame_count(lengths))
    torch.testing.assert_close(masked, plain, atol=1e-4, rtol=1e-4)


def test_filter_banks_have_zero_mean_and_80_db_of_range(speech):
    found = filter_banks(torch.from_numpy(read_audio(speech[0]))[None])
    assert found.shape[1] == 80
    assert found.mean(dim=2).abs().max() < 1e-3
    louder = filter_banks(100 * torch.from_numpy(read_audio(speech[0]))[None])
    torch.testing.assert_close(louder, found, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("features", FEATURES)
def test_kaldi_filter_banks_have_zero_mean_and_25_ms_frames(features, speech):
    found = kaldi_filter_banks(read_audio(speech[0])[:16_000], FEATURES[features])
    assert found.shape == (98, 80)
    assert np.abs(found.mean(axis=0)).max() < 1e-4


def test_wespeaker_onnx_tells_two_speakers_apart(speech):
    from voxrisk.models import model_path

    try:
        model_path("wespeaker-resnet34")
    except InputError as error:
        pytest.skip(f"no WeSpeaker model: {error}")
    rows = [r for s in ("61", "121") for r in [r for r in speech if r.speaker == s][-2:]]
    a, b, c, d = load_encoder("wespeaker-resnet34").embed([read_audio(r)[:64_000] for r in rows])
    assert min(angle(a, b), angle(c, d)) > 0.5 > max(angle(a, c), angle(a, d), angle(b, c))


def test_length_batches_hold_every_index_once_within_the_budget():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 100, 50)
    batches = list(length_batches(lengths, 150))
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    assert all(len(b) == 1 or len(b) * lengths[b].max() <= 150 for b in batches)


@pytest.mark.parametrize(
    ("wave", "reason"),
    [
        (np.zeros(16_000, dtype=np.float32), "silent"),
        (np.full(16_000, 0.5, dtype=np.float32), "silent"),
        (np.ones(160, dtype=np.float32), "10 ms of speech"),
        (np.array([np.nan] * 16_000, dtype=np.float32), "not all finite"),
        (np.ones((2, 16_000), dtype=np.float32), "not one channel"),
    ],
)
def test_what_holds_no_speaker_is_refused(small, wave, reason):
    with pytest.raises(InputError, match=reason):
        load_encoder(small).embed([wave])


def test_embedding_a_corpus_continues_after_a_kill_and_does_not_depend_on_workers(
    small, speech, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("voxrisk.attack.embed.SHARD_SECONDS", 10.0)
    monkeypatch.setattr("voxrisk.attack.embed.LEAST_SECONDS", 5.0)
    rows = speech[:9]
    one = embed_corpus(rows, str(small), tmp_path / "one.npz", workers=1)
    assert one.utterance.tolist() == [r.utterance for r in rows]

    import voxrisk.attack.embed as room

    calls = []

    def dies(shard, original=room._embed_shard):
        calls.append(shard)
        if len(calls) == 3:
            raise KeyboardInterrupt
        original(shard)

    monkeypatch.setattr(room, "_embed_shard", dies)
    with pytest.raises(KeyboardInterrupt):
        embed_corpus(rows, str(small), tmp_path / "two.npz", workers=1)
    assert not (tmp_path / "two.npz").exists()
    part = next((tmp_path / "two.npz.parts").glob("*.npz"))
    part.write_bytes(part.read_bytes()[:-9])  # one of the two that are done is damaged
    calls += [None]
    two = embed_corpus(rows, str(small), tmp_path / "two.npz", workers=1)
    redone = [c for c in calls[4:] if c]
    assert len(redone) == len(room._groups(rows)) - 1
    assert "embed: finished files of 1 items are damaged; made again" in caplog.messages
    np.testing.assert_array_equal(two.vectors, one.vectors)
    assert not (tmp_path / "two.npz.parts").exists()
    monkeypatch.undo()
    monkeypatch.setattr("voxrisk.attack.embed.SHARD_SECONDS", 10.0)
    monkeypatch.setattr("voxrisk.attack.embed.LEAST_SECONDS", 5.0)
    three = embed_corpus(rows, str(small), tmp_path / "three.npz", workers=2)
    np.testing.assert_array_equal(three.vectors, one.vectors)


def test_a_silent_utterance_is_named(small, tmp_path):
    write_audio(tmp_path / "quiet.wav", np.zeros(16_000, dtype=np.float32), rate=16_000)
    row = Utterance("spk-quiet", tmp_path / "quiet.wav", "spk")
    with pytest.raises(InputError, match=r"utterance spk-quiet: .*silent"):
        embed_corpus([row], str(small), tmp_path / "out.npz", workers=1)


def test_damaged_and_foreign_checkpoints_are_refused(small, tmp_path):
    whole = (small / "embedding_model.ckpt").read_bytes()
    path = tmp_path / "embedding_model.ckpt"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        load_encoder(tmp_path)
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="holds no ECAPA-TDNN"):
        load_encoder(tmp_path)
    state = Ecapa(SIZES["small"]).state_dict()
    state["fc.conv.bias"][0] = float("nan")
    torch.save(state, path)
    with pytest.raises(InputError, match="not finite"):
        load_encoder(tmp_path)
    with pytest.raises(InputError, match="no encoder 'nobody'"):
        load_encoder("nobody")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match="cannot be read as an ONNX model"):
        load_encoder(tmp_path / "model.onnx")


def test_shards_are_of_like_length_so_that_no_worker_waits() -> None:
    """Five minutes of speech: two workers have two and a half each, not four and one."""
    random = np.random.default_rng(0)
    seconds = random.uniform(2.0, 5.0, 86)
    rows = [Utterance(f"u{i}", Path(f"{i}.wav"), "s", duration=d) for i, d in enumerate(seconds)]
    groups = _groups(rows)
    assert sorted(row.utterance for group in groups for row in group) == sorted(
        row.utterance for row in rows
    )
    lengths = [sum(row.duration for row in group) for group in groups]
    assert len(groups) == 8
    assert max(lengths) < 1.15 * seconds.sum() / 8
    assert max(sum(lengths[0::2]), sum(lengths[1::2])) < 1.05 * seconds.sum() / 2
    firsts = [group[0].duration for group in groups]
    assert firsts == sorted(firsts, reverse=True)


def test_one_long_recording_is_a_shard_of_its_own_and_short_ones_are_not_lost() -> None:
    lengths = [900.0, 1.0, 1.0, 1.0]
    rows = [Utterance(f"u{i}", Path(f"{i}.wav"), "s", duration=d) for i, d in enumerate(lengths)]
    groups = _groups(rows)
    assert [[row.utterance for row in group] for group in groups] == [["u0"], ["u1", "u2", "u3"]]


def test_an_encoder_that_was_trained_again_is_read_again(tmp_path: Path) -> None:
    """In one process, as in a notebook: the old vectors would be those of another attacker."""
    sound = 0.1 * np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    write_audio(tmp_path / "a.wav", sound, rate=16_000)
    rows = [Utterance("a", tmp_path / "a.wav", "s", duration=1.0)]
    heard = load_encoder("longterm").dimension

    def trained(width: int) -> tuple[int, ...]:
        arrays = {"mean": np.zeros(heard), "matrix": np.eye(heard, width)}
        (tmp_path / "attacker").mkdir(exist_ok=True)
        np.savez(tmp_path / "attacker" / "adapter.npz", encoder="longterm", identity="", **arrays)
        found = embed_corpus(rows, str(tmp_path / "attacker"), tmp_path / "v.npz", workers=1)
        return found.vectors.shape

    assert trained(5) == (1, 5)
    assert trained(7) == (1, 7)
