"""Every reader, a sound file for it, and what the text of a damaged one says."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_oracles as oracles
import fuzz_seeds as seeds
import numpy as np
from fuzz_seeds import NAMES, PEOPLE, VECTORS

from voxrisk.corpus import read_corpus
from voxrisk.corpus.audio import audio_seconds, decode
from voxrisk.corpus.table import Utterance
from voxrisk.corpus.trials import read_enrolments
from voxrisk.files.embeddings import read_embeddings
from voxrisk.files.errors import reading
from voxrisk.files.gguf import read_gguf
from voxrisk.files.ngrams import read_arpa
from voxrisk.files.published import read_published
from voxrisk.files.score_matrix import read_score_matrix
from voxrisk.files.scores import PairTable, read_scores, read_speakers, read_trials
from voxrisk.files.sphinx import read_sphinx
from voxrisk.pipeline.evaluation import read_yaml
from voxrisk.protect.alignment import read_alignment
from voxrisk.results import Results
from voxrisk.types import Embeddings


@dataclass(frozen=True, slots=True)
class Target:
    """One file that is damaged, and the reader that meets it.

    Attributes:
        name: Form and file.
        kind: ``text``, ``binary``, ``zip`` or ``gzip``: how it is damaged.
        build: Writes sound files into a folder; gives the one to damage.
        read: Reads the folder.
        oracle: Reads its text a second time; None for forms that are no text.
    """

    name: str
    kind: str
    build: Callable[[Path], Path]
    read: Callable[[Path], Any]
    oracle: Callable[[Path], Any] | None = None


def plain(value: Any, home: Path) -> Any:
    """Anything that was read as lists and text that can be compared; NaN equals NaN."""
    if isinstance(value, np.ndarray):
        return [list(value.shape), plain(value.tolist(), home)]
    if isinstance(value, Path):
        return str(value).replace(str(home), "~")
    if isinstance(value, float | np.floating):
        return repr(float(value) + 0.0)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        skipped = (
            ("heard", "source", "path", "line") if not isinstance(value, Utterance) else ("heard",)
        )
        return [[f.name, plain(getattr(value, f.name), home)]
                for f in dataclasses.fields(value) if f.name not in skipped]  # fmt: skip
    if isinstance(value, Mapping):
        return [[str(k), plain(v, home)] for k, v in sorted(value.items(), key=lambda i: str(i[0]))]
    if isinstance(value, list | tuple):
        return [plain(item, home) for item in value]
    return str(value).replace(str(home), "~") if isinstance(value, str) else value


def _pairs(table: PairTable) -> list[Any]:
    return [[a, b, v] for (a, b, _), v in zip(table.pairs(), table.value.tolist(), strict=True)]


def _trials(table: PairTable) -> list[Any]:
    who = table.speakers
    return [[*row, who.get(("trial", row[1]), "")] for row in _pairs(table)]


def _scores(name: str, kind: str, build: Any, oracle: Any = None) -> Target:
    file = name.split(" ")[1]
    return Target(name, kind, lambda home: build(home, file),
                  lambda home: _pairs(read_scores(home / file)),
                  oracle and (lambda home: oracle(home / file)))  # fmt: skip


def _text(name: str, content: str, read: Any, oracle: Any) -> Target:
    """A text file that stands alone."""
    file = name.split(" ")[1]
    packed = file.endswith(".gz")
    return Target(
        name, "gzip" if packed else "text",
        lambda home: (seeds.packed if packed else seeds.text)(home, file, content),
        lambda home: read(home / file), lambda home: oracle(home / file),
    )  # fmt: skip


def _corpus(form: str, file: str, build: Any, oracle: Any) -> Target:
    def make(home: Path) -> Path:
        build(home)
        return home / file

    return Target(f"corpus-{form} {file}", "text", make, read_corpus, oracle)


def _heard(corpus: Path) -> Any:
    """The rows of a corpus and what is heard of each: it lies where a damaged table says."""
    return [[row, decode(row)[0].tobytes().hex()] for row in read_corpus(corpus)]


def _vectors(file: str, kind: str, *parts: Any, damaged: str = "", oracle: Any = None) -> Target:
    def make(home: Path) -> Path:
        made = [part(home) for part in parts]
        return home / damaged if damaged else made[0]

    return Target(f"embeddings {damaged or file}{' of ' + file if damaged else ''}", kind, make,
                  lambda home: read_embeddings(home / file), oracle)  # fmt: skip


def _npy_table(home: Path) -> Any:
    names, people = zip(*oracles.columns(home / "x.csv", "utterance", "speaker"), strict=True)
    return Embeddings(np.array(names), np.array(people), VECTORS, str(home))


def _id_table(home: Path) -> Path:
    rows = [["utterance", "speaker"], *map(list, zip(NAMES, PEOPLE, strict=True))]
    return seeds.text(home, "x.csv", seeds.table(rows))


def _audio(ending: str, kind: str | None = None, subtype: str = "PCM_16") -> Target:
    def read(home: Path) -> Any:
        row = Utterance(utterance="u", path=home / f"x.{ending}", speaker="s")
        samples, rate, seconds = decode(row)
        # No sample that the file has no room for; compressed forms hold at most 1,000 for a byte.
        room = row.path.stat().st_size * (1000 if ending in ("flac", "ogg", "opus", "mp3") else 1)
        assert samples.size <= room
        assert np.isfinite(samples).all()
        assert 4000 <= rate <= 384_000
        return [samples.shape, samples.tobytes().hex(), rate, seconds, audio_seconds(row)]

    return Target(f"audio x.{ending}", "binary",
                  lambda home: seeds.sound(home / f"x.{ending}", kind=kind, subtype=subtype),
                  read)  # fmt: skip


def _matrix(home: Path) -> Any:
    found = read_score_matrix(home / "x.npy")
    return None if found is None else [found.score, found.enroll, found.trial]


def _matrix_labels(home: Path) -> Any:
    import json

    said = json.loads(oracles.content(home / "x.npy.json"))
    names = [np.array([str(n) for n in said[k]]) for k in ("enroll_speakers", "test_speakers")]
    return [np.ones((2, 3)), *names]


def _npz_matrix(home: Path) -> Any:
    found = read_score_matrix(home / "x.npz")
    return None if found is None else [found.score, found.enroll, found.trial]


def _build_matrix(home: Path) -> Path:
    seeds.array(home, "x.npy", np.ones((2, 3)))
    return seeds.text(
        home, "x.npy.json", '{"enroll_speakers": ["a", "b"], "test_speakers": ["a", "b", "c"]}'
    )


def _published(home: Path) -> Any:
    return sorted(plain(read_published(home), home))


def _published_oracle(home: Path) -> Any:
    points: dict[Any, Any] = {}
    for a, length, n, mean in oracles.columns(
        home / "eer_results.csv", "attacker", "l", "enrollment_speakers", "eer_mean"
    ):
        key = (a.lower(), int(oracles.number(length)))
        points.setdefault(key, []).append((int(oracles.number(n)), oracles.number(mean)))
    return sorted(
        plain([["metric", "rocch_eer"], ["attacker", a], ["length", length],
               ["size", [n for n, _ in sorted(p)]], ["value", [v for _, v in sorted(p)]]], home)
        for (a, length), p in points.items()
    )  # fmt: skip


def _results(home: Path) -> Any:
    import msgspec

    return msgspec.to_builtins(Results.read(home))


def _results_oracle(home: Path) -> Any:
    """The fields of the file over the fields of the classes: what is not said is as it was made."""
    import json

    def over(read: Any, said: Any) -> Any:
        if isinstance(read, dict) and isinstance(said, dict):
            return {k: over(v, said[k]) if k in said else v for k, v in read.items()}
        if isinstance(read, list | tuple) and isinstance(said, list) and len(read) == len(said):
            return [over(a, b) for a, b in zip(read, said, strict=True)]
        if isinstance(read, float) and isinstance(said, int) and not isinstance(said, bool):
            return float(said)
        return said

    return over(_results(home), json.loads((home / "results.json").read_bytes()))


def _write_results(home: Path) -> Path:
    from voxrisk.notices import notice
    from voxrisk.results import AttackResult, Criterion, Verdict
    from voxrisk.types import Estimate, Interval

    eer = Estimate("rocch_eer", 0.25, 0.5, {"target": 4}, "x", Interval(0.1, 0.3, 0.95, "exact"))
    Results(
        kind="evaluate",
        verdict=Verdict(headline="h", criteria=(Criterion(name="n", level="l", sentence="s"),)),
        attacks=(AttackResult(name="informed", figures={"rocch_eer": eer}),),
        notices=(notice("left_out", count=1, why="one session", speakers=["19"]),),
    ).write(home)  # fmt: skip
    return home / "results.json"


def _adapter(home: Path) -> Any:
    from voxrisk.attack.adapted import read_adapter

    return read_adapter(home)


def _build_adapter(home: Path) -> Path:
    return seeds.arrays(home, "adapter.npz", encoder="e", identity="i", mean=np.ones(3),
                        matrix=np.eye(3))  # fmt: skip


def _centre(home: Path) -> Any:
    from voxrisk.attack.ecapa_encoder import read_centre

    return read_centre(home / "centre.npy", 3)


def _checkpoint(home: Path) -> Any:
    from voxrisk.attack.ecapa_encoder import load_ecapa

    model = load_ecapa(home / "embedding_model.ckpt")
    return {name: value.numpy().tobytes().hex() for name, value in model.state_dict().items()}


def _onnx(home: Path) -> Any:
    from voxrisk.attack.onnx import OnnxEncoder

    encoder = OnnxEncoder("x", home / "wespeaker.onnx", threads=1)
    return [encoder.dimension, str(encoder.recipe)]


def _aligned(path: Path) -> Any:
    """As ``voxrisk slice`` reads it."""
    with reading(path, "an alignment"):
        return read_alignment(path)


def _words(name: str, content: str, oracle: Any) -> Target:
    return _text(f"alignment {name}", content, _aligned, oracle)


SUPERVISIONS = "".join(
    f'{{"id": "{n}", "start": 1.0, "alignment": {{"word": [["A", 1.5, 0.25], ["B", 2, 1]]}}}}\n'
    for n in NAMES
)
PUBLISHED = "attacker,L,enrollment_speakers,eer_mean\nlazy,1,20,0.25\nlazy,1,100,0.3\nok,3,20,0.4\n"
_KALDI = ("wav.scp", "utt2spk", "segments", "text", "spk2gender", "utt2dur", "utt2lang", "utt2sess")
_COLUMNS = {"utterance": NAMES, "speaker": PEOPLE, "embedding": VECTORS.tolist()}
_PAIRS = {"enroll": [p[0] for p in seeds.PAIRS], "trial": [p[1] for p in seeds.PAIRS],
          "score": [p[2] for p in seeds.PAIRS]}  # fmt: skip

_ALL = [
    _text("scores scores.csv", seeds.scores(), lambda p: _pairs(read_scores(p)), oracles.pairs),
    _text(
        "scores scores",
        seeds.scores(" ", header=False),
        lambda p: _pairs(read_scores(p)),
        oracles.pairs,
    ),
    _text("scores scores.tsv", seeds.scores("\t"), lambda p: _pairs(read_scores(p)), oracles.pairs),
    _text("scores scores.csv.gz", seeds.scores(), lambda p: _pairs(read_scores(p)), oracles.pairs),
    _scores("scores scores.npz", "zip", lambda h, f: seeds.arrays(h, f, **_PAIRS)),
    _scores("scores scores.parquet", "binary", lambda h, f: seeds.parquet(h, f, _PAIRS)),
    _text("trials trials.csv", seeds.trials(), lambda p: _trials(read_trials(p)), oracles.trials),
    _text(
        "trials trials",
        seeds.trials(" ", header=False),
        lambda p: _trials(read_trials(p)),
        oracles.trials,
    ),
    Target(
        "trials trials.parquet",
        "binary",
        lambda h: seeds.parquet(h, "t.parquet", {**_PAIRS, "label": ["target"] * len(seeds.PAIRS)}),
        lambda h: _trials(read_trials(h / "t.parquet")),
    ),
    _text(
        "enrolments enroll.csv",
        "enroll,utterance\np1,p1-1-a\np1,p1-1-b\np2,p2-1-a\n",
        read_enrolments,
        oracles.enrolments,
    ),
    _text(
        "speakers speakers.csv",
        "utterance,speaker\na,p1\nb,p1\nc,p2\n",
        read_speakers,
        oracles.speakers,
    ),
    _text("speakers utt2spk", "a p1\nb p1\nc p2\n", read_speakers, oracles.speakers),
    Target("matrix x.npy.json", "text", _build_matrix, _matrix, _matrix_labels),
    Target("matrix x.npy", "binary", lambda h: _build_matrix(h).with_suffix(""), _matrix),
    Target(
        "matrix x.npz",
        "zip",
        lambda h: seeds.arrays(
            h, "x.npz", score=np.ones((2, 3)), enroll=["a", "b"], trial=["a", "b", "c"]
        ),
        _npz_matrix,
    ),
    Target(
        "published eer_results.csv",
        "text",
        lambda h: seeds.text(h, "eer_results.csv", PUBLISHED),
        _published,
        _published_oracle,
    ),
    _vectors("x.npz", "zip", lambda h: seeds.arrays(h, "x.npz", **_COLUMNS)),
    _vectors(
        "x.npy",
        "binary",
        lambda h: seeds.array(h, "x.npy", VECTORS),
        _id_table,
    ),
    _vectors(
        "x.npy",
        "text",
        lambda h: seeds.array(h, "x.npy", VECTORS),
        _id_table,
        damaged="x.csv",
        oracle=_npy_table,
    ),
    _vectors("x.parquet", "binary", lambda h: seeds.parquet(h, "x.parquet", _COLUMNS)),
    _vectors("x.h5", "binary", lambda h: seeds.hdf5(h, "x.h5", _COLUMNS)),
    _vectors(
        "y.h5",
        "binary",
        lambda h: seeds.hdf5(h, "y.h5", dict(zip(NAMES, VECTORS, strict=True))),
        seeds.utt2spk,
    ),
    _vectors("x.ark", "binary", seeds.ark, seeds.utt2spk, oracle=oracles.vectors),
    _vectors(
        "x.ark", "text", seeds.text_ark, seeds.utt2spk, damaged="x.ark", oracle=oracles.vectors
    ),
    _vectors(
        "x.scp", "text", seeds.ark, seeds.utt2spk, damaged="x.scp", oracle=oracles.listed_vectors
    ),
    _vectors("x.ark", "text", seeds.ark, seeds.utt2spk, damaged="utt2spk", oracle=oracles.vectors),
    _vectors("x.ark", "text", seeds.ark, seeds.spk2utt, damaged="spk2utt", oracle=oracles.vectors),
    _corpus(
        "manifest", "manifest.csv", seeds.manifest, lambda h: oracles.manifest(h / "manifest.csv")
    ),
    _corpus(
        "manifest",
        "manifest.tsv",
        lambda h: seeds.manifest(h, "manifest.tsv", "\t"),
        lambda h: oracles.manifest(h / "manifest.tsv"),
    ),
    Target(
        "corpus-parquet manifest.parquet",
        "binary",
        seeds.parquet_manifest,
        lambda h: read_corpus(h / "manifest.parquet"),
    ),
    Target("corpus-webdataset x.tar", "binary", seeds.webdataset, lambda h: _heard(h / "x.tar")),
    Target("corpus-shar cuts.000000.jsonl", "text", seeds.shar, lambda h: _heard(h / "shar")),
    Target(
        "corpus-shar recording.000000.tar",
        "binary",
        lambda h: seeds.shar(h).with_name("recording.000000.tar"),
        lambda h: _heard(h / "shar"),
    ),
    *(_corpus("kaldi", file, seeds.kaldi, oracles.kaldi) for file in _KALDI),
    _corpus("voiceprivacy", "libri_dev_enrolls/enrolls", seeds.voiceprivacy, oracles.voiceprivacy),
    _corpus("lhotse", "x_recordings.jsonl", seeds.lhotse, oracles.lhotse),
    _corpus("lhotse", "x_supervisions.jsonl", seeds.lhotse, oracles.lhotse),
    _corpus("librispeech", "SPEAKERS.TXT", seeds.librispeech, oracles.librispeech),
    _corpus("librispeech", "test/p1/1/p1-1.trans.txt", seeds.librispeech, oracles.librispeech),
    _corpus("libritts", "speakers.tsv", seeds.libritts, oracles.libritts),
    _corpus(
        "libritts", "test/p1/1/p1_1_000001_000000.normalized.txt", seeds.libritts, oracles.libritts
    ),
    _corpus("vctk", "speaker-info.txt", seeds.vctk, oracles.vctk),
    _corpus("vctk", "txt/p225/p225_001.txt", seeds.vctk, oracles.vctk),
    _corpus("common-voice", "validated.tsv", seeds.common_voice, oracles.common_voice),
    _corpus("common-voice", "clip_durations.tsv", seeds.common_voice, oracles.common_voice),
    _corpus("folder", "p1/p1-1-a.txt", seeds.tree, oracles.tree),
    _words("u1.TextGrid", seeds.TEXTGRID, oracles.textgrid),
    _words("x.ctm", seeds.CTM, oracles.ctm),
    _words("u1.json", seeds.GENTLE, oracles.gentle),
    _words("x.alignment.txt", seeds.LIBRI, oracles.libri_words),
    _words("x.jsonl", SUPERVISIONS, oracles.lhotse_words),
    _words("x.jsonl.gz", SUPERVISIONS, oracles.lhotse_words),
    _words("x.csv", seeds.WORDS, oracles.word_table),
    _text("ngrams x.arpa", seeds.ARPA, read_arpa, oracles.arpa),
    _text("ngrams x.arpa.gz", seeds.ARPA, read_arpa, oracles.arpa),
    Target("ngrams x.lm.bin", "binary", seeds.sphinx, lambda h: read_sphinx(h / "x.lm.bin")),
    Target("language x.gguf", "binary", seeds.gguf, lambda h: read_gguf(h / "x.gguf")),
    *map(_audio, ("wav", "flac", "aiff", "au", "w64")),
    _audio("rf64", "RF64"),
    _audio("caf", "CAF"),
    _audio("sph", "NIST"),
    _audio("wavex", "WAVEX"),
    _audio("ogg", "OGG", "VORBIS"),
    _audio("opus", "OGG", "OPUS"),
    _audio("mp3", "MP3", "MPEG_LAYER_III"),
    _text("evaluation evaluation.yaml", seeds.YAML, read_yaml, oracles.evaluation),
    Target("results results.json", "text", _write_results, _results, _results_oracle),
    Target("encoder adapter.npz", "zip", _build_adapter, _adapter),
    Target(
        "encoder centre.npy", "binary", lambda h: seeds.array(h, "centre.npy", np.ones(3)), _centre
    ),
    Target("encoder embedding_model.ckpt", "zip", seeds.checkpoint, _checkpoint),
    Target("encoder wespeaker.onnx", "binary", seeds.onnx, _onnx),
]
TARGETS = {target.name: target for target in _ALL}
assert len(TARGETS) == len(_ALL)
# Each read starts a process: in short runs these come less often.
SLOW = ("embeddings x.h5", "embeddings y.h5")
# Readers whose findings are not mended yet: met only when asked for by name.
OPEN: tuple[str, ...] = ()
