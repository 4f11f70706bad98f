"""kNN conversion and its parts: against other implementations, and the laws of matching."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.mel import hifigan_mel, whisper_mel
from voxrisk.models import model_path
from voxrisk.protect.hifigan import Generator, fold_weight_norm, load_generator
from voxrisk.protect.knn import (
    Voice,
    knn,
    learn,
    match,
)
from voxrisk.protect.nearest import nearest
from voxrisk.protect.parts import light_part, part, whisper_layer
from voxrisk.protect.phones import label, phones
from voxrisk.protect.pool import pool_targets
from voxrisk.protect.private_knn import configuration, kmeans, learn_phones, private_knn, stretch
from voxrisk.protect.targets import speakers_of
from voxrisk.protect.wavlm import WavLM, encode, load_wavlm, position_buckets
from voxrisk.protect.world import pitch
from voxrisk.types import InputError

Samples = NDArray[np.float32]


@pytest.fixture(scope="session")
def speech(shared: Path) -> dict[str, list[Samples]]:
    """Short utterances of a man (61) and of a woman (121)."""
    rows = read_corpus(shared / "librispeech_eval")
    found = {}
    for speaker in ("61", "121"):
        own = sorted((r for r in rows if r.speaker == speaker), key=lambda r: r.duration or 0)
        found[speaker] = [read_audio(row) for row in own[:4]]
    return found


def _stored(name: str) -> Path:
    try:
        return model_path(name)
    except InputError as error:
        pytest.skip(f"no {name} here: {error}")


# Matching


@given(st.integers(1, 40), st.integers(1, 700), st.integers(1, 6), st.integers(0, 5), st.booleans())
def test_nearest_finds_what_a_full_sort_finds(
    t: int, n: int, k: int, seed: int, coarse: bool
) -> None:
    """The first of those that are equally near, which happens between coarse vectors."""
    generator = np.random.default_rng(seed)
    source = generator.normal(size=(t, 3)).astype(np.float32)
    target = generator.normal(size=(n, 3)).astype(np.float32)
    if coarse:
        source, target = np.rint(source), np.rint(target)
    best = np.argsort(-(source @ target.T), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(nearest(source, target, k), np.sort(best, axis=1))


def test_a_frame_that_is_in_the_voice_is_its_own_nearest() -> None:
    frames = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    unit = frames / np.linalg.norm(frames, axis=1, keepdims=True)
    np.testing.assert_allclose(match(unit, Voice(unit, frames, (5.0, 0.2)), 1), frames)


def test_the_source_as_its_own_target_is_copy_synthesis(speech: dict[str, list[Samples]]) -> None:
    pair = light_part()
    samples = speech["61"][0]
    frames = pair.encode(samples)
    copy = pair.vocode(frames.values, frames.f0, len(samples))
    out = knn(samples, [learn([samples], pair)], pair, k=1)
    error = np.linalg.norm(out - copy) / np.linalg.norm(copy)
    assert 20 * np.log10(error + 1e-12) < -40


def test_knn_takes_on_the_pitch_of_the_target(speech: dict[str, list[Samples]]) -> None:
    pair = light_part()
    voice = learn(speech["121"], pair)
    out = knn(speech["61"][1], [voice], pair)
    assert len(out) == len(speech["61"][1])
    f0 = pitch(out)
    assert np.median(f0[f0 > 0]) == pytest.approx(np.exp(voice.log_f0[0]), rel=0.12)


def test_the_breath_of_a_target_is_not_used(speech: dict[str, list[Samples]]) -> None:
    """So it is not looked for in target speech: the protected samples are the same."""
    pair = light_part()
    whole = replace(pair, encode_target=None)
    quick, slow = learn(speech["121"], pair), learn(speech["121"], whole)
    assert (quick.values[:, -1] == 0).all()
    assert (slow.values[:, -1] != 0).any()
    samples = speech["61"][1]
    np.testing.assert_array_equal(knn(samples, [quick], pair), knn(samples, [slow], whole))


# Parts, against other implementations


def test_whisper_mel_is_the_one_faster_whisper_computes(speech: dict[str, list[Samples]]) -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    samples = speech["61"][0]
    theirs = FeatureExtractor()(samples).T
    ours = whisper_mel(samples)
    n = len(ours) - 2  # the last frames see the end, which they pad by zeros
    np.testing.assert_allclose(ours[:n], theirs[:n], atol=1e-3)


def test_frames_that_match_are_of_the_same_phone(shared: Path) -> None:
    """The directions that come with the package find right pairs better than the whole layer."""
    _stored("whisper-tiny.en")
    encode = whisper_layer()
    with resources.files("voxrisk.protect").joinpath("content_directions.npy").open("rb") as file:
        directions = np.load(file).astype(np.float32)
    rows = read_corpus(shared / "librispeech_eval")
    content, names = {}, {}
    for speaker in ("61", "121"):
        said = [read_audio(row) for row in rows if row.speaker == speaker][:8]
        layers = [encode(samples) for samples in said]
        content[speaker] = np.concatenate([layer - layer.mean(axis=0) for layer in layers])
        names[speaker] = np.concatenate(
            [label(phones(one), len(layer), 50) for one, layer in zip(said, layers, strict=True)]
        )

    def right_pairs(source: Samples, target: Samples) -> float:
        unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (source, target)]
        found = names["121"][nearest(*unit, k=4)] == names["61"][:, None]
        return float(found[names["61"] != "SIL"].mean())

    whole = right_pairs(content["61"], content["121"])
    chosen = right_pairs(content["61"] @ directions, content["121"] @ directions)
    assert directions.shape == (384, 60)
    assert chosen > whole + 0.08


def test_the_whisper_encoder_computes_what_ctranslate2_computes(
    speech: dict[str, list[Samples]],
) -> None:
    from faster_whisper import WhisperModel

    from voxrisk.whisper import encode, load_encoder

    samples = np.pad(speech["61"][0], (0, 480_000 - len(speech["61"][0])))
    encoder = load_encoder(_stored("whisper-tiny.en"))
    ours = encode(encoder, samples)
    folder = str(_stored("whisper-tiny.en-ct2"))
    other = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=1)
    theirs = np.array(other.encode(whisper_mel(samples).T))[0]
    likeness = np.sum(ours * theirs, axis=1)
    likeness /= np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    assert likeness.min() > 0.99


def test_hifigan_copy_synthesis_gives_the_mel_back(speech: dict[str, list[Samples]]) -> None:
    import soxr

    generator = load_generator(_stored("hifigan-universal"))
    samples = soxr.resample(speech["61"][0][:16_000], 16_000, 22_050)
    mel = hifigan_mel(samples)
    with torch.inference_mode():
        out = generator(torch.from_numpy(mel)[None])[0].numpy()
    assert len(out) == 256 * len(mel)
    again = hifigan_mel(out)[: len(mel)]
    loud = mel > mel.max() - 6
    assert np.mean(np.abs(again - mel)[loud]) < 0.3


def test_folded_weight_norm_is_torch_weight_norm() -> None:
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(4, 6, 3))
    state = layer.state_dict()
    pair = {
        "x.weight_g": state["parametrizations.weight.original0"] * 3,
        "x.weight_v": state["parametrizations.weight.original1"],
    }
    torch.testing.assert_close(fold_weight_norm(pair)["x.weight"], layer.weight * 3)


WAVLM = {
    "conv_feature_layers": "[(16,10,5)] + [(16,3,2)] * 4 + [(16,2,2)] * 2",
    "extractor_mode": "layer_norm",
    "conv_bias": False,
    "encoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "encoder_attention_heads": 4,
    "layer_norm_first": True,
    "conv_pos": 16,
    "conv_pos_groups": 4,
    "num_buckets": 20,
    "max_distance": 40,
}


def _formula(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights that need no random generator."""
    state = {}
    for i, (name, value) in enumerate(sorted(model.state_dict().items())):
        steps = torch.arange(value.numel(), dtype=torch.float64)
        wave = torch.sin(steps * (0.7 + 0.01 * i) + i).reshape(value.shape)
        is_norm = name.endswith("norm.weight") or ".2.1.weight" in name
        state[name] = (1 + 0.1 * wave if is_norm else 0.15 * wave).float()
    return state


