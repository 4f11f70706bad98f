"""Slice a whole corpus into files that can be given away, and a key that stays at home.

While it runs, what is finished is noted in ``OUT.partial`` beside the output; the same command
after a kill goes on from there. Nothing about the sources is ever written inside ``OUT`` when the
slices are shuffled: their names come from a keyed hash, and speaker, session, order and times stay
out. The order in which files are made is the order of the words, and a file system remembers it
(inodes, dates, places on the disk). So shuffled slices are made in ``OUT.partial``, for the owner
alone, and only then copied to ``OUT``, in the order of their names and with one date for all.
"""

import csv
import dataclasses
import functools
import hashlib
import io
import json
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxrisk.corpus.audio import RATE, read_audio, write_audio
from voxrisk.corpus.table import Utterance, file_name, write_corpus
from voxrisk.files.atomic import (
    naming_a_full_disk,
    remove_leftovers,
    sync_files,
    write_private,
)
from voxrisk.journal import hash_of, resumable
from voxrisk.protect.edges import level_and_fade
from voxrisk.protect.slicing import Slice, Word, set_apart, slice_fixed, slice_words
from voxrisk.protect.word_times import align_row, check_aligner, hardly_aligned
from voxrisk.types import InputError

WITHHELD = "withheld"
CHUNK = 16
PUBLISHED_DATE = 946_684_800  # 2000-01-01, for every shuffled file
CUTS = ("pause", "clean")
OVERSHOOT_SECONDS = 0.05  # aligners round; a word may end this much after the signal


@dataclass(frozen=True, slots=True)
class Plan:
    """All that decides what the slices are.

    Attributes:
        duration: δ in seconds.
        fixed: Cut at fixed times instead of between words.
        shuffle: Random names, no order, no speaker.
        seed: Secret of the random names; None where nothing is shuffled.
        rate: Sample rate of the slices.
        cut: ``"pause"``: the pause at a cut belongs to both slices, as Algorithm 1 says.
            ``"clean"``: to neither, edges are faded and levels set. None: clean if shuffled.
        asr: Recogniser that tells the times of words; None: the embedded aligner, for English.
        language: Of the speech; None: that of the table, else English.
    """

    duration: float
    fixed: bool = False
    shuffle: bool = False
    seed: int | None = None
    rate: int = RATE
    cut: str | None = None
    asr: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        if self.cut not in (None, *CUTS):
            raise InputError(f"cut is {self.cut!r}; it must be {' or '.join(CUTS)}")

    @property
    def clean(self) -> bool:
        """Whether slices share nothing."""
        return self.cut == "clean" or (self.cut is None and self.shuffle)


# One utterance, and its words where they are known already.
Task = tuple[Utterance, list[Word] | None]


def slice_corpus(
    utterances: Sequence[Utterance],
    folder: Path | str,
    *,
    plan: Plan,
    alignment: Mapping[str, list[Word]] | None = None,
    key: Path | None = None,
    workers: int | None = None,
) -> dict[str, int]:
    """Write ``folder/manifest.csv`` and ``folder/audio/``; returns what was counted.

    Args:
        utterances: The corpus.
        folder: Output; empty, or left by the same command after a kill.
        plan: What to do.
        alignment: Utterance → words; None: align with the embedded aligner (not when ``fixed``).
        key: Where to write which slice came from where, when shuffled; outside ``folder``.
        workers: Processes; they do not change the result.

    Returns:
        Counts: utterances, slices, words, words kept, words without times, and so on.
    """
    folder = Path(folder)
    if plan.shuffle:
        key = key or folder.with_name(folder.name + ".key.csv")
        if key.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{key}: the key must not lie in the folder that is given away")
        if key.suffix == ".json":
            raise InputError(f"{key}: the key is a table, and its plan lies beside it as .json")
    if alignment is None and not plan.fixed and not any(row.text for row in utterances):
        raise InputError("the corpus has no text to align; give --alignment, or use --fixed")
    if alignment is None and not plan.fixed:
        check_aligner(utterances, plan.asr, plan.language)
    work = folder.with_name(folder.name + ".partial")
    plan = _begin(work, plan, utterances, alignment)
    making = work if plan.shuffle else folder
    made = resumable(
        functools.partial(_slice_utterance, plan, making),
        [(row, alignment.get(row.utterance) if alignment else None) for row in utterances],
        key=functools.partial(_task_key, plan),
        journal=work / "journal.jsonl",
        files=functools.partial(_files, making),
        batch=CHUNK,
        workers=workers,
        label="slice",
    )
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for done in made:
        counts.update(done["counts"])
        rows += done["slices"]
    _refuse_unaligned(counts, folder, plan)
    if plan.shuffle and key is not None:
        _publish([row["path"] for row in rows], work, folder)
        _write_key(key, rows, plan)
    sync_files(folder / row["path"] for row in rows)
    _write_manifest(folder, rows, {row.utterance: row for row in utterances}, plan)
    _tidy(folder, same_date=plan.shuffle)
    shutil.rmtree(work)
    return dict(counts)


