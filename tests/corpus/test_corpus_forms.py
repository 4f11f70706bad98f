"""Every corpus form becomes the same table; what is wrong is named with its file and line."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.corpus import Utterance, file_name, read_audio, read_corpus, write_corpus
from voxrisk.corpus.forms import voiceprivacy
from voxrisk.types import InputError


def sound(path: Path, *, seconds: float = 0.6, rate: int = 16_000, seed: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = 0.1 * np.random.default_rng(seed).standard_normal(round(seconds * rate))
    kinds = {".opus": ("OGG", "OPUS"), ".mp3": ("MP3", "MPEG_LAYER_III"), ".ogg": ("OGG", "VORBIS")}
    kind, subtype = kinds.get(path.suffix, (None, "PCM_16"))
    soundfile.write(path, samples, rate, format=kind, subtype=subtype)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_folder_tree_speaker_is_the_folder(tmp_path: Path) -> None:
    sound(tmp_path / "anna" / "anna-1.wav")
    write(tmp_path / "anna" / "anna-1.txt", "hello\nthere\n")
    sound(tmp_path / "bert" / "video7" / "00001.flac")
    write(tmp_path / ".hidden" / "x.wav", "")
    rows = read_corpus(tmp_path)
    assert [(r.utterance, r.speaker, r.session, r.text) for r in rows] == [
        ("anna-1", "anna", None, "hello there"),
        ("bert-video7-00001", "bert", "video7", None),
    ]
    sound(tmp_path / "stray.wav")
    with pytest.raises(InputError, match=r"stray\.wav: lies outside any speaker's folder"):
        read_corpus(tmp_path)


def test_manifest_roundtrip_keeps_every_column(tmp_path: Path) -> None:
    row = Utterance(
        "a", sound(tmp_path / "audio" / "a.wav"), "s", gender="f", text='say "hi", twice',
        session="1", language="en", age="30", duration=0.6, start=0.1, end=0.5,
        extra={"target": "t"},
    )  # fmt: skip
    bare = Utterance("ü/ö", sound(tmp_path / "audio" / "b.wav"), "s")
    write_corpus(tmp_path / "manifest.csv", [row, bare])
    again = read_corpus(tmp_path)
    assert again[0] == row
    assert (again[1].utterance, again[1].gender, again[1].extra) == ("ü/ö", None, {"target": ""})
    assert "audio/a.wav" in (tmp_path / "manifest.csv").read_text()


def test_a_manifest_elsewhere_still_finds_its_audio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path relative to the working folder must not become one relative to the manifest."""
    sound(tmp_path / "in" / "s" / "a.wav")
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "out" / "manifest.csv", read_corpus("in"))
    monkeypatch.chdir("/")
    assert read_corpus(tmp_path / "out")[0].path == tmp_path / "in" / "s" / "a.wav"


def test_tsv_and_the_column_names_of_other_toolkits(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    write(tmp_path / "list.tsv", 'ID\twav\tspk_id\tsex\twrd\n1\ta.wav\ts\tFemale\tsay "no\n')
    row = read_corpus(tmp_path / "list.tsv")[0]
    assert (row.utterance, row.speaker, row.gender, row.text) == ("1", "s", "f", 'say "no')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("utterance,path\na,a.wav\n", r"line 1: no column speaker \(there is utterance, path\)"),
        ("utterance,path,speaker\na,a.wav,\n", "line 2: speaker is empty"),
        (
            "utterance,path,speaker\na,a.wav,s\na,a.wav,t\n",
            "line 3: the id 'a' is already .*line 2",
        ),
        ("utterance,path,speaker\na,no.wav,s\nb,no2.wav,s\n", r"line 2: no audio file .*1 more"),
        ("utterance,path,speaker\na,a.wav,s,t\n", "line 2: 4 cells where the header has 3"),
        ("utterance,path,speaker,end\na,a.wav,s,soon\n", "line 2: end is 'soon', not a number"),
        ("utterance,path,speaker,start\na,a.wav,s,nan\n", "line 2: start is nan"),
        ("utterance,path,speaker,duration\na,a.wav,s,1_0\n", "line 2: duration is '1_0', not a n"),
        ('utterance,path,speaker,end\na,a.wav,s,"1,5"\n', "line 2: end is '1,5', .*decimal point"),
        ("utterance,path,speaker,start,end\na,a.wav,s,2,1\n", "line 2: end 1.0 is not after"),
        ("utterance,path,speaker,gender\na,a.wav,s,x\n", "line 2: gender is 'x'"),
        ("utterance,path,speaker,text,text\na,a.wav,s,,\n", "line 1: the column text is there tw"),
        ("utterance,path,speaker\n", "holds no utterances"),
        ('utterance,path,speaker\n"a,a.wav,s\n', "cannot be read as a text table"),
    ],
)
def test_a_bad_manifest_names_line_and_reason(tmp_path: Path, text: str, message: str) -> None:
    sound(tmp_path / "a.wav")
    write(tmp_path / "manifest.csv", text)
    with pytest.raises(InputError, match=message):
        read_corpus(tmp_path)


