"""Anonymize a whole corpus: in parallel, the same whatever the number of workers, and resumable.

What is finished is known from a journal next to the audio (:mod:`voxrisk.journal`). A killed run
leaves whole files and whole journal lines, so the same command goes on where it stopped and ends
with the same bytes as an undisturbed run. A finished run keeps the hash of every file in
``done.json``, and of what it was made of; given again, the command looks whether they still hold.
"""

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from voxrisk import __version__
from voxrisk.corpus import (
    Utterance,
    file_name,
    read_audio,
    read_corpus,
    write_audio,
    write_corpus,
)
from voxrisk.corpus.audio import RATE
from voxrisk.files.atomic import output_folder, remove_leftovers, sync_files, write_text
from voxrisk.journal import Failed, hash_of, resumable
from voxrisk.progress import log
from voxrisk.protect.anonymizers import Anonymizer, Samples, anonymizer
from voxrisk.protect.targets import Vectors, select_targets, speakers_of, unit_generator, unit_of
from voxrisk.scratch import remove_scratch, scratch_of, working_on
from voxrisk.store import DONE, damage, seal
from voxrisk.types import InputError

TIMES = "times.json"  # the one file of a run that differs each time
JOURNAL = Path(".journal", "done.jsonl")
PEAK = 0.99
MOST_TOGETHER = 32


