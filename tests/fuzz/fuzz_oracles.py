"""What the text of a file says, read a second time by other and much shorter code.

An accepted file that gives other data than the sound one must give what its oracle reads. Oracles
take each file for what it most plainly is and raise at everything else.
"""

import csv
import io
import json
import re
import struct
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from voxrisk.corpus.table import COLUMNS, GENDERS, Utterance
from voxrisk.files.ngrams import NgramTable
from voxrisk.files.scores import NONTARGET, TARGET
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.protect.slicing import Word
from voxrisk.types import Embeddings

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def number(text: str) -> float:
    if not NUMBER.fullmatch(text.strip(" \t\r\n\v\f")):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def content(path: Path) -> str:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        import gzip

        raw = gzip.decompress(raw)
    return raw.decode().removeprefix("\ufeff")


def lines(path: Path) -> list[str]:
    return [line for line in re.split("\r\n|\n|\r", content(path)) if line.strip()]


def cells(path: Path) -> list[list[str]]:
    """Rows of one line each; all as wide as the first."""
    first, *_ = every = lines(path)
    separator = next((s for s in "\t," if s in first), None)
    rows = [next(csv.reader([line], delimiter=separator, strict=True)) if separator
            else line.split() for line in every]  # fmt: skip
    if len({len(row) for row in rows}) != 1:
        raise ValueError("rows of several widths")
    return [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]


def columns(path: Path, *wanted: str) -> list[tuple[str, ...]]:
    """The wanted columns by their header, or in their order where there is none."""
    head, *rows = every = cells(path)
    names = [name.lower() for name in head]
    if set(wanted[:2]) <= set(names):
        return [tuple(row[names.index(n)] if n in names else "" for n in wanted) for row in rows]
    return [tuple(row) for row in every]


def pairs(path: Path) -> list[Any]:
    return [[a, b, number(c)] for a, b, c in columns(path, "enroll", "trial", "score")]


def trials(path: Path) -> list[Any]:
    found, seen = [], set()
    rows = columns(path, "enroll", "trial", "label", "trial_speaker")
    said = {b: who[0] for _, b, _, *who in reversed(rows) if who and who[0]}
    for a, b, label, *_ in rows:
        value = {**dict.fromkeys(TARGET, 1.0), **dict.fromkeys(NONTARGET, 0.0)}[label.lower()]
        found.append([a, b, value, said.get(b, "")])
        if (a, b) in seen or not a or not b:
            raise ValueError("twice")
        seen.add((a, b))
    return found


