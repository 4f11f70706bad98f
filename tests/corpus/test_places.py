"""Speech inside tars and behind fsspec is the same speech: the same rows, samples and vectors."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from voxrisk.attack.embed import embed_corpus
from voxrisk.corpus import Utterance, read_audio, read_corpus, write_audio, write_corpus
from voxrisk.corpus.audio import audio_seconds
from voxrisk.corpus.check import check_corpus
from voxrisk.corpus.columns import read_columns, write_columns
from voxrisk.files.places import place_exists, place_facts, remote_address, tar_members
from voxrisk.journal import hash_of
from voxrisk.protect.run import anonymize
from voxrisk.types import InputError


@pytest.fixture
def speech(tmp_path: Path) -> list[Utterance]:
    """Six utterances of two people, as plain files."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(6):
        path = tmp_path / "plain" / f"u{k}.flac"
        write_audio(path, 0.1 * rng.standard_normal(8_000).astype(np.float32), rate=16_000)
        rows.append(Utterance(f"u{k}", path, f"s{k % 2}", text=f"word {k}", duration=0.5))
    return rows


def pack(tar: Path | io.BytesIO, files: dict[str, bytes]) -> None:
    target = {"fileobj": tar} if isinstance(tar, io.BytesIO) else {"name": tar}
    with tarfile.open(mode="w", **target) as made:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))


def webdataset(rows: list[Utterance]) -> dict[str, bytes]:
    files = {}
    for row in rows:
        about = {"spk_id": row.speaker, "text": row.text, "duration": row.duration}
        files[f"{row.utterance}.json"] = json.dumps(about).encode()
        files[f"{row.utterance}.flac"] = row.path.read_bytes()
    return files


def test_webdataset_tars_give_the_same_speech_in_order(
    speech: list[Utterance], tmp_path: Path
) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    pack(folder / "shard-0000.tar", webdataset(speech[:4]))
    pack(folder / "shard-0001.tar", webdataset(speech[4:]))
    rows = read_corpus(folder)
    facts = [(r.utterance, r.speaker, r.text, r.duration) for r in rows]
    assert facts == [(r.utterance, r.speaker, r.text, r.duration) for r in speech]
    for inside, plain in zip(rows, speech, strict=True):
        assert np.array_equal(read_audio(inside), read_audio(plain))
        assert audio_seconds(inside) == audio_seconds(plain)
        assert hash_of(inside) == hash_of(plain)
    assert not check_corpus(rows, workers=1).problems
    here = embed_corpus(speech, "longterm", tmp_path / "a.npz", workers=1)
    there = embed_corpus(rows, "longterm", tmp_path / "b.npz", workers=1)
    assert np.array_equal(here.vectors, there.vectors)
    made = anonymize(rows, tmp_path / "protected", "mcadams", workers=1)
    assert [row.utterance for row in made] == [row.utterance for row in speech]
    write_corpus(tmp_path / "table.csv", rows)
    assert [row.path for row in read_corpus(tmp_path / "table.csv")] == [row.path for row in rows]


def test_a_tar_without_speakers_a_missing_member_and_a_damaged_tar_are_named(
    speech: list[Utterance], tmp_path: Path
) -> None:
    tar = tmp_path / "x.tar"
    pack(tar, {"a.flac": speech[0].path.read_bytes()})
    with pytest.raises(InputError, match=r"x\.tar a: nobody is said to speak.*a\.flac"):
        read_corpus(tar)
    pack(tar, {"a.flac": speech[0].path.read_bytes(), "a.spk": b"anna\n", "a.txt": b"oh\n"})
    [row] = read_corpus(tar)
    assert (row.utterance, row.speaker, row.text) == ("a", "anna", "oh")
    assert not place_exists(tar / "b.flac")
    with pytest.raises(InputError, match="no such audio file"):
        read_audio(tar / "b.flac")
    tar.write_bytes(b"nothing like a tar")
    with pytest.raises(InputError, match=r"x\.tar"):
        read_corpus(tar)


def test_a_tar_that_is_cut_short_anywhere_is_an_error(
    speech: list[Utterance], tmp_path: Path
) -> None:
    """Also between two members, where what is left looks like a smaller tar."""
    tar = tmp_path / "x.tar"
    pack(tar, webdataset(speech))
    whole, last = tar.read_bytes(), list(tar_members(tar).values())[-1]
    boundary = list(tar_members(tar).values())[5].offset - 512
    for length in (len(whole) // 2, boundary, boundary + 100, last.offset + last.size // 2):
        tar.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"x\.tar"):
            read_corpus(tar)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["../../etc/u.flac"], "'../../etc/u.flac' leads out of the tar"),
        (["/etc/u.flac"], "'/etc/u.flac' leads out of the tar"),
        (["a\\..\\u.flac"], "leads out of the tar"),
        (["u.flac", "u.spk", "u.flac"], r"holds u\.flac twice"),
        (["u.flac", "u.spk", "./u.flac"], r"holds u\.flac twice"),
        (["u.flac", "u.wav", "u.spk"], r"x\.tar u: u\.flac and u\.wav have one name"),
    ],
)
def test_names_that_lead_out_of_a_tar_or_are_there_twice_are_refused(
    speech: list[Utterance], tmp_path: Path, files: list[str], words: str
) -> None:
    """A tar of strangers must not make a file of this machine be read, nor choose in silence."""
    with tarfile.open(tmp_path / "x.tar", "w") as made:
        for name in files:
            data = b"anna" if name.endswith(".spk") else speech[0].path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    with pytest.raises(InputError, match=words):
        read_corpus(tmp_path / "x.tar")


