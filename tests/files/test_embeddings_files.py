"""Embeddings come back from every form as they were written; broken files say what is wrong."""

import struct
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from voxrisk.files.embeddings import read_embeddings, write_embeddings
from voxrisk.files.published import read_published
from voxrisk.files.score_matrix import read_score_matrix
from voxrisk.types import Embeddings, InputError

NAMES = np.array(["p1-a", "p1-b", "p2-a"])
SPEAKERS = np.array(["p1", "p1", "p2"])
VECTORS = np.array([[1.5, -2.25], [0.5, 3.0], [-1.0, 0.125]], dtype=np.float32)


def ark(*, kind: bytes = b"FV ", dtype: str = "<f4") -> tuple[bytes, list[int]]:
    """A binary Kaldi archive and where each vector begins."""
    out, places = b"", []
    for name, vector in zip(NAMES, VECTORS, strict=True):
        out += name.encode() + b" "
        places.append(len(out))
        out += b"\0B" + kind + struct.pack("<bi", 4, vector.size) + vector.astype(dtype).tobytes()
    return out, places


def kaldi_lists(folder: Path, *, by_speaker: bool) -> None:
    if by_speaker:
        (folder / "spk2utt").write_text("p1 p1-a p1-b\np2 p2-a\n")
    else:
        (folder / "utt2spk").write_text("p1-a p1\np1-b p1\np2-a p2\n")


def npz(folder: Path) -> Path:
    write_embeddings(folder / "x.npz", Embeddings(NAMES, SPEAKERS, VECTORS))
    return folder / "x.npz"


def npy_csv(folder: Path) -> Path:
    np.save(folder / "x.npy", VECTORS)
    rows = "".join(f"{s},{u}\n" for s, u in zip(SPEAKERS, NAMES, strict=True))
    (folder / "x.csv").write_text("speaker,utterance\n" + rows)
    return folder / "x.npy"


def npy_folder(folder: Path) -> Path:
    for name, value in (("xvectors", VECTORS), ("speakers", SPEAKERS), ("utterances", NAMES)):
        np.save(folder / f"{name}.npy", value)
    return folder


def parquet(folder: Path) -> Path:
    table = pa.table(
        {"speaker": SPEAKERS.tolist(), "embedding": VECTORS.tolist(), "utterance": NAMES.tolist()}
    )
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def hdf5_arrays(folder: Path) -> Path:
    with h5py.File(folder / "x.h5", "w") as file:
        file["utterance"], file["speaker"] = NAMES.astype("S"), SPEAKERS.astype("S")
        file["embedding"] = VECTORS
    return folder / "x.h5"


def hdf5_utterances(folder: Path) -> Path:
    with h5py.File(folder / "xvector.h5", "w") as file:
        for name, vector in zip(NAMES, VECTORS, strict=True):
            file[name] = vector[None]
    kaldi_lists(folder, by_speaker=True)
    return folder


def kaldi_text(folder: Path) -> Path:
    lines = [
        f"{n}  [ {' '.join(map(str, v))} ]\n" for n, v in zip(NAMES, VECTORS.tolist(), strict=True)
    ]
    (folder / "x.ark").write_text("".join(lines))
    kaldi_lists(folder, by_speaker=False)
    return folder / "x.ark"


def kaldi_ark(folder: Path) -> Path:
    (folder / "xvector.ark").write_bytes(ark()[0])
    kaldi_lists(folder, by_speaker=True)
    return folder


def kaldi_scp(folder: Path) -> Path:
    data, places = ark(kind=b"DV ", dtype="<f8")
    (folder / "x.1.ark").write_bytes(data)
    lines = [f"{n} /moved/away/x.1.ark:{p}\n" for n, p in zip(NAMES, places, strict=True)]
    (folder / "x.scp").write_text("".join(lines))
    kaldi_lists(folder, by_speaker=False)
    return folder / "x.scp"