def _refuse_unaligned(counts: Mapping[str, int], folder: Path, plan: Plan) -> None:
    """Nothing is given away as sliced of which hardly a word was found."""
    lost = counts["utterances_without_times"]
    if 2 * lost <= counts["utterances"]:
        return
    discard(folder)
    found = counts["words"] - counts["words_without_times"]
    by = f"the recogniser {plan.asr}" if plan.asr else "the aligner"
    raise InputError(
        f"{by} found {found} of {counts['words']} words, and in {lost} of {counts['utterances']} "
        "utterances fewer than half: is it another language, or are these other texts? Name the "
        "language and take times from a recogniser that knows it (--language, --asr whisper-base), "
        "give --alignment, or cut at fixed times (--fixed)"
    )


def _begin(
    work: Path,
    plan: Plan,
    utterances: Sequence[Utterance],
    alignment: Mapping[str, list[Word]] | None,
) -> Plan:
    """Start afresh, or take up the plan (and the secret seed) of a run that was killed."""
    sources = [(r.utterance, str(r.path), r.start, r.end, r.text) for r in utterances]
    text = repr((dataclasses.replace(plan, seed=None), plan.seed, sources, alignment))
    mark = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    started = work / "run.json"
    if started.is_file():
        try:
            before = json.loads(started.read_text(encoding="utf-8"))
            same, seed = before["mark"] == mark, before["seed"]
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(
                f"{started}: is damaged, and held the secret of a run that was not finished; "
                "add --force to begin again"
            ) from error
        if not same:
            raise InputError(
                f"{work}: a run with other options or another corpus was not finished; "
                "repeat that command, or add --force to begin again"
            )
        return dataclasses.replace(plan, seed=seed)
    seed = secrets.randbits(128) if plan.shuffle and plan.seed is None else plan.seed
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(started, json.dumps({"mark": mark, "seed": seed}))
    return dataclasses.replace(plan, seed=seed)


def _publish(paths: Sequence[str], work: Path, folder: Path) -> None:
    """Copy shuffled slices in the order of their names, which means nothing, as new files."""
    shutil.rmtree(folder / "audio", ignore_errors=True)
    for path in sorted(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with naming_a_full_disk(folder / path):
            shutil.copyfile(work / path, folder / path)


def _tidy(folder: Path, *, same_date: bool) -> None:
    """Remove what a kill left half-written, and level the dates of what is given away."""
    remove_leftovers(folder)
    if same_date:
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (PUBLISHED_DATE, PUBLISHED_DATE))


def discard(folder: Path | str) -> None:
    """Remove what an earlier run wrote: stale slices must not mix with new ones."""
    folder = Path(folder)
    shutil.rmtree(folder.with_name(folder.name + ".partial"), ignore_errors=True)
    shutil.rmtree(folder / "audio", ignore_errors=True)
    (folder / "manifest.csv").unlink(missing_ok=True)


def _task_key(plan: Plan, task: Task) -> str:
    """Hash of all that the slices of an utterance depend on, and their names."""
    row, words = task
    known = None if words is None else [dataclasses.astuple(word) for word in words]
    facts = (row.utterance, row.speaker, row.text, row.language)
    return hash_of(dataclasses.astuple(plan), facts, row, known)


def _files(folder: Path, _: Task, done: Mapping[str, Any]) -> list[Path]:
    return [folder / row["path"] for row in done["slices"]]


