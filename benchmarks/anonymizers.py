"""What each anonymizer does to LibriSpeech: words, speaker, pitch, speed.

    python benchmarks/anonymizers.py run [NAME ...]
    python benchmarks/anonymizers.py score [--speakers N]

``run`` anonymizes the whole corpus with one worker (and resumes) towards twelve target speakers;
``score`` prints the table of docs/anonymizers.md. Words: faster-whisper tiny.en, greedy. Speaker:
the ready ECAPA on the corpus's own trials, ROCCH-EER, with clear enrolment (an attacker who ignores
the protection) and with protected enrolment (one who uses the anonymizer too, but does not
retrain).
"""

import argparse
import csv
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.models import model_path
from voxrisk.protect.run import anonymize
from voxrisk.protect.world import pitch

RUNS = {
    "mcadams": ("mcadams", {}),
    "world": ("world", {}),
    "knn-light": ("knn", {"part": "light"}),
    "knn-whisper": ("knn", {"part": "whisper"}),
    "knn-hifigan": ("knn", {"part": "hifigan"}),
    "private-knn-7-8": ("private-knn", {"configuration": "7-8", "part": "whisper"}),
    "private-knn-3-16": ("private-knn", {"configuration": "3-16", "part": "whisper"}),
    "pool-far": ("pool", {"strategy": "far", "part": "whisper"}),
    "pool-dense": ("pool", {"strategy": "dense", "gender": "random", "part": "whisper"}),
}


def run(corpus: Path, out: Path, names: Sequence[str], speakers: int | None) -> None:
    rows = read_corpus(corpus)
    kept = set(sorted({row.speaker for row in rows})[:speakers])
    sources = [row for row in rows if row.speaker in kept]
    targets = _targets(rows)
    for name in names or RUNS:
        anonymizer, options = RUNS[name]
        done = anonymize(
            sources, out / name, anonymizer, options=options, targets=targets, workers=1
        )
        print(f"{name}: {len(done)} utterances, {_speed(out / name):.1f} × real time per core")


def _speed(folder: Path) -> float:
    """Seconds of speech for one second of work on one core, learning the targets included."""
    times = json.loads((folder / "times.json").read_text())
    return times["speech_seconds"] / times["cpu_seconds"]


def _targets(rows: Sequence[Utterance]) -> list[Utterance]:
    """The last six speakers of each gender: learning all 45 voices would take most of the time."""
    genders = {row.speaker: row.gender for row in rows}
    chosen = [s for g in ("f", "m") for s in sorted(s for s in genders if genders[s] == g)[-6:]]
    return [row for row in rows if row.speaker in chosen]