def test_the_table_can_be_read_without_its_audio(tmp_path: Path) -> None:
    write(tmp_path / "manifest.csv", "utterance,path,speaker\na,gone.wav,s\n")
    assert read_corpus(tmp_path, audio=False)[0].speaker == "s"


def test_what_is_no_corpus_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such corpus"):
        read_corpus(tmp_path / "nothing")
    with pytest.raises(InputError, match="the folder is empty; give a folder of audio"):
        read_corpus(tmp_path)
    write(tmp_path / "notes.txt", "hello")
    with pytest.raises(InputError, match="not a corpus; known are"):
        read_corpus(tmp_path)


def kaldi(folder: Path, *, scp: str, **files: str) -> Path:
    write(folder / "wav.scp", scp)
    for name, text in files.items():
        write(folder / name, text)
    return folder


def test_kaldi_columns_of_speakers_and_utterances_come_along(tmp_path: Path) -> None:
    """speechocean762 tells the age in spk2age; what Kaldi computes is no fact of a person."""
    sound(tmp_path / "a.wav")
    sound(tmp_path / "b.wav")
    data = kaldi(
        tmp_path, scp="a a.wav\nb b.wav\n", utt2spk="a s\nb t\n", spk2age="s\t27\n",
        spk2accent="s north east\nt south\n", utt2emotion="a calm\n", utt2num_frames="a 98\n",
        spk2utt="s a\nt b\n",
    )  # fmt: skip
    one, two = read_corpus(data)
    assert (one.age, two.age) == ("27", None)
    assert one.extra == {"accent": "north east", "emotion": "calm"}
    assert two.extra == {"accent": "south", "emotion": ""}


def test_kaldi_files_with_a_prefix_are_found(tmp_path: Path) -> None:
    """Iban has test_wav.scp, test_utt2spk and test_text."""
    sound(tmp_path / "a.wav")
    for name, text in (("wav.scp", "a a.wav\n"), ("utt2spk", "a s\n"), ("text", "a  SELAMAT\n")):
        (tmp_path / f"test_{name}").write_text(text)
    (row,) = read_corpus(tmp_path)
    assert (row.utterance, row.speaker, row.text) == ("a", "s", "SELAMAT")
    (tmp_path / "train_wav.scp").write_text("a a.wav\n")
    (tmp_path / "train_utt2spk").write_text("a s\n")
    with pytest.raises(InputError, match=r"several lists \(test_wav\.scp, train_wav\.scp\)"):
        read_corpus(tmp_path)


def test_a_list_that_begins_in_another_folder_is_told_where_its_audio_lies(tmp_path: Path) -> None:
    """The file is named and not taken: it may be another version of the same speech."""
    sound(tmp_path / "data" / "wav" / "a.wav")
    list_ = kaldi(tmp_path / "data" / "test", scp="a asr_iban/data/wav/a.wav\n", utt2spk="a s\n")
    place = tmp_path / "data" / "wav" / "a.wav"
    with pytest.raises(InputError, match=f"lies at {place}: take 'asr_iban' off the paths"):
        read_corpus(list_)