def test_names_that_begin_with_a_dot_and_links_are_no_trouble(
    speech: list[Utterance], tmp_path: Path
) -> None:
    """``tar cf x.tar .`` writes ./u.flac; a link to a file outside of the tar is no file of it."""
    with tarfile.open(tmp_path / "x.tar", "w") as made:
        made.add(speech[0].path, "./a/u.flac")
        said = tarfile.TarInfo("./a/u.spk")
        said.size = 4
        made.addfile(said, io.BytesIO(b"anna"))
        link = tarfile.TarInfo("./a/v.flac")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        made.addfile(link)
    [row] = read_corpus(tmp_path / "x.tar")
    assert (row.utterance, row.speaker) == ("a/u", "anna")
    assert np.array_equal(read_audio(row), read_audio(speech[0]))


def test_shar_gives_every_supervision_of_a_cut(speech: list[Utterance], tmp_path: Path) -> None:
    """Names of files, and times within a cut, as lhotse's SharWriter leaves them."""
    folder = tmp_path / "shar"
    folder.mkdir()
    cuts, files = [], {}
    for k, row in enumerate(speech[:2]):
        files[f"cut{k}.flac"] = row.path.read_bytes()
        files[f"cut{k}.json"] = b"{}"
        parts = [(0.0, 0.5)] if k == 0 else [(0.0, 0.2), (0.25, 0.25)]
        said = [
            {"id": f"c{k}-{n}", "speaker": row.speaker, "text": "x", "start": a, "duration": d}
            for n, (a, d) in enumerate(parts)
        ]
        # Where the cut was in its recording does not matter: its audio is its own.
        cuts.append({"id": f"cut{k}", "start": 7.5, "duration": 0.5, "supervisions": said})
    pack(folder / "recording.000000.tar", files)
    with gzip.open(folder / "cuts.000000.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(cut) + "\n" for cut in cuts)
    rows = read_corpus(folder)
    assert [row.utterance for row in rows] == ["c0-0", "c1-0", "c1-1"]
    assert (rows[0].start, rows[0].end, rows[2].start, rows[2].end) == (None, None, 0.25, 0.5)
    assert np.array_equal(read_audio(rows[2]), read_audio(speech[1])[4000:])
    with gzip.open(folder / "cuts.000000.jsonl.gz", "wt") as stream:
        stream.write(json.dumps({**cuts[0], "id": "other"}) + "\n")
    with pytest.raises(InputError, match="holds no audio of the cut 'other'"):
        read_corpus(folder)


def test_a_manifest_and_tars_behind_fsspec_are_read_where_they_lie(
    speech: list[Utterance], tmp_path: Path
) -> None:
    memory = pytest.importorskip("fsspec", reason="no fsspec").filesystem("memory")
    for row in speech:
        memory.pipe(f"/bucket/clips/{row.path.name}", row.path.read_bytes())
    table = "utterance,path,speaker\nu0,clips/u0.flac,s0\nu1,memory://bucket/clips/u1.flac,s1\n"
    memory.pipe("/bucket/manifest.csv", table.encode())
    rows = read_corpus(Path("memory://bucket/manifest.csv"))
    for there, here in zip(rows, speech, strict=False):
        assert np.array_equal(read_audio(there), read_audio(here))
        assert hash_of(there) == hash_of(here)
    before = place_facts(rows[0].path)
    memory.pipe("/bucket/clips/u0.flac", speech[2].path.read_bytes())
    assert place_facts(rows[0].path) != before
    for write, name in ((write_corpus, "t.csv"), (write_columns, "t.parquet")):
        write(tmp_path / name, rows)
        assert [r.path for r in read_corpus(tmp_path / name)] == [r.path for r in rows]
    assert len(read_columns(tmp_path / "t.parquet", audio=True)) == 2
    packed = io.BytesIO()
    pack(packed, webdataset(speech))
    memory.pipe("/bucket/shard.tar", packed.getvalue())
    inside = read_corpus(Path("memory://bucket/shard.tar"))
    assert len(tar_members(Path("memory://bucket/shard.tar"))) == 12
    assert np.array_equal(read_audio(inside[5]), read_audio(speech[5]))
    memory.rm("/bucket/clips/u1.flac")
    with pytest.raises(InputError, match=r"no audio file .*u1\.flac"):
        read_corpus(Path("memory://bucket/manifest.csv"))


def test_a_protocol_that_nothing_here_knows_is_said() -> None:
    assert remote_address("nosuch://a/b.wav") == "nosuch://a/b.wav"
    with pytest.raises(InputError, match=r"nosuch://a/b\.wav"):
        read_audio(Path("nosuch://a/b.wav"))
