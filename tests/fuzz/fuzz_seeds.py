"""Small sound files of every form that voxrisk reads."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np

NAMES = ["p1-1-a", "p1-1-b", "p2-1-a", "p2-2-b"]
PEOPLE = ["p1", "p1", "p2", "p2"]
TEXTS = ["HELLO THERE", "GOOD DAY", "SEE YOU", "ÄPFEL"]
VECTORS = np.array([[1.5, -2.25, 1], [0.5, 3.0, 2], [-1.0, 0.125, 3], [4, 5, 6]], np.float32)
PAIRS = [(a, b, 1.25 * i - 2, a == b.split("-")[0]) for i, (a, b) in enumerate(
    (a, b) for a in ("p1", "p2") for b in NAMES)]  # fmt: skip


def table(rows: list[list[object]], separator: str = ",") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def scores(separator: str = ",", *, header: bool = True) -> str:
    head = [["enroll", "trial", "score"]] if header else []
    return table([*head, *([a, b, s] for a, b, s, _ in PAIRS)], separator)


def trials(separator: str = ",", *, header: bool = True) -> str:
    head = [["enroll", "trial", "label", "trial_speaker"]] if header else []
    rows = [[a, b, "target" if t else "nontarget", *([b[:2]] if header else [])]
            for a, b, _, t in PAIRS]  # fmt: skip
    return table([*head, *rows], separator)


def text(home: Path, name: str, content: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def packed(home: Path, name: str, content: str) -> Path:
    (home / name).write_bytes(gzip.compress(content.encode(), mtime=0))
    return home / name


def arrays(home: Path, name: str, **parts: object) -> Path:
    with (home / name).open("wb") as stream:
        np.savez(stream, **parts)  # type: ignore[arg-type]
    return home / name


def array(home: Path, name: str, value: object) -> Path:
    np.save(home / name, value)
    return home / name


def parquet(home: Path, name: str, columns: dict[str, object]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), home / name)
    return home / name


def hdf5(home: Path, name: str, parts: dict[str, object]) -> Path:
    import h5py

    with h5py.File(home / name, "w") as file:
        for key, value in parts.items():
            file[key] = value
    return home / name


def ark(home: Path) -> Path:
    out, places = b"", []
    for name, vector in zip(NAMES, VECTORS, strict=True):
        out += name.encode() + b" "
        places.append(len(out))
        out += b"\0BFV " + struct.pack("<bi", 4, vector.size) + vector.tobytes()
    (home / "x.ark").write_bytes(out)
    rows = zip(NAMES, places, strict=True)
    text(home, "x.scp", "".join(f"{name} x.ark:{at}\n" for name, at in rows))
    return home / "x.ark"


def text_ark(home: Path) -> Path:
    lines = [f"{n}  [ {' '.join(map(str, v))} ]\n" for n, v in zip(NAMES, VECTORS.tolist(),
             strict=True)]  # fmt: skip
    return text(home, "x.ark", "".join(lines))


def utt2spk(home: Path) -> Path:
    return text(home, "utt2spk", table([[n, p] for n, p in zip(NAMES, PEOPLE, strict=True)], " "))


def spk2utt(home: Path) -> Path:
    return text(home, "spk2utt", "p1 p1-1-a p1-1-b\np2 p2-1-a p2-2-b\n")


def sound(path: Path, *, kind: str | None = None, subtype: str = "PCM_16") -> Path:
    import soundfile

    path.parent.mkdir(parents=True, exist_ok=True)
    wave = 0.3 * np.sin(np.arange(1600) * 0.3) * np.linspace(0.2, 1, 1600)
    soundfile.write(path, wave, 16_000, format=kind, subtype=subtype)
    return path


def audio(home: Path) -> list[Path]:
    return [sound(home / f"{name}.wav") for name in NAMES]


def manifest(home: Path, name: str = "manifest.csv", separator: str = ",") -> Path:
    audio(home)
    rows = [[n, f"{n}.wav", p, "fm"[p == "p2"], t, n[3], "en", 0.1, 0.01 * i, 0.09, "k"]
            for i, (n, p, t) in enumerate(zip(NAMES, PEOPLE, TEXTS, strict=True))]  # fmt: skip
    head = ["utterance", "path", "speaker", "gender", "text", "session", "language", "duration",
            "start", "end", "note"]  # fmt: skip
    return text(home, name, table([head, *rows], separator))


def parquet_manifest(home: Path) -> Path:
    audio(home)
    return parquet(home, "manifest.parquet", {
        "utterance": NAMES, "path": [f"{n}.wav" for n in NAMES], "speaker": PEOPLE,
        "text": TEXTS, "duration": [0.1] * len(NAMES), "note": list(range(len(NAMES))),
    })  # fmt: skip


def tar(home: Path, name: str, files: dict[str, bytes]) -> Path:
    import io
    import tarfile

    with tarfile.open(home / name, "w") as made:
        for inside, data in files.items():
            member = tarfile.TarInfo(inside)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return home / name


def webdataset(home: Path) -> Path:
    files = {}
    for name, person, said in zip(NAMES, PEOPLE, TEXTS, strict=True):
        about = {"speaker": person, "text": said, "duration": 0.1}
        files[f"{name}.json"] = json.dumps(about).encode()
        files[f"{name}.wav"] = sound(home / "aside" / f"{name}.wav").read_bytes()
    return tar(home, "x.tar", files)


def shar(home: Path) -> Path:
    """The cuts; the tar with their audio lies beside them."""
    files = {f"{n}.wav": sound(home / "aside" / f"{n}.wav").read_bytes() for n in NAMES}
    (home / "shar").mkdir()
    tar(home, "shar/recording.000000.tar", files)
    cuts = [
        {"id": n, "duration": 0.1, "supervisions": [
            {"id": f"{n}-0", "speaker": p, "text": t, "start": 0.0, "duration": 0.1}]}
        for n, p, t in zip(NAMES, PEOPLE, TEXTS, strict=True)
    ]  # fmt: skip
    lines = "".join(json.dumps(cut) + "\n" for cut in cuts)
    return text(home, "shar/cuts.000000.jsonl", lines)


def kaldi(home: Path, folder: str = ".") -> None:
    audio(home)
    inside = f"{folder}/"
    rows = list(zip(NAMES, PEOPLE, TEXTS, strict=True))
    text(home, inside + "wav.scp", table([[f"r{n}", home / f"{n}.wav"] for n, _, _ in rows], " "))
    text(home, inside + "utt2spk", table([[n, p] for n, p, _ in rows], " "))
    text(home, inside + "text", table([[n, t] for n, _, t in rows], " "))
    text(home, inside + "segments", table([[n, f"r{n}", 0.01, 0.09] for n, _, _ in rows], " "))
    text(home, inside + "spk2gender", "p1 f\np2 m\n")
    text(home, inside + "utt2dur", table([[n, 0.08] for n, _, _ in rows], " "))
    text(home, inside + "utt2lang", table([[n, "en"] for n, _, _ in rows], " "))
    text(home, inside + "utt2sess", table([[n, n[3]] for n, _, _ in rows], " "))


def voiceprivacy(home: Path) -> None:
    kaldi(home, "libri_dev_enrolls")
    text(home, "libri_dev_enrolls/enrolls", "p1-1-a\np2-1-a\n")


def lhotse(home: Path) -> None:
    audio(home)
    recordings = [{"id": f"r{n}", "duration": 0.1, "sampling_rate": 16000, "num_samples": 1600,
                   "sources": [{"type": "file", "channels": [0], "source": f"{n}.wav"}]}
                  for n in NAMES]  # fmt: skip
    rows = [{"id": n, "recording_id": f"r{n}", "start": 0.01, "duration": 0.08, "speaker": p,
             "gender": "f", "text": t, "language": "en", "channel": 0,
             "alignment": {"word": [[t, 0.02, 0.03]]}}
            for n, p, t in zip(NAMES, PEOPLE, TEXTS, strict=True)]  # fmt: skip
    for name, lines in (("recordings", recordings), ("supervisions", rows)):
        text(home, f"x_{name}.jsonl", "".join(json.dumps(row) + "\n" for row in lines))


def librispeech(home: Path) -> None:
    for name in NAMES:
        speaker, chapter, _ = name.split("-")
        sound(home / "test" / speaker / chapter / f"{name}.flac")
    for speaker, chapter in (("p1", "1"), ("p2", "1"), ("p2", "2")):
        lines = [f"{n} {t}\n" for n, t in zip(NAMES, TEXTS, strict=True)
                 if n.startswith(f"{speaker}-{chapter}")]  # fmt: skip
        text(home, f"test/{speaker}/{chapter}/{speaker}-{chapter}.trans.txt", "".join(lines))
    text(home, "SPEAKERS.TXT", "; id | sex\np1 | F | test | 1.5 | A\np2 | M | test | 2.5 | B\n")


def libritts(home: Path) -> None:
    for speaker, chapter in (("p1", "1"), ("p2", "1")):
        stem = f"test/{speaker}/{chapter}/{speaker}_{chapter}_000001_000000"
        sound(home / f"{stem}.wav")
        text(home, f"{stem}.normalized.txt", f"Hello {speaker}.")
    text(home, "speakers.tsv", "READER\tGENDER\tSUBSET\tNAME\np1\tF\ttest\tA\np2\tM\ttest\tB\n")


def vctk(home: Path) -> None:
    for speaker in ("p225", "p226"):
        sound(home / "wav48" / speaker / f"{speaker}_001.wav")
        text(home, f"txt/{speaker}/{speaker}_001.txt", f"Please call {speaker}.\n")
    text(home, "speaker-info.txt",
         "ID  AGE  GENDER  ACCENTS  REGION\n225  23  F    English    Surrey\n"
         "226  22  M    English    Surrey\n")  # fmt: skip


def common_voice(home: Path) -> None:
    head = "client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tlocale\n"
    for i in (1, 2):
        sound(home / "clips" / f"cv_{i}.mp3", kind="MP3", subtype="MPEG_LAYER_III")
    text(
        home,
        "validated.tsv",
        head
        + "".join(
            f'ab{i}\tcv_{i}.mp3\tSie sagte: "Ja.\t2\t0\tthirties\tfemale\t\tde\n' for i in (1, 2)
        ),
    )
    text(home, "clip_durations.tsv", "clip\tduration[ms]\ncv_1.mp3\t100\ncv_2.mp3\t101\n")


def tree(home: Path) -> None:
    for name, person in zip(NAMES, PEOPLE, strict=True):
        sound(home / person / f"{name}.wav")
        text(home, f"{person}/{name}.txt", f"Hello {name}\n")


TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2.0
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 2.0
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 0.9
            text = "HELLO"
        intervals [3]:
            xmin = 0.9
            xmax = 1.1
            text = "YOU"
"""
CTM = ";; times\nu1 A 0.50 0.40 HELLO 0.9\nu1 A 1.10 0.50 YOU\nu2 A 0.10 0.20 DAY 1.0\n"
GENTLE = json.dumps({"transcript": "hello you", "words": [
    {"case": "success", "word": "hello", "start": 0.5, "end": 0.9},
    {"case": "not-found-in-audio", "word": "you"}]}, indent=1)  # fmt: skip