def test_wavlm_computes_what_transformers_computes() -> None:
    """Values of transformers 4.57.1 (WavLMModel) with the same weights, after a layer norm."""
    model = WavLM(WAVLM, layers=2).eval()
    model.load_state_dict(_formula(model))
    steps = torch.arange(4000)
    samples = torch.sin(steps * 0.05)[None] * 0.1 + torch.sin(steps * 0.31)[None] * 0.05
    with torch.inference_mode():
        out = torch.nn.functional.layer_norm(model(samples), (32,))[0]
    assert out.shape == (12, 32)
    first = torch.tensor([-1.5558, -0.6746, 1.5053, 0.3708, -1.3894])
    last = torch.tensor([-1.5567, -0.5648, 1.5371, 0.3494, -1.5642])
    torch.testing.assert_close(out[0, :5], first, atol=2e-4, rtol=0)
    torch.testing.assert_close(out[-1, :5], last, atol=2e-4, rtol=0)


def test_wavlm_distances_fall_into_their_buckets() -> None:
    buckets = position_buckets(100, 20, 40)
    assert buckets[50, 50] == 0
    assert buckets[50, 47] == 3
    assert buckets[50, 53] == 13
    assert buckets[99, 0] == 9
    assert buckets[0, 99] == 19


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The published checkpoints' names and nesting, with small weights of another size."""
    folder = tmp_path_factory.mktemp("wavlm")
    state = _formula(WavLM(WAVLM, layers=6))
    direction = state.pop("encoder.pos_conv.0.weight")
    state["encoder.pos_conv.0.weight_v"] = direction
    state["encoder.pos_conv.0.weight_g"] = direction.square().sum((0, 1), keepdim=True).sqrt()
    state["mask_emb"] = torch.zeros(32)
    torch.save({"cfg": WAVLM, "model": state}, folder / "WavLM.pt")
    vocoder = Generator(
        n_inputs=32, n_linear=16, rates=(10, 8, 2, 2), kernels=(20, 16, 4, 4), channels=32
    )
    torch.save({"generator": vocoder.state_dict()}, folder / "g.pt")
    torch.testing.assert_close(
        load_wavlm(folder / "WavLM.pt").state_dict()["encoder.pos_conv.0.weight"], direction
    )
    return folder / "WavLM.pt", folder / "g.pt"