def enrolments(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for utterances, enroll in columns(path, "utterance", "enroll"):
        found.setdefault(enroll, []).extend(utterances.split())
    return found


def speakers(path: Path) -> dict[str, str]:
    return dict(columns(path, "utterance", "speaker"))


def key_values(path: Path) -> dict[str, str]:
    """Kaldi's tables: an id, white space, the rest of the line."""
    found = [re.match(r"([^ \t]+)[ \t]*(.*)", line.strip(), re.DOTALL) for line in lines(path)]
    table = {m[1]: m[2].strip() for m in found if m}
    if len(table) < len(found):
        raise ValueError("an id is there twice")
    return table


def vectors(home: Path) -> Embeddings:
    """Kaldi's archive, binary or text, with utt2spk or spk2utt beside it."""
    data, found, at = (home / "x.ark").read_bytes(), {}, 0
    data = data.removeprefix(b"\xef\xbb\xbf")
    while data[at:].strip():
        name = re.compile(rb"\s*([^ \t]+)[ \t]").match(data, at)
        assert name
        key = name[1].decode().strip()
        assert key not in found
        found[key], at = _vector(data, name.end())
    return _with_speakers(home, found)


def listed_vectors(home: Path) -> Embeddings:
    data = (home / "x.ark").read_bytes()
    places = {key: re.fullmatch(r"(?:.*/)?x\.ark:(\d+)", value)
              for key, value in key_values(home / "x.scp").items()}  # fmt: skip
    return _with_speakers(home, {k: _vector(data, int(m[1]))[0] for k, m in places.items() if m})


def _vector(data: bytes, at: int) -> tuple[Any, int]:
    if data[at : at + 2] == b"\0B":
        kind = {b"FV ": "<f4", b"DV ": "<f8"}[data[at + 2 : at + 5]]
        four, size = struct.unpack_from("<bi", data, at + 5)
        assert (four, size > 0) == (4, True)
        found = np.frombuffer(data, kind, size, at + 10)
        return found, at + 10 + found.nbytes
    line = re.compile(rb"\s*\[([^\[\]\n]*)\]\s*?(\n|$)").match(data, at)
    assert line
    return np.array([number(v) for v in line[1].decode().split()], np.float32), line.end()


def _with_speakers(home: Path, found: dict[str, Any]) -> Embeddings:
    if (home / "utt2spk").exists():
        who = {row[0]: row[1] for row in map(str.split, lines(home / "utt2spk"))}
        assert all(len(line.split()) == 2 for line in lines(home / "utt2spk"))
    else:
        rows = [line.split() for line in lines(home / "spk2utt")]
        who = {name: row[0] for row in rows for name in row[1:]}
    assert set(who) == set(found)
    return Embeddings(np.array(list(found)), np.array([who[n] for n in found]),
                      np.stack(list(found.values())), str(home))  # fmt: skip


def gender(text: str) -> str | None:
    return GENDERS.get(text.strip().lower())


def _utterance(**values: Any) -> Utterance:
    return Utterance(**{k: v for k, v in values.items() if v not in (None, "")})


def manifest(path: Path) -> list[Utterance]:
    tabs = path.suffix == ".tsv"
    text = io.StringIO(content(path), newline="")
    rows = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(text)
    head, *body = [row for row in rows if any(row)]
    names, found = [name.strip() for name in head], []
    for row in body:
        cell = dict(zip(names, row, strict=True))
        known: dict[str, Any] = {k: v.strip() for k, v in cell.items() if k in COLUMNS}
        known |= {k: number(known[k]) for k in ("duration", "start", "end") if known.get(k)}
        known["gender"] = gender(known.get("gender", ""))
        known["path"] = path.parent / known["path"]
        extra = {k: v for k, v in cell.items() if k not in COLUMNS}
        found.append(_utterance(**known, extra=extra))
    return found


def kaldi(home: Path) -> list[Utterance]:
    names = ("wav.scp", "utt2spk", "segments", "text", "utt2lang", "utt2sess", "utt2dur")
    wav, who, parts, text, tongue, session, long = (key_values(home / name) for name in names)
    sex, found = key_values(home / "spk2gender"), []
    for name, rest in parts.items():
        recording, start, end, *_ = rest.split()
        found.append(_utterance(
            utterance=name, path=home / wav[recording], speaker=who[name],
            gender=gender(sex[who[name]]), text=text.get(name), language=tongue.get(name),
            session=session.get(name), duration=number(long[name]) if name in long else None,
            start=number(start), end=number(end) if number(end) != -1 else None,
        ))  # fmt: skip
    return found


def voiceprivacy(home: Path) -> list[Utterance]:
    chosen = list(key_values(home / "libri_dev_enrolls" / "enrolls"))
    rows = {row.utterance: row for row in kaldi(home / "libri_dev_enrolls")}
    assert set(chosen) <= set(rows)
    extra = {"role": "enroll", "subset": "libri_dev_enrolls"}
    known = [(f.name, f.name) for f in fields(Utterance) if f.name not in ("extra", "heard")]
    return [_utterance(**{k: getattr(row, k) for k, _ in known}, extra=extra)
            for row in rows.values() if row.utterance in chosen]  # fmt: skip


def lhotse(home: Path) -> list[Utterance]:
    sound = {r["id"]: r for r in map(json.loads, lines(home / "x_recordings.jsonl"))}
    found = []
    for row in map(json.loads, lines(home / "x_supervisions.jsonl")):
        source = sound[row["recording_id"]]
        start, length = number(str(row["start"])), number(str(row["duration"]))
        whole = source.get("duration")
        cut = start > 0 or (whole is not None and length < number(str(whole)) - 0.01)
        found.append(_utterance(
            utterance=row["id"], path=home / source["sources"][0]["source"], speaker=row["speaker"],
            gender=gender(row.get("gender") or ""), text=row.get("text"),
            language=row.get("language"), duration=length, start=start if cut else None,
            end=round(start + length, 6) if cut else None,
        ))  # fmt: skip
    return found


def librispeech(home: Path) -> list[Utterance]:
    rows = [line.split("|") for line in lines(home / "SPEAKERS.TXT") if line[0] != ";"]
    sex, found = {row[0].strip(): gender(row[1]) for row in rows}, []
    assert len(sex) == len(rows)
    for file in sorted(home.glob("test/*/*/*.trans.txt")):
        for line in lines(file):
            name, _, text = line.strip().partition(" ")
            speaker, session, *_ = name.split("-")
            found.append(_utterance(
                utterance=name, path=file.parent / f"{name}.flac", speaker=speaker, text=text,
                gender=sex[speaker], session=session, language="en", extra={"subset": "test"},
            ))  # fmt: skip
    return found


def libritts(home: Path) -> list[Utterance]:
    rows = [line.split("\t") for line in lines(home / "speakers.tsv")[1:]]
    sex = {row[0].strip(): gender(row[1]) for row in rows}
    assert len(sex) == len(rows)
    return [
        _utterance(
            utterance=(stem := file.name.split(".")[0]), path=file.parent / f"{stem}.wav",
            speaker=stem.split("_")[0], session=stem.split("_")[1], gender=sex[stem.split("_")[0]],
            text=" ".join(content(file).split()), language="en", extra={"subset": "test"},
        )
        for file in sorted(home.glob("test/*/*/*.normalized.txt"))
    ]  # fmt: skip


def vctk(home: Path) -> list[Utterance]:
    people = {}
    for line in lines(home / "speaker-info.txt"):
        row = line.split("(")[0].split()
        if row and row[0].upper() != "ID":
            people["p" * row[0].isdigit() + row[0]] = row
            assert row[1].isdigit()
    return [
        _utterance(
            utterance=f.stem, path=f, speaker=(who := f.parent.name), gender=gender(people[who][2]),
            age=people[who][1], extra={"accent": (people[who] + [""])[3]}, language="en",
            text=" ".join(content(home / "txt" / who / f"{f.stem}.txt").split()),
        )
        for f in sorted(home.glob("wav48/*/*.wav"))
    ]  # fmt: skip


def common_voice(home: Path) -> list[Utterance]:
    def table(name: str) -> list[dict[str, str]]:
        head, *rows = [line.split("\t") for line in lines(home / name)]
        return [dict(zip(head, row, strict=True)) for row in rows]

    rows = columns(home / "clip_durations.tsv", "clip", "duration[ms]")
    milliseconds = {clip: number(length) for clip, length in rows}
    assert len(milliseconds) == len(rows)
    found = []
    for row in table("validated.tsv"):
        name = row["path"].removesuffix(".mp3") + ".mp3"
        found.append(_utterance(
            utterance=Path(name).stem, path=home / "clips" / Path(name).name,
            speaker=row["client_id"], gender=gender(row.get("gender", "")), age=row.get("age"),
            text=row["sentence"].strip(), language=row.get("locale") or home.name,
            duration=milliseconds[name] / 1000 if name in milliseconds else None,
            extra={k: row[k] for k in ("accents", "up_votes", "down_votes") if k in row},
        ))  # fmt: skip
    return found


def tree(home: Path) -> list[Utterance]:
    return [_utterance(utterance=f.stem, path=f, speaker=f.parent.name,
                       text=" ".join(content(f.with_suffix(".txt")).split()))
            for f in sorted(home.glob("*/*.wav"))]  # fmt: skip


Words = dict[str, list[Word]]


def _times(start: str, end: str) -> tuple[float | None, float | None]:
    return (number(start) if start else None), (number(end) if end else None)


def word_table(path: Path) -> Words:
    head, *rows = list(csv.reader(io.StringIO(content(path), newline=""), strict=True))
    found: Words = {}
    for row in rows:
        if row:
            cell = dict(zip(head, row, strict=True))
            word = Word(cell["word"], *_times(cell["start"], cell["end"]))
            found.setdefault(cell["utterance"], []).append(word)
    return found


def ctm(path: Path) -> Words:
    found: Words = {}
    for line in lines(path):
        if not line.startswith(";;"):
            name, _, start, length, word, *more = line.split()
            assert len(more) <= 1
            end = round(number(start) + number(length), 6)
            if word not in ("<eps>", "<sil>", "SIL"):
                found.setdefault(name, []).append(Word(word, number(start), end))
    return {k: sorted(v, key=lambda w: w.start or 0.0) for k, v in found.items()}


def libri_words(path: Path) -> Words:
    found: Words = {}
    for line in lines(path):
        name, words, _, times, rest = re.split(r"\s*\"", line.strip())
        assert (rest, name in found) == ("", False)
        ends = [number(t) for t in times.split(",")]
        assert sorted(ends) == ends
        rows = zip(words.split(","), [0.0, *ends[:-1]], ends, strict=True)
        found[name] = [Word(w.strip(), a, b) for w, a, b in rows if w.strip()]
    return found


def gentle(path: Path) -> Words:
    found = []
    for row in json.loads(content(path))["words"]:
        good = row["case"] == "success"
        if row["case"] != "not-found-in-transcript":
            ends = [number(str(row[k])) if good else None for k in ("start", "end")]
            found.append(Word(str(row["word"]), *ends))
    return {path.stem: found}


def lhotse_words(path: Path) -> Words:
    found: Words = {}
    for row in map(json.loads, lines(path)):
        if (row.get("alignment") or {}).get("word") is None:
            continue
        assert row["id"] not in found
        begin = number(str(row["start"]))
        words = [(i[0], number(str(i[1])) - begin, number(str(i[2])))
                 for i in row["alignment"]["word"]]  # fmt: skip
        found[row["id"]] = [Word(w, round(a, 6), round(a + b, 6)) for w, a, b in words if w]
    return found


def textgrid(path: Path) -> Words:
    """The long form of one tier: what stands behind each sign of equality."""
    values = re.findall(r'=\s*("(?:[^"]|"")*"|[^\s"]+)', "\n".join(lines(path)))
    first = values.index('"words"') + 4
    triples = zip(values[first::3], values[first + 1 :: 3], values[first + 2 :: 3], strict=True)
    rows = [(number(a), number(b), t[1:-1].replace('""', '"').strip()) for a, b, t in triples]
    assert len(rows) == int(values[first - 1])
    found = [Word(text, start, end) for start, end, text in rows if text]
    return {path.stem: sorted(found, key=lambda w: w.start or 0.0)}


def arpa(path: Path) -> NgramTable:
    """Sections by their headings; words by their place among the 1-grams."""
    ten = float(np.log(10.0))

    def log(text: str) -> float:
        return -np.inf if text.lower() in ("-inf", "-infinity") else number(text)

    sections = re.split(r"(?m)^\s*\\(\d)-grams:\s*$", content(path).split("\\data\\")[1])
    sizes = [int(number(k)) for k in re.findall(r"=\s*(\d+)", sections[0])]
    parts: list[Any] = []
    words: list[str] = []
    for order, (size, text) in enumerate(zip(sizes[:3], sections[2::2], strict=True), start=1):
        rows = [line.split() for line in text.split("\\end")[0].splitlines() if line.strip()]
        assert len(rows) == size
        words = words or [row[1] for row in rows]
        assert all(len(row) in (order + 1, order + 2) for row in rows)
        grams = [[words.index(word) for word in row[1 : order + 1]] for row in rows]
        value, weight = (
            np.array([max(log(row[k]) if len(row) > k else 0.0, -99.0) * ten for row in rows])
            for k in (0, order + 1)
        )
        parts.append((np.array(grams, np.int32).reshape(-1, order), value, weight))
    return NgramTable(tuple(words), *zip(*parts, strict=True))


def _values(node: Any) -> Any:
    """The free part of a YAML file as numbers, truth values and text; what is quoted is text."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _values(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_values(value) for value in node.value]
    said = node.value
    if node.style is not None:
        return said
    if re.fullmatch(r"[-+]?(0|[1-9]\d*)", said, re.ASCII):
        return int(said)
    if NUMBER.fullmatch(said) and re.search("[.eE]", said):
        return float(said)
    return {"null": None, "true": True, "false": False, "": None}.get(said.lower(), said)


def evaluation(path: Path) -> Evaluation:
    """YAML whose values are all text, turned into what each field asks for."""
    said = yaml.load(content(path), Loader=yaml.BaseLoader)
    truth = {**dict.fromkeys(("true", "yes", "on"), True),
             **dict.fromkeys(("false", "no", "off"), False)}  # fmt: skip
    said = {k: v for k, v in said.items() if v not in ("null", "~", "Null", "NULL", "")}
    for key in ("original", "anonymized", "train", "targets"):
        if key in said:
            said[key] = path.parent / said[key]
    for key in ("reveal", "with_audio", "utility"):
        if key in said:
            said[key] = truth[said[key].lower()]
    said["seed"] = int(said["seed"]) if "seed" in said else 0
    said["confidence"] = number(said["confidence"]) if "confidence" in said else 0.95
    said["attackers"] = tuple(said.get("attackers", ()))
    root = {key.value: value for key, value in yaml.compose(content(path)).value}
    said["options"] = _values(root["options"]) if "options" in root else {}
    return Evaluation(**said)