LIBRI = 'u1 ",HELLO,,YOU," "0.5,0.9,1.1,1.6,2.0"\nu2 "DAY" "0.75"\n'
WORDS = "utterance,word,start,end\nu1,HELLO,0.5,0.9\nu1,YOU,,\nu2,DAY,0.1,0.3\n"
YAML = """original: speech
anonymizer: mcadams
options: {strength: 0.8, seed: 3, names: [a, b]}
attackers: [original, informed]
seed: 10
confidence: 0.9
reveal: false
with_audio: true
title: A test
train: other
"""


ARPA = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-99\t<s>\t-0.3
-0.5\tthe\t-0.2
-0.6\tcat
-0.7\t</s>

\\2-grams:
-0.1\t<s> the\t-0.05
-0.2\tthe cat

\\3-grams:
-0.01\t<s> the cat

\\end\\
"""


def sphinx(home: Path) -> Path:
    """Three words, the bigram (a, b) and the trigram (c, a, b) in pocketsphinx's binary form."""
    heads = [(-9.0, -1.0, 0), (-8.0, -1.0, 0), (-7.0, 0.0, 1), (0.0, 0.0, 1)]
    bigrams = [(0, 5, 6, 0), (0, 0, 0, 1)]  # word, back-off, probability, where children begin
    bits = sum((w | b << 2 | p << 18 | n << 34) << 35 * i for i, (w, b, p, n) in enumerate(bigrams))
    two = bits.to_bytes((2 * 35 + 7) // 8 + 8, "little")
    three = (2 | 7 << 2).to_bytes((2 * 18 + 7) // 8 + 8, "little")
    data = b"Trie Language Model\x03" + np.array([3, 1, 1, 1], "<u4").tobytes()
    data += np.linspace(-9, 0, 3 << 16, dtype="<f4").reshape(3, -1).tobytes()
    data += b"".join(np.array(h[:2], "<f4").tobytes() + bytes([h[2], 0, 0, 0]) for h in heads)
    (home / "x.lm.bin").write_bytes(data + two + three + b"\x06\0\0\0a\0b\0c\0")
    return home / "x.lm.bin"


def gguf(home: Path) -> Path:
    """Two facts, a tensor of plain numbers and one of a quantised block."""

    def said(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    data = b"GGUF" + struct.pack("<IQQ", 3, 2, 2)
    data += said("general.name") + struct.pack("<I", 8) + said("test")
    data += said("list") + struct.pack("<IIQ", 9, 4, 2) + struct.pack("<II", 5, 6)
    data += said("x") + struct.pack("<IQIQ", 1, 4, 0, 0)
    data += said("y") + struct.pack("<IQQIQ", 2, 32, 1, 8, 32)
    data += b"\0" * (-len(data) % 32) + np.arange(4, dtype="<f4").tobytes() + b"\0" * 16
    data += np.float16(0.5).tobytes() + np.arange(-16, 16, dtype=np.int8).tobytes()
    (home / "x.gguf").write_bytes(data)
    return home / "x.gguf"


def onnx(home: Path) -> Path:
    """A model of one node that averages frames, put together by hand: (batch, frames, 80)."""

    def number(value: int) -> bytes:
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    def item(field: int, content: bytes | int) -> bytes:
        if isinstance(content, int):
            return number(field << 3) + number(content)
        return number(field << 3 | 2) + number(len(content)) + content

    def tensor(name: bytes, *shape: int | bytes) -> bytes:
        sizes = [item(1, item(1, s) if isinstance(s, int) else item(2, s)) for s in shape]
        kind = item(1, item(1, 1) + item(2, b"".join(sizes)))
        return item(1, name) + item(2, kind)

    axes = item(1, b"axes") + item(8, 1) + item(20, 7)
    keep = item(1, b"keepdims") + item(3, 0) + item(20, 2)
    node = item(1, b"x") + item(2, b"y") + item(4, b"ReduceMean") + item(5, axes) + item(5, keep)
    graph = (item(1, node) + item(2, b"g") + item(11, tensor(b"x", b"b", b"t", 80))
             + item(12, tensor(b"y", b"b", 80)))  # fmt: skip
    facts = item(1, b"framework") + item(2, b"wespeaker")
    model = item(1, 7) + item(7, graph) + item(8, item(1, b"") + item(2, 13)) + item(14, facts)
    (home / "wespeaker.onnx").write_bytes(model)
    return home / "wespeaker.onnx"


def checkpoint(home: Path) -> Path:
    import torch

    from voxrisk.attack.ecapa import Ecapa
    from voxrisk.attack.sizes import EcapaSize

    torch.manual_seed(0)
    torch.set_num_threads(1)
    size = EcapaSize(8, attention=4, squeeze=4, embedding=6)
    torch.save(Ecapa(size).state_dict(), home / "embedding_model.ckpt")
    return home / "embedding_model.ckpt"