def _slice_utterance(plan: Plan, folder: Path, task: Task) -> dict[str, Any]:
    """Slice one utterance; returns a record of each slice, and what was counted."""
    row, ready = task
    samples = read_audio(row, rate=plan.rate)
    signal = len(samples) / plan.rate
    if ready is not None:
        words = [inside(word, signal) for word in ready]
    elif plan.fixed or not row.text:
        words = []
    else:
        heard = samples if plan.rate == RATE else read_audio(row, rate=RATE)
        aligned = align_row(row, heard, asr=plan.asr, language=plan.language)
        words = [inside(word, signal) for word in aligned]
    if not plan.fixed and hardly_aligned(words):
        return {"slices": [], "counts": _counts(words, [], row, ready)}
    cut = slice_fixed if plan.fixed else slice_words
    try:
        slices = cut(words, signal=signal, duration=plan.duration)
        if plan.clean:
            slices = set_apart(slices, [] if plan.fixed else words)
    except InputError as error:
        raise InputError(f"{row.utterance}: {error}") from error
    made = []
    for place, piece in enumerate(slices):
        name = _name(row.utterance, place, plan)
        path = _path(name, row, plan)
        part = samples[round(piece.start * plan.rate) : round(piece.end * plan.rate)]
        if plan.clean:
            part = level_and_fade(part, rate=plan.rate)
        write_audio(folder / path, part, rate=plan.rate, sync=False)
        made.append(_record(name, path, row.utterance, place, piece, len(part) / plan.rate))
    return {"slices": made, "counts": _counts(words, slices, row, ready)}


def _counts(
    words: Sequence[Word], slices: Sequence[Slice], row: Utterance, ready: list[Word] | None
) -> dict[str, int]:
    return {
        "utterances": 1,
        "slices": len(slices),
        "words": len(words),
        "words_kept": sum(len(piece.words) for piece in slices),
        "words_without_times": sum(word.start is None for word in words),
        "utterances_without_slice": int(not slices and not hardly_aligned(words)),
        "utterances_without_times": int(hardly_aligned(words)),
        "utterances_without_text": int(ready is None and not row.text),
    }


def inside(word: Word, signal: float) -> Word:
    """Take back the rounding of an aligner at the very end of the signal."""
    if word.start is None or word.end is None or word.end <= signal:
        return word
    if word.end > signal + OVERSHOOT_SECONDS:
        return word  # for the slicing itself to refuse, with the times in the message
    return Word(word.text, min(word.start, signal), signal)


def _name(utterance: str, place: int, plan: Plan) -> str:
    if not plan.shuffle:
        return f"{utterance}-s{place:03d}"
    secret = str(plan.seed).encode()
    data = f"{utterance}\0{place}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=hashlib.sha256(secret).digest(), digest_size=16).hexdigest()


def _path(name: str, row: Utterance, plan: Plan) -> str:
    inner = name[:2] if plan.shuffle else file_name(row.speaker, "")
    return f"audio/{inner}/{file_name(name, '.flac')}"


def _record(
    name: str, path: str, source: str, place: int, piece: Slice, seconds: float
) -> dict[str, Any]:
    return {
        "slice": name,
        "path": path,
        "source": source,
        "place": place,
        "start": round(piece.start, 6),
        "end": round(piece.end, 6),
        "first_word": piece.first,
        "text": " ".join(piece.words),
        "duration": round(seconds, 6),
    }


def _write_manifest(
    folder: Path, rows: Sequence[dict[str, Any]], sources: Mapping[str, Utterance], plan: Plan
) -> None:
    """The table of slices; shuffled ones in the order of their names, which means nothing."""
    table = []
    for row in sorted(rows, key=lambda r: r["slice"]) if plan.shuffle else rows:
        plain = Utterance(
            utterance=row["slice"],
            path=folder / row["path"],
            speaker=WITHHELD,
            text=row["text"] or None,
            duration=row["duration"],
        )
        if not plan.shuffle:
            source = sources[row["source"]]
            place = {k: str(row[k]) for k in ("source", "place", "first_word")}
            times = {"source_start": str(row["start"]), "source_end": str(row["end"])}
            plain = dataclasses.replace(
                source,
                utterance=plain.utterance,
                path=plain.path,
                text=plain.text,
                duration=plain.duration,
                start=None,
                end=None,
                extra={**source.extra, **place, **times},
            )
        table.append(plain)
    write_corpus(folder / "manifest.csv", table)


def _write_key(key: Path, rows: Sequence[dict[str, Any]], plan: Plan) -> None:
    """Which slice came from where, and beside it the plan with its secret seed: for the owner."""
    text = io.StringIO()
    columns = ("slice", "source", "place", "start", "end", "first_word")
    table = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_private(key, text.getvalue())
    write_private(key.with_suffix(".json"), json.dumps(dataclasses.asdict(plan), indent=2) + "\n")
