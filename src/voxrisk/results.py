"""What a run found: one typed record, one file, one schema for every command.

``evaluate``, ``measure``, ``population`` and ``utility`` all write a :class:`Results`; what a
command does not measure stays empty. The report, the comparison and users read it with attributes.
``docs/results-schema.json`` is generated from these classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from voxrisk import __version__
from voxrisk.files.atomic import write_text
from voxrisk.files.errors import reading
from voxrisk.files.limits import MOST_RESULTS, refuse_size
from voxrisk.files.unknown import refuse_unknown
from voxrisk.notices import Notice
from voxrisk.types import Estimate, InputError, as_path

SCHEMA = 2
FILE = "results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The speech of a run; ``name`` is empty unless names were asked for."""

    name: str = ""
    speakers: int
    utterances: int
    hours: float
    genders: Mapping[str, int] = field(default_factory=dict)
    sessions_known: bool = False
    synthetic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSelection:
    """How the voices to speak with were chosen: ``per`` utterance, speaker or session."""

    select: str
    per: str | None
    voices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymizer:
    """What protected the speech."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target_selection: TargetSelection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The ready speaker encoder, known by its hash."""

    name: str
    description: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How an attacker was trained: on how much, and how often each head errs on held-out speech."""

    speakers: int
    utterances: int
    targets: int | None = None
    ver_source: float | None = None
    ver_target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Uncertainty left (bits) against the belief before (log-odds)."""

    log_odds: tuple[float, ...]
    bits: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCurve:
    """Misses against false alarms."""

    false_alarm: tuple[float, ...]
    miss: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Figures within one group of speakers, such as one gender."""

    group: str
    value: str
    speakers: int
    figures: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def too_small(self) -> bool:
        """Whether there were too few speakers for any figure."""
        return not self.figures


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """Figures on one of several sets of trials, such as VoicePrivacy's ``libri_test_f``."""

    name: str
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One speaker's own risk in the largest crowd, with the longest conversations."""

    speaker: str
    linkability: float | None = None
    singling_out: float | None = None
    similarity: float | None = None
    nearest_other: str | None = None
    similarity_to_nearest: float | None = None
    trials: int | None = None


