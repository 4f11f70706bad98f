"""The speech of an evaluation: original and anonymized, paired by id, without broken files."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.audio import audio_seconds
from voxrisk.corpus.check import check_corpus, copy_name
from voxrisk.corpus.pairs import PairCheck, check_pairs
from voxrisk.corpus.table import Heard
from voxrisk.files.atomic import write_text
from voxrisk.files.places import place_exists
from voxrisk.notices import Notice, notice
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.sharing import FUNCTION, GIVEN, shown_maker, shown_options, shown_tool
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.results import Anonymizer, TargetSelection
from voxrisk.types import InputError

BROKEN = ("missing", "unreadable", "empty", "short", "silent")
MOST_BROKEN = 0.2
POOL = 20  # target speakers taken from the training speech
DRAWS = {"evaluation": 0, "training": 1, "enrolment": 2}  # each purpose has a seed of its own
COPIES = "heard"  # folder of decoded copies in the entry of a check


@dataclass(frozen=True, slots=True)
class Speech:
    """Utterances of both kinds in the same order, what was left out, and whether they pair up.

    ``sounds`` maps each original utterance to the hash of its samples, ``published`` each
    anonymized one. ``enrolled`` is enrolment that was anonymized with other draws, if given.
    """

    original: tuple[Utterance, ...]
    anonymized: tuple[Utterance, ...]
    digest: str
    anonymized_digest: str
    anonymizer: Anonymizer
    pairs: PairCheck
    sounds: Mapping[str, str]
    notices: tuple[Notice, ...]
    published: Mapping[str, str] = field(default_factory=dict)
    enrolled: tuple[Utterance, ...] = ()

    @property
    def people(self) -> list[str]:
        """The speakers, sorted."""
        return sorted({row.speaker for row in self.original})

    @property
    def synthetic(self) -> str | None:
        """What made the voices, if no person spoke."""
        found = (row.extra.get("synthetic") for row in self.original)
        return shown_maker(next((name for name in found if name), None))


def prepare_speech(chosen: Evaluation, stages: Stages) -> Speech:
    """Read (or make) both corpora, pair them by id, and leave out what is broken in either.

    Raises:
        InputError: If hardly anything is usable, or the files of one corpus stand under the ids of
            other recordings: nothing that is measured on wrong pairs means anything.
    """
    notices: list[Notice] = []
    hashes = stages.folder / "hashes.json"
    original = stages.read(chosen.original)
    original, sounds = usable_rows(original, "original", stages, hashes, notices)
    digest = digest_corpus(original, hashes)
    if chosen.anonymizer:
        anonymized, made = anonymize_stage(chosen, original, digest, stages, hashes)
    else:
        assert chosen.anonymized is not None
        anonymized = read_corpus(chosen.anonymized)
        made = described(anonymized)
        if chosen.enroll_anonymized:  # who publishes the trials alone has the rest there
            there = {row.utterance for row in anonymized}
            more = stages.read(chosen.enroll_anonymized)
            anonymized += [row for row in more if row.utterance not in there]
    original, anonymized = _paired(original, anonymized, notices)
    anonymized, published = usable_rows(anonymized, "anonymized", stages, hashes, notices)
    original, anonymized = _paired(original, anonymized, [])
    pairs = check_pairs(original, anonymized, seed=chosen.seed)
    refuse_wrong_pairs(pairs)
    if pairs.identical:
        notices.append(
            notice("identical", count=len(pairs.identical), total=pairs.compared,
                   utterances=pairs.identical)
        )  # fmt: skip
    if pairs.verdict == "unknown":
        notices.append(notice("pairs_unknown", own=pairs.own_best))
    return Speech(
        tuple(original),
        tuple(anonymized),
        digest_corpus(original, hashes),
        digest_corpus(anonymized, hashes),
        made,
        pairs,
        sounds,
        tuple(notices),
        published,
    )


def refuse_wrong_pairs(pairs: PairCheck) -> None:
    """Stop where the anonymized files belong to other originals, or are not at their true rate."""
    if pairs.verdict == "permuted":
        example = (*pairs.moved, *pairs.misfits)[0]
        raise InputError(
            f"the anonymized files do not belong to the originals of the same id: {pairs.reason} "
            f"For example, {example[0]!r} of the anonymized corpus is a version of {example[1]!r}. "
            "Every figure would look like privacy; pair the files by their true ids"
        )
    if pairs.rate_ratio is not None:
        raise InputError(
            f"nearly all anonymized files are {pairs.rate_ratio:g} times as long as their "
            f"originals: {pairs.reason} Their sample rate seems to be wrong in the file headers; "
            "write them again at their true rate"
        )


def anonymize_stage(
    chosen: Evaluation,
    rows: Sequence[Utterance],
    digest: str,
    stages: Stages,
    hashes: Path,
    *,
    name: str | None = None,
    purpose: str = "evaluation",
) -> tuple[list[Utterance], Anonymizer]:
    """Anonymize ``rows`` as the evaluation says; attackers draw with a seed of their own."""
    from voxrisk.protect.anonymizers import named_tool
    from voxrisk.protect.own_code import own_code
    from voxrisk.protect.run import TIMES, AnotherRunError, anonymize

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
        "targets": digest_corpus(targets, hashes) if targets else None,
        "seed": seed,
    }
    if code := own_code(name, options):
        inputs["code"] = code

    def make(folder: Path) -> None:
        begin = partial(
            anonymize,
            rows,
            folder / "speech",
            name,
            options=options,
            targets=targets,
            select=chosen.select,
            per=per,
            seed=seed,
        )
        try:
            begin()
        except AnotherRunError:
            # Begun and not ended by an older version, or where targets were chosen otherwise.
            shutil.rmtree(folder / "speech")
            begin()

    label = f"{purpose} speech with {shown_tool(name)}"
    folder = stages.run("anonymize", inputs, make, label=label, speech=rows, what=shown_tool(name))
    made = read_corpus(folder / "speech")
    times = folder / "speech" / TIMES
    if purpose == "evaluation" and times.is_file():
        stages.notes["anonymizer"] = json.loads(times.read_text(encoding="utf-8"))
    found = replace(described(made), parameters=shown_options(name, options))
    if found.target_selection:
        how = replace(found.target_selection, select=chosen.select, per=per)
        found = replace(found, target_selection=how)
    return made, found


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
    from voxrisk.protect.anonymizers import named_tool, wants_targets

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


def described(rows: Sequence[Utterance]) -> Anonymizer:
    """What the manifest of anonymized speech says about how it was made."""
    names = {row.extra["anonymizer"] for row in rows if row.extra.get("anonymizer")}
    name = shown_tool(names.pop()) if len(names) == 1 else GIVEN
    targets = {row.extra["target"] for row in rows if row.extra.get("target")}
    words = {
        GIVEN: "speech as given",
        FUNCTION: f"anonymized by a {FUNCTION}",
        "command": "anonymized by a program of the user",
    }
    known = TargetSelection(
        select="as the manifest of the speech says", per=None, voices=len(targets)
    )
    return Anonymizer(
        name=name,
        description=words.get(name, f"anonymized by {name}"),
        target_selection=known if targets else None,
    )


def usable_rows(
    rows: Sequence[Utterance],
    kind: str,
    stages: Stages,
    hashes: Path,
    notices: list[Notice],
) -> tuple[list[Utterance], dict[str, str]]:
    """Leave out files that no attacker could use; also the hash of the samples of the others.

    Durations that the table does not know are filled in. Every row gets a decoded copy: this is
    the one place of an evaluation where these files are decoded.
    """
    there = [row for row in rows if place_exists(row.path)]
    if not there:
        raise InputError(f"the {kind} corpus holds no audio file that exists")
    inputs = {"corpus": digest_corpus(there, hashes)}

    def make(folder: Path) -> None:
        found = check_corpus(there, shortest=0.3, keep=folder / COPIES)
        plain = {
            "problems": [(p.utterance, p.kind) for p in found.problems],
            "seconds": dict(found.durations),
            "sounds": dict(found.sounds),
        }
        write_text(folder / "problems.json", json.dumps(plain))

    folder = stages.run("check", inputs, make, label=f"{kind} speech", speech=_checked_seconds)
    health = json.loads((folder / "problems.json").read_text(encoding="utf-8"))
    bad = {u: why for u, why in health["problems"] if why in BROKEN}
    bad |= {row.utterance: "missing" for row in rows if not place_exists(row.path)}
    if bad:
        causes = ", ".join(f"{n} {why}" for why, n in Counter(bad.values()).most_common())
        if len(bad) > MOST_BROKEN * len(rows):
            shown = ", ".join(f"{u}: {why}" for u, why in list(bad.items())[:5])
            raise InputError(
                f"{len(bad)} of {len(rows)} {kind} files cannot be used ({causes}), such as "
                f"{shown}; mend them first, the figures would say little about the rest"
            )
        notices.append(
            notice("broken_files", count=len(bad), total=len(rows), kind=kind, causes=causes,
                   utterances=bad)
        )  # fmt: skip
    doubled = [u for u, why in health["problems"] if why == "doubled"]
    if doubled:
        notices.append(notice("doubled_files", count=len(doubled), kind=kind, utterances=doubled))
    seconds = health["seconds"]
    kept = [row for row in rows if row.utterance not in bad]
    return [
        replace(
            row,
            duration=row.duration or seconds[row.utterance],
            heard=Heard(
                folder / COPIES / copy_name(row),
                (row.path, row.start, row.end),
                seconds[row.utterance],
            ),
        )
        for row in kept
    ], health["sounds"]


def _checked_seconds(folder: Path) -> float:
    plain = json.loads((folder / "problems.json").read_text(encoding="utf-8"))
    return float(sum(plain["seconds"].values()))


def _paired(
    original: Sequence[Utterance], anonymized: Sequence[Utterance], notices: list[Notice]
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
            notices.append(notice("unpaired", count=len(names), kind=where, utterances=names))
    # Who speaks, and what, is taken from the original: a folder of anonymized files may not know.
    return common, [spoken_as(by_id[row.utterance], row) for row in common]


def spoken_as(row: Utterance, like: Utterance) -> Utterance:
    """The audio of one row under the name, speaker and words of another."""
    return replace(
        like,
        path=row.path,
        duration=row.duration,
        start=row.start,
        end=row.end,
        extra=row.extra,
        heard=row.heard,
    )


def limited(
    rows: Sequence[Utterance],
    minutes: float,
    *,
    each: int = 1,
    seconds: Callable[[Utterance], float] = lambda row: row.duration or audio_seconds(row),
) -> list[Utterance]:
    """At most so many minutes, the utterances of the speakers in turn.

    Where not every speaker would get ``each`` utterances, there are fewer speakers, spread over the
    corpus: a person of whom there is one utterance teaches nothing about how a voice varies.
    """
    people: dict[str, list[Utterance]] = {}
    for row in rows:
        people.setdefault(row.speaker, []).append(row)
    if each > 1:
        people = {s: mine for s, mine in people.items() if len(mine) >= each} or people
        need = [sum(map(seconds, mine[:each])) for mine in people.values()]
        fit = max(int(minutes * 60 / (sum(need) / len(need))), 2) if need else 0
        if fit < len(people):
            names = list(people)
            people = {names[i * len(names) // fit]: [] for i in range(fit)}
            for row in rows:
                if row.speaker in people:
                    people[row.speaker].append(row)
    chosen: set[str] = set()
    total = 0.0
    for turn in range(max(map(len, people.values()), default=0)):
        for mine in people.values():
            if turn < len(mine) and total < minutes * 60:
                chosen.add(mine[turn].utterance)
                total += seconds(mine[turn])
    return [row for row in rows if row.utterance in chosen]