@dataclass(frozen=True, slots=True)
class Job:
    """One utterance to convert, with all that its result depends on."""

    row: Utterance
    unit: str
    targets: tuple[tuple[str, tuple[Utterance, ...]], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """What all jobs of a run share."""

    name: str
    options: str
    seed: int
    out: Path
    code: str = ""


def anonymize(
    corpus: Sequence[Utterance],
    out: Path | str,
    name: str,
    *,
    options: Mapping[str, Any] | None = None,
    targets: Sequence[Utterance] | None = None,
    select: str = "random",
    per: str = "utterance",
    fixed: str | None = None,
    vectors: Vectors | None = None,
    seed: int = 0,
    workers: int | None = None,
    force: bool = False,
    fresh: bool = False,
) -> list[Utterance]:
    """Anonymize ``corpus`` into the folder ``out`` and return its rows.

    Args:
        corpus: The utterances to protect.
        out: Folder for FLAC files (16 kHz) and ``manifest.csv``. A folder that holds an unfinished
            run with the same settings is gone on with.
        name: Anonymizer, or ``package.module:function``.
        options: Options of the anonymizer.
        targets: Speech of the target speakers; without it, the other speakers of ``corpus``.
        select: Target selection, see :func:`voxrisk.protect.targets.select_targets`.
        per: Whether targets and random parameters are drawn per utterance, speaker or session.
        fixed: Target speaker of ``select="fixed"``.
        vectors: A vector for each speaker, for selections by distance; by default light ones are
            computed from the speech itself.
        seed: Seed of every random choice.
        workers: Processes; the result does not depend on it.
        force: Overwrite a folder that holds something else.
        fresh: Begin this very run anew, also where it is finished: what your own code reads by
            itself may have changed.

    Raises:
        InputError: If utterances fail; the message names them, and the others are kept.
    """
    out = Path(out)
    if not corpus:
        raise InputError("the corpus holds no utterances")
    if doubled := _doubled([row.utterance for row in corpus]):
        raise InputError(f"utterance {doubled} is in the corpus twice; ids must be unique")
    tool = anonymizer(name, options)
    chosen, pool = _choose(corpus, targets, tool, select, per, fixed, vectors, seed, workers)
    jobs = [
        Job(row, unit_of(row, per), _target_speech(names, pool, tool.target_seconds))
        for row, names in zip(corpus, chosen, strict=True)
    ]
    settings = {
        "version": __version__,
        "anonymizer": tool.name,
        "parameters": dict(tool.parameters),
        "select": select if tool.learn else None,
        "per": per,
        "seed": seed,
        "utterances": len(corpus),
        "jobs": _digest(jobs),
        **({"code": tool.identity} if tool.identity else {}),
    }
    remove_scratch(scratch_of(out))  # speech for a program that was running at a kill
    sources = hash_of([(job.row, job.targets) for job in jobs])
    if not _open_run(out, settings, sources, force=force, fresh=fresh):
        return read_corpus(out)
    run = Run(name, json.dumps(options or {}, sort_keys=True), seed, out, tool.identity)
    made = resumable(
        functools.partial(_convert, run),
        jobs,
        key=lambda job: hash_of(settings, job.row.utterance, job.unit, job.row, job.targets),
        journal=out / JOURNAL,
        files=functools.partial(_files, run),
        group=lambda job: tuple(name for name, _ in job.targets),  # a voice is learnt once
        batch=MOST_TOGETHER,
        workers=workers,
        label=tool.name,
    )
    failed = [line.reason for line in made if isinstance(line, Failed)]
    if failed:
        more = f" and {len(failed) - 10} more" if len(failed) > 10 else ""
        raise InputError(
            f"{len(failed)} of {len(jobs)} utterances failed: {'; '.join(failed[:10])}{more}. "
            "The others are kept: mend the cause and run the same command again"
        )
    return _close_run(out, jobs, settings, sources, [m for m in made if not isinstance(m, Failed)])


def finish(samples: Samples, *, length: int | None) -> tuple[Samples, float]:
    """Check the output of an anonymizer and keep it below full scale.

    Returns the samples and the factor they were scaled by, 1 unless the peak was too high.

    Raises:
        InputError: If it is empty, not finite, or not as long as it must be.
    """
    samples = np.asarray(samples, dtype=np.float32)
    if samples.ndim != 1 or not samples.size:
        raise InputError(f"the anonymizer gave samples of shape {samples.shape}, not (n,)")
    if not np.isfinite(samples).all():
        raise InputError("the anonymizer gave samples that are not finite")
    if length is not None and len(samples) != length:
        raise InputError(f"the anonymizer gave {len(samples)} samples instead of {length}")
    peak = float(np.abs(samples).max())
    scale = 1.0 if peak <= PEAK else PEAK / peak
    return (samples * np.float32(scale) if scale < 1 else samples), scale


def _choose(
    corpus: Sequence[Utterance],
    targets: Sequence[Utterance] | None,
    tool: Anonymizer,
    select: str,
    per: str,
    fixed: str | None,
    vectors: Vectors | None,
    seed: int,
    workers: int | None,
) -> tuple[list[tuple[str, ...]], dict[str, list[Utterance]]]:
    """The target speakers of every row, and the speech of all target speakers."""
    if tool.learn is None:
        return [() for _ in corpus], {}
    pool = speakers_of(corpus if targets is None else targets)

    def known() -> Vectors:
        if vectors is not None:
            return vectors
        from voxrisk.protect.vectors import light_vectors

        return light_vectors({**speakers_of(corpus), **pool}, workers=workers)

    if tool.pool is not None:
        from voxrisk.protect.pool import pool_targets

        return pool_targets(corpus, pool, **tool.pool, per=per, seed=seed, vectors=known), pool
    chosen = select_targets(
        corpus, pool, select=select, per=per, seed=seed, fixed=fixed, vectors=known
    )
    return chosen, pool


def _target_speech(
    names: Sequence[str], pool: Mapping[str, Sequence[Utterance]], seconds: float
) -> tuple[tuple[str, tuple[Utterance, ...]], ...]:
    """The first utterances of each target speaker, about ``seconds`` of speech."""
    speech = []
    for name in names:
        rows, total = [], 0.0
        for row in pool[name]:
            if total >= seconds:
                break
            rows.append(row)
            total += row.duration or 5.0
        speech.append((name, tuple(rows)))
    return tuple(speech)


@functools.lru_cache(maxsize=2)
def _tool(name: str, options: str, code: str) -> Anonymizer:
    """Made once in a process, and again when the user's own code behind it has changed."""
    return anonymizer(name, json.loads(options))


@functools.lru_cache(maxsize=64)
def _voice(
    name: str, options: str, code: str, speaker: str, paths: tuple[tuple[Any, ...], ...]
) -> Any:
    learn = _tool(name, options, code).learn
    assert learn is not None
    rows = [
        Utterance(speaker, path, speaker, start=start, end=end, heard=heard)
        for path, start, end, heard in paths
    ]
    return learn(speaker, [read_audio(row, rate=RATE) for row in rows])


def _convert(run: Run, job: Job) -> dict[str, Any] | Failed:
    """Convert one utterance; returns what the manifest must know, or why it failed."""
    before = _cpu_seconds()
    try:
        line = _convert_speech(run, job)
    except (InputError, ValueError) as error:
        return Failed(f"{job.row.utterance}: {error}")
    return {**line, "cpu_seconds": round(_cpu_seconds() - before, 4)}


def _cpu_seconds() -> float:
    """Work of this process and of the programs it has run."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _convert_speech(run: Run, job: Job) -> dict[str, Any]:
    kind = run.name, run.options, run.code
    tool = _tool(*kind)
    voices = [
        _voice(*kind, name, tuple((r.path, r.start, r.end, r.copy) for r in rows))
        for name, rows in job.targets
    ]
    samples = read_audio(job.row, rate=RATE)
    generator = unit_generator(run.seed, "convert", job.unit)
    drawn = tool.draw(generator)
    length = len(samples) if tool.keeps_duration else None
    with working_on(run.out):
        converted = tool.convert(samples, voices, generator, **drawn)
    protected, scale = finish(converted, length=length)
    # The journal knows its hash, and all files are synced before the manifest is written.
    write_audio(run.out / _file(job.row.utterance), protected, rate=RATE, sync=False)
    changed = {"scale": round(scale, 6)} if scale < 1 else {}
    return {"duration": len(protected) / RATE, "drawn": {**drawn, **changed}}


def _files(run: Run, job: Job, _: Any) -> list[Path]:
    return [run.out / _file(job.row.utterance)]


def _file(utterance: str) -> Path:
    return Path("audio") / file_name(utterance, ".flac")


class AnotherRunError(InputError):
    """The output folder holds speech that was made in another way."""


def _open_run(
    out: Path, settings: Mapping[str, Any], sources: str, *, force: bool, fresh: bool = False
) -> bool:
    """Prepare the output folder; False if the same run is already complete in it."""
    record = out / "run.json"
    same = _read_json(record) == settings
    force = force or (fresh and same)
    if same and (out / DONE).is_file() and not force:
        wrong = damage(out)
        if wrong is None and _read_json(out / DONE).get("sources") != sources:
            wrong = "the speech it was made of has changed"
        if wrong is None:
            return False
        log.warning("%s: %s; it is made again", out, wrong)
        for name in (DONE, "manifest.csv"):
            (out / name).unlink(missing_ok=True)
    if not same:
        try:
            output_folder(out, force=force)
        except InputError as error:
            if record.is_file():
                raise AnotherRunError(
                    f"{out} holds another run ({record.name} differs: the speech, the options, or "
                    "your code); choose another folder or add --force"
                ) from error
            raise
    if not same or force:
        for folder in ("audio", ".journal"):
            shutil.rmtree(out / folder, ignore_errors=True)
        for leftover in (DONE, "manifest.csv", TIMES):
            (out / leftover).unlink(missing_ok=True)
        write_text(record, json.dumps(settings, indent=2) + "\n")
    (out / ".journal").mkdir(exist_ok=True)
    (out / "audio").mkdir(exist_ok=True)
    return True


def _read_json(record: Path) -> Any:
    try:
        return json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _close_run(
    out: Path,
    jobs: Sequence[Job],
    settings: Mapping[str, Any],
    sources: str,
    made: Sequence[Mapping[str, Any]],
) -> list[Utterance]:
    rows = []
    for job, line in zip(jobs, made, strict=True):
        parameters = {**settings["parameters"], **line["drawn"]}
        extra = {
            "anonymizer": settings["anonymizer"],
            "parameters": json.dumps(parameters, sort_keys=True),
            "seed": str(settings["seed"]),
            "version": settings["version"],
        }
        if job.targets:
            extra["target"] = "+".join(name for name, _ in job.targets)
        path = out / _file(job.row.utterance)
        rows.append(
            replace(
                job.row,
                path=path,
                duration=round(line["duration"], 6),
                start=None,
                end=None,
                extra={**job.row.extra, **extra},
                heard=None,
            )
        )
    speech = sum(row.duration or 0.0 for row in rows)
    work = sum(line.get("cpu_seconds", 0.0) for line in made)
    times = {"speech_seconds": round(speech, 3), "cpu_seconds": round(work, 2)}
    write_text(out / TIMES, json.dumps(times) + "\n")
    sync_files(row.path for row in rows)
    write_corpus(out / "manifest.csv", rows)
    remove_leftovers(out / "audio")
    kept = [out / "run.json", out / "manifest.csv", *(row.path for row in rows)]
    seal(out, {"sources": sources}, files=kept)
    shutil.rmtree(out / JOURNAL.parent)
    remove_scratch(scratch_of(out))
    return rows


def _digest(jobs: Sequence[Job]) -> str:
    """One hash for the whole list of jobs: sources, units, targets and their speech."""
    digest = hashlib.sha256()
    for job in jobs:
        plain = asdict(job)
        for row in (plain["row"], *(row for _, rows in plain["targets"] for row in rows)):
            del row["heard"]  # the same speech, wherever a copy of it lies
        digest.update(json.dumps(plain, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _doubled(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