def test_the_root_of_a_repository_is_not_one_speaker_without_a_question(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for speaker in ("S1", "S2"):
        sound(tmp_path / "WAVE" / speaker / "a.wav")
    rows = read_corpus(tmp_path)
    assert {row.speaker for row in rows} == {"WAVE"}
    assert f"the folders in {tmp_path / 'WAVE'} are the speakers" in caplog.text
    caplog.clear()
    assert {row.speaker for row in read_corpus(tmp_path / "WAVE")} == {"S1", "S2"}
    assert caplog.text == ""


def test_kaldi_segments_genders_and_text(tmp_path: Path) -> None:
    sound(tmp_path / "corpora" / "rec.wav", seconds=2)
    data = kaldi(
        tmp_path / "data" / "test", scp="rec corpora/rec.wav\n", utt2spk="u1 s\nu2 s\n",
        segments="u1 rec 0.25 1.00\nu2 rec 1.0 -1\n", spk2gender="s f\n", text="u1 HELLO  YOU\n",
    )  # fmt: skip
    one, two = read_corpus(data)
    assert (one.start, one.end, one.gender, one.text) == (0.25, 1.0, "f", "HELLO  YOU")
    assert (two.start, two.end, two.text) == (1.0, None, None)
    assert len(read_audio(one)) == 12_000
    assert len(read_audio(two)) == 16_000


def test_a_byte_order_mark_is_no_part_of_the_first_id(tmp_path: Path) -> None:
    sound(tmp_path / "a.wav")
    marked = {"utt2spk": "\ufeffa s\n", "text": "\ufeffa HI\n", "spk2gender": "\ufeffs f\n"}
    (row,) = read_corpus(kaldi(tmp_path, scp="\ufeffa a.wav\n", **marked))
    assert (row.utterance, row.speaker, row.text, row.gender) == ("a", "s", "HI", "f")


def test_a_shell_pipe_in_wav_scp_is_refused_and_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    sound(tmp_path / "a.wav")
    data = kaldi(tmp_path, scp=f"a a.wav\nb touch {trap} |\n", utt2spk="a s\nb s\n")
    with pytest.raises(InputError, match=r"wav\.scp line 2: 'b' is a shell command .*never runs"):
        read_corpus(data)
    assert not trap.exists()
    kaldi(tmp_path, scp="a raw.ark:123\n")
    with pytest.raises(InputError, match="line 1: 'a' lies in an archive"):
        read_corpus(data)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"utt2spk": "b s\n"}, r"wav\.scp line 2: 'a' has no speaker"),
        ({"utt2spk": "a s\na t\n"}, r"utt2spk line 2: the id 'a' is already in line 1"),
        ({"utt2spk": "a s\n", "spk2gender": "t f\n"}, "speaker 's' is not in .*spk2gender"),
        ({"utt2spk": "a s\n", "segments": "a r 0 1\n"}, "line 1: recording 'r' is not in"),
        ({"utt2spk": "a s\n", "segments": "a a 1 0.5\n"}, "line 1: end 0.5 is not after start"),
        ({"utt2spk": "a s\n", "segments": "a a 0 1_0\n"}, "line 1: end is '1_0', not a number"),
        (
            {"utt2spk": "a s\n", "utt2dur": "a \u0661\n"},
            "utt2dur line 1: duration is '\u0661', not",
        ),
        ({}, "utt2spk: missing"),
    ],
)
def test_a_bad_kaldi_directory_is_named(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    sound(tmp_path / "a.wav")
    with pytest.raises(InputError, match=message):
        read_corpus(kaldi(tmp_path, scp="\na a.wav\n", **files))


def test_voiceprivacy_roles_and_overlapping_lists(tmp_path: Path) -> None:
    for name in ("e1", "e2", "t1"):
        sound(tmp_path / f"{name}.wav")
    kaldi(
        tmp_path / "libri_dev_enrolls", scp="e1 e1.wav\ne2 e2.wav\n", utt2spk="e1 s\ne2 s\n",
        enrolls="e1\n", spk2gender="s m\n",
    )  # fmt: skip
    for part in ("libri_dev_trials_m", "libri_dev_trials_m_all"):
        kaldi(tmp_path / part, scp="t1 t1.wav\n", utt2spk="t1 s\n", trials="s t1 target\n")
    rows = read_corpus(tmp_path)
    assert [(r.utterance, r.extra["role"]) for r in rows] == [("e1", "enroll"), ("t1", "trial")]
    assert rows[1].extra["subset"] == "libri_dev_trials_m+libri_dev_trials_m_all"
    assert [r.utterance for r in read_corpus(tmp_path / "libri_dev_trials_m")] == ["t1"]
    write(tmp_path / "libri_dev_enrolls" / "enrolls", "e9\n")
    with pytest.raises(InputError, match="'e9' is not in"):
        read_corpus(tmp_path)


def test_voiceprivacy_lists_and_anonymized_directories_beside(tmp_path: Path) -> None:
    """The folder is the original speech; a star names the anonymized directories."""
    for name in ("e1", "t1", "e1x", "t1x"):
        sound(tmp_path / f"{name}.wav")
    for suffix, x in (("", ""), ("_mine", "x")):
        for part in ("libri_dev", "hospital"):
            kaldi(
                tmp_path / f"{part}_enrolls{suffix}", scp=f"e1 e1{x}.wav\n", utt2spk="e1 s\n",
                enrolls="e1\n",
            )  # fmt: skip
            kaldi(
                tmp_path / f"{part}_trials_m{suffix}", scp=f"t1 t1{x}.wav\n", utt2spk="t1 s\n",
                trials="s t1 target\n",
            )  # fmt: skip
    assert {row.path.name for row in read_corpus(tmp_path)} == {"e1.wav", "t1.wav"}
    assert {row.path.name for row in read_corpus(tmp_path / "*_mine")} == {"e1x.wav", "t1x.wav"}
    sets = voiceprivacy.official_sets(tmp_path)
    assert [(s.name, s.trials.name, s.enroll and s.enroll.name) for s in sets] == [
        ("", "hospital_trials_m", "hospital_enrolls"),
        ("libri_dev_m", "libri_dev_trials_m", "libri_dev_enrolls"),
    ]
    with pytest.raises(InputError, match="no such corpus"):
        read_corpus(tmp_path / "*_yours")


def test_librispeech(tmp_path: Path) -> None:
    root = tmp_path / "LibriSpeech"
    write(root / "SPEAKERS.TXT", ";ID |SEX| SUBSET\n61 | M | test-clean | 8.0 | A | B\n")
    chapter = root / "test-clean" / "61" / "70968"
    sound(chapter / "61-70968-0000.flac")
    write(chapter / "61-70968-0000.txt", "not a transcript")
    write(chapter / "61-70968.trans.txt", "61-70968-0000 GIVE NOT\n")
    for place in (tmp_path, root, root / "test-clean", root / "test-clean" / "61"):
        (row,) = read_corpus(place)
        assert (row.speaker, row.session, row.gender, row.text) == ("61", "70968", "m", "GIVE NOT")
        assert row.extra == {"subset": "test-clean"}
    write(root / "SPEAKERS.TXT", "62 | F | test-clean\n")
    with pytest.raises(InputError, match=r"trans\.txt line 1: speaker '61' is not in"):
        read_corpus(tmp_path)


def test_libritts(tmp_path: Path) -> None:
    chapter = tmp_path / "dev-clean" / "84" / "121123"
    sound(chapter / "84_121123_000007_000001.wav", rate=24_000)
    write(chapter / "84_121123_000007_000001.normalized.txt", "Hello there.")
    write(chapter / "84_121123_000007_000001.original.txt", "HELLO there.")
    write(tmp_path / "speakers.tsv", "READER\tGENDER\tSUBSET\tNAME\n84\tF\tdev-clean\tX\n")
    (row,) = read_corpus(tmp_path)
    assert (row.speaker, row.session, row.gender, row.text) == ("84", "121123", "f", "Hello there.")
    assert len(read_audio(row)) == 9_600  # 0.6 s at 24 kHz, resampled to 16 kHz


@pytest.mark.parametrize("version", ["0.80", "0.92"])
def test_vctk_reads_one_microphone(tmp_path: Path, version: str) -> None:
    if version == "0.92":
        for microphone in (1, 2):
            sound(tmp_path / "wav48_silence_trimmed" / "p225" / f"p225_001_mic{microphone}.flac")
        info = (
            "ID  AGE  GENDER  ACCENTS  REGION COMMENTS \np225  23  F    English    Southern (x)\n"
        )
    else:
        sound(tmp_path / "wav48" / "p225" / "p225_001.wav")
        info = "ID  AGE  GENDER  ACCENTS  REGION\n225  23  F    English    Southern  England\n"
    write(tmp_path / "speaker-info.txt", info)
    write(tmp_path / "txt" / "p225" / "p225_001.txt", "Please call Stella.\n")
    (row,) = read_corpus(tmp_path)
    assert (row.utterance, row.speaker, row.gender, row.age) == ("p225_001", "p225", "f", "23")
    assert (row.text, row.extra) == ("Please call Stella.", {"accent": "English"})


def test_common_voice(tmp_path: Path) -> None:
    sound(tmp_path / "de" / "clips" / "cv_1.mp3", rate=32_000)
    header = "client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tlocale\n"
    line = 'ab12\tcv_1.mp3\tEr sagte: "Ja.\t2\t0\tthirties\tfemale_feminine\t\tde\n'
    write(tmp_path / "de" / "validated.tsv", header + line)
    write(tmp_path / "de" / "dev.tsv", header + line)
    write(tmp_path / "de" / "clip_durations.tsv", "clip\tduration[ms]\ncv_1.mp3\t600\n")
    for place in (tmp_path / "de", tmp_path / "de" / "dev.tsv"):
        (row,) = read_corpus(place)
        assert (row.speaker, row.gender, row.language, row.duration) == ("ab12", "f", "de", 0.6)
        assert row.text == 'Er sagte: "Ja.'
    assert abs(len(read_audio(row)) - 9_600) < 600
    write(tmp_path / "de" / "clip_durations.tsv", "clip\tduration[ms]\ncv_1.mp3\t6_0\n")
    with pytest.raises(InputError, match=r"durations.tsv line 2: duration is '6_0', not a number"):
        read_corpus(tmp_path / "de")


def lhotse(folder: Path, source: dict[str, object], *, zipped: bool = True) -> Path:
    recording = {"id": "r", "sources": [source], "sampling_rate": 16_000, "duration": 2.0}
    whole = {"id": "u1", "recording_id": "r", "start": 0.0, "duration": 2.0, "speaker": "s"}
    part = {**whole, "id": "u2", "start": 0.5, "duration": 1.0, "gender": "male", "text": "HI"}
    ending = ".jsonl.gz" if zipped else ".jsonl"
    opener = gzip.open if zipped else open
    for name, rows in [("recordings", [recording]), ("supervisions", [whole, part])]:
        with opener(folder / f"x_{name}_dev{ending}", "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


@pytest.mark.parametrize("zipped", [True, False])
def test_lhotse_manifests(tmp_path: Path, zipped: bool) -> None:
    sound(tmp_path / "a.flac", seconds=2)
    lhotse(tmp_path, {"type": "file", "channels": [0], "source": "a.flac"}, zipped=zipped)
    one, two = read_corpus(tmp_path)
    assert (one.start, one.end) == (None, None)
    assert (two.start, two.end, two.gender, two.text) == (0.5, 1.5, "m", "HI")
    assert len(read_audio(two)) == 16_000


def test_a_command_in_a_lhotse_manifest_is_refused_and_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    lhotse(tmp_path, {"type": "command", "channels": [0], "source": f"touch {trap}"})
    with pytest.raises(InputError, match="recording 'r' comes from command; only files"):
        read_corpus(tmp_path)
    assert not trap.exists()


def test_librispeech_eval_as_manifest_and_as_folder_are_the_same_speech(shared: Path) -> None:
    corpus = shared / "librispeech_eval"
    table = {row.utterance: row.speaker for row in read_corpus(corpus)}
    folder = {row.utterance: row.speaker for row in read_corpus(corpus / "flac")}
    assert len(table) == 783
    assert table == folder


@given(st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_ids_become_plain_distinct_file_names(ids: list[str]) -> None:
    """No id reaches another folder, hides itself or shares a file with another id."""
    names = [file_name(name, ".flac") for name in ids]
    assert names[0] != names[1]
    for name in names:
        assert Path(name).name == name
        assert not name.startswith(".")
        assert len(name) <= 200
        assert name.isascii()


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "opus", "mp3"])
def test_a_cut_file_is_an_error_that_names_it(tmp_path: Path, ending: str) -> None:
    whole = sound(tmp_path / f"whole.{ending}", seconds=3)
    assert abs(len(read_audio(whole)) - 48_000) < 1_200
    cut = tmp_path / f"cut.{ending}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    with pytest.raises(InputError, match=rf"cut\.{ending}: (is cut short|cannot be read)"):
        read_audio(cut)


def test_resampling_keeps_a_tone_and_its_level(tmp_path: Path) -> None:
    time = np.arange(48_000) / 48_000
    soundfile.write(tmp_path / "tone.wav", 0.5 * np.sin(2 * np.pi * 1000 * time), 48_000)
    heard = read_audio(tmp_path / "tone.wav")[1000:-1000]
    ideal = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)[1000:-1000]
    assert float(np.abs(heard - ideal).max()) < 1e-3


def test_a_segment_past_the_end_of_its_file_is_an_error(tmp_path: Path) -> None:
    path = sound(tmp_path / "a.wav", seconds=1)
    assert len(read_audio(Utterance("u", path, "s", start=0.5, end=1.05))) == 8_000
    with pytest.raises(
        InputError, match=r"a\.wav: lasts 1\.000 s, but 'u' is said to lie at 0\.500–2"
    ):
        read_audio(Utterance("u", path, "s", start=0.5, end=2.0))
    with pytest.raises(InputError, match=r"said to lie at 3"):
        read_audio(Utterance("u", path, "s", start=3.0))


def test_manifests_are_plain_csv(tmp_path: Path) -> None:
    write_corpus(tmp_path / "m.csv", [Utterance("a", tmp_path / "a.wav", "s", text="x,\ny")])
    with (tmp_path / "m.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["utterance", "path", "speaker", "text"],
            ["a", "a.wav", "s", "x,\ny"],
        ]
