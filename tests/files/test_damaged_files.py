"""What libraries and the system raise becomes our words; claims of size are never believed."""

import errno
import gzip
import io
import json
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from voxrisk.corpus.trials import read_enrolments
from voxrisk.files import hdf5, limits
from voxrisk.files.arrays import read_npy, read_npz
from voxrisk.files.atomic import write_text
from voxrisk.files.embeddings import read_embeddings
from voxrisk.files.errors import reading, system_words
from voxrisk.files.score_matrix import read_score_matrix
from voxrisk.files.scores import read_scores, read_speakers, read_trials
from voxrisk.types import InputError, MissingExtraError


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "raised",
    [KeyError("x"), SyntaxError("bad"), RecursionError("deep"), zipfile.BadZipFile("no zip"),
     MemoryError(), OSError("no errno"), StopIteration(), NotImplementedError()],
)  # fmt: skip
def test_whatever_a_library_raises_names_the_file_and_keeps_its_cause(raised: Exception) -> None:
    with (
        pytest.raises(
            InputError, match=r"^x\.npz: (cannot be read as NumPy|does not fit)"
        ) as caught,
        reading("x.npz", "NumPy arrays"),
    ):
        raise raised
    assert caught.value.__cause__ is raised


def test_our_own_errors_pass_as_they_are() -> None:
    for ours in (InputError("mine"), MissingExtraError("mine")):
        with pytest.raises(type(ours), match=r"^mine$"), reading("x"):
            raise ours
    with pytest.raises(KeyboardInterrupt), reading("x"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "the disk is full; make room"), (errno.EROFS, "the disk is read-only"),
     (errno.EACCES, "permission denied"), (errno.EISDIR, "is a folder where a file is needed"),
     (errno.EMFILE, "too many files are open")],
)  # fmt: skip
def test_the_system_speaks_plainly(number: int, words: str) -> None:
    error = OSError(number, "System words", "/data/x.csv")
    assert system_words(error).startswith(f"/data/x.csv: {words}")
    with pytest.raises(InputError, match=words), reading("/data/x.csv"):
        raise error


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    written(tmp_path / "file", "x")
    with pytest.raises(InputError, match=r"file.*(in the way|already there)"):
        write_text(tmp_path / "file" / "out.txt", "x")


def test_text_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "s.csv", "enroll,trial,score\na,b,1\nä,b,2\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"s\.csv line 3: is not UTF-8 text \(byte 0xe4\); save"):
        read_scores(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("utterancex,speaker\na,s\n", "line 1: no column utterance; the header is"),
        ("utterance,speaker,speaker\na,s,t\n", "line 1: the column speaker is there twice"),
        ('utterance,speaker\na,"s\nb,t\n', "unexpected end of data"),
        ('utterance,speaker\na,"s\nb,t"\nc,u\n', "line 2: a quoted cell runs over the end"),
        ("utterance,speaker\na,s\n,\nb,\n", "line 4: the utterance or its speaker is empty"),
        ("utterance,speaker\na,s\n,,\n", "line 3: 3 columns where"),
        ("utterance,speaker\n", "holds no rows"),
        ("utterance;speaker\na;s\n", "put commas between columns, not semicolons"),
    ],
)
def test_a_table_of_ids_is_never_read_by_halves(tmp_path: Path, text: str, message: str) -> None:
    """Two columns of text would take a broken header for a row, and one quote for ten rows."""
    with pytest.raises(InputError, match=message):
        read_speakers(written(tmp_path / "s.csv", text))


def test_a_header_alone_is_no_table(tmp_path: Path) -> None:
    for read, head in ((read_scores, "enroll,trial,score"), (read_trials, "enroll,trial,label"),
                       (read_enrolments, "enroll,utterance")):  # fmt: skip
        with pytest.raises(InputError, match="holds no rows"):
            read(written(tmp_path / "t.csv", head + "\n"))


def npz(path: Path, **arrays: object) -> Path:
    with path.open("wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]
    return path


def test_an_archive_that_unpacks_to_far_more_is_refused_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES", 100_000)
    with (tmp_path / "x.npz").open("wb") as stream:
        np.savez_compressed(stream, embedding=np.zeros(2_000_000), utterance=["a"], speaker=["b"])
    with pytest.raises(InputError, match=r"x\.npz: 0 MB that unpack to 16 MB.*200 times"):
        read_embeddings(tmp_path / "x.npz")
    lines = "a b 0.5\n" * 500_000
    with pytest.raises(InputError, match="unpack to"):
        read_scores(written(tmp_path / "s.gz", gzip.compress(lines.encode())))
    table = pa.table(
        {"enroll": ["a"] * 500_000, "trial": ["b"] * 500_000, "score": [0.5] * 500_000}
    )
    pq.write_table(table, tmp_path / "s.parquet", compression="gzip", use_dictionary=False)
    with pytest.raises(InputError, match="unpack to"):
        read_scores(tmp_path / "s.parquet")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("embedding", (10**9, 100), "f4", chunks=(1000, 100))
    with pytest.raises(InputError, match="that unpack to 4"):
        hdf5._datasets(tmp_path / "x.h5")


def test_a_header_that_claims_more_than_is_there_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 4)))
    data = (tmp_path / "x.npy").read_bytes()
    claims = data.replace(b"(3, 4), }", b"(3, 2000000000), }").replace(b" " * 9 + b"\n", b"\n")
    for content in (claims, data[:-1], data + b"\0", data.replace(b"(3, 4)", b"(3,-4)")):
        with pytest.raises(InputError, match=r"x\.npy"):
            read_npy(written(tmp_path / "x.npy", content))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("score.npy", claims)
    with pytest.raises(InputError, match=r"x\.npz"):
        read_npz(written(tmp_path / "x.npz", packed.getvalue()))