def score(corpus: Path, out: Path, speakers: int | None, every: int) -> None:
    from faster_whisper import WhisperModel

    from voxrisk.attack import load_encoder

    folder = str(model_path("whisper-tiny.en-ct2"))
    recogniser = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=1)
    encoder = load_encoder("ecapa-voxceleb", threads=1)
    rows = read_corpus(corpus)
    kept = set(sorted({row.speaker for row in rows})[:speakers])
    rows = [row for row in rows if row.speaker in kept]
    heard = rows[:: max(1, len(rows) // 100)]
    enrolled = set(_enrolled(corpus))
    tried = [row for row in rows if row.utterance not in enrolled][::every]
    used = [row for row in rows if row.utterance in enrolled] + tried
    print(f"{len(kept)} speakers, {len(rows)} utterances, EER on {len(used)}, WER on {len(heard)}")
    clear = {row.utterance: _embed(encoder, row, out / "clear.cache") for row in used}
    clear_words = _wer(recogniser, heard, out / "clear.words.json")
    eer, trials = _eer(corpus, clear, clear)
    print(
        "| anonymizer | WER | EER, clear enrolment | EER, protected enrolment | source cosine "
        "| F0 correlation | × real time |\n|---|---|---|---|---|---|---|"
    )
    print(f"| none | {clear_words:.1%} | {eer:.1%} | {eer:.1%} | | | |")
    for name in RUNS:
        if not (out / name / "manifest.csv").is_file():
            continue
        done = {row.utterance: row for row in read_corpus(out / name)}
        if any(row.utterance not in done for row in rows):
            raise SystemExit(f"{name}: not all utterances are there")
        for row in rows:
            _check(row, done[row.utterance], name)
        melody = [_f0_correlation(row, done[row.utterance]) for row in heard]
        vectors = {u: _embed(encoder, done[u], out / f"{name}.cache") for u in clear}
        words = _wer(recogniser, [done[r.utterance] for r in heard], out / f"{name}.words.json")
        cosine = np.mean([clear[u] @ vectors[u] for u in clear])
        ignorant, informed = _eer(corpus, clear, vectors)[0], _eer(corpus, vectors, vectors)[0]
        print(
            f"| {name} | {words:.1%} | {ignorant:.1%} | {informed:.1%} | {cosine:.2f} "
            f"| {np.nanmean(melody):.2f} | {_speed(out / name):.1f} |",
            flush=True,
        )
    print(f"\n{trials} trials")


def _check(before: Utterance, after: Utterance, name: str) -> None:
    """Finite, not clipped, as long as before."""
    clear, protected = read_audio(before), read_audio(after)
    if not np.isfinite(protected).all():
        raise SystemExit(f"{name}: {after.utterance} is not finite")
    if np.abs(protected).max() > 0.995:
        raise SystemExit(f"{name}: {after.utterance} is clipped")
    if not name.startswith("private") and len(clear) != len(protected):
        raise SystemExit(f"{name}: {after.utterance} has another length")


def _f0_correlation(before: Utterance, after: Utterance) -> float:
    """Correlation of log F0 where both are voiced; NaN if the duration changed."""
    clear, protected = read_audio(before), read_audio(after)
    if len(clear) != len(protected):
        return float("nan")
    one, other = pitch(clear), pitch(protected)
    both = (one > 0) & (other > 0)
    if both.sum() < 20:
        return float("nan")
    return float(np.corrcoef(np.log(one[both]), np.log(other[both]))[0, 1])


def _enrolled(corpus: Path) -> list[str]:
    with (corpus / "enroll.csv").open() as stream:
        return [u for row in csv.DictReader(stream) for u in row["utts"].split()]


def _embed(encoder: object, row: Utterance, cache: Path) -> NDArray[np.float32]:
    cache.mkdir(exist_ok=True)
    file = cache / f"{row.utterance}.npy"
    if not file.exists():
        vector = encoder.embed([read_audio(row)])[0]  # type: ignore[attr-defined]
        np.save(file, vector / np.linalg.norm(vector))
    return np.load(file)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z ]", "", text.lower().replace("-", " ")).split())


def _wer(recogniser: object, rows: Sequence[Utterance], cache: Path) -> float:
    import jiwer

    if cache.exists():
        said = json.loads(cache.read_text())
    else:
        said = {}
        for row in rows:
            parts, _ = recogniser.transcribe(  # type: ignore[attr-defined]
                read_audio(row), beam_size=1, language="en", condition_on_previous_text=False
            )
            said[row.utterance] = _plain(" ".join(part.text for part in parts))
        cache.write_text(json.dumps(said))
    return jiwer.wer(
        [_plain(row.text or "") for row in rows], [said[row.utterance] or "-" for row in rows]
    )


def _eer(
    corpus: Path, enroll: dict[str, NDArray[np.float32]], test: dict[str, NDArray[np.float32]]
) -> tuple[float, int]:
    from voxrisk.measure.eer import rocch_eer

    with (corpus / "enroll.csv").open() as stream:
        models = {row["model"]: row["utts"].split() for row in csv.DictReader(stream)}
    models = {m: [u for u in utts if u in enroll] for m, utts in models.items()}
    means = {m: np.mean([enroll[u] for u in utts], axis=0) for m, utts in models.items() if utts}
    scores: dict[str, list[float]] = {"target": [], "nontarget": []}
    with (corpus / "trials.csv").open() as stream:
        for row in csv.DictReader(stream):
            if row["model"] in means and row["test_utt"] in test:
                mean = means[row["model"]]
                value = mean @ test[row["test_utt"]] / np.linalg.norm(mean)
                scores[row["label"]].append(float(value))
    n = len(scores["target"]) + len(scores["nontarget"])
    return rocch_eer(np.array(scores["target"]), np.array(scores["nontarget"])), n


if __name__ == "__main__":
    shared = Path(os.environ.get("VOXRISK_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "score", "both"], nargs="?", default="both")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--corpus", type=Path, default=shared / "data" / "librispeech_eval")
    parser.add_argument("--out", type=Path, default=Path("bench-anonymizers"))
    parser.add_argument("--speakers", type=int, help="only the first N speakers")
    parser.add_argument("--every", type=int, default=1, help="only each N-th trial utterance")
    chosen = parser.parse_args()
    chosen.out.mkdir(exist_ok=True)
    if chosen.what in ("run", "both"):
        run(chosen.corpus, chosen.out, chosen.names, chosen.speakers)
    if chosen.what in ("score", "both"):
        score(chosen.corpus, chosen.out, chosen.speakers, chosen.every)