def test_knn_runs_through_wavlm_checkpoints(
    speech: dict[str, list[Samples]], checkpoints: tuple[Path, Path]
) -> None:
    pair = part("wavlm", encoder=str(checkpoints[0]), vocoder=str(checkpoints[1]))
    out = knn(speech["61"][0], [learn(speech["121"][:2], pair)], pair)
    assert len(out) == len(speech["61"][0])
    assert np.isfinite(out).all()


def test_wavlm_matching_is_the_equation_of_knn_vc(
    speech: dict[str, list[Samples]], checkpoints: tuple[Path, Path]
) -> None:
    """Each frame: the plain mean of the 4 target features nearest by cosine, nothing taken out."""
    encoder = load_wavlm(checkpoints[0])
    source = torch.from_numpy(encode(encoder, speech["61"][0]))
    target = torch.cat([torch.from_numpy(encode(encoder, x)) for x in speech["121"][:2]])
    likeness = torch.nn.functional.cosine_similarity(source[:, None], target[None], dim=-1)
    expected = target[likeness.topk(4, dim=1).indices].mean(dim=1)
    heard = {}

    def hear(values: Samples, f0: NDArray[np.float64], length: int) -> Samples:
        heard["values"] = values
        return np.zeros(length, np.float32)

    pair = part("wavlm", encoder=str(checkpoints[0]), vocoder=str(checkpoints[1]))
    assert pair.k == 4
    pair = replace(pair, vocode=hear)
    knn(speech["61"][0], [learn(speech["121"][:2], pair)], pair)
    # Ties in the last bits may pick another fourth neighbour in a frame or two.
    same = np.isclose(heard["values"], expected.numpy(), atol=1e-4).all(axis=1)
    assert same.mean() > 0.98


def test_wrong_checkpoints_and_parts_are_refused(tmp_path: Path) -> None:
    torch.save({"generator": {"x": torch.zeros(1)}}, tmp_path / "bad.pt")
    with pytest.raises(InputError, match=r"bad\.pt: not a HiFi-GAN"):
        load_generator(tmp_path / "bad.pt")
    with pytest.raises(InputError, match=r"bad\.pt: not a WavLM"):
        load_wavlm(tmp_path / "bad.pt")
    with pytest.raises(InputError, match="part wavlm needs your own checkpoints"):
        part("wavlm")
    with pytest.raises(InputError, match="part is 'magic'"):
        part("magic")


# Phones and private kNN


def test_phones_do_not_depend_on_what_was_heard_before(speech: dict[str, list[Samples]]) -> None:
    alone = phones(speech["61"][1])
    phones(speech["121"][0])
    assert phones(speech["61"][1]) == alone
    assert len({name for name, _ in alone}) > 8
    assert alone[-1][1] == pytest.approx(len(speech["61"][1]) / 16_000, abs=0.02)