def test_ids_that_are_no_characters_are_refused(tmp_path: Path) -> None:
    names = np.array(["ab", "cd"])
    names.view(np.uint32)[0] = 0x110000
    path = npz(tmp_path / "x.npz", utterance=names, speaker=["a", "b"], embedding=np.ones((2, 2)))
    with pytest.raises(InputError, match=r"x\.npz array utterance: holds text that is not valid"):
        read_embeddings(path)


def test_empty_cells_of_a_parquet_table_are_no_speaker_named_none(tmp_path: Path) -> None:
    table = pa.table({"utterance": ["a", "b"], "speaker": ["s", None], "embedding": [[1.0], [2.0]]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="column speaker has empty cells"):
        read_embeddings(tmp_path / "x.parquet")


def test_ids_stored_as_bytes_are_text(tmp_path: Path) -> None:
    names = np.array(["käthe".encode(), b"p2"])
    path = npz(tmp_path / "x.npz", utterance=[1, 2], speaker=names, embedding=np.ones((2, 2)))
    assert read_embeddings(path).speaker.tolist() == ["käthe", "p2"]
    assert read_embeddings(path).utterance.tolist() == ["1", "2"]
    table = pa.table({"enroll": [b"a"], "trial": [b"b"], "score": [0.5]})
    pq.write_table(table, tmp_path / "s.parquet")
    assert list(read_scores(tmp_path / "s.parquet").enroll_ids) == ["a"]


def test_an_hdf5_file_reaches_no_other_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["utterance"], file["speaker"] = ["a"], ["b"]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["embedding"] = np.ones((1, 2))
        file["speaker"] = h5py.ExternalLink("secret.h5", "speaker")
    with pytest.raises(InputError, match=r"x\.h5: speaker is a link"):
        read_embeddings(tmp_path / "x.h5")
    written(tmp_path / "secret.bin", b"12345678")
    with h5py.File(tmp_path / "y.h5", "w") as file:
        outside = [(str(tmp_path / "secret.bin"), 0, 8)]
        file.create_dataset("embedding", (1, 2), "f4", external=outside)
    with pytest.raises(InputError, match=r"y\.h5 dataset embedding: its data lie in another file"):
        read_embeddings(tmp_path / "y.h5")


def test_an_hdf5_file_without_an_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damaged files exist on which the HDF5 library runs for ever."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = np.ones(2)
    monkeypatch.setattr(hdf5, "SECONDS", 0.001)
    with pytest.raises(InputError, match=r"x\.h5: cannot be read as HDF5 \(no end after 0 s\)"):
        read_embeddings(tmp_path / "x.h5")


def test_a_score_matrix_fits_its_speakers_and_is_finite(tmp_path: Path) -> None:
    good = {"enroll_speakers": ["a", "b"], "test_speakers": ["a"]}
    np.save(tmp_path / "x.npy", np.ones((2, 1)))
    labels = written(tmp_path / "x.npy.json", json.dumps(good))
    assert read_score_matrix(tmp_path / "x.npy") is not None
    for bad in ({**good, "test_speakers": "a"}, {**good, "test_speakers": ["a", "b"]}, [], 5):
        labels.write_text(json.dumps(bad))
        with pytest.raises(InputError, match=r"x\.npy"):
            read_score_matrix(tmp_path / "x.npy")
    path = npz(tmp_path / "y.npz", score=[[np.nan]], enroll=["a"], trial=["a"])
    with pytest.raises(InputError, match=r"y\.npz: the score of a and trial 0 is nan"):
        read_score_matrix(path)


def test_an_archive_of_vectors_is_never_read_to_its_end_in_vain(tmp_path: Path) -> None:
    written(tmp_path / "utt2spk", "a s\n")
    for content, words in (
        (b"x" * 100_000, "no Kaldi archive: no id ends in 4096 bytes"),
        (b"a \0BFV \x04\xff\xff\xff\x7f", "is cut off or damaged"),
        (b"a \0BFV \x04\xff\xff\xff\xff", "is cut off or damaged"),
        (b"\xe4 \0BFV ", "is not UTF-8"),
        (b"a  [ 1e300 1 ]\n", "is not finite"),
    ):
        with pytest.raises(InputError, match=words):
            read_embeddings(written(tmp_path / "x.ark", content))
