"""The speech of an evaluation: original and anonymized, paired by id, without broken files."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.check import check_corpus
from voxrisk.files.atomic import write_text
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.types import InputError

BROKEN = ("missing", "unreadable", "empty", "short", "silent")
MOST_BROKEN = 0.2
POOL = 20  # target speakers taken from the training speech
DRAWS = {"evaluation": 0, "training": 1, "enrolment": 2}  # each purpose has a seed of its own


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a reader of the report must know; ``severity`` is ``"serious"`` or ``"note"``."""

    severity: str
    text: str


@dataclass(frozen=True, slots=True)
class Speech:
    """Utterances of both kinds in the same order, and what was left out."""

    original: tuple[Utterance, ...]
    anonymized: tuple[Utterance, ...]
    digest: str
    anonymized_digest: str
    anonymizer: dict[str, Any]
    warnings: tuple[Warned, ...]


def prepare_speech(chosen: Evaluation, stages: Stages) -> Speech:
    """Read (or make) both corpora, pair them by id, and leave out what is broken in either."""
    warnings: list[Warned] = []
    memory = stages.folder / "hashes.json"
    original = read_corpus(chosen.original)
    original = _sound(original, "original", stages, memory, warnings)
    digest = digest_corpus(original, memory)
    if chosen.anonymizer:
        anonymized, facts = anonymize_stage(chosen, original, digest, stages, memory)
    else:
        assert chosen.anonymized is not None
        anonymized = read_corpus(chosen.anonymized)
        facts = _described(anonymized)
    original, anonymized = _paired(original, anonymized, warnings)
    anonymized = _sound(anonymized, "anonymized", stages, memory, warnings)
    original, anonymized = _paired(original, anonymized, [])
    return Speech(
        tuple(original),
        tuple(anonymized),
        digest_corpus(original, memory),
        digest_corpus(anonymized, memory),
        facts,
        tuple(warnings),
    )


def anonymize_stage(
    chosen: Evaluation,
    rows: Sequence[Utterance],
    digest: str,
    stages: Stages,
    memory: Path,
    *,
    name: str | None = None,
    purpose: str = "evaluation",
) -> tuple[list[Utterance], dict[str, Any]]:
    """Anonymize ``rows`` as the evaluation says; attackers draw with a seed of their own."""
    from voxrisk.protect.run import TIMES, anonymize

    name = name or chosen.anonymizer or ""
    name, options = named_tool(name, chosen.options if name == chosen.anonymizer else {})
    seed = chosen.seed + DRAWS[purpose]
    targets = target_speech(chosen, stages)
    per = "utterance" if purpose == "training" else chosen.per
    inputs = {
        "corpus": digest,
        "anonymizer": name,
        "options": options,
        "select": chosen.select,
        "per": per,
        "targets": digest_corpus(targets, memory) if targets else None,
        "seed": seed,
    }

    def make(folder: Path) -> None:
        anonymize(
            rows,
            folder / "speech",
            name,
            options=options,
            targets=targets,
            select=chosen.select,
            per=per,
            seed=seed,
        )

    folder = stages.run("anonymize", inputs, make, label=f"{purpose} speech with {name}")
    made = read_corpus(folder / "speech")
    times = folder / "speech" / TIMES
    if purpose == "evaluation" and times.is_file():
        stages.notes["anonymizer"] = json.loads(times.read_text(encoding="utf-8"))
    facts = _described(made) | {"parameters": options}
    if facts["target_selection"]:
        facts["target_selection"] |= {"select": chosen.select, "per": per}
    return made, facts


def target_speech(chosen: Evaluation, stages: Stages) -> list[Utterance] | None:
    """Speech of the target speakers, the same for everybody who anonymizes.

    Without a corpus of their own they are some of the training speakers: a protected voice must not
    be that of another protected person. None: the other speakers of whatever is anonymized.
    """
    if chosen.targets:
        return stages.read(chosen.targets)
    names = pool_of_training(chosen, stages)
    if chosen.train is None or not names:
        return None
    return [row for row in stages.read(chosen.train) if row.speaker in names]