def test_phones_of_next_to_nothing_are_silence() -> None:
    assert phones(np.zeros(50, np.float32)) == [("SIL", 50 / 16_000)]
    assert label([("SIL", 0.003)], 3, 100) == ["SIL"] * 3


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), min_size=1, max_size=12),
    st.floats(0, 1),
)
def test_durations_are_interpolated(spoken: list[tuple[str, int]], weight: float) -> None:
    """Each phone lasts round(w · predicted + (1 − w) · actual) frames; w = 0 changes nothing."""
    labels = [name for name, n in spoken for _ in range(n)]
    predicted = {"a": 3.0, "b": 7.5}
    order, names = stretch(labels, predicted, weight)
    assert len(order) == len(names)
    assert np.all(np.diff(order) >= 0)
    assert [labels[i] for i in order] == names
    from voxrisk.protect.phones import runs

    for (_, start, stop), (name, first, after) in zip(runs(labels), runs(names), strict=True):
        actual = stop - start
        wanted = weight * predicted.get(name, actual) + (1 - weight) * actual
        assert after - first == max(1, round(wanted))
    unchanged, _ = stretch(labels, predicted, 0.0)
    np.testing.assert_array_equal(unchanged, np.arange(len(labels)))


def test_private_knn_has_few_candidates_and_other_durations(
    speech: dict[str, list[Samples]],
) -> None:
    pair = light_part()
    voice = learn_phones(speech["121"], pair, candidates=3)
    assert max(len(found) for found in voice.values.values()) <= 3
    samples = speech["61"][1]
    kept = private_knn(samples, voice, pair, weight=0.0)
    moved = private_knn(samples, voice, pair, weight=1.0)
    assert abs(len(kept) - len(samples)) <= 2 * 80
    assert abs(len(moved) - len(samples)) > 2 * 80
    assert np.isfinite(moved).all()


def test_configurations_of_the_paper_have_their_names() -> None:
    assert configuration("7-8") == (0.7, 8)
    assert configuration("3-16") == (0.3, 16)
    assert configuration("10-32") == (1.0, 32)
    with pytest.raises(InputError, match="'fast'; write tenths"):
        configuration("fast")


def test_kmeans_finds_clear_clusters() -> None:
    generator = np.random.default_rng(1)
    middles = np.array([[0, 0], [10, 0], [0, 10]])
    points = np.repeat(middles, 20, axis=0) + generator.normal(0, 0.1, (60, 2))
    found = kmeans(points.astype(np.float32), 3)
    np.testing.assert_allclose(sorted(map(tuple, found.round())), sorted(map(tuple, middles)))
    assert len(kmeans(points[:2].astype(np.float32), 5)) == 2


# Pseudo-speakers from a pool


def _people(n: int) -> tuple[list[Utterance], dict[str, NDArray[np.float32]]]:
    rows = [
        Utterance(f"{s}-{u}", Path("x.wav"), f"s{s:02}", gender="fm"[s % 2])
        for s in range(n)
        for u in range(3)
    ]
    angles = {f"s{s:02}": 2 * np.pi * s / n for s in range(n)}
    return rows, {name: np.array([np.cos(a), np.sin(a)]) for name, a in angles.items()}


def test_far_draws_from_the_farthest_and_gender_is_kept() -> None:
    rows, vectors = _people(24)
    chosen = pool_targets(
        rows,
        speakers_of(rows),
        strategy="far",
        gender="same",
        size=3,
        farthest=5,
        per="utterance",
        seed=0,
        vectors=lambda: vectors,
    )
    gender = {row.speaker: row.gender for row in rows}
    for row, group in zip(rows, chosen, strict=True):
        assert len(set(group)) == 3
        assert all(gender[name] == row.gender for name in group)
        assert all(vectors[name] @ vectors[row.speaker] < -0.4 for name in group)
    assert len({group for row, group in zip(rows, chosen, strict=True) if row.speaker == "s00"}) > 1


def test_dense_draws_half_of_one_cluster() -> None:
    rows, _ = _people(13)
    names = sorted(speakers_of(rows))
    vectors = {name: np.array([1.0, 0.01 * i]) for i, name in enumerate(names[:9])}
    vectors |= {name: np.array([-1.0, 0.01 * i]) for i, name in enumerate(names[9:])}
    options = {"gender": "random", "size": 9, "farthest": 5, "per": "speaker", "seed": 4}
    pool = speakers_of(rows)
    chosen = pool_targets(rows, pool, strategy="dense", vectors=lambda: vectors, **options)
    for group in chosen:
        assert len({np.sign(vectors[name][0]) for name in group}) == 1
        assert len(group) <= 5
    with pytest.raises(InputError, match="strategy is 'near'"):
        pool_targets(rows, pool, strategy="near", vectors=lambda: vectors, **options)