FORMS = (
    npz, npy_csv, npy_folder, parquet, hdf5_arrays, hdf5_utterances, kaldi_text, kaldi_ark,
    kaldi_scp,
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_every_form_gives_the_same_embeddings(form, tmp_path) -> None:
    found = read_embeddings(form(tmp_path))
    order = np.argsort(found.utterance)
    assert found.utterance[order].tolist() == NAMES.tolist()
    assert found.speaker[order].tolist() == SPEAKERS.tolist()
    assert (found.vectors[order] == VECTORS).all()


def test_librispeech_embeddings_are_read(golden_ecapa) -> None:
    assert golden_ecapa.vectors.shape == (2620, 192)
    assert np.unique(golden_ecapa.speaker).size == 40


def test_a_byte_order_mark_in_kaldi_files_is_no_part_of_an_id(tmp_path) -> None:
    (tmp_path / "utt2spk").write_text("a p1\nb p2\n", encoding="utf-8-sig")
    (tmp_path / "x.ark").write_text("a [ 1 2 ]\nb [ 3 4 ]\n", encoding="utf-8-sig")
    found = read_embeddings(tmp_path / "x.ark")
    assert found.utterance.tolist() == ["a", "b"]
    (tmp_path / "y.scp").write_text("a x.ark:5\nb x.ark:15\n", encoding="utf-8-sig")
    assert read_embeddings(tmp_path / "y.scp").utterance.tolist() == ["a", "b"]


def test_text_vectors_hold_plain_numbers(tmp_path) -> None:
    (tmp_path / "utt2spk").write_text("a p1\n")
    (tmp_path / "x.ark").write_text("a [ 1_0 2 ]\n")
    with pytest.raises(InputError, match="the vector of utterance a is not written"):
        read_embeddings(tmp_path / "x.ark")


def break_name(folder: Path) -> Path:
    (folder / "utt2spk").write_text("p1-a p1\np2-a p2\n")
    (folder / "x.ark").write_bytes(ark()[0])
    return folder / "x.ark"


def break_lost(folder: Path) -> Path:
    path = kaldi_text(folder)
    with (folder / "utt2spk").open("a") as stream:
        stream.write("p3-a p3\n")
    return path


def break_cut(folder: Path) -> Path:
    kaldi_lists(folder, by_speaker=False)
    (folder / "x.ark").write_bytes(ark()[0][:-3])
    return folder / "x.ark"


def break_matrix(folder: Path) -> Path:
    kaldi_lists(folder, by_speaker=False)
    (folder / "x.ark").write_bytes(ark(kind=b"FM ")[0])
    return folder / "x.ark"


def break_text(folder: Path) -> Path:
    kaldi_lists(folder, by_speaker=False)
    (folder / "x.ark").write_text("p1-a  [ 1 x ]\n")
    return folder / "x.ark"


def break_command(folder: Path) -> Path:
    kaldi_lists(folder, by_speaker=False)
    (folder / "x.scp").write_text("p1-a cat x.ark |\n")
    return folder / "x.scp"


def break_ragged(folder: Path) -> Path:
    table = pa.table({"speaker": ["a", "b"], "embedding": [[1.0], [1.0, 2.0]],
                      "utterance": ["a1", "b1"]})  # fmt: skip
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def break_alone(folder: Path) -> Path:
    np.save(folder / "x.npy", VECTORS)
    return folder / "x.npy"


def break_keys(folder: Path) -> Path:
    np.savez(folder / "x.npz", utt=NAMES, x=VECTORS)
    return folder / "x.npz"


def break_pickle(folder: Path) -> Path:
    np.save(folder / "x.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    return folder / "x.npy"


def break_end(folder: Path) -> Path:
    (folder / "x.txt").write_text("1 2 3")
    return folder / "x.txt"


BROKEN = {
    break_name: "utt2spk: no speaker for utterance p1-b",
    break_lost: "x.ark: no embedding for utterance p3-a of .*utt2spk; embed it",
    break_cut: "utterance p2-a is cut off or damaged; copy it again",
    break_matrix: "utterance p1-a is of Kaldi type b'FM ', not a vector",
    break_text: "vector of utterance p1-a is not written",
    break_command: "x.scp line 1: commands are not run",
    break_ragged: "utterance b1 has 2 dimensions, others have 1; embed all with one extractor",
    break_alone: "who speaks.*x.csv with columns utterance and speaker",
    break_keys: "no array utterance, speaker, embedding; it holds utt, x",
    break_pickle: "cannot be read as NumPy arrays",
    break_end: r"embeddings are read from .npz, .npy",
}


@pytest.mark.parametrize("form", BROKEN, ids=lambda f: f.__name__)
def test_broken_files_say_what_is_wrong_and_what_to_do(form, tmp_path) -> None:
    with pytest.raises(InputError, match=BROKEN[form]):
        read_embeddings(form(tmp_path))


def test_missing_files_and_empty_folders_are_named(tmp_path) -> None:
    with pytest.raises(InputError, match=r"nowhere.npz: no such file"):
        read_embeddings(tmp_path / "nowhere.npz")
    with pytest.raises(
        InputError, match=r"no embeddings in this folder; looked for embeddings.npz"
    ):
        read_embeddings(tmp_path)


def test_score_matrices_are_read_in_our_form_and_in_the_packages(tmp_path) -> None:
    from legal_eval.io import ScoreMatrix, save_score_matrix

    scores = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "x.npz", score=scores, enroll=["p", "q"], trial=["p", "q", "q"])
    theirs = ScoreMatrix(scores, ["p", "q"], ["p", "q", "q"], {})
    save_score_matrix(theirs, tmp_path / "y.npy")
    for name in ("x.npz", "y.npy"):
        found = read_score_matrix(tmp_path / name)
        assert (found.score == scores).all()
        assert found.trial.tolist() == ["p", "q", "q"]
    assert read_score_matrix(npz(tmp_path)) is None
    np.savez(tmp_path / "z.npz", score=scores)
    with pytest.raises(InputError, match=r"needs the speakers too; no array enroll, trial"):
        read_score_matrix(tmp_path / "z.npz")


def test_published_curves_are_those_of_the_paper(golden) -> None:
    """Section 4: original speech, L = 1: Linkability 82 % among 20, 35 % among 10,000."""
    curves = read_published(golden / "legal_paper_figure1")
    assert len(curves) == 36
    (one,) = [
        c for c in curves if (c.metric, c.attacker, c.length) == ("linkability", "original", 1)
    ]
    at = dict(zip(one.size, one.value, strict=True))
    assert round(at[20], 2) == 0.82
    assert round(at[10_020], 2) == 0.35