def pool_of_training(chosen: Evaluation, stages: Stages) -> set[str]:
    """Training speakers that are targets, and so train no attacker: as many women as men."""
    from voxrisk.protect.anonymizers import wants_targets

    if chosen.train is None or chosen.targets:
        return set()
    used = [
        (name, options)
        for name, options in ((chosen.anonymizer, chosen.options), (chosen.similar, {}))
        if name
    ]
    if not any(wants_targets(*named_tool(name, options)) for name, options in used):
        return set()
    genders = {row.speaker: row.gender for row in stages.read(chosen.train)}
    kinds = sorted({g or "" for g in genders.values()})
    each = min(POOL, len(genders) // 3) // len(kinds)
    pool: set[str] = set()
    for kind in kinds:
        own = sorted(s for s, g in genders.items() if (g or "") == kind)
        pool.update(own[:: max(len(own) // max(each, 1), 1)][:each])
    return pool if len(pool) > 1 else set()


def named_tool(name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and options of an anonymizer; a text with ``{input}`` is an external program."""
    if "{input}" in name:
        return "command", {**options, "run": name}
    return name, dict(options)


def _described(rows: Sequence[Utterance]) -> dict[str, Any]:
    """What the manifest of anonymized speech says about how it was made."""
    names = {row.extra["anonymizer"] for row in rows if row.extra.get("anonymizer")}
    name = names.pop() if len(names) == 1 else "given audio"
    targets = {row.extra["target"] for row in rows if row.extra.get("target")}
    known = {"select": "as the manifest of the speech says", "per": None, "voices": len(targets)}
    return {
        "name": name,
        "description": f"anonymized by {name}" if name != "given audio" else "speech as given",
        "parameters": {},
        "target_selection": known if targets else None,
    }


def _sound(
    rows: Sequence[Utterance],
    kind: str,
    stages: Stages,
    memory: Path,
    warnings: list[Warned],
) -> list[Utterance]:
    """Leave out files that no attacker could use, and say which."""
    there = [row for row in rows if row.path.is_file()]
    if not there:
        raise InputError(f"the {kind} corpus holds no audio file that exists")

    def make(folder: Path) -> None:
        found = check_corpus(there, shortest=0.3)
        problems = [(p.utterance, p.kind, p.detail) for p in found.problems]
        write_text(folder / "problems.json", json.dumps(problems))

    inputs = {"corpus": digest_corpus(there, memory)}
    folder = stages.run("check", inputs, make, label=f"{kind} speech")
    problems = json.loads((folder / "problems.json").read_text(encoding="utf-8"))
    bad = {u: f"{kind_} ({detail})" for u, kind_, detail in problems if kind_ in BROKEN}
    bad |= {row.utterance: "missing" for row in rows if not row.path.is_file()}
    if bad:
        shown = ", ".join(f"{u}: {why}" for u, why in list(bad.items())[:5])
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        text = f"{len(bad)} of {len(rows)} {kind} files cannot be used: {shown}{more}"
        if len(bad) > MOST_BROKEN * len(rows):
            raise InputError(
                f"{text}; mend them first, the figures would say little about the rest"
            )
        warnings.append(Warned("serious", f"{text}. They are left out of every figure."))
    doubled = [u for u, kind_, _ in problems if kind_ == "doubled"]
    if doubled:
        warnings.append(
            Warned(
                "serious",
                f"{len(doubled)} {kind} files hold the same sound as another one (the first: "
                f"{doubled[0]}); copies make speakers look easier to recognise.",
            )
        )
    return [row for row in rows if row.utterance not in bad]


def _paired(
    original: Sequence[Utterance], anonymized: Sequence[Utterance], warnings: list[Warned]
) -> tuple[list[Utterance], list[Utterance]]:
    by_id = {row.utterance: row for row in anonymized}
    ids = {row.utterance for row in original}
    common = [row for row in original if row.utterance in by_id]
    if not common:
        raise InputError(
            f"no utterance id is in both corpora (original: {original[0].utterance!r} …, "
            f"anonymized: {anonymized[0].utterance!r} …); name the files alike"
        )
    missing = [row.utterance for row in original if row.utterance not in by_id]
    extra = [row.utterance for row in anonymized if row.utterance not in ids]
    for names, where in ((missing, "original"), (extra, "anonymized")):
        if names:
            warnings.append(
                Warned(
                    "serious",
                    f"{len(names)} utterances are only in the {where} corpus (the first: "
                    f"{names[0]}) and are left out.",
                )
            )
    # Who speaks, and what, is taken from the original: a folder of anonymized files may not know.
    return common, [_as(by_id[row.utterance], row) for row in common]


def _as(row: Utterance, like: Utterance) -> Utterance:
    return Utterance(
        like.utterance,
        row.path,
        like.speaker,
        gender=like.gender,
        text=like.text,
        session=like.session,
        language=like.language,
        age=like.age,
        duration=row.duration,
        start=row.start,
        end=row.end,
        extra=row.extra,
    )


def limited(
    rows: Sequence[Utterance], minutes: float, seconds: Callable[[Utterance], float]
) -> list[Utterance]:
    """At most so many minutes, the utterances of all speakers in turn."""
    people: dict[str, list[Utterance]] = {}
    for row in rows:
        people.setdefault(row.speaker, []).append(row)
    chosen: list[Utterance] = []
    total = 0.0
    for turn in range(max(map(len, people.values()), default=0)):
        for mine in people.values():
            if turn < len(mine) and total < minutes * 60:
                chosen.append(mine[turn])
                total += seconds(mine[turn])
    kept = {row.utterance for row in chosen}
    return [row for row in rows if row.utterance in kept]