@dataclass(frozen=True, slots=True)
class Exposed:
    """One speaker, how often the attacker who finds them best links them, and who that is."""

    speaker: str
    linkability: float
    attacker: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """People over all attackers: the risk that was asked about, the share above it, everybody."""

    risk: float
    share: Estimate
    people: tuple[Exposed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMember:
    """One recogniser that the attacker could choose.

    Attributes:
        hears: What it hears speech with.
        backend: What stands behind that.
        weight: Its share in the choice; 0: not chosen.
        held_out: EER on training speakers it did not learn from: what the choice rests on.
        eer: EER on the people under test: shown, and never chosen by.
        aside: Whether it was never to be chosen: it hears the recording, the words or the gender,
            not the person.
    """

    hears: str
    backend: str
    weight: float
    held_out: Estimate
    eer: Estimate
    aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """What one attacker found.

    Attributes:
        name: Ours; for ``measure`` the name of the score set.
        voiceprivacy: Its name in the VoicePrivacy challenges.
        paper1: Its name in the legal framework (Vauquier et al. 2025).
        knows: What it knows, in a sentence.
        enrols: Speech it enrols.
        tests: Speech it attacks; ``"original"`` for the reference only.
        extractor: What it recognises with, in words.
        training: How it was trained, if it was.
        reference: Whether it attacks speech as it was.
        ranked: False where a control failed: its figures are shown and count for nothing.
        figures: Score figures by name.
        tag: ZEBRA's category of the worst case.
        ece: ZEBRA profile.
        det: Error curve.
        crowd: Figures by L and N (``parameters``).
        groups: Figures by group.
        sets: Figures by set, where the trials are several sets; ``figures`` pools them.
        speakers: Person by person, the most exposed first.
        members: What it chose from, if it did, the best on training speakers first.
        sizes: Numbers of trials and speakers.
        colour: In every figure; empty: by its place.
        mark: In every figure; empty: by its place.
    """

    name: str
    voiceprivacy: str = ""
    paper1: str = ""
    knows: str = ""
    enrols: str = ""
    tests: str = ""
    extractor: str = ""
    training: Training | None = None
    reference: bool = False
    ranked: bool = True
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    tag: str = ""
    ece: Profile | None = None
    det: ErrorCurve | None = None
    crowd: tuple[Estimate, ...] = ()
    groups: tuple[Group, ...] = ()
    sets: tuple[SetResult, ...] = ()
    speakers: tuple[Person, ...] = ()
    members: tuple[SuiteMember, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    colour: str = ""
    mark: str = ""

    @property
    def eer(self) -> Estimate:
        """The equal error rate (convex hull)."""
        return self.figures["rocch_eer"]

    def curve(self, metric: str, length: int) -> list[Estimate]:
        """The crowd's estimates of one metric and L, by rising N."""
        chosen = [e for e in self.crowd if e.name == metric and e.length == length]
        return sorted(chosen, key=lambda e: e.size)

    def at(self, metric: str, length: int, size: int) -> Estimate | None:
        """The crowd's estimate of one metric at one L and N, or None."""
        return next((e for e in self.curve(metric, length) if e.size == size), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """What the attacks say about one criterion of Opinion 05/2014.

    Attributes:
        name: ``"singling out"``, ``"linkability"`` or ``"inference"``.
        level: ``"at chance"``, ``"above chance"``, ``"as original"``, ``"not assessed"`` or
            ``"test failed"``.
        sentence: The finding in words.
        attacker: The strongest one.
        value: Its figure; L and N are in its parameters.
        original: The same on original speech.
    """

    name: str
    level: str
    sentence: str
    attacker: str | None = None
    value: Estimate | None = None
    original: Estimate | None = None

    @property
    def assessed(self) -> bool:
        """Whether there is a figure."""
        return self.value is not None

    @property
    def degree(self) -> int:
        """How far an attack above chance goes towards that on original speech, 1 to 3; else 0.

        22 % and 88 % are both better than guessing; the borders are at a quarter and three quarters
        of the way from guessing to original speech.
        """
        if self.level != "above chance" or self.value is None or self.original is None:
            return 0
        whole = self.original.value - self.value.chance
        if whole <= 0:
            return 0
        share = (self.value.value - self.value.chance) / whole
        return 1 + (share >= 0.25) + (share >= 0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One answer to "can this test be trusted?".

    Attributes:
        code: What was controlled: ``positive``, ``training``, ``kind``, ``targets``,
            ``negative``, ``words``, ``pairs``, ``speed`` or ``transcripts``.
        attacker: Whose control it is; empty where it is of the whole test.
        question: In plain words.
        expected: What a sound test gives.
        found: What this one gave.
        passed: False: the test, or this attacker, cannot be trusted. None: could not be checked.
        value: The figure behind it, if it is one.
    """

    code: str
    question: str
    expected: str
    found: str
    passed: bool | None
    attacker: str = ""
    value: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The headline, and what it rests on."""

    headline: str
    criteria: tuple[Criterion, ...]

    def __getitem__(self, name: str) -> Criterion:
        return next(c for c in self.criteria if c.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """Voice similarity matrices of the same speakers, and what follows from them."""

    speakers: tuple[str, ...]
    oo: tuple[tuple[float, ...], ...]
    op: tuple[tuple[float, ...], ...]
    pp: tuple[tuple[float, ...], ...]
    figures: Mapping[str, Estimate] = field(default_factory=dict)

    def renamed(self, alias: Mapping[str, str]) -> "SimilarityResult":
        """The same with speakers under other names, in the order of these names."""
        order = sorted(range(len(self.speakers)), key=lambda i: alias[self.speakers[i]])
        oo, op, pp = (
            tuple(tuple(rows[i][j] for j in order) for i in order)
            for rows in (self.oo, self.op, self.pp)
        )
        names = tuple(alias[self.speakers[i]] for i in order)
        return replace(self, speakers=names, oo=oo, op=op, pp=pp)


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityResult:
    """What the speech is still good for: figure → ``original``/``anonymized`` → estimate.

    Attributes:
        figures: The figures.
        missing: Figure → why it could not be had.
        untrusted: Figure → why its value on original speech shows that it cannot be believed.
    """

    figures: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    untrusted: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str, side: str = "anonymized") -> Estimate | None:
        """One figure of one side, or None."""
        return self.figures.get(name, {}).get(side)

    def to_json(self) -> str:
        """Plain text, as the stage of an evaluation keeps it."""
        import msgspec

        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "UtilityResult":
        """The inverse of :meth:`to_json`."""
        import msgspec

        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeAttack:
    """What one attacker inferred about one attribute.

    Attributes:
        attacker: By what it knows, a name of ``knowledge``.
        learned_from: ``"training speech"``, ``"other speakers"`` of the speech under test, or
            ``"both"``.
        tests: ``"original"`` or ``"anonymized"``.
        features: What it listened to, chosen on held-out speakers it learned from.
        figures: Every figure for every L (``parameters``).
        confusion: Share of each true class (row) taken for each class (column), one utterance.
        calibration: (belief, share that was right, how many), one utterance.
    """

    attacker: str
    learned_from: str
    tests: str
    features: str = ""
    figures: tuple[Estimate, ...] = ()
    confusion: tuple[tuple[float, ...], ...] = ()
    calibration: tuple[tuple[float, float, int], ...] = ()

    @property
    def reference(self) -> bool:
        """Whether it attacks speech as it was."""
        return self.tests == "original"

    @property
    def lengths(self) -> list[int]:
        """The L there are figures for."""
        return sorted({e.length for e in self.figures})

    def get(self, name: str, length: int) -> Estimate | None:
        """One figure at one L, or None."""
        return next((e for e in self.figures if e.name == name and e.length == length), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeResult:
    """One attribute: a secret that should be hidden, or a use that should survive.

    Attributes:
        name: The column of the manifest.
        use: ``"hide"`` or ``"keep"``.
        kind: ``"category"`` or ``"number"``.
        per: ``"speaker"`` or ``"utterance"``.
        classes: Its classes, or the groups of the number.
        speakers: How many speakers each has.
        refused: Why it was not assessed.
        attacks: What each attacker inferred, the strongest first, original speech last.
    """

    name: str
    use: str
    kind: str = "category"
    per: str = "speaker"
    classes: tuple[str, ...] = ()
    speakers: tuple[int, ...] = ()
    refused: str = ""
    attacks: tuple[AttributeAttack, ...] = ()

    def best(
        self, tests: str, length: int | None = None
    ) -> tuple[AttributeAttack, Estimate] | None:
        """The attack on this speech with the highest balanced accuracy, at one L or at any."""
        rows = [
            (attack, e)
            for attack in self.attacks
            for e in attack.figures
            if attack.tests == tests and e.name == "uar" and length in (None, e.length)
        ]
        return max(rows, key=lambda row: row[1].value, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """How far the hidden attributes of speakers together narrow the crowd.

    Attributes:
        attributes: Their names.
        source: ``"true"``, ``"original"`` or ``"anonymized"``: where they were learned.
        left: People left to choose from.
        found: How often the right one is found by attributes alone.
    """

    attributes: tuple[str, ...]
    source: str
    left: Estimate
    found: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceResult:
    """What can be inferred about people, and what should survive and did."""

    attributes: tuple[AttributeResult, ...] = ()
    together: tuple[Narrowing, ...] = ()

    def of(self, use: str) -> list[AttributeResult]:
        """The attributes to ``"hide"`` or to ``"keep"``."""
        return [a for a in self.attributes if a.use == use]

    def to_json(self) -> str:
        """Plain text, as the stage of an evaluation keeps it."""
        import msgspec

        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "InferenceResult":
        """The inverse of :meth:`to_json`."""
        import msgspec

        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioPair:
    """Two recordings to listen to, as data addresses."""

    speaker: str
    utterance: str
    text: str
    original: str
    anonymized: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods:
    """How it was done, well enough to be done again."""

    effort: str = ""
    seed: int = 0
    confidence: float = 0.95
    resamples: int = 0
    lengths: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    enrolment: str = ""
    trials: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    citations: tuple[str, ...] = ()
    evaluation_yaml: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything a run found; what its command does not measure is empty."""

    kind: str
    title: str = ""
    schema: int = SCHEMA
    voxrisk: str = __version__
    corpus: Corpus | None = None
    anonymizer: Anonymizer | None = None
    encoder: Encoder | None = None
    verdict: Verdict | None = None
    controls: tuple[Control, ...] = ()
    notices: tuple[Notice, ...] = ()
    attacks: tuple[AttackResult, ...] = ()
    exposure: Exposure | None = None
    zero_evidence: Profile | None = None
    similarity: SimilarityResult | None = None
    utility: UtilityResult | None = None
    inference: InferenceResult | None = None
    audio: tuple[AudioPair, ...] = ()
    methods: Methods = field(default_factory=Methods)

    @property
    def attackers(self) -> Mapping[str, AttackResult]:
        """The attacks by name, the strongest first."""
        return {attack.name: attack for attack in self.attacks}

    @property
    def reference(self) -> AttackResult | None:
        """The attack on speech as it was."""
        return next((a for a in self.attacks if a.reference), None)

    def write(self, path: Path | str) -> str:
        """Write ``results.json`` whole or not at all; returns its text."""
        path = Path(path)
        text = self.to_json()
        write_text(path / FILE if path.is_dir() else path, text)
        return text

    def to_json(self) -> str:
        """The text of ``results.json``."""
        import msgspec

        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    @classmethod
    def read(cls, run: Path | str) -> "Results":
        """Read the results of a run, from its folder or from the file itself.

        Raises:
            InputError: If there is no such file, it is not of this kind, or its schema is another.
        """
        path = as_path(run, "a run")
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            raise InputError(f"{path} is not there; give the folder that voxrisk wrote with -o")
        refuse_size(path, MOST_RESULTS)
        with reading(path, "results", way_out="run the command again"):
            return cls.from_json(path.read_bytes(), where=str(path))

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str = FILE) -> "Results":
        """The inverse of :meth:`to_json`."""
        import msgspec

        try:
            plain = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise InputError(f"{where}: not JSON ({error}); run the command again") from error
        found = plain.get("schema") if isinstance(plain, dict) else None
        if found != SCHEMA:
            older = "an older voxrisk wrote it" if found is None or found == 1 else "it is newer"
            raise InputError(
                f"{where}: schema {found!r}, and this voxrisk reads schema {SCHEMA} ({older}); run "
                "the same command again with this version: finished stages are used again"
            )
        try:
            found = msgspec.convert(plain, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"{where}: {error}; run the command again") from error
        refuse_unknown(plain, msgspec.to_builtins(found), where)
        return found


def json_schema() -> dict[str, Any]:
    """The JSON schema of ``results.json``, as ``docs/results-schema.json`` has it."""
    import msgspec

    return {"$schema": "https://json-schema.org/draft/2020-12/schema",
            **msgspec.json.schema(Results)}  # fmt: skip


def strongest(attacks: Sequence[AttackResult], metric: str, *, least: bool) -> AttackResult | None:
    """The attack on protected speech that goes furthest by a score figure."""
    having = [a for a in attacks if not a.reference and a.ranked and metric in a.figures]
    pick = min if least else max
    return pick(having, key=lambda a: a.figures[metric].value) if having else None


def write_schema(folder: Path | str) -> None:
    """Write ``results-schema.json`` into a folder of documentation."""
    import json

    text = json.dumps(json_schema(), indent=1, ensure_ascii=False)
    Path(folder, "results-schema.json").write_text(text + "\n", encoding="utf-8")
